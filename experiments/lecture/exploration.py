"""The visits of a search, and the effect of the exploration constant."""

import functools
import math
from typing import Any
from xml.etree.ElementTree import Element

import jax
import jax.numpy as jnp
import numpy as np

from azjax import games
from azjax.drawing import gallery
from azjax.games.base import init_batch
from azjax.players import statistics
from azjax.players.arena import play_games
from azjax.players.statistics import Interval
from azjax.search import UCT
from azjax.search.evaluators import rollout_evaluator
from azjax.viz.chart import line_chart
from azjax.viz.pictures import draw_state
from experiments.lecture.setup import ROOT_2, Setup, classic, flexible_search, player

BUDGETS = (50, 200, 500, 1_000, 5_000)
# The lecture's searches: number of simulations, and the move played as (row, column).
LECTURE_MOVES = ((10, (1, 0)), (250, (2, 2)), (500, (1, 1)), (1_000, (1, 1)))
# The lecture's worked example: step, node, bound, sum of outcomes, visits of parent and node.
LECTURE_BOUNDS = (
    ("2.1", "S1", 20.0, 20, 1, 1),
    ("3.1", "S1", 21.67, 20, 2, 1),
    ("3.1", "S2", 11.67, 10, 2, 1),
    ("4.1", "S1", 11.48, 20, 3, 2),
    ("4.1", "S2", 12.10, 10, 3, 1),
)
CONSTANTS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, ROOT_2, 2.0, 3.0, 5.0, 10.0)
_OPPONENTS = ("random", "minimax")  # The search moves first against random, second against minimax.
_CURVES = {
    "random": "Points lost to Random, per game",
    "minimax": "Points lost to Minimax, per game",
    "moves in use": "Effective number of root moves (exp of entropy)",
    "mean depth": "Mean depth of the tree",
}
_ROOM = 1_000  # Maximum simulations of most searches here.


@functools.cache
def _search(room: int):
    """Builds searches of the empty board: `(key, count, C, trees) -> (action, visits, depths)`."""
    game = games.make("tic_tac_toe")
    search = flexible_search(game, UCT(num_simulations=room), rollout_evaluator(game))

    @functools.partial(jax.jit, static_argnums=3)
    def run(key, count, exploration, trees):
        states = init_batch(game, trees)
        result = search(None, jax.random.split(key, trees), states, count, exploration=exploration)
        tree: Any = result.tree
        return result.action, result.visit_counts, _depths(tree.parents)

    return run


def _depths(parents: jax.Array) -> jax.Array:
    """Returns the depth of every node `[B, N]`, -1 for unused ones. Parents precede children."""

    def step(node, depths):
        parent = parents[:, node]
        above = jnp.take_along_axis(depths, jnp.maximum(parent, 0)[:, None], axis=1)[:, 0]
        return depths.at[:, node].set(jnp.where(parent >= 0, above + 1, -1))

    start = jnp.full(parents.shape, -1).at[:, 0].set(0)
    return jax.lax.fori_loop(1, parents.shape[1], step, start)


def compute_visits(setup: Setup) -> dict:
    """Counts root visits from the empty board for growing numbers of simulations."""
    run, key = _search(max(BUDGETS)), setup.key("visits")
    trees, maps = setup.choose(16, 4), []
    for budget in BUDGETS:
        _, visits, _ = run(jax.random.fold_in(key, budget), budget, ROOT_2, trees)
        one, mean = visits[0].tolist(), visits.mean(0).tolist()
        maps.append({"simulations": budget, "one": one, "mean": mean})
        setup.advance(1)
    run, moves, trees = _search(_ROOM), [], setup.choose(256, 64)
    for budget, (row, column) in LECTURE_MOVES:
        action, _, _ = run(jax.random.fold_in(key, 10_000 + budget), budget, ROOT_2, trees)
        shares = (np.bincount(np.asarray(action), minlength=9) / trees).tolist()
        moves.append({"simulations": budget, "lecture": 3 * row + column, "shares": shares})
    return {"maps": maps, "moves": moves, "trees": trees}


def show_visits(results: dict, page) -> None:
    """Shows heat maps of the visits, and how often each cell is played."""
    page.text(
        "Each map is scaled to its most visited cell. The upper maps are one search each, as in "
        "the lecture; the lower maps are means over several searches."
    )
    for name, whose in (("one", "one search"), ("mean", "mean of several searches")):
        maps = [_draw_visits(np.array(row[name]), row["simulations"]) for row in results["maps"]]
        page.figure(f"Root visits from the empty board, {whose}.", *maps)
    rows = []
    for row in results["moves"]:
        shares = np.array(row["shares"])
        rows.append({
            "simulations": f"{row['simulations']:,}",
            "lecture's cell": row["lecture"],
            "our searches that play it": f"{shares[row['lecture']]:.0%}",
            "center": f"{shares[4]:.0%}",
            "a corner": f"{shares[[0, 2, 6, 8]].sum():.0%}",
            "an edge": f"{shares[[1, 3, 5, 7]].sum():.0%}",
        })  # fmt: skip
    page.text(f"The first move of {results['trees']} searches, and of the lecture's search:")
    page.table(rows)


def _draw_visits(visits: np.ndarray, simulations: int) -> Element:
    labels = [f"{count:,.0f}" for count in visits]
    game, heat = games.make("tic_tac_toe"), visits / visits.max()
    picture = draw_state(game, game.init(), values=heat, labels=labels, size=150)
    return gallery([picture], [f"{simulations:,} simulations"]).element


def compute_constant(setup: Setup) -> dict:
    """Measures strength, spread of visits and depth for each exploration constant."""
    budgets = setup.choose((10, 30, 100), (10, 50))
    constants = setup.choose(CONSTANTS, (0.0, 0.35, ROOT_2, 10.0))
    num_games, trees = setup.choose(2_048, 256), setup.choose(256, 64)
    run, key, rows = _search(_ROOM), setup.key("constant"), []
    opponents = {name: player(name) for name in _OPPONENTS}
    for budget in budgets:
        for number, constant in enumerate(constants):
            key_row = jax.random.fold_in(jax.random.fold_in(key, budget), number)
            row = {"simulations": budget, "constant": constant}
            for seat, (name, opponent) in enumerate(opponents.items()):
                games_played = play_games(
                    setup.game, opponent, classic(budget, constant), num_games,
                    jax.random.fold_in(key_row, seat), 1 - seat, batch_size=setup.batch_size,
                )  # fmt: skip
                row[name] = [int((games_played.outcomes == value).sum()) for value in (-1, 0, 1)]
            _, visits, depths = run(key_row, budget, constant, trees)
            row |= _shape(np.asarray(visits), np.asarray(depths))
            rows.append(row)
            setup.advance(1)
    return {"rows": rows, "games": num_games}


def _shape(visits: np.ndarray, depths: np.ndarray) -> dict:
    """Measures the spread of the root's visits and the depth of the trees."""
    shares = visits / visits.sum(axis=1, keepdims=True)
    entropy = -np.sum(np.where(shares > 0, shares * np.log(np.maximum(shares, 1e-9)), 0.0), axis=1)
    reached = np.where(depths >= 0, depths, 0)
    return {
        "moves in use": float(np.exp(entropy).mean()),
        "mean depth": float((reached.sum(axis=1) / (depths > 0).sum(axis=1)).mean()),
    }


def show_constant(results: dict, page) -> None:
    """Shows the curves of strength, what they imply, and the shape of the trees."""
    page.text(
        f"Points lost per game (a draw is half a point), from {results['games']:,} games per dot. "
        "The search moves first against Random and second against Minimax, where a draw is the "
        "best result. The lecture expects a U-shaped curve: with too little exploration, the move "
        "depends on the luck of the first rollouts; with too much, bad moves get many visits."
    )
    constants = list(dict.fromkeys(row["constant"] for row in results["rows"]))
    charts, verdicts = [], []
    for name, title in _CURVES.items():
        lines, bands = {}, {}
        for budget in dict.fromkeys(row["simulations"] for row in results["rows"]):
            rows = [row for row in results["rows"] if row["simulations"] == budget]
            lost, label = [_interval(row[name]) for row in rows], f"{budget} simulations"
            lines[label] = [interval.estimate for interval in lost]
            bands[label] = [i.low for i in lost], [i.high for i in lost]
            if name in _OPPONENTS:
                verdicts.append({"against": name, "simulations": budget} | _find_u(constants, lost))
        charts.append(line_chart(title, constants, lines, x_label="C", log_x=True, bands=bands))
    page.charts(
        "Strength, with 95% intervals, and shape of the tree by the constant C. The scale of C is "
        "logarithmic and includes 0.",
        *charts,
    )
    page.table(verdicts)


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


def _interval(measured: list[int] | float) -> Interval:
    """Returns the points lost per game from the opponent's outcome counts, or a mean unchanged."""
    if not isinstance(measured, list):
        return Interval(measured, measured, measured)
    losses, draws, wins = measured
    return statistics.mean_score(wins, draws, losses)


def compute_bound(setup: Setup) -> dict:
    """Computes the lecture's worked example of UCB1."""
    del setup
    example = []
    for step, name, lecture, total, parent, visits in LECTURE_BOUNDS:
        ours = total / visits + 2 * math.sqrt(math.log(parent) / visits)
        example.append({"step": step, "node": name, "lecture": lecture, "ours": ours})
    return {"example": example}


def show_bound(results: dict, page) -> None:
    """Shows the bonus and the worked example."""
    page.text("UCB1 adds the bonus C √(ln N / n) to a mean; here C = √2.")
    visits = list(range(1, 101))
    lines = {f"n = {n}": [ROOT_2 * math.sqrt(math.log(v) / n) for v in visits] for n in (1, 3, 10)}
    page.charts(
        "N is the number of visits of the parent, n that of the child.",
        line_chart("The bonus of UCB1", visits, lines, x_label="N", log_x=True),
    )
    rows = []
    for row in results["example"]:
        bounds = {name: f"{row[name]:.2f}" for name in ("lecture", "ours")}
        equal = "yes" if abs(row["ours"] - row["lecture"]) < 0.01 else "no"
        rows.append({"step": row["step"], "node": row["node"]} | bounds | {"equal": equal})
    page.text("The worked example of the lecture has C = 2 and outcomes 20 and 10:")
    page.table(rows)
    page.text(
        "The last outcome of S1 is 0, so its mean is 10 after two visits, and its bound is "
        "10 + 2√(ln 3 / 2) = 11.48."
    )
