"""The command line of `azjax train`."""

import argparse
import dataclasses
import pathlib
import re
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal

import tyro

from azjax import runs
from azjax._settings import Kinds, check_kind, find_kinds, list_changes
from azjax.cli import console, functions, own
from azjax.games.base import Game
from azjax.runs import presets
from azjax.runs.config import Config, CustomNetworkConfig, is_custom
from azjax.runs.plan import Plan
from azjax.training.loggers import check_installed


@dataclasses.dataclass(frozen=True)
class Options:
    """Trains AlphaZero by self-play, proving at every iteration how good the network is."""

    config: Annotated[Config, tyro.conf.arg(name="")]
    plan: Annotated[Plan, tyro.conf.arg(name="")]
    run_dir: pathlib.Path | None = None
    """Folder for checkpoints, metrics, certificate and report. Left out: a new one in runs/."""
    resume: bool = False
    """Go on with the run in --run-dir exactly where its newest checkpoint stopped."""
    log: tuple[Literal["tensorboard", "wandb"], ...] = ()
    """Send the metrics to TensorBoard (files in the run directory) or Weights & Biases, too."""
    distributed: bool = False
    """Be one of several processes that train together, all started with the same options."""
    typed: tyro.conf.Suppress[own.Typed] = own.NOTHING
    """The game and the network of one's own that the command line names."""
    given: tyro.conf.Suppress[tuple[str, ...]] = ()
    """Names of the settings that the command line has, such as `selfplay.games`."""

    def __post_init__(self):
        if self.distributed and self.run_dir is None:
            raise ValueError(
                "--distributed needs a folder that all processes share: add --run-dir runs/NAME"
            )
        for name in self.log:
            check_installed({"tensorboard": "tensorboardX"}.get(name, name), f"--log {name}")
        if self.resume and self.run_dir is None:
            raise ValueError("--resume needs the run to go on with: add --run-dir runs/NAME")


def parse(arguments: list[str], prepare: Callable[[Options], None] = lambda _: None) -> Options:
    """Reads the command line; presets, kinds and resumed runs give the defaults of the rest.

    Args:
      arguments: the command line.
      prepare: is called once, before the file of a custom game is run, which may start JAX. What
        it is given has the final `plan.cpu_devices`, `distributed` and `given`.

    Raises:
      ValueError: with one sentence, if an option is unknown, or its value cannot be used.
      runs.CheckpointError: if the run to resume cannot be used.
    """
    arguments = [_dashed(argument) for argument in arguments]
    names = ("game", "network", "parts")
    typed = own.Typed(**{name: _read(arguments, f"--{name}")[0] for name in names})
    folder = _read(arguments, "--run-dir")[0]
    if folder is not None and _read(arguments, "--resume", action="store_true")[0]:
        options = _parse_resumed(arguments, typed, pathlib.Path(folder))
        prepare(options)
    elif typed.parts is not None:
        prepare(options := _parse_new(arguments, typed))
        name = own.find_parts(typed.parts).game.name
        options = dataclasses.replace(
            options, config=dataclasses.replace(options.config, game=name)
        )
    elif typed.game is None or not is_custom(typed.game):
        options = _parse_new(arguments, typed)
        prepare(options)
    else:
        if not {"-h", "--help"} & set(arguments):
            prepare(_parse_new(arguments, typed))
        options = _parse_new(arguments, typed, own.find_game(typed.game))
    return dataclasses.replace(options, typed=typed)


def _list_given(arguments: list[str]) -> tuple[str, ...]:
    """Lists the names of the settings that a command line has."""
    options = (argument.partition("=")[0] for argument in arguments if argument.startswith("--"))
    return tuple(option[2:].replace("-", "_") for option in options)


def _parse_resumed(arguments: list[str], typed: own.Typed, run_dir: pathlib.Path) -> Options:
    """Reads the command line of a run that goes on, which keeps its settings."""
    config = own.check_run(run_dir, typed)
    arguments = _leave_out_own(config, arguments)
    saved = Options(config, runs.read_settings(run_dir / "plan.json", Plan), run_dir, True)
    default = dataclasses.replace(saved, config=_choose_kinds(config, arguments))
    options = console.parse(Options, arguments, "azjax train", default=default)
    if options.resume:
        _refuse_changes(saved, options)
    return options


def _parse_new(arguments: list[str], typed: own.Typed, game: Game | None = None) -> Options:
    """Reads the command line of a new run.

    Without its `game`, a custom game has the defaults of the preset `default`.
    """
    if typed.game:
        functions.check_function(typed.game)
    if game is None and typed.game and is_custom(typed.game):
        preset: Any = "default"
    else:
        preset = presets.name_for(typed.game or Config.game, game)
    arguments = _identify_own(typed, arguments)
    preset = _read(arguments, "--preset", default=preset)[0]
    config, plan = _choose_kinds(presets.get(preset), arguments), Plan(preset=preset)
    if _read(arguments, "--smoke", action="store_true")[0]:
        config = presets.smoke(config)
        plan = Plan(preset, until="never", max_iterations=3)
    if game is not None:
        config = presets.fit(config, game)
    default = Options(config, plan, given=_list_given(arguments))
    return console.parse(Options, arguments, "azjax train", default=default)


def _dashed(argument: str) -> str:
    """Spells an option with dashes, as its help does; tyro understands both."""
    option, equals, value = argument.partition("=")
    return option.replace("_", "-") + equals + value if option.startswith("--") else argument


def _read(arguments: list[str], option: str, **how: Any) -> tuple[Any, list[str]]:
    """Reads one option that the defaults of others depend on; returns the other arguments, too."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument(option, dest="found", **how)
    try:
        known, others = parser.parse_known_args(arguments)
    except argparse.ArgumentError as error:
        raise ValueError(error) from error
    return known.found, others


def _identify_own(typed: own.Typed, arguments: list[str]) -> list[str]:
    """Puts what a run's settings keep in the place of files that are named."""
    if typed.parts:
        functions.check_function(typed.parts)
        given = [name for name in ("game", "network") if getattr(typed, name)]
        if given:
            raise ValueError(
                f"--parts has a game and a network of its own: leave --{given[0]} out, or leave "
                "--parts out"
            )
        arguments = [*_read(arguments, "--parts")[1], "--parts", functions.identify(typed.parts)]
    if typed.game and is_custom(typed.game):
        arguments = [*_read(arguments, "--game")[1], "--game", functions.identify(typed.game)]
    if typed.network:
        functions.check_function(typed.network, arguments=1)
        source = functions.identify(typed.network)
        arguments = _read(arguments, "--network")[1]
        arguments += ["--network.kind", "custom", "--network.source", source]
    return arguments


def _leave_out_own(config: Config, arguments: list[str]) -> list[str]:
    """Leaves out the files that a resumed run's settings have, as `own.check_run` found."""
    if config.parts:
        arguments = _read(arguments, "--parts")[1]
    if is_custom(config.game):
        arguments = _read(arguments, "--game")[1]
    if isinstance(config.network, CustomNetworkConfig):
        arguments = _read(arguments, "--network")[1]
    return arguments


def _choose_kinds(config: Any, arguments: list[str], prefix: str = "--") -> Any:
    """Puts the defaults of the kinds that options such as `--network.kind` name into place.

    Settings of the kind that is there already are kept.

    Args:
      config: a (nested) dataclass of settings.
      arguments: the command line.
      prefix: what stands before the names of its settings.

    Raises:
      ValueError: if there is no such kind, or a setting of another kind is given.
    """
    for name, hint in typing.get_type_hints(type(config)).items():
        value, inner = getattr(config, name), f"{prefix}{name.replace('_', '-')}."
        if not dataclasses.is_dataclass(value):
            continue
        if kinds := find_kinds(hint):
            value = _choose_kind(kinds, value, arguments, inner)
        value = _choose_kinds(value, arguments, inner)
        config = dataclasses.replace(config, **{name: value})
    return config


def _choose_kind(kinds: Kinds, value: Any, arguments: list[str], prefix: str) -> Any:
    """Returns the settings given if they are of the kind chosen, or else that one's defaults."""
    current = getattr(value, kinds.tag)
    chosen, _ = _read(arguments, f"{prefix}{kinds.tag}".replace("_", "-"), default=current)
    given = [argument.removeprefix(prefix) for argument in arguments if argument.startswith(prefix)]
    names = [re.split("[.=]", name)[0].removeprefix("no-").replace("-", "_") for name in given]
    check_kind(kinds, chosen, names, prefix)
    return value if chosen == current else kinds.classes[chosen]()


def _refuse_changes(saved: Options, given: Options) -> None:
    """Refuses to resume a run with settings that would change its numbers."""
    fixed = ("preset", "smoke", "cpu_devices")
    changes = [change for change in list_changes(saved.plan, given.plan) if change[0] in fixed]
    for name, old, new in changes + list_changes(saved.config, given.config):
        raise ValueError(
            f"a resumed run keeps its settings, and --{name.replace('_', '-')} was {old!r}, "
            f"not {new!r}: leave it out, or start a new run in another --run-dir"
        )
