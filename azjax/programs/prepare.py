"""A training made ready: checked, its directory locked, compiled, and a state to start from."""

import contextlib
import dataclasses
import gc
import os
import pathlib
import re
import sys
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
from jax.sharding import Mesh

from azjax import _files as files
from azjax import _processes as processes
from azjax import runs, training
from azjax._settings import list_changes
from azjax.games.base import Game
from azjax.programs.run import Run
from azjax.proof import certificate as certificates
from azjax.proof.callbacks import LabelledEvaluation, Verification
from azjax.runs import behavior, checkpoint, lock
from azjax.runs.config import Config, fit_devices, is_custom
from azjax.runs.config import make_parts as make_named_parts
from azjax.runs.plan import Plan
from azjax.training import memory, metrics
from azjax.training.loop import Loop
from azjax.viz.callbacks import Note

MakeParts = Callable[[Config], training.Parts]


def write_note(sentence: str) -> None:
    """Prints a sentence next to the output of a program."""
    print(sentence, file=sys.stderr, flush=True)


@contextlib.contextmanager
def open_run(
    config: Config,
    plan: Plan,
    run_dir: pathlib.Path | None = None,
    *,
    make_parts: MakeParts = make_named_parts,
    resume: bool = False,
    keep: Collection[str] = (),
    started: float | None = None,
    note: Note = write_note,
    on_lock: Callable[[pathlib.Path], None] = lambda run_dir: None,
) -> Iterator[Run]:
    """Checks everything, compiles, finds the state to start from, and locks the run directory.

    A new run's directory is made last, so that nothing is left of a run that cannot be. Its lock
    is held while the `with` block lasts.

    Args:
      config: the settings.
      plan: when to stop and to save.
      run_dir: the run directory; None: the first free one in `runs/`.
      make_parts: builds the parts of the settings.
      resume: whether to go on with the run in that directory.
      keep: names of settings that the number of devices does not change; see `fit_devices`.
      started: the `time.time()` from which seconds count; now, by default.
      note: is given sentences about what was decided on the way.
      on_lock: is called once the run can be resumed.

    Raises:
      ValueError: if settings contradict each other or the machine.
      runs.CheckpointError: if the run directory cannot be used.
    """
    started = time.time() if started is None else started
    with contextlib.ExitStack() as held:
        gc.disable()  # It would search, again and again, the many small objects of tracing.
        try:
            run = _open(
                config, plan, run_dir, make_parts, resume, keep, started, note, on_lock, held
            )
        finally:
            gc.enable()
        yield run


def _open(config, plan, run_dir, make_parts, resume, keep, started, note, on_lock, held) -> Run:
    quiet = jax.process_index() != 0
    note = (lambda sentence: None) if quiet else note
    processes.check_devices()
    fixed = resume or bool(config.parts)  # Neither settings nor shards may change.
    custom = make_parts(config) if config.parts else None
    mesh = _make_mesh((custom or config).replay.shards, fixed, note)
    config, changes = _fit_devices(config, mesh.size, keep, fixed)
    parts = custom or make_parts(config)
    training.check_parts(parts, mesh.size)
    memory.check_fits(memory.estimate(parts, mesh))
    if changes:
        note(f"{mesh.size} devices: {changes}")
    goal = _choose_goal(plan, parts.game)
    run_dir = run_dir or new_run_dir(config, plan)
    state, seconds = None, 0.0

    def hold():
        processes.in_first(lambda: held.enter_context(lock.hold(run_dir)))
        on_lock(run_dir)

    if resume:
        hold()
        state, seconds = _restore(run_dir, parts, mesh, note)
    else:
        processes.in_first(lambda: runs.check_free(run_dir))
    with ThreadPoolExecutor() as pool:  # XLA compiles outside Python's lock.
        compiled, verification = _compile(parts, mesh, pool, plan.examine_every, state)
        if state is None:
            state = _make_state(config, parts, mesh)
        step, verification = compiled.result(), verification and verification.result()
    needs = memory.estimate(parts, mesh, step)
    memory.check_fits(needs)
    plan = _save_plan(config, plan, run_dir, mesh, parts, resume)
    if not resume:
        hold()
    evaluation = LabelledEvaluation(parts, mesh.size) if parts.game.positions else None
    loop = Loop(parts, state, step, plan.max_iterations, started - seconds)
    return Run(config, plan, goal, run_dir, loop, needs, mesh.size, verification, evaluation, note)


def _make_mesh(shards: int, fixed: bool, note: Note) -> Mesh:
    """Returns a mesh of all devices; of fixed shards it leaves out those that do not divide them.

    Several processes keep all of theirs.
    """
    devices = jax.devices()
    if fixed and jax.process_count() == 1:
        number = max(n for n in range(1, len(devices) + 1) if shards % n == 0)
        if number < len(devices):
            note(
                f"{number} of {len(devices)} devices are used: the run has {shards} shards of the "
                "replay buffer, which more devices do not divide"
            )
        devices = devices[:number]
    return training.make_mesh(devices)


def _fit_devices(
    config: Config, num_devices: int, keep: Collection[str], fixed: bool
) -> tuple[Config, str]:
    """Rounds settings of a new run so that the devices share them evenly.

    Returns:
      The settings, and the changes in words.
    """
    if fixed:
        return config, ""
    fitted = fit_devices(config, num_devices, keep)
    changes = list_changes(config, fitted)
    return fitted, ", ".join(f"{name} {new} instead of {old}" for name, old, new in changes)


def _choose_goal(plan: Plan, game: Game) -> certificates.Goal:
    if plan.until == "auto":
        return "perfect" if game.enumerable else "never"
    if plan.until != "never" and not game.enumerable:
        raise ValueError(
            f'{game.name} has too many positions to enumerate, so `until="{plan.until}"` '
            'cannot be proved: use `until="never"` with `max_iterations`'
        )
    return plan.until


def new_run_dir(config: Config, plan: Plan) -> pathlib.Path:
    """Returns the first free `runs/GAME-PRESET-NUMBER`, or `runs/GAME-NUMBER` if both are one."""
    place, _, detail = config.game.partition(":")
    game = re.split(r"[/.\\]", place.removesuffix(".py"))[-1]  # A custom one: its file or module.
    if not is_custom(config.game) and detail:
        game = f"{game}-{detail}"
    name, number = "-".join(dict.fromkeys([game, plan.preset])), 1
    while os.path.lexists(path := pathlib.Path(f"runs/{name}-{number}")):
        number += 1
    return path


def _compile(
    parts: training.Parts,
    mesh: Mesh,
    pool: ThreadPoolExecutor,
    examine_every: int,
    state: training.TrainState | None,
) -> tuple[Future[Any], Future[Verification] | None]:
    """Starts to compile an iteration, and the verification where the game can be enumerated.

    A restored state is handed in: its keys may be of another implementation than JAX's default.
    """
    step: Any = training.make_iteration(parts, mesh)
    lowered = step.lower(training.abstract_state(parts, mesh) if state is None else state)
    compiled = pool.submit(lowered.compile, training.compiler_options())
    if not parts.game.enumerable:
        return compiled, None
    return compiled, pool.submit(Verification, parts, mesh, examine_every)


def _restore(
    run_dir: pathlib.Path, parts: training.Parts, mesh: Mesh, note: Note
) -> tuple[training.TrainState | None, float]:
    """Returns the newest sound state of a run, None if it has none yet, and the seconds until then.

    Raises:
      ValueError: if the metrics cannot be read.
      runs.CheckpointError: if no checkpoint is sound.
    """
    records = processes.in_all(lambda: metrics.read_records(run_dir / "metrics.jsonl"))
    state, skipped = checkpoint.restore(run_dir, parts, mesh, set_aside=True)
    for sentence in skipped:
        note(f"{sentence}; it was moved to {run_dir}/damaged, and an older one goes on")
    return state, metrics.last_seconds(records, int(state.iteration) if state else 0)


def _make_state(config: Config, parts: training.Parts, mesh: Mesh) -> training.TrainState:
    """Returns the first state of a run."""
    return training.make_state(
        parts,
        jax.random.key(config.seed),
        mesh,
        lambda made: memory.check_fits(memory.estimate(parts, mesh, made)),
    )


def _save_plan(config, plan: Plan, run_dir, mesh: Mesh, parts, resume: bool) -> Plan:
    """Writes the plan, in a new run together with its directory.

    It notes how many CPU devices each process has, so that a resumed run has as many.
    """
    if jax.default_backend() == "cpu":
        plan = dataclasses.replace(plan, cpu_devices=mesh.size // jax.process_count())
    content = dataclasses.asdict(plan)
    if resume:
        processes.in_first(lambda: files.write_json(run_dir / "plan.json", content))
    else:
        runs.create_run(run_dir, config, content, behavior.make_records(config, parts))
    return plan
