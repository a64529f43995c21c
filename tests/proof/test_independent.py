"""The program in `proofs/` does not import azjax, and its moves and counts are those of azjax."""

import ast
import importlib.util
import pathlib
import sys

import jax
import numpy as np
import pytest

from azjax import games
from azjax.exact import exhaustive
from azjax.games.base import init_batch
from azjax.games.rows import in_batches
from azjax.networks import MLPConfig, make_network
from azjax.networks.quantized import make_quantized
from azjax.networks.rounding import quantize
from azjax.players import network_agent
from azjax.players.overrides import oriented_agent, oriented_overrides
from azjax.runs.pretrained import FOLDER, save_pretrained
from azjax.search.evaluators import network_evaluator

PATH = pathlib.Path(__file__).parents[2] / "proofs" / "connect_four.py"
SHIPPED = FOLDER / "connect_four_5x4.npz"
KINDS = {  # Game, whether the network is symmetric, and the number of overrides.
    "shipped": ("connect_four:5x4", True, 0),
    "with overrides": ("connect_four:4x4", True, 3000),
    "odd width": ("connect_four:3x5", True, 0),
    "three in a row": ("connect_four:4x3x3", True, 50),
    "not symmetric": ("connect_four:4x4", False, 1000),
}


class Case:
    """A player, and the file that `proofs/connect_four.py` reads."""

    def __init__(self, path, game, symmetric, integers, overrides=None):
        about = {"game": game.name, "encoding": "relative", "symmetric": symmetric}
        save_pretrained(path, about, integers, overrides)
        self.path, self.game, self.symmetric = path, game, symmetric
        self.integers, self.overrides = integers, overrides
        network = make_quantized(game, integers, "relative", symmetric)
        evaluate = network_evaluator(game, network)
        agent = network_agent(game, evaluate, network.fold(integers))
        if overrides is not None:
            agent = oriented_agent(game, "relative", agent, overrides)
        self.decide = jax.jit(lambda states: agent.act(agent.params, jax.random.key(0), states))

    def act(self, states):
        return np.asarray(in_batches(self.decide, (states,), 256).action)

    def count(self, seat, folder):
        """Returns the decisions and the ends that azjax counts."""
        settings = {"symmetric": self.symmetric}
        *_, last = exhaustive.explore(self.game, self.act, seat, folder, **settings)
        return last.ends.decisions, last.ends.moves.tolist()


def random_states(game, number, seed=0):
    """Returns positions of random games that are not over, `[N, ...]`."""
    rng, states, kept = np.random.default_rng(seed), init_batch(game, number), []
    legal, step = (jax.jit(jax.vmap(rule)) for rule in (game.legal_actions, game.step))
    for _ in range(game.max_plies):
        alive = ~np.asarray(states.over)
        kept.append(jax.tree.map(lambda leaf: np.asarray(leaf)[alive], states))
        scores = np.where(legal(states), rng.random((number, game.num_actions)), -1)
        states = step(states, scores.argmax(axis=1))[0]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *kept)


def random_overrides(game, states, number, seed=1):
    """Returns overrides with random moves, in positions that are not symmetric copies."""
    boards = states.board.reshape(-1, *game.board_shape)
    least = [min(board.tobytes(), board[:, ::-1].tobytes()) for board in boards]
    rows = np.unique(least, return_index=True)[1][:number]
    chosen = jax.tree.map(lambda leaf: leaf[rows], states)
    legal = jax.vmap(game.legal_actions)(chosen)
    moves = np.where(legal, np.random.default_rng(seed).random(legal.shape), -1).argmax(axis=1)
    return oriented_overrides(game, "relative", chosen, moves)


def shipped_integers():
    params = {}
    with np.load(SHIPPED) as file:
        for name in file.files:
            layer, _, part = name.partition(".")
            if part and layer != "overrides":
                params.setdefault(layer, {})[part] = file[name]
    return {"params": params}


@pytest.fixture(scope="module", params=KINDS)
def case(request, tmp_path_factory):
    name, symmetric, number = KINDS[request.param]
    game = games.make(name)
    states = random_states(game, 200)
    if request.param == "shipped":
        integers = shipped_integers()
    else:
        config = MLPConfig(hidden=(16, 8, 8), head_hidden=8, symmetric=symmetric)
        network = make_network(config, game)
        integers = quantize(game, network, network.init(jax.random.key(0)), states).variables
    overrides = random_overrides(game, states, number) if number else None
    path = tmp_path_factory.mktemp("player") / "player.npz"
    return Case(path, game, symmetric, integers, overrides)


@pytest.fixture(scope="module")
def program():
    specification = importlib.util.spec_from_file_location("independent", PATH)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def keys_of(program, board, states):
    """Returns the keys of positions, from the stones of azjax."""
    mover = np.where(states.player == 0, 1, -1)[:, None] * states.board
    stones = [((mover == sign) * board.cells).sum(axis=1) for sign in (1, -1)]
    return board.join(*stones)


def read(program, case):
    return program.Player(case.path.read_bytes())


def test_it_imports_only_numpy_and_the_standard_library():
    names = set()
    for node in ast.walk(ast.parse(PATH.read_text())):
        if isinstance(node, ast.Import):
            names |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module)
    assert {name.split(".")[0] for name in names} <= {*sys.stdlib_module_names, "numpy"}
    assert len(PATH.read_text().splitlines()) <= 200


@pytest.mark.parametrize("seat", [0, 1])
def test_it_counts_what_azjax_counts(program, case, seat, tmp_path):
    player = read(program, case)
    decisions, ends, digest = program.explore(player, seat, 1000)
    assert (decisions, ends.tolist()) == case.count(seat, tmp_path / "lines")
    assert program.explore(player, seat, 37)[2] == digest
    assert program.explore(player, 1 - seat, 1000)[2] != digest


def test_it_plays_the_moves_of_azjax(program, case):
    """In the canonical orientation; a network that is not symmetric plays in both."""
    player, states = read(program, case), random_states(case.game, 400, seed=5)
    keys, expected = keys_of(program, player.board, states), case.act(states)
    images = player.board.orient(keys) if case.symmetric else keys
    found = player.choose(images)
    found = np.where(images == keys, found, case.game.num_actions - 1 - found)
    assert len(np.unique(keys)) > 100
    np.testing.assert_array_equal(found, expected)


def test_its_rules_are_those_of_azjax(program, case):
    board, game = read(program, case).board, case.game
    states = random_states(game, 200, seed=7)
    keys = keys_of(program, board, states)
    planes = jax.vmap(lambda state: game.observe(state, "relative"))(states)
    np.testing.assert_array_equal(board.planes(keys), np.reshape(planes, (len(keys), -1)))
    legal = np.asarray(jax.vmap(game.legal_actions)(states))
    np.testing.assert_array_equal(board.landings(keys) != 0, legal)
    rows, moves = np.nonzero(legal)
    before = jax.tree.map(lambda leaf: leaf[rows], states)
    after, reward = jax.jit(jax.vmap(game.step))(before, moves)
    found, won, drawn = board.drop(keys[rows], moves)
    np.testing.assert_array_equal(won, reward == 1)
    np.testing.assert_array_equal(drawn, after.over & (reward == 0))
    live = ~np.asarray(after.over)
    expected = keys_of(program, board, jax.tree.map(np.asarray, after))
    np.testing.assert_array_equal(found[live], expected[live])


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A symmetric player with overrides, and its counts when it moves first."""
    game, folder = games.make("connect_four:4x4"), tmp_path_factory.mktemp("small")
    states = random_states(game, 200)
    network = make_network(MLPConfig(hidden=(8, 8), head_hidden=8, symmetric=True), game)
    integers = quantize(game, network, network.init(jax.random.key(3)), states).variables
    overrides = random_overrides(game, states, 100)
    case = Case(folder / "player.npz", game, True, integers, overrides)
    return case, case.count(0, folder / "lines")


def test_other_weights_and_overrides_are_noticed(program, small, tmp_path):
    case, counts = small
    params = jax.tree.map(np.copy, case.integers["params"])
    params["Dense_1"]["kernel"][0, 0] ^= 1
    weight = Case(tmp_path / "weight.npz", case.game, True, {"params": params}, case.overrides)
    [first] = read(program, case).choose(read(program, case).board.bottom[None])
    start = random_overrides(case.game, init_batch(case.game, 1), 1)
    start = start._replace(actions=np.array([1 - min(first, 3 - first)], np.uint8))
    move = Case(tmp_path / "move.npz", case.game, True, case.integers, start)
    results = [program.explore(read(program, each), 0, 1000) for each in (case, weight, move)]
    assert len({digest for _, _, digest in results}) == 3
    decisions, ends, _ = results[0]
    assert (decisions, ends.tolist()) == counts
    decisions, ends, _ = results[2]
    assert (decisions, ends.tolist()) != counts
    assert (decisions, ends.tolist()) == move.count(0, tmp_path / "lines")


@pytest.mark.parametrize("line", range(4))
def test_a_missing_line_is_noticed(program, small, line, monkeypatch):
    case, counts = small
    player = read(program, case)
    lines = [each for number, each in enumerate(player.board.lines) if number != line]
    monkeypatch.setattr(player.board, "lines", lines)
    if line < 2:
        decisions, ends, _ = program.explore(player, 0, 1000)
        assert (decisions, ends.tolist()) != counts
    else:  # One diagonal without the other.
        with pytest.raises(AssertionError):
            program.explore(player, 0, 1000)


def run(program, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["connect_four.py", *map(str, arguments)])
    return program.main()


def test_the_exit_status_says_whether_a_game_is_lost(program, small, monkeypatch, capsys):
    assert run(program, monkeypatch, "--file", SHIPPED) == 0
    printed = capsys.readouterr().out
    assert "4,185 decisions; ends: 1,540 won, 292 drawn, 0 lost" in printed
    case, (decisions, ends) = small
    assert ends[2] > 0
    assert run(program, monkeypatch, "--file", case.path, "--batch-size", 50) == 1
    assert f"{decisions:,} decisions" in capsys.readouterr().out


@pytest.mark.parametrize(
    "message, others",
    [
        ("policy.bias", {"policy.bias": None}),
        ("too large", {"Dense_0.bias": np.full(4, 2**24, np.int32)}),
        ("matmul", {"policy_hidden.kernel": np.zeros((6, 4), np.int8)}),
        ("impossible", {"overrides.planes": np.full((1, 4), 255, np.uint8)}),
        ("impossible", {"overrides.planes": np.array([[128, 0, 0, 0]], np.uint8)}),
        ("illegal", {"overrides.planes": np.array([[0b10, 0b01, 0b10, 0b01]], np.uint8)}),
    ],
)
def test_damaged_files_are_refused(program, small, message, others, tmp_path, monkeypatch, capsys):
    with np.load(small[0].path) as file:
        arrays = {name: file[name] for name in file.files}
    if "overrides.planes" in others:
        arrays["overrides.actions"] = np.full(1, 3, np.uint8)  # A full column in the last case.
    arrays = {name: array for name, array in (arrays | others).items() if array is not None}
    np.savez(tmp_path / "player.npz", **arrays)
    with pytest.raises(SystemExit) as stop:
        run(program, monkeypatch, "--file", tmp_path / "player.npz")
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_other_files_are_refused(program, small, tmp_path, monkeypatch, capsys):
    content = small[0].path.read_bytes()
    (tmp_path / "cut.npz").write_bytes(content[: len(content) // 2])
    (tmp_path / "text.npz").write_text("text")
    other = FOLDER / "hex_4.npz"
    for path in (tmp_path / "none.npz", tmp_path / "cut.npz", tmp_path / "text.npz", other):
        with pytest.raises(SystemExit) as stop:
            run(program, monkeypatch, "--file", path)
        assert stop.value.code == 2
        assert f"{path} is not the file of a Connect Four player" in capsys.readouterr().err
    with pytest.raises(ValueError, match="64 bits"):
        program.Board(8, 8)
