"""Writes the report of a training run again: `azjax report`."""

import dataclasses

from azjax.cli import console, custom
from azjax.viz import report


@dataclasses.dataclass(frozen=True)
class Options:
    """Writes a run's report.html: proof, curves, every position and games."""

    typed: custom.OfPlayer = custom.PlayerOptions()


def write(options: Options) -> int:
    """Writes the files and prints where they are."""
    run_dir, player = custom.open_player(options.typed)
    solution = console.solve(player.game) if player.game.is_small else None
    with console.busy("writing the report…"):
        path = report.write_report(run_dir, player, solution)
    print(f"report: {path}")
    return 0


main = console.make_main(write, Options, "azjax report", "the report was not written")
