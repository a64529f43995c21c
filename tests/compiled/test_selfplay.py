"""Self-play: openings, restarts, and moves that the rules of the game reproduce."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import guard
import misere_pile
from azjax import games
from azjax.games import hashing
from azjax.games.base import init_batch, play, random_action
from azjax.games.rows import distinct, pack
from azjax.search import SearchResult
from azjax.training import selfplay
from azjax.training.archive import add, draw, make_archive
from azjax.training.parts import SelfPlayConfig
from azjax.training.selfplay import Games, self_play, start_games
from small import playing, take

GAME, PILE = games.make("tic_tac_toe"), misere_pile.make()
BATCH, PLIES, PLACES = 8, 20, 512
PARAMS = object()  # Passed to the search unchanged.


def keys(count, seed=0):
    return jax.random.split(jax.random.key(seed), count)


@pytest.fixture(scope="module", autouse=True)
def random_search():
    """A random player; the value of its policy is the temperature, other values differ."""

    def make_search(algorithm, game, evaluate, grow):
        assert (algorithm, evaluate, grow) == ("algorithm", "evaluate", "grow")

        def search(params, keys, states, temperature, add_noise):
            assert params is PARAMS and add_noise
            legal = jax.vmap(game.legal_actions)(states)
            share = legal / jnp.sum(legal, axis=1, keepdims=True)
            action = jax.vmap(functools.partial(random_action, game))(keys, states)
            numbers = jnp.arange(game.num_actions, dtype=jnp.float32)
            mean = jnp.sum(share * numbers, axis=1)
            q_values = temperature[:, None] + numbers - mean[:, None]
            q_values = jnp.where(jax.vmap(game.is_over)(states)[:, None], jnp.nan, q_values)
            visits = legal.astype(jnp.int32)
            return SearchResult(action, share, visits, q_values, temperature + 10, None)

        return search

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selfplay, "make_search", make_search)
        yield


def make_parts(game, encoding="relative", **settings):
    return playing(game, "algorithm", "evaluate", encoding, "grow", **settings)


# --- Openings, also from the archive ----------------------------------------------


@jax.jit
def start(shares, archive):
    return start_games(SelfPlayConfig(opening_plies=8, **shares), GAME, keys(4000), archive)


def openings(archive, opening_share, archive_share=0.0):
    shares = {"opening_share": opening_share, "archive_share": archive_share}
    with guard.sharing():
        return jax.device_get(start(jax.tree.map(np.float32, shares), archive))


@pytest.fixture(scope="module")
def several(solution):
    """Two hundred unfinished positions with their plies, as `Games`, and their buckets."""
    rows = np.random.default_rng(0).choice(solution.decisions, 200, replace=False)
    ply = np.searchsorted(solution.layers, rows, side="right") - 1
    states = take(solution.states, rows)
    return Games(states, np.int32(ply)), np.asarray(hashing.buckets(states, PLACES))


@pytest.fixture(scope="module")
def stored(several):
    """An archive with several positions, and their plies plus 100."""
    kept = several[0]._replace(ply=several[0].ply + 100)
    return add_batch(make_archive(take(kept, 0), PLACES), kept)


add_batch = jax.jit(lambda archive, some: add(archive, some.states, some))


def boards(states):
    return {board.tobytes() for board in np.asarray(states.board).reshape(-1, 9)}


def test_openings_stop_before_a_move_that_ends_the_game():
    """In the pile of five, two moves may leave a single stone: taking it would end the game."""
    settings = SelfPlayConfig(opening_share=1.0, opening_plies=5)
    start = jax.jit(functools.partial(start_games, settings, PILE))
    with guard.sharing():
        states, ply = start(keys(500))
    assert not states.over.any() and set(np.asarray(ply)) == {0, 1, 2, 3, 4}


def test_lengths_and_moves_of_openings_are_uniform_over_their_share(stored):
    """Whether a game starts from the buffer does not depend on the length of its opening."""
    for share in (0.0, 0.4):
        states, ply = openings(stored, 0.5, archive_share=share)
        lengths, others = ply[ply < 100], 0.5 * (1 - share)
        assert abs((ply >= 100).mean() - 0.5 * share) < 0.04
        expected = 4000 * np.array([0.5 + others / 9, *[others / 9] * 6])  # Longer ones may end.
        found = np.bincount(lengths, minlength=9)[:5]
        assert (abs(found - expected[:5]) < 5 * np.sqrt(expected[:5])).all()
    first = np.bincount(states.board[ply == 1].argmax(axis=1), minlength=9)
    assert (abs(first - first.mean()) < 5 * np.sqrt(first.mean())).all()


# --- Single moves -------------------------------------------------------------------------


@jax.jit
def move(keys, games, archive):
    settings = {"opening_share": 1.0, "archive_share": 0.0, "temperature": 0.7}
    parts = make_parts(GAME, unroll_length=1, temperature_plies=3, **settings)
    games, moves = self_play(parts, PARAMS, keys, games, archive)
    return games, jax.tree.map(lambda leaf: leaf[0], moves)


@pytest.fixture(scope="module")
def single_moves(stored):
    """Eleven moves in 256 games that restart with openings, `[(games, moves, games after)]`."""
    before, found = start({"opening_share": 1.0, "archive_share": 0.0}, stored), []
    before = take(before, np.arange(256))
    for t in range(11):
        after, moves = move(keys(256, seed=t + 1), before, stored)
        found.append(jax.device_get((before, moves, after)))
        before = after
    return found


def test_only_finished_games_restart(single_moves, solution):
    """Several restart together, in chunks that they do not fill, with openings of every length."""
    counts, lengths = set(), set()
    for before, moves, after in single_moves:
        goes_on = moves.discount != 0
        np.testing.assert_array_equal(after.ply[goes_on], before.ply[goes_on] + 1)
        kept = (before.states.board == after.states.board)[goes_on].sum(axis=1)
        np.testing.assert_array_equal(kept, 8)
        assert not after.states.over.any() and boards(after.states) <= boards(solution.states)
        legal = before.states.board == 0
        np.testing.assert_array_equal(moves.action_weights > 0, legal)
        np.testing.assert_array_equal(moves.legal, legal)
        planes = jax.vmap(lambda state: GAME.observe(state, "relative"))(before.states)
        np.testing.assert_array_equal(moves.planes, planes)
        assert (moves.discount[goes_on] == -1).all() and not moves.reward[goes_on].any()
        np.testing.assert_array_equal((after.states.board != 0).sum(axis=1), after.ply)
        lengths |= set(after.ply[~goes_on].tolist())
        counts.add(int((~goes_on).sum()))
    assert max(counts) > 64 and any(count % 32 for count in counts)
    assert lengths == set(range(9))


def test_the_search_gets_unfinished_games_and_the_temperature_of_their_ply(single_moves):
    """And the value of its policy is recorded, which is not another value of the root."""
    for before, moves, _ in single_moves:
        expected = np.where(before.ply < 3, np.float32(0.7), 0)
        np.testing.assert_allclose(moves.root_value, expected, atol=1e-5)


def test_each_game_is_stored_before_and_after_a_random_move(single_moves):
    same = []
    for before, moves, after in single_moves:
        met, wandered = (take(moves.new_starts, (slice(None), i)) for i in (0, 1))
        jax.tree.map(np.testing.assert_array_equal, met, before)
        further = wandered.ply - met.ply
        assert set(further) == {0, 1} and not wandered.states.over.any()
        differs = (wandered.states.board != met.states.board).sum(axis=1)
        np.testing.assert_array_equal(differs, further)
        moved = (wandered.states.board == after.states.board).all(axis=1)
        same.append(moved[moves.discount != 0].mean())
    assert 0 < np.mean(same) < 0.9  # It differs from the move that was made.


# --- Many moves ---------------------------------------------------------------------------


@functools.cache
def compile_moves(at_once, carry_over=True):
    settings = {"opening_plies": 0, "games_at_once": at_once, "carry_over": carry_over}
    parts = make_parts(PILE, "absolute", unroll_length=PLIES, **settings)
    return jax.jit(functools.partial(self_play, parts, PARAMS))


def two_iterations(at_once=BATCH, seed=0, keep=0, carry_over=True):
    """Plays two iterations from games after one move; returns all games and both results.

    The first `keep` games have the same keys with every seed.
    """

    def draw(number):
        return jnp.concatenate([keys(BATCH, number)[:keep], keys(BATCH, number + seed)[keep:]])

    moved = jax.vmap(functools.partial(play, PILE))(init_batch(PILE, BATCH), jnp.zeros(8, int))
    begun = Games(moved.state, jnp.ones(BATCH, jnp.int32))
    with guard.sharing():
        first = compile_moves(at_once, carry_over)(draw(1), begun)
        second = compile_moves(at_once, carry_over)(draw(2), first[0])
    return jax.device_get((begun, first, second))


def test_a_game_does_not_depend_on_its_batch():
    """With at most three of eight games together, groups have two games, the largest divisor."""
    whole, groups, part = two_iterations(), two_iterations(3), two_iterations(seed=5, keep=3)
    jax.tree.map(np.testing.assert_array_equal, whole, groups)
    for (ends, moves), (other_ends, others) in zip(whole[1:], part[1:], strict=True):
        jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[:3], b[:3]), ends, other_ends)
        for ours, theirs in zip(*map(jax.tree.leaves, (moves, others)), strict=True):
            np.testing.assert_array_equal(ours[:, :3], theirs[:, :3])
        assert (moves.action[:, 3:] != others.action[:, 3:]).any()


def test_all_games_restart_in_each_iteration_without_carry_over():
    _, *results = two_iterations(carry_over=False)
    kept = two_iterations()[2][1]
    for _, moves in results:
        assert (moves.planes[0] == moves.planes[0][:1]).all()
    assert not (kept.planes[0] == kept.planes[0][:1]).all()
    assert (results[0][1].action != results[1][1].action).any()


# --- The archive -------------------------------------------------------------------

draw_all = jax.jit(jax.vmap(draw, in_axes=(None, 0)))


def draw_from(entries, *batches):
    """A buffer after adding batches, each of some rows of the entries, and many draws from it.

    The first row of a batch is repeated to one size, so that one program adds them all.
    """
    archive = make_archive(take(entries, 0), PLACES)
    with guard.sharing():
        for rows in batches:
            archive = add_batch(archive, take(entries, np.r_[[rows[0]] * (600 - len(rows)), rows]))
        drawn, found = draw_all(archive, (np.arange(4000, dtype=np.float32) + 0.5) / 4000)
    return archive, drawn, found


def test_positions_are_drawn_uniformly(several):
    several, places = several
    rows = np.flatnonzero((places[:, None] == places).sum(axis=1) == 1)
    batches = rows[5:9], np.repeat(rows, 3), rows, rows[:7], rows[:1]
    archive, drawn, found = draw_from(several, *batches)
    assert archive.used == len(rows) == archive.full.sum() and found.all()
    _, counts = np.unique(np.asarray(drawn.states.board), axis=0, return_counts=True)
    assert len(counts) == len(rows) and counts.max() - counts.min() <= 1
    _, drawn, _ = draw_from(several, np.arange(200))  # Some share a bucket.
    np.testing.assert_array_equal((np.asarray(drawn.states.board) != 0).sum(axis=1), drawn.ply)


def test_the_last_entry_of_a_bucket_stays(several):
    several, places = several
    first, last = np.flatnonzero(places == np.flatnonzero(np.bincount(places) > 1)[0])[:2]
    for batches in [([first, last],), ([first], [last]), ([last, first, last],)]:
        archive, drawn, found = draw_from(several, *batches)
        assert found.all() and archive.used == 1
        assert (np.asarray(drawn.states.board) == several.states.board[last]).all()
    assert not draw_from(several)[2].any()


def test_buckets_are_uniform(solution):
    """As many buckets stay empty as for uniformly random buckets."""
    count = len(distinct(pack(solution.states))[0])
    places = hashing.buckets(solution.states, count)
    assert abs(len(np.unique(np.asarray(places))) / count - (1 - np.exp(-1))) < 0.02
