"""The `Positions` record: labelled positions for games too large for `solver.solve`."""

from typing import Any, NamedTuple

import numpy as np

ILLEGAL = -2  # Marks illegal actions among outcomes.


class Positions(NamedTuple):
    """Positions with two or more legal actions and the outcome of each action.

    They are used only for evaluation, not for training.

    Attributes:
      states: every leaf `[S, ...]`.
      outcomes: `int8 [S, A]`, the outcome of each action for the mover, under perfect play after
        it: 1 for a win, 0 for a draw, -1 for a loss, and `ILLEGAL` for illegal actions.
      classes: the names of the `K` classes.
      class_of: `int [S]`, the class of each position.
      apart: names of the classes that are excluded from means over classes.
    """

    states: Any
    outcomes: np.ndarray
    classes: tuple[str, ...]
    class_of: np.ndarray
    apart: tuple[str, ...] = ()

    def __repr__(self):
        return f"Positions(outcomes={self.outcomes.shape}, classes={self.classes})"
