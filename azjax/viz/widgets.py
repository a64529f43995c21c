"""Widgets for notebooks, with anywidget: JupyterLab, VS Code and marimo.

Widgets show the same JavaScript components as pages. Searches run in the browser, without Python.
"""

from typing import Any

from azjax._commands import command

try:
    import anywidget
    import traitlets
except ImportError as error:
    install = command("pip", "install", "anywidget")
    raise ImportError(f"widgets need anywidget: {install}") from error

from azjax import games
from azjax.games.base import Game
from azjax.runs.player import Player, changed
from azjax.search import PUCT, Algorithm
from azjax.viz import page
from azjax.viz.live import live_data, pack_player, quiet


class Widget(anywidget.AnyWidget):
    """One component of the JavaScript module: its `kind`, see `page.Section`, and its input."""

    _esm = traitlets.Unicode(page.script()).tag(sync=True)
    _css = traitlets.Unicode(page.style()).tag(sync=True)
    kind = traitlets.Unicode().tag(sync=True)
    data = traitlets.Dict().tag(sync=True)


class Explorer(Widget):
    """A search, phase by phase, from any position, with any evaluator and settings."""

    def __init__(
        self,
        player: Player | None = None,
        board: Any = None,
        search: Algorithm | None = None,
        game: Game | None = None,
        evaluator: str | None = None,
        seed: int = 0,
        **settings: Any,
    ):
        """Sets the first search; everything can be changed in the browser.

        Args:
          player: a trained player, from `azjax.load`, whose network is used.
          board: the first position, a state, or the nine numbers of tic-tac-toe.
          search: the algorithm; by default the player's without noise, or PUCT without a player.
          game: the rules, if there is no player; tic-tac-toe by default.
          evaluator: `"network"` (default with a player), `"uniform"`, `"rollout"` or `"exact"`.
          seed: of noise, of rollouts, and of the order in which UCT tries actions.
          **settings: settings of the algorithm to change, such as `num_simulations=200`.
        """
        if search is None:
            search = quiet(player.parts.search if player else PUCT(num_simulations=60))
        game = player.game if player else game or games.make("tic_tac_toe")
        networks = [pack_player(player)] if player else []
        search = changed(search, **settings)
        super().__init__(
            kind="explorer", data=live_data(game, search, networks, board, evaluator, seed)
        )


class Play(Widget):
    """A game against a trained network, which can show its policy."""

    def __init__(self, player: Player):
        """Packs the network."""
        data = live_data(player.game, quiet(player.parts.search), [pack_player(player)])
        super().__init__(kind="play", data=data)
