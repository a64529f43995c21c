"""Loading players."""

import os

from azjax._files import Path
from azjax.games.base import Game
from azjax.networks import Network
from azjax.runs import behavior, checkpoint, directory
from azjax.runs.config import Config, make_parts
from azjax.runs.player import Player
from azjax.runs.pretrained import load_pretrained, names, read_pretrained_config
from azjax.training.parts import Parts


def is_pretrained(run_dir: Path) -> bool:
    """Returns whether a path is the name of a player that comes with azjax, and not a folder."""
    return str(run_dir) in names() and not os.path.isdir(run_dir)


def read_config(run_dir: Path) -> Config:
    """Returns the settings of a run, or of a player that comes with azjax.

    Raises:
      ValueError: if the file of a player that comes with azjax is damaged.
      CheckpointError: if the folder is not a run directory.
    """
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
      game: the custom game of the run, if any.
      network: the custom network of the run, if any.
      parts: the custom parts of the run, if any; they include game and network.

    Raises:
      ValueError: if a custom part is missing, the rules or the network differ from those that
        the run recorded, or the file of a player that comes with azjax is damaged.
      CheckpointError: if the run or the checkpoint does not exist, or is damaged. An older
        checkpoint never takes the place of a damaged one.
    """
    if is_pretrained(run_dir):
        return load_pretrained(str(run_dir))
    config = directory.read_config(run_dir)
    if parts is not None:
        game, network = parts.game, parts.network
    if game is not None:
        behavior.check_rules(run_dir, game)
    if parts is None:
        parts = make_parts(config, game, network)
    else:
        behavior.check_network(run_dir, parts.game, parts.network)
    ema_params, iteration = checkpoint.restore_player(run_dir, parts.network, iteration)
    return Player(parts, parts.network.fold(ema_params), iteration, run_dir)
