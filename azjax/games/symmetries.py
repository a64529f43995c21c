"""The canonical orientation of boards."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import Game, Symmetries


def symmetries_of(game: Game, symmetric: bool = True) -> Symmetries:
    """Returns the symmetries of a game; only the identity if it has none, or if not `symmetric`."""
    if symmetric and game.symmetries is not None:
        return game.symmetries
    return Symmetries(np.arange(np.prod(game.board_shape))[None], np.arange(game.num_actions)[None])


class Oriented(NamedTuple):
    """Positions in canonical orientation."""

    # `[B, H * W * C]`, in lexicographic order the smallest of all symmetric copies of the planes.
    planes: jax.Array
    # `bool [B, G]`, the symmetries that lead to it: several if the position is symmetric.
    is_smallest: jax.Array


def orient(cells: np.ndarray, planes: jax.Array) -> Oriented:
    """Turns boards into their canonical orientation.

    Args:
      cells: `int [G, H * W]`, the symmetries of the board, see `games.base.Symmetries`.
      planes: `[B, H, W, C]`.
    """
    grid = planes.reshape(planes.shape[0], cells.shape[1], -1)
    copies = [grid[:, order].reshape(planes.shape[0], -1) for order in cells]
    smallest = copies[0]
    for other in copies[1:]:
        first = jnp.argmax(smallest != other, axis=1)[:, None]  # The first difference.
        is_smaller = jnp.take_along_axis(other < smallest, first, axis=1)
        smallest = jnp.where(is_smaller, other, smallest)
    is_smallest = [jnp.all(copy == smallest, axis=1) for copy in copies]
    return Oriented(smallest, jnp.stack(is_smallest, axis=1))
