"""The program in `proofs/` does not import azjax, and its moves and counts are those of azjax."""

import ast
import pathlib
import sys

import jax
import numpy as np
import pytest

import guard
from azjax.games.rows import in_batches
from azjax.networks.integers import make_quantized
from azjax.players import network_agent
from azjax.players.overrides import make_lookup, oriented_overrides, with_overrides
from azjax.runs.pretrained import FOLDER
from azjax.search.evaluators import network_evaluator
from bad_players import explore_all
from experiments.quantize import save_player
from integers import make_case, observe, positions

KINDS = {  # Game, whether the network is symmetric, and the number of overrides.
    "symmetric": ("connect_four:3x4x3", True, 300),
    "not symmetric": ("connect_four:3x3x3", False, 30),
}


class Case:
    """A player, and the file that `proofs/connect_four.py` reads."""

    def __init__(self, path, kind):
        name, self.symmetric, number = KINDS[kind]
        self.game = make_case(name, self.symmetric, hidden=(16, 8, 8)).game
        integers = make_case(name, self.symmetric, hidden=(16, 8, 8)).made.variables
        overrides = random_overrides(self.game, positions(name), number)
        about = {"game": name, "encoding": "relative", "symmetric": self.symmetric}
        save_player(path, about, integers, overrides)
        self.path = path
        with guard.sharing():
            network = make_quantized(self.game, integers, "relative", self.symmetric)
            evaluate = network_evaluator(self.game, network)
            agent = network_agent(self.game, evaluate, network.fold(integers))
        agent = with_overrides(agent, make_lookup(self.game, "relative", overrides))
        self.decide = jax.jit(lambda states: agent.act(agent.params, jax.random.key(0), states))

    def act(self, states):
        with guard.sharing():
            return np.asarray(in_batches(self.decide, (states,), 64).action)


def random_overrides(game, states, number):
    """Returns overrides with random moves, in positions that are not symmetric copies."""
    boards = states.board.reshape(-1, *game.board_shape)
    least = [min(board.tobytes(), board[:, ::-1].tobytes()) for board in boards]
    rows = np.unique(least, return_index=True)[1][:number]
    chosen = jax.tree.map(lambda leaf: leaf[rows], states)
    legal = jax.vmap(game.legal_actions)(chosen)
    moves = np.where(legal, np.random.default_rng(1).random(legal.shape), -1).argmax(axis=1)
    return oriented_overrides(game, "relative", chosen, moves)


@pytest.fixture(scope="module", params=KINDS)
def case(request, tmp_path_factory):
    return Case(tmp_path_factory.mktemp("player") / "player.npz", request.param)


def keys_of(board, states):
    """Returns the keys of positions, from the stones of azjax."""
    mover = np.where(states.player == 0, 1, -1)[:, None] * states.board
    return board.join(*(((mover == sign) * board.cells).sum(axis=1) for sign in (1, -1)))


def test_it_imports_only_numpy_and_the_standard_library(program):
    content = pathlib.Path(program.__file__).read_text()
    nodes = [*ast.walk(ast.parse(content))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in names} <= {*sys.stdlib_module_names, "numpy"}
    assert len(content.splitlines()) <= 200


@pytest.mark.parametrize("seat", [0, 1])
def test_it_counts_what_azjax_counts(program, case, seat, tmp_path):
    player, folder = program.Player(case.path.read_bytes()), tmp_path / "lines"
    decisions, ends, digest = program.explore(player, seat, 1000)
    last = explore_all(case.game, case.act, seat, folder, symmetric=case.symmetric)
    assert (decisions, ends.tolist()) == (last.ends.decisions, last.ends.moves.tolist())
    assert program.explore(player, seat, 37)[2] == digest
    assert program.explore(player, 1 - seat, 1000)[2] != digest


def test_its_rules_and_moves_are_those_of_azjax(program, case):
    """In the canonical orientation; a network that is not symmetric plays in both."""
    player, game = program.Player(case.path.read_bytes()), case.game
    board, states = player.board, positions(game.name, seed=5)
    keys, expected = keys_of(board, states), case.act(states)
    images = board.orient(keys) if case.symmetric else keys
    found = player.choose(images)
    found = np.where(images == keys, found, game.num_actions - 1 - found)
    assert len(np.unique(keys)) > 100
    np.testing.assert_array_equal(found, expected)
    planes = observe(game, states).reshape(len(keys), -1)
    np.testing.assert_array_equal(board.planes(keys), planes)
    legal = np.asarray(jax.vmap(game.legal_actions)(states))
    np.testing.assert_array_equal(board.landings(keys) != 0, legal)
    rows, moves = np.nonzero(legal)
    with guard.sharing():
        before = jax.tree.map(lambda leaf: leaf[rows], states)
        after, reward = jax.device_get(jax.jit(jax.vmap(game.step))(before, moves))
    found, won, drawn = board.drop(keys[rows], moves)
    np.testing.assert_array_equal(won, reward == 1)
    np.testing.assert_array_equal(drawn, after.over & (reward == 0))
    np.testing.assert_array_equal(found[~after.over], keys_of(board, after)[~after.over])


def test_lost_games_and_other_files_end_with_a_status(program, case, tmp_path, monkeypatch, capsys):
    def run(path, *options):
        monkeypatch.setattr(sys, "argv", ["connect_four.py", "--file", str(path), *options])
        return program.main()

    assert run(case.path, "--batch-size", "50") == 1  # Random weights lose.
    with np.load(case.path) as file:
        arrays = {name: file[name] for name in file.files}
    board = np.array([[255] * len(arrays["overrides.planes"][0])], np.uint8)
    damages = [
        ("policy.bias", {"policy.bias": None}),
        ("too large", {"Dense_0.bias": np.full(len(arrays["Dense_0.bias"]), 2**24, np.int32)}),
        ("impossible", {"overrides.planes": board, "overrides.actions": np.full(1, 2, np.uint8)}),
    ]
    cases = [(FOLDER / "hex_4.npz", "is not the file of a Connect Four player")]
    for number, (said, others) in enumerate(damages):
        path = tmp_path / f"{number}.npz"
        np.savez(path, **{n: a for n, a in (arrays | others).items() if a is not None})
        cases.append((path, said))
    (tmp_path / "cut.npz").write_bytes(case.path.read_bytes()[:100])
    cases += [(tmp_path / name, cases[0][1]) for name in ("none.npz", "cut.npz")]
    for path, said in cases:
        with pytest.raises(SystemExit) as stop:
            run(path)
        assert stop.value.code == 2
        assert said in capsys.readouterr().err, (path, said)
