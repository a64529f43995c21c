"""Trains a network by self-play until it is proved perfect: `azjax train`."""

import contextlib
import gc
import sys
import time

from azjax import _processes as processes
from azjax import training
from azjax.cli import console, interrupts, judging, launch
from azjax.cli.conclude import certify_goal, conclude
from azjax.cli.options import Options, parse
from azjax.cli.proof import examine, save_seen
from azjax.cli.records import make_record, open_sinks, score
from azjax.cli.session import Session, prepare
from azjax.runs import checkpoint


def run(session: Session) -> int:
    """Trains until the goal is reached, and returns the exit status.

    Raises:
      FloatingPointError: if a metric is NaN or infinite.
      KeyboardInterrupt: after Ctrl-C, once the iteration is finished and saved.
    """
    plan, state = session.plan, session.state
    start = int(state.iteration)
    verdict, seen = examine(session.proof, state, anyway=start > 0)
    save_seen(session.run_dir, start, session.proof, seen)
    certificate = certify_goal(session, state, verdict) if start else None
    with (
        contextlib.ExitStack() as stack,
        interrupts.Request() as interrupt,
    ):
        sinks = open_sinks(stack, session.run_dir, start, plan.max_iterations, session.goal)
        while certificate is None and int(state.iteration) < plan.max_iterations:
            state, verdict, record = _advance(session, state)
            processes.in_first(lambda: [sink(record) for sink in sinks])
            certificate = certify_goal(session, state, verdict)
            unproved, interrupted = processes.any_of(certificate is None, interrupt.made)
            certificate = None if unproved else certificate
            is_last = certificate is not None or record.iteration >= plan.max_iterations
            if is_last or interrupted or record.iteration % plan.checkpoint_every == 0:
                rank = score(record, session.proof is None or session.proof.every == 1)
                checkpoint.save(session.run_dir, state, rank, plan.keep_checkpoints)
            if interrupted:
                raise KeyboardInterrupt
    return conclude(session, state, verdict, certificate, trained=int(state.iteration) > start)


def _advance(session: Session, state: training.TrainState):
    """Makes one iteration; returns the new state, its verdict and the record of both."""
    before = time.time()
    state, measured = session.iterate(state)
    last = session.plan.max_iterations
    verdict, seen = examine(session.proof, state, anyway=int(state.iteration) >= last)
    errors = judging.find_errors(session.judge, state, last)
    record = make_record(int(state.iteration), measured, verdict, errors, before, session.started)
    if name := record.non_finite():
        raise FloatingPointError(
            f"{name} became {record.as_dict()[name]} in iteration {record.iteration}, so training "
            f"stopped, and what {session.run_dir} holds is from before: start a new run with a "
            "lower --learner.learning-rate, or with --learner.clip-norm 1"
        )
    save_seen(session.run_dir, record.iteration, session.proof, seen)
    return state, verdict, record


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
        with contextlib.ExitStack() as held:
            gc.disable()  # It would search, again and again, the many small objects of tracing.
            try:
                session = prepare(options, interrupts.now.started, held)
            finally:
                gc.enable()
            with console.no_mistakes():
                return run(session)


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
