"""Training callbacks that write snapshots of the network, and a report at the end."""

import contextlib
import pathlib
from collections.abc import Callable
from typing import Any

import jax

from azjax import training
from azjax._files import Path
from azjax.proof.callbacks import Verification
from azjax.runs.player import Player
from azjax.training.loop import Callback, Loop
from azjax.viz import atlas, networks, report

Note = Callable[[str], None]


class Snapshots(Callback):
    """Writes a snapshot of the network in all positions after every verification."""

    def __init__(
        self, verification: Verification, parts: training.Parts, run_dir: Path, note: Note
    ):
        """Initializes the callback.

        Args:
          verification: the callback that verifies the network; it must be called before this one.
          parts: the game and the network.
          run_dir: the run directory.
          note: called with a sentence if a file cannot be written; training continues.
        """
        self._verification, self._run_dir, self._note = verification, run_dir, note
        self._keeps_answers = parts.game.is_small
        solution = verification.solution
        places = atlas.make_atlas(parts.game, solution)

        def sum_up(verdict, scores, values):
            return atlas.make_snapshot(places, solution, verdict, scores, values)

        self._sum_up = jax.jit(sum_up) if parts.game.is_small else sum_up

    def on_start(self, loop: Loop) -> None:
        """Writes the snapshot of the initial network."""
        self.on_iteration(loop)

    def on_iteration(self, loop: Loop) -> None:
        """Writes the snapshot of an iteration."""
        verdict, answers = self._verification.verdict, self._verification.answers
        if verdict is None or answers is None:
            return
        snapshot = jax.device_get(self._sum_up(verdict, *answers))
        try:
            atlas.save_snapshot(self._run_dir, loop.iteration, snapshot)
            if self._keeps_answers:
                packed = networks.make_answers(self._verification.solution, *answers)
                networks.save_answers(self._run_dir, loop.iteration, packed)
        except OSError as error:
            self._note(
                f"the snapshot of iteration {loop.iteration} was not written: {error.strerror}"
            )


class Report(Callback):
    """Writes `report.html` at the end of training; a failure does not affect the run.

    Attributes:
      path: path of the page once it is written.
      failed: the reason if it could not be written.
    """

    path: pathlib.Path | None = None
    failed: str | None = None

    def __init__(
        self,
        run_dir: Path,
        solution: Any = None,
        progress: Callable[[], Any] = contextlib.nullcontext,
        announce: Note = lambda sentence: None,
        **settings: Any,
    ):
        """Initializes the callback.

        Args:
          run_dir: the run directory.
          solution: the solution of the game, if it can be enumerated.
          progress: returns a context manager that shows progress and yields `notify` or None.
          announce: called with a sentence before the page is written, which takes a while.
          **settings: settings of the matches; see `report.write_report`.
        """
        self._run_dir, self._solution = pathlib.Path(run_dir), solution
        self._progress, self._announce = progress, announce
        self._settings, self._trained = settings, False

    def on_iteration(self, loop: Loop) -> None:
        """Records that the run has changed."""
        self._trained = True

    def on_end(self, loop: Loop) -> None:
        """Writes the page, unless a finished run already has one."""
        if not self._trained and (self._run_dir / "report.html").exists():
            return
        player = make_player(loop)
        self._announce("writing the report, with games against other players")
        try:
            with self._progress() as notify:
                self.path = report.write_report(
                    self._run_dir, player, self._solution, notify=notify, **self._settings
                )
        except (OSError, ValueError) as error:
            self.failed = f"the report was not written: {error}"


def make_player(loop: Loop) -> Player:
    """Returns the averaged network of a training loop as a player."""
    return Player(loop.parts, loop.parts.network.fold(loop.average), loop.iteration)
