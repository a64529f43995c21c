"""Inside one search: where its visits go, and what the exploration constant does."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax import games
from azjax.arena import play_games
from azjax.evaluators import rollout_evaluator
from azjax.game import init_batch
from azjax.search import UCT
from experiments.lecture.setup import (
    ROOT_2,
    Setup,
    classic,
    flexible_search,
    random_player,
    searcher,
)

BUDGETS = (50, 200, 500, 1_000, 5_000)
# The lecture's single searches: simulations, and the move played, as row and column.
LECTURE_MOVES = ((10, (1, 0)), (250, (2, 2)), (500, (1, 1)), (1_000, (1, 1)))
CONSTANTS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, ROOT_2, 2.0, 3.0, 5.0, 10.0)


_ROOM = 1_000  # Simulations that most searches here have room for.


@functools.cache
def _search(room: int):
    """Searches from the empty board: `(key, count, exploration, trees) -> SearchResult`."""
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
    """The depth of every node `[B, N]`; -1 where there is none. Parents come before children."""

    def step(node, depths):
        parent = parents[:, node]
        above = jnp.take_along_axis(depths, jnp.maximum(parent, 0)[:, None], axis=1)[:, 0]
        return depths.at[:, node].set(jnp.where(parent >= 0, above + 1, -1))

    start = jnp.full(parents.shape, -1).at[:, 0].set(0)
    return jax.lax.fori_loop(1, parents.shape[1], step, start)


def compute_visits(setup: Setup) -> dict:
    """Root visits from the empty board for growing numbers of simulations."""
    run, key = _search(max(BUDGETS)), setup.key("visits")
    trees, maps = setup.choose(16, 4), []
    for budget in BUDGETS:
        _, visits, _ = run(jax.random.fold_in(key, budget), budget, ROOT_2, trees)
        maps.append({
            "simulations": budget, "one": visits[0].tolist(), "mean": visits.mean(0).tolist(),
        })  # fmt: skip
        setup.advance(1)
    run, moves, trees = _search(_ROOM), [], setup.choose(256, 64)
    for simulations, (row, column) in LECTURE_MOVES:
        action, _, _ = run(
            jax.random.fold_in(key, 10_000 + simulations), simulations, ROOT_2, trees
        )
        share = np.bincount(np.asarray(action), minlength=9) / trees
        moves.append({
            "simulations": simulations, "lecture": 3 * row + column, "shares": share.tolist(),
        })  # fmt: skip
    return {"maps": maps, "moves": moves, "trees": trees}


def show_visits(results: dict, page) -> None:
    """Heat maps, and how often each cell is played."""
    page.text(
        "Each map is scaled to its most visited cell. Above: one search, as in the lecture. "
        "Below: the mean of several. With few simulations chance decides; the centre, then the "
        "corners, come out with more."
    )
    panels = page.axes(
        "visits", "Root visits from the empty board.", columns=len(BUDGETS), rows=2, size=(1.8, 2.0)
    )
    for column, row in enumerate(results["maps"]):
        for line, name in enumerate(("one", "mean")):
            visits = np.array(row[name]).reshape(3, 3)
            axes = panels[line * len(BUDGETS) + column]
            axes.imshow(visits / visits.max(), cmap="viridis", vmin=0, vmax=1)
            axes.set(xticks=[], yticks=[], title=f"{row['simulations']:,}" if not line else "")
            for cell, count in enumerate(visits.ravel()):
                bright = count < 0.6 * visits.max()
                axes.text(cell % 3, cell // 3, f"{count:,.0f}", ha="center", va="center",
                          fontsize=7, color="white" if bright else "black")  # fmt: skip
    rows = []
    for row in results["moves"]:
        shares = np.array(row["shares"])
        rows.append((
            f"{row['simulations']:,}", f"{row['lecture']}", f"{shares[row['lecture']]:.0%}",
            f"{shares[4]:.0%}", f"{shares[[0, 2, 6, 8]].sum():.0%}",
            f"{shares[[1, 3, 5, 7]].sum():.0%}",
        ))  # fmt: skip
    page.text(f"The first move of {results['trees']} searches, and that of the lecture's one:")
    page.table(
        ("simulations", "lecture's cell", "our searches that play it", "centre", "a corner",
         "an edge"),
        rows,
    )  # fmt: skip


def compute_constant(setup: Setup) -> dict:
    """Strength, spread and depth against the exploration constant."""
    budgets = setup.choose((10, 30, 100), (10, 50))
    constants = setup.choose(CONSTANTS, (0.0, 0.35, ROOT_2, 10.0))
    num_games, trees = setup.choose(2_048, 256), setup.choose(256, 64)
    run, key, rows = _search(_ROOM), setup.key("constant"), []
    opponents = {"random": random_player(), "minimax": searcher("minimax")}
    for budget in budgets:
        for number, constant in enumerate(constants):
            key_row = jax.random.fold_in(jax.random.fold_in(key, budget), number)
            row = {"simulations": budget, "constant": constant}
            for seat, (name, opponent) in enumerate(opponents.items()):
                found = play_games(
                    setup.game, opponent, classic(budget, constant), num_games,
                    jax.random.fold_in(key_row, seat), 1 - seat, batch_size=setup.batch_size,
                )  # fmt: skip
                row[name] = [int((found.outcomes == value).sum()) for value in (-1, 0, 1)]
            _, visits, depths = run(key_row, budget, constant, trees)
            row |= _shape(np.asarray(visits), np.asarray(depths))
            rows.append(row)
            setup.advance(1)
    return {"rows": rows, "games": num_games}


def _shape(visits: np.ndarray, depths: np.ndarray) -> dict:
    """How evenly the root's visits are spread, and how deep the trees are."""
    shares = visits / visits.sum(axis=1, keepdims=True)
    entropy = -np.sum(np.where(shares > 0, shares * np.log(np.maximum(shares, 1e-9)), 0.0), axis=1)
    reached = np.where(depths >= 0, depths, 0)
    return {
        "moves in use": float(np.exp(entropy).mean()),
        "largest share": float(shares.max(axis=1).mean()),
        "mean depth": float((reached.sum(axis=1) / (depths > 0).sum(axis=1)).mean()),
        "deepest": float(depths.max(axis=1).mean()),
    }


def show_constant(results: dict, page) -> None:
    """The U-shaped curves, and the shape of the trees."""
    page.text(
        f"Points lost per game (a draw is half a point), {results['games']:,} games for every dot: "
        "against Random moving first, and against Minimax moving second, where a draw, half a "
        "point, is all there is to have. Too little exploration settles on what the first "
        "rollouts happened to favour; too much never refines the best line: with enough "
        "simulations the curve is a U. With 10, every move is tried about once, whatever C is."
    )
    panels = page.axes(
        "constant", "Strength and shape of the tree against the exploration constant C "
        "(at the left edge: 0). Dotted: √2.", columns=2, rows=2,
    )  # fmt: skip
    names = ("random", "minimax", "moves in use", "mean depth")
    titles = ("points lost to Random, per game", "points lost to Minimax, per game",
              "moves in use at the root (exp of entropy)", "mean depth of the tree")  # fmt: skip
    for axes, name, title in zip(panels, names, titles, strict=True):
        for budget in dict.fromkeys(row["simulations"] for row in results["rows"]):
            rows = [row for row in results["rows"] if row["simulations"] == budget]
            values = [
                _lost(row[name]) if isinstance(row[name], list) else row[name] for row in rows
            ]
            axes.plot([max(row["constant"], 0.05) for row in rows], values, "o-", markersize=3,
                      label=f"{budget} simulations")  # fmt: skip
        axes.axvline(ROOT_2, color="black", linestyle=":", linewidth=1)
        axes.set(xscale="log", title=title, xlabel="C")
    panels[0].legend(fontsize=8)
    best = {}
    for row in results["rows"]:
        lost = _lost(row["random"]) + _lost(row["minimax"])
        budget = row["simulations"]
        if budget not in best or lost < best[budget][0]:
            best[budget] = lost, row["constant"]
    page.table(
        (
            "simulations",
            "best C of those tried (where the curve is flat, by chance)",
            "points lost to both with it",
        ),
        [(f"{n:,}", f"{constant:.2f}", f"{lost:.3f}") for n, (lost, constant) in best.items()],
    )


def _lost(counts: list[int]) -> float:
    return (counts[1] / 2 + counts[2]) / sum(counts)


def compute_bound(setup: Setup) -> dict:
    """The lecture's worked example of UCB1."""
    del setup

    def bound(total, parent, visits):
        return total / visits + 2 * math.sqrt(math.log(parent) / visits)

    return {
        "example": [
            {"step": "2.1", "node": "S1", "lecture": 20.0, "ours": bound(20, 1, 1)},
            {"step": "3.1", "node": "S1", "lecture": 21.67, "ours": bound(20, 2, 1)},
            {"step": "3.1", "node": "S2", "lecture": 11.67, "ours": bound(10, 2, 1)},
            {"step": "4.1", "node": "S1", "lecture": 11.48, "ours": bound(20, 3, 2)},
            {"step": "4.1", "node": "S2", "lecture": 12.10, "ours": bound(10, 3, 1)},
        ]
    }


def show_bound(results: dict, page) -> None:
    """The surface of the bonus, and the worked example."""
    page.text("The bonus C √(ln N / n) that UCB1 adds to a mean, for C = √2.")
    panels = page.axes("bound", "The bonus for 10 and for 100 visits of the parent.", columns=2)
    for axes, most in zip(panels, (10, 100), strict=True):
        visits = np.arange(1, most + 1)
        surface = ROOT_2 * np.sqrt(np.log(visits)[None, :] / visits[:, None])
        shown = axes.contourf(visits, visits, surface, cmap="viridis")
        axes.figure.colorbar(shown, ax=axes)
        axes.set(xlabel="N, visits of the parent", ylabel="n, visits of the child")
    rows = []
    for row in results["example"]:
        same = "yes" if abs(row["ours"] - row["lecture"]) < 0.01 else "no"
        rows.append((row["step"], row["node"], f"{row['lecture']:.2f}", f"{row['ours']:.2f}", same))
    page.text("The lecture's walk-through, where C is 2 and the outcomes are 20 and 10:")
    page.table(("step", "node", "lecture", "ours", "equal"), rows)
    page.text(
        "The last outcome of S1 is 0, so that its mean is 10 after two visits: "
        "10 + 2√(ln 3 / 2) = 11.48.",
        small=True,
    )
