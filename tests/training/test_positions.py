"""The position buffer: positions are kept once and drawn evenly, and games start from them."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import training
from azjax.games import hashing
from azjax.games.base import play
from azjax.games.rows import distinct, pack
from azjax.networks import MLPConfig
from azjax.runs.config import Config, make_parts
from azjax.search import Gumbel, make_search
from azjax.search.evaluators import uniform_evaluator
from azjax.training.learner import LearnerConfig
from azjax.training.positions import add, draw, make_archive
from azjax.training.replay import ReplayConfig
from azjax.training.selfplay import unroll
from azjax.training.starts import Games, SelfPlayConfig, start_games

PLACES = 20_000


@pytest.fixture(scope="module")
def several(tic_tac_toe, solution):
    """Two hundred unfinished positions with their plies, as `Games`."""
    rows = np.random.default_rng(0).choice(solution.decisions, 200, replace=False)
    ply = np.searchsorted(solution.layers, rows, side="right") - 1
    states = jax.tree.map(lambda leaf: jnp.asarray(leaf[rows]), solution.states)
    return Games(states, jnp.asarray(ply, jnp.int32))


def take(entries, rows):
    return jax.tree.map(lambda leaf: leaf[rows], entries)


def fill(entries, *batches, places=PLACES):
    """A position buffer after adding batches, each of some rows of the entries."""
    archive = make_archive(take(entries, 0), places)
    for rows in batches:
        some = take(entries, np.asarray(rows))
        archive = jax.jit(add)(archive, some.states, some)
    return archive


def draw_many(archive, count):
    uniform = (jnp.arange(count) + 0.5) / count
    return jax.jit(jax.vmap(functools.partial(draw, archive)))(uniform)


def boards(states):
    return [board.tobytes() for board in np.asarray(states.board)]


def alone(entries, places=PLACES):
    """The entries that do not share a bucket."""
    found = np.asarray(hashing.buckets(entries.states, places))
    return np.flatnonzero((found[:, None] == found).sum(axis=1) == 1)


def test_positions_are_drawn_uniformly(several):
    rows = alone(several)
    archive = fill(several, rows[5:9], np.repeat(rows, 3), rows, rows[:7], rows[:1])
    assert archive.used == len(rows) == archive.full.sum()
    drawn, found = draw_many(archive, 10 * len(rows))
    assert found.all()
    assert sorted(boards(drawn.states)) == sorted(10 * boards(take(several, rows).states))


def test_plies_stay_with_their_positions(several):
    drawn, _ = draw_many(fill(several, np.arange(200)), 1000)
    np.testing.assert_array_equal((np.asarray(drawn.states.board) != 0).sum(axis=1), drawn.ply)


@pytest.mark.parametrize("batches", [([3, 8, 5],), ([3, 5], [8], [5]), ([5], [5, 5])])
def test_the_last_entry_of_a_bucket_stays(several, batches):
    archive = fill(several, *batches, places=1)
    drawn, found = draw_many(archive, 4)
    assert found.all()
    assert archive.used == 1
    assert set(boards(drawn.states)) == {boards(several.states)[5]}


def test_an_empty_buffer_has_no_entry(several):
    _, found = draw_many(fill(several), 4)
    assert not found.any()


def test_buckets_are_uniform(solution):
    """As many buckets stay empty as for uniformly random buckets."""
    count = len(distinct(pack(solution.states))[0])
    places = hashing.buckets(solution.states, count)
    assert abs(len(np.unique(np.asarray(places))) / count - (1 - np.exp(-1))) < 0.02


def test_states_that_cannot_be_hashed_are_rejected():
    config = Config(selfplay=SelfPlayConfig(archive=8))
    parts = make_parts(config)
    broken = parts.game._replace(
        init=lambda: (parts.game.init(), jnp.float16(0.5)),
        observe=lambda state, encoding: parts.game.observe(state[0], encoding),
    )
    with pytest.raises(ValueError, match=r"a leaf of float16 cannot be looked up: use int"):
        training.check_parts(parts._replace(game=broken))


@pytest.mark.parametrize(("opening", "share"), [(1.0, 1.0), (0.5, 0.5), (0.0, 1.0), (1.0, 0.0)])
def test_games_start_from_the_buffer_as_often_as_configured(tic_tac_toe, several, opening, share):
    config = SelfPlayConfig(opening_share=opening, archive_share=share, opening_plies=0)
    begin = jax.jit(functools.partial(start_games, config, tic_tac_toe))
    keys = jax.random.split(jax.random.key(0), 4000)
    empty = tic_tac_toe.init().board.tobytes()
    rows = [row for row in alone(several) if several.ply[row]]
    started = begin(keys, fill(several, rows))
    np.testing.assert_array_equal((started.states.board != 0).sum(axis=1), started.ply)
    begun = [board for board in boards(started.states) if board != empty]
    assert abs(len(begun) / 4000 - opening * share) < 0.04
    assert set(begun) <= set(boards(take(several, np.asarray(rows)).states))
    assert begun == [] or len(set(begun)) > 0.9 * len(rows)
    never = begin(keys, fill(several))
    assert set(boards(never.states)) == {empty}


def test_the_buffer_is_chosen_independently_of_the_opening_length(tic_tac_toe, several):
    """The other games have the same distribution of opening lengths as without the buffer."""
    marked = several._replace(ply=several.ply + 100)
    config = SelfPlayConfig(opening_share=0.6, archive_share=0.5, opening_plies=4)
    keys = jax.random.split(jax.random.key(0), 4000)
    begin = jax.jit(functools.partial(start_games, config, tic_tac_toe))
    ply = np.asarray(begin(keys, fill(marked, np.arange(200))).ply)
    assert abs((ply >= 100).mean() - 0.3) < 0.04
    lengths = np.bincount(ply[ply < 100], minlength=5) / 4000
    np.testing.assert_allclose(lengths, 0.3 / 5 + np.array([0.4, 0, 0, 0, 0]), atol=0.04)


@pytest.fixture(scope="module")
def played(tic_tac_toe, several):
    """Games before some moves, and the moves `[T, B, ...]`; new games start from the buffer."""
    config = SelfPlayConfig(games=8, unroll_length=12, opening_share=1.0, archive_share=1.0)
    search = make_search(Gumbel(num_simulations=2), tic_tac_toe, uniform_evaluator(tic_tac_toe))
    go_on = functools.partial(unroll, config, tic_tac_toe, "relative", search, None)
    begun = take(several, np.arange(8))
    keys = jax.random.split(jax.random.key(1), 8)
    return begun, jax.jit(go_on)(keys, begun, archive=fill(several, np.arange(200)))[1]


def test_each_game_is_stored_before_and_after_a_random_move(tic_tac_toe, played):
    begun, moves = played
    met, wandered = (take_second(moves.new_starts, which) for which in (0, 1))
    np.testing.assert_array_equal(met.states.board[0], begun.states.board)
    step = jax.jit(jax.vmap(jax.vmap(functools.partial(play, tic_tac_toe))))(
        met.states, moves.action
    )
    goes_on = np.asarray(moves.discount[:-1] != 0)
    after = np.asarray(step.state.board[:-1])[goes_on]
    np.testing.assert_array_equal(np.asarray(met.states.board[1:])[goes_on], after)
    further = np.asarray(wandered.ply - met.ply)
    stones = [np.asarray((games.states.board != 0).sum(axis=2)) for games in (met, wandered)]
    np.testing.assert_array_equal(stones[1] - stones[0], further)
    assert set(further.ravel()) == {0, 1}
    assert not wandered.states.over.any()
    differs = (np.asarray(wandered.states.board) != np.asarray(met.states.board)).sum(axis=2)
    np.testing.assert_array_equal(differs, further)
    same = (wandered.states.board[:-1] == met.states.board[1:]).all(axis=2)[goes_on]
    assert 0 < same.mean() < 0.9  # It differs from the move that was made.


def take_second(met, which):
    return jax.tree.map(lambda leaf: leaf[:, :, which], met)


def test_new_games_start_from_the_buffer(several, played):
    _, moves = played
    met = take_second(moves.new_starts, 0)
    began = np.asarray(moves.discount[:-1] == 0)
    assert began.sum() > 10
    starts = boards(jax.tree.map(lambda leaf: leaf[1:][began], met.states))
    assert set(starts) <= set(boards(several.states))


CONFIG = Config(
    network=MLPConfig(hidden=(4,), head_hidden=4),
    search=Gumbel(num_simulations=2),
    selfplay=SelfPlayConfig(games=64, unroll_length=8, archive=PLACES, archive_share=0.8),
    replay=ReplayConfig(capacity=512, shards=2),
    learner=LearnerConfig(batch_size=8, steps=1),
)


@pytest.fixture(scope="module")
def trained():
    """Position buffer and games after 1, 2, ... iterations, on one device and on two."""
    parts = make_parts(CONFIG)
    found = []
    for devices in (1, 2):
        mesh = training.make_mesh(jax.devices()[:devices])
        state, go_on = (
            training.make_state(parts, jax.random.key(0), mesh),
            training.make_iteration(parts, mesh),
        )
        states = []
        for _ in range(30):
            state, _ = go_on(state)
            states.append(jax.device_get((state.archive, state.games)))
        found.append(states)
    return found


def test_the_buffer_does_not_depend_on_the_number_of_devices(trained):
    alone, together = trained
    jax.tree.map(np.testing.assert_array_equal, alone[0], together[0])


def test_the_buffer_eventually_holds_nearly_every_position(trained, solution):
    """All unfinished positions except for the few that share a bucket."""
    archive, _ = trained[0][-1]
    kept = set(boards(take(archive.entries.states, archive.filled[: archive.used])))
    states = solution.decision_states
    assert kept <= set(boards(states))
    places = np.asarray(hashing.buckets(states, PLACES))
    assert len(kept) > 0.9 * len(np.unique(places))


def test_games_restart_in_each_iteration_without_carry_over():
    selfplay = dataclasses.replace(CONFIG.selfplay, carry_over=False, unroll_length=2)
    parts = make_parts(dataclasses.replace(CONFIG, selfplay=selfplay))
    mesh = training.make_mesh(jax.devices()[:1])
    state = training.make_state(parts, jax.random.key(0), mesh)
    play_on = training.make_play(parts, mesh)
    first = play_on(state)
    jax.tree.map(
        np.testing.assert_array_equal,
        first,
        play_on(dataclasses.replace(state, games=first[0])),
    )
    later = play_on(dataclasses.replace(state, iteration=state.iteration + 1))
    assert (
        np.asarray(later[1].new_starts.ply[0]) != np.asarray(first[1].new_starts.ply[0])
    ).mean() > 0.5


@pytest.mark.slow
def test_games_of_pgx_are_played_in_groups_and_stored():
    """Their states have a leaf without elements."""
    pytest.importorskip("pgx")
    selfplay = dataclasses.replace(CONFIG.selfplay, games=16, games_at_once=8, unroll_length=4)
    parts = make_parts(dataclasses.replace(CONFIG, game="pgx:tic_tac_toe", selfplay=selfplay))
    state = training.init(parts, jax.random.key(0))
    assert any(leaf.size == 0 for leaf in jax.tree.leaves(state.games.states))
    after, _ = jax.jit(functools.partial(training.iteration, parts))(state)
    assert 16 < after.archive.used <= 2 * 16 * 4
