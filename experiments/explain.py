"""Writes one page that explains a trained player: `python -m experiments.explain`."""

from experiments import interrupts

if __name__ == "__main__":
    interrupts.listen()

import dataclasses
import pathlib
import sys
from typing import Any

from azjax import oracle
from azjax.drawing import check_folder
from azjax.games import tic_tac_toe
from azjax.player import Player
from azjax.viz import atlas, page
from azjax.viz.positions import position_table
from azjax.viz.searches import Request, Searcher
from experiments import console, own

_POSITIONS = {
    "Empty board": "... ... ...",
    "O answers a corner": "X.. ... ...",
    "O must block": "XX. .O. ...",
    "X can win at once": "XX. OO. ...",
    "O between two corners": "X.. .O. ..X",
}
_SIMULATIONS = 48
_VARIED = ({"c_puct": 0.25}, {"c_puct": 5.0}, {"noise": 0.25})  # On the empty board.


@dataclasses.dataclass(frozen=True)
class Options:
    """Writes a page to share: a search phase by phase, what the network sees, a game against it."""

    out: pathlib.Path = pathlib.Path("explain.html")
    """The page."""
    typed: own.Option = own.NOTHING


def explain(options: Options) -> int:
    """Writes the page; returns the exit status."""
    check_folder(options.out)
    run_dir, player = own.open_run(options.typed)
    searcher = Searcher(player)
    solution = searcher.solution
    name = f"{run_dir.resolve().name}, iteration {player.iteration}"
    table = {"positions": position_table(solution, player, name)}
    sections = [
        page.Section(
            "A search, phase by phase",
            "What AlphaZero does before a move, as azjax did it: recorded, not re-enacted.",
            kind="explorer",
            data={
                "recordings": _record_all(searcher),
                "live": False,
                "evaluators": list(searcher.evaluators),
                "lines": tic_tac_toe.LINES.tolist(),
            },
        ),
        page.Section(
            "What the network sees, and says",
            "Click cells to set up a position.",
            kind="encoding",
            data=table,
        ),
        page.Section(
            "Play against the network",
            "It answers with its most probable move, without any search.",
            kind="play",
            data=table,
        ),
        *_atlas(run_dir, player, solution),
    ]
    path = page.write_page(options.out, f"azjax: {name}", sections)
    print(f"{path}: {path.stat().st_size / 1e6:.2f} MB")
    return 0


def _record_all(searcher: Searcher) -> list[dict[str, Any]]:
    """Searches every position with every evaluator, and the first with other settings, too."""
    requests = [
        (title, {"board": _cells(text), "evaluator": evaluator})
        for title, text in _POSITIONS.items()
        for evaluator in searcher.evaluators
    ]
    title, first = requests[0]
    requests += [(title, first | varied) for varied in _VARIED]
    return [
        searcher.record(Request(simulations=_SIMULATIONS, **settings), title)
        for title, settings in requests
    ]


def _cells(text: str) -> tuple[int, ...]:
    return tuple({"X": 1, "O": -1, ".": 0}[mark] for mark in text.replace(" ", ""))


def _atlas(run_dir: pathlib.Path, player: Player, solution: oracle.Solution) -> list[page.Section]:
    """The whole game over the iterations, if the training left portraits."""
    try:
        iterations, portraits = atlas.load_portraits(run_dir)
    except ValueError as error:
        console.note(f"without the picture of all positions: {error}")
        return []
    places = atlas.make_atlas(player.game, solution)
    return [
        page.Section(
            "All positions, over the training",
            "Every position of the game up to symmetry, ply by ply from top to bottom.",
            kind="atlas",
            data=atlas.atlas_data(player.game, solution, places, iterations, portraits),
        )
    ]


main = console.make_main(explain, Options, "experiments.explain", "the page was not written")

if __name__ == "__main__":
    sys.exit(main())
