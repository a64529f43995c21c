"""The plan of a run, its `plan.json`: when to stop and what to save."""

import dataclasses
from typing import Annotated, Any, Literal

from azjax._settings import Count, Positive, Range, check

MOST_DEVICES = 256  # CPU devices per process.
SMOKE: dict[str, Any] = {"until": "never", "max_iterations": 3}  # Defaults of a plan with `smoke`.


@dataclasses.dataclass(frozen=True)
class Plan:
    """When a run stops and what it saves; it does not change the results of an iteration."""

    preset: Literal["default", "paper", "mlp", "enumerable", "connect_four", "large"] = "default"
    """Settings to start from. default: tuned to reach perfect tic-tac-toe quickly; paper: network,
    PUCT and noise of AlphaZero; mlp: a small MLP with deep searches; enumerable: for larger games
    that can be solved; connect_four: tuned for that game; large: for other games that are too large
    to solve. By default, the game determines the preset."""
    smoke: bool = False
    """Shrink everything, to test the whole program in seconds."""
    until: Literal["auto", "perfect", "unbeatable", "never"] = "auto"
    """When to stop. perfect: no blunder in any position, without and with search; unbeatable: no
    losing line from either seat; never: after the last iteration; auto: perfect if the game can be
    enumerated, otherwise never."""
    max_iterations: Positive = 500
    """Maximum number of iterations, including earlier sessions."""
    examine_every: Count = 0
    """In games that can be solved: maximum number of iterations between two verifications of the
    network; 0: verification makes at most a tenth as many network evaluations as self-play."""
    strength_every: Count = 0
    """Iterations between matches against UCT and the best older network; 0: no matches."""
    strength_games: Annotated[int, Range(2)] = 64
    """Games of each of these matches, half of them from each seat."""
    checkpoint_every: Positive = 10
    """Iterations between checkpoints; there is always one at the end."""
    keep_checkpoints: Positive = 3
    """Number of newest checkpoints to keep, in addition to the best one."""
    log: tuple[Literal["tensorboard", "wandb"], ...] = ()
    """Also send the metrics to TensorBoard (files in the run directory) or Weights & Biases."""
    report: bool = True
    """Write report.html at the end."""
    cpu_devices: Annotated[int, Range(0, MOST_DEVICES)] = 0
    """CPU devices of each process; 0: one per core, or fewer if that number does not divide games
    and batch. No effect on GPUs and TPUs."""

    def __post_init__(self):
        check("", self)
