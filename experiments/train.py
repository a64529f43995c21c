"""Trains a network by self-play until it is proved perfect: `python -m experiments.train`."""

import time

from experiments import interrupts

_STARTED = time.time()  # Before the heavy imports: figures count the whole process.
if __name__ == "__main__":
    interrupts.listen()

import contextlib
import dataclasses
import gc
import pathlib
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh

from azjax import certificate as certificates
from azjax import checkpoint, lock, memory, metrics, processes, train
from azjax.game import Game
from azjax.player import Player
from azjax.verify import Verdict
from azjax.viz import report
from experiments import console, launch
from experiments.options import Options, Plan, parse
from experiments.proof import Proof, make_proof, save_portrait
from experiments.records import make_record, open_sinks, score


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


def prepare(options: Options, held: contextlib.ExitStack) -> Session:
    """Checks everything, then makes the run directory, locks it, and compiles.

    Args:
      options: from the command line.
      held: takes the lock, to be released when the run has ended.

    Raises:
      ValueError: if settings contradict each other or the machine.
      checkpoint.CheckpointError: if the run directory cannot be used.
    """
    config, plan = options.config, options.plan
    mesh = train.make_mesh()
    processes.check_devices()
    train.check(config, mesh.size)
    parts = train.make_parts(config)
    goal = _choose_goal(plan, parts.game)
    iterate: Any = train.make_iteration(config, mesh)
    memory_plan = memory.plan_memory(config, mesh, iterate)
    memory.check_memory(config, mesh, memory_plan)
    run_dir = options.run_dir or _new_run_dir(options)
    if not options.resume:
        plan = _with_cpu_devices(plan, mesh)
        checkpoint.create_run(run_dir, config, dataclasses.asdict(plan))
    processes.in_first(lambda: held.enter_context(lock.hold(run_dir)))
    if launch.is_first():
        interrupts.now.outcome = f"go on with --resume --run-dir {run_dir}"
        print(memory.describe_plan(memory_plan, mesh.size))
    with (
        console.busy("compiling…") if launch.is_first() else contextlib.nullcontext(),
        ThreadPoolExecutor() as pool,  # XLA compiles outside Python's lock.
    ):
        lowered = iterate.lower(train.abstract_state(config, mesh))
        compiled = pool.submit(lowered.compile, train.compiler_options())
        proof = pool.submit(make_proof, config, parts, mesh) if parts.game.enumerable else None
        if options.resume:
            state, seconds = _restore(run_dir, config, plan, mesh)
            content = dataclasses.asdict(plan)
            processes.in_first(lambda: checkpoint.write_json(run_dir / "plan.json", content))
        else:
            state, seconds = train.make_state(config, mesh), 0.0
        iterate, proof = compiled.result(), proof and proof.result()
    return Session(config, plan, goal, run_dir, parts, state, iterate, proof, _STARTED - seconds)


def _choose_goal(plan: Plan, game: Game) -> certificates.Goal:
    if plan.until == "auto":
        return "perfect" if game.enumerable else "never"
    if plan.until != "never" and not game.enumerable:
        raise ValueError(
            f"{game.name} has too many positions to enumerate, so --until {plan.until} cannot "
            "be proved: use --until never with --max-iterations"
        )
    return plan.until


def _with_cpu_devices(plan: Plan, mesh: Mesh) -> Plan:
    """Notes how many CPU devices each process has, so that a resumed run has as many."""
    on_cpu, number = jax.default_backend() == "cpu", mesh.size // jax.process_count()
    return dataclasses.replace(plan, cpu_devices=number) if on_cpu else plan


def _new_run_dir(options: Options) -> pathlib.Path:
    """Returns the first free `runs/GAME-PRESET-NUMBER`."""
    name, number = f"{options.config.game}-{options.plan.preset}", 1
    while (path := pathlib.Path(f"runs/{name}-{number}")).exists():
        number += 1
    return path


def _restore(
    run_dir: pathlib.Path, config: train.Config, plan: Plan, mesh: Mesh
) -> tuple[train.TrainState, float]:
    """Returns the newest sound state of a run, and the seconds spent until then."""
    records = processes.in_all(lambda: metrics.read_records(run_dir / "metrics.jsonl"))
    state, skipped = checkpoint.restore(run_dir, config, mesh, set_aside=True)
    for sentence in skipped if launch.is_first() else []:
        console.note(f"{sentence}; it was moved to {run_dir}/damaged, and an older one goes on")
    iteration = int(state.iteration)
    last = records[-1]["iteration"] if records else 0
    if last - iteration > plan.checkpoint_every and not skipped and launch.is_first():
        console.note(
            f"{run_dir} trained for {last} iterations, but its checkpoints end at {iteration}: "
            "it goes on from there"
        )
    return state, metrics.last_seconds(records, iteration)


def run(session: Session) -> int:
    """Trains until the goal is reached, and returns the exit status.

    Raises:
      Diverged: if a metric is NaN or infinite.
      KeyboardInterrupt: after Ctrl-C, once the iteration is finished and saved.
    """
    plan, state = session.plan, session.state
    start = int(state.iteration)
    verdict, portrait = _judge(session, state)
    _save_portrait(session, start, portrait)
    certificate = _certify_goal(session, state, verdict) if start else None
    with (
        checkpoint.Checkpointer(session.run_dir, plan.keep_checkpoints) as checkpointer,
        open_sinks(session.run_dir, start, plan.max_iterations, session.goal) as sinks,
        _Interrupt() as interrupt,
    ):
        while certificate is None and int(state.iteration) < plan.max_iterations:
            state, verdict, record = _advance(session, state)
            processes.in_first(lambda: [sink(record) for sink in sinks])
            certificate = _certify_goal(session, state, verdict)
            unproved, interrupted = processes.any_of(certificate is None, interrupt.requested)
            certificate = None if unproved else certificate
            is_last = certificate is not None or record.iteration >= plan.max_iterations
            if is_last or interrupted or record.iteration % plan.checkpoint_every == 0:
                checkpointer.save(state, score(record))
            if interrupted:
                raise KeyboardInterrupt
    return _finish(session, state, certificate, trained=int(state.iteration) > start)


def _advance(session: Session, state: train.TrainState):
    """Makes one iteration; returns the new state, its verdict and the record of both."""
    before = time.time()
    state, measured = session.iterate(state)
    verdict, portrait = _judge(session, state)
    record = make_record(int(state.iteration), measured, verdict, before, session.started)
    if name := record.non_finite():
        raise Diverged(
            f"{name} became {getattr(record, name)} in iteration {record.iteration}, so training "
            f"stopped, and what {session.run_dir} holds is from before: start a new run with a "
            "lower --learner.learning-rate, or with --learner.clip-norm 1"
        )
    _save_portrait(session, record.iteration, portrait)
    return state, verdict, record


def _judge(session: Session, state: train.TrainState):
    """Returns the verdict on the raw network and its portrait, or two times None."""
    average = train.one_copy(state.learner.average)
    return session.proof.judge(average) if session.proof else (None, None)


def _save_portrait(session: Session, iteration: int, portrait) -> None:
    if launch.is_first():
        save_portrait(session.run_dir, iteration, portrait)


class _Interrupt:
    """Turns the first Ctrl-C or SIGTERM into a request to stop after the current iteration."""

    requested = False

    def __enter__(self):
        signals = (signal.SIGINT, signal.SIGTERM)
        self._previous = {number: signal.signal(number, self._handle) for number in signals}
        interrupts.now.patient = True
        return self

    def _handle(self, number, frame):
        self.requested = True
        self._restore()

    def __exit__(self, *exception):
        interrupts.now.patient = False
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)


def _certify_goal(session: Session, state: train.TrainState, verdict: Verdict | None):
    """Returns the certificate if the goal is reached, search included, or None."""
    if not session.proof or not verdict or not certificates.reached(session.goal, verdict):
        return None
    found = _certify(session, session.proof, state)
    return found if session.goal == "unbeatable" or found.perfect else None


def _certify(session: Session, proof: Proof, state: train.TrainState) -> certificates.Certificate:
    params = session.parts.network.fold(train.one_copy(state.learner.average))
    return proof.certify(params, int(state.iteration), session.started)


def _finish(session: Session, state: train.TrainState, certificate, trained: bool) -> int:
    """Lets process 0 say and write how it ended; the exit status: was the goal reached?"""
    reached = session.goal == "never" or certificate is not None
    processes.in_first(lambda: _conclude(session, state, certificate, trained, reached))
    return 0 if reached else 1


def _conclude(session: Session, state, certificate, trained: bool, reached: bool) -> None:
    """Writes certificate and report, and says where they are."""
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


def _write_report(session: Session, state: train.TrainState) -> None:
    """Writes `report.html`; the run is complete without it, so a failure is only a note."""
    params = session.parts.network.fold(train.one_copy(state.learner.average))
    player = Player(session.parts.game, session.config, params, int(state.iteration))
    solution = session.proof and session.proof.solution
    try:
        path = report.write_report(session.run_dir, player, solution)
    except (OSError, ValueError) as error:
        console.note(f"the report was not written: {error}")
    else:
        print(f"report: {path}")


def main(arguments: list[str] | None = None) -> int:
    """Runs the program; returns its exit status.

    Args:
      arguments: the command line of a call from Python, which leaves JAX's CPU devices as they
        are; the process's own, by default.
    """
    mistakes = (*console.MISTAKES, processes.OtherProcessError, Diverged)
    return console.run(lambda: _train(arguments), "not started", mistakes)


def _train(arguments: list[str] | None) -> int:
    """Prepares and trains; returns the exit status."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        with contextlib.ExitStack() as held:
            with _no_garbage_collection():
                session = prepare(_start(options, alone=arguments is None), held)
            with console.no_mistakes():
                return run(session)
    finally:
        if options.distributed:
            launch.leave()


@contextlib.contextmanager
def _no_garbage_collection():
    """Keeps Python from searching, again and again, the many small objects of tracing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _start(options: Options, alone: bool) -> Options:
    """Joins the other processes and spreads the games over CPU devices, before JAX starts.

    Args:
      options: from the command line.
      alone: whether the process is the program's own, so that JAX has not started yet.
    """
    if options.distributed:
        launch.join()
        if not launch.is_first():
            interrupts.now.outcome = None
    if not (alone or options.distributed):
        return options
    shards, plan = options.config.replay.shards, options.plan
    number = launch.spread(plan.cpu_devices, shards, options.resume)
    return dataclasses.replace(options, plan=dataclasses.replace(plan, cpu_devices=number))


if __name__ == "__main__":
    sys.exit(main())
