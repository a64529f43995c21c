"""Overrides: of states and up to symmetry, their files, and leaving out those without effect."""

import itertools

import jax
import numpy as np
import pytest

import guard
import misere_pile
from azjax import games
from azjax.games.symmetries import orient
from azjax.players.overrides import make_lookup, oriented_overrides, state_lookup, with_overrides
from azjax.proof import repair
from azjax.proof.repair import OverrideTable, empty_table, load_table, save_table
from bad_players import first_legal, replay
from experiments.add_overrides import join, prune
from refusals import assert_refused

GAME = games.make("connect_four:3x3x3")
KEY = jax.random.key(0)


def decide(game, lookup, states):
    with guard.sharing():
        agent = with_overrides(first_legal(game), lookup)
        return jax.device_get(jax.jit(agent.act)(None, KEY, states))


def table_of(game, lines, actions):
    refuted = np.zeros((len(lines), game.num_actions), bool)
    return OverrideTable(replay(game, lines), np.array(actions, np.int32), refuted)


def test_a_table_replaces_moves_in_its_positions_and_nothing_else(tic_tac_toe, tmp_path):
    table = table_of(tic_tac_toe, [(4,), (4, 0), (8, 0, 4)], [7, 6, 5])
    table = table._replace(refuted=np.arange(27).reshape(3, 9) % 2 == 0, rounds=3)
    save_table(tmp_path / "table.npz", table)
    loaded = load_table(tmp_path / "table.npz", tic_tac_toe)
    assert all(map(np.array_equal, jax.tree.leaves(loaded), jax.tree.leaves(table)))
    states = replay(tic_tac_toe, [(8, 0, 4), (), (4,), (4, 8), (4, 0)])
    lookup = state_lookup(loaded.states, loaded.actions)
    rows, actions = jax.device_get(lookup(states))
    assert rows.tolist() == [2, -1, 0, -1, 1] and actions[rows >= 0].tolist() == [5, 7, 6]
    decision = decide(tic_tac_toe, lookup, states)
    assert decision.action.tolist() == [5, 0, 7, 0, 6]
    np.testing.assert_array_equal(decision.weights[rows >= 0], np.eye(9)[[5, 7, 6]])
    np.testing.assert_array_equal(decision.weights[rows < 0], 0.5 * (states.board[[1, 3]] == 0))
    assert (decision.value == 0.25).all()


def test_only_the_whole_state_identifies_a_position():
    """The same stones are gone, but the other player is to move."""
    game = misere_pile.make()
    states = replay(game, [(0, 0), (1,)])  # One by one, or two in one move.
    assert states.board[0].tolist() == states.board[1].tolist()
    rows, _ = state_lookup(replay(game, [(1,)]), np.array([1]))(states)
    assert rows.tolist() == [-1, 0]


# Up to symmetry: columns 0, 1 and 2 become 2, 1 and 0.


def of_lines(lines, actions, game=GAME):
    return oriented_overrides(game, "relative", replay(game, lines), np.array(actions))


def found(overrides, lines, game=GAME):
    """The override of each position: its move, or None."""
    rows, actions = make_lookup(game, "relative", overrides)(replay(game, lines))
    return [a if r >= 0 else None for r, a in zip(rows.tolist(), actions.tolist(), strict=True)]


def test_overrides_hold_in_all_symmetric_copies_and_nowhere_else():
    overrides = of_lines([(0, 1)], [2])
    assert overrides.planes.shape == (1, 3) and overrides.actions.shape == (1,)
    assert found(overrides, [(0, 1), (2, 1), (0, 2), (1, 0), ()]) == [2, 0, None, None, None]
    two = of_lines([(0, 1), (2, 1), (1, 1)], [2, 0, 2])  # Copies become one entry.
    assert len(two.actions) == 2 and found(two, [(2, 1), (0, 1)]) == [0, 2]
    # The empty board is its own mirror image, and keeps one of its two moves.
    assert found(of_lines([(), ()], [2, 0]), [()]) in ([0], [2])
    plain = GAME._replace(symmetries=None)
    assert found(of_lines([(0, 1)], [2], plain), [(0, 1), (2, 1)], plain) == [2, None]
    decision = decide(GAME, make_lookup(GAME, "relative", overrides), replay(GAME, [(2, 1), (1,)]))
    assert decision.action.tolist() == [0, 0]
    np.testing.assert_array_equal(decision.weights, [[1, 0, 0], [0.5, 0.5, 0.5]])
    call = lambda: of_lines([(0, 1), (2, 1)], [2, 2])  # noqa: E731
    assert_refused((call, "different moves: make them equal"))


def test_of_two_overrides_the_later_one_holds():
    earlier, later = of_lines([(0,), (1, 0)], [1, 2]), of_lines([(2,), (0, 1)], [0, 0])
    lines = [(0,), (1, 0), (1, 2), (0, 1)]
    assert found(join(earlier, later), lines) == [2, 2, 0, 0]
    assert found(join(later, earlier), lines) == [1, 2, 0, 0]
    assert len(join(earlier, later).actions) == 3


def test_the_canonical_orientation_is_the_smallest_copy():
    """Against Python's order of tuples; the flags name the symmetries that lead to it."""
    game = games.make("tic_tac_toe")
    planes = np.random.default_rng(0).random((60, 3, 3, 2)) < 0.3
    planes[:5] = np.arange(5)[:, None, None, None] % 2  # These are symmetric.
    oriented = jax.device_get(orient(game.symmetries.cells, planes))
    for board, smallest, flags in zip(planes, *oriented, strict=True):
        grid = board.reshape(9, 2)
        copies = [tuple(grid[order].ravel().tolist()) for order in game.symmetries.cells]
        assert tuple(smallest.tolist()) == min(copies)
        assert flags.tolist() == [copy == min(copies) for copy in copies]


# Leaving out.


def test_the_games_stay_the_same_and_every_override_is_needed(tmp_path):
    game, rng = GAME._replace(symmetries=None), np.random.default_rng(0)
    agent = first_legal(game)
    lines = [line for plies in range(4) for line in itertools.product([0, 1], repeat=plies)]
    states = replay(game, lines)
    legal = np.asarray(jax.vmap(game.legal_actions)(states))
    every = of_lines(lines, np.where(legal, rng.random(legal.shape), -1).argmax(axis=1), game)

    def prune_one(some, name):
        kept, last = prune(game, "relative", agent, some, 1, tmp_path / name)
        return kept, (last.ends.decisions, last.ends.moves.tolist())

    with guard.sharing():
        kept, games_of_every = prune_one(every, "all")
        again, games_of_kept = prune_one(kept, "again")
        rows, actions = make_lookup(game, "relative", kept)(states)
        alone = agent.act(None, KEY, states).action
    assert 0 < len(kept.actions) < len(every.actions) and games_of_kept == games_of_every
    assert len({*rows.tolist()} - {-1}) == len(kept.actions)
    assert not ((actions == alone) & (rows >= 0)).any()  # Every one of them changes a move.
    np.testing.assert_array_equal(again.planes, kept.planes)


# Files.


def test_a_table_is_written_atomically(tic_tac_toe, monkeypatch, tmp_path):
    path = tmp_path / "table.npz"
    save_table(path, table_of(tic_tac_toe, [(4,)], [6]))

    def write_half(file, **arrays):
        file.write(b"PK")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", write_half)
    with pytest.raises(KeyboardInterrupt):
        save_table(path, empty_table(tic_tac_toe))
    assert load_table(path, tic_tac_toe).actions.tolist() == [6]
    assert [file.name for file in tmp_path.iterdir()] == ["table.npz"]


def test_a_file_that_is_not_a_table_is_refused(tic_tac_toe, tmp_path):
    path = tmp_path / "table.npz"
    sound = {"states": np.array([[1, *[0] * 8, 1, 0]], np.uint8)}  # X at 0, and O to move to 4.
    sound |= {"actions": np.array([4], np.int32), "refuted": np.zeros((1, 9), bool), "rounds": 1}

    def seal(content):
        return content | {"sha256": repair._digest(path, content)}

    np.savez(path, **seal(sound))
    assert load_table(path, tic_tac_toe).actions.tolist() == [4]
    contents = [
        *(b"", path.read_bytes()[:-9]),
        seal(sound | {"states": np.zeros((1, 3), np.uint8)}),
        seal(sound | {"actions": np.array([0], np.int32)}),  # X is there.
        seal(sound | {"actions": np.array([4, 4], np.int32)}),
        seal(sound | {"refuted": np.zeros((1, 8), bool)}),
        seal(sound | {"rounds": [1, 2]}),
        seal(sound) | {"actions": np.array([5], np.int32)},
        sound | {"sha256": repair._digest(tmp_path / "second.npz", sound)},  # Of another table.
    ]

    def read(content):
        is_bytes = isinstance(content, bytes)
        path.write_bytes(content) if is_bytes else np.savez(path, **content)
        return load_table(path, tic_tac_toe)

    said = f"{path} is damaged or not an override table of tic_tac_toe: delete it and repair again"
    assert_refused(*((lambda content=content: read(content), said) for content in contents))
