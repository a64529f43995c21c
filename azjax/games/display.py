"""The `Display` record: text and pictures of a game. The rules do not depend on it."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax


def write_state(state: Any) -> str:
    """Formats the arrays of a state, one per line, such as `player 0`."""
    leaves = jax.tree_util.tree_leaves_with_path(state)
    named = [(jax.tree_util.keystr(k, simple=True, separator="."), leaf) for k, leaf in leaves]
    return "\n".join(f"{name} {leaf}".strip() for name, leaf in named)


class Display(NamedTuple):
    """Text, pictures and names of actions. Every function is optional and runs on the host.

    Attributes:
      render: `state -> str`, the position as text for a terminal.
      draw: `(state, values=None, labels=None, last=None, size=120) -> drawing.Drawing`, a picture.
        `values [A]` in [0, 1] are a heat map and `labels [A]` are text, both drawn where their
        actions lead; `last` is the last action, which is marked; `size` is the width in pixels.
        If None, pictures show the text of `render`.
      name_actions: `state -> [A]`, names of the actions in a position, such as `d3`. If None, the
        names are the numbers of the actions.
    """

    render: Callable[[Any], str] = write_state
    draw: Callable[..., Any] | None = None
    name_actions: Callable[[Any], Sequence[str]] | None = None
