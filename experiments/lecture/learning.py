"""The player that remembers: the lecture's "learner", over hundreds of games in a row."""

from typing import NamedTuple
from xml.etree.ElementTree import Element

import jax
import numpy as np

from azjax.players import Agent
from azjax.viz.chart import line_chart
from experiments.lecture.series import play_series
from experiments.lecture.setup import Order, Setup, classic, learner, searcher


class Series(NamedTuple):
    """One of the lecture's series: games in a row, the learner moving first."""

    simulations: int  # Of the learner.
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
_LECTURE_CROSSING = 75  # Games that the thinker is ahead, by the lecture's picture.
_ENOUGH = 100  # Learners, for a range that holds 99% of them.
_WINDOW = 10  # Games over which scores are averaged to find the crossing.
ORDERS: tuple[Order, ...] = ("last", "random")  # The lecture's learner: the last first.


def compute(setup: Setup) -> list[dict]:
    """Plays every series many times over, each with a learner of its own."""
    learners, results = setup.choose(128, 4), []
    for number, series in enumerate(SERIES):
        for order in ORDERS[: setup.choose(2, 1)]:
            key = jax.random.fold_in(setup.key("learning"), 2 * number + ORDERS.index(order))
            players = learner(series.simulations, order), _opponent(series.opponent)
            outcomes = play_series(setup.game, *players, series.games, learners, key)
            results.append(_summarize(series, order, outcomes))
            setup.advance(1)
    return results


def _opponent(name: str) -> Agent:
    return searcher(name) if name == "minimax" else classic(int(name[5:-1]))


def _summarize(series: Series, order: str, outcomes: np.ndarray) -> dict:
    """Describes outcomes `[games, learners]`, 1 = won by the learner."""
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
    """The game from which the learner, over a window, scores above 0; None if it never does."""
    behind = np.flatnonzero(_smooth(per_game) <= 0)
    if not len(behind):
        return 1
    last = int(behind[-1]) + _WINDOW
    return last if last < len(per_game) else None


def _smooth(per_game: np.ndarray) -> np.ndarray:
    """The means over all windows."""
    return np.convolve(per_game, np.ones(_WINDOW) / _WINDOW, mode="valid")


def show(results: list[dict], page) -> None:
    """The table of counts, and the running averages."""
    learners = results[0]["learners"]
    page.text(
        "The learner moves first and keeps its statistics, keyed by position, for all moves and "
        "games of a series. The lecture shows one learner's history; we show "
        f"{learners} independent ones, vmapped: the mean of their counts, and the range between "
        "their quantiles of 0.5% and 99.5%. A count of the lecture is compatible if it lies in all "
        "three ranges. The lecture's learner tries untried moves from the last cell to the first "
        "(it pops a list) and, of equally visited moves, plays the one tried first."
    )
    rows = []
    for row in results:
        series, ranges = Series(*row["series"].values()), row["count ranges"]
        fits = [
            low <= count <= high for count, (low, high) in zip(series.lecture, ranges, strict=True)
        ]
        rows.append((
            f"learner({series.simulations}) – {series.opponent}, {series.games} games",
            "last first" if row["order"] == "last" else "random",
            " / ".join(map(str, series.lecture)),
            " / ".join(f"{mean:.1f}" for mean in row["mean counts"]),
            " / ".join(f"{low:.0f}–{high:.0f}" for low, high in ranges),
            ("yes" if all(fits) else "no") if learners >= _ENOUGH
            else f"– such a range needs {_ENOUGH} learners, not {learners}",
        ))  # fmt: skip
    page.table(
        ("pairing", "order of expansion", "lecture: won / drawn / lost", "our mean",
         "range", "compatible"),
        rows,
    )  # fmt: skip
    lecture_like = [row for row in results if row["order"] == "last"]
    thinker = next(row for row in lecture_like if row["series"]["opponent"] == "MCTS(40)")
    smooth = _smooth(np.array(thinker["per game"])).tolist()
    page.charts(
        "Running average of the learner's score (1 = won, 0 = drawn, −1 = lost), the mean of all "
        "learners and their quantiles of 2.5% and 97.5%, and the lecture's last value; at the end "
        f"the learners' score against the thinker over {_WINDOW} games.",
        *map(_draw_series, lecture_like),
        line_chart(
            f"Against the thinker, over {_WINDOW} games",
            list(range(_WINDOW, _WINDOW + len(smooth))), {"learner": smooth}, x_label="game",
        ),
    )  # fmt: skip
    _explain(results, page)


def _draw_series(row: dict) -> Element:
    series = Series(*row["series"].values())
    won, _, lost = series.lecture
    lines = {
        "learner": row["running"],
        "the lecture's last": [(won - lost) / series.games] * series.games,
    }
    title = f"learner({series.simulations}) – {series.opponent}"
    games = list(range(1, series.games + 1))
    low, high = row["running range"]
    return line_chart(title, games, lines, x_label="game", bands={"learner": (low, high)})


def _explain(results: list[dict], page) -> None:
    """Says in words when the learner overtakes the thinker, and what the other order does."""
    thinker = next(r for r in results if r["series"]["opponent"] == "MCTS(40)")
    crossing = thinker["crossing"]
    if crossing == 1:
        said = f"is above 0, over any {_WINDOW} games, from the start"
    elif crossing:
        said = f"stays above 0, over any {_WINDOW} games, from game {crossing} on"
    else:
        said = "does not get above 0 for good"
    page.text(
        "Against the thinker, which has four times its simulations, the learners' mean score "
        f"{said}. The lecture sees the thinker ahead for about {_LECTURE_CROSSING} games; so long "
        f"does it lead {thinker['behind']:.0%} of our learners, counted from the first game."
    )
    others = [row for row in results if row["order"] == "random"]
    if others:
        listed = "; ".join(
            f"{' / '.join(f'{mean:.1f}' for mean in row['mean counts'])} for "
            f"learner({row['series']['simulations']}) – {row['series']['opponent']}"
            for row in others
        )
        page.text(f"With untried moves tried in random order instead, the means are {listed}.")
