"""Opens the run of a program, with custom games, networks and parts: `path/to/file.py:make`.

Only code that the command line names is imported, never code that only the run directory names. A
note is printed if the file was edited since training. A file can import the files next to it.
"""

import dataclasses
import functools
import hashlib
import importlib
import importlib.util
import pathlib
import shlex
import sys
from typing import Annotated, Any

from azjax import games, runs
from azjax._commands import command, write_note
from azjax._settings import did_you_mean
from azjax.cli import console
from azjax.cli.parsing import Place
from azjax.games.base import Game
from azjax.networks import Network
from azjax.runs.config import IN_PYTHON, Config, CustomNetworkConfig, is_custom, make_parts
from azjax.runs.player import Player, check_name, is_pretrained, load, read_settings
from azjax.training.parts import Parts

_WANTED = "give FILE.py:FUNCTION"


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


# Runs.


def _recorded(config: Config) -> dict[str, str]:
    """Returns the custom code of a run, `FILE.py:FUNCTION#DIGEST`, by the option that names it."""
    if config.parts:
        return {"parts": config.parts}
    sources = {"game": config.game, "network": getattr(config.network, "source", "")}
    return {option: source for option, source in sources.items() if is_custom(source)}


def check_run(run_dir: pathlib.Path, typed: Typed, alone: bool = True) -> Config:
    """Reads a run's settings, and checks that exactly its custom code was named.

    Args:
      run_dir: the run directory, or the name of a player that comes with azjax.
      typed: what the command line names.
      alone: whether a custom network must be that of this run, and not of another one in a match.
    """
    config = read_settings(run_dir)
    recorded = _recorded(config)
    for option, saved in recorded.items():
        named = getattr(typed, option)
        if saved.partition(":")[0] == IN_PYTHON:
            raise ValueError(
                f"{run_dir} was trained from Python, with {option} made there: load it in Python, "
                f"with azjax.load({str(run_dir)!r}, {option}=...)"
            )
        if named is None or not is_custom(named):
            raise ValueError(
                f"{run_dir} has custom code, and azjax imports only code that you name: add "
                f"--{option} {shlex.quote(saved.rpartition('#')[0])}, if you trust that file"
            )
    for option in ("parts", "network") if alone else ("parts",):
        if option not in recorded and getattr(typed, option) is not None:
            raise ValueError(f"{run_dir} was trained without --{option}: leave it out")
    if "game" not in recorded and typed.game not in (None, config.game):
        raise ValueError(
            f"{run_dir} plays {config.game}, not {typed.game}: use a player of {typed.game}"
        )
    return config


def record(config: Config, typed: Typed) -> Config:
    """Adds what the command line names to the settings of a new run; code with its digest."""
    changes: dict[str, Any] = {}
    if typed.game is not None:
        changes["game"] = identify(typed.game)
    if typed.parts is not None:
        changes["parts"] = identify(typed.parts)
        changes["game"] = load_code(typed.parts, Parts).game.name
    if typed.network is not None:
        changes["network"] = CustomNetworkConfig(source=identify(typed.network))
    return dataclasses.replace(config, **changes)


def note_edited(run_dir: pathlib.Path, config: Config, typed: Typed) -> None:
    """Prints a note for each custom function that is not the one of the training."""
    for option, saved in _recorded(config).items():
        named = getattr(
            typed, option
        )  # The file may have moved, with the same function and digest.
        if named and saved.partition(":")[2] != identify(named).partition(":")[2]:
            _note_once(
                f"{named} was edited since {run_dir.resolve().name} was trained: check that it "
                "computes the same"
            )


_note_once = functools.cache(write_note)


def name_player(typed: Typed, player: str | None) -> Typed:
    """Adds the player that the command line names without an option; raises a ValueError."""
    if player is None:
        return typed
    if typed.run_dir is not None:
        raise ValueError(f"{player} and --run-dir {typed.run_dir} name two players: leave one out")
    try:
        check_name(player)
    except ValueError as error:
        raise ValueError(f"{error}; or name a run with --run-dir") from None
    return dataclasses.replace(typed, run_dir=pathlib.Path(player))


def choose_run(typed: Typed) -> Typed:
    """Adds the newest matching run in runs/, if there is one and the command line names no run."""
    for path in () if typed.run_dir else runs.find_runs():
        try:
            recorded = _recorded(check_run(path, typed))
        except (ValueError, runs.CheckpointError):  # It has another game, network or parts.
            continue
        if all(_is_same(saved, getattr(typed, name)) for name, saved in recorded.items()):
            write_note(f"run: {path}, the newest (--run-dir names another)")
            return dataclasses.replace(typed, run_dir=path)
    return typed


def _is_same(saved: str, named: str) -> bool:
    """Returns whether recorded code has this name in the current folder, even if it was edited."""
    return pathlib.Path(saved.rpartition("#")[0]).resolve() == pathlib.Path(named).resolve()


def name_run(run_dir: pathlib.Path, config: Config, typed: Typed = NOTHING) -> str:
    """Returns the options with which a program opens a run, quoted for a shell.

    For custom code that `typed` does not name, they name the file that the run recorded.
    """
    words = ["--run-dir", str(run_dir)]
    for option, saved in _recorded(config).items():
        words += [f"--{option}", getattr(typed, option) or saved.rpartition("#")[0]]
    return shlex.join(words)


def find_run(typed: Typed) -> pathlib.Path:
    """Returns the folder of the run that is named, or of the newest."""
    run_dir = choose_run(typed).run_dir
    if run_dir is None:
        of = f" of {typed.game}" if typed.game else ""
        code = {f"--{name}": getattr(typed, name) for name in ("game", "network", "parts")}
        named = [word for pair in code.items() if pair[1] for word in pair]
        raise ValueError(
            f"runs/ has no trained player{of}: train one with "
            f"{command('azjax', 'train', *named)}, or name its folder with --run-dir"
        )
    return run_dir


def open_player(typed: Typed) -> tuple[pathlib.Path, Player]:
    """Returns the folder and the player of the run that is named, or of the newest."""
    run_dir = find_run(typed)
    check_run(run_dir, typed)
    with console.busy(f"loading {run_dir}…"):
        return run_dir, load_player(run_dir, typed)


def load_player(run_dir: pathlib.Path, typed: Typed, iteration: int | None = None) -> Player:
    """Loads the player of a run, of which a match may have several; see `azjax.load`."""
    config = check_run(run_dir, typed, alone=False)
    if is_pretrained(run_dir):
        return load(run_dir, iteration)
    note_edited(run_dir, config, typed)
    return load(run_dir, iteration, **_make(config, typed))


def parts_for(config: Config, typed: Typed) -> Parts:
    """Builds the parts of a run, with the custom ones that the command line names."""
    made = _make(config, typed)
    return made["parts"] if "parts" in made else make_parts(config, **made)


def _make(config: Config, typed: Typed) -> dict[str, Any]:
    """Returns the parts of a run if they are custom; or its game, and its network if custom."""
    if typed.parts is not None:
        return {"parts": load_code(typed.parts, Parts)}
    game, network = find_game(typed.game or config.game), None
    if typed.network is not None and isinstance(config.network, CustomNetworkConfig):
        network = load_code(typed.network, Network, game)
    return {"game": game, "network": network}


# Functions: `path/to/file.py:make`.


def is_code(name: str) -> bool:
    """Returns whether a name of the command line is a function, even an incomplete one."""
    return is_custom(name) or name.endswith(".py")


def identify(name: str) -> str:
    """Returns what the settings store: a name, or a function with the digest of its file."""
    if not is_code(name):
        return name
    path = _find(name.partition(":")[0])
    return f"{name}#{hashlib.sha256(path.read_bytes()).hexdigest()}"


def find_game(typed: str) -> Game:
    """Returns a game by its name, or a custom one."""
    return load_code(typed, Game) if is_code(typed) else games.make(typed)


def load_code(spec: str, kind: type, *arguments: Any) -> Any:
    """Imports and calls the function `FILE.py:FUNCTION`, which must return a `kind`, once."""
    return _call(spec, _find(spec.partition(":")[0]).resolve(), kind, *arguments)


@functools.cache
def _call(spec: str, path: pathlib.Path, kind: type, *arguments: Any) -> Any:
    place, _, name = spec.partition(":")
    try:
        module = _import(path)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"{place} cannot be imported ({reason}): fix it first") from error
    if not callable(function := getattr(module, name, None)):
        meant = did_you_mean(name, vars(module))
        raise ValueError(f"{place} has no function {name!r}: {_WANTED}{meant}")
    try:
        made = function(*arguments)
    except ValueError:  # An error of azjax, such as an invalid setting.
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"{spec} fails ({reason}): fix it first") from error
    if not isinstance(made, kind):
        wanted = f"return a {kind.__name__}, or name another function"
        raise ValueError(f"{spec} returns {type(made).__name__}: {wanted}")
    return made


def _find(place: str) -> pathlib.Path:
    path = pathlib.Path(place)
    if place in games.available():
        raise ValueError(f"{place} has one size: leave the colon and what follows it out")
    if path.suffix != ".py" or not path.is_file():
        others = [*map(str, path.parent.glob("*.py")), *games.available()]
        raise ValueError(f"{place!r} does not exist: {_WANTED}{did_you_mean(place, others)}")
    return path


def _import(path: pathlib.Path) -> Any:
    """Imports a file, which can import the files next to it."""
    sys.path[:] = [str(path.parent), *(entry for entry in sys.path if entry != str(path.parent))]
    importlib.invalidate_caches()  # The files next to it may be new.
    name = f"azjax_custom_{path}".replace(".", "_")
    spec: Any = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Dataclasses look up their module there.
    spec.loader.exec_module(module)
    return module
