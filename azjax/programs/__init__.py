"""Training in a run directory as one function, with verification, checkpoints and a report.

This package imports `viz`, because a run draws pictures. `cli` imports this package, and adds the
options of the command line.
"""

from azjax.programs.prepare import open_run
from azjax.programs.run import Run
from azjax.programs.training import train

__all__ = ["Run", "open_run", "train"]
