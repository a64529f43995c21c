"""A search as JSON: everything that the explorer shows, so that it has nothing to compute."""

from typing import Any

import numpy as np

from azjax.drawing import winning_lines
from azjax.games import tic_tac_toe
from azjax.search import PUCT
from azjax.viz.layout import children_of, most_visited, tidy
from azjax.viz.trace import Simulation, Trace, trace

SPACING, LEVEL = 64, 118  # Pixels between siblings, and between plies.
_NODE_SIZE = (56, 76)
_MOST_SHOWN = 48  # Nodes in one picture; the path of its simulation comes on top.
_DIGITS = 4


def record(search: PUCT, tree: Any, row: int = 0, **about: Any) -> dict[str, Any]:
    """Turns a finished PUCT search of tic-tac-toe into JSON.

    Args:
      search: what the search was made with.
      tree: `SearchResult.tree`.
      row: which of the batch.
      **about: what else to note, such as `title`, `evaluator`, `noise` and `seed`.

    Returns:
      A dictionary of plain numbers, lists and strings. Nodes are numbered in the order of
      their making, from 0 for the root.
      `nodes`: positions, priors over the legal actions, values and rewards, and `y`;
      `simulations`: path, actions, leaf and backup of each;
      `snapshots`: of each node `[k, visits, value, N, Q, U, S]` after its making and after
      each simulation `k` that changed it, lists over its legal actions, with Q from its own
      player's side and `S = Q + U`;
      `frames`: which nodes to show during each simulation, `x` of each, and how many children
      are hidden.
      Numbers are rounded to four decimals, scores to more where four would make the action
      taken one of several that are highest.

    Raises:
      ValueError: if the tree cannot be traced; see `trace.trace`.
    """
    traced = trace(search, tree, row)
    number = {int(node): i for i, node in enumerate(traced.nodes)}  # Old ones have gaps.
    states, visits = traced.states, traced.history.children_visits[-1, 0]
    return about | {
        "c_puct": search.c_puct,
        "board": states.board[0].tolist(),
        "player": int(states.player[0]),
        "action": int(visits.argmax()),
        "node_size": list(_NODE_SIZE),
        "nodes": [_node(traced, number, i) for i in number],
        "simulations": [_simulation(number, s) for s in traced.simulations],
        "snapshots": [_snapshots(traced, i) for i in number],
        "frames": [_frame(traced, number, k) for k in range(len(traced.simulations) + 1)],
    }


def _round(numbers) -> list[float]:
    return [round(float(x), _DIGITS) + 0.0 for x in numbers]


def _legal(traced: Trace, node: int) -> np.ndarray:
    return np.flatnonzero(np.isfinite(traced.history.terms.score[-1, node]))


def _node(traced: Trace, number: dict[int, int], i: int) -> dict[str, Any]:
    states, parent, legal = traced.states, int(traced.parents[i]), _legal(traced, i)
    lines = winning_lines(states.board[i], tic_tac_toe.LINES)
    return {
        "parent": number.get(parent),
        "action": int(traced.actions[i]) if parent >= 0 else None,
        "depth": int(traced.depths[i]),
        "y": int(traced.depths[i]) * LEVEL,
        "board": states.board[i].tolist(),
        "player": int(states.player[i]),
        "over": bool(states.over[i]),
        "line": lines[0] if lines else None,
        "value": _round([traced.values[i]])[0],
        "reward": float(traced.rewards[i]),
        "actions": legal.tolist(),
        "priors": _round(traced.priors[i, legal]),
        "born": int((traced.history.node_visits[:, i] == 0).sum()),
    }


def _simulation(number: dict[int, int], simulation: Simulation) -> dict[str, Any]:
    return {
        "path": [number[i] for i in simulation.path],
        "actions": list(simulation.actions),
        "leaf": number[simulation.leaf],
        "new": simulation.new,
        "value": _round([simulation.value])[0],
        "backup": _round(simulation.backup),
    }


def _snapshots(traced: Trace, i: int) -> list[list[Any]]:
    history, legal = traced.history, _legal(traced, i)
    visits = history.node_visits[:, i]
    changes = np.flatnonzero(np.diff(visits, prepend=0))
    return [
        [
            int(k),
            int(visits[k]),
            *_round([history.node_values[k, i]]),
            history.children_visits[k, i, legal].tolist(),
            _round(history.terms.q[k, i, legal]),
            _round(history.terms.bonus[k, i, legal]),
            _scores(np.asarray(history.terms.score[k, i, legal])),
        ]
        for k in changes
    ]


def _scores(scores: np.ndarray) -> list[float]:
    """Rounds so that the first of the highest stays the first of the highest."""
    for digits in range(_DIGITS, 9):
        rounded = np.round(scores.astype(np.float64), digits) + 0.0
        if not len(scores) or rounded.argmax() == scores.argmax():
            return rounded.tolist()
    return scores.astype(np.float64).tolist()


def _frame(traced: Trace, number: dict[int, int], k: int) -> dict[str, Any]:
    """Places what there is to see during simulation `k`, and after it."""
    visits = np.where(traced.depths >= 0, traced.history.node_visits[k], 0)
    path = (*traced.simulations[k - 1].path, traced.simulations[k - 1].leaf) if k else (0,)
    shown = most_visited(visits, _MOST_SHOWN, path)
    places = tidy(children_of(traced.parents, traced.actions, shown))
    below = np.bincount(traced.parents[(visits > 0) & (traced.depths > 0)], minlength=len(visits))
    below -= np.bincount(traced.parents[[i for i in shown if i]].astype(int), minlength=len(below))
    return {
        "ids": [number[i] for i in shown],
        "x": [round(places[i] * SPACING) for i in shown],
        "hidden": [[number[i], int(below[i])] for i in shown if below[i]],
    }
