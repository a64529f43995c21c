"""The run that a program reads, and games and networks of one's own: `path/to/file.py:make`.

Only what is typed is imported. What a run directory says is compared with it, and never run.
"""

import dataclasses
import functools
import pathlib
import shlex
from collections.abc import Callable
from typing import Annotated, cast

import tyro

from azjax import games, runs
from azjax._commands import command
from azjax.cli import console, functions
from azjax.games.base import Game
from azjax.networks import Network
from azjax.runs import behavior
from azjax.runs import config as configs
from azjax.runs.config import Config, CustomNetworkConfig, is_custom
from azjax.runs.player import Player, load
from azjax.training.parts import Parts


@dataclasses.dataclass(frozen=True)
class Typed:
    """What a command line names: a run, its game, and its network if that is one's own."""

    run_dir: pathlib.Path | None = None
    """The folder of a training run. Left out: the newest in runs/."""
    game: str | None = None
    """Which game: tic_tac_toe, connect_four:4x5, hex:6, … or your own: FILE.py:FUNCTION. Left out:
    that of the run, unless it is your own."""
    network: str | None = None
    """The run's network, if it is custom: FILE.py:FUNCTION."""
    parts: str | None = None
    """The run's parts, if they are custom: FILE.py:FUNCTION."""


NOTHING = Typed()
Option = Annotated[Typed, tyro.conf.arg(name="")]  # Among the options of a program.


def check_run(run_dir: pathlib.Path, typed: Typed) -> Config:
    """Reads a run's settings, if the game and the network that it was trained with were typed.

    Raises:
      ValueError: saying what to add, or what differs.
      runs.CheckpointError: if there is no run.
    """
    config = runs.read_config(run_dir)
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


def _check_same(run_dir: pathlib.Path, option: str, saved: str, typed: str | None) -> None:
    """Compares functions' names and files' digests; a file may have moved.

    A file may have been edited, if what it makes can be compared afterwards, by `check_edited`.
    """
    place, _, digest = saved.partition("#")
    if typed is None or not is_custom(typed):
        owned = "parts" if option == "--parts" else f"a {option[2:]}"
        raise ValueError(
            f"{run_dir} has {owned} of its own, and no run directory may name code: add "
            f"{option} {place}, if you trust that file"
        )
    (function, given), (name, _) = _read(functions.identify(typed)), _read(saved)
    if _is_same(saved, typed) or (function == name and _records(option)(run_dir)):
        return
    unknown = f", and did not record the {option[2:]} to compare" if function == name else ""
    raise ValueError(
        f"{option} {typed} has the SHA-256 {given[:12]}…, and {run_dir} was trained with "
        f"{place}, which had {digest[:12]}…{unknown}: give that file as it was"
    )


def _read(identified: str) -> tuple[str, str]:
    """The name of a function, and the digest of its file."""
    name, _, digest = identified.partition(":")[2].partition("#")
    return name, digest


def _records(option: str) -> Callable[[pathlib.Path], bool]:
    name = "network" if option == "--network" else "rules"
    return lambda run_dir: behavior.has_record(run_dir, name)


def _is_same(saved: str, typed: str) -> bool:
    """Whether a function has the name, and its file the digest, that a run has saved."""
    return _read(functions.identify(typed)) == _read(saved)


def check_edited(run_dir: pathlib.Path, config: Config, typed: Typed, resume: bool = False) -> None:
    """Compares what is custom with what a run recorded of it, and notes edited files.

    Raises:
      ValueError: as `rules.check_rules` and `rules.check_network` do.
    """
    if typed.parts is not None and config.parts:
        parts = find_parts(typed.parts)
        behavior.check_rules(run_dir, parts.game, resume)
        behavior.check_network(run_dir, parts.game, parts.network)
        if not _is_same(config.parts, typed.parts):
            same = "its rules and its network are the same; search and loss were not compared"
            _note_edited(run_dir.resolve(), typed.parts, same)
        return
    if typed.game is not None and is_custom(config.game):
        behavior.check_rules(run_dir, find_game(typed.game), resume)
        if not _is_same(config.game, typed.game):
            same = f"its rules are the same in {behavior.NUM_GAMES} random games"
            _note_edited(run_dir.resolve(), typed.game, same)
    if typed.network is None or not isinstance(config.network, CustomNetworkConfig):
        return
    if not _is_same(config.network.source, typed.network):
        game, network = _make(config, typed)
        behavior.check_network(run_dir, game, cast(Network, network))
        _note_edited(run_dir.resolve(), typed.network, "its network computes the same")


@functools.cache
def _note_edited(run_dir: pathlib.Path, typed: str, same: str) -> None:
    """Notes, once, that a file is accepted though it was edited."""
    console.note(f"{typed} was edited since {run_dir.name} was trained, and {same}: it is used")


def choose_run(typed: Typed) -> Typed:
    """Returns what was typed, with the newest run in runs/ if none was, as far as there is one.

    It is of the game and the network that were typed.
    """
    for path in () if typed.run_dir else runs.find_runs():
        try:
            check_run(path, typed)
        except (ValueError, runs.CheckpointError):  # Not a run that could be used.
            continue
        console.note(f"run: {path}, the newest (--run-dir names another)")
        return dataclasses.replace(typed, run_dir=path)
    return typed


def run_options(run_dir: pathlib.Path, config: Config, typed: Typed = NOTHING) -> list[str]:
    """Returns the options that name a run and its custom parts, one word each.

    Files that were not typed are those that the run recorded.
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
    """Returns the options that name a run, quoted for a shell."""
    return shlex.join(run_options(run_dir, config, typed))


def open_run(typed: Typed) -> tuple[pathlib.Path, Player]:
    """Returns the folder of the run that was typed, or else of the newest, and its player.

    Raises:
      ValueError: if there is no run, or as `load_player` does.
      runs.CheckpointError: as `azjax.load` does.
    """
    run_dir = choose_run(typed).run_dir
    if run_dir is None:
        of_game, game = (f" of {typed.game}", ["--game", typed.game]) if typed.game else ("", [])
        raise ValueError(
            f"there is no trained player{of_game} in runs/: train one with "
            f"{command('azjax', 'train', *game)}, or say where one is by --run-dir"
        )
    return run_dir, load_player(run_dir, typed)


def make_parts(config: Config, typed: Typed) -> Parts:
    """Builds the parts of a run, with what was typed in the place of names.

    Raises:
      ValueError: if a file cannot be imported, or makes something else.
    """
    if typed.parts is not None:
        return find_parts(typed.parts)
    return configs.make_parts(config, *_make(config, typed))


def load_player(run_dir: pathlib.Path, typed: Typed, iteration: int | None = None) -> Player:
    """Loads a run's player, as `azjax.load` does, and says so if newer checkpoints are damaged.

    Raises:
      ValueError: if the run has a game or network of its own, and another or none was typed.
      runs.CheckpointError: as `azjax.load` does.
    """
    config = check_run(run_dir, typed)
    check_edited(run_dir, config, typed)
    if typed.parts is not None:
        player = load(run_dir, iteration, parts=find_parts(typed.parts))
    else:
        player = load(run_dir, iteration, *_make(config, typed))
    for sentence in player.skipped:
        console.note(f"{sentence}; an older one is used")
    return player


def find_parts(typed: str) -> Parts:
    """Returns custom parts, every time the same object.

    Raises:
      ValueError: if the file cannot be imported, or returns something else.
    """
    functions.check_function(typed)
    return _find_parts(functions.identify(typed))


@functools.cache
def _find_parts(identified: str) -> Parts:
    return functions.call(identified.partition("#")[0], Parts)


def find_game(typed: str) -> Game:
    """Returns a game by its name, or from somebody's file; every time the same object.

    Raises:
      ValueError: if there is none.
    """
    functions.check_function(typed)
    return _find_own_game(functions.identify(typed)) if is_custom(typed) else games.make(typed)


@functools.cache
def _find_own_game(identified: str) -> Game:
    return functions.call(identified.partition("#")[0], Game)


def _make(config: Config, typed: Typed) -> tuple[Game, Network | None]:
    """The game of a run, and its network if that is its own."""
    game = find_game(typed.game or config.game)
    if typed.network is None or not isinstance(config.network, CustomNetworkConfig):
        return game, None
    return game, functions.call(typed.network, Network, game)
