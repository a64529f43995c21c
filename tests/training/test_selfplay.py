"""Self-play: openings, restarts, and moves that the rules of the game reproduce."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import misere_pile
from azjax import games
from azjax.games.base import Game, init_batch, play, random_action, where
from azjax.search import PUCT, SearchResult
from azjax.training.parts import SelfPlayConfig
from azjax.training.selfplay import Games, group_size, start_games
from azjax.training.targets import Transition
from refusals import assert_refused
from tables import bench, run

GAMES = {"tic_tac_toe": games.make("tic_tac_toe"), "misere_pile": misere_pile.make()}
BATCH, PLIES = 8, 20
PARAMS = object()  # Passed to the search unchanged.


def keys(count, seed=0):
    return jax.random.split(jax.random.key(seed), count)


@functools.cache
def compile_start(name, **settings):
    config = SelfPlayConfig(**settings)
    return jax.jit(functools.partial(start_games, config, GAMES[name]))


# --- Openings ---------------------------------------------------------------------------


def openings(name, count=2000, **settings):
    return jax.device_get(compile_start(name, **settings)(keys(count)))


def test_openings_are_unfinished_reachable_positions_of_every_length(solution):
    states, ply = openings("tic_tac_toe", opening_share=1.0, opening_plies=8)
    assert set(ply) == set(range(9))
    assert not states.over.any()
    np.testing.assert_array_equal((states.board != 0).sum(axis=1), ply)
    np.testing.assert_array_equal(states.player, ply % 2)
    reachable = {tuple(board) for board in np.asarray(solution.decision_states.board)}
    assert {tuple(board) for board in states.board} <= reachable


def test_openings_stop_before_a_move_that_ends_the_game():
    # In the pile of five, two moves may leave a single stone: taking it would end the game.
    states, ply = openings("misere_pile", opening_share=1.0, opening_plies=5)
    assert not states.over.any()
    assert set(ply) == {0, 1, 2, 3, 4}


def test_lengths_and_moves_of_openings_are_uniform_over_their_share():
    states, ply = openings("tic_tac_toe", opening_share=0.5, opening_plies=4)
    expected = 2000 * np.array([0.6, 0.1, 0.1, 0.1, 0.1])
    assert (abs(np.bincount(ply, minlength=5) - expected) < 5 * np.sqrt(expected)).all()
    first = np.bincount(states.board[ply == 1].argmax(axis=1), minlength=9)
    assert (abs(first - 200 / 9) < 5 * np.sqrt(200 / 9)).all()


def test_without_openings_games_start_at_the_start():
    for settings in ({"opening_share": 0.0}, {"opening_plies": 0}):
        states, ply = openings("misere_pile", count=64, **settings)
        assert not states.board.any() and not ply.any() and not states.player.any()


# --- Moves, with a search that plays at random ------------------------------------------


def random_search(game):
    """A random player whose root value is the given temperature, or NaN in finished games."""

    def search(params, keys, states, temperature, add_noise):
        assert params is PARAMS and add_noise
        legal = jax.vmap(game.legal_actions)(states)
        share = legal / jnp.sum(legal, axis=1, keepdims=True)
        action = jax.vmap(functools.partial(random_action, game))(keys, states)
        value = jnp.where(jax.vmap(game.is_over)(states), jnp.nan, temperature)
        return SearchResult(action, share, jnp.zeros_like(legal, jnp.int32), share, value, None)

    return search


@pytest.fixture(scope="module")
def single_moves():
    """Twelve single moves in 256 games: `[(games before, moves, games after)]`."""
    game = GAMES["tic_tac_toe"]
    config = SelfPlayConfig(
        unroll_length=1, opening_share=1.0, opening_plies=8, temperature=0.7, temperature_plies=3
    )
    search = random_search(game)
    move = jax.jit(functools.partial(unroll, config, game, "absolute", search, PARAMS))
    before = compile_start("tic_tac_toe", opening_share=1.0, opening_plies=8)(keys(256))
    found = []
    for t in range(12):
        after, moves = move(keys(256, seed=t + 1), before)
        found.append(jax.device_get((before, moves, after)))
        before = after
    return found


def test_restarts_are_unfinished_openings(single_moves, solution):
    reachable = {tuple(board) for board in np.asarray(solution.decision_states.board)}
    lengths = set()
    for _, moves, after in single_moves:
        assert not after.states.over.any()
        assert {tuple(board) for board in after.states.board} <= reachable
        np.testing.assert_array_equal((after.states.board != 0).sum(axis=1), after.ply)
        lengths |= set(after.ply[moves.discount[0] == 0].tolist())
    assert lengths == set(range(9))


def test_only_finished_games_restart(single_moves):
    """Several restart together, in chunks that they do not fill."""
    counts = set()
    for before, moves, after in single_moves:
        goes_on = moves.discount[0] != 0
        np.testing.assert_array_equal(after.ply[goes_on], before.ply[goes_on] + 1)
        kept = (before.states.board == after.states.board)[goes_on].sum(axis=1)
        np.testing.assert_array_equal(kept, 8)
        counts.add(int((~goes_on).sum()))
    assert max(counts) > 64 and any(count % 32 for count in counts)


def test_the_search_gets_unfinished_games_and_the_temperature_of_their_ply(single_moves):
    for before, moves, _ in single_moves:
        expected = np.where(before.ply < 3, np.float32(0.7), 0)
        np.testing.assert_array_equal(moves.root_value[0], expected)


# --- Moves ------------------------------------------------------------------------------


def test_transitions_record_the_results_of_the_search(some_states):
    """In every field, with noise, so that other values of the tree differ from the root value."""
    size, config = len(some_states.board), SelfPlayConfig(unroll_length=1)
    table = bench("tic_tac_toe").random_table()
    found = run(PUCT(), table, some_states, temperature=0.8, add_noise=True)
    games = Games(some_states, (some_states.board != 0).sum(axis=1).astype(np.int32))
    game = GAMES["tic_tac_toe"]
    move = functools.partial(unroll, config, game, "relative", lambda found, *_, **__: found)
    _, moves = jax.device_get(jax.jit(move)(found, keys(size), games))
    np.testing.assert_allclose(moves.root_value[0], found.policy_value, atol=1e-6)
    np.testing.assert_array_equal(moves.action_weights[0], found.action_weights)
    np.testing.assert_array_equal(moves.action[0], found.action)
    chosen = found.q_values[np.arange(size), found.action]
    for other in (found.value, chosen, found.tree.raw_values[:, 0], found.q_values.max(axis=1)):
        assert (abs(other - found.policy_value) > 1e-3).mean() > 0.5


@functools.cache
def compile_unroll(at_once=BATCH):
    """`(keys, games) -> (games, transitions)` of the pile, with restarts from the start."""
    game = GAMES["misere_pile"]
    config = SelfPlayConfig(unroll_length=PLIES, opening_plies=0, games_at_once=at_once)
    search = random_search(game)
    return jax.jit(functools.partial(unroll, config, game, "absolute", search, PARAMS))


def two_iterations(at_once=BATCH, seed=0, keep=0):
    """Plays two iterations; returns the games before, and both results.

    The first `keep` games have the same keys with every seed.
    """
    unroll = compile_unroll(at_once)

    def draw(number):
        return jnp.concatenate([keys(BATCH, number)[:keep], keys(BATCH, number + seed)[keep:]])

    start = compile_start("misere_pile", opening_share=1.0, opening_plies=4)(draw(0))
    first = unroll(draw(1), start)
    second = unroll(draw(2), first[0])
    return jax.device_get((start, first, second))


class Record(NamedTuple):
    """Two iterations of self-play."""

    game: Game
    start: Games
    ends: list[Games]
    moves: list[Transition]


@pytest.fixture(scope="module")
def record():
    start, *results = two_iterations()
    ends, moves = zip(*results, strict=True)
    return Record(GAMES["misere_pile"], start, ends, moves)


def test_moves_replay_through_the_rules(record):
    game = record.game
    fresh = init_batch(game, BATCH)

    @jax.jit
    @jax.vmap
    def examine(state, action):
        seen = game.observe(state, "absolute"), game.legal_actions(state)
        return seen, play(game, state, action)

    games = record.start
    for moves, end in zip(record.moves, record.ends, strict=True):
        for t in range(PLIES):
            now = jax.tree.map(lambda leaf: leaf[t], moves)
            (planes, legal), step = examine(games.states, now.action)
            np.testing.assert_array_equal(now.planes, planes)
            np.testing.assert_array_equal(now.legal, legal)
            np.testing.assert_array_equal(now.reward, step.reward)
            np.testing.assert_array_equal(now.discount, step.discount)
            assert legal[np.arange(BATCH), now.action].all()
            over = step.discount == 0
            ply = jnp.where(over, 0, games.ply + 1)
            games = Games(where(over, fresh, step.state), ply)
        jax.tree.map(np.testing.assert_array_equal, games, end)


def test_games_end_and_restart(record):
    for moves in record.moves:
        assert (moves.discount == 0).any()
        assert (moves.discount != 0).any()


def test_every_move_was_searched(record):
    for moves in record.moves:
        assert moves.legal.any(axis=-1).all()
        assert (moves.action_weights[~moves.legal] == 0).all()
        np.testing.assert_allclose(moves.action_weights.sum(axis=-1), 1, atol=1e-5)
        assert (abs(moves.root_value) <= 1).all()


def test_shapes_and_types(record):
    game = record.game
    expected = Transition(
        planes=((*game.board_shape, 3), bool),
        legal=((game.num_actions,), bool),
        action_weights=((game.num_actions,), np.float32),
        root_value=((), np.float32),
        action=((), np.int32),
        reward=((), np.float32),
        discount=((), np.float32),
    )
    assert record.moves[0][-2:] == expected[-2:] == ((), ())  # `extra` and `met`.
    for leaf, (shape, dtype) in zip(record.moves[0][:-2], expected[:-2], strict=True):
        assert (leaf.shape, leaf.dtype) == ((PLIES, BATCH, *shape), dtype)


def test_a_game_does_not_depend_on_its_batch():
    whole, part = (two_iterations(seed=seed, keep=3) for seed in (0, 5))
    for (ends, moves), (other_ends, others) in zip(whole[1:], part[1:], strict=True):
        jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[:3], b[:3]), ends, other_ends)
        for ours, theirs in zip(*map(jax.tree.leaves, (moves, others)), strict=True):
            np.testing.assert_array_equal(ours[:, :3], theirs[:, :3])
        assert (moves.action[:, 3:] != others.action[:, 3:]).any()


def test_groups_of_games_play_the_same_moves_as_all_together():
    """With at most three of eight games together, groups have two games, the largest divisor."""
    jax.tree.map(np.testing.assert_array_equal, two_iterations(), two_iterations(at_once=3))


def test_groups_are_as_large_as_the_number_of_games_allows():
    for count, at_once, expected in [
        (1024, 256, 256),
        (1024, 2000, 1024),
        (96, 64, 48),
        (24, 7, 6),
        (1031, 256, 1031),  # A prime number: groups would have one game.
        (2 * 1031, 256, 2 * 1031),
        (100, 0, 100),
        (65_536, 0, 65_536),
    ]:
        assert group_size(SelfPlayConfig(games_at_once=at_once), count) == expected


def test_games_differ_from_each_other(record):
    for moves in record.moves:
        assert len(np.unique(moves.action.T, axis=0)) == BATCH


def test_settings_out_of_range_are_rejected():
    cases = [
        ("games", 0, "use 1 or more"),
        ("games_at_once", -1, "use 0 or more"),
        ("unroll_length", -1, "use 1 to 1000000"),
        ("opening_plies", -1, "use 0 to 1000000"),
        ("temperature", -1.0, "use 0 or more"),
        ("temperature_plies", -1, "use 0 or more"),
        ("opening_share", 1.5, "use 0 to 1"),
        ("archive_share", -0.5, "use 0 to 1"),
        ("archive", -1, "use 0 or more"),
    ]
    calls = [functools.partial(SelfPlayConfig, **{name: value}) for name, value, _ in cases]
    fragments = [f"selfplay.{name} is {value}: {allowed}" for name, value, allowed in cases]
    assert_refused(*zip(calls, fragments, strict=True))
