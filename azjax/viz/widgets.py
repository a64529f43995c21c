"""Widgets for notebooks, by anywidget: JupyterLab, VS Code and marimo.

A widget and a page show the same components of the same JavaScript module. Only the explorer
talks back: what it asks for is searched here, by the search that training uses.
"""

from typing import Any

import numpy as np

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise ImportError("widgets need anywidget: pip install 'azjax[notebook]'") from error

from azjax import games, oracle
from azjax.games import tic_tac_toe
from azjax.player import Player
from azjax.viz import page
from azjax.viz.positions import position_table
from azjax.viz.searches import MAX_SIMULATIONS, Request, Searcher


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
    """A search of tic-tac-toe, phase by phase, from any position, by any evaluator."""

    def __init__(self, player: Player | None = None, board: Any = (0,) * 9, **settings: Any):
        """Makes the first search.

        Args:
          player: a trained player, from `azjax.load`, to search with its network.
          board: the position to start from: nine numbers, or a state.
          **settings: other fields of `searches.Request`: `evaluator` (the network's if there is
            one), `c_puct`, `noise`, `simulations`, `seed`.

        Raises:
          ValueError: if the position cannot occur or is finished, or a setting is out of range.
        """
        searcher = Searcher(player)
        settings = {"evaluator": searcher.evaluators[0]} | settings
        cells = np.asarray(getattr(board, "board", board)).tolist()
        recording = searcher.record(Request(board=cells, **settings))
        super().__init__(
            kind="explorer",
            data={
                "recordings": [recording],
                "live": True,
                "evaluators": list(searcher.evaluators),
                "max_simulations": MAX_SIMULATIONS,
                "lines": tic_tac_toe.LINES.tolist(),
            },
        )
        self._searcher = searcher
        self.on_msg(self._answer)

    def _answer(self, widget, message: dict, buffers) -> None:
        """Searches what the browser asked for; bad input goes back as a sentence."""
        del widget, buffers
        answer = {"id": message.get("id")}
        try:
            answer["recording"] = self._searcher.record(Request(**message["settings"]))
        except (ValueError, TypeError, KeyError) as error:
            answer["error"] = str(error)
        self.send(answer)


class Encodings(Widget):
    """What the network sees of a position, and says about it."""

    def __init__(self, player: Player | None = None):
        """Lists all positions.

        Args:
          player: a trained player, to show its policy and value.
        """
        super().__init__(kind="encoding", data={"positions": _positions(player)})


class Play(Widget):
    """A game against a trained network, which shows what it thinks."""

    def __init__(self, player: Player):
        """Asks the network about all positions beforehand."""
        super().__init__(kind="play", data={"positions": _positions(player)})


def _positions(player: Player | None) -> dict[str, Any]:
    solution = oracle.solve(games.make("tic_tac_toe"))
    name = f"iteration {player.iteration}" if player else ""
    return position_table(solution, player, name)
