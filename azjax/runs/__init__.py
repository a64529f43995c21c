"""Runs: their settings, their directories and checkpoints, and the players loaded from them."""

from azjax.runs.directory import (
    FORMAT,
    CheckpointError,
    check_free,
    check_settings,
    checkpoints,
    create_run,
    find_runs,
    iterations,
    name_run,
    newest,
    read_config,
    read_settings,
)

__all__ = [
    "FORMAT",
    "CheckpointError",
    "check_free",
    "check_settings",
    "checkpoints",
    "create_run",
    "find_runs",
    "iterations",
    "name_run",
    "newest",
    "read_config",
    "read_settings",
]
