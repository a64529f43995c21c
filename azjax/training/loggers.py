"""Callbacks that log the metrics of every iteration to TensorBoard or Weights & Biases."""

import pathlib
import re
from collections.abc import Sequence
from typing import Any

from azjax._commands import check_installed
from azjax._files import Path
from azjax.training.loop import Callback, Loop


def make_loggers(
    names: Sequence[str], run_dir: pathlib.Path, settings: dict[str, Any]
) -> list[Callback]:
    """Makes the loggers of a plan; raises a ValueError if a package is missing."""
    makers = {
        "tensorboard": lambda: TensorBoard(run_dir / "tensorboard"),
        "wandb": lambda: WeightsAndBiases(dir=str(run_dir), name=run_dir.name, config=settings),
    }
    return [makers[name]() for name in names]


def _scalars(loop: Loop) -> dict[str, float]:
    """Returns all metrics of an iteration that are not None, except `iteration`."""
    metrics = loop.record.as_dict().items()
    return {name: value for name, value in metrics if value is not None and name != "iteration"}


class TensorBoard(Callback):
    """Writes every metric as a TensorBoard scalar to a folder, with the package tensorboardX.

    A resumed run replaces the points after its checkpoint.
    """

    def __init__(self, folder: Path):  # noqa: D107
        check_installed("tensorboardX", "TensorBoard")
        self._folder, self._writer = pathlib.Path(folder), None

    def on_start(self, loop: Loop) -> None:
        """Opens the event file."""
        from tensorboardX import SummaryWriter  # An optional package that is slow to import.

        # TensorBoard drops the points of earlier files from this step on.
        self._writer: Any = SummaryWriter(str(self._folder), purge_step=loop.iteration + 1)

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
    """Logs every metric to Weights & Biases, with the package wandb.

    The arguments are those of `wandb.init`, such as `mode="offline"`. A resumed run continues its
    W&B run if `dir` is given: the folder in which W&B keeps its files.
    """

    def __init__(self, project: str = "azjax", **settings: Any):  # noqa: D107
        check_installed("wandb", "Weights & Biases")
        self._settings: dict[str, Any] = {"project": project, **settings}
        self._run: Any = None

    def on_start(self, loop: Loop) -> None:
        """Starts a W&B run, or continues the newest one with files in `dir` after a resume."""
        import wandb  # An optional package that is slow to import.
        from wandb import errors

        folder, known = self._settings.get("dir"), {}
        if folder is not None and loop.iteration:
            names = [path.name for path in pathlib.Path(folder).glob("wandb/*run-*")]
            found = [re.search(r"run-(\d{8}_\d{6})-(.+)$", name) for name in names]
            if found := [match for match in found if match]:
                known = {"id": max(found, key=lambda match: match[1])[2], "resume": "allow"}
        try:
            self._run = wandb.init(**known | self._settings)
        except (errors.Error, ValueError) as error:  # Such as a mode that does not exist.
            said = str(error).partition("\n")[0].rstrip(".")
            raise ConnectionError(
                f"Weights & Biases did not start ({said}): call `wandb login`, or resume the run "
                "with the environment variable WANDB_MODE=offline, or without this logger"
            ) from error

    def on_iteration(self, loop: Loop) -> None:
        """Logs the metrics, with the iteration as the step."""
        if loop.iteration >= self._run.step:  # W&B rejects steps that it has already.
            self._run.log(_scalars(loop), step=loop.iteration)

    def close(self) -> None:
        """Finishes the W&B run."""
        if self._run is not None:
            self._run.finish()
