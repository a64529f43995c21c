"""The command line of `azjax train`.

The defaults of most settings depend on other options: the game, the preset and the kind of network.
This module reads those options first, chooses the defaults, and leaves the rest to tyro. Tyro's own
subcommands for unions would change the command line, from `--network.kind mlp` to a positional
`network:mlp-config` before the settings of the network.
"""

import argparse
import dataclasses
import pathlib
import re
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal

import tyro

from azjax import runs
from azjax._settings import check_kind, find_kinds, list_changes
from azjax.cli import custom, functions, parsing
from azjax.games.base import Game
from azjax.runs import presets
from azjax.runs.config import Config, CustomNetworkConfig, is_custom
from azjax.runs.plan import SMOKE, Plan


@dataclasses.dataclass(frozen=True)
class Options:
    """Trains AlphaZero by self-play, and verifies or evaluates the network during training."""

    config: Annotated[Config, tyro.conf.arg(name="")]
    plan: Annotated[Plan, tyro.conf.arg(name="")]
    run_dir: pathlib.Path | None = None
    """Folder for checkpoints, metrics, certificate and report. Default: a new folder in runs/."""
    resume: bool = False
    """Continue the run in --run-dir exactly where its newest checkpoint stopped."""
    log: tuple[Literal["tensorboard", "wandb"], ...] = ()
    """Also send the metrics to TensorBoard (files in the run directory) or Weights & Biases."""
    distributed: bool = False
    """Run as one of several processes that train together, all with the same options."""
    typed: tyro.conf.Suppress[custom.Typed] = custom.NOTHING
    """The custom game, network or parts that the command line names."""
    given: tyro.conf.Suppress[tuple[str, ...]] = ()
    """Names of the settings that the command line has, such as `selfplay.games`."""

    def __post_init__(self):
        if self.distributed and self.run_dir is None:
            raise ValueError(
                "--distributed needs a folder that all processes share: add --run-dir runs/NAME"
            )
        if self.resume and self.run_dir is None:
            raise ValueError("--resume needs the run to continue: add --run-dir runs/NAME")


def parse(arguments: list[str], prepare: Callable[[Options], None] = lambda _: None) -> Options:
    """Parses the command line; presets, kinds and resumed runs determine the defaults.

    Args:
      arguments: the command line.
      prepare: called once, before the code of a custom game runs, which may start JAX. Its argument
        has the final `plan.cpu_devices`, `distributed` and `given`.

    Raises:
      ValueError: with one sentence, if an option is unknown or has an invalid value.
      runs.CheckpointError: if the run to resume cannot be used.
    """
    arguments = [_dashed(argument) for argument in arguments]
    given = tuple(
        argument.partition("=")[0].removeprefix("--").replace("-", "_")
        for argument in arguments
        if argument.startswith("--")
    )
    resume, _ = _read(arguments, "--resume", action="store_true")
    run_dir, _ = _read(arguments, "--run-dir")
    game, arguments = _read(arguments, "--game")
    network, arguments = _read(arguments, "--network")
    parts, arguments = _read(arguments, "--parts")
    typed = custom.Typed(game=game, network=network, parts=parts)
    if resume and run_dir is not None:
        options = _parse_resumed(arguments, typed, pathlib.Path(run_dir))
        prepare(options)
    elif game is not None and is_custom(game):
        if not {"-h", "--help"} & set(arguments):
            prepare(_parse_new(arguments, typed, given))
        options = _parse_new(arguments, typed, given, custom.find_game(game))
    else:
        options = _parse_new(arguments, typed, given)
        prepare(options)
    if parts is not None and not resume:
        config = dataclasses.replace(options.config, game=custom.find_parts(parts).game.name)
        options = dataclasses.replace(options, config=config)
    return dataclasses.replace(options, typed=typed)


def _parse_resumed(arguments: list[str], typed: custom.Typed, run_dir: pathlib.Path) -> Options:
    """Parses the command line of a resumed run, which keeps its settings."""
    config = custom.check_only_run(run_dir, typed)
    saved = Options(config, runs.read_settings(run_dir / "plan.json", Plan), run_dir, True)
    default = dataclasses.replace(saved, config=_choose_kinds(config, arguments))
    options = parsing.parse(Options, arguments, "azjax train", default=default)
    changes = [
        change
        for change in list_changes(saved.plan, options.plan)
        if change[0] in ("preset", "smoke", "cpu_devices")
    ]
    for name, old, new in changes + list_changes(saved.config, options.config):
        raise ValueError(
            f"a resumed run keeps its settings, and --{name.replace('_', '-')} was {old!r}, "
            f"not {new!r}: leave it out, or start a new run in another --run-dir"
        )
    return options


def _parse_new(
    arguments: list[str], typed: custom.Typed, given: tuple[str, ...], game: Game | None = None
) -> Options:
    """Parses the command line of a new run.

    If `game` is None, a custom game has the defaults of the preset `default`.
    """
    name = _identify(typed, "game")
    preset: Any = "default"
    if game is not None or name is None or not is_custom(name):
        preset = presets.name_for(Config.game if name is None else name, game)
    preset, _ = _read(arguments, "--preset", default=preset)
    config, plan = presets.get(preset), Plan(preset=preset)
    if name is not None:
        config = dataclasses.replace(config, game=name)
    if source := _identify(typed, "network"):
        config = dataclasses.replace(config, network=CustomNetworkConfig(source=source))
    if parts := _identify(typed, "parts"):
        config = dataclasses.replace(config, parts=parts)
    config = _choose_kinds(config, arguments)
    if source and not isinstance(config.network, CustomNetworkConfig):
        raise ValueError("--network names a custom network: leave --network.kind out")
    if _read(arguments, "--smoke", action="store_true")[0]:
        config = presets.smoke(config)
        plan = Plan(preset, **SMOKE)
    if game is not None:
        config = presets.fit(config, game)
    default = Options(config, plan, given=given)
    return parsing.parse(Options, arguments, "azjax train", default=default)


def _identify(typed: custom.Typed, option: str) -> str | None:
    """Returns what the settings store for `--game`, `--network` or `--parts`.

    Files are stored with their digest.
    """
    value = getattr(typed, option)
    if value is None:
        return None
    if typed.parts and option != "parts":
        raise ValueError(
            f"--parts has its own {option}: leave --{option} out, or leave --parts out"
        )
    functions.check_function(value, arguments=1 if option == "network" else 0)
    return functions.identify(value) if option != "game" or is_custom(value) else value


def _dashed(argument: str) -> str:
    """Spells an option with dashes, as the help does; tyro accepts both."""
    option, equals, value = argument.partition("=")
    return option.replace("_", "-") + equals + value if option.startswith("--") else argument


def _read(arguments: list[str], option: str, **how: Any) -> tuple[Any, list[str]]:
    """Reads one option; returns its value and the other arguments."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument(option, dest="value", **how)
    try:
        known, others = parser.parse_known_args(arguments)
    except argparse.ArgumentError as error:
        if how.get("action") == "store_true":
            value = error.message.split()[-1]
            raise ValueError(f"{option} takes no value: leave {value} out") from error
        raise ValueError(f"{option} has no value: add one, or leave it out") from error
    return known.value, others


def _choose_kinds(config: Any, arguments: list[str], prefix: str = "--") -> Any:
    """Replaces settings by the defaults of the kinds that options such as `--network.kind` name.

    Settings that already have the kind stay as they are.

    Args:
      config: a (nested) dataclass of settings.
      arguments: the command line.
      prefix: the prefix of the options of `config`.

    Raises:
      ValueError: if the kind is unknown, or an option is a setting of another kind.
    """
    for name, hint in typing.get_type_hints(type(config)).items():
        value, inner = getattr(config, name), f"{prefix}{name.replace('_', '-')}."
        if not dataclasses.is_dataclass(value):
            continue
        if kinds := find_kinds(hint):
            current = getattr(value, kinds.tag)
            option = f"{inner}{kinds.tag}".replace("_", "-")
            chosen, _ = _read(arguments, option, default=current)
            given = [a.removeprefix(inner) for a in arguments if a.startswith(inner)]
            names = [re.split("[.=]", a)[0].removeprefix("no-").replace("-", "_") for a in given]
            check_kind(kinds, chosen, names, inner)
            value = value if chosen == current else kinds.classes[chosen]()
        config = dataclasses.replace(config, **{name: _choose_kinds(value, arguments, inner)})
    return config
