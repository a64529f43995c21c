"""Training in a run directory as one function, with verification, checkpoints and a report.

`open_run` checks and compiles everything, and creates or restores the run. `Run.train` lists what
happens after each iteration, and `Loop.run` in `training/loop.py` is the loop.

This module is not named `train`, because `azjax.train` is the function.
"""

import contextlib
import dataclasses
import gc
import pathlib
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
from jax.sharding import Mesh

from azjax import _files as files
from azjax import _processes as processes
from azjax import callbacks as events
from azjax import games, progress, runs, training
from azjax._settings import from_dict
from azjax.games.base import Game, explain_size
from azjax.games.check import check_custom
from azjax.proof import certificate as certificates
from azjax.proof.callbacks import Certification, LabelledEvaluation, Verification
from azjax.runs import checkpoint, directory, presets
from azjax.runs.config import (
    IN_PYTHON,
    Config,
    CustomNetworkConfig,
    Plan,
    count_devices,
    is_custom,
    make_parts,
)
from azjax.runs.player import Player
from azjax.training import Parts, memory, metrics
from azjax.training.loop import Callback, Loop, check_callbacks


def train(
    what: str | Game | Config | Parts | None = None,
    run_dir: files.Path | None = None,
    *,
    preset: str | None = None,
    smoke: bool = False,
    seed: int | None = None,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
    display: bool = True,
    **plan: Any,
) -> "Run":
    """Trains in a run directory, as the program `azjax train` does.

    On CPUs, the program makes each core a JAX device; this function uses the devices that JAX has.

    Args:
      what: what to train: the name of a game, or a custom `Game`, with the preset for that game;
        a `Config`; or custom `Parts`. None: the game of the preset, or of the run to resume.
      run_dir: the run directory; by default the first free one in `runs/`.
      preset: the settings to start from; by default, the game determines them.
      smoke: whether to shrink everything, to test the whole program in seconds.
      seed: the seed of every random draw; by default that of the `Config`, or 0.
      resume: whether to resume the run in this directory. The run keeps its settings and, except
        for the given fields, its plan; a custom game or custom parts must be given again.
      callbacks: custom callbacks. The metrics that they add are written and displayed.
      display: whether to print a line for each iteration, and on stderr what comes before the
        first and after the last one.
      **plan: fields of `Plan`, such as `until="perfect"` or `max_iterations=100`.

    Raises a KeyboardInterrupt after Ctrl-C, SIGTERM or SIGHUP, or if the reader of stdout has
    exited; the iteration is finished and saved first.
    """
    check_callbacks(callbacks)
    if isinstance(what, Game) and games.is_built_in(what):
        what = what.name
    if (preset or smoke) and (resume or isinstance(what, Config | Parts)):
        name = "preset" if preset else "smoke"
        raise ValueError(f"{name} chooses settings, but this run has them all: leave {name} out")
    if resume:
        if run_dir is None:
            raise ValueError("run_dir is None: name the run to resume")
        config, saved, _ = directory.read_run(run_dir)
        directory.check_kept(config, _asked(config, what, seed, run_dir))
    else:
        config, saved, preset = _new(what, preset, smoke)
        config = config if seed is None else dataclasses.replace(config, seed=seed)
    whole = from_dict(Plan, dataclasses.asdict(saved) | plan)
    game = what if isinstance(what, Game) else None
    parts = what if isinstance(what, Parts) else make_parts(config, game)
    opening = open_run(config, parts, whole, run_dir, preset=preset, resume=resume, display=display)
    with opening as run:
        run.train(callbacks, display)
    return run


def _asked(config: Config, what: Any, seed: int | None, run_dir: files.Path) -> Config:
    """Returns the settings of a run to resume, changed as the arguments of `train` ask."""
    has_network = isinstance(config.network, CustomNetworkConfig)
    is_given = isinstance(what, Game | Parts)
    if is_given != (bool(config.parts) or is_custom(config.game) or has_network):
        trained = config.game if is_given else "a custom game, network or parts"
        raise ValueError(f"{run_dir} is a run of {trained}: give the same to resume it")
    if isinstance(what, str):
        config = dataclasses.replace(config, game=what)
    elif isinstance(what, Config):  # A new run adapts its shards to the devices.
        replay = dataclasses.replace(what.replay, shards=config.replay.shards)
        config = dataclasses.replace(what, replay=replay)
    return config if seed is None else dataclasses.replace(config, seed=seed)


def _new(what: Any, preset: str | None, smoke: bool) -> tuple[Config, Plan, str | None]:
    """Returns the settings, the plan and the preset of a new run, before other arguments."""
    if isinstance(what, Config):
        return what, Plan(), None
    if isinstance(what, Parts):
        return Config(game=what.game.name, parts=IN_PYTHON), Plan(), None
    if isinstance(what, Game):
        return presets.choose(f"{IN_PYTHON}:{what.name}", what, preset=preset, is_smoke=smoke)
    if isinstance(what, str) or (what is None and preset is not None):
        return presets.choose(what, preset=preset, is_smoke=smoke)
    raise ValueError(
        f"what to train is of type {type(what).__name__}: give the name of a game, a Game, a "
        "Config, Parts, or a preset"
    )


@contextlib.contextmanager
def open_run(
    config: Config,
    parts: Parts,
    plan: Plan,
    run_dir: files.Path | None = None,
    *,
    preset: str | None = None,
    resume: bool = False,
    display: bool = True,
    started: float | None = None,
) -> Iterator["Run"]:
    """Makes a run ready to train; locks its directory until the `with` block ends.

    The directory of a new run is created last, so that a run that fails here leaves nothing behind.
    `parts` are those that the settings make, or custom ones if `config.parts` names them. Seconds
    count from `started`, a `time.monotonic()`. The other arguments are those of `train`.
    """
    started = time.monotonic() if started is None else started
    check_custom(parts.game)
    goal = _choose_goal(plan, parts.game)
    processes.check_devices()
    same = {"run_dir": run_dir, "resume": resume} | certificates.versions()
    processes.check_same(same | vars(config) | vars(plan))
    # Neither the state of a run to resume nor custom parts can take another number of shards.
    config, parts, mesh = fit_devices(config, parts, fixed=resume or bool(config.parts))
    path = pathlib.Path(_name_runs(config.game, preset) if run_dir is None else run_dir)
    with contextlib.ExitStack() as lock:
        state, seconds = None, 0.0
        if resume:
            lock.enter_context(directory.hold(path))
            state, seconds = _restore(path, parts, mesh)
        else:
            processes.in_first(lambda: directory.check_free(path, numbered=run_dir is None))
        if display:
            shapes = jax.eval_shape(parts.network.init, jax.random.key(0))["params"]
            size = sum(leaf.size for leaf in jax.tree.leaves(shapes))
            where = f"{size:,} parameters for {certificates.device_name(mesh.devices.flat)}"
            processes.note(f"{parts.game.name}: compiling a training of {where}…")
        state, step, verification = _compile(config, parts, mesh, plan.examine_every, state)
        needs = memory.check_fits(parts, mesh, step)
        content = dataclasses.asdict(plan)
        if jax.default_backend() == "cpu":  # So that a resumed run has as many devices.
            content["cpu_devices"] = mesh.size // jax.process_count()
        if resume:
            processes.in_first(lambda: files.write_json(path / "plan.json", content))
        else:
            path = runs.create_run(path, config, content, numbered=run_dir is None)
            lock.enter_context(directory.hold(path))
        evaluation = LabelledEvaluation(parts, mesh.size) if parts.game.positions else None
        loop = Loop(parts, state, step, plan.max_iterations, started - seconds)
        yield Run(config, plan, started, goal, path, loop, needs, verification, evaluation)


def fit_devices(config: Config, parts: Parts, fixed: bool) -> tuple[Config, Parts, Mesh]:
    """Chooses the devices and, unless `fixed`, the shards; checks the parts and their memory."""
    devices, shards = jax.devices(), parts.replay.shards
    if jax.process_count() == 1:  # A smaller mesh could leave out one of several processes.
        number = count_devices(len(devices), shards)
        if not fixed:  # The shards can change.
            games, batch = config.selfplay.games, config.learner.batch_size
            number = max(number, count_devices(len(devices), games, batch))
        if number < len(devices):
            processes.note(
                f"{number} of {len(devices)} devices are used: no larger number divides "
                + (f"replay.shards, {shards}" if fixed else "selfplay.games and learner.batch_size")
            )
        devices = devices[:number]
    mesh = training.make_mesh(devices)
    if not fixed and shards % mesh.size:
        processes.note(f"{mesh.size} devices: replay.shards {mesh.size} instead of {shards}")
        replay = dataclasses.replace(config.replay, shards=mesh.size)
        config = dataclasses.replace(config, replay=replay)
        parts = make_parts(config, parts.game, parts.network)
    memory.check_fits(parts, mesh)
    return config, parts, mesh


def _choose_goal(plan: Plan, game: Game) -> certificates.Goal:
    if plan.until == "auto":
        return certificates.default_goal(game) if game.enumerable else "never"
    if plan.until != "never" and not game.enumerable:
        raise ValueError(f"until is {plan.until!r}, but {explain_size(game)}: use 'never'")
    certificates.check_goal(plan.until, game)
    return plan.until


def _name_runs(game: str, preset: str | None) -> pathlib.Path:
    """Returns `runs/GAME-PRESET`, or `runs/GAME` if no other PRESET is used; a number follows."""
    place, _, detail = game.partition(":")
    name = pathlib.Path(place).stem  # Custom games have the name of their file.
    if detail and not is_custom(game):
        name = f"{name}-{detail}"
    return pathlib.Path("runs", "-".join(dict.fromkeys([name, preset or name])))


def _restore(
    run_dir: pathlib.Path, parts: Parts, mesh: Mesh
) -> tuple[training.TrainState | None, float]:
    """Returns the newest sound state of a run, if it has one, and its seconds of training."""
    records = metrics.read_records(run_dir / "metrics.jsonl")
    state, skipped = checkpoint.restore(run_dir, parts, mesh)
    for sentence in skipped:
        processes.note(
            f"{sentence}; it was moved to {run_dir}/damaged, and an older one is resumed"
        )
    step, last = int(state.iteration) if state else 0, records[-1]["iteration"] if records else 0
    if step != last:
        processes.note(f"{run_dir} was saved after iteration {step}, but recorded up to {last}")
    return state, max((r["seconds"] for r in records if r["iteration"] <= step), default=0.0)


def _compile(
    config: Config, parts: Parts, mesh: Mesh, examine_every: int, state: training.TrainState | None
) -> tuple[training.TrainState, Any, Verification | None]:
    """Compiles an iteration and the verification, and meanwhile makes the first state."""
    step: Any = training.make_iteration(parts, mesh)
    with contextlib.ExitStack() as ends, ThreadPoolExecutor() as pool:
        if gc.isenabled():  # It would scan the small objects of tracing again and again.
            gc.disable()
            ends.callback(gc.enable)
        lowered = step.lower(training.abstract_state(parts, mesh))
        compiled = pool.submit(lowered.compile, training.compiler_options())
        verification = None
        if parts.game.enumerable:
            verification = pool.submit(Verification, parts, examine_every)
        if state is None:
            state = training.make_state(parts, jax.random.key(config.seed), mesh)
        return state, compiled.result(), verification and verification.result()


@dataclasses.dataclass
class Run:
    """A training run in its directory, from `open_run`, and its results."""

    config: Config
    plan: Plan
    started: float  # The `time.monotonic()` at which this session began.
    goal: certificates.Goal  # Of `plan.until`, for this game.
    run_dir: pathlib.Path
    loop: Loop  # The training loop, with the state to start from.
    needs: str  # A line on the memory of each device.
    verification: Verification | None  # Of every position, if the game can be enumerated.
    evaluation: LabelledEvaluation | None  # On labelled positions, if the game has some.
    certification: Certification | None = None  # Writes the certificate; set by `train`.

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

    def train(self, callbacks: Sequence[Callback] = (), display: bool = True) -> None:
        """Trains until the goal or the last iteration, with custom callbacks and those of a run."""
        if self.verification is not None:
            given = self.config.seed, self.run_dir / "certificate.json", display
            self.certification = Certification(self.verification, self.goal, *given)
        plan, verification, folder = self.plan, self.verification, self.run_dir
        receives_signals = threading.current_thread() is threading.main_thread()
        listed = [  # What happens after each iteration, in this order.
            events.TimeLimit(self.started, 60 * plan.max_minutes) if plan.max_minutes else None,
            verification,
            self.evaluation,
            events.Snapshots(verification, folder) if verification else None,
            *callbacks,
            events.Records(folder / "metrics.jsonl"),  # All metrics are complete here.
            events.Printer(progress.Lines().print) if display else None,
            events.Interrupts() if receives_signals else None,
            self.certification,
            events.Checkpoints(folder, plan.checkpoint_every, plan.keep_checkpoints),
            events.Report(folder, verification, display) if plan.report else None,
        ]
        self.loop.callbacks = [callback for callback in listed if callback is not None]
        self.loop.run()
