"""The lecture's "learner", a player with a memory, over series of hundreds of games."""

from typing import NamedTuple
from xml.etree.ElementTree import Element

import jax
import numpy as np

from azjax.viz.chart import line_chart
from experiments.lecture.series import play_series
from experiments.lecture.setup import Order, Setup, learner, player


class Series(NamedTuple):
    """A series of games of the lecture; the learner moves first."""

    simulations: int  # Simulations of the learner.
    opponent: str
    games: int
    lecture: tuple[int, int, int]  # Won by the learner, drawn, lost.


SERIES = (
    Series(10, "MCTS(10)", 100, (86, 6, 8)),
    Series(10, "MCTS(40)", 375, (207, 150, 18)),
    Series(10, "minimax", 375, (0, 366, 9)),
    Series(20, "minimax", 375, (0, 372, 3)),
    Series(50, "minimax", 375, (0, 375, 0)),
)
_LECTURE_CROSSING = 75  # Games for which the thinker, MCTS(40), leads in the lecture's plot.
_ENOUGH = 100  # Learners needed for a 99% range.
_WINDOW = 10  # Games in the moving average that determines the crossing.
ORDERS: tuple[Order, ...] = ("last", "random")  # The lecture's learner uses "last".


def compute(setup: Setup) -> list[dict]:
    """Plays every series many times, each time with a new learner."""
    learners, results = setup.choose(128, 4), []
    for number, series in enumerate(SERIES):
        for order in ORDERS[: setup.choose(2, 1)]:
            key = jax.random.fold_in(setup.key("learning"), 2 * number + ORDERS.index(order))
            players = learner(series.simulations, order), player(series.opponent)
            outcomes = play_series(setup.game, *players, series.games, learners, key)
            results.append(_summarize(series, order, outcomes))
            setup.advance(1)
    return results


def _summarize(series: Series, order: str, outcomes: np.ndarray) -> dict:
    """Summarizes outcomes `[games, learners]`, where 1 is a win of the learner."""
    counts = np.stack([(outcomes == value).sum(axis=0) for value in (1, 0, -1)])  # [3, learners]
    running = np.cumsum(outcomes, axis=0) / np.arange(1, len(outcomes) + 1)[:, None]
    mean = running.mean(axis=1)
    return {
        "series": series._asdict(),
        "order": order,
        "learners": outcomes.shape[1],
        "mean counts": counts.mean(axis=1).tolist(),
        "count ranges": np.quantile(counts, [0.005, 0.995], axis=1).T.tolist(),
        "per game": outcomes.mean(axis=1).tolist(),
        "running": mean.tolist(),
        "running range": np.quantile(running, [0.025, 0.975], axis=1).tolist(),
        "crossing": _crossing(outcomes.mean(axis=1)),
        "behind": float((running[:_LECTURE_CROSSING][-1] <= 0).mean()),
    }


def _crossing(per_game: np.ndarray) -> int | None:
    """Returns the game after which the moving average stays above 0; None if it never does."""
    behind = np.flatnonzero(_smooth(per_game) <= 0)
    if not len(behind):
        return 1
    last = int(behind[-1]) + _WINDOW
    return last if last < len(per_game) else None


def _smooth(per_game: np.ndarray) -> np.ndarray:
    """Returns the moving average."""
    return np.convolve(per_game, np.ones(_WINDOW) / _WINDOW, mode="valid")


def show(results: list[dict], page) -> None:
    """Shows the table of counts and the running averages."""
    learners = results[0]["learners"]
    page.text(
        "The learner moves first. It keeps its statistics, keyed by position, for all moves and "
        "games of a series. The lecture shows one learner; we show "
        f"{learners} independent ones: the mean of their counts, and the range between "
        "their quantiles of 0.5% and 99.5%. A count of the lecture is compatible if its numbers "
        "lie in all three ranges. The lecture's learner tries untried moves from the last cell to "
        "the first; among equally visited moves it plays the one tried first."
    )
    rows = []
    for row in results:
        series, ranges = Series(*row["series"].values()), row["count ranges"]
        pairs = zip(series.lecture, ranges, strict=True)
        compatible = "yes" if all(low <= count <= high for count, (low, high) in pairs) else "no"
        if learners < _ENOUGH:
            compatible = f"– a range needs {_ENOUGH} learners, not {learners}"
        rows.append({
            "pairing": f"learner({series.simulations}) – {series.opponent}, {series.games} games",
            "order of expansion": "last first" if row["order"] == "last" else "random",
            "lecture: won / drawn / lost": " / ".join(map(str, series.lecture)),
            "our mean": " / ".join(f"{mean:.1f}" for mean in row["mean counts"]),
            "range": " / ".join(f"{low:.0f}–{high:.0f}" for low, high in ranges),
            "compatible": compatible,
        })  # fmt: skip
    page.table(rows)
    lecture_like = [row for row in results if row["order"] == "last"]
    thinker = next(row for row in lecture_like if row["series"]["opponent"] == "MCTS(40)")
    smooth = _smooth(np.array(thinker["per game"])).tolist()
    page.charts(
        "Running average of the learner's score (1 = won, 0 = drawn, −1 = lost): mean and "
        "quantiles of 2.5% and 97.5% of all learners, and the lecture's last value. The last chart "
        f"shows the mean score against the thinker, MCTS(40), over {_WINDOW} games.",
        *map(_draw_series, lecture_like),
        line_chart(
            f"Against the thinker, over {_WINDOW} games",
            list(range(_WINDOW, _WINDOW + len(smooth))), {"learner": smooth}, x_label="game",
        ),
    )  # fmt: skip
    _explain(thinker, page)


def _draw_series(row: dict) -> Element:
    series = Series(*row["series"].values())
    won, _, lost = series.lecture
    last = [(won - lost) / series.games] * series.games
    lines = {"learner": row["running"], "lecture's last value": last}
    title = f"learner({series.simulations}) – {series.opponent}"
    games, bands = list(range(1, series.games + 1)), {"learner": tuple(row["running range"])}
    return line_chart(title, games, lines, x_label="game", bands=bands)


def _explain(thinker: dict, page) -> None:
    """Describes when the learner overtakes the thinker."""
    when, crossing = "does not stay above 0", thinker["crossing"]
    if crossing:
        when = f"stays above 0 from game {crossing} on" if crossing > 1 else "is always above 0"
    page.text(
        "Against the thinker, which has four times as many simulations, the learners' mean score "
        f"over {_WINDOW} games {when}. In the lecture the thinker leads for about "
        f"{_LECTURE_CROSSING} games. After this many games, the total score of "
        f"{thinker['behind']:.0%} of our learners is not above 0."
    )
