"""How long a run goes on, and what it keeps on the way: its `plan.json`."""

import dataclasses
from typing import Literal

from azjax._settings import check_range, check_types

MOST_DEVICES = 256  # CPU devices of a process.


@dataclasses.dataclass(frozen=True)
class Plan:
    """When a run stops and what it saves; none of it changes the numbers of an iteration."""

    preset: Literal["default", "paper", "mlp", "enumerable", "connect_four", "large"] = "default"
    """Settings to start from. default: the fastest route to perfect in tic-tac-toe; paper:
    AlphaZero's network, PUCT and noise; mlp: a small MLP with deep searches; enumerable:
    for games that can be solved, whose positions it seeks out; connect_four and large: wider
    networks, for that game and for all others. Left out: the one that suits the game."""
    smoke: bool = False
    """Shrink everything, to see the whole program work in seconds."""
    until: Literal["auto", "perfect", "unbeatable", "never"] = "auto"
    """When to stop. perfect: no blunder in any position, alone and with search; unbeatable:
    no losing line from either seat; never: at --max-iterations; auto: perfect where the
    game can be enumerated, never elsewhere."""
    max_iterations: int = 500
    """Stop after this many iterations at the latest, earlier sessions included."""
    examine_every: int = 0
    """Where a game is solved: examine the network after so many iterations at the latest; 0: as
    often as a tenth of self-play's evaluations allows, in tiny games after each."""
    strength_every: int = 0
    """Iterations between matches against UCT and the best older network; 0: no matches."""
    strength_games: int = 64
    """Games of each of these matches, half of them from each seat."""
    checkpoint_every: int = 10
    """Iterations between checkpoints; there is always one at the end."""
    keep_checkpoints: int = 3
    """How many of the newest checkpoints to keep, beside the best one."""
    report: bool = True
    """Write report.html at the end."""
    cpu_devices: int = 0
    """CPU devices that each process spreads its games over; 0: one for each core, as far as
    they divide games and batch. Without effect on GPUs and TPUs."""

    def __post_init__(self):
        check_types("--", self)
        check_range("--", self, "max_iterations checkpoint_every keep_checkpoints", 1)
        check_range("--", self, "cpu_devices", 0, MOST_DEVICES)
        check_range("--", self, "examine_every strength_every", 0)
        check_range("--", self, "strength_games", 2)
