"""The position buffer: positions are kept once and drawn evenly."""

import jax
import numpy as np
import pytest

import guard
from azjax.games import hashing
from azjax.games.rows import distinct, pack
from azjax.training.archive import add, draw, make_archive
from azjax.training.selfplay import Games

PLACES = 512


def take(entries, rows):
    return jax.tree.map(lambda leaf: leaf[rows], entries)


@pytest.fixture(scope="module")
def several(solution):
    """Two hundred unfinished positions with their plies, as `Games`."""
    rows = np.random.default_rng(0).choice(solution.decisions, 200, replace=False)
    ply = np.searchsorted(solution.layers, rows, side="right") - 1
    return Games(take(solution.states, rows), np.int32(ply))


add_batch = jax.jit(lambda archive, some: add(archive, some.states, some))
draw_all = jax.jit(jax.vmap(draw, in_axes=(None, 0)))


def fill(entries, *batches):
    """A position buffer after adding batches, each of some rows of the entries.

    The first row of a batch is repeated to one size, so that one program adds them all.
    """
    archive = make_archive(take(entries, 0), PLACES)
    with guard.sharing():
        for rows in batches:
            archive = add_batch(archive, take(entries, np.r_[[rows[0]] * (600 - len(rows)), rows]))
    return archive


def draw_many(archive):
    with guard.sharing():
        return draw_all(archive, (np.arange(4000, dtype=np.float32) + 0.5) / 4000)


def boards(states):
    return [board.tobytes() for board in np.asarray(states.board)]


def places_of(entries):
    return np.asarray(hashing.buckets(entries.states, PLACES))


def test_positions_are_drawn_uniformly(several):
    places = places_of(several)
    rows = np.flatnonzero((places[:, None] == places).sum(axis=1) == 1)
    archive = fill(several, rows[5:9], np.repeat(rows, 3), rows, rows[:7], rows[:1])
    assert archive.used == len(rows) == archive.full.sum()
    drawn, found = draw_many(archive)
    assert found.all()
    counts = np.unique(boards(drawn.states), return_counts=True)[1]
    assert len(counts) == len(rows) and counts.max() - counts.min() <= 1
    drawn, _ = draw_many(fill(several, np.arange(200)))  # Some share a bucket.
    np.testing.assert_array_equal((np.asarray(drawn.states.board) != 0).sum(axis=1), drawn.ply)


def test_the_last_entry_of_a_bucket_stays(several):
    places = places_of(several)
    first, last = np.flatnonzero(places == np.flatnonzero(np.bincount(places) > 1)[0])[:2]
    for batches in [([first, last],), ([first], [last]), ([last, first, last],)]:
        archive = fill(several, *batches)
        drawn, found = draw_many(archive)
        assert found.all() and archive.used == 1
        assert set(boards(drawn.states)) == {boards(several.states)[last]}
    assert not draw_many(fill(several))[1].any()


def test_buckets_are_uniform(solution):
    """As many buckets stay empty as for uniformly random buckets."""
    count = len(distinct(pack(solution.states))[0])
    places = hashing.buckets(solution.states, count)
    assert abs(len(np.unique(np.asarray(places))) / count - (1 - np.exp(-1))) < 0.02
