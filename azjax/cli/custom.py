"""Opens the run of a program, with custom games, networks and parts: `path/to/file.py:make`.

Only code that the command line names is imported; a note is printed if its file was edited since
training. Code that only the run directory names is never run.
"""

import dataclasses
import functools
import pathlib
import shlex
from typing import Annotated, Any

import tyro

from azjax import games, runs
from azjax._commands import command
from azjax.cli import console, functions
from azjax.games.base import Game
from azjax.networks import Network
from azjax.runs import config as configs
from azjax.runs import pretrained
from azjax.runs.config import Config, CustomNetworkConfig, is_custom
from azjax.runs.loading import is_pretrained, load, read_config
from azjax.runs.player import Player
from azjax.training.parts import Parts


@dataclasses.dataclass(frozen=True)
class Typed:
    """What the command line names: a run, its game, and its network or parts if custom."""

    run_dir: pathlib.Path | None = None
    """The folder of a training run. Default: the newest run in runs/."""
    game: str | None = None
    """The game: tic_tac_toe, connect_four:4x5, hex:6, … or a custom one: FILE.py:FUNCTION.
    Default: the game of the run. A custom game must always be named."""
    network: str | None = None
    """The run's network, if it is custom: FILE.py:FUNCTION."""
    parts: str | None = None
    """The run's parts, if they are custom: FILE.py:FUNCTION."""


NOTHING = Typed()
Option = Annotated[Typed, tyro.conf.arg(name="")]  # Its fields are options of the program.


def check_run(run_dir: pathlib.Path, typed: Typed) -> Config:
    """Reads a run's settings, and checks that its custom game, network and parts were named.

    Raises:
      ValueError: with the option to add, or the difference.
      runs.CheckpointError: if the folder is not a run directory.
    """
    config = read_config(run_dir)
    if is_pretrained(run_dir):
        config = dataclasses.replace(config, network=Config().network)  # It needs no file.
    if config.parts:
        _check_same(run_dir, "--parts", config.parts, typed.parts)
    elif typed.parts is not None:
        raise ValueError(f"{run_dir} was trained without custom parts: leave --parts out")
    if is_custom(config.game):
        _check_same(run_dir, "--game", config.game, typed.game)
    elif typed.game not in (None, config.game):
        raise ValueError(
            f"{run_dir} is a run of {config.game}, not of {typed.game}: use a run of {typed.game}"
        )
    if isinstance(config.network, CustomNetworkConfig):
        _check_same(run_dir, "--network", config.network.source, typed.network)
    return config


def check_only_run(run_dir: pathlib.Path, typed: Typed) -> Config:
    """Calls `check_run`; also raises a ValueError for a custom network that the run does not have.

    A match between several runs may need a custom network for only one of them.
    """
    config = check_run(run_dir, typed)
    if typed.network is not None and not isinstance(config.network, CustomNetworkConfig):
        raise ValueError(f"{run_dir} was trained without a custom network: leave --network out")
    return config


def _check_same(run_dir: pathlib.Path, option: str, saved: str, typed: str | None) -> None:
    """Compares the names of functions; their files may have moved, or been edited."""
    place, _, digest = saved.partition("#")
    what = option.removeprefix("--")
    if typed is None or not is_custom(typed):
        custom = "custom parts" if what == "parts" else f"a custom {what}"
        raise ValueError(
            f"{run_dir} has {custom}, and azjax imports only code that you name: add "
            f"{option} {place}, if you trust that file"
        )
    (function, given), (name, _) = _split(functions.identify(typed)), _split(saved)
    if function == name:
        return
    if given == digest:
        file = typed.rpartition(":")[0]
        raise ValueError(
            f"{run_dir} was trained with the function {name} of this file, not with {function}: "
            f"use {option} {file}:{name}"
        )
    raise ValueError(
        f"{option} {typed} has the SHA-256 {given[:12]}…, and {run_dir} was trained with "
        f"{place}, which had {digest[:12]}…: give that file as it was"
    )


def _split(identified: str) -> tuple[str, str]:
    """Returns the name of a function and the digest of its file."""
    name, _, digest = identified.partition(":")[2].partition("#")
    return name, digest


def _is_same(saved: str, typed: str) -> bool:
    """Returns whether the function's name and its file's digest are those that a run has saved."""
    return _split(functions.identify(typed)) == _split(saved)


def note_edited(run_dir: pathlib.Path, config: Config, typed: Typed) -> None:
    """Prints a note for each custom file that was edited since the run was trained."""
    if typed.parts is not None and config.parts:
        pairs = [(config.parts, typed.parts)]
    else:
        network = getattr(config.network, "source", None)
        pairs = [(config.game, typed.game if is_custom(config.game) else None)]
        pairs += [(network, typed.network)] if network else []
    for saved, given in pairs:
        if given is not None and not _is_same(saved, given):
            _note_edited(run_dir.resolve(), given)


@functools.cache
def _note_edited(run_dir: pathlib.Path, typed: str) -> None:
    console.note(
        f"{typed} was edited since {run_dir.name} was trained: check that it computes the same"
    )


def name_player(typed: Typed, player: str | None) -> Typed:
    """Adds the player that the command line names without an option.

    Raises:
      ValueError: if no player of this name comes with azjax, or a run is named as well.
    """
    if player is None:
        return typed
    if typed.run_dir is not None:
        raise ValueError(f"{player} and --run-dir {typed.run_dir} name two players: leave one out")
    if not is_pretrained(player):
        unknown = pretrained.describe_unknown(player)
        raise ValueError(f"{unknown}; or name a run with --run-dir")
    return dataclasses.replace(typed, run_dir=pathlib.Path(player))


def choose_run(typed: Typed) -> Typed:
    """Adds the newest matching run in runs/, if there is one and the command line names no run."""
    for path in () if typed.run_dir else runs.find_runs():
        try:
            check_only_run(path, typed)
        except (ValueError, runs.CheckpointError):  # It has another game, network or parts.
            continue
        console.note(f"run: {path}, the newest (--run-dir names another)")
        return dataclasses.replace(typed, run_dir=path)
    return typed


def run_options(run_dir: pathlib.Path, config: Config, typed: Typed = NOTHING) -> list[str]:
    """Returns the options that name a run and its custom parts, one word each.

    For custom code that `typed` does not name, they name the file that the run recorded.
    """
    words = ["--run-dir", str(run_dir)]
    if config.parts:
        return [*words, "--parts", typed.parts or config.parts.partition("#")[0]]
    if is_custom(config.game):
        words += ["--game", typed.game or config.game.partition("#")[0]]
    if isinstance(config.network, CustomNetworkConfig):
        words += ["--network", typed.network or config.network.source.partition("#")[0]]
    return words


def name_run(run_dir: pathlib.Path, config: Config, typed: Typed) -> str:
    """Returns the options with which a program opens a run, quoted for a shell."""
    return shlex.join(run_options(run_dir, config, typed))


def open_run(typed: Typed) -> tuple[pathlib.Path, Player]:
    """Returns the folder and the player of the run that the command line names, or of the newest.

    Raises:
      ValueError: if no run matches, or as `load_player` does.
      runs.CheckpointError: as `azjax.load` does.
    """
    run_dir = choose_run(typed).run_dir
    if run_dir is None:
        of_game, game = (f" of {typed.game}", ["--game", typed.game]) if typed.game else ("", [])
        raise ValueError(
            f"runs/ has no trained player{of_game}: train one with "
            f"{command('azjax', 'train', *game)}, or name its folder with --run-dir"
        )
    check_only_run(run_dir, typed)
    with console.busy(f"loading {run_dir}…"):
        return run_dir, load_player(run_dir, typed)


def load_player(run_dir: pathlib.Path, typed: Typed, iteration: int | None = None) -> Player:
    """Loads a run's player, as `azjax.load` does.

    Raises:
      ValueError: if the command line does not name the run's custom game, network or parts.
      runs.CheckpointError: as `azjax.load` does.
    """
    config = check_run(run_dir, typed)
    if is_pretrained(run_dir):
        return load(run_dir, iteration)
    note_edited(run_dir, config, typed)
    if typed.parts is not None:
        return load(run_dir, iteration, parts=find_parts(typed.parts))
    return load(run_dir, iteration, *_make(config, typed))


def make_parts(config: Config, typed: Typed) -> Parts:
    """Builds the parts of a run, with the custom ones that the command line names.

    Raises:
      ValueError: if a file cannot be imported, or returns something else.
    """
    if typed.parts is not None:
        return find_parts(typed.parts)
    return configs.make_parts(config, *_make(config, typed))


def find_parts(typed: str) -> Parts:
    """Returns custom parts; the same object for the same file.

    Raises:
      ValueError: if the file cannot be imported, or returns something else.
    """
    return _call(functions.identify(typed), Parts)


def find_game(typed: str) -> Game:
    """Returns a game by its name, or a custom one; the same object for the same file.

    Raises:
      ValueError: if the game is unknown.
    """
    functions.check_function(typed)
    return _call(functions.identify(typed), Game) if is_custom(typed) else games.make(typed)


@functools.cache
def _call(identified: str, kind: type) -> Any:
    return functions.call(identified.partition("#")[0], kind)


def _make(config: Config, typed: Typed) -> tuple[Game, Network | None]:
    """Returns the game of a run, and its network if that is custom."""
    game = find_game(typed.game or config.game)
    if typed.network is None or not isinstance(config.network, CustomNetworkConfig):
        return game, None
    return game, functions.call(typed.network, Network, game)
