"""The canonical orientation of boards."""

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import Game, Symmetries


def symmetries_of(game: Game, symmetric: bool = True) -> Symmetries:
    """Returns the symmetries of a game; only the identity if it has none, or if not `symmetric`."""
    if symmetric and game.symmetries is not None:
        return game.symmetries
    return Symmetries(np.arange(np.prod(game.board_shape))[None], np.arange(game.num_actions)[None])


def orient(cells: np.ndarray, planes: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Turns boards `[B, H, W, C]` by their symmetries `cells [G, H * W]`, see `Symmetries`.

    Returns:
      The smallest of all symmetric copies in lexicographic order, `[B, H * W * C]`, and which
      symmetries lead to it, `bool [B, G]`: several if the position is symmetric.
    """
    grid = planes.reshape(planes.shape[0], cells.shape[1], -1)
    copies = [grid[:, order].reshape(planes.shape[0], -1) for order in cells]
    smallest = copies[0]
    for other in copies[1:]:
        first = jnp.argmax(smallest != other, axis=1)[:, None]  # The first difference.
        is_smaller = jnp.take_along_axis(other < smallest, first, axis=1)
        smallest = jnp.where(is_smaller, other, smallest)
    is_smallest = [jnp.all(copy == smallest, axis=1) for copy in copies]
    return smallest, jnp.stack(is_smallest, axis=1)
