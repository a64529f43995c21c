"""A training in a run directory: the callbacks that belong to it, and what came of it."""

import contextlib
import dataclasses
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from azjax.proof import certificate as certificates
from azjax.proof.callbacks import Certification, LabelledEvaluation, Verification
from azjax.runs.callbacks import Checkpoints, Sink
from azjax.runs.config import Config
from azjax.runs.plan import Plan
from azjax.runs.player import Player
from azjax.runs.strength import Strength
from azjax.training import memory, metrics
from azjax.training.loop import Callback, Loop
from azjax.viz.callbacks import Note, Report, Snapshots, make_player

_SMOKE = {"match_games": 2, "match_seconds": 0.0}  # One game from each seat.


@dataclasses.dataclass
class Run:
    """A training in a run directory: made ready by `open_run`, and afterwards its results.

    Attributes:
      config: the settings.
      plan: when to stop and to save.
      goal: what the plan's `until` means for this game.
      run_dir: the run directory.
      loop: the training loop, with the state to start from.
      needs: the memory that the training takes on each device.
      num_devices: how many devices train.
      verification: None where the game cannot be enumerated.
      evaluation: None where it has no labelled positions.
    """

    config: Config
    plan: Plan
    goal: certificates.Goal
    run_dir: pathlib.Path
    loop: Loop
    needs: memory.Footprint
    num_devices: int
    verification: Verification | None
    evaluation: LabelledEvaluation | None
    note: Note
    certification: Certification | None = None
    report: Report | None = None

    @property
    def player(self) -> Player:
        """The averaged network."""
        return make_player(self.loop)

    @property
    def certificate(self) -> certificates.Certificate | None:
        """That of the last network that was examined; None if there is none yet."""
        return self.certification and self.certification.certificate

    @property
    def reached(self) -> bool:
        """Whether the goal is reached; training without one has reached it."""
        proved = self.certification is not None and self.certification.reached
        return self.goal == "never" or proved

    @property
    def metrics(self) -> list[dict]:
        """The record of each iteration, from `metrics.jsonl`."""
        return metrics.read_records(self.run_dir / "metrics.jsonl")

    def train(
        self,
        callbacks: Sequence[Callback] = (),
        displays: Sequence[Callback] = (),
        show: Callable[[certificates.Certificate], None] = lambda certificate: None,
        progress: Callable[[], Any] = contextlib.nullcontext,
    ) -> None:
        """Trains to the end, with all callbacks of a run.

        Args:
          callbacks: custom ones. What they add to the records is shown and written.
          displays: those that show the records when they are complete.
          show: is given the certificate once it is written.
          progress: makes a context that shows the progress of the report; see `Report`.

        Raises:
          FloatingPointError: if a metric is NaN or infinite.
          KeyboardInterrupt: if a callback set `interrupted`, once everything is saved.
        """
        found = self.verification
        always = found is None or found.every == 1
        listed: list[Callback | None] = [found, self.evaluation]
        if found is not None:
            listed += [Snapshots(found, self.loop.parts, self.run_dir, self.note)]
            self.certification = Certification(
                found, self.goal, self.config.seed, self.run_dir / "certificate.json", show
            )
        if every := self.plan.strength_every:
            games, folder = self.plan.strength_games, self.run_dir / "strength"
            listed.append(Strength(self.loop.parts, every, games, self.config.seed, folder))
        start, path = self.loop.iteration, self.run_dir / "metrics.jsonl"
        listed += [*callbacks, Sink(lambda loop: metrics.JsonLines(path, start)), *displays]
        listed += [
            self.certification,
            Checkpoints(
                self.run_dir,
                self.plan.checkpoint_every,
                self.plan.keep_checkpoints,
                lambda record: metrics.rank(record, always),
            ),
        ]
        if self.plan.report:
            settings: dict[str, Any] = _SMOKE if self.plan.smoke else {}
            solution = found and found.solution
            self.report = Report(self.run_dir, solution, progress, **settings)
            listed.append(self.report)
        self.loop.callbacks = [callback for callback in listed if callback is not None]
        self.loop.run()
