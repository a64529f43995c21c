"""Whole programs as functions: training in a run directory, with everything that belongs to it."""

from azjax.programs.prepare import open_run
from azjax.programs.run import Run
from azjax.programs.training import train
from azjax.programs.verifying import repair, verify

__all__ = ["Run", "open_run", "repair", "train", "verify"]
