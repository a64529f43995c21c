"""Callbacks that evaluate the network in training, with the solver or on labelled positions."""

import contextlib
import dataclasses
import functools
import json
import math
import pathlib
import time
from typing import Any

import jax
import numpy as np

from azjax import _files as files
from azjax import _processes as processes
from azjax import training
from azjax.games import solver
from azjax.games.rows import in_batches
from azjax.proof import certificate as certificates
from azjax.proof.enumeration import Verdict
from azjax.proof.labelled import BATCH, MEAN, count_errors, rates
from azjax.runs.player import Player
from azjax.search import Algorithm
from azjax.training.loop import Callback, Loop

_SOLVER_SHARE = 0.1  # Evaluations for verdicts, per evaluation in self-play, except in small games.
_LABELS_SHARE = 0.02  # Evaluations of labelled positions, per evaluation in self-play.


def iterations_between(parts: training.Parts, evaluations: int, share: float) -> int:
    """Returns the number of iterations between two checks of the network.

    If a check makes this many `evaluations`, all checks together make at most `share` times as many
    evaluations as self-play.
    """
    return math.ceil(evaluations / (share * parts.evaluations))


class Verification(Callback):
    """Verifies the averaged network in every position of a game that can be enumerated.

    `verdict` is None if the network of this iteration was not verified.
    """

    everywhere = True

    def __init__(self, parts: training.Parts, most_between: int = 0):
        """Solves the game, and compiles the verification of a small one.

        `most_between` is the maximum number of iterations between two verdicts; 0: verdicts make at
        most a tenth as many network evaluations as self-play.
        """
        self.solution = solver.solve(parts.game)
        self.verdict: Verdict | None = None
        self.every, self._parts = 1, parts
        if parts.game.is_small:
            shapes = jax.eval_shape(parts.network.init, jax.random.key(0))
            zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)
            self._examine(jax.device_put(zeros, jax.local_devices()[0]))
        else:
            every = iterations_between(parts, len(self.solution.decisions), _SOLVER_SHARE)
            self.every = min(every, most_between or every)

    def _examine(self, variables: Any) -> Verdict:
        player = Player(self._parts, self._parts.network.fold(variables))
        return certificates.examine(player, self.solution)

    def on_start(self, loop: Loop) -> None:
        """Verifies the first network, if that takes little time or the run is resumed."""
        if self.every == 1 or loop.iteration > 0:
            self.verdict = self._examine(loop.average)

    def on_iteration(self, loop: Loop) -> None:
        """Verifies the network if it is due, and adds the verdict to the record."""
        is_due = loop.is_last or loop.iteration % self.every == 0
        self.verdict = self._examine(loop.average) if is_due else None
        if self.verdict is not None:
            loop.add(**self.verdict.counts(), value_error=self.verdict.value_error)

    def certify(self, loop: Loop, seed: int) -> certificates.Certificate:
        """Verifies the network, and returns the certificate.

        In small games, searches are verified as well. In larger ones, this would take too long;
        `azjax verify` does it.
        """
        player = Player(self._parts, self._parts.network.fold(loop.average), loop.iteration)
        simulations = None if self._parts.game.is_small else ()
        certificate = certificates.verify(player, simulations, solution=self.solution)
        devices = jax.tree.leaves(loop.state.learner.average)[0].sharding.device_set
        return dataclasses.replace(
            certificate,
            seconds=round(time.monotonic() - loop.started, 1),
            seed=seed,
            device=certificates.device_name(devices),
        )


class Certification(Callback):
    """Stops training when its goal is proved, and writes `certificate.json`.

    `certificate` proves the goal; if training ends without a proof, it is that of the last network.
    """

    everywhere = True

    def __init__(
        self,
        verification: Verification,
        goal: certificates.Goal,
        seed: int,
        path: Any,
        display: bool = False,
    ):
        """Certifies the verdicts of `verification`, an earlier callback of the same loop.

        `display`: whether to print on stderr that searches are verified, which takes a while.
        """
        self._verification, self._seed, self._display = verification, seed, display
        self._goal: certificates.Goal = goal
        self._path = pathlib.Path(path)
        self.certificate: certificates.Certificate | None = None
        self.reached = False

    def on_start(self, loop: Loop) -> None:
        """Stops a resumed run that has already reached its goal."""
        if loop.iteration > 0:
            self.on_iteration(loop)

    def on_iteration(self, loop: Loop) -> None:
        """Stops training in all processes when each of them has proved the goal."""
        verdict, certificate = self._verification.verdict, None
        if verdict is not None and certificates.reached(self._goal, verdict):
            certificate = self._certify(loop)
        unproved = certificate is None or not certificate.reaches(self._goal)
        if not processes.any_of(unproved):
            self.certificate, self.reached, loop.stop = certificate, True, True

    def _certify(self, loop: Loop) -> certificates.Certificate:
        if self._display and loop.parts.game.is_small:
            processes.note("verifying the network with its searches, in every position")
        return self._verification.certify(loop, self._seed)

    def on_end(self, loop: Loop) -> None:
        """Writes the certificate of the last network, in process 0, unless the file has it."""
        has_trained = loop.record.iteration > 0
        if processes.any_of(has_trained or not self._is_of(loop.iteration)):
            processes.in_first(lambda: self._write(loop))

    def _is_of(self, iteration: int) -> bool:
        """Returns whether the file has the certificate of this iteration."""
        with contextlib.suppress(OSError, ValueError, AttributeError):
            return json.loads(self._path.read_text()).get("iterations") == iteration
        return False

    def _write(self, loop: Loop) -> None:
        self.certificate = self.certificate or self._certify(loop)
        files.write_json(self._path, self.certificate.as_json())


class LabelledEvaluation(Callback):
    """Counts the errors of the averaged network, without search, on labelled positions."""

    def __init__(self, parts: training.Parts, num_devices: int):
        """The evaluation runs on one device while the others wait."""
        if parts.game.positions is None:
            raise ValueError(f"{parts.game.name} has no labelled positions")
        self._parts, self._positions = parts, parts.game.positions()
        evaluations = len(self._positions.outcomes) * num_devices
        self.every = iterations_between(parts, evaluations, _LABELS_SHARE)

    def on_iteration(self, loop: Loop) -> None:
        """Evaluates the networks of the first and the last iteration, and some in between."""
        if loop.is_last or loop.iteration == 1 or loop.iteration % self.every == 0:
            loop.add(**self.find_errors(loop.average))

    def find_errors(self, variables: Any, search: Algorithm | None = None) -> dict[str, float]:
        """Returns the shares of errors, by their names in the records; see `metrics.Record`.

        They are those of the network alone, or with a search.
        """
        player = Player(self._parts, self._parts.network.fold(variables))
        evaluate = functools.partial(certificates.policy, player, search)
        answers = in_batches(evaluate, (self._positions.states,), BATCH)
        shares = rates(self._positions, count_errors(self._positions, *answers))
        errors = {
            "error" if name == MEAN else f"error/{name}": share.estimate
            for name, share in shares.errors.items()
        }
        if MEAN in shares.sign_errors:
            errors["sign_error"] = shares.sign_errors[MEAN].estimate
        return errors
