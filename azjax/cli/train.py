"""Trains a network by self-play: `azjax train`."""

import contextlib
import dataclasses
import pathlib
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

from azjax import _interrupts as interrupts
from azjax import _processes as processes
from azjax import runs
from azjax._commands import command, write_note
from azjax.cli import console, custom
from azjax.cli.parsing import Place, choose_kinds, fill, scan, spell
from azjax.program import Run, open_run
from azjax.runs import presets
from azjax.runs.config import Config, Plan
from azjax.runs.directory import CPUDevices, read_resumed
from azjax.training import memory

_PROG = "azjax train"
Given = Mapping[str, str | None]  # The options of a command line, from `scan`.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Trains AlphaZero by self-play, and verifies or evaluates the network during training."""

    config: Annotated[Config, Place.FLAT]
    network: str | None = None
    """A custom network: FILE.py:FUNCTION."""
    preset: str | None = None
    """Settings to start from. default: tuned to reach perfect tic-tac-toe quickly; paper: network,
    PUCT and noise of AlphaZero; mlp: a small MLP with deep searches; enumerable: for larger games
    that can be solved; connect_four: tuned for that game; large: for other games that are too large
    to solve. By default, the game determines the preset."""
    smoke: bool = False
    """Shrink everything, to test the whole program in seconds."""
    plan: Annotated[Plan, Place.FLAT]
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
    words = sys.argv[1:] if arguments is None else arguments
    given = scan(words)
    run_dir = given.get("run-dir")
    resumed = pathlib.Path(run_dir) if run_dir is not None and "resume" in given else None
    typed = custom.Typed(resumed, *map(given.get, ("game", "network", "parts")))
    if not {"-h", "--help"} & {*words}:
        _prepare(words, given, typed, alone=arguments is None)
    config, plan, preset = choose(words, given, typed)
    if resumed is not None:
        custom.note_edited(resumed, config, typed)
        _set_outcome(custom.name_run(resumed, config, typed))
    parts, started = custom.parts_for(config, typed), interrupts.now.started
    resume = resumed is not None
    opening = open_run(
        config,
        parts,
        plan,
        run_dir,
        preset=preset,
        resume=resume,
        started=started,
        spell=spell,
    )
    with contextlib.ExitStack() as context:
        with console.busy("compiling…") if processes.is_first() else contextlib.nullcontext():
            run = context.enter_context(opening)
        named = custom.name_run(run.run_dir, run.config, typed)
        _set_outcome(named)
        if processes.is_first():
            print(memory.describe(run.needs, run.num_devices))
        first = run.loop.iteration
        run.train(show=console.show_certificate)
        processes.in_first(lambda: _conclude(run, named, trained=run.loop.iteration > first))
        return 0 if run.reached else 1


def _prepare(words: Sequence[str], given: Given, typed: custom.Typed, alone: bool) -> None:
    """Joins the other processes and sets the number of CPU devices.

    This comes before the code of a custom game or parts, which may start JAX. `alone` is whether
    the process runs only this program, so that JAX has not started yet.
    """
    number = given.get("cpu-devices")
    if number is None and typed.run_dir is not None:
        number = str(runs.read_run(typed.run_dir)[2])
    distributed = "distributed" in given and "run-dir" in given  # Or `choose` refuses it.
    if distributed:
        if typed.run_dir is None:  # A wrong option is refused before the others wait.
            choose(words, given, custom.NOTHING)
        processes.join()
        if not processes.is_first():
            interrupts.now.outcome = None
    if alone or distributed:
        cpu_devices = int(number) if number and number.isdecimal() else 0  # Or `choose` refuses it.
        # Powers of two divide the games, batches and shards of most settings.
        processes.set_cpu_devices(cpu_devices or 2 ** (processes.cores().bit_length() - 1))


def choose(
    words: Sequence[str], given: Given, typed: custom.Typed
) -> tuple[Config, Plan, str | None]:
    """Returns the settings, the plan and the preset of a new run, or of `typed.run_dir`."""

    def change(config: Config, plan: Plan, preset: str | None = None) -> tuple[Config, Plan]:
        base = Options(config=choose_kinds(config, given), plan=plan, preset=preset)
        options = fill(base, words, _PROG)
        # Custom code is recorded with the digest of its file, in the first session of a run.
        changed = dataclasses.replace(options.config, game=config.game, parts=config.parts)
        return changed, options.plan

    if typed.run_dir is not None:
        custom.check_run(typed.run_dir, typed)
        return *read_resumed(typed.run_dir, change, spell), None
    if typed.network is not None and "network.kind" in given:
        raise ValueError("--network names a custom network: leave --network.kind out")
    chosen = [name for name in given if "." in name or name in ("preset", "smoke")]
    if typed.parts is not None and chosen:
        raise ValueError(f"--parts has its own settings: leave --{chosen[0]} out")
    config, plan, preset = presets.choose(
        *custom.find_new(typed),
        preset=given.get("preset"),
        is_smoke="smoke" in given,
        change=lambda config: custom.record(choose_kinds(config, given), typed),
    )
    return *change(config, plan, preset), preset if typed.parts is None else None


def _set_outcome(named: str) -> None:
    """Chooses what Ctrl-C prints from now on, since the run can be resumed."""
    if processes.is_first():
        interrupts.now.outcome = f"continue with --resume {named}"


def _conclude(run: Run, named: str, trained: bool) -> None:
    if run.report_error:
        write_note(run.report_error)
    elif run.report:
        print(f"report: {run.report}")
    print(f"run directory: {run.run_dir}")
    print(f"play against it: {command('azjax', 'play')} {named}")
    print(f"see how it searches: {command('azjax', 'explain')} {named}")
    if run.evaluation is not None:
        print(f"see how often it errs: {command('azjax', 'verify')} {named}")
    iterations = run.loop.iteration
    more = f" --max-iterations {2 * iterations}" if iterations >= run.plan.max_iterations else ""
    if not run.reached:
        write_note(
            f"not {run.goal} after {iterations} iterations: continue with --resume {named}{more}"
        )
    elif not trained:
        write_note(
            f"{run.run_dir} was finished already, after {iterations} iterations: to continue "
            f"training, add --until never --max-iterations {2 * iterations}"
        )
