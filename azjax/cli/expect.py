"""Measures how fast a game trains here, and estimates how long it takes: `azjax expect hex:4`."""

import dataclasses
import statistics
import time
from typing import Annotated

import jax
from jax.sharding import Mesh

from azjax import _processes as processes
from azjax import training
from azjax.cli import console, custom
from azjax.cli.parsing import Place
from azjax.games.base import Game
from azjax.program import fit_devices
from azjax.runs import presets, pretrained
from azjax.runs.config import make_parts
from azjax.training import Parts

_ITERATIONS = 5
# lab/games.md, "How cost grows": moves until a network of width 256 is wrong in at most 1% of the
# positions of four games, which grow as positions to this power; and how many times as many moves
# three of the games took until it was perfect.
_POSITIONS, _MOVES, _POWER = 134_289, 327_680, 0.35
_PERFECT = 1.8, 11


@dataclasses.dataclass(frozen=True)
class Options:
    """Measures how fast a game trains here, and estimates how long it takes to be played well."""

    game: Annotated[str, Place.POSITIONAL] = "tic_tac_toe"
    """The game: tic_tac_toe, hex:4, connect_four, … or a custom one: FILE.py:FUNCTION."""
    preset: str | None = None
    """Settings, as in azjax train. Default: the preset for the game."""


def run(options: Options) -> int:
    """Prints the speed, and times from it; returns 0."""
    processes.set_cpu_devices(processes.cores())
    game = custom.find_game(options.game)
    given = custom.find_new(custom.Typed(game=options.game))
    config, _, preset = presets.choose(*given, preset=options.preset)
    _, parts, mesh = fit_devices(config, make_parts(config, game), fixed=False)
    with console.busy("measuring iterations…"):
        seconds = time_iteration(parts, mesh)
    moves = parts.selfplay.games * parts.selfplay.unroll_length
    print(
        f"{game.name}, preset {preset}, on {mesh.size} {jax.devices()[0].device_kind}: "
        f"{seconds:.2g} s an iteration, {moves / seconds:,.0f} moves/s, "
        f"{parts.evaluations / seconds:,.0f} evaluations/s"
    )
    print(describe(game, moves / seconds))
    return 0


def time_iteration(parts: Parts, mesh: Mesh) -> float:
    """Returns the seconds of an iteration, a median."""
    state = training.make_state(parts, jax.random.key(0), mesh)
    step = training.compiled(training.make_iteration(parts, mesh), state)
    seconds = []
    for _ in range(_ITERATIONS):
        started = time.monotonic()
        state, _ = jax.block_until_ready(step(state))
        seconds.append(time.monotonic() - started)
    return statistics.median(seconds)


def describe(game: Game, rate: float) -> str:
    """Says how long training takes at this rate of moves per second."""

    def time_for(moves: float) -> str:
        seconds = moves / rate
        units = ((3600, "hours"), (60, "minutes"), (1, "seconds"))
        length, unit = next(pair for pair in units if seconds >= 2 * pair[0] or pair[0] == 1)
        return f"{seconds / length:.0f} {unit}"

    name = game.name.removeprefix("pgx:")
    if game.enumerable:
        size = len(console.solve(game).decisions)
        moves = _MOVES * (size / _POSITIONS) ** _POWER
        few, many = (time_for(share * moves) for share in _PERFECT)
        return (
            f"{size:,} positions with a decision: wrong in about 1% of them after {moves:,.0f} "
            f"moves, {time_for(moves)} here; perfect, if this network can be, after {few} to {many}"
        )
    if name in pretrained.names():
        moves = pretrained.read(name).about["training"]["moves"]
        return f"its player in azjax was trained with {moves:,} moves: {time_for(moves)} here"
    return f"too many positions to count: an hour makes {3600 * rate:,.0f} moves here"


main = console.make_main(run, Options, "azjax expect", "nothing was written")
