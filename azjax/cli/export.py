"""Writes a trained player to a file that runs without azjax: `azjax export`."""

import dataclasses
import pathlib

from azjax._settings import AnySimulations, Positive
from azjax.cli import console, custom
from azjax.games.base import state_shapes, write_types
from azjax.runs.export import export, name_leaves


@dataclasses.dataclass(frozen=True)
class Options:
    """Writes a player to a file that runs with JAX and without azjax."""

    out: pathlib.Path = pathlib.Path("player.stablehlo")
    """The file to write. Its name ends in .stablehlo."""
    simulations: AnySimulations | None = None
    """Export the moves of a search with this many simulations; 0: the moves of the network alone.
    Default: the network's logits and value."""
    batch_size: Positive | None = None
    """The number of positions per call. Default: any number."""
    typed: custom.OfPlayer = custom.PlayerOptions()


def write(options: Options) -> int:
    """Writes the file, and prints its size and its input."""
    player = custom.open_player(options.typed)[1]
    with console.busy(f"writing {options.out}…"):
        path = export(player, options.out, options.simulations, options.batch_size)
    print(f"{path}: {path.stat().st_size / 1e6:.2f} MB")
    states = name_leaves(state_shapes(player.game))
    print(f"input: {write_types(states, options.batch_size or 'b')}")
    return 0


main = console.make_main(write, Options, "azjax export", "the file was not written")
