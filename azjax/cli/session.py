"""A training run made ready: checked, its directory locked, compiled, and a state to start from."""

import contextlib
import dataclasses
import os
import pathlib
import re
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh

from azjax import _files as files
from azjax import _processes as processes
from azjax import runs, training
from azjax._settings import list_changes
from azjax.cli import console, interrupts, launch, own
from azjax.cli.judging import Judge, make_judge
from azjax.cli.options import Options, Plan
from azjax.cli.proof import Proof, make_proof
from azjax.games.base import Game
from azjax.proof import certificate as certificates
from azjax.runs import behavior, checkpoint, lock
from azjax.runs.config import Config, fit_devices, is_own
from azjax.training import memory, metrics


class Session(NamedTuple):
    """A run made ready: everything compiled, the state on its devices.

    Attributes:
      config: the settings of the run.
      plan: when to stop and to save.
      goal: what the plan's `until` means for this game.
      run_dir: the run directory.
      parts: what is trained.
      state: where to start.
      iterate: one iteration, compiled.
      proof: None where the game cannot be enumerated.
      judge: None where it has no labelled positions.
      started: the `time.time()` from which this run's seconds count; earlier sittings of a
        resumed run move it back.
      named: the options by which other programs take this run.
    """

    config: Config
    plan: Plan
    goal: certificates.Goal
    run_dir: pathlib.Path
    parts: training.Parts
    state: training.TrainState
    iterate: Callable[[training.TrainState], tuple[training.TrainState, training.Metrics]]
    proof: Proof | None
    judge: Judge | None
    started: float
    named: str


def prepare(options: Options, started: float, held: contextlib.ExitStack) -> Session:
    """Checks everything, compiles, finds the state to start from, and locks the run directory.

    A new run's directory is made last, so that nothing is left of a run that cannot be.

    Args:
      options: from the command line.
      started: the `time.time()` when this process began.
      held: takes the lock, to be released when the run has ended.

    Raises:
      ValueError: if settings contradict each other or the machine.
      runs.CheckpointError: if the run directory cannot be used.
    """
    mesh = _make_mesh(options)
    options, changes = _fit_devices(options, mesh.size)
    parts = _check_parts(options, mesh)
    if changes and launch.is_first():
        console.note(f"{mesh.size} devices: {changes}")
    goal = _choose_goal(options.plan, parts.game)
    run_dir = options.run_dir or _new_run_dir(options)
    named = own.name_run(run_dir, options.config, options.typed)
    state, seconds = None, 0.0
    if options.resume:
        own.check_edited(run_dir, options.config, options.typed, resume=True)
        _lock(run_dir, named, held)
        state, seconds = _restore(run_dir, parts, mesh)
    else:
        processes.in_first(lambda: runs.check_free(run_dir))
    with (
        console.busy("compiling…") if launch.is_first() else contextlib.nullcontext(),
        ThreadPoolExecutor() as pool,  # XLA compiles outside Python's lock.
    ):
        if parts.game.enumerable and launch.is_first():
            console.announce_solving(parts.game)
        compiled, proof = _compile(parts, mesh, pool, options.plan.examine_every, state)
        if state is None:
            state = _make_state(options, parts, mesh)
        iterate, proof = compiled.result(), proof and proof.result()
    needs = memory.footprint(parts, mesh, iterate)
    memory.check_fits(needs)
    plan = _save_plan(options, run_dir, mesh, parts)
    if not options.resume:
        _lock(run_dir, named, held)
    if launch.is_first():
        print(memory.describe(needs, mesh.size))
    started -= seconds
    return Session(
        options.config,
        plan,
        goal,
        run_dir,
        parts,
        state,
        iterate,
        proof,
        make_judge(parts, mesh.size),
        started,
        named,
    )


def _make_mesh(options: Options) -> Mesh:
    """Returns a mesh of all devices; a resumed run leaves out those that do not divide its shards.

    Several processes keep all of theirs.
    """
    devices, shards = jax.devices(), options.config.replay.shards
    if options.resume and jax.process_count() == 1:
        number = launch.share(shards, len(devices))
        if number < len(devices):
            console.note(
                f"{number} of {len(devices)} devices are used: the run goes on with its "
                f"{shards} shards of the replay buffer, which more devices do not divide"
            )
        devices = devices[:number]
    return training.make_mesh(devices)


def _fit_devices(options: Options, num_devices: int) -> tuple[Options, str]:
    """Rounds settings of a new run that were not given, so that its devices share them evenly.

    Returns:
      The options, and what is different now, for people.
    """
    if options.resume:
        return options, ""
    config = fit_devices(options.config, num_devices, options.given)
    changes = list_changes(options.config, config)
    said = ", ".join(f"{name} {new} instead of {old}" for name, old, new in changes)
    return dataclasses.replace(options, config=config), said


def _check_parts(options: Options, mesh: Mesh) -> training.Parts:
    """Builds what is trained, and refuses what does not fit together or into memory."""
    processes.check_devices()
    parts = own.make_parts(options.config, options.typed)
    training.check_parts(parts, mesh.size)
    memory.check_fits(memory.footprint(parts, mesh))
    return parts


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
    """Returns the first free `runs/GAME-PRESET-NUMBER`, or `runs/GAME-NUMBER` if both are one."""
    place, _, detail = options.config.game.partition(":")
    game = re.split(r"[/.\\]", place.removesuffix(".py"))[-1]  # Of one's own: its file or module.
    if not is_own(options.config.game) and detail:
        game = f"{game}-{detail}"
    name, number = "-".join(dict.fromkeys([game, options.plan.preset])), 1
    while os.path.lexists(path := pathlib.Path(f"runs/{name}-{number}")):
        number += 1
    return path


def _lock(run_dir: pathlib.Path, named: str, held: contextlib.ExitStack) -> None:
    """Lets process 0 lock the run directory; from now on it can be gone on with."""
    processes.in_first(lambda: held.enter_context(lock.hold(run_dir)))
    if launch.is_first():
        interrupts.now.outcome = f"go on with --resume {named}"


def _compile(
    parts: training.Parts,
    mesh: Mesh,
    pool: ThreadPoolExecutor,
    examine_every: int,
    state: training.TrainState | None,
) -> tuple[Future[Any], Future[Proof] | None]:
    """Starts to compile an iteration, and the proof where the game can be enumerated.

    A restored state is handed in: its keys may be of another implementation than JAX's default.
    """
    iterate: Any = training.make_iteration(parts, mesh)
    lowered = iterate.lower(training.abstract_state(parts, mesh) if state is None else state)
    compiled = pool.submit(lowered.compile, training.compiler_options())
    if not parts.game.enumerable:
        return compiled, None
    return compiled, pool.submit(make_proof, parts, mesh, examine_every)


def _restore(
    run_dir: pathlib.Path, parts: training.Parts, mesh: Mesh
) -> tuple[training.TrainState | None, float]:
    """Returns the newest sound state of a run, None if it has none yet, and the seconds until then.

    Raises:
      ValueError: if the metrics cannot be read.
      runs.CheckpointError: if no checkpoint is sound.
    """
    records = processes.in_all(lambda: metrics.read_records(run_dir / "metrics.jsonl"))
    state, skipped = checkpoint.restore(run_dir, parts, mesh, set_aside=True)
    for sentence in skipped if launch.is_first() else ():
        console.note(f"{sentence}; it was moved to {run_dir}/damaged, and an older one goes on")
    return state, metrics.last_seconds(records, int(state.iteration) if state else 0)


def _make_state(options: Options, parts: training.Parts, mesh: Mesh) -> training.TrainState:
    """Returns the first state of a run."""
    return training.make_state(
        parts,
        jax.random.key(options.config.seed),
        mesh,
        lambda made: memory.check_fits(memory.footprint(parts, mesh, made)),
    )


def _save_plan(options: Options, run_dir: pathlib.Path, mesh: Mesh, parts: training.Parts) -> Plan:
    """Writes the plan, in a new run together with its directory.

    It notes how many CPU devices each process has, so that a resumed run has as many.
    """
    plan = options.plan
    if jax.default_backend() == "cpu":
        plan = dataclasses.replace(plan, cpu_devices=mesh.size // jax.process_count())
    content = dataclasses.asdict(plan)
    if options.resume:
        processes.in_first(lambda: files.write_json(run_dir / "plan.json", content))
    else:
        records = behavior.make_records(options.config, parts)
        runs.create_run(run_dir, options.config, content, records)
    return plan
