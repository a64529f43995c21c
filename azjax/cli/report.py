"""Writes the report of a training run again: `azjax report`."""

import dataclasses
import pathlib

from azjax.cli import console, own
from azjax.drawing import check_folder
from azjax.games import solver
from azjax.viz import atlas, film, report


@dataclasses.dataclass(frozen=True)
class Options:
    """Writes a run's report.html: proof, curves, every position, first moves and games."""

    film: pathlib.Path | None = None
    """Draw a film of the whole game over the iterations, too: a name that ends in .svg."""
    typed: own.Option = own.NOTHING


def write(options: Options) -> int:
    """Writes what was asked for and says where it is."""
    if options.film:
        if options.film.suffix.lower() != ".svg":
            raise ValueError(f"{options.film} is no SVG: give a name that ends in .svg")
        check_folder(options.film)
    run_dir, player = own.open_run(options.typed)
    solution = solver.solve(player.game) if player.game.is_small or options.film else None
    if options.film and solution:
        places = atlas.make_atlas(player.game, solution)
        film.film(places, *atlas.load_snapshots(run_dir)).save(options.film)
        print(f"film: {options.film}")
    with console.busy_with_report() as notify:
        path = report.write_report(run_dir, player, solution, notify=notify)
    print(f"report: {path}")
    return 0


main = console.make_main(write, Options, "azjax report", "the report was not written")
