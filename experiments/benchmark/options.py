"""The command line of `experiments.benchmark`."""

import dataclasses
import importlib.util
import pathlib
from typing import Literal

from azjax import presets
from azjax.drawing import check_folder
from azjax.network import DEEPEST, WIDEST
from azjax.settings import MOST, MOST_SIMULATIONS, check_range
from experiments import launch
from experiments.browser import find_browser

_MEASURES = (
    "speed",
    "batch",
    "scale",
    "first_iteration",
    "profile",
    "time_to_perfect",
    "verification",
    "arena",
    "explorer",
)
_PICTURES = (".png", ".svg", ".pdf")
MOST_DEVICES = 1024  # Of the model of --scale.


@dataclasses.dataclass(frozen=True)
class Options:
    """Measures speeds, scaling, times to perfect and what else counts; without flags --speed."""

    speed: bool = False
    """Time network, search, self-play, learner, iteration and compilation against the textbook
    baseline (needs pgx)."""
    batch: bool = False
    """Time self-play with the numbers of games of --batch-sizes."""
    scale: bool = False
    """Model games a second on up to 1,024 devices from costs measured on one (needs
    matplotlib)."""
    first_iteration: bool = False
    """Time whole training processes to the end of their first iteration, without and with a
    compilation cache; takes minutes."""
    profile: pathlib.Path | None = None
    """Write a trace of one iteration and of one textbook self-play into this folder (needs
    pgx)."""
    time_to_perfect: bool = False
    """Train from each seed until the proof holds; print seconds and blunders."""
    stability: bool = False
    """With --time-to-perfect: go on for 100 iterations; print the losing lines on the way."""
    verification: bool = False
    """Time one iteration with and without its verification."""
    arena: bool = False
    """Time matches of random and UCT players, UCT's loop against mctx's, and players with a
    clock."""
    explorer: bool = False
    """Time the steps of the explorer in a browser, in a search of 200 simulations."""
    games: int = 1024
    """Games in parallel, over all devices; with --scale: on each device."""
    simulations: int = 32
    """Simulations a move."""
    channels: int = 64
    """Channels of the network's convolutions."""
    blocks: int = 2
    """Residual blocks."""
    repeats: int = 7
    """Runs of each measurement, of which the median counts."""
    cpu_devices: int = 0
    """JAX devices that the CPU is split into; 0: one a core, or the largest number of cores
    that divides the games."""
    algorithms: tuple[Literal["puct", "gumbel"], ...] = ("puct", "gumbel")
    """With --speed: the searches to time alone; self-play is Gumbel's."""
    batch_sizes: tuple[int, ...] = (64, 256, 1024, 4096, 16_384, 65_536)
    """With --batch: numbers of games, ascending."""
    scale_games: int = 65_536
    """With --scale: games over all devices, where their total is fixed."""
    scale_batch: int = 4096
    """With --scale: samples of an optimiser step over all devices, where their total is fixed."""
    bandwidth: float = 50.0
    """With --scale: assumed GB/s that each device sends and receives."""
    latency: float = 5.0
    """With --scale: assumed microseconds of one message between devices."""
    plot: pathlib.Path = pathlib.Path("scale.png")
    """With --scale: where the picture goes; .png, .svg or .pdf."""
    preset: str = "default"
    """With --time-to-perfect and --verification: which preset."""
    seeds: int = 5
    """With --time-to-perfect: seeds 0 to this number less one."""
    train_games: tuple[int, ...] = ()
    """With --time-to-perfect: numbers of games in parallel to train with, each from every seed;
    left out: the preset's. The buffer holds at least an iteration's moves."""
    max_iterations: int = 500
    """With --time-to-perfect: give up on a seed after this many iterations."""
    out: pathlib.Path = pathlib.Path("benchmark.json")
    """Where the results go as JSON."""

    def __post_init__(self):
        presets.get(self.preset)
        check_range("--", self, "games repeats seeds max_iterations", 1)
        check_range("--", self, "cpu_devices", 0, launch.MOST_DEVICES)
        check_range("--", self, "scale_games scale_batch", 1)
        check_range("--", self, "latency", 0)
        check_range("--", self, "bandwidth", 0, above=True)
        check_range("--", self, "simulations", 1, MOST_SIMULATIONS)
        check_range("--", self, "channels", 1, WIDEST)
        check_range("--", self, "blocks", 0, DEEPEST)
        if self.stability and not self.time_to_perfect:
            raise ValueError("--stability goes on from perfect players: add --time-to-perfect")
        if not 1 <= min(self.train_games, default=1) <= max(self.train_games, default=1) <= MOST:
            given = " ".join(map(str, self.train_games))
            raise ValueError(f"--train-games is {given}: use numbers from 1 to {MOST}")
        self._check_batch()
        self._check_scale()
        self._check_first_iteration()
        self._check_packages()

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of the measurements to make."""
        return tuple(name for name in _MEASURES if getattr(self, name)) or ("speed",)

    def shared(self) -> dict[str, int]:
        """What is dealt out to all devices alike, so that their number must divide it."""
        found, measures = {}, self.measures
        if {"speed", "profile"} & set(measures):
            found["--games"] = self.games
        if "batch" in measures:
            found |= {f"{size:,} of --batch-sizes": size for size in self.batch_sizes}
        if "verification" in measures:
            found[f"replay.shards of {self.preset}"] = presets.get(self.preset).replay.shards
        if "first_iteration" in measures:
            found["replay.shards of paper"] = presets.get("paper").replay.shards
        return found

    def check_files(self) -> None:
        """Refuses files that cannot be written, and makes the profile's folder.

        Raises:
          ValueError: naming the path.
          OSError: if the folder cannot be made.
        """
        _check_file("--out", self.out)
        if self.scale:
            _check_file("--plot", self.plot)
        if self.profile is not None:
            _make_folder(self.profile)

    def _check_batch(self) -> None:
        sizes = self.batch_sizes
        ascend = list(sizes) == sorted(set(sizes))
        if not sizes or min(sizes) < 1 or max(sizes) > MOST or not ascend:
            raise ValueError(
                f"--batch-sizes is {' '.join(map(str, sizes)) or 'empty'}: use numbers of games "
                f"from 1 to {MOST}, each larger than the one before"
            )

    def _check_scale(self) -> None:
        for name in ("scale_games", "scale_batch"):
            value, flag = getattr(self, name), "--" + name.replace("_", "-")
            if value % MOST_DEVICES:
                raise ValueError(
                    f"{flag} is {value}, which {MOST_DEVICES:,} devices do not divide: use a "
                    f"multiple of {MOST_DEVICES}"
                )
        if self.scale and self.plot.suffix not in _PICTURES:
            raise ValueError(f"--plot is {self.plot}: use a name that ends in .png, .svg or .pdf")

    def _check_first_iteration(self) -> None:
        shards = presets.get("paper").replay.shards
        if self.first_iteration and self.games % shards:
            raise ValueError(
                f"--games is {self.games}, which the {shards} shards of the buffer that "
                f"--first-iteration trains with do not divide: use a multiple of {shards}"
            )

    def _check_packages(self) -> None:
        needs_pgx = [name for name in ("speed", "profile") if name in self.measures]
        if needs_pgx and importlib.util.find_spec("pgx") is None:
            raise ValueError(f"--{needs_pgx[0]} needs pgx: pip install 'azjax[benchmark]'")
        if self.scale and importlib.util.find_spec("matplotlib") is None:
            raise ValueError("--scale draws with matplotlib: pip install 'azjax[plots]'")
        if self.explorer:
            find_browser()


def _check_file(flag: str, path: pathlib.Path) -> None:
    check_folder(path)
    if path.is_dir():
        raise ValueError(f"{flag} is {path}, which is a folder: use the name of a file")


def _make_folder(folder: pathlib.Path) -> None:
    check_folder(folder)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--profile is {folder}, which is a file: use the name of a folder")
    if folder.is_dir() and any(folder.iterdir()):
        raise ValueError(f"--profile is {folder}, which is not empty: use the name of a new folder")
    folder.mkdir(exist_ok=True)
