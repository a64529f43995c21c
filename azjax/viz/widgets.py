"""Widgets for notebooks, by anywidget: JupyterLab, VS Code and marimo.

A widget and a page show the same components of the same JavaScript module, which asks nothing of
Python: what they search is searched in the browser.
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
    """One component of the JavaScript module.

    Attributes:
      kind: which; see `page.Section`.
      data: what it shows.
    """

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)
    kind = traitlets.Unicode().tag(sync=True)
    data = traitlets.Dict().tag(sync=True)

    @traitlets.default("_esm")
    def _script(self) -> str:
        return page.script()

    @traitlets.default("_css")
    def _style(self) -> str:
        return page.style()


class Explorer(Widget):
    """A search, phase by phase: of any position, by any evaluator, with any settings."""

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
        """Chooses what is searched first; everything can be changed in the browser.

        Args:
          player: a trained player, from `azjax.load`, to search with its network.
          board: the position to start from, a state, or the nine numbers of tic-tac-toe.
          search: the algorithm; by default the player's without its noise, or else PUCT.
          game: the rules, without a player; tic-tac-toe by default.
          evaluator: `"network"`, which is the default with a player, `"uniform"`, `"rollout"` or
            `"exact"`.
          seed: of noise, rollouts and the order of UCT.
          **settings: settings of the algorithm to change, such as `num_simulations=200`.

        Raises:
          ValueError: if the position cannot occur or is finished, a setting is unknown or out of
            range, or the browser does not know the game.
        """
        if search is None:
            search = quiet(player.parts.search if player else PUCT(num_simulations=60))
        game = player.game if player else game or games.make("tic_tac_toe")
        networks = [pack_player(player)] if player else []
        search = changed(search, **settings)
        super().__init__(
            kind="explorer", data=live_data(game, search, networks, board, evaluator, seed)
        )


class Encodings(Widget):
    """What the network sees of a position, and says about it."""

    def __init__(self, player: Player | None = None):
        """Begins with the first position.

        Args:
          player: a trained player, to show its policy and value; without one the game is
            tic-tac-toe.

        Raises:
          ValueError: if the browser does not know the game, or cannot compute the network.
        """
        super().__init__(kind="encoding", data=_network_data(player))


class Play(Widget):
    """A game against a trained network, which shows what it thinks."""

    def __init__(self, player: Player):
        """Packs the network.

        Raises:
          ValueError: if the browser does not know the game, or cannot compute the network.
        """
        super().__init__(kind="play", data=_network_data(player))


def _network_data(player: Player | None) -> dict[str, Any]:
    if player is None:
        return live_data(games.make("tic_tac_toe"), PUCT())
    data = live_data(player.game, quiet(player.parts.search), [pack_player(player)])
    return data | {"encoding": player.parts.network.encoding}
