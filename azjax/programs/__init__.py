"""Training in a run directory as one function, with verification, checkpoints and a report.

The package is above `viz`, because a run draws pictures, and below `cli`, which adds options.
"""

from azjax.programs.prepare import open_run
from azjax.programs.run import Run
from azjax.programs.training import train

__all__ = ["Run", "open_run", "train"]
