"""The command line of `experiments.benchmark`."""

import dataclasses
import importlib.util
import pathlib

from azjax import presets
from experiments.browser import find_browser


@dataclasses.dataclass(frozen=True)
class Options:
    """Measures speeds against a textbook implementation, times to perfect, and what else counts."""

    speed: bool = False
    """Time network, search, self-play and learner against the textbook baseline (needs pgx)."""
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
    """With --speed: games in parallel."""
    simulations: int = 32
    """With --speed: simulations a move."""
    channels: int = 64
    """With --speed: channels of the network's convolutions."""
    blocks: int = 2
    """With --speed: residual blocks."""
    repeats: int = 7
    """With --speed: runs of each measurement, of which the median counts."""
    preset: str = "default"
    """Which preset to measure."""
    seeds: int = 5
    """Seeds 0 to this number less one."""
    max_iterations: int = 500
    """Give up on a seed after this many iterations."""
    out: pathlib.Path | None = None
    """Write the results there as JSON, too."""

    def __post_init__(self):
        presets.get(self.preset)
        for name in ("games", "simulations", "channels", "repeats", "seeds"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name} is {getattr(self, name)}: use 1 or more")
        measures = ("speed", "time_to_perfect", "verification", "arena", "explorer")
        if not any(getattr(self, name) for name in measures):
            flags = ", ".join("--" + name.replace("_", "-") for name in measures[:-1])
            raise ValueError(f"nothing to measure: add {flags} or --{measures[-1]}")
        if self.speed and importlib.util.find_spec("pgx") is None:
            raise ValueError("--speed needs pgx: pip install 'azjax[benchmark]'")
        if self.explorer:
            find_browser()
        if self.stability and not self.time_to_perfect:
            raise ValueError("--stability goes on from perfect players: add --time-to-perfect")
