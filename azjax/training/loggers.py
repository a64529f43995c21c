"""Callbacks that log the metrics of every iteration to TensorBoard or Weights & Biases."""

import os
import pathlib
import re
from typing import Any

import jax

from azjax._commands import check_installed
from azjax._files import Path
from azjax.training.loop import Callback, Loop


def _scalars(loop: Loop) -> dict[str, float]:
    """Returns all metrics of an iteration that are not None, except `iteration`."""
    metrics = loop.record.as_dict().items()
    return {name: value for name, value in metrics if value is not None and name != "iteration"}


class TensorBoard(Callback):
    """Writes every metric as a TensorBoard scalar, with the package tensorboardX.

    A resumed run replaces the points after its checkpoint.
    """

    def __init__(self, folder: Path):
        """Takes the folder to write to.

        Raises:
          ValueError: if tensorboardX is not installed, or the folder cannot be written to.
        """
        check_installed("tensorboardX", "TensorBoard")
        self._folder, self._writer = pathlib.Path(folder), None
        there = next(p for p in (self._folder, *self._folder.absolute().parents) if p.exists())
        if not (there.is_dir() and os.access(there, os.W_OK)):
            raise ValueError(
                f"TensorBoard cannot write to {folder}, because {there} is not a folder with write "
                "permission: use another folder"
            )

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

    A resumed run continues its W&B run if `dir` is given: the folder in which W&B keeps its files.
    """

    def __init__(self, project: str = "azjax", **settings: Any):
        """Takes the project and other arguments of `wandb.init`, such as `mode="offline"`.

        Raises:
          ValueError: if wandb is not installed, or W&B does not accept the login.
        """
        check_installed("wandb", "Weights & Biases")
        self._settings: dict[str, Any] = {"project": project, **settings}
        self._run: Any = None
        if not jax.distributed.is_initialized() or jax.process_index() == 0:
            _check_login(settings.get("mode") or os.environ.get("WANDB_MODE", "online"))

    def on_start(self, loop: Loop) -> None:
        """Starts a W&B run, or continues that of a resumed run."""
        import wandb  # An optional package that is slow to import.
        from wandb import errors

        known = _find_id(self._settings.get("dir")) if loop.iteration else {}
        try:
            self._run = wandb.init(**known | self._settings)
        except errors.Error as error:
            raise ConnectionError(
                f"Weights & Biases did not start ({_first_line(error)}): resume the run with the "
                "environment variable WANDB_MODE=offline, or without this logger"
            ) from error

    def on_iteration(self, loop: Loop) -> None:
        """Logs the metrics, with the iteration as the step."""
        if loop.iteration >= self._run.step:  # W&B rejects steps that it has already.
            self._run.log(_scalars(loop), step=loop.iteration)

    def close(self) -> None:
        """Finishes the W&B run."""
        if self._run is not None:
            self._run.finish()


def _check_login(mode: str) -> None:
    """Raises a ValueError if W&B needs a login and does not accept it; prompts in a terminal."""
    import wandb
    from wandb import errors

    if mode in ("offline", "dryrun", "disabled"):
        return
    if mode not in ("online", "run", "shared"):
        raise ValueError(f"the mode of Weights & Biases is {mode}: use online, offline or disabled")
    try:
        wandb.login()
    except errors.Error as error:
        raise ValueError(
            f"Weights & Biases rejects the login ({_first_line(error)}): call `wandb login`, or "
            "set the environment variable WANDB_API_KEY, or WANDB_MODE=offline"
        ) from error


def _find_id(folder: Path | None) -> dict[str, Any]:
    """Returns the arguments that continue the newest W&B run with files in a folder, if any."""
    names = [] if folder is None else [p.name for p in pathlib.Path(folder).glob("wandb/*run-*")]
    found = [match for name in names if (match := re.search(r"run-(\d{8}_\d{6})-(.+)$", name))]
    if not found:
        return {}
    return {"id": max(found, key=lambda match: match[1])[2], "resume": "allow"}


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")
