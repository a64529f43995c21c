"""Whole programs as functions: training in a run directory, with everything that belongs to it."""

import contextlib
import dataclasses
import functools
import gc
import os
import pathlib
import re
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
from jax.sharding import Mesh

from azjax import _files as files
from azjax import _processes as processes
from azjax import runs, training
from azjax._settings import list_changes
from azjax.games.base import Game
from azjax.proof import certificate as certificates
from azjax.proof.callbacks import Certification, LabelledEvaluation, Verification
from azjax.runs import behavior, checkpoint, lock, presets
from azjax.runs.callbacks import Checkpoints, Sink
from azjax.runs.config import Config, fit_devices, is_own
from azjax.runs.config import make_parts as make_named_parts
from azjax.runs.plan import Plan
from azjax.runs.player import Player
from azjax.training import memory, metrics
from azjax.training.loop import Callback, Loop
from azjax.viz.callbacks import Report, Snapshots, make_player

_IN_PYTHON = "python"  # Where custom games and parts come from that no file is named for.
_SMOKE = {"match_games": 2, "match_seconds": 0.0}  # One game from each seat.

MakeParts = Callable[[Config], training.Parts]
Note = Callable[[str], None]


def write_note(sentence: str) -> None:
    """Prints a sentence next to the output of a program."""
    print(sentence, file=sys.stderr, flush=True)


@dataclasses.dataclass
class Run:
    """A training in a run directory: made ready by `open_run`, and afterwards its results.

    Attributes:
      config: the settings.
      plan: when to stop and to save.
      goal: what the plan's `until` means for this game.
      run_dir: the run directory.
      loop: the training loop, with the state to start from.
      needs: the memory that the training takes.
      verification: None where the game cannot be enumerated.
      evaluation: None where it has no labelled positions.
    """

    config: Config
    plan: Plan
    goal: certificates.Goal
    run_dir: pathlib.Path
    loop: Loop
    needs: memory.Footprint
    verification: Verification | None
    evaluation: LabelledEvaluation | None
    note: Note
    certification: Certification | None = None
    report: Report | None = None

    @property
    def player(self) -> Player:
        """The averaged network."""
        return make_player(self.loop)

    @property
    def certificate(self) -> certificates.Certificate | None:
        """That of the last network that was examined; None if there is none yet."""
        return self.certification and self.certification.certificate

    @property
    def reached(self) -> bool:
        """Whether the goal is reached; training without one has reached it."""
        proved = self.certification is not None and self.certification.reached
        return self.goal == "never" or proved

    @property
    def metrics(self) -> list[dict]:
        """The record of each iteration, from `metrics.jsonl`."""
        return metrics.read_records(self.run_dir / "metrics.jsonl")

    def train(
        self,
        callbacks: Sequence[Callback] = (),
        displays: Sequence[Callback] = (),
        show: Callable[[certificates.Certificate], None] = lambda certificate: None,
        progress: Callable[[], Any] = contextlib.nullcontext,
    ) -> None:
        """Trains to the end, with all callbacks of a run.

        Args:
          callbacks: custom ones. What they add to the records is shown and written.
          displays: those that show the records when they are complete.
          show: is given the certificate once it is written.
          progress: makes a context that shows the progress of the report; see `Report`.

        Raises:
          FloatingPointError: if a metric is NaN or infinite.
          KeyboardInterrupt: if a callback set `interrupted`, once everything is saved.
        """
        found = self.verification
        always = found is None or found.every == 1
        listed: list[Callback | None] = [found, self.evaluation]
        if found is not None:
            listed += [Snapshots(found, self.loop.parts, self.run_dir, self.note)]
            self.certification = Certification(
                found, self.goal, self.config.seed, self.run_dir / "certificate.json", show
            )
        start, path = self.loop.iteration, self.run_dir / "metrics.jsonl"
        listed += [*callbacks, Sink(lambda loop: metrics.JsonLines(path, start)), *displays]
        listed += [
            self.certification,
            Checkpoints(
                self.run_dir,
                self.plan.checkpoint_every,
                self.plan.keep_checkpoints,
                lambda record: metrics.rank(record, always),
            ),
        ]
        if self.plan.report:
            settings: dict[str, Any] = _SMOKE if self.plan.smoke else {}
            solution = found and found.solution
            self.report = Report(self.run_dir, solution, progress, **settings)
            listed.append(self.report)
        self.loop.callbacks = [callback for callback in listed if callback is not None]
        self.loop.run()


def train(
    what: str | Game | Config | training.Parts = "tic_tac_toe",
    run_dir: files.Path | None = None,
    *,
    seed: int = 0,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
    display: bool = True,
    **plan: Any,
) -> Run:
    """Trains in a run directory, with everything that the program `azjax train` does.

    Args:
      what: the name of a game, which is trained with the preset that suits it; a custom game,
        likewise; settings; or custom parts.
      run_dir: the run directory; None: the first free one in `runs/`.
      seed: of every random draw, unless settings are given, which have theirs.
      resume: whether to go on with the run in that directory. It keeps its settings; of the plan,
        what is given changes.
      callbacks: custom ones. What they add to the records is shown and written.
      display: whether to print a line for each iteration.
      **plan: fields of `Plan`, such as `until="perfect"` or `max_iterations=100`.

    Returns:
      The run after its training: `player`, `certificate`, `metrics`, `run_dir`.

    Raises:
      ValueError: if settings contradict each other or the machine, or the custom game or parts
        are not those of the run to resume.
      runs.CheckpointError: if the run directory cannot be used.
      FloatingPointError: if a metric is NaN or infinite.

    Example:
      >>> run = train("tic_tac_toe", "runs/mine", until="perfect")  # doctest: +SKIP
      >>> run.certificate.perfect  # doctest: +SKIP
      True
    """
    config, make_parts = _settle(what, seed)
    path = None if run_dir is None else pathlib.Path(run_dir)
    if resume:
        if path is None:
            raise ValueError("run_dir is None: name the run to resume")
        config, plan = _resumed(path, config, make_parts, plan)
    displays = [Sink(lambda loop: metrics.Plain(sys.stdout))] if display else []
    with open_run(config, Plan(**plan), path, make_parts=make_parts, resume=resume) as run:
        run.train(callbacks, displays)
    return run


def _settle(what: Any, seed: int) -> tuple[Config, MakeParts]:
    """Returns the settings of what is to be trained, and the function that makes its parts."""
    if isinstance(what, Config):
        return what, make_named_parts
    if isinstance(what, training.Parts):
        return Config(game=what.game.name, seed=seed, parts=_IN_PYTHON), lambda config: what
    if isinstance(what, Game):
        preset = presets.fit(presets.get(presets.name_for(what.name, what)), what)
        config = dataclasses.replace(preset, game=f"{_IN_PYTHON}:{what.name}", seed=seed)
        return config, functools.partial(make_named_parts, game=what)
    if isinstance(what, str):
        preset = presets.get(presets.name_for(what))
        return dataclasses.replace(preset, game=what, seed=seed), make_named_parts
    raise ValueError(
        f"what to train is of type {type(what).__name__}: give the name of a game, a Game, a "
        "Config or Parts"
    )


def _resumed(
    run_dir: pathlib.Path, given: Config, make_parts: MakeParts, changes: dict[str, Any]
) -> tuple[Config, dict[str, Any]]:
    """Returns the settings and the plan of a run to resume, whose custom parts are compared."""
    config = runs.read_config(run_dir)
    saved = dataclasses.asdict(runs.read_settings(run_dir / "plan.json", Plan))
    custom = make_parts(given) if given.parts or is_own(given.game) else None
    if (custom is None) != (not config.parts and not is_own(config.game)):
        known = "a custom game or custom parts" if custom is None else f"{config.game}"
        raise ValueError(f"{run_dir} is a run of {known}: give the same to resume it")
    if custom is None and given.game != config.game:
        raise ValueError(f"{run_dir} is a run of {config.game}, not of {given.game}")
    if custom is not None:
        behavior.check_rules(run_dir, custom.game, resume=True)
        behavior.check_network(run_dir, custom.game, custom.network)
    return config, saved | changes


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
    shards = make_parts(config).replay.shards if config.parts else config.replay.shards
    mesh = _make_mesh(shards, fixed, note)
    config, changes = _fit_devices(config, mesh.size, keep, fixed)
    parts = make_parts(config)
    training.check_parts(parts, mesh.size)
    memory.check_fits(memory.footprint(parts, mesh))
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
    needs = memory.footprint(parts, mesh, step)
    memory.check_fits(needs)
    plan = _save_plan(config, plan, run_dir, mesh, parts, resume)
    if not resume:
        hold()
    evaluation = LabelledEvaluation(parts, mesh.size) if parts.game.positions else None
    loop = Loop(parts, state, step, plan.max_iterations, started - seconds)
    return Run(config, plan, goal, run_dir, loop, needs, verification, evaluation, note)


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
            f"{game.name} has too many positions to enumerate, so --until {plan.until} cannot "
            "be proved: use --until never with --max-iterations"
        )
    return plan.until


def new_run_dir(config: Config, plan: Plan) -> pathlib.Path:
    """Returns the first free `runs/GAME-PRESET-NUMBER`, or `runs/GAME-NUMBER` if both are one."""
    place, _, detail = config.game.partition(":")
    game = re.split(r"[/.\\]", place.removesuffix(".py"))[-1]  # A custom one: its file or module.
    if not is_own(config.game) and detail:
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
        lambda made: memory.check_fits(memory.footprint(parts, mesh, made)),
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
