"""Trains a network by self-play until it is proved perfect: `python -m experiments.train`."""

import time

_STARTED = time.time()  # Before the heavy imports: figures count the whole process.

import contextlib
import dataclasses
import pathlib
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh
from rich.console import Console

from azjax import certificate as certificates
from azjax import checkpoint, metrics, train
from azjax.game import Game
from azjax.player import Player
from azjax.verify import Verdict
from azjax.viz import report
from experiments import console
from experiments.options import Options, Plan, parse
from experiments.proof import Proof, make_proof, save_portrait


class Session(NamedTuple):
    """A run made ready: everything compiled, the state on its devices.

    Attributes:
      config: the settings of the run.
      plan: when to stop and to save.
      goal: what the plan's `until` means for this game.
      run_dir: the run directory.
      parts: from `train.make_parts`.
      state: where to start.
      iterate: one iteration, compiled.
      proof: None where the game cannot be enumerated.
      started: the `time.time()` from which this run's seconds count; earlier sittings of a
        resumed run move it back.
    """

    config: train.Config
    plan: Plan
    goal: certificates.Goal
    run_dir: pathlib.Path
    parts: train.Parts
    state: train.TrainState
    iterate: Callable[[train.TrainState], tuple[train.TrainState, train.Metrics]]
    proof: Proof | None
    started: float


class Diverged(Exception):
    """Training produced numbers that are not finite."""


def prepare(options: Options) -> Session:
    """Checks everything, then makes the run directory, and compiles.

    Raises:
      ValueError: if settings contradict each other or the machine.
      checkpoint.CheckpointError: if the run directory cannot be used.
    """
    config, plan = options.config, options.plan
    mesh = train.make_mesh()
    train.check(config, mesh.size)
    parts = train.make_parts(config)
    goal = _choose_goal(plan, parts.game)
    abstract = train.abstract_state(config, mesh)
    run_dir = options.run_dir or _new_run_dir(options)
    if not options.resume:
        checkpoint.create_run(run_dir, config, dataclasses.asdict(plan))
    with (
        console.busy("compiling…"),
        ThreadPoolExecutor() as pool,  # XLA compiles outside Python's lock.
    ):
        iterate = pool.submit(_compile_iteration, config, mesh, abstract)
        if options.resume:
            state, seconds = _restore(run_dir, config, mesh)
            checkpoint.write_json(run_dir / "plan.json", dataclasses.asdict(plan))
        else:
            state, seconds = train.make_state(config, mesh), 0.0
        proof = make_proof(config, parts, abstract) if parts.game.enumerable else None
    started = _STARTED - seconds
    return Session(config, plan, goal, run_dir, parts, state, iterate.result(), proof, started)


def _choose_goal(plan: Plan, game: Game) -> certificates.Goal:
    if plan.until == "auto":
        return "perfect" if game.enumerable else "never"
    if plan.until != "never" and not game.enumerable:
        raise ValueError(
            f"{game.name} has too many positions to enumerate, so --until {plan.until} cannot "
            "be proved: use --until never with --max-iterations"
        )
    return plan.until


def _new_run_dir(options: Options) -> pathlib.Path:
    """Returns the first free `runs/GAME-PRESET-NUMBER`."""
    name, number = f"{options.config.game}-{options.plan.preset}", 1
    while (path := pathlib.Path(f"runs/{name}-{number}")).exists():
        number += 1
    return path


def _restore(
    run_dir: pathlib.Path, config: train.Config, mesh: Mesh
) -> tuple[train.TrainState, float]:
    """Returns the newest sound state of a run, and the seconds spent until then."""
    state, skipped = checkpoint.restore(run_dir, config, mesh, set_aside=True)
    for sentence in skipped:
        console.note(f"{sentence}; it was moved to {run_dir}/damaged, and an older one goes on")
    return state, metrics.last_seconds(run_dir / "metrics.jsonl", int(state.iteration))


def _compile_iteration(config: train.Config, mesh: Mesh, abstract: train.TrainState):
    iterate: Any = train.make_iteration(config, mesh)
    return iterate.lower(abstract).compile(train.compiler_options())


def run(session: Session) -> int:
    """Trains until the goal is reached, and returns the exit status.

    Raises:
      Diverged: if a metric is NaN or infinite.
      KeyboardInterrupt: after Ctrl-C, once the iteration is finished and saved.
    """
    plan, state = session.plan, session.state
    start = int(state.iteration)
    verdict, portrait = _judge(session, state)
    save_portrait(session.run_dir, start, portrait)
    certificate = _certify_goal(session, state, verdict) if start else None
    with (
        checkpoint.Checkpointer(session.run_dir, plan.keep_checkpoints) as checkpointer,
        _open_sinks(session) as sinks,
        _Interrupt() as interrupt,
    ):
        while certificate is None and int(state.iteration) < plan.max_iterations:
            state, verdict, record = _advance(session, state)
            for sink in sinks:
                sink(record)
            certificate = _certify_goal(session, state, verdict)
            is_last = certificate is not None or record.iteration >= plan.max_iterations
            if is_last or interrupt.requested or record.iteration % plan.checkpoint_every == 0:
                checkpointer.save(state, _score(record))
            if interrupt.requested and not is_last:
                raise KeyboardInterrupt
    return _finish(session, state, certificate, trained=int(state.iteration) > start)


def _advance(session: Session, state: train.TrainState):
    """Makes one iteration; returns the new state, its verdict and the record of both."""
    before = time.time()
    state, measured = session.iterate(state)
    verdict, portrait = _judge(session, state)
    record = _make_record(session, state, measured, verdict, before)
    if name := record.non_finite():
        raise Diverged(
            f"{name} became {getattr(record, name)} in iteration {record.iteration}, so training "
            f"stopped, and what {session.run_dir} holds is from before: start a new run with a "
            "lower --learner.learning-rate, or with --learner.clip-norm 1"
        )
    save_portrait(session.run_dir, record.iteration, portrait)
    return state, verdict, record


def _judge(session: Session, state: train.TrainState):
    """Returns the verdict on the raw network and its portrait, or two times None."""
    return session.proof.judge(state.learner.average) if session.proof else (None, None)


class _Interrupt:
    """Turns the first Ctrl-C into a request to stop after the current iteration."""

    requested = False

    def __enter__(self):
        self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def _handle(self, number, frame):
        self.requested = True
        signal.signal(signal.SIGINT, self._previous)

    def __exit__(self, *exception):
        signal.signal(signal.SIGINT, self._previous)


@contextlib.contextmanager
def _open_sinks(session: Session) -> Iterator[list[Callable[[metrics.Record], None]]]:
    """The JSON-lines file, and a live table on a terminal or plain lines elsewhere."""
    path, terminal = session.run_dir / "metrics.jsonl", Console()
    with contextlib.ExitStack() as stack:
        file = metrics.JsonLines(path, after=int(session.state.iteration))
        stack.enter_context(contextlib.closing(file))
        screen = metrics.Plain(sys.stdout)
        if terminal.is_terminal:
            screen = metrics.Display(terminal, session.plan.max_iterations, session.goal)
        stack.enter_context(contextlib.closing(screen))
        yield [file, screen]


def _make_record(session: Session, state, measured, verdict, before: float) -> metrics.Record:
    """Waits for an iteration's numbers and puts them together."""
    measured, verdict = jax.device_get((measured, verdict))
    now, losses = time.time(), measured.losses
    proof = {}
    if verdict is not None:
        proof = {
            "blunders": int(verdict.blunders),
            "losing_lines_first": int(verdict.losing_lines[0]),
            "losing_lines_second": int(verdict.losing_lines[1]),
            "value_sign_errors": int(verdict.value_sign_errors),
            "value_error": float(verdict.value_error),
        }
    return metrics.Record(
        iteration=int(state.iteration),
        seconds=now - session.started,
        games=int(measured.games),
        games_per_second=float(measured.games) / (now - before),
        loss=float(losses.total),
        value_loss=float(losses.value),
        policy_loss=float(losses.policy),
        policy_kl=float(losses.policy_kl),
        l2=float(losses.l2),
        grad_norm=float(losses.grad_norm),
        **proof,
    )


def _score(record: metrics.Record) -> float:
    """Higher is better: fewest blunders, then lowest loss."""
    return -record.loss if record.blunders is None else -record.blunders - record.loss / 1e3


def _certify_goal(session: Session, state: train.TrainState, verdict: Verdict | None):
    """Returns the certificate if the goal is reached, search included, or None."""
    if not session.proof or not verdict or not certificates.reached(session.goal, verdict):
        return None
    found = _certify(session, session.proof, state)
    return found if session.goal == "unbeatable" or found.perfect else None


def _certify(session: Session, proof: Proof, state: train.TrainState) -> certificates.Certificate:
    params = session.parts.network.fold(state.learner.average)
    return proof.certify(params, int(state.iteration), session.started)


def _finish(session: Session, state: train.TrainState, certificate, trained: bool) -> int:
    """Writes certificate and report; the exit status says whether the goal was reached."""
    reached = session.goal == "never" or certificate is not None
    run_dir, iterations = session.run_dir, int(state.iteration)
    path = run_dir / "certificate.json"
    if session.proof and (trained or not path.exists()):
        certificate = certificate or _certify(session, session.proof, state)
        checkpoint.write_json(path, console.as_json(certificate))
        console.show_certificate(certificate)
    if session.plan.report and (trained or not (run_dir / "report.html").exists()):
        _write_report(session, state)
    print(f"run directory: {run_dir}")
    if not reached:
        console.note(
            f"not {session.goal} after {iterations} iterations: go on with --resume --run-dir "
            f"{run_dir} --max-iterations {2 * iterations}"
        )
    elif not trained:
        console.note(
            f"{run_dir} was finished already, after {iterations} iterations: to train on, add "
            f"--until never --max-iterations {2 * iterations}"
        )
    return 0 if reached else 1


def _write_report(session: Session, state: train.TrainState) -> None:
    """Writes `report.html`; the run is complete without it, so a failure is only a note."""
    params = session.parts.network.fold(state.learner.average)
    player = Player(session.parts.game, session.config, params, int(state.iteration))
    try:
        solution = session.proof and session.proof.solution
        print(f"report: {report.write_report(session.run_dir, player, solution)}")
    except (OSError, ValueError) as error:
        console.note(f"the report was not written: {error}")


def main(arguments: list[str] | None = None) -> int:
    """Runs the program; returns its exit status."""
    session = None
    try:
        session = prepare(parse(sys.argv[1:] if arguments is None else arguments))
        return run(session)
    except (OSError, checkpoint.CheckpointError, Diverged) as error:
        return console.fail(error)
    except ValueError as error:
        if session:  # Not bad input, but a defect.
            raise
        return console.fail(error)
    except KeyboardInterrupt:
        where = f"go on with --resume --run-dir {session.run_dir}" if session else "not started"
        console.note(f"interrupted: {where}")
        return 130


if __name__ == "__main__":
    sys.exit(main())
