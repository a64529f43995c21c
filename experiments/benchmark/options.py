"""The command line of `experiments.benchmark`, and what its measurements share."""

import dataclasses
import importlib.util
import pathlib
import statistics
import time
from collections.abc import Callable
from typing import Annotated, Any, Literal

import jax

from azjax._commands import command
from azjax._settings import MOST, Positive, Range, Simulations
from azjax.cli import console
from azjax.networks.config import DEEPEST, WIDEST
from azjax.runs import presets

_DEFAULT = presets.get("default")


@dataclasses.dataclass(frozen=True)
class Options:
    """Measures speed and the time to a perfect player. The default is --speed."""

    speed: bool = False
    """Time network, search, self-play and iteration against the textbook baseline (needs pgx)."""
    batch: bool = False
    """Time self-play with the numbers of games of --batch-sizes."""
    first_iteration: bool = False
    """Time whole training processes to the end of their first iteration, without and with a
    compilation cache; takes minutes."""
    time_to_perfect: bool = False
    """Train from each seed until the player is verified perfect; print seconds and blunders."""
    verification: bool = False
    """Time one iteration and its verification."""
    game: Literal["tic_tac_toe", "connect_four", "pgx:othello", "pgx:go_9x9"] = "tic_tac_toe"
    """With --speed and --batch: the game. The textbook always plays the one of pgx."""
    games: Positive = 1024
    """Games in parallel, over all devices."""
    simulations: Simulations = 32
    """Simulations per move."""
    channels: Annotated[int, Range(1, WIDEST)] = 64
    """Channels of the network's convolutions."""
    blocks: Annotated[int, Range(0, DEEPEST)] = 2
    """Residual blocks."""
    repeats: Positive = 7
    """Runs of each measurement; the tables show medians."""
    batch_sizes: tuple[int, ...] = (64, 256, 1024, 4096, 16_384, 65_536)
    """With --batch: numbers of games."""
    train_games: tuple[int, ...] = (_DEFAULT.selfplay.games,)
    """With --time-to-perfect: numbers of games in parallel. Other settings are
    those of the preset `default`; the buffer holds at least one iteration's moves."""
    train_networks: tuple[Literal["resnet", "mlp"], ...] = ("resnet",)
    """With --time-to-perfect: kinds of networks to train in turn, with their default settings."""
    seeds: Positive = 5
    """With --time-to-perfect: number of seeds, counted from 0."""
    max_iterations: Positive = 500
    """With --time-to-perfect: give up on a seed after this many iterations."""
    out: pathlib.Path = pathlib.Path("benchmark.json")
    """File for the results, JSON."""

    def __post_init__(self):
        for name in ("batch_sizes", "train_games"):
            given = getattr(self, name)
            if not given or not all(1 <= number <= MOST for number in given):
                flag = f"--{name.replace('_', '-')} is {' '.join(map(str, given)) or 'empty'}"
                raise ValueError(f"{flag}: use numbers of games, each 1 to {MOST}")
        if "speed" in self.measures and importlib.util.find_spec("pgx") is None:
            install = command("pip", "install", "pgx")
            raise ValueError(f"--speed needs pgx: add it with {install}")

    @property
    def sizes(self) -> str:
        """Network and search sizes, for the titles of tables."""
        return f"{self.channels} channels, {self.blocks} blocks, {self.simulations} simulations"

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the chosen measurements."""
        names = [field.name for field in dataclasses.fields(self)]
        return tuple(name for name in names if getattr(self, name) is True) or ("speed",)

    def divided(self) -> list[int]:
        """Numbers of games and shards; each must be a multiple of the number of devices."""
        numbers = [self.games] if "speed" in self.measures else []
        numbers += self.batch_sizes if self.batch else ()
        if self.first_iteration or self.verification:
            numbers.append(_DEFAULT.replay.shards)
        return numbers


def median_seconds(repeats: int, **runs: Callable[[], Any]) -> dict[str, float]:
    """Returns median seconds of functions that run in turn, after one warm-up run of each."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for repeat in range(repeats + 1):
        for name, run in runs.items():
            start = time.perf_counter()
            jax.block_until_ready(run())
            if repeat:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def show(title: str, rows: list[dict], missing: str = "") -> list[dict]:
    """Prints rows with the same keys as a table, `missing` for None; returns the rows."""
    texts = [[missing if cell is None else _text(cell) for cell in row.values()] for row in rows]
    names = sum(isinstance(cell, str) for cell in rows[0].values())
    console.print_table(tuple(rows[0]), texts, names, title)
    return rows


def _text(cell: str | float) -> str:
    """Formats numbers with three significant digits and a complete integer part."""
    if isinstance(cell, str):
        return cell
    return f"{cell:,.0f}" if isinstance(cell, int) or abs(cell) >= 100 else f"{cell:.3g}"
