"""Training in a run directory as one function, with verification, checkpoints and a report.

The name `azjax.train` is that of the function, so this module cannot have it.
"""

import contextlib
import dataclasses
import gc
import pathlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
from jax.sharding import Mesh

from azjax import _files as files
from azjax import _processes as processes
from azjax import games, runs, training
from azjax._commands import write_note
from azjax._settings import from_dict
from azjax.callbacks import Checkpoints, Interrupts, Printer, Records, Snapshots, Strength
from azjax.games.base import Game
from azjax.proof import certificate as certificates
from azjax.proof.callbacks import Certification, LabelledEvaluation, Verification
from azjax.runs import checkpoint, directory, presets
from azjax.runs.config import (
    IN_PYTHON,
    Config,
    Plan,
    check_kept,
    count_devices,
    is_custom,
    make_parts,
)
from azjax.runs.player import Player
from azjax.training import Parts, memory, metrics
from azjax.training.loop import Callback, Loop, check_callbacks
from azjax.viz.report import write_report


@dataclasses.dataclass
class Run:
    """A training run in its directory, from `open_run`, and its results."""

    config: Config
    plan: Plan
    goal: certificates.Goal  # That `plan.until` selects for this game.
    run_dir: pathlib.Path
    loop: Loop  # The training loop, with the state to start from.
    needs: memory.Estimate  # The memory that training needs on each device.
    num_devices: int
    verification: Verification | None  # Of every position, if the game can be enumerated.
    evaluation: LabelledEvaluation | None  # On labelled positions, if the game has some.
    certification: Certification | None = None  # Writes the certificate; set by `train`.
    report: pathlib.Path | None = None  # The page, once it is written.
    report_error: str | None = None  # The reason if it could not be written.

    @property
    def player(self) -> Player:
        """The averaged network."""
        parts = self.loop.parts
        return Player(parts, parts.network.fold(self.loop.average), self.loop.iteration)

    @property
    def certificate(self) -> certificates.Certificate | None:
        """The certificate of the last network; None if it was not verified."""
        return self.certification and self.certification.certificate

    @property
    def reached(self) -> bool:
        """Whether the goal is reached; true for a run without a goal."""
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
        announce: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        """Trains until the goal or the last iteration, with all callbacks of a run.

        Args:
          callbacks: custom callbacks. The metrics that they add are written and displayed.
          displays: callbacks that display the complete records.
          show: called with the certificate after it is written.
          announce: called with sentences on what takes a while after the last iteration.
        """
        verification, plan = self.verification, self.plan
        verifies_all = verification is None or verification.every == 1
        listed: list[Callback | None] = [verification, self.evaluation]
        if verification is not None:
            listed.append(Snapshots(verification, self.run_dir))
            certificate = self.run_dir / "certificate.json"
            self.certification = Certification(
                verification, self.goal, self.config.seed, certificate, show, announce
            )
        if every := plan.strength_every:
            number = plan.strength_games
            listed.append(Strength(self.loop.parts, every, number, self.config.seed))
        listed += [*callbacks, Records(self.run_dir / "metrics.jsonl"), *displays]
        every, keep = plan.checkpoint_every, plan.keep_checkpoints
        listed += [self.certification, Checkpoints(self.run_dir, every, keep, verifies_all)]
        self.loop.callbacks = tuple(callback for callback in listed if callback is not None)
        start = self.loop.iteration
        self.loop.run()
        has_page = self.loop.iteration == start and (self.run_dir / "report.html").exists()
        if plan.report and not has_page:
            processes.in_first(lambda: self._write_report(announce))

    def _write_report(self, announce: Callable[[str], None]) -> None:
        """Writes `report.html`; a failure does not affect the run."""
        announce("writing the report")
        solution = self.verification and self.verification.solution
        try:
            self.report = write_report(self.run_dir, self.player, solution)
        except (OSError, ValueError) as error:
            self.report_error = f"the report was not written: {error}"


def train(
    what: str | Game | Config | Parts | None = None,
    run_dir: files.Path | None = None,
    *,
    seed: int | None = None,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
    display: bool = True,
    **plan: Any,
) -> Run:
    """Trains in a run directory, as the program `azjax train` does.

    On CPUs, the program makes each core a JAX device; this function uses the devices that JAX has.

    Args:
      what: what to train: the name of a game, or a custom `Game`, with the preset for that game;
        a `Config`; or custom `Parts`. By default tic-tac-toe, or that of the run to resume.
      run_dir: the run directory; by default the first free one in `runs/`.
      seed: the seed of every random draw; by default that of the `Config`, or 0.
      resume: whether to resume the run in this directory. The run keeps its settings and, except
        for the given fields, its plan; a custom game or custom parts must be given again.
      callbacks: custom callbacks. The metrics that they add are written and displayed.
      display: whether to print a line for each iteration, and on stderr what follows the last one.
      **plan: fields of `Plan`, such as `until="perfect"` or `max_iterations=100`. `preset` and
        `smoke` need the name of a game or a `Game`; `cpu_devices` is for the program only.

    Raises a KeyboardInterrupt after Ctrl-C, SIGTERM or SIGHUP, or if the reader of stdout has
    exited; the iteration is finished and saved first.
    """
    check_callbacks(callbacks)
    if "cpu_devices" in plan:
        raise ValueError(
            "cpu_devices is an option of `azjax train`: in Python, call "
            'jax.config.update("jax_num_cpu_devices", N) before anything else uses JAX'
        )
    if isinstance(what, Game):
        with contextlib.suppress(ValueError):  # `make` may have no game of this name.
            what = what.name if games.make(what.name) is what else what
    path = None if run_dir is None else pathlib.Path(run_dir)
    if resume:
        config, whole = _read_settings(path, what, seed, plan)
    else:
        config, whole = _choose_settings("tic_tac_toe" if what is None else what, seed, plan)
    game = what if isinstance(what, Game) else None
    parts = what if isinstance(what, Parts) else make_parts(config, game)
    shown: list[Callback] = [Printer(metrics.print_line)] if display else []
    if threading.current_thread() is threading.main_thread():  # Only this one receives signals.
        shown.append(Interrupts())
    with open_run(config, parts, whole, path, resume=resume) as run:
        run.train(callbacks, shown, announce=write_note if display else lambda sentence: None)
    return run


def _choose_settings(what: Any, seed: int | None, plan: dict[str, Any]) -> tuple[Config, Plan]:
    """Returns the settings and the plan of a new run."""
    preset, smoke = plan.get("preset"), bool(plan.get("smoke"))
    if isinstance(what, Game):
        name = f"{IN_PYTHON}:{what.name}"
        config, base = presets.choose(name, what, preset=preset, is_smoke=smoke)
    elif isinstance(what, str):
        config, base = presets.choose(what, preset=preset, is_smoke=smoke)
    elif isinstance(what, Config | Parts):
        for name in plan.keys() & {"preset", "smoke"}:
            kind = type(what).__name__
            raise ValueError(f"{name} changes settings, but {kind} has them all: leave {name} out")
        config = Config(game=what.game.name, parts=IN_PYTHON) if isinstance(what, Parts) else what
        base = Plan()
    else:
        raise ValueError(
            f"what to train is of type {type(what).__name__}: give the name of a game, a Game, a "
            "Config or Parts"
        )
    config = config if seed is None else dataclasses.replace(config, seed=seed)
    return config, from_dict(Plan, dataclasses.asdict(base) | plan)


def _read_settings(
    run_dir: pathlib.Path | None, what: Any, seed: int | None, changes: dict[str, Any]
) -> tuple[Config, Plan]:
    """Returns the settings and the plan of a run to resume; checks that the former stay."""
    if run_dir is None:
        raise ValueError("run_dir is None: name the run to resume")
    config, saved = runs.read_config(run_dir), runs.read_plan(run_dir)
    is_given = isinstance(what, Game | Parts)
    if is_given != (bool(config.parts) or is_custom(config.game)):
        known = config.game if is_given else "a custom game or custom parts"
        raise ValueError(f"{run_dir} is a run of {known}: give the same to resume it")
    asked, plan = config, from_dict(Plan, dataclasses.asdict(saved) | changes)
    if isinstance(what, str):
        asked = dataclasses.replace(config, game=what)
    elif isinstance(what, Config):  # A new run adapts its shards to the devices.
        replay = dataclasses.replace(what.replay, shards=config.replay.shards)
        asked = dataclasses.replace(what, replay=replay)
    if seed is not None:
        asked = dataclasses.replace(asked, seed=seed)
    check_kept((config, saved), (asked, plan))
    return config, plan


@contextlib.contextmanager
def open_run(
    config: Config,
    parts: Parts,
    plan: Plan,
    run_dir: pathlib.Path | None = None,
    *,
    resume: bool = False,
    started: float | None = None,
) -> Iterator[Run]:
    """Makes a run ready to train; locks its directory until the `with` block ends.

    The directory of a new run is created last, so that a run that fails here leaves nothing behind.

    Args:
      config: the settings.
      parts: the parts that these settings make, or custom ones if `config.parts` names them.
      plan: when to stop and what to save.
      run_dir: the run directory; by default the first free one in `runs/`.
      resume: whether to resume the run in this directory.
      started: the `time.monotonic()` from which seconds count; now, by default.
    """
    started = time.monotonic() if started is None else started
    with contextlib.ExitStack() as held:

        def hold(run_dir: pathlib.Path) -> None:
            processes.in_first(lambda: held.enter_context(directory.hold(run_dir)))

        directory.check_locks()
        _check_processes(config, plan, run_dir, resume)
        config, parts, mesh = _fit(config, parts, fixed=resume or bool(config.parts))
        goal = _choose_goal(plan, parts.game)
        path = name_runs(config, plan) if run_dir is None else run_dir
        state, seconds = None, 0.0
        if resume:
            hold(path)
            state, seconds = _restore(path, parts, mesh)
        else:
            processes.in_first(lambda: runs.check_free(path, numbered=run_dir is None))
        state, step, verification = _compile(config, parts, mesh, plan.examine_every, state)
        needs = memory.estimate(parts, mesh, step)
        memory.check_fits(needs)
        if jax.default_backend() == "cpu":  # Saved, so that a resumed run has as many devices.
            plan = dataclasses.replace(plan, cpu_devices=mesh.size // jax.process_count())
        content = dataclasses.asdict(plan)
        if resume:
            processes.in_first(lambda: files.write_json(path / "plan.json", content))
        else:
            path = runs.create_run(path, config, content, numbered=run_dir is None)
            hold(path)
        evaluation = LabelledEvaluation(parts, mesh.size) if parts.game.positions else None
        loop = Loop(parts, state, step, plan.max_iterations, started - seconds)
        yield Run(config, plan, goal, path, loop, needs, mesh.size, verification, evaluation)


def _check_processes(
    config: Config, plan: Plan, run_dir: pathlib.Path | None, resume: bool
) -> None:
    processes.check_devices()
    if jax.process_count() > 1:
        package = sorted(pathlib.Path(__file__).parent.rglob("*.py"))
        same = {"the version of jax": jax.__version__, "run_dir": run_dir, "resume": resume}
        same["the code of azjax"] = [path.read_bytes() for path in package]
        processes.check_same(same | vars(config) | vars(plan))


def _note(sentence: str) -> None:
    if jax.process_index() == 0:
        write_note(sentence)


def _fit(config: Config, parts: Parts, fixed: bool) -> tuple[Config, Parts, Mesh]:
    """Chooses the devices and, unless `fixed`, the shards; checks the parts and their memory."""
    devices, shards = jax.devices(), parts.replay.shards
    if jax.process_count() == 1:  # A smaller mesh could leave out one of several processes.
        number = count_devices(len(devices), shards)
        if not fixed:  # The shards can change.
            games, batch = config.selfplay.games, config.learner.batch_size
            number = max(number, count_devices(len(devices), games, batch))
        if number < len(devices):
            _note(
                f"{number} of {len(devices)} devices are used: no larger number divides "
                + (f"replay.shards, {shards}" if fixed else "selfplay.games and learner.batch_size")
            )
        devices = devices[:number]
    mesh = training.make_mesh(devices)
    if not fixed and shards % mesh.size:
        _note(f"{mesh.size} devices: replay.shards {mesh.size} instead of {shards}")
        replay = dataclasses.replace(config.replay, shards=mesh.size)
        config = dataclasses.replace(config, replay=replay)
        parts = make_parts(config, parts.game, parts.network)
    training.check_parts(parts, mesh.size)
    memory.check_fits(memory.estimate(parts, mesh))
    return config, parts, mesh


def _choose_goal(plan: Plan, game: Game) -> certificates.Goal:
    if plan.until == "auto":
        return "perfect" if game.enumerable else "never"
    if plan.until != "never" and not game.enumerable:
        raise ValueError(
            f"{game.name} has too many positions to enumerate, so it cannot be proved that a "
            f"player is {plan.until}: use until never with max_iterations"
        )
    return plan.until


def name_runs(config: Config, plan: Plan) -> pathlib.Path:
    """Returns `runs/GAME-PRESET`, or `runs/GAME` if GAME == PRESET; a run's number follows."""
    place, _, detail = config.game.partition(":")
    game = pathlib.Path(place).stem  # Custom games have the name of their file.
    if detail and not is_custom(config.game):
        game = f"{game}-{detail}"
    return pathlib.Path("runs", "-".join(dict.fromkeys([game, plan.preset])))


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Disables the garbage collector, which scans the small objects of tracing again and again."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@_without_collector()
def _compile(
    config: Config, parts: Parts, mesh: Mesh, examine_every: int, state: training.TrainState | None
) -> tuple[training.TrainState, Any, Verification | None]:
    """Compiles an iteration and the verification, and meanwhile makes the first state."""
    step: Any = training.make_iteration(parts, mesh)
    lowered = step.lower(training.abstract_state(parts, mesh))
    with ThreadPoolExecutor() as pool:
        compiled = pool.submit(lowered.compile, training.compiler_options())
        verification = None
        if parts.game.enumerable:
            verification = pool.submit(Verification, parts, examine_every)
        if state is None:
            state = training.make_state(parts, jax.random.key(config.seed), mesh)
        return state, compiled.result(), verification and verification.result()


def _restore(
    run_dir: pathlib.Path, parts: Parts, mesh: Mesh
) -> tuple[training.TrainState | None, float]:
    """Returns the newest sound state of a run, if it has one, and its seconds of training."""
    records = processes.in_all(lambda: metrics.read_records(run_dir / "metrics.jsonl"))
    state, skipped = checkpoint.restore(run_dir, parts, mesh)
    for sentence in skipped:
        _note(f"{sentence}; it was moved to {run_dir}/damaged, and an older one is resumed")
    step, last = int(state.iteration) if state else 0, records[-1]["iteration"] if records else 0
    if step != last:
        _note(f"{run_dir} was saved after iteration {step}, but recorded up to {last}")
    return state, metrics.last_seconds(records, step)
