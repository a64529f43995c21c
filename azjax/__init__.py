"""AlphaZero as pure functions in JAX.

The public API consists of the names in `__all__` below and of the functions and classes of the
modules that the API pages of the guide list; see `docs/api/index.md`. Names are imported at first
use, so `import azjax` is fast.
"""

import importlib
from typing import TYPE_CHECKING, Any

from azjax._version import __version__ as __version__

if TYPE_CHECKING:
    from azjax import callbacks, games, networks, players, proof, runs, search, training, viz
    from azjax.comparison import compare
    from azjax.diagnosis import diagnose
    from azjax.games import make
    from azjax.games.base import Game
    from azjax.games.check import check_game
    from azjax.games.solver import solve
    from azjax.networks import Network, from_module, make_network
    from azjax.networks.nnx import from_nnx
    from azjax.players import Agent
    from azjax.players.arena import play_match
    from azjax.program import train
    from azjax.proof.certificate import verify
    from azjax.proof.seat_proof import prove_seat, repair
    from azjax.runs import Config, Player, load, make_parts, presets
    from azjax.runs.export import export
    from azjax.search import PUCT, UCT, Gumbel, make_search, mctx_fns
    from azjax.training import Parts
    from azjax.training.loop import Callback, iterate

__all__ = ["callbacks", "games", "networks", "players", "proof", "runs", "search"]
__all__ += ["training", "viz"]
__all__ += ["Game", "make", "check_game", "solve"]
__all__ += ["Network", "from_module", "from_nnx", "make_network"]
__all__ += ["PUCT", "UCT", "Gumbel", "make_search", "mctx_fns"]
__all__ += ["Parts", "Callback", "iterate", "Config", "presets", "make_parts", "train"]
__all__ += ["compare", "diagnose"]
__all__ += ["Player", "load", "export", "verify", "prove_seat", "repair", "Agent", "play_match"]
_MODULES = {  # Where each name is defined; other names are modules.
    **dict.fromkeys(["PUCT", "UCT", "Gumbel", "make_search", "mctx_fns"], "search"),
    **dict.fromkeys(["Network", "from_module", "make_network"], "networks"),
    **dict.fromkeys(["Config", "Player", "load", "make_parts", "presets"], "runs"),
    **dict.fromkeys(["Callback", "iterate"], "training.loop"),
    "Agent": "players",
    "Game": "games.base",
    "Parts": "training",
    "check_game": "games.check",
    "compare": "comparison",
    "diagnose": "diagnosis",
    "export": "runs.export",
    "from_nnx": "networks.nnx",  # Separate, as `flax.nnx` takes a third of a second to import.
    "make": "games",
    "play_match": "players.arena",
    "solve": "games.solver",
    "train": "program",
    "verify": "proof.certificate",
    **dict.fromkeys(["prove_seat", "repair"], "proof.seat_proof"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in _MODULES:
        return importlib.import_module(f"azjax.{name}")
    return getattr(importlib.import_module(f"azjax.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
