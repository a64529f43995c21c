"""Trains a network by self-play until it is proved perfect: `azjax train`."""

import contextlib
import dataclasses
import sys
from collections.abc import Sequence

import jax
from rich.console import Console

from azjax import _interrupts as interrupts
from azjax import _processes as processes
from azjax._commands import command
from azjax.cli import console, custom, launch
from azjax.cli.options import Options, parse
from azjax.programs import Run, open_run
from azjax.runs.callbacks import Interrupts, Sink
from azjax.training import memory, metrics
from azjax.training.loggers import TensorBoard, WeightsAndBiases
from azjax.training.loop import Callback, Loop


def main(arguments: list[str] | None = None) -> int:
    """Runs the program; returns its exit status.

    Args:
      arguments: the command line of a call from Python, which leaves JAX's CPU devices as they
        are; the process's own, by default.
    """
    return console.run(lambda: _train(arguments), "not started")


def _train(arguments: list[str] | None) -> int:
    """Prepares and trains; returns the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    with contextlib.ExitStack() as joined:
        options = parse(given, lambda known: _start(known, arguments is None, joined))
        if options.resume and options.run_dir is not None:
            custom.check_edited(options.run_dir, options.config, options.typed, resume=True)
        with _open(options) as run:
            if jax.process_index() == 0:
                print(memory.describe(run.needs, run.num_devices))
            with console.no_mistakes():
                named = custom.name_run(run.run_dir, run.config, options.typed)
                return train(run, named, _make_loggers(options.log, run))


def _start(options: Options, alone: bool, joined: contextlib.ExitStack) -> None:
    """Joins the other processes and spreads the games over CPU devices, before JAX starts.

    Args:
      options: from the command line.
      alone: whether the process is the program's own, so that JAX has not started yet.
      joined: leaves the other processes when it is closed.
    """
    if options.distributed:
        joined.callback(launch.leave)
        launch.join()
        if not launch.is_first():
            interrupts.now.outcome = None
    if alone or options.distributed:
        config, evenly = options.config, None
        if "replay.shards" not in options.given:
            evenly = (config.selfplay.games, config.learner.batch_size)
        launch.spread(options.plan.cpu_devices, config.replay.shards, options.resume, evenly)


@contextlib.contextmanager
def _open(options: Options):
    """Opens the run of a command line, and shows on a terminal that this takes a while."""
    with contextlib.ExitStack() as held, contextlib.ExitStack() as shown:

        def tell_outcome(run_dir):
            if launch.is_first():
                named = custom.name_run(run_dir, options.config, options.typed)
                interrupts.now.outcome = f"go on with --resume {named}"

        def make_parts(config):
            parts = custom.make_parts(config, options.typed)
            if parts.game.enumerable and launch.is_first():
                console.announce_solving(parts.game)
            return parts

        if launch.is_first():
            shown.enter_context(console.busy("compiling…"))
        run = held.enter_context(
            open_run(
                options.config,
                options.plan,
                options.run_dir,
                make_parts=make_parts,
                resume=options.resume,
                keep=options.given,
                started=interrupts.now.started,
                note=console.note,
                on_lock=tell_outcome,
            )
        )
        shown.close()
        yield run


def _make_loggers(names: Sequence[str], run: Run) -> list[Callback]:
    """Makes the callbacks of `--log`."""
    settings = {"name": run.run_dir.name, "config": dataclasses.asdict(run.config)}
    makers = {
        "tensorboard": lambda: TensorBoard(run.run_dir / "tensorboard"),
        "wandb": lambda: WeightsAndBiases(dir=str(run.run_dir), **settings),
    }
    return [makers[name]() for name in names]


def train(run: Run, named: str, loggers: Sequence[Callback] = ()) -> int:
    """Trains until the goal is reached, and returns the exit status.

    Args:
      run: made ready.
      named: the options by which other programs take it.
      loggers: further callbacks.

    Raises:
      FloatingPointError: if a metric is NaN or infinite.
      KeyboardInterrupt: after Ctrl-C, once the iteration is finished and saved.
    """
    start = run.loop.iteration

    def open_screen(loop: Loop):
        terminal = Console()
        if terminal.is_terminal:
            return metrics.Display(terminal, loop.max_iterations, run.goal)
        return metrics.Plain(sys.stdout)

    run.train(
        loggers,
        displays=[Sink(open_screen), Interrupts()],
        show=console.show_certificate,
        progress=console.report_progress,
    )
    processes.in_first(lambda: _conclude(run, named, trained=run.loop.iteration > start))
    return 0 if run.reached else 1


def _conclude(run: Run, named: str, trained: bool) -> None:
    """Prints where everything is, and how to go on."""
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
            f"not {run.goal} after {iterations} iterations: go on with --resume "
            f"{named} --max-iterations {2 * iterations}"
        )
    elif not trained:
        console.note(
            f"{run.run_dir} was finished already, after {iterations} iterations: to train "
            f"on, add --until never --max-iterations {2 * iterations}"
        )
