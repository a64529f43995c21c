"""The visits of a search, and the effect of the exploration constant."""

import functools
from xml.etree.ElementTree import Element

import jax
import numpy as np

from azjax import games
from azjax.drawing import gallery, node
from azjax.games import init_batch
from azjax.players.statistics import Interval, mean_score
from azjax.viz import draw_state
from azjax.viz.chart import line_chart
from experiments.lecture.cast import ROOT_2, Setup, classic, player, uct_search
from experiments.lecture.page import charts, table, text

BUDGETS = (50, 200, 500, 1_000, 5_000)
# The lecture's searches: number of simulations, and the move played as (row, column).
LECTURE_MOVES = ((10, (1, 0)), (250, (2, 2)), (500, (1, 1)), (1_000, (1, 1)))
CONSTANTS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, ROOT_2, 2.0, 3.0, 5.0, 10.0)
_CURVES = {  # The search moves first against random, second against minimax.
    "random": "Points lost to Random, per game",
    "minimax": "Points lost to Minimax, per game",
}


@functools.cache
def _search(room: int):
    """Builds searches of the empty board: `(key, count, trees) -> (action, visits)`."""
    game, search = games.make("tic_tac_toe"), uct_search(room)

    @functools.partial(jax.jit, static_argnums=2)
    def run(key, count, trees):
        result = search(jax.random.split(key, trees), init_batch(game, trees), count, ROOT_2)
        return result.action, result.visit_counts

    return run


def compute_visits(setup: Setup) -> dict:
    """Counts root visits from the empty board for growing numbers of simulations."""
    run, key = _search(max(BUDGETS)), setup.key("visits")
    trees, maps = setup.choose(16, 4), []
    for budget in BUDGETS:
        _, visits = run(jax.random.fold_in(key, budget), budget, trees)
        maps.append({"simulations": budget, "mean": visits.mean(0).tolist()})
    run, moves, trees = _search(1_000), [], setup.choose(256, 64)
    for budget, (row, column) in LECTURE_MOVES:
        action, _ = run(jax.random.fold_in(key, 10_000 + budget), budget, trees)
        shares = (np.bincount(np.asarray(action), minlength=9) / trees).tolist()
        moves.append({"simulations": budget, "lecture": 3 * row + column, "shares": shares})
    return {"maps": maps, "moves": moves, "trees": trees}


def show_visits(results: dict) -> list[Element]:
    """Shows heat maps of the visits, and how often each cell is played."""
    game, maps, rows = games.make("tic_tac_toe"), [], []
    for row in results["maps"]:
        visits = np.array(row["mean"])
        labels, heat = [f"{count:,.0f}" for count in visits], visits / visits.max()
        maps.append(draw_state(game, game.init(), values=heat, labels=labels, size=150))
    for row in results["moves"]:
        shares = np.array(row["shares"])
        rows.append({
            "simulations": f"{row['simulations']:,}",
            "lecture's cell": str(row["lecture"]),
            "our searches that play it": f"{shares[row['lecture']]:.0%}",
            "center": f"{shares[4]:.0%}",
            "a corner": f"{shares[[0, 2, 6, 8]].sum():.0%}",
            "an edge": f"{shares[[1, 3, 5, 7]].sum():.0%}",
        })  # fmt: skip
    captions = [f"{row['simulations']:,} simulations" for row in results["maps"]]
    look = {"class": "az-scroll", "tabindex": 0, "style": "max-width: 100%"}
    return [
        text("Root visits from the empty board, means over several searches, each map in scale."),
        node("div", look, gallery(maps, captions).element),
        text(f"The first move of {results['trees']} searches, and of the lecture's search:"),
        table(rows),
    ]


def compute_constant(setup: Setup) -> dict:
    """Counts the opponents' losses, draws and wins for each exploration constant."""
    constants = setup.choose(CONSTANTS, (0.0, 0.35, ROOT_2, 10.0))
    num_games, key, rows = setup.choose(2048, 256), setup.key("constant"), []
    for budget in setup.choose((10, 30, 100), (10, 50)):
        for number, constant in enumerate(constants):
            key_row = jax.random.fold_in(jax.random.fold_in(key, budget), number)
            row, search = {"simulations": budget, "constant": constant}, classic(budget, constant)
            for seat, name in enumerate(_CURVES):
                key_games = jax.random.fold_in(key_row, seat)
                outcomes = setup.play(player(name), search, num_games, key_games, 1 - seat)
                row[name] = [int((outcomes == value).sum()) for value in (-1, 0, 1)]
            rows.append(row)
    return {"rows": rows, "games": num_games}


def show_constant(results: dict) -> list[Element]:
    """Shows the curves of strength, and what they imply."""
    constants = list(dict.fromkeys(row["constant"] for row in results["rows"]))
    curves, verdicts = [], []
    for name, title in _CURVES.items():
        lines, bands = {}, {}
        for budget in dict.fromkeys(row["simulations"] for row in results["rows"]):
            counts = [row[name] for row in results["rows"] if row["simulations"] == budget]
            lost = [mean_score(wins, draws, losses) for losses, draws, wins in counts]
            lines[label := f"{budget} simulations"] = [interval.estimate for interval in lost]
            bands[label] = [i.low for i in lost], [i.high for i in lost]
            verdicts.append({"against": name, "simulations": budget} | _find_u(constants, lost))
        curves.append(line_chart(title, constants, lines, x_label="C", log_x=True, bands=bands))
    return [
        text(
            f"Points lost per game (a draw is half a point), from {results['games']:,} games per "
            "dot. The search moves first against Random and second against Minimax, where a draw "
            "is the best result. The lecture expects a U-shaped curve: with too little "
            "exploration, the move depends on the luck of the first rollouts; with too much, bad "
            "moves get many visits."
        ),
        charts(
            "Strength, with 95% intervals, by the constant C. The scale of C is logarithmic and "
            "includes 0.",
            curves,
        ),
        table(verdicts),
    ]


def _find_u(constants: list[float], lost: list[Interval]) -> dict[str, str]:
    """Returns where a curve is lowest, and whether both ends are significantly higher."""
    best = min(range(len(lost)), key=lambda i: lost[i].estimate)
    ends = {"too little exploration": lost[0], "too much exploration": lost[-1]}
    worse = [name for name, end in ends.items() if end.low > lost[best].high]
    answers = "no: neither end loses", f"no: only {''.join(worse)} loses", "yes: both ends lose"
    return {
        "best C of those tried": f"{constants[best]:.2f}",
        "points lost with it": "{:.3f} [{:.3f}, {:.3f}]".format(*lost[best]),
        "U-shaped?": f"{answers[len(worse)]} significantly more",
    }
