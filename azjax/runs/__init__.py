"""Runs: their settings, their directories and checkpoints, and the players loaded from them."""

from azjax.runs import presets
from azjax.runs.config import Config, make_parts
from azjax.runs.directory import (
    FORMAT,
    CheckpointError,
    check_free,
    create_run,
    find_runs,
    iterations,
    read_config,
    read_run,
)
from azjax.runs.player import Player, load

__all__ = ["FORMAT", "CheckpointError", "Config", "Player", "check_free"]
__all__ += ["create_run", "find_runs", "iterations", "load", "make_parts", "presets"]
__all__ += ["read_config", "read_run"]
