"""Opening a run: checks, the lock of its directory, compilation, and the state to start from."""

import contextlib
import dataclasses
import functools
import gc
import pathlib
import re
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
from jax.sharding import Mesh

from azjax import _files as files
from azjax import _processes as processes
from azjax import runs, training
from azjax._commands import write_note
from azjax._settings import list_changes
from azjax.games.base import Game
from azjax.programs.run import Run
from azjax.proof import certificate as certificates
from azjax.proof.callbacks import LabelledEvaluation, Verification
from azjax.runs import behavior, checkpoint, lock
from azjax.runs.config import Config, count_devices, fit_devices, is_custom
from azjax.runs.config import make_parts as make_named_parts
from azjax.runs.plan import Plan
from azjax.training import memory, metrics
from azjax.training.loop import Loop
from azjax.viz.callbacks import Note

MakeParts = Callable[[Config], training.Parts]


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
    """Makes a run ready to train; locks its directory until the `with` block ends.

    The directory of a new run is created last, so that a run that fails here leaves nothing behind.

    Args:
      config: the settings.
      plan: when to stop and what to save.
      run_dir: the run directory; by default the first free one in `runs/`.
      make_parts: builds the parts from the settings.
      resume: whether to resume the run in this directory.
      keep: names of settings that the number of devices must not change; see `fit_devices`.
      started: the `time.monotonic()` from which seconds count; now, by default.
      note: called with sentences about decisions that the user should see.
      on_lock: called with the run directory once it exists and is locked; from then on, an
        interrupted run can be resumed.

    Raises:
      ValueError: if settings contradict each other or do not fit the machine.
      runs.CheckpointError: if the run directory cannot be used.
    """
    started = time.monotonic() if started is None else started
    note = note if jax.process_index() == 0 else lambda sentence: None
    with contextlib.ExitStack() as held:

        def hold(run_dir: pathlib.Path) -> None:
            processes.in_first(lambda: held.enter_context(lock.hold(run_dir)))
            on_lock(run_dir)

        gc.disable()  # The collector would scan the many small objects of tracing again and again.
        try:
            lock.check_supported()
            processes.check_devices()
            _check_same(config, plan, run_dir, resume)
            config, parts, mesh = _fit(config, make_parts, resume, keep, note)
            goal = _choose_goal(plan, parts.game)
            numbered = run_dir is None
            run_dir = name_runs(config, plan) if run_dir is None else run_dir
            state, seconds = None, 0.0
            if resume:
                hold(run_dir)
                state, seconds = _restore(run_dir, parts, mesh, note)
            else:
                processes.in_first(functools.partial(runs.check_free, run_dir, numbered=numbered))
            state, step, verification = _compile(config, parts, mesh, plan.examine_every, state)
            needs = memory.estimate(parts, mesh, step)
            memory.check_fits(needs)
            if jax.default_backend() == "cpu":  # Saved, so that a resumed run has as many devices.
                plan = dataclasses.replace(plan, cpu_devices=mesh.size // jax.process_count())
            content = dataclasses.asdict(plan)
            if resume:
                processes.in_first(lambda: files.write_json(run_dir / "plan.json", content))
            else:
                records = behavior.make_records(config, parts)
                run_dir = runs.create_run(run_dir, config, content, records, numbered=numbered)
                hold(run_dir)
            evaluation = LabelledEvaluation(parts, mesh.size) if parts.game.positions else None
            run = Run(
                config=config,
                plan=plan,
                goal=goal,
                run_dir=run_dir,
                loop=Loop(parts, state, step, plan.max_iterations, started - seconds),
                needs=needs,
                num_devices=mesh.size,
                verification=verification,
                evaluation=evaluation,
                note=note,
            )
        finally:
            gc.enable()
        yield run


def _check_same(config: Config, plan: Plan, run_dir: pathlib.Path | None, resume: bool) -> None:
    """Raises a ValueError if the processes were not started with the same options and code."""
    if jax.process_count() == 1:
        return
    package = pathlib.Path(__file__).parent.parent
    code = [path.read_bytes() for path in sorted(package.rglob("*.py"))]
    settings = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    processes.check_same(
        {
            "the version of jax": jax.__version__,
            "the code of azjax": code,
            "run_dir": run_dir,
            "resume": resume,
            **settings,
            **dataclasses.asdict(plan),
        }
    )


def _fit(
    config: Config, make_parts: MakeParts, resume: bool, keep: Collection[str], note: Note
) -> tuple[Config, training.Parts, Mesh]:
    """Chooses the devices, fits the settings to them, and checks the parts and their memory."""
    fixed = resume or bool(config.parts)  # Neither settings nor shards may change.
    custom = make_parts(config) if config.parts else None
    mesh = _make_mesh((custom or config).replay.shards, fixed, note)
    config, changes = _fit_devices(config, mesh.size, keep, fixed)
    parts = custom or make_parts(config)
    training.check_parts(parts, mesh.size)
    memory.check_fits(memory.estimate(parts, mesh))
    if changes:
        note(f"{mesh.size} devices: {changes}")
    return config, parts, mesh


def _make_mesh(shards: int, fixed: bool, note: Note) -> Mesh:
    """Returns a mesh of all devices; if `fixed`, of the largest number that divides the shards.

    With several processes, the mesh always has all devices: a smaller one could leave out all
    devices of a process.
    """
    devices = jax.devices()
    if fixed and jax.process_count() == 1:
        number = count_devices(shards, len(devices))
        if number < len(devices):
            note(
                f"{number} of {len(devices)} devices are used: no larger number of devices divides "
                f"the {shards} shards of the run's replay buffer"
            )
        devices = devices[:number]
    return training.make_mesh(devices)


def _fit_devices(
    config: Config, num_devices: int, keep: Collection[str], fixed: bool
) -> tuple[Config, str]:
    """Returns settings of a new run that the devices can share evenly, and the changes in words."""
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


def name_runs(config: Config, plan: Plan) -> pathlib.Path:
    """Returns `runs/GAME-PRESET`, or `runs/GAME` if GAME == PRESET; a run's number follows."""
    place, _, detail = config.game.partition(":")
    game = re.split(r"[/.\\]", place.removesuffix(".py"))[-1]  # Custom games: the file or module.
    if not is_custom(config.game) and detail:
        game = f"{game}-{detail}"
    return pathlib.Path("runs", "-".join(dict.fromkeys([game, plan.preset])))


def _compile(
    config: Config,
    parts: training.Parts,
    mesh: Mesh,
    examine_every: int,
    state: training.TrainState | None,
) -> tuple[training.TrainState, Any, Verification | None]:
    """Compiles an iteration and the verification, and meanwhile makes the first state.

    XLA compiles without the global interpreter lock. For a resumed run, the program is lowered for
    the restored state, because its keys may not have JAX's default implementation.
    """
    step: Any = training.make_iteration(parts, mesh)
    lowered = step.lower(training.abstract_state(parts, mesh) if state is None else state)
    with ThreadPoolExecutor() as pool:
        compiled = pool.submit(lowered.compile, training.compiler_options())
        verification = None
        if parts.game.enumerable:
            verification = pool.submit(Verification, parts, mesh, examine_every)
        if state is None:
            state = _make_state(config, parts, mesh)
        return state, compiled.result(), verification and verification.result()


def _restore(
    run_dir: pathlib.Path, parts: training.Parts, mesh: Mesh, note: Note
) -> tuple[training.TrainState | None, float]:
    """Returns the newest sound state of a run, if it has one, and its seconds of training.

    It notes what the checkpoints and the metrics do not agree on.
    """
    records = processes.in_all(lambda: metrics.read_records(run_dir / "metrics.jsonl"))
    state, skipped = checkpoint.restore(run_dir, parts, mesh, set_aside=True)
    for sentence in skipped:
        note(f"{sentence}; it was moved to {run_dir}/damaged, and an older one is resumed")
    step, last = int(state.iteration) if state else 0, records[-1]["iteration"] if records else 0
    if step < last:
        note(
            f"{run_dir} was saved after iteration {step}, but recorded up to {last}: the later "
            "iterations are trained again"
        )
    elif step > last:
        note(f"{run_dir}/metrics.jsonl ends at iteration {last}, before checkpoint {step}")
    return state, metrics.last_seconds(records, step)


def _make_state(config: Config, parts: training.Parts, mesh: Mesh) -> training.TrainState:
    """Returns the first state of a run; checks the memory of the program that makes it."""
    return training.make_state(
        parts,
        jax.random.key(config.seed),
        mesh,
        lambda made: memory.check_fits(memory.estimate(parts, mesh, made)),
    )
