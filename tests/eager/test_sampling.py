"""Samples of positions, and intervals of shares, against exact numbers."""

import numpy as np
import pytest
from scipy import stats

from azjax.exact import sampling

GROUPS = sampling.GROUPS


def rows_of(count, seed=0):
    """Different positions, with 1 to 1,000 games that lead to each."""
    fields = [("hash", np.uint64), ("images", np.uint8, (1, 4)), ("group", np.uint8)]
    rows = np.zeros(count, [*fields, ("games", np.float64)])
    rows["images"] = np.arange(count, dtype=np.uint32)[:, None].view(np.uint8)[:, None]
    rows["games"] = np.ceil(1000 * np.random.default_rng(seed).random(count) ** 4)
    return rows


def draw_all(rows, most, seed, part_size):
    """Draws from parts; returns the drawn rows, and the games of each group."""
    parts = np.split(rows, range(part_size, len(rows), part_size))
    draw = sampling.make_sampler(parts, most, seed)
    drawn = np.concatenate([draw(part.copy()) for part in parts])
    games = np.zeros((1 + GROUPS, len(rows)))
    number = drawn["images"].reshape(-1, 4).copy().view(np.uint32)[:, 0]
    np.add.at(games, (drawn["group"], number), drawn["games"])
    return drawn, games[1:]


@pytest.mark.parametrize(("most", "part_size"), [(16, 500), (100, 9), (160, 64)])
def test_positions_are_drawn_in_proportion_to_their_games(most, part_size):
    """Each sample represents all games, and draws a position as often as its share, rounded."""
    rows = rows_of(300)
    rows["games"][200] = 2 * rows["games"].sum()  # Some samples draw it more than once.
    for seed in range(5):
        drawn, games = draw_all(rows, most, seed, part_size)
        between = rows["games"].sum() / (most // GROUPS)
        assert len(drawn) == np.count_nonzero(games) <= most  # No duplicates.
        np.testing.assert_allclose(games.sum(axis=1), rows["games"].sum())
        assert (abs(games - rows["games"]) < between * (1 + 1e-9)).all()
        half = games[:, :150].sum(axis=1)  # Sampling is systematic: this holds for any range.
        assert (abs(half - rows["games"][:150].sum()) < between * (1 + 1e-9)).all()


def test_samples_are_unbiased_and_differ():
    """On average each position represents the games that lead to it."""
    rows = rows_of(50)
    games = np.concatenate([draw_all(rows, 48, seed, 20)[1] for seed in range(200)])
    error = np.maximum(games.std(axis=0, ddof=1) / np.sqrt(len(games)), 1e-9)
    distance = abs(games.mean(axis=0) - rows["games"])
    seen = rows["games"] > rows["games"].sum() / 3 / 100  # The others are drawn too rarely.
    assert seen.sum() >= 30 and (distance < 4.5 * error)[seen].all()
    _, games = draw_all(rows_of(300), 160, 0, 500)
    assert len({each.tobytes() for each in games}) > GROUPS / 2
    assert draw_all(rows_of(300), 160, 1, 500)[1].tolist() != games.tolist()


def ends_of(games):
    return sampling.NO_ENDS._replace(games=np.asarray(games, float))


@pytest.mark.parametrize("column", [0, 1, 2])
def test_the_interval_is_student_s_over_the_samples(column):
    """Over the sums of the explored games and the estimates of the rest."""
    rng = np.random.default_rng(column)
    games = np.concatenate([[[30.0, 20, 10]], rng.uniform(100, 200, (GROUPS, 3))])
    complete = games[0] + games[1:]
    shares = complete[:, column] / complete.sum(axis=1)
    expected = stats.ttest_1samp(shares, 0).confidence_interval(0.95)
    share, low, high = ends_of(games).share(column)
    assert share == pytest.approx(complete.mean(axis=0)[column] / complete.mean(axis=0).sum())
    assert high - low == pytest.approx(expected.high - expected.low)
    assert (low + high) / 2 == pytest.approx(share)
