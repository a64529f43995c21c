"""Opens the run of a program, with custom games, networks and parts: `path/to/file.py:make`.

Only code that the command line names is imported; a note is printed if its file was edited since
training. Code that only the run directory names is never run.
"""

import dataclasses
import functools
import pathlib
import shlex
from typing import Annotated, Any

from azjax import games, runs
from azjax._commands import command
from azjax.cli import console, functions
from azjax.cli.parsing import Place
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
Option = Annotated[Typed, Place.FLAT]  # Its fields are options of the program.


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
        _check_named(run_dir, "parts", config.parts, typed.parts)
    elif typed.parts is not None:
        raise ValueError(f"{run_dir} was trained without custom parts: leave --parts out")
    if is_custom(config.game):
        _check_named(run_dir, "game", config.game, typed.game)
    elif typed.game not in (None, config.game):
        raise ValueError(
            f"{run_dir} is a run of {config.game}, not of {typed.game}: use a run of {typed.game}"
        )
    if isinstance(config.network, CustomNetworkConfig):
        _check_named(run_dir, "network", config.network.source, typed.network)
    return config


def check_only_run(run_dir: pathlib.Path, typed: Typed) -> Config:
    """Calls `check_run`; also raises a ValueError for a custom network that the run does not have.

    A match between several runs may need a custom network for only one of them.
    """
    config = check_run(run_dir, typed)
    if typed.network is not None and not isinstance(config.network, CustomNetworkConfig):
        raise ValueError(f"{run_dir} was trained without a custom network: leave --network out")
    return config


def _check_named(run_dir: pathlib.Path, option: str, saved: str, named: str | None) -> None:
    """Checks that a function of the same name was named; its file may have moved."""
    spec = saved.partition("#")[0]
    if named is None or not is_custom(named):
        custom = "custom parts" if option == "parts" else f"a custom {option}"
        raise ValueError(
            f"{run_dir} has {custom}, and azjax imports only code that you name: add --{option} "
            f"{spec}, if you trust that file"
        )
    (place, _, function), (_, _, name) = named.partition(":"), spec.partition(":")
    if function != name:
        raise ValueError(
            f"{run_dir} was trained with the function {name}, not with {function}: use "
            f"--{option} {place}:{name}"
        )


def note_edited(run_dir: pathlib.Path, config: Config, typed: Typed) -> None:
    """Prints a note for each custom file that was edited since the run was trained."""
    source = getattr(config.network, "source", "")
    for saved, named in (
        (config.parts, typed.parts),
        (config.game if is_custom(config.game) else "", typed.game),
        (source, typed.network),
    ):
        if saved and named and _digest(saved) != _digest(functions.identify(named)):
            _note_edited(run_dir.resolve(), named)


def _digest(identified: str) -> str:
    return identified.partition("#")[2]


@functools.cache
def _note_edited(run_dir: pathlib.Path, named: str) -> None:
    console.note(
        f"{named} was edited since {run_dir.name} was trained: check that it computes the same"
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


def is_code(name: str) -> bool:
    """Returns whether a name of the command line is a function, even an incomplete one."""
    return is_custom(name) or name.endswith(".py")


def identify(name: str) -> str:
    """Returns what the settings store: a name, or a function with the digest of its file."""
    return functions.identify(name) if is_code(name) else name


def find_parts(typed: str) -> Parts:
    """Returns custom parts; the same object for the same file."""
    return _load(functions.identify(typed), Parts)


def find_game(typed: str) -> Game:
    """Returns a game by its name, or a custom one; the same object for the same file."""
    return _load(functions.identify(typed), Game) if is_code(typed) else games.make(typed)


@functools.cache
def _load(identified: str, kind: type) -> Any:
    return functions.load(identified.partition("#")[0], kind)


def _make(config: Config, typed: Typed) -> tuple[Game, Network | None]:
    """Returns the game of a run, and its network if that is custom."""
    if typed.parts is not None:
        return (parts := find_parts(typed.parts)).game, parts.network
    game = find_game(typed.game or config.game)
    if typed.network is None or not isinstance(config.network, CustomNetworkConfig):
        return game, None
    return game, functions.load(typed.network, Network, game)
