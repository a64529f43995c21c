"""The command line of `experiments.train`."""

import argparse
import dataclasses
import pathlib
from typing import Annotated, Any, Literal

import tyro

from azjax import checkpoint, presets, train
from azjax.settings import check_range, check_types, flatten
from experiments import console, launch


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a run started from and how long it goes on; its `plan.json`."""

    preset: Literal["default", "paper", "mlp"] = "default"
    """Settings to start from. default: the fastest route to perfect; paper: AlphaZero's
    tower, PUCT and noise; mlp: a small perceptron with deep searches."""
    smoke: bool = False
    """Shrink everything, to see the whole program work in seconds."""
    until: Literal["auto", "perfect", "unbeatable", "never"] = "auto"
    """When to stop. perfect: no blunder in any position, alone and with search; unbeatable:
    no losing line from either seat; never: at --max-iterations; auto: perfect where the
    game can be enumerated, never elsewhere."""
    max_iterations: int = 500
    """Stop after this many iterations at the latest, earlier sittings included."""
    checkpoint_every: int = 10
    """Iterations between checkpoints; there is always one at the end."""
    keep_checkpoints: int = 3
    """How many of the newest checkpoints to keep, beside the best one."""
    report: bool = True
    """Write report.html at the end."""
    cpu_devices: int = 0
    """CPU devices that each process spreads its games over; 0: one for each core, as far as
    they divide the buffer's shards. Without effect on GPUs and TPUs."""

    def __post_init__(self):
        check_types("--", self)
        check_range("--", self, "max_iterations checkpoint_every keep_checkpoints", 1)
        check_range("--", self, "cpu_devices", 0, launch.MOST_DEVICES)


@dataclasses.dataclass(frozen=True)
class Options:
    """Trains AlphaZero by self-play, proving at every iteration how good the network is."""

    config: Annotated[train.Config, tyro.conf.arg(name="")]
    plan: Annotated[Plan, tyro.conf.arg(name="")]
    run_dir: pathlib.Path | None = None
    """Folder for checkpoints, metrics, certificate and report. Left out: a new one in runs/."""
    resume: bool = False
    """Go on with the run in --run-dir exactly where its newest checkpoint stopped."""
    distributed: bool = False
    """Be one of several processes that train together, all started with the same options."""

    def __post_init__(self):
        if self.distributed and self.run_dir is None:
            raise ValueError(
                "--distributed needs a folder that all processes share: add --run-dir runs/NAME"
            )
        if self.resume and self.run_dir is None:
            raise ValueError("--resume needs the run to go on with: add --run-dir runs/NAME")


def parse(arguments: list[str]) -> Options:
    """Reads the command line; presets and resumed runs give the defaults of the rest."""
    console.refuse_empty(arguments, "experiments.train")  # The default of one depends on another.
    known = _peek(arguments)
    if known.resume and known.run_dir:
        config = checkpoint.read_config(known.run_dir)
        plan = checkpoint.read_settings(known.run_dir / "plan.json", Plan)
        # A run from before this was a setting had one.
        plan = dataclasses.replace(plan, cpu_devices=plan.cpu_devices or 1)
        default = Options(config, plan, known.run_dir, resume=True)
    elif known.smoke:
        config = presets.smoke(presets.get(known.preset))
        default = Options(config, Plan(until="never", max_iterations=3))
    else:
        default = Options(presets.get(known.preset), Plan())
    options = console.parse(Options, arguments, "experiments.train", default=default)
    if options.resume:
        _refuse_changes(default, options)
    return options


def _peek(arguments: list[str]) -> argparse.Namespace:
    """Reads only those options that the defaults of the others depend on."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--preset", default="default")
    parser.add_argument("--run-dir", "--run_dir", type=pathlib.Path)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--smoke", action="store_true")
    try:
        return parser.parse_known_args(arguments)[0]
    except argparse.ArgumentError as error:
        raise ValueError(error) from error


def _refuse_changes(saved: Options, given: Options) -> None:
    """Refuses to resume a run with settings that would change its numbers."""
    for (name, old), (_, new) in zip(_fixed(saved), _fixed(given), strict=True):
        if old != new:
            raise ValueError(
                f"a resumed run keeps its settings, and --{name.replace('_', '-')} was {old!r}, "
                f"not {new!r}: leave it out, or start a new run in another --run-dir"
            )


def _fixed(options: Options) -> list[tuple[str, Any]]:
    """Lists the settings that no resumed run may change, with their dotted names."""
    plan = options.plan
    own = [(name, getattr(plan, name)) for name in ("preset", "smoke", "cpu_devices")]
    return [*own, *flatten(options.config)]
