"""Trains a network by self-play: `azjax train`."""

import contextlib
import dataclasses
import pathlib
import sys

from rich.console import Console

from azjax import _interrupts as interrupts
from azjax import _processes as processes
from azjax._commands import command
from azjax.callbacks import Interrupts, Output
from azjax.cli import console, custom, launch
from azjax.cli.display import Display
from azjax.cli.options import parse
from azjax.program import Run, open_run
from azjax.runs.config import Config
from azjax.training import memory, metrics
from azjax.training.loggers import TensorBoard, WeightsAndBiases
from azjax.training.loop import Callback, Loop


def main(arguments: list[str] | None = None) -> int:
    """Runs the program and returns its exit status.

    A call from Python passes `arguments`. Without --distributed, it does not change the number of
    CPU devices.
    """
    return launch.run(lambda: console.run(lambda: _main(arguments), "not started"))


def _main(arguments: list[str] | None) -> int:
    given = sys.argv[1:] if arguments is None else arguments
    with contextlib.ExitStack() as context:
        options = parse(given, lambda known: launch.start(known, arguments is None))
        if options.resume and options.run_dir is not None:
            custom.note_edited(options.run_dir, options.config, options.typed)
            _set_outcome(custom.name_run(options.run_dir, options.config, options.typed))
        place = options.run_dir or pathlib.Path("runs")
        # A missing package stops all processes here, before anything is compiled.
        processes.in_all(lambda: [_make_logger(log, place, options.config) for log in options.log])
        parts = custom.make_parts(options.config, options.typed)
        if parts.game.enumerable and launch.is_first():
            console.announce_solving(parts.game)
        opening = open_run(
            options.config,
            parts,
            options.plan,
            options.run_dir,
            resume=options.resume,
            keep=options.given,
            started=interrupts.now.started,
        )
        with console.busy("compiling…") if launch.is_first() else contextlib.nullcontext():
            run = context.enter_context(opening)
        named = custom.name_run(run.run_dir, run.config, options.typed)
        _set_outcome(named)
        if launch.is_first():
            print(memory.describe(run.needs, run.num_devices))
        loggers = [_make_logger(log, run.run_dir, run.config) for log in options.log]
        start = run.loop.iteration
        try:
            run.train(
                loggers,
                displays=[Output(lambda loop: _open_display(loop, run.goal)), Interrupts()],
                show=console.show_certificate,
                progress=console.report_progress,
                announce=console.note,
            )
        except ValueError as error:  # All settings were checked before.
            raise RuntimeError("this is a defect of azjax, not of its settings") from error
        processes.in_first(lambda: _conclude(run, named, trained=run.loop.iteration > start))
        return 0 if run.reached else 1


def _set_outcome(named: str) -> None:
    """Chooses what Ctrl-C prints from now on, since the run can be resumed."""
    if launch.is_first():
        interrupts.now.outcome = f"continue with --resume {named}"


def _make_logger(name: str, run_dir: pathlib.Path, config: Config) -> Callback:
    """Makes a callback of `--log`."""
    if name == "tensorboard":
        return TensorBoard(run_dir / "tensorboard")
    settings = dataclasses.asdict(config)
    return WeightsAndBiases(dir=str(run_dir), name=run_dir.name, config=settings)


def _open_display(loop: Loop, goal: str) -> Display | metrics.Plain:
    """Opens a live table at a terminal; elsewhere, each iteration has a line."""
    terminal = Console()
    if terminal.is_terminal:
        return Display(terminal, loop.max_iterations, goal)
    return metrics.Plain(sys.stdout)


def _conclude(run: Run, named: str, trained: bool) -> None:
    """Prints where the results are and what to do next."""
    if run.report is not None and run.report.failed:
        console.note(run.report.failed)
    elif run.report is not None and run.report.path:
        print(f"report: {run.report.path}")
    print(f"run directory: {run.run_dir}")
    print(f"play against it: {command('azjax', 'play')} {named}")
    print(f"see how it searches: {command('azjax', 'explain')} {named}")
    if run.evaluation is not None:
        print(f"see how often it errs: {command('azjax', 'verify')} {named}")
    iterations = run.loop.iteration
    if not run.reached:
        console.note(
            f"not {run.goal} after {iterations} iterations: continue with --resume "
            f"{named} --max-iterations {2 * iterations}"
        )
    elif not trained:
        console.note(
            f"{run.run_dir} was finished already, after {iterations} iterations: to continue "
            f"training, add --until never --max-iterations {2 * iterations}"
        )
