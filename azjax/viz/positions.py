"""All positions of tic-tac-toe with their truth, as JSON."""

from typing import Any

import numpy as np

from azjax.games import tic_tac_toe
from azjax.games.solver import Solution
from azjax.viz.page import pack


def position_table(solution: Solution) -> dict[str, Any]:
    """Lists every reachable position, for pages that answer without Python.

    Args:
      solution: of tic-tac-toe, from `solver.solve`.

    Returns:
      Strings and lists for JSON; `S` positions in the solution's order. `boards`: 9 of
      `.XO` each. `truth`: `int8 [S]`, the value under perfect play, in finished games the
      outcome, for the player to move. `optimal`: `uint16 [S]`, a bit for each move that keeps
      it. Arrays are little-endian, in base64.
    """
    return {
        "boards": tic_tac_toe.board_text(solution.states),
        "lines": tic_tac_toe.LINES.tolist(),
        "truth": pack(true_values(solution), "i1"),
        "optimal": pack(solution.optimal @ (1 << np.arange(9)), "<u2"),
    }


def true_values(solution: Solution) -> np.ndarray:
    """Returns `Solution.values`, but the outcome where the game is over."""
    truth = solution.values.copy()
    parents, actions = np.nonzero(solution.legal)
    children = solution.children[parents, actions]
    same = solution.player[children] == solution.player[parents]
    outcome = solution.rewards[parents, actions] * np.where(same, 1, -1)
    ends = solution.over[children]
    truth[children[ends]] = outcome[ends]
    return truth
