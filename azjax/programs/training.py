"""`azjax.train`: a whole training from Python."""

import dataclasses
import functools
import pathlib
import sys
import threading
from collections.abc import Sequence
from typing import Any

from azjax import _files as files
from azjax import runs, training
from azjax._settings import did_you_mean
from azjax.games.base import Game
from azjax.programs.prepare import MakeParts, open_run
from azjax.programs.run import Run
from azjax.runs import behavior, presets
from azjax.runs.callbacks import Interrupts, Sink
from azjax.runs.config import Config, is_custom
from azjax.runs.config import make_parts as make_named_parts
from azjax.runs.plan import Plan
from azjax.training import metrics
from azjax.training.loop import Callback

_IN_PYTHON = "python"  # Where custom games and parts come from that no file is named for.


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
      KeyboardInterrupt: after Ctrl-C, once the iteration is finished and saved.

    Example:
      >>> run = train("tic_tac_toe", "runs/mine", until="perfect")  # doctest: +SKIP
      >>> run.certificate.perfect  # doctest: +SKIP
      True
    """
    known = [field.name for field in dataclasses.fields(Plan)]
    for name in plan.keys() - {*known}:
        meant = did_you_mean(name, known)
        raise ValueError(f"unknown setting {name!r}: use one of {', '.join(known)}{meant}")
    config, make_parts = _settle(what, seed)
    path = None if run_dir is None else pathlib.Path(run_dir)
    if resume:
        if path is None:
            raise ValueError("run_dir is None: name the run to resume")
        config, plan = _resumed(path, config, make_parts, plan)
    shown: list[Callback] = [Sink(lambda loop: metrics.Plain(sys.stdout))] if display else []
    if threading.current_thread() is threading.main_thread():  # Others hear of no signal.
        shown.append(Interrupts())
    with open_run(config, Plan(**plan), path, make_parts=make_parts, resume=resume) as run:
        run.train(callbacks, shown)
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
    custom = make_parts(given) if given.parts or is_custom(given.game) else None
    if (custom is None) != (not config.parts and not is_custom(config.game)):
        known = "a custom game or custom parts" if custom is None else f"{config.game}"
        raise ValueError(f"{run_dir} is a run of {known}: give the same to resume it")
    if custom is None and given.game != config.game:
        raise ValueError(f"{run_dir} is a run of {config.game}, not of {given.game}")
    if custom is not None:
        behavior.check_rules(run_dir, custom.game, resume=True)
        behavior.check_network(run_dir, custom.game, custom.network)
    return config, saved | changes
