"""The `Positions` record: positions to evaluate players on where a game cannot be solved."""

from typing import Any, NamedTuple

import numpy as np

ILLEGAL = -2  # Marks illegal actions among outcomes.


class Positions(NamedTuple):
    """Positions with two or more legal actions and the known outcome of each, in classes.

    They are for evaluation only: nothing but `azjax.proof.labelled` reads the outcomes.

    Attributes:
      states: every leaf `[S, ...]`.
      outcomes: `int8 [S, A]`, of each action, for the mover, under perfect play after it: 1 for
        a win, 0 for a draw, -1 for a loss, and `ILLEGAL` where it is not allowed.
      classes: the names of the `K` classes.
      class_of: `int [S]`, the class of each position.
      apart: the classes that a mean over the classes leaves out.
    """

    states: Any
    outcomes: np.ndarray
    classes: tuple[str, ...]
    class_of: np.ndarray
    apart: tuple[str, ...] = ()

    def __repr__(self):
        return f"Positions(outcomes={self.outcomes.shape}, classes={self.classes})"
