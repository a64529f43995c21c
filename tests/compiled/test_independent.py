"""The program in `proofs/` does not import azjax, and its moves and counts are those of azjax."""

import ast
import hashlib
import io
import json
import pathlib
import sys
import types

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
from refusals import assert_refused

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
    (tmp_path / "cut.npz").write_bytes(case.path.read_bytes()[:100])
    for path in (FOLDER / "hex_4.npz", tmp_path / "none.npz", tmp_path / "cut.npz"):
        with pytest.raises(SystemExit) as stop:
            run(path)
        assert stop.value.code == 2
        assert f"{path} is not the file of a Connect Four player" in capsys.readouterr().err


# Each of its checks refuses the least that it must refuse. The player plays on the left.


def make_file(game="connect_four:3x3x3", encoding="relative", symmetric=True, columns=3, **others):
    """Returns the content of a player's file whose network has no weights."""
    copies = 1 + (symmetric and columns > 1)
    shapes = {"Dense_0": (6 * columns, 2), "policy_hidden": (2 * copies, 2), "policy": (2, columns)}
    arrays = {}
    for name, (inputs, outputs) in shapes.items():
        arrays[f"{name}.kernel"] = np.zeros((inputs, outputs), np.int8)
        arrays[f"{name}.bias"] = arrays[f"{name}.shift"] = np.zeros(outputs, np.int32)
    about = json.dumps({"game": game, "encoding": encoding, "symmetric": symmetric})
    file = io.BytesIO()
    np.savez(file, about=np.frombuffer(about.encode(), np.uint8), **arrays | others)
    return file.getvalue()


def overrides_of(*boards, move=2):
    """Overrides for boards of nine characters, of the mover `x` and the opponent `o`."""
    planes = np.array([[(c in "x*", c in "o*") for c in board] for board in boards])
    packed = np.packbits(planes.reshape(len(boards), -1), axis=1)
    moves = np.full(len(boards), move, np.uint8)
    return make_file(**{"overrides.planes": packed, "overrides.actions": moves})


def test_other_boards_files_and_overrides_are_refused(program):
    empty, right, full = "." * 9, "........x", "..o..x..o"
    assert len(program.Player(overrides_of(empty, right)).keys) == 4
    assert program.Player(overrides_of(full, move=1)).board.columns == 3
    program.Board(7, 8, 2)  # The largest.
    # A layer that does not fit the one before it.
    mismatch = make_file(**{"policy_hidden.kernel": np.zeros((8, 2), int)})
    override = "an override is for an impossible position or an illegal move"
    assert_refused(
        (lambda: program.Board(4, 13), "4 in a row on 4 by 13 do not fit in 64 bits"),
        (lambda: program.Board(0, 3), "4 in a row on 0 by 3 do not fit"),
        (lambda: program.Board(3, 0), "4 in a row on 3 by 0 do not fit"),
        (lambda: program.Board(3, 3, 1), "1 in a row on 3 by 3 do not fit"),
        (lambda: program.Player(make_file("hex:3x3x3")), "it plays hex:3x3x3 with the encoding"),
        (lambda: program.Player(make_file(encoding="absolute")), "with the encoding absolute"),
        *(
            (lambda boards=boards: program.Player(overrides_of(*boards)), override)
            for boards in [
                (empty, "x........"),  # Nothing is below the stone.
                (empty, "........*"),  # It belongs to both players.
                (empty, "x.....o.."),
                (empty, "......x.."),  # The mirror image of `right`.
                (empty, full),  # The move is illegal.
            ]
        ),
        (lambda: program.Player(mismatch), "mismatch in its core"),
    )
    assert program.Player(make_file("connect_four:3x1x3", columns=1)).copies == 1


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("name", ["Dense_0", "Dense_1", "policy"])
def test_a_sum_that_float32_may_round_is_refused(program, name, copies, sign):
    def layer(bias, shift=64):
        kernel = sign * np.array([[7, 1], [-9, 1]])
        arrays = {f"{name}.kernel": kernel, f"{name}.bias": np.array([bias, 0])}
        arrays |= {f"{name}.shift": np.array([shift, 0])}
        return program.Player.layer(types.SimpleNamespace(copies=copies), arrays, name)

    weights = 18 if (name, copies) == ("policy", 2) else 16  # With its mirror image, or alone.
    most = (2**24 - 1) // copies - weights * (1 if name == "Dense_0" else 127)
    layer(most), layer(-most)
    said = f"a sum in the layer {name} may be too large for float32"
    calls = [lambda: layer(most + 1), lambda: layer(-most - 1), lambda: layer(0, shift=65)]
    assert_refused(*((call, said) for call in calls))


@pytest.mark.parametrize("part", range(3))
def test_a_move_whose_mirror_image_leads_elsewhere_is_refused(program, part, monkeypatch):
    """To another position, or to another end: in a win or a draw."""
    player = program.Player(make_file())
    drop, key = player.board.drop, player.board.bottom

    def cheat(keys, moves):
        results = [array.copy() for array in drop(keys, moves)]
        results[part][moves == 2] = ~results[part][moves == 2]
        return tuple(results)

    program.make_moves(player, False, key[None])
    monkeypatch.setattr(player.board, "drop", cheat)
    with pytest.raises(AssertionError):
        program.make_moves(player, False, key[None])


@pytest.mark.parametrize(("lost", "status"), [(0, 0), (1, 1), (2**40, 1)])
def test_one_lost_game_is_enough(program, lost, status, tmp_path, monkeypatch, capsys):
    path, seats = tmp_path / "player.npz", []
    path.write_bytes(make_file())

    def explore(player, seat, batch_size):
        seats.append(seat)
        return 3, np.array([5, 5, lost]), "digest"

    monkeypatch.setattr(program, "explore", explore)
    for seat in ("first", "second"):
        monkeypatch.setattr(sys, "argv", ["", "--file", str(path), "--seat", seat])
        assert program.main() == status
    assert seats == [0, 1] and f"{lost:,} lost" in capsys.readouterr().out


def test_activations_are_at_most_127(program):
    """One of 300 would be more than the bias of the left column."""
    arrays = {"Dense_0.bias": [300, 0], "policy_hidden.kernel": [[1, 0], [0, 1]]}
    arrays |= {"policy.kernel": [[0, 1, 0], [0, 0, 0]]}
    for bias, move in ((126, 1), (128, 0)):
        others = {name: np.array(a) for name, a in arrays.items()}
        others["policy.bias"] = np.array([bias, 0, 0])
        player = program.Player(make_file(symmetric=False, **others))
        assert player.choose(player.board.bottom[None]) == [move]


@pytest.mark.parametrize("seat", [0, 1])
def test_the_digest_is_of_the_file_the_seat_all_positions_and_moves(program, seat):
    player = program.Player(make_file(symmetric=False))
    board, digest = player.board, hashlib.sha256(f"{player.sha256} {seat}".encode())
    keys = [int(board.bottom)]
    for ply in range(9):
        moves, after = [], set()
        for key in np.array(keys, np.uint64):
            replies = np.flatnonzero(board.landings(key[None])[0])
            for move in player.choose(key[None]) if ply % 2 == seat else replies:
                moves.append(int(move))
                (child,), won, drawn = board.drop(key[None], np.array([move]))
                after |= set() if won or drawn else {int(child)}
        digest.update(np.array(keys, "<u8").tobytes() + bytes(moves))
        keys = sorted(after)
    assert program.explore(player, seat, 5)[2] == digest.hexdigest()
