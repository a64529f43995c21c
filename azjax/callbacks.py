"""All training callbacks in one namespace."""

from azjax.proof.callbacks import Certification, LabelledEvaluation, Verification
from azjax.runs.callbacks import Checkpoints, Interrupts, Sink
from azjax.runs.strength import Strength
from azjax.training.loggers import TensorBoard, WeightsAndBiases
from azjax.training.loop import Callback
from azjax.viz.callbacks import Report, Snapshots

__all__ = [
    "Callback",
    "Certification",
    "Checkpoints",
    "Interrupts",
    "LabelledEvaluation",
    "Report",
    "Sink",
    "Snapshots",
    "Strength",
    "TensorBoard",
    "Verification",
    "WeightsAndBiases",
]
