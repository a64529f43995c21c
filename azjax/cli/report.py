"""Writes the report of a training run again: `azjax report`."""

import dataclasses
import pathlib

from azjax._files import check_folder
from azjax.cli import console, custom
from azjax.viz import animation, report


@dataclasses.dataclass(frozen=True)
class Options:
    """Writes a run's report.html: proof, curves, every position and games."""

    animation: pathlib.Path | None = None
    """Also draw an animation of all positions over the iterations, to this .svg file."""
    typed: custom.OfPlayer = custom.PlayerOptions()


def write(options: Options) -> int:
    """Writes the files and prints where they are."""
    if options.animation:
        check_folder(options.animation)
        if options.animation.suffix != ".svg":
            raise ValueError(f"--animation is {options.animation}: name a file that ends in .svg")
    run_dir, player = custom.open_player(options.typed)
    wanted = player.game.is_small or options.animation
    solution = console.solve(player.game) if wanted else None
    if options.animation and solution:
        animation.draw_run(run_dir, player.game, solution).save(options.animation)
        print(f"animation: {options.animation}")
    with console.busy("writing the report…"):
        path = report.write_report(run_dir, player, solution)
    print(f"report: {path}")
    return 0


main = console.make_main(write, Options, "azjax report", "the report was not written")
