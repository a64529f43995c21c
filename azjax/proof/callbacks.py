"""Callbacks that examine the network in training: by the solver, and in labelled positions."""

import functools
import math
import pathlib
from collections.abc import Callable
from typing import Any

import jax
from jax.sharding import Mesh

from azjax import _files as files
from azjax import _processes as processes
from azjax import training
from azjax.games import solver
from azjax.games.positions import Positions
from azjax.proof import certificate as certificates
from azjax.proof.labelled import MEAN, ErrorCounts, count_errors, in_slices, rates
from azjax.proof.verify import Verdict, verify
from azjax.training.loop import Callback, Loop

_SLICE = 8192  # Positions that a network evaluates at a time, in games that are not small.
_SOLVER_SHARE = 0.1  # Of the evaluations of self-play, for verdicts on games that are not small.
_LABELS_SHARE = 0.02  # Of the evaluations of self-play, for labelled positions.


def iterations_between(parts: training.Parts, evaluations: int, share: float) -> int:
    """Returns the iterations after which evaluations are a given share of those of self-play."""
    selfplay = parts.selfplay
    made = selfplay.games * selfplay.unroll_length * (parts.search.num_simulations + 1)
    return math.ceil(evaluations / (share * made))


class Verification(Callback):
    """Verifies the averaged network in every position of a game that can be enumerated.

    Attributes:
      solution: of the game.
      every: iterations between two verdicts; 1 in small games.
      verdict: on the network of this iteration; None if it was not examined.
      answers: its logits `[D, A]` and values `[D]` in the positions with a decision; None likewise.
    """

    everywhere = True

    def __init__(self, parts: training.Parts, mesh: Mesh, most_between: int = 0):
        """Solves the game and compiles the verification, for the first device of this process.

        Args:
          parts: what is trained.
          mesh: the devices of the run.
          most_between: the most iterations between two verdicts; 0: a tenth of the evaluations of
            self-play decides.
        """
        self.solution = solution = solver.solve(parts.game)
        self.verdict: Verdict | None = None
        self.answers: tuple[jax.Array, jax.Array] | None = None
        self.every, self._parts = 1, parts
        if parts.game.is_small:
            self._verify = _compile(parts, mesh, solution)
            self._certify = certificates.make_certifier(parts, solution)
            return
        self._verify = _in_slices(parts, solution)
        every = iterations_between(parts, len(solution.decisions), _SOLVER_SHARE)
        self.every = min(every, most_between or every)

    def on_start(self, loop: Loop) -> None:
        """Examines the network that the training starts from, where that takes little time."""
        self._examine(loop, is_due=self.every == 1 or loop.iteration > 0)

    def on_iteration(self, loop: Loop) -> None:
        """Examines the network, if it is time, and adds what was found to the record."""
        is_last = loop.iteration >= loop.max_iterations
        self._examine(loop, is_due=is_last or loop.iteration % self.every == 0)
        if self.verdict is not None:
            loop.add(**_as_metrics(jax.device_get(self.verdict)))

    def _examine(self, loop: Loop, is_due: bool) -> None:
        self.verdict = self.answers = None
        if is_due:
            self.verdict, self.answers = self._verify(loop.average)

    def certify(self, loop: Loop, seed: int) -> certificates.Certificate | None:
        """Returns the certificate of the network; None if this iteration was not examined.

        In small games the network is examined again, with searches.
        """
        if self.verdict is None:
            return None
        if not self._parts.game.is_small:  # Its searches are left to `azjax verify`.
            return certificates.issue(
                self._parts, self.verdict, (), loop.iteration, loop.started, seed
            )
        params = self._parts.network.fold(loop.average)
        return self._certify(params, loop.iteration, loop.started, seed)


def _compile(parts: training.Parts, mesh: Mesh, solution: solver.Solution) -> Callable:
    """Compiles `variables -> (Verdict, answers)` for all positions at once."""

    def examine(variables):
        policy = certificates.network_policy(parts, parts.network.fold(variables))
        answers = policy(solution.decision_states)
        return verify(solution, lambda _: answers), answers

    average = jax.tree.map(  # Of any device: without a place, it is this process's first.
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype),
        training.abstract_state(parts, mesh).learner.ema_params,
    )
    return training.compiled(jax.jit(examine), average)


def _in_slices(parts: training.Parts, solution: solver.Solution) -> Callable:
    """Builds the same function for games with many positions, which it evaluates in slices."""
    verdict_on = certificates.make_verifier(solution)

    @jax.jit
    def answer(params, states):
        return certificates.network_policy(parts, params)(states)

    def examine(variables):
        evaluate = in_slices(functools.partial(answer, parts.network.fold(variables)), size=_SLICE)
        answers = evaluate(solution.decision_states)
        return verdict_on(*answers), answers

    return examine


def _as_metrics(verdict: Verdict) -> dict[str, Any]:
    return {
        "blunders": int(verdict.blunders),
        "losing_lines_first": int(verdict.losing_lines[0]),
        "losing_lines_second": int(verdict.losing_lines[1]),
        "value_sign_errors": int(verdict.value_sign_errors),
        "value_error": float(verdict.value_error),
    }


class Certification(Callback):
    """Ends the training when its goal is proved, and writes `certificate.json`.

    Attributes:
      certificate: that the goal is reached; in the end that of the last network examined.
      reached: whether the goal is reached.
    """

    everywhere = True

    def __init__(
        self,
        verification: Verification,
        goal: certificates.Goal,
        seed: int,
        path: Any,
        show: Callable[[certificates.Certificate], None] = lambda certificate: None,
    ):
        """Certifies what a verification, which is called before, has found.

        Args:
          verification: of the same training.
          goal: what ends the training.
          seed: of the run.
          path: of the file.
          show: is given the certificate once it is written.
        """
        self._show = show
        self._verification, self._seed = verification, seed
        self._goal: certificates.Goal = goal
        self._path, self._trained = pathlib.Path(path), False
        self.certificate: certificates.Certificate | None = None
        self.reached = False

    def on_start(self, loop: Loop) -> None:
        """Stops a run that goes on, if it has reached its goal already."""
        if loop.iteration > 0:
            self._check_goal(loop)

    def on_iteration(self, loop: Loop) -> None:
        """Stops the training, in all processes, once all of them have the certificate."""
        self._trained = True
        self._check_goal(loop)

    def _check_goal(self, loop: Loop) -> None:
        verdict, found = self._verification.verdict, None
        if verdict is not None and certificates.reached(self._goal, verdict):
            found = self._verification.certify(loop, self._seed)
        holds = found is not None and (self._goal == "unbeatable" or found.perfect)
        (unproved,) = processes.any_of(not holds)
        if not unproved:
            self.certificate, self.reached, loop.stop = found, True, True

    def on_end(self, loop: Loop) -> None:
        """Lets process 0 write the certificate of the last network."""
        if self._trained or not self._path.exists():
            processes.in_first(lambda: self._write(loop))

    def _write(self, loop: Loop) -> None:
        self.certificate = self.certificate or self._verification.certify(loop, self._seed)
        if self.certificate is not None:
            files.write_json(self._path, self.certificate.as_json())
            self._show(self.certificate)


class LabelledEvaluation(Callback):
    """Counts the errors of the averaged network, without search, in labelled positions."""

    def __init__(self, parts: training.Parts, num_devices: int):
        """Evaluates on one device while the others of `num_devices` wait.

        Raises:
          ValueError: if the game has no labelled positions.
        """
        if parts.game.positions is None:
            raise ValueError(f"{parts.game.name} has no labelled positions")
        self._positions = positions = parts.game.positions()
        self._count = jax.jit(lambda *answers: count_errors(positions, lambda _: answers))
        evaluations = len(positions.outcomes) * num_devices
        self.every = iterations_between(parts, evaluations, _LABELS_SHARE)

        @jax.jit
        def answer(variables, states):
            return certificates.network_policy(parts, parts.network.fold(variables))(states)

        self._answer = answer

    def on_iteration(self, loop: Loop) -> None:
        """Evaluates the first network, the last one, and now and then one between."""
        if loop.iteration % self.every == 0 or loop.iteration in (1, loop.max_iterations):
            loop.add(errors=self.find_errors(loop.average))

    def find_errors(self, variables: Any) -> dict[str, float]:
        """Returns the shares of errors, by their names in the records; see `metrics.Record`."""
        evaluate = in_slices(functools.partial(self._answer, variables))
        return name_errors(self._positions, self._count(*evaluate(self._positions.states)))


def name_errors(positions: Positions, counts: ErrorCounts) -> dict[str, float]:
    """Returns the shares of errors, by their names in the records; see `metrics.Record`."""
    found = rates(positions, counts)
    errors = {f"error/{name}": share.estimate for name, share in found.errors.items()}
    if MEAN in found.errors:
        errors = {"error": errors.pop(f"error/{MEAN}")} | errors
    if MEAN in found.sign_errors:
        errors["sign_error"] = found.sign_errors[MEAN].estimate
    return errors
