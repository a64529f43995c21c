"""Every game there is, counted; and the lecture's pairings, with their counts beside ours."""

from xml.etree.ElementTree import Element

import jax
import numpy as np

from azjax.drawing import canvas, node
from azjax.games.solver import count_games
from azjax.players import Agent, ratings
from azjax.players.arena import Results, play_games
from experiments.lecture.compatibility import count_p_value
from experiments.lecture.setup import Setup, classic, random_player, searcher

# Who moves first, who second, and the lecture's games won by the first, drawn, lost.
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
    ("MCTS(10)", "MCTS(500)", None),  # The lecture shows a plot and no count.
)
SIGNIFICANCE = 0.01  # Below it a count counts as incompatible.


def count_all(setup: Setup) -> dict:
    """Counts all games, by outcome and by first move."""
    counts = count_games(setup.solution)
    return {
        "all": counts[0].tolist(),
        "by first move": counts[setup.solution.children[0]].tolist(),
    }


def show_all(results: dict, page) -> None:
    """The tallies beside the lecture's."""
    wins, draws, losses = results["all"]
    lecture = (131_184, 46_080, 77_904)
    page.text(
        f"All {sum(results['all']):,} games, counted on the graph of positions: X wins {wins:,}, "
        f"{draws:,} are drawn, O wins {losses:,}. The lecture has "
        f"{lecture[0]:,}, {lecture[1]:,} and {lecture[2]:,}: "
        f"{'the same' if (wins, draws, losses) == lecture else 'NOT the same'}."
    )
    lecture_moves = {
        "corner": (14_652, 5_184, 7_896),
        "edge": (14_232, 5_184, 10_176),
        "centre": (15_648, 4_608, 5_616),
    }
    cells = {"corner": (0, 2, 6, 8), "edge": (1, 3, 5, 7), "centre": (4,)}
    rows = []
    for name, theirs in lecture_moves.items():
        ours = {tuple(results["by first move"][cell]) for cell in cells[name]}
        shown = " or ".join(" / ".join(f"{n:,}" for n in triple) for triple in sorted(ours))
        same = "yes" if ours == {theirs} else "no"
        rows.append((name, shown, " / ".join(f"{n:,}" for n in theirs), same))
    page.table(("first move", "ours: X wins / draws / O wins", "the lecture", "equal"), rows)


def play_all(setup: Setup) -> list[dict]:
    """Plays every pairing from the lecture's seat."""
    results = []
    for number, (first, second, lecture) in enumerate(LECTURE):
        is_slow = "500" in first + second
        many = setup.choose(2_048, 256) if is_slow else setup.choose(10_240, 512)
        key = jax.random.fold_in(setup.key("matches"), number)
        games = _play(setup, first, second, many, key)
        counts = [int((games.outcomes == value).sum()) for value in (1, 0, -1)]
        p_value = count_p_value(lecture, counts) if lecture else None
        results.append({
            "first": first, "second": second, "lecture": lecture, "counts": counts,
            "distinct": len(np.unique(games.digests)), "p-value": p_value,
        })  # fmt: skip
        setup.advance(1)
    return results


def _play(setup: Setup, first: str, second: str, many: int, key: jax.Array) -> Results:
    """Plays with `first` moving first; MCTS is always named second, so as to compile once."""
    if first.startswith("MCTS") and not second.startswith("MCTS"):
        games = _play_from(setup, second, first, 1, many, key)
        return games._replace(outcomes=-games.outcomes)
    return _play_from(setup, first, second, 0, many, key)


def _play_from(setup: Setup, one: str, other: str, seat: int, many: int, key) -> Results:
    first, second = _player(setup, one), _player(setup, other)
    return play_games(setup.game, first, second, many, key, seat, batch_size=setup.batch_size)


def _player(setup: Setup, name: str) -> Agent:
    if name.startswith("MCTS"):
        return classic(int(name[5:-1]))
    return random_player() if name == "random" else searcher(name)


def show_matches(results: list[dict], page) -> None:
    """The table of all pairings, with a picture of their rates."""
    games = sorted({sum(row["counts"]) for row in results})
    page.text(
        "Each row is a pairing from the lecture's seat: its count from 100 games, and our rates "
        f"in per cent with 95% intervals from {' or '.join(f'{n:,}' for n in games)} games. "
        "The p-value asks whether 100 games like ours could have given the lecture's count; "
        f"below {SIGNIFICANCE} we call the two incompatible."
    )
    rows = []
    for row in results:
        total = sum(row["counts"])
        cells = [ratings.proportion(count, total) for count in row["counts"]]
        lecture, p_value = row["lecture"], row["p-value"]
        rows.append((
            f"{row['first']} – {row['second']}",
            " / ".join(map(str, lecture)) if lecture else "a plot only",
            *(f"{100 * c.estimate:.1f} [{100 * c.low:.1f}, {100 * c.high:.1f}]" for c in cells),
            _bar([cell.estimate for cell in cells], lecture),
            f"{row['distinct']:,}",
            *(("–", "– no count to compare with") if p_value is None
              else (f"{p_value:.2g}", "yes" if p_value >= SIGNIFICANCE else "no")),
        ))  # fmt: skip
    page.table(
        ("first – second", "lecture: won / drawn / lost", "won %", "drawn %", "lost %",
         "won, drawn, lost", "different games", "p-value", "compatible"),
        rows,
    )  # fmt: skip
    page.text("The marks on the bars stand where the lecture's wins end, and its draws.")
    _explain_incompatible(results, page)


def _bar(shares: list[float], lecture: tuple[int, int, int] | None) -> Element:
    """The three shares as one bar, for the player named first."""
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


def _explain_incompatible(results: list[dict], page) -> None:
    tested = [row for row in results if row["p-value"] is not None]
    wrong = [row for row in tested if row["p-value"] < SIGNIFICANCE]
    if not wrong:
        page.text(
            f"All {len(tested)} counts are compatible: nothing here tells our players from the "
            "lecture's. MCTS expands untried moves in random order and breaks ties by the "
            "order of expansion, as the lecture's does; Minimax takes the first best move."
        )
    for row in wrong:
        page.text(
            f"{row['first']} – {row['second']}: the lecture's {row['lecture']} in 100 games has a "
            f"probability of {row['p-value']:.2g} under our rates. Of {len(tested)} counts, "
            f"{SIGNIFICANCE * len(tested):.2f} should look like that by chance. The lecture also "
            "seeds its random player alike in every pairing, and its players draw from one "
            "stream each over all 100 games."
        )
