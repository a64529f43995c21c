"""Opens the run of a program, with custom games, networks and parts: `path/to/file.py:make`.

Only code that the command line names is imported, never code that only the run directory names. A
note is printed if the file was edited since training. A file can import the files next to it.
"""

import contextlib
import dataclasses
import functools
import importlib
import importlib.util
import pathlib
import shlex
import sys
from typing import Annotated, Any

from azjax import games, runs
from azjax._commands import command, write_note
from azjax._files import digest_file
from azjax._settings import did_you_mean
from azjax.cli import console
from azjax.cli.parsing import Place
from azjax.games.base import Game
from azjax.networks import Network
from azjax.runs.config import IN_PYTHON, Config, CustomNetworkConfig, is_custom, make_parts
from azjax.runs.player import Player, is_pretrained, load, read_settings
from azjax.training.parts import Parts


@dataclasses.dataclass(frozen=True)
class RunOptions:
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


@dataclasses.dataclass(frozen=True)
class PlayerOptions(RunOptions):
    """The same for one trained player, which can also be named without an option."""

    player: Annotated[str | None, Place.POSITIONAL] = None
    """A player that comes with azjax, such as connect_four, or the folder of a run."""

    def __post_init__(self):
        if self.player is not None:
            if self.run_dir is not None:
                raise ValueError(
                    f"{self.player} and --run-dir {self.run_dir} name two players: leave one out"
                )
            object.__setattr__(self, "run_dir", pathlib.Path(self.player))
            object.__setattr__(self, "player", None)


OfRun = Annotated[RunOptions, Place.FLAT]  # Its fields are options of the program.
OfPlayer = Annotated[PlayerOptions, Place.FLAT]


# Runs.


def _recorded(config: Config) -> dict[str, str]:
    """Returns the custom code of a run, `FILE.py:FUNCTION#DIGEST`, by the option that names it."""
    if config.parts:
        return {"parts": config.parts}
    sources = {"game": config.game, "network": getattr(config.network, "source", "")}
    return {option: source for option, source in sources.items() if is_custom(source)}


def _named(typed: RunOptions) -> dict[str, str]:
    """Returns the game and the custom code that the command line names, by option."""
    options = ("game", "network", "parts")
    return {name: getattr(typed, name) for name in options if getattr(typed, name) is not None}


def check_run(run_dir: pathlib.Path, typed: RunOptions, alone: bool = True) -> Config:
    """Reads a run's settings, and checks that exactly its custom code was named.

    If not `alone`, a custom network may be that of another run in a match.
    """
    config, named = read_settings(run_dir), _named(typed)
    recorded = _recorded(config)
    for option, saved in recorded.items():
        if saved.partition(":")[0] == IN_PYTHON:
            raise ValueError(
                f"{run_dir} was trained from Python, with {option} made there: load it in Python, "
                f"with azjax.load({str(run_dir)!r}, {option}=...)"
            )
        if not is_custom(named.get(option, "")):
            raise ValueError(
                f"{run_dir} has custom code, and azjax imports only code that you name: add "
                f"--{option} {shlex.quote(saved.rpartition('#')[0])}, if you trust that file"
            )
    for option in ("parts", "network") if alone else ("parts",):
        if option in named and option not in recorded:
            raise ValueError(f"{run_dir} was trained without --{option}: leave it out")
    if "game" not in recorded and typed.game not in (None, config.game):
        raise ValueError(
            f"{run_dir} plays {config.game}, not {typed.game}: use a player of {typed.game}"
        )
    for option, saved in recorded.items():  # The file may have moved.
        if saved.partition(":")[2] != identify(named[option]).partition(":")[2]:
            _note_once(
                f"{named[option]} was edited since {run_dir.resolve().name} was trained: check "
                "that it computes the same"
            )
    return config


_note_once = functools.cache(write_note)  # A match can have several players of a run.


def record(config: Config, typed: RunOptions) -> Config:
    """Adds what the command line names to the settings of a new run; code with its digest."""
    changes: dict[str, Any] = {option: identify(name) for option, name in _named(typed).items()}
    if typed.network is not None:
        changes["network"] = CustomNetworkConfig(source=changes["network"])
    if typed.parts is not None:
        changes["game"] = load_code(typed.parts, Parts).game.name
    return dataclasses.replace(config, **changes)


def choose_run(typed: RunOptions) -> pathlib.Path | None:
    """Returns the run that is named, or the newest matching one in runs/, if there is one."""
    for path in () if typed.run_dir else runs.find_runs():
        with contextlib.suppress(ValueError, runs.CheckpointError):
            recorded, named = _recorded(runs.read_config(path)), _named(typed)
            files = [
                (saved.rpartition("#")[0], named.get(name, "")) for name, saved in recorded.items()
            ]
            if all(pathlib.Path(a).resolve() == pathlib.Path(b).resolve() for a, b in files):
                check_run(path, typed)
                write_note(f"run: {path}, the newest (--run-dir names another)")
                return path
    return typed.run_dir


def name_run(run_dir: pathlib.Path, config: Config, typed: RunOptions | None = None) -> str:
    """Returns the options with which a program opens a run, quoted for a shell.

    For custom code that `typed` does not name, they name the file that the run recorded.
    """
    words = ["--run-dir", str(run_dir)]
    for option, saved in _recorded(config).items():
        words += [f"--{option}", getattr(typed, option, None) or saved.rpartition("#")[0]]
    return shlex.join(words)


def find_run(typed: RunOptions) -> pathlib.Path:
    """Returns the folder of the run that is named, or of the newest."""
    run_dir = choose_run(typed)
    if run_dir is None:
        words = [word for option, name in _named(typed).items() for word in (f"--{option}", name)]
        train = command("azjax", "train", *words)
        raise ValueError(
            f"runs/ has no trained player: train one with {train}, or name its folder with "
            "--run-dir"
        )
    return run_dir


def open_player(typed: RunOptions) -> tuple[pathlib.Path, Player]:
    """Returns the folder and the player of the run that is named, or of the newest."""
    run_dir = find_run(typed)
    with console.busy(f"loading {run_dir}…"):
        return run_dir, load_player(run_dir, typed, alone=True)


def load_player(
    run_dir: pathlib.Path, typed: RunOptions, iteration: int | None = None, alone: bool = False
) -> Player:
    """Loads the player of a run, of which a match may have several; see `azjax.load`."""
    config = check_run(run_dir, typed, alone)
    made = {} if is_pretrained(run_dir) else _make(config, typed)
    return load(run_dir, iteration, **made)


def parts_for(config: Config, typed: RunOptions) -> Parts:
    """Builds the parts of a run, with the custom ones that the command line names."""
    made = _make(config, typed)
    return made["parts"] if "parts" in made else make_parts(config, **made)


def _make(config: Config, typed: RunOptions) -> dict[str, Any]:
    """Returns the parts of a run if they are custom; or its game, and its network if custom."""
    if typed.parts is not None:
        return {"parts": load_code(typed.parts, Parts)}
    made = {"game": find_game(typed.game or config.game)}
    if typed.network is not None and isinstance(config.network, CustomNetworkConfig):
        made["network"] = load_code(typed.network, Network, made["game"])
    return made


# Functions: `path/to/file.py:make`.


def identify(name: str) -> str:
    """Returns what the settings store: a name, or a function with the digest of its file."""
    if not is_custom(name):
        return name
    return f"{name}#{digest_file(_find(name.partition(':')[0]))}"


def find_game(name: str) -> Game:
    """Returns a game by its name, or a custom one."""
    return load_code(name, Game) if is_custom(name) else games.make(name)


def load_code(spec: str, kind: type, *arguments: Any) -> Any:
    """Imports and calls the function `FILE.py:FUNCTION`, which must return a `kind`, once."""
    return _call(_find(spec.partition(":")[0]).resolve(), spec, kind, *arguments)


@functools.cache  # Like the games of `games.make`, a custom one must equal itself.
def _call(path: pathlib.Path, spec: str, kind: type, *arguments: Any) -> Any:
    place, _, name = spec.partition(":")
    try:
        module = _import(path)
        if not callable(function := getattr(module, name, None)):
            meant = did_you_mean(name, vars(module))
            raise ValueError(f"{place} has no function {name!r}: give FILE.py:FUNCTION{meant}")
        made = function(*arguments)
    except ValueError:  # An error of azjax, such as an invalid setting.
        raise
    except Exception as error:
        raise ValueError(f"{spec} fails ({type(error).__name__}: {error}): fix it first") from error
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
        meant = did_you_mean(place, others)
        raise ValueError(f"{place!r} does not exist: give FILE.py:FUNCTION{meant}")
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
