"""`azjax.train`: the program `azjax train` as a function."""

import dataclasses
import functools
import pathlib
import sys
import threading
from collections.abc import Sequence
from typing import Any

from azjax import _files as files
from azjax import runs, training
from azjax._commands import write_note
from azjax._settings import did_you_mean
from azjax.games.base import Game
from azjax.programs.prepare import MakeParts, open_run
from azjax.programs.run import Run
from azjax.runs import presets
from azjax.runs.callbacks import Interrupts, Output
from azjax.runs.config import Config, is_custom
from azjax.runs.config import make_parts as make_named_parts
from azjax.runs.plan import SMOKE, Plan
from azjax.training import metrics
from azjax.training.loop import Callback, check_callbacks

_IN_PYTHON = "python"  # The source of custom games and parts that come from no file.


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
    """Trains in a run directory, as the program `azjax train` does.

    On CPUs, the program makes each core a JAX device; this function uses the devices that JAX has.

    Args:
      what: what to train: the name of a game, or a custom `Game`, with the preset for that game;
        a `Config`; or custom `Parts`.
      run_dir: the run directory; by default the first free one in `runs/`.
      seed: the seed of every random draw; not used with a `Config`, which contains a seed.
      resume: whether to resume the run in this directory. The run keeps its settings and, except
        for the given fields, its plan.
      callbacks: custom callbacks. The metrics that they add are written and displayed.
      display: whether to print a line for each iteration, and on stderr what follows the last one.
      **plan: fields of `Plan`, such as `until="perfect"` or `max_iterations=100`. `preset`
        needs the name of a game or a `Game`; `cpu_devices` is for the program only.

    Returns:
      The run, with its `player`, `certificate`, `metrics` and `run_dir`.

    Raises:
      ValueError: if settings contradict each other or do not fit the machine, a resumed run has
        another game or other parts, or `callbacks` has anything but callbacks.
      runs.CheckpointError: if the run directory cannot be used.
      FloatingPointError: if a metric is NaN or infinite.
      KeyboardInterrupt: after Ctrl-C, SIGTERM or SIGHUP, or if the reader of stdout has exited;
        the iteration is finished and saved first.

    Example:
      >>> run = train("tic_tac_toe", "runs/mine", until="perfect")  # doctest: +SKIP
      >>> run.certificate.perfect  # doctest: +SKIP
      True
    """
    _check_plan(plan, what, resume)
    check_callbacks(callbacks)
    config, make_parts, new_plan = _settle(what, seed, plan)
    path = None if run_dir is None else pathlib.Path(run_dir)
    if resume:
        if path is None:
            raise ValueError("run_dir is None: name the run to resume")
        config, new_plan = _resumed(path, config, make_parts, plan)
    shown: list[Callback] = [Output(lambda loop: metrics.Plain(sys.stdout))] if display else []
    if threading.current_thread() is threading.main_thread():  # Only this one receives signals.
        shown.append(Interrupts())
    with open_run(config, Plan(**new_plan), path, make_parts=make_parts, resume=resume) as run:
        announce = write_note if display else lambda sentence: None
        run.train(callbacks, shown, announce=announce)
    return run


def _check_plan(plan: dict[str, Any], what: Any, resume: bool) -> None:
    """Raises a ValueError for fields that `Plan` does not have, or that would have no effect."""
    known = [field.name for field in dataclasses.fields(Plan) if field.name != "cpu_devices"]
    if "cpu_devices" in plan:
        raise ValueError(
            "cpu_devices is an option of `azjax train`: in Python, call "
            'jax.config.update("jax_num_cpu_devices", N) before anything else uses JAX'
        )
    for name in plan.keys() - {*known}:
        meant = did_you_mean(name, known)
        raise ValueError(f"unknown setting {name!r}: use one of {', '.join(known)}{meant}")
    for name in plan.keys() & {"preset", "smoke"}:
        if resume:
            raise ValueError(f"a resumed run keeps its settings: leave {name} out")
        if isinstance(what, training.Parts) or (isinstance(what, Config) and name == "preset"):
            kind = type(what).__name__
            raise ValueError(f"{name} changes settings, but {kind} has them all: leave {name} out")


def _settle(what: Any, seed: int, plan: dict[str, Any]) -> tuple[Config, MakeParts, dict[str, Any]]:
    """Returns the settings, the function that makes the parts, and the complete plan."""
    if isinstance(what, training.Parts):
        config = Config(game=what.game.name, seed=seed, parts=_IN_PYTHON)
        return config, lambda config: what, plan
    if not isinstance(what, str | Game | Config):
        raise ValueError(
            f"what to train is of type {type(what).__name__}: give the name of a game, a Game, a "
            "Config or Parts"
        )
    custom = what if isinstance(what, Game) else None
    if isinstance(what, Config):
        config = what
    else:
        name = what if isinstance(what, str) else what.name
        plan = {"preset": presets.name_for(name, custom), **plan}
        config = dataclasses.replace(presets.get(plan["preset"]), game=name, seed=seed)
    if plan.get("smoke"):
        config, plan = presets.smoke(config), SMOKE | plan
    if custom is None:
        return config, make_named_parts, plan
    config = dataclasses.replace(presets.fit(config, custom), game=f"{_IN_PYTHON}:{custom.name}")
    return config, functools.partial(make_named_parts, game=custom), plan


def _resumed(
    run_dir: pathlib.Path, given: Config, make_parts: MakeParts, changes: dict[str, Any]
) -> tuple[Config, dict[str, Any]]:
    """Returns the settings and the plan of a run to resume; checks that it is of the same game."""
    config = runs.read_config(run_dir)
    saved = dataclasses.asdict(runs.read_settings(run_dir / "plan.json", Plan))
    custom = make_parts(given) if given.parts or is_custom(given.game) else None
    if (custom is None) != (not config.parts and not is_custom(config.game)):
        known = "a custom game or custom parts" if custom is None else f"{config.game}"
        raise ValueError(f"{run_dir} is a run of {known}: give the same to resume it")
    if custom is None and given.game != config.game:
        raise ValueError(f"{run_dir} is a run of {config.game}, not of {given.game}")
    return config, saved | changes
