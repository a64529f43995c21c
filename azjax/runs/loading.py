"""Loading players."""

import os

from azjax import games
from azjax._files import Path
from azjax._settings import Count, checked
from azjax.games.base import Game
from azjax.networks import Network
from azjax.networks.base import check_network
from azjax.runs import checkpoint, directory
from azjax.runs.config import Config, is_custom, make_parts
from azjax.runs.player import Player
from azjax.runs.pretrained import load_pretrained, names, read_pretrained_config
from azjax.training.parts import Parts

_KINDS = {"iteration": Count, "game": Game, "network": Network, "parts": Parts}


def is_pretrained(run_dir: Path) -> bool:
    """Returns whether a path is the name of a player that comes with azjax, and not a folder."""
    return not os.path.isdir(run_dir) and str(run_dir) in names()


def read_config(run_dir: Path) -> Config:
    """Returns the settings of a run, or of a player that comes with azjax."""
    if is_pretrained(run_dir):
        return read_pretrained_config(str(run_dir))
    return directory.read_config(run_dir)


def load(
    run_dir: Path,
    iteration: int | None = None,
    game: Game | None = None,
    network: Network | None = None,
    parts: Parts | None = None,
) -> Player:
    """Loads the player of a run's checkpoint, or one of the players that come with azjax.

    Args:
      run_dir: the run directory; or the name of a player that comes with azjax, one of
        `runs.pretrained.names()`, unless there is a folder of this name.
      iteration: iteration of the checkpoint; None: the newest one.
      game: the custom game of the run, if any. Its rules are not compared with those of training.
      network: the custom network of the run, if any.
      parts: the custom parts of the run, if any; they include game and network.

    Raises:
      ValueError: if a custom part is missing or does not fit, or an argument has no effect.
      CheckpointError: if the run or the checkpoint does not exist, is damaged, or has other arrays
        than the network. An older checkpoint never takes the place of a damaged one.
    """
    if not isinstance(run_dir, str | os.PathLike):
        raise ValueError(f"run_dir is {run_dir!r}: use the folder of a run, or a player's name")
    given = {"iteration": iteration, "game": game, "network": network, "parts": parts}
    given = {name: value for name, value in given.items() if value is not None}
    for name, value in given.items():
        checked(name, value, _KINDS[name])
    if is_pretrained(run_dir):
        for name in given:
            raise ValueError(f"{run_dir} comes with azjax and is complete: leave {name} out")
        return load_pretrained(str(run_dir))
    config = directory.read_config(run_dir)
    if parts is not None:
        for name in given.keys() & {"game", "network"}:
            raise ValueError(f"parts contains its own {name}: leave {name} out")
        game, network = parts.game, parts.network
    if game is not None and not config.parts and not is_custom(config.game):
        name = games.make(config.game).name
        if game.name != name:
            raise ValueError(
                f"{run_dir} is a run of {name}, not of {game.name}: leave the game out, or load a "
                "run of that game"
            )
    if parts is None:
        parts = make_parts(config, game, network)
    check_network(parts.game, parts.network)
    average, iteration = checkpoint.restore_player(run_dir, parts.network, iteration)
    return Player(parts, parts.network.fold(average), iteration, run_dir)
