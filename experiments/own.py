"""The run that a program reads, and games and networks of one's own: `path/to/file.py:make`.

Only what is typed is imported. What a run directory says is compared with it, and never run.
"""

import ast
import dataclasses
import functools
import hashlib
import importlib
import importlib.util
import inspect
import pathlib
import shlex
import sys
import traceback
from collections.abc import Callable
from typing import Annotated, Any, cast

import tyro

from azjax import config as configs
from azjax import games, rules, runs
from azjax.config import Config, OwnNetworkConfig, is_own
from azjax.game import Game
from azjax.network import Network
from azjax.player import Player, load
from azjax.settings import did_you_mean
from azjax.train import Parts
from experiments import console


@dataclasses.dataclass(frozen=True)
class Typed:
    """What a command line names: a run, its game, and its network if that is one's own."""

    run_dir: pathlib.Path | None = None
    """The folder of a training run. Left out: the newest in runs/."""
    game: str | None = None
    """Which game: tic_tac_toe, connect_four:4x5, hex:6, … or your own: FILE.py:FUNCTION. Left out:
    that of the run, unless it is your own."""
    network: str | None = None
    """The run's network, if it is your own: FILE.py:FUNCTION."""


NOTHING = Typed()
Option = Annotated[Typed, tyro.conf.arg(name="")]  # Among the options of a program.


def identify(typed: str) -> str:
    """Returns `PLACE:FUNCTION#SHA-256` for `PLACE:FUNCTION`, without running that file.

    Raises:
      ValueError: if there is no such file or module, or no function is named.
    """
    check_function(typed)
    path = _find(typed.partition(":")[0])
    return f"{typed}#{hashlib.sha256(path.read_bytes()).hexdigest()}"


def check_function(typed: str, arguments: int = 0) -> None:
    """Refuses a file or a module without a function, such as `FILE.py`.

    Args:
      typed: what a command line names.
      arguments: of the function that is wanted.

    Raises:
      ValueError: naming the functions of the file that could be meant.
    """
    place, _, name = typed.partition(":")
    if name or not any(mark in place for mark in "./\\"):
        return
    if not place.endswith(".py"):
        raise ValueError(
            f"{typed} names no function: give FILE.py:FUNCTION or package.module:FUNCTION"
        )
    listed = _list_functions(_find(place), arguments)
    raise ValueError(f"{typed} names no function: give {place}:FUNCTION{listed}")


def _list_functions(path: pathlib.Path, arguments: int = 0) -> str:
    """Lists the functions of a file that can be called so, without running it."""
    try:
        statements = ast.parse(path.read_text()).body
    except (OSError, ValueError, SyntaxError):  # Who imports it is told.
        return ""
    found = []
    for function in statements:
        if isinstance(function, ast.FunctionDef) and not function.name.startswith("_"):
            takes = function.args
            most = len(takes.posonlyargs) + len(takes.args)
            least = most - len(takes.defaults) + takes.kw_defaults.count(None)
            if least <= arguments and (most >= arguments or takes.vararg):
                found.append(function.name)
    wanted = "a single argument" if arguments else "no argument"
    return f"; functions that take {wanted}: {', '.join(found)}" if found else ""


def check_run(run_dir: pathlib.Path, typed: Typed) -> Config:
    """Reads a run's settings, if the game and the network that it was trained with were typed.

    Raises:
      ValueError: saying what to add, or what differs.
      runs.CheckpointError: if there is no run.
    """
    config = runs.read_config(run_dir)
    if is_own(config.game):
        _check_same(run_dir, "--game", config.game, typed.game)
    elif typed.game not in (None, config.game):
        raise ValueError(
            f"{run_dir} is a run of {config.game}, not of {typed.game}: use a run of {typed.game}"
        )
    if isinstance(config.network, OwnNetworkConfig):
        _check_same(run_dir, "--network", config.network.source, typed.network)
    return config


def _check_same(run_dir: pathlib.Path, option: str, saved: str, typed: str | None) -> None:
    """Compares functions' names and files' digests; a file may have moved.

    A file may have been edited, if what it makes can be compared afterwards, by `check_edited`.
    """
    place, _, digest = saved.partition("#")
    if typed is None or not is_own(typed):
        raise ValueError(
            f"{run_dir} has a {option[2:]} of its own, and no run directory may name code: add "
            f"{option} {place}, if you trust that file"
        )
    (function, given), (name, _) = _read(identify(typed)), _read(saved)
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
    return runs.records_rules if option == "--game" else runs.records_network


def _is_same(saved: str, typed: str) -> bool:
    """Whether a function has the name, and its file the digest, that a run has saved."""
    return _read(identify(typed)) == _read(saved)


def check_edited(run_dir: pathlib.Path, config: Config, typed: Typed, resume: bool = False) -> None:
    """Compares what is custom with what a run recorded of it, and notes edited files.

    Raises:
      ValueError: as `runs.check_rules` and `runs.check_network` do.
    """
    if typed.game is not None and is_own(config.game):
        runs.check_rules(run_dir, find_game(typed.game), resume)
        if not _is_same(config.game, typed.game):
            same = f"its rules are the same in {rules.NUM_GAMES} random games"
            _note_edited(run_dir.resolve(), typed.game, same)
    if typed.network is not None and isinstance(config.network, OwnNetworkConfig):
        if not _is_same(config.network.source, typed.network):
            game, network = _make(config, typed)
            runs.check_network(run_dir, game, cast(Network, network))
            same = "its network computes the same"
            _note_edited(run_dir.resolve(), typed.network, same)


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


def name_run(run_dir: pathlib.Path, config: Config, typed: Typed) -> str:
    """Returns the options by which a program takes a run, as one types them in a shell."""
    words = ["--run-dir", str(run_dir)]
    if is_own(config.game):
        words += ["--game", typed.game or config.game.partition("#")[0]]
    if isinstance(config.network, OwnNetworkConfig):
        words += ["--network", typed.network or config.network.source.partition("#")[0]]
    return shlex.join(words)


def open_run(typed: Typed) -> tuple[pathlib.Path, Player]:
    """Returns the folder of the run that was typed, or else of the newest, and its player.

    Raises:
      ValueError: if there is no run, or as `load_player` does.
      runs.CheckpointError: as `azjax.load` does.
    """
    run_dir = choose_run(typed).run_dir
    if run_dir is None:
        of_game = f" of {typed.game}" if typed.game else ""
        raise ValueError(
            f"there is no trained player{of_game} in runs/: train one by python -m "
            "experiments.train, or say where one is by --run-dir"
        )
    return run_dir, load_player(run_dir, typed)


def make_parts(config: Config, typed: Typed) -> Parts:
    """Builds the parts of a run, with what was typed in the place of names.

    Raises:
      ValueError: if a file cannot be imported, or makes something else.
    """
    return configs.make_parts(config, *_make(config, typed))


def load_player(run_dir: pathlib.Path, typed: Typed, iteration: int | None = None) -> Player:
    """Loads a run's player, as `azjax.load` does, and says so if newer checkpoints are damaged.

    Raises:
      ValueError: if the run has a game or network of its own, and another or none was typed.
      runs.CheckpointError: as `azjax.load` does.
    """
    config = check_run(run_dir, typed)
    check_edited(run_dir, config, typed)
    player = load(run_dir, iteration, *_make(config, typed))
    for sentence in player.skipped:
        console.note(f"{sentence}; an older one is used")
    return player


def find_game(typed: str) -> Game:
    """Returns a game by its name, or from somebody's file; every time the same object.

    Raises:
      ValueError: if there is none.
    """
    check_function(typed)
    return _find_own_game(identify(typed)) if is_own(typed) else games.make(typed)


@functools.cache
def _find_own_game(identified: str) -> Game:
    return _call(identified.partition("#")[0], Game)


def _make(config: Config, typed: Typed) -> tuple[Game, Network | None]:
    """The game of a run, and its network if that is its own."""
    game = find_game(typed.game or config.game)
    if typed.network is None or not isinstance(config.network, OwnNetworkConfig):
        return game, None
    return game, _call(typed.network, Network, game)


def _call(typed: str, kind: type, *arguments: Any) -> Any:
    """Imports a function that was typed, calls it, and checks what it returns."""
    place, _, name = typed.partition(":")
    function = getattr(_import(place), name, None)
    listed = _list_functions(_find(place), len(arguments))
    if not callable(function):
        names = (name for name in vars(_import(place)) if not name.startswith("_"))
        raise ValueError(
            f"{place} has no function {name!r}: name one that it has{listed}"
            f"{did_you_mean(name, names)}"
        )
    _check_call(typed, function, arguments, listed)
    try:
        found = function(*arguments)
    except ValueError:  # Such as the library's, which says what to do.
        raise
    except Exception as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)[1:2]]
        raise ValueError(
            f"{typed} fails ({type(error).__name__}: {error}, from line {lines[0]}): mend it first"
        ) from error
    if not isinstance(found, kind):
        raise ValueError(
            f"{typed} returns {type(found).__name__}: return a {kind.__name__}, or name another "
            f"function{listed}"
        )
    return found


def _check_call(typed: str, function: Any, arguments: tuple, listed: str) -> None:
    """Refuses a function that cannot be called with such arguments."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        wanted = "the game alone" if arguments else "no argument"
        raise ValueError(
            f"{typed} cannot be called with {wanted} ({error}): name a function that can{listed}"
        ) from error
    except ValueError:  # Some builtins have no signature.
        return


def _import(place: str) -> Any:
    path = _find(place)
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        spec: Any = importlib.util.spec_from_file_location(f"azjax_own_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # Dataclasses look their module up.
        spec.loader.exec_module(module)
        return module
    except Exception as error:  # Whatever somebody's file does when it is imported.
        raise ValueError(
            f"{place} cannot be imported ({type(error).__name__}: {error}): mend it first"
        ) from error


def _find(place: str) -> pathlib.Path:
    """The file of `path/to/file.py` or `package.module`."""
    path = pathlib.Path(place)
    if not place.endswith(".py"):
        try:
            spec = importlib.util.find_spec(place)
        except (ImportError, ValueError):
            spec = None
        path = pathlib.Path((spec and spec.origin) or "")
    if not path.is_file():
        others = (str(other) for other in path.parent.glob("*.py"))
        meant = did_you_mean(place, others if place.endswith(".py") else games.available())
        raise ValueError(
            f"there is no {place}: give FILE.py:FUNCTION or package.module:FUNCTION{meant}"
        )
    return path
