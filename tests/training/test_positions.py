"""The position buffer: positions are kept once and drawn evenly, and games start from them."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from azjax.training.positions import add, draw, make_archive

import trainings
from azjax import training
from azjax.games import hashing
from azjax.games.base import play
from azjax.games.rows import distinct, pack
from azjax.networks import MLPConfig
from azjax.runs.config import Config, make_parts
from azjax.search import PUCT, make_search
from azjax.search.evaluators import uniform_evaluator
from azjax.training.learner import LearnerConfig
from azjax.training.parts import SelfPlayConfig
from azjax.training.replay import ReplayConfig
from azjax.training.selfplay import Games, start_games
from trainings import PLACES

KEYS = jax.random.split(jax.random.key(0), 4000)


@pytest.fixture(scope="module")
def several(solution):
    """Two hundred unfinished positions with their plies, as `Games`."""
    rows = np.random.default_rng(0).choice(solution.decisions, 200, replace=False)
    ply = np.searchsorted(solution.layers, rows, side="right") - 1
    return Games(jax.tree.map(lambda leaf: leaf[rows], solution.states), np.int32(ply))


def take(entries, rows):
    return jax.tree.map(lambda leaf: leaf[rows], entries)


add_batch = jax.jit(lambda archive, some: add(archive, some.states, some))
draw_all = jax.jit(jax.vmap(draw, in_axes=(None, 0)))


def fill(entries, *batches, places=PLACES):
    """A position buffer after adding batches, each of some rows of the entries.

    The first row of a batch is repeated to one size, so that one program adds them all.
    """
    archive = make_archive(take(entries, 0), places)
    for rows in batches:
        archive = add_batch(archive, take(entries, np.r_[[rows[0]] * (600 - len(rows)), rows]))
    return archive


def draw_many(archive, count):
    return draw_all(archive, (np.arange(count, dtype=np.float32) + 0.5) / count)


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
    drawn, _ = draw_many(fill(several, np.arange(200), places=50), 1000)  # Most share a bucket.
    np.testing.assert_array_equal((np.asarray(drawn.states.board) != 0).sum(axis=1), drawn.ply)


def test_the_last_entry_of_a_bucket_stays(several):
    for batches in [([3, 8, 5],), ([3, 5], [8], [5]), ([5], [5, 5])]:
        archive = fill(several, *batches, places=1)
        drawn, found = draw_many(archive, 4)
        assert found.all()
        assert archive.used == 1
        assert set(boards(drawn.states)) == {boards(several.states)[5]}
    assert not draw_many(fill(several), 4)[1].any()


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


@functools.partial(jax.jit, static_argnums=0)
def start(opening_plies, opening_share, archive_share, archive):
    shares = {"opening_share": opening_share, "archive_share": archive_share}
    config = SelfPlayConfig(opening_plies=opening_plies, **shares)
    return start_games(config, trainings.GAME, KEYS, archive)


def test_games_start_from_the_buffer_as_often_as_configured(several):
    empty = trainings.GAME.init().board.tobytes()
    rows = np.array([row for row in alone(several) if several.ply[row]])
    for opening, share in [(1.0, 1.0), (0.5, 0.5), (0.0, 1.0), (1.0, 0.0)]:
        started = start(0, opening, share, fill(several, rows))
        np.testing.assert_array_equal((started.states.board != 0).sum(axis=1), started.ply)
        begun = [board for board in boards(started.states) if board != empty]
        assert abs(len(begun) / 4000 - opening * share) < 0.04
        assert set(begun) <= set(boards(take(several, rows).states))
        assert begun == [] or len(set(begun)) > 0.9 * len(rows)
        assert set(boards(start(0, opening, share, fill(several)).states)) == {empty}


def test_the_buffer_is_chosen_independently_of_the_opening_length(several):
    """The other games have the same distribution of opening lengths as without the buffer."""
    marked = several._replace(ply=several.ply + 100)
    ply = np.asarray(start(4, 0.6, 0.5, fill(marked, np.arange(200))).ply)
    assert abs((ply >= 100).mean() - 0.3) < 0.04
    lengths = np.bincount(ply[ply < 100], minlength=5) / 4000
    np.testing.assert_allclose(lengths, 0.3 / 5 + np.array([0.4, 0, 0, 0, 0]), atol=0.04)


@pytest.fixture(scope="module")
def played(several):
    """Games before some moves, and the moves `[T, B, ...]`; new games start from the buffer."""
    config = SelfPlayConfig(games=8, unroll_length=12, opening_share=1.0, archive_share=1.0)
    search = make_search(PUCT(num_simulations=1), trainings.GAME, uniform_evaluator(trainings.GAME))
    go_on = functools.partial(unroll, config, trainings.GAME, "relative", search, None)
    begun, archive = take(several, np.arange(8)), fill(several, np.arange(200))
    moves = jax.jit(go_on)(KEYS[:8], begun, archive=archive)[1]
    return begun, jax.device_get(moves)


def test_each_game_is_stored_before_and_after_a_random_move(played):
    begun, moves = played
    met, wandered = (take_second(moves.new_starts, which) for which in (0, 1))
    np.testing.assert_array_equal(met.states.board[0], begun.states.board)
    step = jax.jit(jax.vmap(jax.vmap(functools.partial(play, trainings.GAME))))
    step = jax.device_get(step(met.states, moves.action))
    goes_on = moves.discount[:-1] != 0
    after = step.state.board[:-1][goes_on]
    np.testing.assert_array_equal(met.states.board[1:][goes_on], after)
    further = wandered.ply - met.ply
    stones = [(games.states.board != 0).sum(axis=2) for games in (met, wandered)]
    np.testing.assert_array_equal(stones[1] - stones[0], further)
    assert set(further.ravel()) == {0, 1}
    assert not wandered.states.over.any()
    differs = (wandered.states.board != met.states.board).sum(axis=2)
    np.testing.assert_array_equal(differs, further)
    same = (wandered.states.board[:-1] == met.states.board[1:]).all(axis=2)[goes_on]
    assert 0 < same.mean() < 0.9  # It differs from the move that was made.


def take_second(met, which):
    return jax.tree.map(lambda leaf: leaf[:, :, which], met)


def test_new_games_start_from_the_buffer(several, played):
    _, moves = played
    met = take_second(moves.new_starts, 0)
    began = moves.discount[:-1] == 0
    assert began.sum() > 10
    starts = boards(jax.tree.map(lambda leaf: leaf[1:][began], met.states))
    assert set(starts) <= set(boards(several.states))


def test_the_buffer_does_not_depend_on_the_number_of_devices():
    alone, together = (trainings.run(devices).after for devices in (1, 2))
    for ours, theirs in ((alone.archive, together.archive), (alone.games, together.games)):
        trainings.assert_equal(ours, theirs)


def test_the_buffer_eventually_holds_nearly_every_position(solution):
    """All unfinished positions except for the few that share a bucket."""
    one = trainings.run(1)
    state = trainings.copy(one.later)
    for _ in range(28):
        state, _ = one.iterate(state)
    archive = jax.device_get(state.archive)
    kept = set(boards(take(archive.entries.states, archive.filled[: archive.used])))
    states = solution.decision_states
    assert kept <= set(boards(states))
    places = np.asarray(hashing.buckets(states, PLACES))
    assert len(kept) > 0.9 * len(np.unique(places))


def test_games_restart_in_each_iteration_without_carry_over():
    selfplay = dataclasses.replace(trainings.CONFIG.selfplay, carry_over=False, unroll_length=1)
    one, search = trainings.run(1), PUCT(num_simulations=1)
    config = dataclasses.replace(trainings.CONFIG, selfplay=selfplay, search=search)
    play_on = training.make_play(make_parts(config), one.mesh)
    other, next_one = one.before.games, one.after.iteration + 1
    first, again = play_on(one.after), play_on(one.after.replace(games=other))
    later = play_on(one.after.replace(iteration=next_one))
    trainings.assert_equal(first, again)
    assert (first[1].new_starts.ply[0] != later[1].new_starts.ply[0]).mean() > 0.5


@pytest.mark.slow
def test_games_of_pgx_are_played_in_groups_and_stored():
    """Their states have a leaf without elements."""
    pytest.importorskip("pgx")
    selfplay = SelfPlayConfig(games=16, games_at_once=8, unroll_length=4, archive=PLACES)
    network, learner = MLPConfig(hidden=(4,), head_hidden=4), LearnerConfig(batch_size=8, steps=1)
    sections = {"selfplay": selfplay, "network": network, "learner": learner}
    replay = ReplayConfig(capacity=512, shards=2)
    parts = make_parts(Config(game="pgx:tic_tac_toe", replay=replay, **sections))
    state = training.init(parts, jax.random.key(0))
    assert any(leaf.size == 0 for leaf in jax.tree.leaves(state.games.states))
    after, _ = jax.jit(functools.partial(training.iteration, parts))(state)
    assert 16 < after.archive.used <= 2 * 16 * 4
