"""A training run in its directory, with its callbacks and results."""

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
from azjax.training.loop import Callback, Loop, check_callbacks
from azjax.viz.callbacks import Note, Report, Snapshots, make_player

_SMOKE = {"match_games": 2, "match_seconds": 0.0}  # One game from each seat.


@dataclasses.dataclass
class Run:
    """A training run in its directory, from `open_run`, and its results.

    Attributes:
      config: the settings.
      plan: when to stop and what to save.
      goal: the goal that `plan.until` selects for this game.
      run_dir: the run directory.
      loop: the training loop, with the state to start from.
      needs: the memory that training needs on each device.
      num_devices: the number of devices that train.
      verification: verifies every position; None if the game cannot be enumerated.
      evaluation: evaluates on labelled positions; None if the game has none.
      note: called with sentences that the user should see.
      certification: writes the certificate; set by `train`.
      report: writes the report; set by `train`.
    """

    config: Config
    plan: Plan
    goal: certificates.Goal
    run_dir: pathlib.Path
    loop: Loop
    needs: memory.Estimate
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
        """The certificate of the last network, or None if that network was not verified."""
        return self.certification and self.certification.certificate

    @property
    def reached(self) -> bool:
        """Whether the goal is reached; true for a run without a goal."""
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
        announce: Note = lambda sentence: None,
    ) -> None:
        """Trains until the goal or the last iteration, with all callbacks of a run.

        Args:
          callbacks: custom callbacks. The metrics that they add are written and displayed.
          displays: callbacks that display the complete records.
          show: called with the certificate after it is written.
          progress: makes a context manager that shows the progress of the report; see `Report`.
          announce: called with sentences on what takes a while after the last iteration.

        Raises:
          ValueError: if `callbacks` has anything but callbacks.
          FloatingPointError: if a metric is NaN or infinite.
          KeyboardInterrupt: if a callback set `interrupted`, after everything is saved.
        """
        check_callbacks(callbacks)
        verification, path = self.verification, self.run_dir / "metrics.jsonl"
        verifies_all = verification is None or verification.every == 1
        start, plan = self.loop.iteration, self.plan
        listed: list[Callback | None] = [verification, self.evaluation]
        if verification is not None:
            listed.append(Snapshots(verification, self.loop.parts, self.run_dir, self.note))
            certificate = self.run_dir / "certificate.json"
            self.certification = Certification(
                verification, self.goal, self.config.seed, certificate, show, announce
            )
        if every := plan.strength_every:
            games, folder = plan.strength_games, self.run_dir / "strength"
            listed.append(Strength(self.loop.parts, every, games, self.config.seed, folder))
        listed += [*callbacks, Sink(lambda loop: metrics.JsonLines(path, start)), *displays]
        checkpoints = Checkpoints(
            self.run_dir,
            plan.checkpoint_every,
            plan.keep_checkpoints,
            lambda record: metrics.rank(record, verifies_all),
        )
        listed += [self.certification, checkpoints]
        if plan.report:
            settings: dict[str, Any] = _SMOKE if plan.smoke else {}
            solution = verification and verification.solution
            self.report = Report(self.run_dir, solution, progress, announce, **settings)
            listed.append(self.report)
        self.loop.callbacks = tuple(callback for callback in listed if callback is not None)
        self.loop.run()
