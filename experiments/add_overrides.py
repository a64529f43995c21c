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
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np

import azjax
from azjax import _processes as processes
from azjax._commands import command
from azjax.cli import console, verify
from azjax.games import Game
from azjax.players import Agent, network_agent
from azjax.players.overrides import Overrides, make_lookup, oriented_overrides
from azjax.proof.exhaustive import Exploration, explore
from azjax.proof.repair import load_table, table_path
from azjax.proof.seat_proof import SEATS, make_decide
from azjax.runs import pretrained
from experiments.quantize import add_player


@dataclasses.dataclass(frozen=True)
class Options:
    """Writes the overrides that a player needs into its file, if no game is lost."""

    player: Annotated[str, Place.POSITIONAL] = "connect_four"
    """A player that comes with azjax."""
    table: pathlib.Path | None = None
    """The override table. Default: the table that azjax verify with --lines and --repair writes."""


def join(earlier: Overrides, later: Overrides) -> Overrides:
    """Returns all overrides of both; where both have one, the later one."""
    planes = np.concatenate((later.planes, earlier.planes))
    actions = np.concatenate((later.actions, earlier.actions))
    planes, rows = np.unique(planes, axis=0, return_index=True)
    return Overrides(planes, actions[rows])


def prune(
    game: Game,
    encoding: str,
    agent: Agent,
    overrides: Overrides,
    seat: int,
    folder: pathlib.Path,
    **settings: Any,
) -> tuple[Overrides, Exploration]:
    """Explores all games of a player with overrides, and keeps only the overrides that it needs.

    An override is needed if a game reaches its position, and the player would move differently
    without it. The player with the remaining overrides plays exactly the same games, so the result
    of the exploration, whose last step is returned, holds for it as well. The moves of `agent`, the
    player without overrides, must be equivariant.
    """
    lookup = make_lookup(game, encoding, overrides)
    is_needed = np.zeros(len(overrides.actions), bool)

    def act_and_find(params, key, states):
        alone = agent.act(params, key, states).action
        row, action = lookup(states)
        changes = (row >= 0) & (action != alone)
        return jnp.where(changes, action, alone), jnp.where(changes, row, -1)

    decide = make_decide(agent._replace(act=act_and_find))

    def act(states):
        actions, rows = map(np.asarray, decide(states))
        is_needed[rows[rows >= 0]] = True
        return actions

    symmetric = game.symmetries is not None
    steps = explore(game, act, seat, folder, symmetric=symmetric, **settings)
    last = verify.watch(steps)
    return Overrides(overrides.planes[is_needed], overrides.actions[is_needed]), last


def run(options: Options) -> int:
    """Writes the file if no game is lost; returns the exit status."""
    processes.set_cpu_devices(processes.cores())
    name, seat = options.player, SEATS["first"]
    player = azjax.load(name)
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
            game, network.encoding, alone, both, seat, pathlib.Path(folder, "games")
        )
    won, drawn, lost = last.ends.moves
    print(f"{last.ends.decisions:,} decisions; ends: {won:,} won, {drawn:,} drawn, {lost:,} lost")
    print(f"{len(needed.actions):,} of {len(both.actions):,} overrides are needed")
    if lost:
        print("nothing was written, because games are lost")
        return 1
    about, variables, _ = pretrained.read(name)
    path = add_player(name, about, variables, needed)
    print(f"{path}: {path.stat().st_size:,} bytes")
    return 0


main = console.make_main(run, Options, "experiments.add_overrides", "nothing was written")
