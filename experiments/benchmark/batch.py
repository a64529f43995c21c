"""How the cost of a move depends on the number of games played at once."""

import dataclasses
from typing import NamedTuple

import jax
from rich.progress import track

from azjax import games as game_registry
from azjax import memory, train
from experiments import console
from experiments.benchmark.options import Options
from experiments.benchmark.runs import make_playing, run_config
from experiments.benchmark.table import make_table, number
from experiments.benchmark.timing import median_seconds

# Few, so that the largest batches take seconds, and as many for every batch: a move in the
# middle of a game costs another time than one at its start.
_PLIES = 2
_MOST_REPEATS = 3  # For the largest batches.
_LARGE = 16_384
_RISE = 0.05


class Batch(NamedTuple):
    """Self-play with one number of games.

    Attributes:
      games: over all devices.
      moves_per_second: over all devices.
      microseconds: per move.
      tree_bytes: of the search, for one game.
    """

    games: int
    moves_per_second: float
    microseconds: float
    tree_bytes: int


def time_batches(options: Options) -> list[dict]:
    """Measures every number of games, and prints the table and where the cost rises."""
    mesh = train.make_mesh()
    sizes = track(options.batch_sizes, "self-play", transient=True)
    batches = [_time_batch(options, mesh, games) for games in sizes]
    _show(options, batches)
    return [batch._asdict() for batch in batches]


def _time_batch(options: Options, mesh: jax.sharding.Mesh, games: int) -> Batch:
    config = run_config(options, mesh.size, games=games, plies=_PLIES)
    # From random openings, so that two moves see positions of all lengths.
    openings = dataclasses.replace(config.selfplay, opening_share=1.0)
    play, state = make_playing(dataclasses.replace(config, selfplay=openings), mesh)
    repeats = min(options.repeats, _MOST_REPEATS) if games >= _LARGE else options.repeats
    seconds = median_seconds(repeats, play=lambda: play(state))["play"]
    moves = games * _PLIES
    tree = memory.tree_bytes(config.search, game_registry.make(config.game))
    return Batch(games, moves / seconds, 1e6 * seconds / moves, tree)


def rises(batches: list[Batch]) -> list[tuple[Batch, Batch]]:
    """Where a move costs over 5% more than in the best smaller batch.

    Returns:
      Each such batch, with that best one.
    """
    found = []
    for i, batch in enumerate(batches[1:], 1):
        best = min(batches[:i], key=lambda smaller: smaller.microseconds)
        if batch.microseconds > (1 + _RISE) * best.microseconds:
            found.append((batch, best))
    return found


def _show(options: Options, batches: list[Batch]) -> None:
    title = (
        f"self-play, gumbel, {options.channels} channels, {options.blocks} blocks, "
        f"{options.simulations} simulations; medians"
    )
    table = make_table(title, "games", "moves/s", "microseconds/move", "search, bytes/game")
    for batch in batches:
        cells = (batch.moves_per_second, batch.microseconds, batch.tree_bytes)
        table.add_row(f"{batch.games:,}", *map(number, cells))
    console.print_rich(table)
    found = rises(batches)
    if not found:
        print(f"nowhere does a move cost over {_RISE:.0%} more than in a smaller batch")
    for batch, best in found:
        more = batch.microseconds / best.microseconds - 1
        print(f"a move costs {more:.0%} more with {batch.games:,} games than with {best.games:,}")
