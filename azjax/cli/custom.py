"""Opens the run of a program, with custom games, networks and parts: `path/to/file.py:make`.

Only code that the command line names is imported, never code that only the run directory names. A
note is printed if the file was edited since training. A file can import the files next to it.
"""

import contextlib
import dataclasses
import functools
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
                raise ValueError(f"name one player, {self.player} or --run-dir {self.run_dir}")
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


def check_run(run_dir: pathlib.Path, typed: RunOptions) -> Config:
    """Reads a run's settings, and checks that its custom code was named.

    A custom network may also be named for another run, since a match can have several.
    """
    config = read_settings(run_dir)
    recorded = _recorded(config)
    for option, saved in recorded.items():
        file, _, function = saved.partition(":")
        named = getattr(typed, option) or ""
        if file == IN_PYTHON:
            call = f"azjax.load({str(run_dir)!r}, {option}=...)"
            raise ValueError(f"the {option} of {run_dir} was made in Python: use {call} there")
        if not is_custom(named):
            raise ValueError(
                f"{run_dir} has custom code, and azjax imports only code that you name: add "
                f"--{option} {shlex.quote(saved.rpartition('#')[0])}, if you trust that file"
            )
        if identify(named).partition(":")[2] != function:  # The file may have moved.
            _note_once(
                f"{named} was edited since {run_dir.resolve().name} was trained, or is another "
                "function: check that it computes the same"
            )
    if typed.parts is not None and not config.parts:
        raise ValueError(f"{run_dir} was trained without --parts: leave it out")
    if "game" not in recorded and typed.game not in (None, config.game):
        raise ValueError(
            f"{run_dir} plays {config.game}, not {typed.game}: use a player of {typed.game}"
        )
    return config


_note_once = functools.cache(write_note)  # A match can have several players of a run.


def record(config: Config, typed: RunOptions) -> Config:
    """Adds what the command line names to the settings of a new run; code with its digest."""
    if typed.parts is not None:
        game = load_code(typed.parts, Parts).game.name
        return dataclasses.replace(config, parts=identify(typed.parts), game=game)
    if typed.network is not None:
        network = CustomNetworkConfig(source=identify(typed.network))
        config = dataclasses.replace(config, network=network)
    return dataclasses.replace(config, game=identify(typed.game or config.game))


def choose_run(typed: RunOptions) -> pathlib.Path | None:
    """Returns the run that is named, or the newest in runs/ with this game and code, if any."""
    for path in () if typed.run_dir else runs.find_runs():
        with contextlib.suppress(ValueError, runs.CheckpointError):
            config = runs.read_config(path)
            if record(config, typed) == config:
                check_run(path, typed)
                write_note(f"run: {path}, the newest (--run-dir names another)")
                return path
    return typed.run_dir


def name_run(run_dir: pathlib.Path, config: Config) -> str:
    """Returns the options with which a program opens a run, quoted for a shell."""
    words = ["--run-dir", str(run_dir)]
    for option, saved in _recorded(config).items():
        words += [f"--{option}", saved.rpartition("#")[0]]
    return shlex.join(words)


def find_run(typed: RunOptions) -> pathlib.Path:
    """Returns the folder of the run that is named, or of the newest."""
    run_dir = choose_run(typed)
    if run_dir is None:
        raise ValueError(
            f"runs/ has no such player: train one with {command('azjax', 'train')}, or name its "
            "folder with --run-dir"
        )
    return run_dir


def open_player(typed: RunOptions) -> tuple[pathlib.Path, Player]:
    """Returns the folder and the player of the run that is named, or of the newest."""
    run_dir = find_run(typed)
    with console.busy(f"loading {run_dir}…"):
        return run_dir, load_player(run_dir, typed)


def load_player(run_dir: pathlib.Path, typed: RunOptions, iteration: int | None = None) -> Player:
    """Loads the player of a run; see `azjax.load`."""
    return load(run_dir, iteration, parts=load_parts(run_dir, typed))


def load_parts(run_dir: pathlib.Path, typed: RunOptions) -> Parts | None:
    """Builds the parts of a run; None for a player that comes with azjax, which has its own."""
    config = check_run(run_dir, typed)
    return None if is_pretrained(run_dir) else parts_for(config, typed)


def parts_for(config: Config, typed: RunOptions) -> Parts:
    """Builds the parts of a run, with the custom ones that the command line names."""
    if typed.parts is not None:
        return load_code(typed.parts, Parts)
    game, network = find_game(typed.game or config.game), None
    if typed.network is not None and isinstance(config.network, CustomNetworkConfig):
        network = load_code(typed.network, Network, game)
    return make_parts(config, game, network)


# Functions: `path/to/file.py:make`.


def identify(name: str) -> str:
    """Returns what the settings store: a name, or a function with the digest of its file."""
    return f"{name}#{digest_file(_find(name))}" if is_custom(name) else name


def find_game(name: str) -> Game:
    """Returns a game by its name, or a custom one."""
    return load_code(name, Game) if is_custom(name) else games.make(name)


@functools.cache  # Like the games of `games.make`, a custom one must equal itself.
def load_code(spec: str, kind: type, *arguments: Any) -> Any:
    """Imports and calls the function `FILE.py:FUNCTION`, which must return a `kind`, once."""
    path = _find(spec)
    try:
        made = getattr(_import(path), spec.partition(":")[2])(*arguments)
    except ValueError as error:  # Often one of azjax, such as an invalid setting.
        raise ValueError(f"{spec}: {error}") from error
    except Exception as error:
        raise ValueError(f"{spec} fails ({type(error).__name__}: {error}): fix it first") from error
    if not isinstance(made, kind):
        wanted = f"return a {kind.__name__}, or name another function"
        raise ValueError(f"{spec} returns {type(made).__name__}: {wanted}")
    return made


def _find(spec: str) -> pathlib.Path:
    path = pathlib.Path(spec.partition(":")[0])
    if path.suffix != ".py" or not path.is_file():
        meant = did_you_mean(path, games.available())
        raise ValueError(
            f"{spec}: '{path}' is neither a Python file nor a game of several sizes: give "
            f"FILE.py:FUNCTION{meant}"
        )
    return path.resolve()


def _import(path: pathlib.Path) -> Any:
    """Imports a file, which can import the files next to it."""
    sys.path.insert(0, str(path.parent))
    name = f"azjax_custom_{path}".replace(".", "_")  # Files of two folders may share a name.
    spec: Any = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Dataclasses look up their module there.
    spec.loader.exec_module(module)
    return module
