"""The callbacks of a run: records, displays, checkpoints, Ctrl-C, snapshots, loggers.

Those of other modules are imported here, so that all are in one namespace.
"""

import contextlib
import errno
import json
import pathlib
import re
import signal
from collections.abc import Callable
from typing import Any

import numpy as np

from azjax import _interrupts as interrupts
from azjax import _processes as processes
from azjax._commands import check_installed, write_note
from azjax._files import Path
from azjax.proof.callbacks import Certification, LabelledEvaluation, Verification
from azjax.runs import checkpoint
from azjax.runs.strength import Strength
from azjax.training import metrics
from azjax.training.loop import Callback, Loop
from azjax.training.metrics import Record
from azjax.viz import animation

__all__ = ["Callback", "Certification", "Checkpoints", "Interrupts", "LabelledEvaluation"]
__all__ += ["Printer", "Records", "Snapshots", "Strength", "TensorBoard", "Verification"]
__all__ += ["WeightsAndBiases"]


class Records(Callback):
    """Appends every record to a file, one JSON object per line."""

    def __init__(self, path: pathlib.Path):
        """Takes the path; records after the checkpoint that training starts from are dropped."""
        self._path, self._file = path, None

    def on_start(self, loop: Loop) -> None:
        self._file: Any = metrics.open_records(self._path, after=loop.iteration)

    def on_iteration(self, loop: Loop) -> None:
        self._file.write(json.dumps(loop.record.as_dict()) + "\n")
        self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class Printer(Callback):
    """Passes every record to a function that prints; training loses nothing if it cannot print.

    If the reader of its pipe has exited, training ends after this iteration, as after Ctrl-C. If
    its terminal is closed, training continues: SIGHUP ends it, unless the user has prevented that.
    """

    def __init__(self, show: Callable[[Record], None]):
        """Takes the function."""
        self._show = show

    def on_iteration(self, loop: Loop) -> None:
        try:
            self._show(loop.record)
        except OSError as error:
            interrupts.discard_output()
            if error.errno != errno.EIO:
                loop.interrupted, interrupts.now.signal = True, signal.SIGPIPE


class Checkpoints(Callback):
    """Saves a checkpoint every few iterations, and after the last one."""

    everywhere = True

    def __init__(self, run_dir: Path, every: int, keep: int, verifies_all: bool):
        """Keeps the newest ones and the best one; `verifies_all`: see `metrics.rank`."""
        self._run_dir, self._every, self._keep, self._all = run_dir, every, keep, verifies_all

    def on_iteration(self, loop: Loop) -> None:
        if loop.is_last or loop.iteration % self._every == 0:
            score = metrics.rank(loop.record, self._all)
            checkpoint.save(self._run_dir, loop.state, score, self._keep)
            loop.tell("on_checkpoint")


class Interrupts(Callback):
    """Ends training after the current iteration in all processes: on Ctrl-C, SIGTERM or SIGHUP."""

    everywhere = True

    def __init__(self):
        self._held = contextlib.ExitStack()

    def on_start(self, loop: Loop) -> None:
        self._request = self._held.enter_context(interrupts.Request())

    def on_iteration(self, loop: Loop) -> None:
        loop.interrupted = processes.any_of(loop.interrupted or self._request.made)

    def on_end(self, loop: Loop) -> None:
        self.close()

    def close(self) -> None:
        self._held.close()


class Snapshots(Callback):
    """Saves in which positions the network blunders, after every verification."""

    def __init__(self, verification: Verification, run_dir: Path):
        """Takes the verification, which must be called first."""
        self._verification, self._run_dir = verification, run_dir

    def on_start(self, loop: Loop) -> None:
        self.on_iteration(loop)

    def on_iteration(self, loop: Loop) -> None:
        verdict = self._verification.verdict
        if verdict is not None:
            is_blunder = np.asarray(verdict.is_blunder)
            try:
                animation.save_blunders(self._run_dir, loop.iteration, is_blunder)
            except OSError as error:  # Training does without a picture.
                said = f"the snapshot of iteration {loop.iteration} was not written"
                write_note(f"{said}: {error.strerror}")


class TensorBoard(Callback):
    """Writes every metric as a TensorBoard scalar to a folder, with the package tensorboardX.

    A resumed run replaces the points after its checkpoint.
    """

    def __init__(self, folder: Path):
        check_installed("tensorboardX", "TensorBoard")
        self._folder, self._writer = pathlib.Path(folder), None

    def on_start(self, loop: Loop) -> None:
        from tensorboardX import SummaryWriter  # An optional package that is slow to import.

        # TensorBoard drops the points of earlier files from this step on.
        self._writer: Any = SummaryWriter(str(self._folder), purge_step=loop.iteration + 1)

    def on_iteration(self, loop: Loop) -> None:
        for name, value in _scalars(loop).items():
            self._writer.add_scalar(name, value, loop.iteration)
        self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class WeightsAndBiases(Callback):
    """Logs every metric to Weights & Biases, with the package wandb.

    The arguments are those of `wandb.init`, such as `mode="offline"`. A resumed run continues its
    W&B run if `dir` is given: the folder in which W&B keeps its files.
    """

    def __init__(self, project: str = "azjax", **settings: Any):
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
        if loop.iteration >= self._run.step:  # W&B rejects steps that it has already.
            self._run.log(_scalars(loop), step=loop.iteration)

    def close(self) -> None:
        if self._run is not None:
            self._run.finish()


def _scalars(loop: Loop) -> dict[str, float]:
    """Returns all metrics of an iteration that are not None, except `iteration`."""
    metrics = loop.record.as_dict().items()
    return {name: value for name, value in metrics if value is not None and name != "iteration"}
