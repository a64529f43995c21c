"""What pages hold of a solution, of networks and of players is what Python computes."""

import base64
import dataclasses
import types

import jax
import numpy as np
import pytest

import azjax
import guard
import playground
from azjax import games
from azjax.networks import MLPConfig, ResNetConfig
from azjax.players.overrides import oriented_overrides
from azjax.runs.config import Config, make_parts
from azjax.runs.player import Player
from azjax.search import PUCT
from azjax.viz import live
from azjax.viz.live import live_data, solve
from integers import positions as random_positions
from javascript import evaluate
from refusals import assert_refused
from small import take

# Games that are solved.

READ = """(data) => {
  const game = azjax.openGame(data);
  const [network] = azjax.openNetworks(data, game);
  const open = [...game.table.keys()].map((text) => game.read(text));
  const positions = open.map((position) => {
    const after = game.legal(position).map((action) => game.step(position, action));
    const { row, value } = game.table.get(position.text);
    return [row, position.player, game.legal(position),
      after.map((next) => [next.over, game.table.get(next.text)?.row ?? null, game.winner(next)]),
      azjax.optimalMoves(game, position), value];
  });
  const outputs = open.map((position) => network.evaluate(position));
  const search = new azjax.Search(game, game.init(), network.evaluate, data.settings);
  const choose = (position) => azjax.opinionOf(network, game, position).move;
  const counts = [0, 1].map((seat) => new azjax.Lines(game, choose, seat).below(game.init()));
  return {
    ...{ positions, outputs, counts, simulations: search.simulations },
    nodes: search.nodes.map(({ player, over, reward }) => [player, over, reward]),
  };
}"""


@pytest.fixture(scope="module", params=["tic_tac_toe", "hex:2"])
def solved(request):
    """`(game, solution, answers, what the page reads)`."""
    game = games.make(request.param)
    solution, rng = solve(game), np.random.default_rng(0)
    logits = rng.normal(size=(len(solution.decisions), game.num_actions)).astype(np.float32)
    values = rng.uniform(-1, 1, len(logits)).astype(np.float32)
    player = types.SimpleNamespace(game=game, iteration=4, evaluate=lambda states: (logits, values))
    packed = live.pack_player(player)
    found = evaluate(READ, live_data(game, PUCT(num_simulations=200), [packed]))
    return game, solution, (logits, values), found


def test_a_page_has_the_rules_and_the_solution_of_a_game(solved):
    _, solution, _, found = solved
    decisions = solution.decisions.tolist()
    for each, row in zip(found["positions"], decisions, strict=True):
        number, player, actions, after, optimal, value = each
        legal = np.flatnonzero(solution.legal[row])
        assert decisions[number] == row and player == solution.player[row]
        assert value == solution.values[row]
        assert actions == legal.tolist()
        assert optimal == np.flatnonzero(solution.optimal[row]).tolist()
        for (over, child, winner), action in zip(after, legal, strict=True):
            state, won = solution.children[row, action], solution.rewards[row, action] == 1
            assert (over, winner) == (solution.over[state], player if won else None)
            assert child is None if over else decisions[child] == state


def test_stored_outputs_are_looked_up_and_backups_have_the_sign_of_the_player(solved):
    _, solution, (logits, values), found = solved
    legal = solution.legal[solution.decisions]
    outputs = found["outputs"]
    np.testing.assert_array_equal([one["logits"] for one in outputs], np.where(legal, logits, 0))
    np.testing.assert_array_equal([one["value"] for one in outputs], values)
    for each in found["simulations"]:
        player, over, reward = found["nodes"][each["leaf"]]
        mover = found["nodes"][each["path"][-1]][0]
        gain, whose = (reward, mover) if over else (each["value"], player)
        players = [found["nodes"][i][0] for i in each["path"]]
        assert each["backup"] == [gain if one == whose else -gain for one in players]


def test_all_games_against_the_network_are_counted(solved):
    """`won`, `drawn` and `lost` for the network, as first and as second player."""
    _, solution, (logits, _), found = solved
    moves = np.full(solution.num_states, -1)
    legal = solution.legal[solution.decisions]
    moves[solution.decisions] = np.where(legal, logits, -np.inf).argmax(axis=1)
    for seat, counts in enumerate(found["counts"]):
        below = np.zeros((solution.num_states, 3), int)
        for row in reversed(solution.decisions):
            mine = solution.player[row] == seat
            for action in [moves[row]] if mine else np.flatnonzero(solution.legal[row]):
                child, won = solution.children[row, action], int(solution.rewards[row, action])
                ends = np.eye(3, dtype=int)[1 - won if mine else 1 + won]
                below[row] += ends if solution.over[child] else below[child]
        assert [counts[name] for name in ("won", "drawn", "lost")] == below[0].tolist()


# Networks.


def positions(name, count):
    """Different positions of random games, as texts and as states `[count, ...]`."""
    states, rng = random_positions(name, 256), np.random.default_rng(0)
    rows = rng.permutation(np.unique(states.board, axis=0, return_index=True)[1])[:count]
    states = take(states, rows)
    return ["".join(".XO"[mark] for mark in board) for board in states.board], states


KINDS = {
    "mlp": MLPConfig(hidden=(32,), head_hidden=16),
    "dense": ResNetConfig(width=16, blocks=2, head_hidden=16),
    "conv": ResNetConfig(encoding="absolute", layers="conv", width=6, blocks=1, norm="layer"),
}
OUTPUTS = """([name, networks, texts]) => {
  const game = azjax.openGame({ game: name });
  return azjax.openNetworks({ networks }, game).map((network) => texts.map((text) => {
    const { logits, value } = network.evaluate(game.read(text));
    return [...logits, value];
  }));
}"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.compiles(1)
def test_the_page_computes_the_outputs_of_networks(kind):
    parts = make_parts(Config(game="connect_four", network=KINDS[kind]))
    network, (texts, states) = parts.network, positions("connect_four", 50)
    rng = np.random.default_rng(0)
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    variables = jax.tree.map(
        lambda leaf: rng.uniform(-0.3, 0.5, leaf.shape).astype(leaf.dtype), shapes
    )

    @jax.jit
    def compute(variables, states):
        folded = network.fold(variables)
        observed = jax.vmap(lambda state: parts.game.observe(state, network.encoding))(states)
        return folded, network.infer(folded, observed)

    folded, (logits, values) = compute(variables, states)
    packed = live.pack_weights(Player(parts, folded))
    found = np.array(evaluate(OUTPUTS, ["connect_four", [packed], texts])[0])
    expected = np.column_stack([logits, values])
    np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


def test_custom_networks_are_refused():
    parts = make_parts(Config(network=KINDS["mlp"]))
    player = Player(parts._replace(network=parts.network._replace(plain=None)), {})
    assert_refused((lambda: live.pack_weights(player), "cannot compute this network: use an"))


# Players of the playground.

CHOOSE = """async ([packed, texts]) => {
  const shipped = await azjax.openShipped(packed);
  const bytes = (array) => btoa(String.fromCharCode(...new Uint8Array(array.buffer)));
  return texts.map((text) => {
    const position = shipped.game.read(text);
    const { logits, value } = shipped.network.evaluate(position);
    const { action, isOverride } = shipped.choose(position);
    return [action, isOverride, bytes(logits), value];
  });
}"""


def test_quantized_players_have_the_bits_and_the_moves_of_python():
    """With random overrides for 60 positions and all of their symmetric copies."""
    player, (texts, states) = azjax.load("tic_tac_toe"), positions("tic_tac_toe", 300)
    game = player.game
    with guard.sharing():
        logits, values = player.evaluate(states)
    copies = [*zip(game.symmetries.cells, game.symmetries.actions, strict=True)]
    legal = np.asarray(states.board) == 0
    moves = np.where(legal, np.random.default_rng(1).random(legal.shape), -1).argmax(axis=1)
    listed, rows = {}, []
    for row, board in enumerate(states.board[:60]):
        if board.tobytes() in listed:
            continue
        rows.append(row)
        for order, names in copies:  # The cell `i` of a copy is the cell `order[i]`.
            listed.setdefault(board[order].tobytes(), set()).add(names.tolist().index(moves[row]))
    encoding = player.parts.network.encoding
    table = oriented_overrides(game, encoding, take(states, rows), moves[rows])
    packed = playground.pack_player(dataclasses.replace(player, alone=True, overrides=table))
    chosen, isOverride, bits, value = zip(*evaluate(CHOOSE, [packed, texts]), strict=True)
    assert [base64.b64decode(text) for text in bits] == [row.tobytes() for row in logits]
    np.testing.assert_array_equal(np.float32(value), values)
    best = np.where(legal, logits, -np.inf).argmax(axis=1)
    for action, found, own, board in zip(chosen, isOverride, best, states.board, strict=True):
        assert found == (board.tobytes() in listed)
        assert action in listed.get(board.tobytes(), {own})
    assert 55 < sum(isOverride) < 280
    others = evaluate(OUTPUTS, [game.name, [live.pack_weights(player)], texts])
    np.testing.assert_array_equal(others[0], np.column_stack([logits, values]))  # Other pages.
