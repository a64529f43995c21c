"""Adds an override table to the file of a player that comes with azjax.

    azjax verify NAME --lines first --repair 12     # makes the table
    python -m experiments.add_overrides NAME

The program plays the player, moving first, against every reply. It writes only the overrides that
the player needs, and only if no game is lost. `azjax.runs.pretrained` describes the file.
"""

from azjax.cli import run_program
from azjax.cli.parsing import Place

if __name__ == "__main__":
    run_program("experiments.add_overrides")

import dataclasses
import pathlib
import tempfile
from typing import Annotated

from azjax._commands import command
from azjax.cli import console, launch, verify
from azjax.exact.overrides import load_table, prune, table_path
from azjax.exact.seat import SEATS
from azjax.players import network_agent
from azjax.players.overrides import join, oriented_overrides
from azjax.runs import pretrained


@dataclasses.dataclass(frozen=True)
class Options:
    """Writes the overrides that a player needs into its file, if no game is lost."""

    player: Annotated[str, Place.POSITIONAL] = "connect_four"
    """A player that comes with azjax."""
    table: pathlib.Path | None = None
    """The override table. Default: the table that azjax verify with --lines and --repair writes."""


def run(options: Options) -> int:
    """Writes the file if no game is lost; returns the exit status."""
    launch.spread(launch.cores(), launch.cores())
    name, seat = options.player, SEATS["first"]
    player = pretrained.load_pretrained(name)
    game, network = player.game, player.parts.network
    path = options.table or table_path(verify.folder_of(name), player.iteration, seat, 0)
    if not path.exists():
        make = command("azjax", "verify", name, "--lines", "first", "--repair", "12")
        raise ValueError(f"{path} does not exist: make it with {make}")
    if not network.symmetric:
        raise ValueError(f"the network of {name} is not symmetric: quantize a symmetric one")
    table = load_table(path, game)
    found = oriented_overrides(game, network.encoding, table.states, table.actions)
    both = found if player.overrides is None else join(player.overrides, found)
    alone = network_agent(game, player.parts.evaluate, player.params)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        needed, last = prune(
            game, network.encoding, alone, both, seat, pathlib.Path(folder, "games"), verify.watch
        )
    won, drawn, lost = last.ends.moves
    print(f"{last.ends.decisions:,} decisions; ends: {won:,} won, {drawn:,} drawn, {lost:,} lost")
    print(f"{len(needed.actions):,} of {len(both.actions):,} overrides are needed")
    if lost:
        print("nothing was written, because games are lost")
        return 1
    about, variables, _ = pretrained.read(name)
    path = pretrained.add(name, about, variables, needed)
    print(f"{path}: {path.stat().st_size:,} bytes")
    return 0


main = console.make_main(run, Options, "experiments.add_overrides", "nothing was written")
