"""Samples of exhaustive play against exact counts of all games."""

import numpy as np
import pytest
from scipy import stats

from azjax.exact import exhaustive, moves, ply_files, sampling
from bad_players import lowest, make_act, pair
from reference import exhaustive_play

STARTS, SEAT = ((4,), (0,), (1,), (8,)), 1


@pytest.fixture(scope="module")
def player():
    return make_act(pair("tic_tac_toe"), lowest)


@pytest.fixture(scope="module")
def expected():
    rules = pair("tic_tac_toe").rules
    return exhaustive_play.explore(rules, lambda p: lowest(rules, p), SEAT, STARTS)


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(moves, "_BATCH", 64)


def sample(player, folder, most, **settings):
    game = pair("tic_tac_toe").game
    *_, last = exhaustive.explore(game, player, SEAT, folder, most=most, starts=STARTS, **settings)
    return last


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
    games = np.zeros((1 + sampling.GROUPS, len(rows)))
    number = drawn["images"].reshape(-1, 4).copy().view(np.uint32)[:, 0]
    np.add.at(games, (drawn["group"], number), drawn["games"])
    return drawn, games[1:]


@pytest.mark.parametrize(("most", "part_size"), [(16, 500), (100, 500), (100, 9), (160, 64)])
def test_positions_are_drawn_in_proportion_to_their_games(most, part_size):
    """Each sample represents all games, and draws a position as often as its share, rounded."""
    rows = rows_of(300)
    rows["games"][200] = 2 * rows["games"].sum()  # Some samples draw it more than once.
    for seed in range(10):
        drawn, games = draw_all(rows, most, seed, part_size)
        between = rows["games"].sum() / (most // sampling.GROUPS)
        assert len(drawn) == np.count_nonzero(games) <= most  # No duplicates.
        np.testing.assert_allclose(games.sum(axis=1), rows["games"].sum())
        assert (abs(games - rows["games"]) < between * (1 + 1e-9)).all()
        first_half = games[:, :150].sum(
            axis=1
        )  # Sampling is systematic, so this holds for any range.
        assert (abs(first_half - rows["games"][:150].sum()) < between * (1 + 1e-9)).all()


def test_a_sample_of_a_sample_represents_the_games_of_its_group():
    """Each group draws from its own earlier sample."""
    rows = np.concatenate([rows_of(40, seed) for seed in range(sampling.GROUPS)])
    rows["group"] = np.repeat(np.arange(1, 1 + sampling.GROUPS), 40)
    rows["images"] = np.arange(len(rows), dtype=np.uint32)[:, None].view(np.uint8)[:, None]
    for part_size in (1000, 33):
        drawn, games = draw_all(rows, 80, 3, part_size)
        of_group = rows["games"].reshape(sampling.GROUPS, 40).sum(axis=1)
        np.testing.assert_allclose(games.sum(axis=1), of_group)
        own = np.kron(np.eye(sampling.GROUPS), np.ones(40))
        assert not (games * (1 - own)).any() and len(drawn) <= 80
        between = of_group[:, None] / 5
        assert (abs(games - rows["games"]) * own < between * (1 + 1e-9)).all()


def test_samples_are_unbiased():
    """On average each position represents the games that lead to it."""
    rows, seeds = rows_of(50), 200
    games = np.concatenate([draw_all(rows, 48, seed, 20)[1] for seed in range(seeds)])
    error = np.maximum(games.std(axis=0, ddof=1) / np.sqrt(len(games)), 1e-9)
    distance = abs(games.mean(axis=0) - rows["games"])
    seen = rows["games"] > rows["games"].sum() / 3 / 100  # The others are drawn too rarely.
    assert seen.sum() >= 30 and (distance < 4.5 * error)[seen].all()


def test_samples_differ_from_each_other_and_from_ply_to_ply(player, tmp_path, monkeypatch):
    rows = rows_of(300)
    _, games = draw_all(rows, 160, 0, 500)
    assert len({each.tobytes() for each in games}) > sampling.GROUPS / 2
    assert draw_all(rows, 160, 1, 500)[1].tolist() != games.tolist()
    seeds, sampler = [], sampling.make_sampler

    def record(parts, most, seed):
        seeds.append(seed)
        return sampler(parts, most, seed)

    monkeypatch.setattr(ply_files, "make_sampler", record)
    sample(player, tmp_path, 16)
    assert len({*seeds}) == len(seeds) > 2


@pytest.mark.parametrize("part_size", [20, 2**18])
def test_no_ply_has_more_positions_than_are_allowed(player, expected, part_size, tmp_path):
    most, largest = 28, max(expected.positions)
    assert largest > 2 * most
    sample(player, tmp_path, most, part_size=part_size)
    counts = [
        sum(len(np.load(part)) for part in sorted(ply.glob("part-*.npy")))
        for ply in sorted(tmp_path.glob("0*"))
    ]
    first = next(ply for ply, count in enumerate(expected.positions) if count > most)
    assert counts[:first] == expected.positions[:first] and max(counts) <= most
    assert min(counts[first:-1]) > 0


def test_exactly_the_allowed_number_of_positions_is_not_sampled(player, expected, tmp_path):
    largest = max(expected.positions)
    whole = sample(player, tmp_path / "whole", largest)
    assert not whole.sampled and whole.ends.games[0].tolist() == expected.games
    assert whole.ends.decisions == expected.decisions
    assert sample(player, tmp_path / "sample", largest - 1).sampled


def test_estimates_are_unbiased_and_their_intervals_hold(player, expected, tmp_path, monkeypatch):
    """Estimates of many explorations with different samples, against the exact counts."""
    sampler, estimates, held = sampling.make_sampler, [], []
    truth = np.array(expected.games)
    shares = truth / truth.sum()
    for run in range(25):
        monkeypatch.setattr(
            ply_files,
            "make_sampler",
            lambda parts, most, ply, run=run: sampler(parts, most, 100 * run + ply),
        )
        found = sample(player, tmp_path / str(run), 32, part_size=30)
        estimates.append(found.ends.games[:1] + found.ends.games[1:])
        intervals = [found.ends.share(column) for column in range(3)]
        held.append(
            [each.low <= share <= each.high for each, share in zip(intervals, shares, strict=True)]
        )
        assert sum(each.estimate for each in intervals) == pytest.approx(1)
    estimates = np.concatenate(estimates)
    error = estimates.std(axis=0, ddof=1) / np.sqrt(len(estimates))
    assert (abs(estimates.mean(axis=0) - truth) < 4 * error).all()
    assert (error < truth / 5).all()
    assert np.mean(held) > 0.8


def ends_of(games):
    return sampling.NO_ENDS._replace(games=np.asarray(games, float))


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95])
@pytest.mark.parametrize("column", [0, 1, 2])
def test_the_interval_is_student_s_over_the_samples(column, confidence):
    """Over the sums of the explored games and the estimates of the rest."""
    rng = np.random.default_rng(column)
    games = np.concatenate([[[30.0, 20, 10]], rng.uniform(100, 200, (sampling.GROUPS, 3))])
    complete = games[0] + games[1:]
    shares = complete[:, column] / complete.sum(axis=1)
    expected = stats.ttest_1samp(shares, 0).confidence_interval(confidence)
    share, low, high = ends_of(games).share(column, confidence)
    assert share == pytest.approx(complete.mean(axis=0)[column] / complete.mean(axis=0).sum())
    assert high - low == pytest.approx(expected.high - expected.low)
    assert (low + high) / 2 == pytest.approx(share)
    if confidence == 0.95:
        assert ends_of(games).share(column) == (share, low, high)


@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_the_interval_holds_as_often_as_it_says(confidence):
    rng, held = np.random.default_rng(0), []
    for _ in range(2000):
        lost = rng.normal(30, 10, sampling.GROUPS)
        games = np.stack([100 - lost, np.zeros_like(lost), lost], axis=1)
        share = ends_of([[0, 0, 0], *games]).share(2, confidence)
        held.append(share.low <= 0.3 <= share.high)
    assert abs(np.mean(held) - confidence) < 4 * np.sqrt(confidence * (1 - confidence) / 2000)


def test_shares_stay_between_none_and_all():
    games = np.zeros((1 + sampling.GROUPS, 3))
    assert ends_of(games).share(2) == (0, 0, 0)
    games[1:, 0], games[1, :] = 100, (0, 0, 100)
    assert ends_of(games).share(2).low == 0 and ends_of(games).share(0).high == 1
