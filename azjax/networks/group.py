"""A game's symmetries as a group that acts on the layers of a network."""

import itertools
from typing import Any, NamedTuple

import jax
import numpy as np

from azjax.games.base import Game, Symmetries


class Group(NamedTuple):
    """A game's `G` symmetries as permutations of cells, of a layer's copies, and of actions.

    `K` of them form a group: the identity and commuting involutions. The symmetries are ordered so
    that each element of this group permutes `K` contiguous blocks of copies.

    Attributes:
      cells: `int [G, H * W]`, as in `Symmetries`.
      copies: `int [G, G]`, how each symmetry permutes the copies of a layer.
      actions: `int [G, A]`, the inverses of those in `Symmetries`.
      characters: `int [K, K]`, +1 or -1, the symmetric matrix of the involutions' characters.
    """

    cells: np.ndarray
    copies: np.ndarray
    actions: np.ndarray
    characters: np.ndarray


def make_group(symmetries: Symmetries) -> Group:
    """Computes how symmetries compose, and orders them as `Group` requires."""
    cells = symmetries.cells
    composed = cells[np.arange(len(cells))[:, None, None], cells]  # [G, G, H * W]
    table = np.argmax((composed[:, :, None] == cells).all(axis=-1), axis=-1)
    commuting = _commuting(table)
    heads = [copy for copy in range(len(table)) if copy == min(table[commuting, copy])]
    order = table[np.ix_(commuting, heads)].ravel()
    bits = np.arange(len(commuting))
    common = (bits[:, None] & bits)[..., None] >> np.arange(len(commuting)) & 1
    return Group(
        cells=cells[order],
        copies=np.argsort(order)[table[np.ix_(order, order)]],
        actions=np.argsort(symmetries.actions[order], axis=1),
        characters=(-1) ** common.sum(axis=-1),
    )


def group_for(game: Game, widths: dict[str, Any]) -> Group:
    """Returns the group of a game with symmetries.

    Args:
      game: the rules.
      widths: layer widths by the name of their setting; must be multiples of `G`.

    Raises:
      ValueError: if a width is not a multiple of `G`.
    """
    assert game.symmetries is not None
    given = jax.tree.leaves(list(widths.values()))
    if any(width % game.num_symmetries for width in given):
        names, values = " and ".join(widths), " and ".join(map(str, widths.values()))
        raise ValueError(
            f"layers are divided among the {game.num_symmetries} symmetries of {game.name}: make "
            f"{names}, now {values}, multiples of {game.num_symmetries}"
        )
    return make_group(game.symmetries)


def _commuting(table: np.ndarray) -> list[int]:
    """Returns the largest group of commuting involutions that up to three of them generate.

    The elements are row numbers of the composition table. Element `i` is the product of the
    generators whose bits are set in `i`.
    """
    found = [0]
    involutions = [g for g in range(1, len(table)) if table[g, g] == 0]
    for size in range(1, 4):
        for factors in itertools.combinations(involutions, size):
            group = [0]
            for factor in factors:
                group += [int(table[factor, g]) for g in group]
            commute = all(table[a, b] == table[b, a] for a, b in itertools.combinations(factors, 2))
            if commute and len(set(group)) > len(found):
                found = group
    return found
