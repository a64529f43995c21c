"""Callbacks that log the metrics of every iteration to TensorBoard or Weights & Biases."""

import importlib.util
from typing import Any

from azjax._commands import command
from azjax._files import Path
from azjax.training.loop import Callback, Loop


def check_installed(package: str, needed_by: str) -> None:
    """Raises a ValueError, with the install command, if a package is missing."""
    if importlib.util.find_spec(package) is None:
        install = command("pip", "install", package)
        raise ValueError(f"{needed_by} needs the package {package}: install it with {install}")


def _scalars(loop: Loop) -> dict[str, float]:
    """Returns all metrics of an iteration that are not None, except `iteration`."""
    metrics = loop.record.as_dict().items()
    return {name: value for name, value in metrics if value is not None and name != "iteration"}


class TensorBoard(Callback):
    """Writes every metric as a TensorBoard scalar, with the package tensorboardX."""

    def __init__(self, folder: Path):
        """Takes the folder to write to. Raises a ValueError without tensorboardX."""
        check_installed("tensorboardX", "TensorBoard")
        self._folder, self._writer = folder, None

    def on_start(self, loop: Loop) -> None:
        """Opens the event file."""
        from tensorboardX import SummaryWriter  # An optional package that is slow to import.

        self._writer: Any = SummaryWriter(str(self._folder))

    def on_iteration(self, loop: Loop) -> None:
        """Writes the metrics."""
        for name, value in _scalars(loop).items():
            self._writer.add_scalar(name, value, loop.iteration)
        self._writer.flush()

    def close(self) -> None:
        """Closes the file."""
        if self._writer is not None:
            self._writer.close()


class WeightsAndBiases(Callback):
    """Logs every metric to Weights & Biases, with the package wandb."""

    def __init__(self, project: str = "azjax", **settings: Any):
        """Takes the project and other arguments of `wandb.init`, such as `mode="offline"`.

        Raises:
          ValueError: if wandb is not installed.
        """
        check_installed("wandb", "Weights & Biases")
        self._settings, self._run = {"project": project, **settings}, None

    def on_start(self, loop: Loop) -> None:
        """Starts a W&B run."""
        import wandb  # An optional package that is slow to import.

        self._run: Any = wandb.init(**self._settings)

    def on_iteration(self, loop: Loop) -> None:
        """Logs the metrics, with the iteration as the step."""
        self._run.log(_scalars(loop), step=loop.iteration)

    def close(self) -> None:
        """Finishes the W&B run."""
        if self._run is not None:
            self._run.finish()
