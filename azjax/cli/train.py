"""Trains a network by self-play: `azjax train`."""

import contextlib
import dataclasses
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from azjax import _interrupts as interrupts
from azjax import _processes as processes
from azjax import runs
from azjax._commands import command, write_note
from azjax.cli import console, custom
from azjax.cli.parsing import Place, build, read, spell
from azjax.program import Run, open_run
from azjax.runs import presets
from azjax.runs.config import Config, CustomNetworkConfig, Plan, is_custom
from azjax.runs.directory import CPUDevices, check_kept
from azjax.viz.live import is_live

Given = Mapping[str, Any]  # The values on a command line, from `read`.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Trains AlphaZero by self-play, and verifies or evaluates the network during training."""

    config: Annotated[Config, Place.FLAT] = dataclasses.field(default_factory=Config)
    network: str | None = None
    """A custom network: FILE.py:FUNCTION."""
    preset: str | None = None
    """Settings to start from. default: tuned to reach perfect tic-tac-toe quickly; paper: network,
    PUCT and noise of AlphaZero; mlp: a small MLP with deep searches; enumerable: for larger games
    that can be solved; connect_four: tuned for that game; large: for other games that are too large
    to solve. By default, the game determines the preset. This help shows the values of default."""
    smoke: bool = False
    """Shrink everything, to test the whole program in seconds."""
    plan: Annotated[Plan, Place.FLAT] = Plan()
    cpu_devices: CPUDevices = 0
    """CPU devices of each process; 0: one per core, rounded down to a power of two. No effect on
    GPUs and TPUs."""
    run_dir: pathlib.Path | None = None
    """Folder for checkpoints, metrics, certificate and report. Default: a new folder in runs/."""
    resume: bool = False
    """Continue the run in --run-dir exactly where its newest checkpoint stopped."""
    distributed: bool = False
    """Run as one of several processes that train together, all with the same options."""

    def __post_init__(self):
        for name in ("distributed", "resume"):
            if getattr(self, name) and self.run_dir is None:
                raise ValueError(f"--{name} needs the folder of the run: add --run-dir runs/NAME")
        for name in ("preset", "smoke"):
            if self.resume and getattr(self, name):
                raise ValueError(f"a resumed run keeps its settings: leave --{name} out")


def main(arguments: list[str] | None = None) -> int:
    """Runs the program and returns its exit status.

    A call from Python passes `arguments`. Without --distributed, it does not change the number of
    CPU devices.
    """
    return processes.run(lambda: console.run(lambda: _main(arguments), "not started"))


def _main(arguments: list[str] | None) -> int:
    given, typed = read_words(sys.argv[1:] if arguments is None else arguments)
    _prepare(given, typed, alone=arguments is None)
    config, plan, preset = choose(given, typed)
    run_dir, resume = given.get("run_dir"), typed.run_dir is not None
    if resume:
        _set_outcome(custom.name_run(given["run_dir"], config))
    parts, started = custom.parts_for(config, typed), interrupts.now.started
    opening = open_run(config, parts, plan, run_dir, preset=preset, resume=resume, started=started)
    with contextlib.ExitStack() as context:
        with console.busy("compiling…") if processes.is_first() else contextlib.nullcontext():
            run = context.enter_context(opening)
        named = custom.name_run(run.run_dir, run.config)
        _set_outcome(named)
        if processes.is_first():
            if run.verification is not None:
                print(f"{len(run.verification.solution.decisions):,} positions with a decision")
            print(run.needs)
        run.train()
        if processes.is_first():
            _conclude(run, named)
        return 0 if run.reached else 1


def read_words(words: Sequence[str]) -> tuple[dict[str, Any], custom.RunOptions]:
    """Returns the values on a command line, apart from the run to resume and custom code."""
    given = read(Options(), words, "azjax train")
    run_dir = given.get("run_dir") if given.get("resume") else None
    named = {name: given.pop(name, None) for name in ("game", "network", "parts")}
    return given, custom.RunOptions(run_dir, **named)


def _prepare(given: Given, typed: custom.RunOptions, alone: bool) -> None:
    """Joins the other processes and sets the number of CPU devices.

    This comes before the code of a custom game or parts, which may start JAX. `alone` is whether
    the process runs only this program, so that JAX has not started yet.
    """
    number = given.get("cpu_devices")
    if number is None and typed.run_dir is not None:
        number = runs.read_run(typed.run_dir)[2]
    distributed = given.get("distributed") and "run_dir" in given  # Or `choose` refuses it.
    if distributed:
        processes.join()
        if not processes.is_first():
            interrupts.now.outcome = None
    if alone or distributed:
        # Powers of two divide the games, batches and shards of most settings.
        processes.set_cpu_devices(number or 2 ** (processes.cores().bit_length() - 1))


def choose(given: Given, typed: custom.RunOptions) -> tuple[Config, Plan, str | None]:
    """Returns the settings, the plan and the preset of a new run, or of the one to resume."""
    if typed.run_dir is None:
        config, plan, preset = choose_new(given, typed)
    else:
        custom.check_run(typed.run_dir, typed)
        config, plan, preset = *runs.read_run(typed.run_dir)[:2], None
    is_custom_network = isinstance(config.network, CustomNetworkConfig)
    if typed.network is not None and not is_custom_network:
        raise ValueError(f"{typed.run_dir} was trained without --network: leave it out")
    inside = [name for name in given if name.startswith("network.")]
    if is_custom_network and inside:
        raise ValueError(f"--network names a custom network: leave {spell(inside[0])} out")
    options = build(Options(config=config, plan=plan), given)
    if typed.run_dir is not None:
        check_kept(config, options.config)
    return options.config, options.plan, preset


def choose_new(given: Given, typed: custom.RunOptions) -> tuple[Config, Plan, str | None]:
    """Returns the settings of a preset, with the kinds in `given`; their plan and the preset."""
    chosen = [name for name in ("game", "network") if getattr(typed, name) is not None]
    chosen += [name for name in given if "." in name or name in ("preset", "smoke")]
    if typed.parts is not None and chosen:
        option = spell(chosen[0])
        raise ValueError(f"--parts has its own settings: leave {option} out, or leave --parts out")
    name = typed.game or Config.game
    game = custom.find_game(name) if is_custom(name) else None
    preset = given.get("preset") or presets.name_for(name, game)
    config = custom.record(build(presets.get(preset), given), typed)
    config, plan = presets.adapt(config, game, given.get("smoke", False))
    return config, plan, preset if typed.parts is None else None


def _set_outcome(named: str) -> None:
    """Chooses what Ctrl-C prints from now on, since the run can be resumed."""
    if processes.is_first():
        interrupts.now.outcome = f"continue with --resume {named}"


def _conclude(run: Run, named: str) -> None:
    """Prints the certificate, and what can be done with the run."""
    if run.certificate is not None:
        console.show_certificate(run.certificate)
    if run.plan.report:
        print(f"report: {run.run_dir / 'report.html'}")
    print(f"run directory: {run.run_dir}")
    print(f"play against it: {command('azjax', 'play')} {named}")
    if is_live(run.loop.parts.game):
        print(f"see how it searches: {command('azjax', 'explain')} {named}")
    if run.evaluation is not None:
        print(f"see how often it errs: {command('azjax', 'verify')} {named}")
    if not run.reached:
        iterations = run.loop.iteration
        is_last = iterations >= run.plan.max_iterations
        more = f" --max-iterations {2 * iterations}" if is_last else ""
        write_note(
            f"not {run.goal} after {iterations} iterations: continue with --resume {named}{more}"
        )
