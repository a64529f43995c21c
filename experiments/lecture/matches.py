"""The number of all possible games, and the lecture's pairings with its counts and ours."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

import jax
import numpy as np
from scipy import stats

from azjax.drawing import canvas, node
from azjax.games.solver import count_games
from azjax.players.statistics import proportion
from experiments.lecture.cast import Setup, player
from experiments.lecture.page import table, text

# The first player, the second player, and the lecture's games won by the first, drawn, lost.
LECTURE: tuple[tuple[str, str, tuple[int, int, int] | None], ...] = (
    ("random", "minimax", (0, 18, 82)),
    ("random", "alpha-beta", (0, 18, 82)),
    ("random", "MCTS(10)", (19, 9, 72)),
    ("random", "MCTS(100)", (0, 9, 91)),
    ("MCTS(10)", "random", (89, 6, 5)),
    ("MCTS(100)", "random", (97, 3, 0)),
    ("minimax", "MCTS(10)", (95, 5, 0)),
    ("minimax", "MCTS(100)", (53, 47, 0)),
    ("minimax", "MCTS(500)", (13, 87, 0)),
    ("MCTS(10)", "minimax", (0, 53, 47)),
    ("MCTS(100)", "minimax", (0, 99, 1)),
    ("MCTS(500)", "minimax", (0, 100, 0)),
    ("MCTS(10)", "MCTS(10)", (60, 16, 24)),
    ("MCTS(10)", "MCTS(500)", None),  # The lecture shows a plot without counts.
)
SIGNIFICANCE = 0.01  # A smaller p-value makes a count incompatible.


def count_all(setup: Setup) -> dict:
    """Counts all games, by outcome and by first move."""
    counts = count_games(setup.solution)
    return {"all": counts[0].tolist(), "by first move": counts[setup.solution.children[0]].tolist()}


def show_all(results: dict) -> list[Element]:
    """Shows the numbers of games next to the lecture's."""
    wins, draws, losses = results["all"]
    lecture = (131_184, 46_080, 77_904)
    rows = []
    for name, (cells, theirs) in {
        "corner": ((0, 2, 6, 8), (14_652, 5_184, 7_896)),
        "edge": ((1, 3, 5, 7), (14_232, 5_184, 10_176)),
        "center": ((4,), (15_648, 4_608, 5_616)),
    }.items():
        ours = {tuple(results["by first move"][cell]) for cell in cells}
        shown = " or ".join(" / ".join(f"{n:,}" for n in triple) for triple in sorted(ours))
        same = "yes" if ours == {theirs} else "no"
        counts = " / ".join(f"{n:,}" for n in theirs)
        row = {"first move": name, "ours: X wins / draws / O wins": shown, "the lecture": counts}
        rows.append(row | {"equal": same})
    return [
        text(
            f"There are {sum(results['all']):,} games, counted on the graph of positions: X wins "
            f"{wins:,}, {draws:,} are drawn, and O wins {losses:,}. The lecture has "
            f"{lecture[0]:,}, {lecture[1]:,} and {lecture[2]:,}: "
            f"{'the same' if (wins, draws, losses) == lecture else 'NOT the same'}."
        ),
        table(rows),
    ]


def play_all(setup: Setup) -> list[dict]:
    """Plays every pairing, with the same first player as in the lecture."""
    results = []
    for number, (first, second, lecture) in enumerate(LECTURE):
        is_slow = "500" in first + second
        many = setup.choose(2_048, 256) if is_slow else setup.choose(10_240, 512)
        outcomes = _play(
            setup, first, second, many, jax.random.fold_in(setup.key("matches"), number)
        )
        counts = [int((outcomes == value).sum()) for value in (1, 0, -1)]
        p_value = count_p_value(lecture, counts) if lecture else None
        results.append({
            "first": first, "second": second, "lecture": lecture, "counts": counts,
            "p-value": p_value,
        })  # fmt: skip
    return results


def _play(setup: Setup, first: str, second: str, many: int, key: jax.Array) -> np.ndarray:
    """Plays with `first` moving first. MCTS is always the second agent, to compile it once."""
    swap = first.startswith("MCTS") and not second.startswith("MCTS")
    one, other = map(player, (second, first) if swap else (first, second))
    outcomes = setup.play(one, other, many, key, int(swap))
    return -outcomes if swap else outcomes


def count_p_value(observed: Sequence[int], reference: Sequence[int]) -> float:
    """Tests whether wins, draws and losses of a few games are compatible with those of many.

    With Jeffreys' prior, `reference` predicts a Dirichlet-multinomial distribution of the triples
    with as many games as `observed`. Its parameters are `reference + 1/2`.

    Returns:
      The total probability of all triples that are at most as probable as the observed one.
    """
    games = sum(observed)
    wins, losses = np.nonzero(np.tri(games + 1)[::-1])  # All with wins + losses <= games.
    triples = np.stack([wins, games - wins - losses, losses], axis=1)
    predicted = stats.dirichlet_multinomial(np.array(reference) + 0.5, games)
    rounding = 1e-6  # Triples of equal probability must compare as equal.
    unlikely = predicted.logpmf(triples) <= predicted.logpmf(observed) + rounding
    return min(float(predicted.pmf(triples)[unlikely].sum()), 1.0)


def show_matches(results: list[dict]) -> list[Element]:
    """Shows a table of all pairings with bars of their rates."""
    games = sorted({sum(row["counts"]) for row in results})
    rows = []
    for row in results:
        total = sum(row["counts"])
        rates = [proportion(count, total) for count in row["counts"]]
        lecture, p_value, compatible = row["lecture"], "–", "– no count to compare with"
        if row["p-value"] is not None:
            p_value = f"{row['p-value']:.2g}"
            compatible = "yes" if row["p-value"] >= SIGNIFICANCE else "no"
        rows.append({
            "first – second": f"{row['first']} – {row['second']}",
            "lecture: won / drawn / lost": " / ".join(map(str, lecture or ["a plot only"])),
            **{
                f"{name} %": f"{100 * r.estimate:.1f} [{100 * r.low:.1f}, {100 * r.high:.1f}]"
                for name, r in zip(("won", "drawn", "lost"), rates, strict=True)
            },
            "won, drawn, lost": _bar([rate.estimate for rate in rates], lecture),
            "p-value": p_value,
            "compatible": compatible,
        })  # fmt: skip
    tested = sum(row["p-value"] is not None for row in results)
    return [
        text(
            "Each row is a pairing: the lecture's count from 100 games, and our rates in percent "
            f"with 95% intervals from {' or '.join(f'{n:,}' for n in games)} games. The p-value is "
            "the probability, under our rates, of a count at most as likely as the lecture's; "
            f"below {SIGNIFICANCE}, we call the two counts incompatible. Of {tested} counts, "
            f"{SIGNIFICANCE * tested:.2f} are expected to be so by chance."
        ),
        table(rows),
        text("The marks on the bars show where the wins and the draws of the lecture end."),
    ]


def _bar(shares: list[float], lecture: tuple[int, int, int] | None) -> Element:
    """Draws the three shares of the first player as one bar."""
    parts, left = [], 0.0
    for share, color in zip(shares, ("x", "grid", "o"), strict=True):
        place = {"x": 200 * left, "y": 3, "width": 200 * share, "height": 12}
        parts.append(node("rect", place | {"style": f"fill: var(--az-{color})"}))
        left += share
    won, drawn, _ = lecture or (0, 0, 0)
    for percent in (won, won + drawn) if lecture else ():
        mark = {"x": 2 * percent - 1, "y": 0, "width": 2, "height": 18}
        parts.append(node("rect", mark | {"style": "fill: var(--az-ink)"}))
    return canvas(200, 18, *parts, label="won, drawn and lost as one bar").element
