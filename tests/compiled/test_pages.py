"""What pages compute is what Python computes: searches, networks, players and games."""

import base64
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
import dots
import playground
from azjax import games
from azjax.games.tic_tac_toe import LINES, from_board
from azjax.networks import MLPConfig, ResNetConfig
from azjax.players.oriented import oriented_overrides
from azjax.runs.config import Config, make_parts
from azjax.runs.player import Player
from azjax.search import PUCT, Gumbel
from azjax.viz import networks
from azjax.viz.live import live_data, solve
from azjax.viz.positions import has_rules, true_values
from javascript import evaluate
from tables import BATCH, all_boards, bench, run

FOUR = games.make("connect_four")


def texts_of(states):
    return ["".join(".XO"[cell] for cell in board) for board in np.asarray(states.board)]


# Searches, with a table as the evaluator.

SEARCH = """({ name, texts, settings, logits, values, weights, rows }) => {
  const game = azjax.gameNamed(name);
  const evaluator = ({ board, player }) => {
    const cells = board.reduce((sum, stone, i) => sum + (stone + 1) * weights[i], 0);
    const row = (2 * cells + player) % rows;
    return { logits: logits[row], value: values[row] };
  };
  return texts.map((text) => {
    const search = new azjax.Search(game, game.read(text), evaluator, settings);
    const { N, Q } = search.stats(0, search.length);
    const { actions } = search.nodes[0];
    const spread = (numbers) => Array.from({ length: game.numActions },
      (_, action) => numbers[actions.indexOf(action)] ?? 0);
    return [spread(N), spread(Q), search.value, search.action];
  });
}"""


@pytest.mark.parametrize(
    "config",
    [
        PUCT(num_simulations=40, c_puct=1.3, dirichlet_fraction=0.0),
        Gumbel(num_simulations=24, max_considered_actions=5, maxvisit_init=20.0, gumbel_scale=0.0),
    ],
    ids=lambda config: config.algorithm,
)
@pytest.mark.compiles(1)
def test_searches_equal_those_of_the_package(config):
    """Also from late positions, in which games end within the tree."""
    name = "tic_tac_toe"
    states, its_bench = positions(name, BATCH), bench(name)
    table = its_bench.random_table()
    result = run(config, table, states, name=name)
    found = evaluate(
        SEARCH,
        {
            "name": name,
            "texts": texts_of(states),
            "settings": dataclasses.asdict(config) | {"add_noise": False, "seed": 0},
            "logits": table.logits.tolist(),
            "values": table.values.tolist(),
            "weights": its_bench.weights.tolist(),
            "rows": int(its_bench.rows),
        },
    )
    visits, q_values, value, action = zip(*found, strict=True)
    np.testing.assert_array_equal(visits, result.visit_counts)
    visited = result.visit_counts > 0
    np.testing.assert_allclose(np.array(q_values)[visited], result.q_values[visited], atol=1e-5)
    np.testing.assert_allclose(value, result.value, atol=1e-5)
    np.testing.assert_array_equal(action, result.action)


# Positions of games.


def positions(name, count, seed=0):
    """Different unfinished positions of random games, `[count, ...]`, by rules in JavaScript."""
    texts = evaluate(
        """([name, count, seed]) => {
          const game = azjax.gameNamed(name);
          const random = azjax.generator(seed);
          const texts = new Set();
          while (texts.size < 3 * count) {
            for (let at = game.init(); !at.over && texts.size < 3 * count;) {
              texts.add(at.text);
              const legal = game.legal(at);
              at = game.step(at, legal[Math.floor(random() * legal.length)]);
            }
          }
          return [...texts];
        }""",
        [name, count, seed],
    )
    return states_at(games.make(name), np.random.default_rng(seed).permutation(texts)[:count])


def states_at(game, texts):
    boards = np.array([[".XO".index(cell) for cell in text] for text in texts])
    boards = np.where(boards == 2, -1, boards).astype(np.int8)
    states = jax.tree.map(lambda leaf: np.resize(leaf, (len(boards), *leaf.shape)), game.init())
    return states._replace(board=boards, player=boards.sum(1, dtype=np.int8))


STEP = """([name, texts]) => {
  const game = azjax.gameNamed(name);
  return texts.map((text) => {
    const before = game.read(text);
    const legal = game.legal(before);
    const after = legal.map((action) => game.step(before, action));
    return [legal, after.map((next) => [next.text, next.over, game.reward(next), next.player])];
  });
}"""


@pytest.mark.parametrize("name", ["connect_four", "hex:4"])
@pytest.mark.compiles(1)
def test_the_rules_are_those_of_the_package(name):
    game = games.make(name)
    states = positions(name, 200)
    legal, after = zip(*evaluate(STEP, [name, texts_of(states)]), strict=True)
    mask = np.zeros((len(legal), game.num_actions), bool)
    for row, actions in enumerate(legal):
        mask[row, actions] = True
    every = jax.jit(
        jax.vmap(
            lambda state: (
                game.legal_actions(state),
                jax.vmap(lambda action: game.step(state, action))(jnp.arange(game.num_actions)),
            )
        )
    )
    expected, (later, rewards) = jax.device_get(every(states))
    np.testing.assert_array_equal(mask, expected)
    text, over, reward, player = zip(*(one for row in after for one in row), strict=True)
    later = jax.tree.map(lambda leaf: leaf[mask], later)
    assert list(text) == texts_of(later)
    np.testing.assert_array_equal(over, later.over)
    np.testing.assert_array_equal(reward, rewards[mask])
    np.testing.assert_array_equal(player, later.player)
    assert np.sum(over) > 10


def test_boards_are_rejected_with_the_words_of_python():
    rng = np.random.default_rng(0)
    boards = all_boards(9)[rng.choice(3**9, 1500, replace=False)]
    reasons = evaluate(
        "([boards, lines]) => boards.map((cells) => azjax.whyImpossible(cells, lines))",
        [boards.tolist(), LINES.tolist()],
    )

    def expected(board):
        try:
            from_board(board)
        except ValueError as error:
            return str(error)
        return None

    assert reasons == [expected(board) for board in boards]
    assert 100 < reasons.count(None) < 1000


@pytest.fixture(scope="module", params=["tic_tac_toe", "dots", "hex:2"])
def solved(request):
    """In Dots and Boxes, whose rules are only in its table, a player can move twice."""
    game = dots.make() if request.param == "dots" else games.make(request.param)
    return game, solve(game), live_data(game, PUCT())


def test_a_table_holds_the_rules_and_the_solution_of_a_game(solved):
    """Moves, turns, ends, rewards, winners and values of every position."""
    game, solution, data = solved
    found = evaluate(
        """(data) => {
          const game = azjax.openGame(data);
          return Array.from({ length: game.table.size }, (_, row) => {
            const position = game.read(game.table.text(row));
            const after = game.legal(position).map((action) => game.step(position, action));
            return [game.player(position), game.over(position), game.legal(position),
              after.map((next) => [game.table.find(next), game.reward(next)]),
              game.table.optimal(row), game.table.truth(row), game.winner(position)];
          });
        }""",
        data,
    )
    truth = true_values(solution)
    for row, (player, over, actions, after, optimal, value, winner) in enumerate(found):
        legal = np.flatnonzero(solution.legal[row])
        assert (player, over) == (solution.player[row], solution.over[row])
        assert actions == legal.tolist()
        children, rewards = solution.children[row, legal], solution.rewards[row, legal]
        assert after == [list(pair) for pair in zip(children, rewards, strict=True)]
        assert optimal == np.flatnonzero(solution.optimal[row]).tolist()
        assert value == truth[row]
        sign = 1 if player == 0 else -1
        assert winner == ({1: 0, 0: None, -1: 1}[value * sign] if over else None)


def test_every_position_of_a_table_has_its_picture(solved):
    game, solution, data = solved
    if has_rules(game):
        assert "pictures" not in data["positions"]
        return
    shown, anchors = evaluate(
        """(data) => {
          const { table } = azjax.openGame(data);
          const rows = Array.from({ length: table.size }, (_, row) => row);
          return [rows.map((row) => table.pictures.parts(row)), rows.map((row) =>
            table.pictures.isText || table.legal(row).map((action) =>
              JSON.stringify(table.pictures.anchor(table.edge(row, action)))))];
        }""",
        data,
    )
    for row, parts in enumerate(shown):
        state = jax.tree.map(lambda leaf, row=row: leaf[row], solution.states)
        if game.display is None or game.display.draw is None:
            assert "\n".join(parts) == game.display.render(state)
            continue
        drawn = game.display.draw(state).element.iter()
        tags = [[part, *(p for p in part if isinstance(p, list))][-1][0] for part in parts]
        assert tags == [e.tag for e in drawn if e.tag not in ("svg", "g")]
        assert all('"@"]' in anchor for anchor in anchors[row])
        assert len(set(anchors[row])) == solution.legal[row].sum()


def test_a_position_of_a_table_is_found_or_rejected(solved):
    game, solution, _ = solved
    row = int(solution.children[0, 3])
    state = jax.tree.map(lambda leaf: leaf[row], solution.states)
    start = live_data(game, PUCT(), board=state)["start"]
    assert start == ("...X....." if has_rules(game) else str(row))
    if game.name == "dots":
        with pytest.raises(ValueError, match="no game of dots reaches this position"):
            live_data(game, PUCT(), board=state._replace(player=jnp.int8(0)))


def test_a_backup_has_the_sign_of_the_player_and_answers_are_looked_up(solved):
    """With random outputs of a network in every position, which the page looks up."""
    game, solution, data = solved
    rng, count = np.random.default_rng(0), len(solution.decisions)
    logits = rng.normal(size=(count, game.num_actions)).astype(np.float32)
    values = rng.uniform(-1, 1, count).astype(np.float32)
    packed = networks.pack_answers(4, networks.make_answers(solution, logits, values))
    found, nodes, simulations = evaluate(
        """(data) => {
          const game = azjax.openGame(data);
          const [network] = azjax.openNetworks(data, game);
          const rows = Array.from({ length: game.table.size }, (_, row) => row);
          const open = rows.filter((row) => !game.table.over(row));
          const found = open.map((row) => network.evaluate(game.read(game.table.text(row))));
          const settings = { ...data.settings, add_noise: false };
          const search = new azjax.Search(game, game.init(), network.evaluate, settings);
          const nodes = search.nodes.map(({ player, over, reward }) => [player, over, reward]);
          return [found, nodes, search.simulations];
        }""",
        live_data(game, PUCT(num_simulations=200), [packed]),
    )
    legal = solution.legal[solution.decisions]
    np.testing.assert_array_equal([one["logits"] for one in found], np.where(legal, logits, 0))
    np.testing.assert_array_equal([one["value"] for one in found], values)
    for each in simulations:
        player, over, reward = nodes[each["leaf"]]
        mover = nodes[each["path"][-1]][0]
        players = [nodes[i][0] for i in each["path"]]
        if over:
            signs = [reward if one == mover else -reward for one in players]
        else:
            signs = [each["value"] if one == player else -each["value"] for one in players]
        assert each["backup"] == signs


# Networks in float32.

KINDS = {
    "mlp": MLPConfig(hidden=(32,), head_hidden=16),
    "dense": ResNetConfig(width=16, blocks=2, head_hidden=16),
    "conv": ResNetConfig(encoding="absolute", layers="conv", width=6, blocks=1, norm="layer"),
}
OUTPUTS = """([data, texts]) => {
  const game = azjax.openGame(data);
  const [network] = azjax.openNetworks(data, game);
  return texts.map((text) => {
    const { logits, value } = network.evaluate(game.read(text));
    return [Array.from(logits), value];
  });
}"""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.compiles(1)
def test_the_page_computes_the_outputs_of_networks(kind):
    parts = make_parts(Config(game="connect_four", network=KINDS[kind]))
    network, states = parts.network, positions("connect_four", 100)

    def compute(key):
        variables = network.init(key)
        shift = lambda leaf: leaf + 0.1 * jax.random.normal(key, leaf.shape)  # noqa: E731
        folded = network.fold(jax.tree.map(shift, variables))  # Biases and scales, too.
        observed = jax.vmap(lambda state: FOUR.observe(state, network.encoding))(states)
        return folded, network.infer(folded, observed)

    folded, (logits, values) = jax.jit(compute)(jax.random.key(0))
    player = Player(parts, folded)
    for width, error in ((None, 1e-5), (3, 1e-2)):
        packed = networks.pack_weights(player, width)
        assert packed["width"] == (width or 4)
        data = {"game": "connect_four", "networks": [packed]}
        found_logits, found_values = zip(*evaluate(OUTPUTS, [data, texts_of(states)]), strict=True)
        np.testing.assert_allclose(found_logits, logits, atol=error)
        np.testing.assert_allclose(found_values, values, atol=error)
        assert error < 1e-4 or not np.array_equal(found_values, values)


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


@pytest.fixture(scope="module", params=["tic_tac_toe", "hex:4"])
def quantized(request):
    """A shipped player without search, with random overrides; O's moves in Hex are mirrored."""
    player, states = azjax.load(request.param), positions(request.param, 400)
    game, some = player.game, jax.tree.map(lambda leaf: leaf[:100], states)
    legal = np.asarray(jax.vmap(game.legal_actions)(some))
    moves = np.where(legal, np.random.default_rng(1).random(legal.shape), -1).argmax(axis=1)
    cells = game.symmetries.cells
    keys = [min(bytes(board[order]) for order in cells) for board in some.board + 1]
    _, rows = np.unique(keys, return_index=True)  # Without symmetric copies.
    some, moves = jax.tree.map(lambda leaf: leaf[rows], some), moves[rows]
    overrides = oriented_overrides(game, player.parts.network.encoding, some, moves)
    player = dataclasses.replace(player, alone=True, overrides=overrides)
    actions = jax.jit(player.agent.act)(player.agent.params, jax.random.key(0), states).action
    return player, states, np.asarray(actions), player.evaluate(states)


def test_quantized_players_have_the_bits_and_the_moves_of_python(quantized):
    player, states, actions, (logits, values) = quantized
    texts = texts_of(states)
    found = evaluate(CHOOSE, [playground.pack_player(player), texts])
    chosen, listed, bits, value = zip(*found, strict=True)
    assert [base64.b64decode(text) for text in bits] == [row.tobytes() for row in logits]
    np.testing.assert_array_equal(np.float32(value), values)
    np.testing.assert_array_equal(chosen, actions)
    assert sum(listed[:100]) > 80 and sum(listed) < 300
    data = {"game": player.game.name, "networks": [networks.pack_weights(player)]}
    others, other_values = zip(*evaluate(OUTPUTS, [data, texts]), strict=True)  # On other pages.
    np.testing.assert_array_equal(others, logits)
    np.testing.assert_array_equal(other_values, values)
