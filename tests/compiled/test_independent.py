"""The program in `proofs/` does not import azjax, and its moves and counts are those of azjax."""

import ast
import functools
import importlib.util
import pathlib
import sys

import jax
import numpy as np
import pytest

import guard
from azjax.games.rows import in_batches
from azjax.networks.quantized import make_quantized
from azjax.players import network_agent
from azjax.players.overrides import make_lookup, oriented_overrides, with_overrides
from azjax.runs.pretrained import FOLDER, save_pretrained
from azjax.search.evaluators import network_evaluator
from bad_players import explore_all
from integers import make_case, observe, positions

PATH = pathlib.Path(__file__).parents[2] / "proofs" / "connect_four.py"
KINDS = {  # Game, whether the network is symmetric, and the number of overrides.
    "with overrides": ("connect_four:3x4x3", True, 300),
    "odd width": ("connect_four:3x3x3", True, 0),
    "not symmetric": ("connect_four:3x3x3", False, 30),
}


class Case:
    """A player, and the file that `proofs/connect_four.py` reads."""

    def __init__(self, path, game, symmetric, integers, overrides=None):
        about = {"game": game.name, "encoding": "relative", "symmetric": symmetric}
        save_pretrained(path, about, integers, overrides)
        self.path, self.game, self.symmetric = path, game, symmetric
        self.integers, self.overrides = integers, overrides
        with guard.sharing():
            network = make_quantized(game, integers, "relative", symmetric)
            evaluate = network_evaluator(game, network)
            agent = network_agent(game, evaluate, network.fold(integers))
        if overrides is not None:
            agent = with_overrides(agent, make_lookup(game, "relative", overrides), "better")
        self.decide = jax.jit(lambda states: agent.act(agent.params, jax.random.key(0), states))

    def act(self, states):
        with guard.sharing():
            return np.asarray(in_batches(self.decide, (states,), 64).action)

    def count(self, seat, folder):
        """Returns the decisions and the ends that azjax counts."""
        last = explore_all(self.game, self.act, seat, folder, symmetric=self.symmetric)
        return last.ends.decisions, last.ends.moves.tolist()


def random_overrides(game, states, number):
    """Returns overrides with random moves, in positions that are not symmetric copies."""
    boards = states.board.reshape(-1, *game.board_shape)
    least = [min(board.tobytes(), board[:, ::-1].tobytes()) for board in boards]
    rows = np.unique(least, return_index=True)[1][:number]
    chosen = jax.tree.map(lambda leaf: leaf[rows], states)
    legal = jax.vmap(game.legal_actions)(chosen)
    moves = np.where(legal, np.random.default_rng(1).random(legal.shape), -1).argmax(axis=1)
    return oriented_overrides(game, "relative", chosen, moves)


@functools.cache
def integers_of(kind):
    name, symmetric, _ = KINDS[kind]
    return make_case(name, symmetric, hidden=(16, 8, 8)).made.variables


@pytest.fixture(scope="module", params=KINDS)
def case(request, tmp_path_factory):
    name, symmetric, number = KINDS[request.param]
    game, states = make_case(name, symmetric, hidden=(16, 8, 8)).game, positions(name)
    overrides = random_overrides(game, states, number) if number else None
    path = tmp_path_factory.mktemp("player") / "player.npz"
    return Case(path, game, symmetric, integers_of(request.param), overrides)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A symmetric player with overrides, which loses games when it moves first."""
    path = tmp_path_factory.mktemp("small") / "player.npz"
    game = make_case("connect_four:3x4x3", hidden=(16, 8, 8)).game
    overrides = random_overrides(game, positions("connect_four:3x4x3"), 60)
    return Case(path, game, True, integers_of("with overrides"), overrides)


@pytest.fixture(scope="module")
def program():
    specification = importlib.util.spec_from_file_location("independent", PATH)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def keys_of(board, states):
    """Returns the keys of positions, from the stones of azjax."""
    mover = np.where(states.player == 0, 1, -1)[:, None] * states.board
    return board.join(*(((mover == sign) * board.cells).sum(axis=1) for sign in (1, -1)))


def read(program, case):
    return program.Player(case.path.read_bytes())


def test_it_imports_only_numpy_and_the_standard_library():
    names, content = set(), PATH.read_text()
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Import):
            names |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module)
    assert {name.split(".")[0] for name in names} <= {*sys.stdlib_module_names, "numpy"}
    assert len(content.splitlines()) <= 200


@pytest.mark.parametrize("seat", [0, 1])
def test_it_counts_what_azjax_counts(program, case, seat, tmp_path):
    player = read(program, case)
    decisions, ends, digest = program.explore(player, seat, 1000)
    assert (decisions, ends.tolist()) == case.count(seat, tmp_path / "lines")
    assert program.explore(player, seat, 37)[2] == digest
    assert program.explore(player, 1 - seat, 1000)[2] != digest


def test_its_rules_and_moves_are_those_of_azjax(program, case):
    """In the canonical orientation; a network that is not symmetric plays in both."""
    player, game = read(program, case), case.game
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


def run(program, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["connect_four.py", *map(str, arguments)])
    return program.main()


def test_lost_games_and_other_files_end_with_a_status(
    program, small, tmp_path, monkeypatch, capsys
):
    assert run(program, monkeypatch, "--file", small.path, "--batch-size", 50) == 1
    capsys.readouterr()
    with np.load(small.path) as file:
        arrays = {name: file[name] for name in file.files}
    one = {"overrides.actions": np.full(1, 3, np.uint8)}  # A full column in the last case.
    boards = [[255] * 3, [128, 0, 0], [0b00000010, 0b00000001, 0b00000010]]
    damages = [
        ("policy.bias", {"policy.bias": None}),
        ("too large", {"Dense_0.bias": np.full(8, 2**24, np.int32)}),
        ("matmul", {"policy_hidden.kernel": np.zeros((6, 4), np.int8)}),
        *(
            (said, {"overrides.planes": np.array([planes], np.uint8)} | one)
            for said, planes in zip(["impossible", "impossible", "illegal"], boards, strict=True)
        ),
    ]
    cases = []
    for number, (said, others) in enumerate(damages):
        path = tmp_path / f"{number}.npz"
        np.savez(path, **{n: a for n, a in (arrays | others).items() if a is not None})
        cases.append((path, said))
    content, said = small.path.read_bytes(), "is not the file of a Connect Four player"
    (tmp_path / "cut.npz").write_bytes(content[: len(content) // 2])
    (tmp_path / "text.npz").write_text("text")
    names = ("none.npz", "cut.npz", "text.npz")
    cases += [(tmp_path / name, said) for name in names] + [(FOLDER / "hex_4.npz", said)]
    for path, said in cases:
        with pytest.raises(SystemExit) as stop:
            run(program, monkeypatch, "--file", path)
        assert stop.value.code == 2
        assert said in capsys.readouterr().err, (path, said)
    with pytest.raises(ValueError, match="64 bits"):
        program.Board(8, 8)
