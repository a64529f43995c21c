"""Samples of the positions of a ply, and estimates from them."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from azjax.games import rows as packing
from azjax.players.statistics import Interval

GROUPS = 16  # Independent samples; their spread estimates the error of their mean.


class Ends(NamedTuple):
    """How games end for the player; the columns are won, drawn and lost.

    Row 0 of `games` counts the complete games that ended before positions were first sampled. Each
    other row estimates the number of the remaining games from a separate sample.
    """

    decisions: int  # Positions where the player chose a move.
    moves: np.ndarray  # `int64 [3]`, different moves of either side that end a game.
    games: np.ndarray  # `float64 [1 + GROUPS, 3]`

    def __add__(self, other: tuple) -> "Ends":
        """Adds the ends of other positions."""
        return Ends(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def share(self, column: int) -> Interval:
        """Estimates the share of games with an outcome.

        Returns Student's t interval of 95%; it has no width if every game was explored.
        """
        games = self.games[:1] + self.games[1:]
        shares = games[:, column] / np.maximum(games.sum(axis=1), 1)
        estimate = games[:, column].mean() / max(games.sum(axis=1).mean(), 1)
        spread = shares.std(ddof=1) / np.sqrt(GROUPS)
        reach = stats.t.ppf(0.975, GROUPS - 1) * spread
        return Interval(estimate, max(estimate - reach, 0.0), min(estimate + reach, 1.0))


NO_ENDS = Ends(0, np.zeros(3, np.int64), np.zeros((1 + GROUPS, 3)))


def merge(rows: np.ndarray) -> np.ndarray:
    """Merges equal positions of a sample, adds up their games, and sorts by hash.

    The key of a position is its symmetric copy with the smallest hash.
    """
    copies = rows["images"]
    hashed = packing.hashes(copies.reshape(-1, copies.shape[2])).reshape(copies.shape[:2])
    keys = copies[np.arange(len(copies)), hashed.argmin(axis=1)]
    keys = np.concatenate([keys, rows["group"][:, None]], axis=1)
    order, first, hashes = packing.group_equal(keys)
    merged = rows[order[first]]
    merged["hash"] = hashes
    if len(rows):
        merged["games"] = np.add.reduceat(rows["games"][order], first)
    return merged


def make_sampler(
    parts: Sequence[np.ndarray], most: int, seed: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Builds `draw(part) -> positions`, which is called with the parts in order.

    Each group is a systematic sample: positions are drawn at equal intervals of the cumulative
    number of games that lead to them. A drawn position represents as many games as an interval has.
    """
    totals = np.sum([np.bincount(p["group"], p["games"], 1 + GROUPS) for p in parts], axis=0)
    is_first, count = totals[0] > 0, most // GROUPS
    start, passed = np.random.default_rng(seed).random(GROUPS), np.zeros(GROUPS)

    def draw_one(rows: np.ndarray, group: int) -> np.ndarray:
        mine = rows if is_first else rows[rows["group"] == group]
        between = totals[0 if is_first else group] / count
        if not len(mine):
            return mine
        reached = passed[group - 1] + np.cumsum(mine["games"])
        first, last = np.ceil(
            np.array([passed[group - 1], reached[-1]]) / between - start[group - 1]
        )
        points = (start[group - 1] + np.arange(first, last)) * between
        passed[group - 1] = reached[-1]
        drawn = mine[np.searchsorted(reached, points).clip(max=len(mine) - 1)]
        drawn["group"], drawn["games"] = group, between
        return drawn

    return lambda rows: merge(
        np.concatenate([draw_one(rows, group) for group in range(1, 1 + GROUPS)])
    )
