"""AlphaZero as pure functions in JAX.

`make` returns a game, `load` a trained player, and `search` is the package of searches; everything
else is imported from its module, in the order of the package's map: `game`, `games`, `oracle`,
`verify`, `network`, `evaluators`, `search`, `agents`, `arena`, `ratings`, `judge`, `selfplay`,
`targets`, `replay`, `learner`, `train`, `config`, `checkpoint`, `player`.
"""

import importlib
from typing import TYPE_CHECKING

from azjax import games
from azjax.games import make

if TYPE_CHECKING:
    from azjax import search
    from azjax.runs.player import Player

__version__ = "0.1.0"
__all__ = ["games", "load", "make", "search"]


def load(run_dir: str, iteration: int | None = None, game=None, network=None) -> "Player":
    """Loads the newest sound checkpoint of a run, or that of one iteration; see `player.load`."""
    from azjax.runs import player  # What trains takes a while to import.

    return player.load(run_dir, iteration, game, network)


def __getattr__(name: str):
    if name == "search":  # It imports mctx, which takes a while.
        return importlib.import_module("azjax.search")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
