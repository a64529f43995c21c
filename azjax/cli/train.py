"""Trains a network by self-play: `azjax train`."""

import contextlib
import dataclasses
import functools
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Annotated

from azjax import _interrupts as interrupts
from azjax import _processes as processes
from azjax import runs
from azjax._commands import command, write_note
from azjax.callbacks import Interrupts, Printer
from azjax.cli import console, custom
from azjax.cli.parsing import Place, choose_kinds, fill, peek, spell
from azjax.program import Run, open_run
from azjax.runs import presets
from azjax.runs.config import Config, CustomNetworkConfig, Plan, check_kept
from azjax.training import Parts, memory, metrics

_PROG = "azjax train"


@dataclasses.dataclass(frozen=True)
class Options:
    """Trains AlphaZero by self-play, and verifies or evaluates the network during training."""

    config: Annotated[Config, Place.FLAT]
    plan: Annotated[Plan, Place.FLAT]
    run_dir: pathlib.Path | None = None
    """Folder for checkpoints, metrics, certificate and report. Default: a new folder in runs/."""
    resume: bool = False
    """Continue the run in --run-dir exactly where its newest checkpoint stopped."""
    distributed: bool = False
    """Run as one of several processes that train together, all with the same options."""
    typed: Annotated[custom.Typed, Place.HIDDEN] = custom.NOTHING
    """The custom game, network or parts that the command line names."""

    def __post_init__(self):
        for name in ("distributed", "resume"):
            if getattr(self, name) and self.run_dir is None:
                raise ValueError(f"--{name} needs the folder of the run: add --run-dir runs/NAME")


def main(arguments: list[str] | None = None) -> int:
    """Runs the program and returns its exit status.

    A call from Python passes `arguments`. Without --distributed, it does not change the number of
    CPU devices.
    """
    return processes.run(lambda: console.run(lambda: _main(arguments), "not started"))


def _main(arguments: list[str] | None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    with contextlib.ExitStack() as context:
        options = parse(words, functools.partial(_start, alone=arguments is None))
        if options.resume and options.run_dir is not None:
            custom.note_edited(options.run_dir, options.config, options.typed)
            _set_outcome(custom.name_run(options.run_dir, options.config, options.typed))
        parts = custom.make_parts(options.config, options.typed)
        opening = open_run(
            options.config,
            parts,
            options.plan,
            options.run_dir,
            resume=options.resume,
            started=interrupts.now.started,
        )
        with console.busy("compiling…") if processes.is_first() else contextlib.nullcontext():
            run = context.enter_context(opening)
        named = custom.name_run(run.run_dir, run.config, options.typed)
        _set_outcome(named)
        if processes.is_first():
            print(memory.describe(run.needs, run.num_devices))
        start = run.loop.iteration
        try:
            run.train(
                displays=[Printer(metrics.print_line), Interrupts()],
                show=console.show_certificate,
                announce=write_note,
            )
        except ValueError as error:  # All settings were checked before.
            raise RuntimeError("this is a defect of azjax, not of its settings") from error
        processes.in_first(lambda: _conclude(run, named, trained=run.loop.iteration > start))
        return 0 if run.reached else 1


def parse(words: Sequence[str], prepare: Callable[[int, bool], None] = lambda *_: None) -> Options:
    """Parses the command line; presets, kinds and resumed runs determine the defaults.

    Args:
      words: the command line.
      prepare: called once with `cpu_devices` and `distributed`, before the code of a custom game or
        parts runs, which may start JAX.
    """
    # A run records these with the digest of their file.
    names = ("game", "network", "parts")
    named, words = peek(words, *names)
    typed = custom.Typed(None, *map(named.get, names))
    early, _ = peek(words, "run_dir", "cpu_devices")
    if "--resume" in words and "run_dir" in early:
        options = _parse_resumed(words, typed, pathlib.Path(early["run_dir"]))
        prepare(options.plan.cpu_devices, options.distributed)
        return options
    if not {"-h", "--help"} & {*words}:
        number = early.get("cpu_devices", "")  # `fill` refuses what is no number.
        distributed = "--distributed" in words and "run_dir" in early  # Or refused below.
        prepare(int(number) if number.isdecimal() else 0, distributed)
    return _parse_new(words, typed)


def _parse_resumed(words: Sequence[str], typed: custom.Typed, run_dir: pathlib.Path) -> Options:
    """Parses the command line of a resumed run, which keeps its settings."""
    config = custom.check_run(run_dir, typed)
    saved = Options(config, runs.read_plan(run_dir), run_dir, resume=True, typed=typed)
    options = fill(saved, words, _PROG)
    check_kept((saved.config, saved.plan), (options.config, options.plan), spell)
    return options


def _parse_new(words: Sequence[str], typed: custom.Typed) -> Options:
    """Parses the command line of a new run."""
    others, _ = peek(words, "network.kind", "preset")
    for name in ("game", "network"):
        if typed.parts and getattr(typed, name) is not None:
            raise ValueError(
                f"--parts has its own {name}: leave --{name} out, or leave --parts out"
            )
    if typed.network is not None and "network.kind" in others:
        raise ValueError("--network names a custom network: leave --network.kind out")

    def change(config: Config) -> Config:
        if typed.parts is not None:
            name = custom.load_code(typed.parts, Parts).game.name
            config = dataclasses.replace(config, parts=custom.identify(typed.parts), game=name)
        if typed.network is not None:
            network = CustomNetworkConfig(source=custom.identify(typed.network))
            config = dataclasses.replace(config, network=network)
        return choose_kinds(config, words)

    name, game = typed.game, None
    if name is not None and custom.is_code(name):
        name, game = custom.identify(name), custom.find_game(name)
    preset, smoke = others.get("preset"), "--smoke" in words
    config, plan = presets.choose(name, game, preset=preset, is_smoke=smoke, change=change)
    return fill(Options(config, plan, typed=typed), words, _PROG)


def _start(cpu_devices: int, distributed: bool, alone: bool) -> None:
    """Joins the other processes and sets the number of CPU devices, before JAX starts.

    `alone` is whether the process runs only this program, so that JAX has not started yet.
    """
    if distributed:
        processes.join()
        if not processes.is_first():
            interrupts.now.outcome = None
    if alone or distributed:
        # Powers of two divide the games, batches and shards of most settings.
        processes.set_cpu_devices(cpu_devices or 2 ** (processes.cores().bit_length() - 1))


def _set_outcome(named: str) -> None:
    """Chooses what Ctrl-C prints from now on, since the run can be resumed."""
    if processes.is_first():
        interrupts.now.outcome = f"continue with --resume {named}"


def _conclude(run: Run, named: str, trained: bool) -> None:
    """Prints where the results are and what to do next."""
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
    if not run.reached:
        write_note(
            f"not {run.goal} after {iterations} iterations: continue with --resume "
            f"{named} --max-iterations {2 * iterations}"
        )
    elif not trained:
        write_note(
            f"{run.run_dir} was finished already, after {iterations} iterations: to continue "
            f"training, add --until never --max-iterations {2 * iterations}"
        )
