"""Callbacks that draw: snapshots of the network in every iteration, and the report at the end."""

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
    """Writes what the network does in every position, whenever it was verified."""

    def __init__(
        self, verification: Verification, parts: training.Parts, run_dir: Path, note: Note
    ):
        """Writes into a run directory.

        Args:
          verification: which is called before.
          parts: what is trained.
          run_dir: the run directory.
          note: is given a sentence about a file that cannot be written; the training goes on.
        """
        self._verification, self._run_dir, self._note = verification, run_dir, note
        self._keeps_answers = parts.game.is_small
        solution = verification.solution
        places = atlas.make_atlas(parts.game, solution)

        def sum_up(verdict, scores, values):
            return atlas.make_snapshot(places, solution, verdict, scores, values)

        self._sum_up = jax.jit(sum_up) if parts.game.is_small else sum_up

    def on_start(self, loop: Loop) -> None:
        """Writes that of the network to start from."""
        self.on_iteration(loop)

    def on_iteration(self, loop: Loop) -> None:
        """Writes the files of an iteration."""
        verdict, answers = self._verification.verdict, self._verification.answers
        if verdict is None or answers is None:
            return
        snapshot = jax.device_get(self._sum_up(verdict, *answers))
        try:
            atlas.save_snapshot(self._run_dir, loop.iteration, snapshot)
            if self._keeps_answers:
                found = networks.make_answers(self._verification.solution, *answers)
                networks.save_answers(self._run_dir, loop.iteration, found)
        except OSError as error:
            self._note(
                f"the snapshot of iteration {loop.iteration} was not written: {error.strerror}"
            )


class Report(Callback):
    """Writes `report.html` at the end; the run is complete without it.

    Attributes:
      path: of the page, once it is written.
      failed: why it was not, as a sentence.
    """

    path: pathlib.Path | None = None
    failed: str | None = None

    def __init__(
        self,
        run_dir: Path,
        solution: Any = None,
        progress: Callable[[], Any] = contextlib.nullcontext,
        **settings: Any,
    ):
        """Takes what `report.write_report` needs in addition to the player.

        Args:
          run_dir: the run directory.
          solution: of the game, where it can be enumerated.
          progress: makes a context that shows progress; it gives `notify`, or None.
          **settings: of the matches.
        """
        self._run_dir, self._solution = pathlib.Path(run_dir), solution
        self._progress, self._settings, self._trained = progress, settings, False

    def on_iteration(self, loop: Loop) -> None:
        """Notes that there is something new to report."""
        self._trained = True

    def on_end(self, loop: Loop) -> None:
        """Writes the page, unless a finished run has one already."""
        if not self._trained and (self._run_dir / "report.html").exists():
            return
        player = make_player(loop)
        try:
            with self._progress() as notify:
                self.path = report.write_report(
                    self._run_dir, player, self._solution, notify=notify, **self._settings
                )
        except (OSError, ValueError) as error:
            self.failed = f"the report was not written: {error}"


def make_player(loop: Loop) -> Player:
    """Returns the averaged network of a training as a player."""
    return Player(loop.parts, loop.parts.network.fold(loop.average), loop.iteration)
