"""What training can know of a game that can be enumerated: verdicts, portraits, certificates."""

import functools
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh

from azjax import training
from azjax.cli import console, launch
from azjax.cli.judging import iterations_between
from azjax.games import solver
from azjax.proof import certificate as certificates
from azjax.proof.labelled import in_slices
from azjax.proof.verify import Verdict, verify
from azjax.viz import atlas, networks

_SLICE = 8192  # Positions that a network is asked about at a time, in games that are not small.
_SHARE = 0.1  # Of the evaluations of self-play, for verdicts on games that are not small.


class Proof(NamedTuple):
    """The solution of a game, and what it allows to be found out about a network.

    Attributes:
      solution: of the game.
      judge: `variables -> (Verdict, Seen)` of the raw network, compiled for one device;
        see `train.one_copy`.
      certify: `(params, Verdict, iterations, started, seed) -> Certificate`, of the network's
        inference form and what `judge` found. Small games are examined anew, with searches.
      every: iterations between two verdicts.
    """

    solution: solver.Solution
    judge: Callable[[Any], tuple[Verdict, "Seen"]]
    certify: Callable[[Any, Verdict, int, float, int], certificates.Certificate]
    every: int = 1


class Seen(NamedTuple):
    """What a run keeps of the network of each iteration.

    Attributes:
      portrait: see `atlas.make_portrait`.
      logits: `float32 [D, A]`, its answers to the positions with a decision; None in games that
        are not small.
      values: `float32 [D]`, likewise.
    """

    portrait: atlas.Portrait
    logits: jax.Array | None = None
    values: jax.Array | None = None


def make_proof(parts: training.Parts, mesh: Mesh, most_between: int = 0) -> Proof:
    """Solves the game and compiles the verification of the averaged network.

    Args:
      parts: what is trained.
      mesh: the run's devices; the network is verified on the first of this process's.
      most_between: iterations between two verdicts at most; 0: as many as their share of the time
        asks for.
    """
    solution = solver.solve(parts.game)
    places = atlas.make_atlas(parts.game, solution)
    if not parts.game.is_small:  # Its searches are left to `azjax verify`.
        return _make_large(parts, solution, places, most_between)
    examine_anew = certificates.make_certifier(parts, solution)

    def judge(variables) -> tuple[Verdict, Seen]:
        policy = certificates.network_policy(parts, parts.network.fold(variables))
        scores, values = policy(solution.decision_states)
        verdict = verify(solution, lambda _: (scores, values))
        portrait = atlas.make_portrait(places, solution, verdict, scores, values)
        return verdict, Seen(portrait, scores, values)

    average = jax.tree.map(  # Of any device: without a place, it is this process's first.
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype),
        training.abstract_state(parts, mesh).learner.ema_params,
    )
    return Proof(
        solution=solution,
        judge=training.compiled(jax.jit(judge), average),
        certify=lambda params, _, *run: examine_anew(params, *run),
    )


def _make_large(
    parts: training.Parts, solution: solver.Solution, places: atlas.Atlas, most_between: int
) -> Proof:
    """`make_proof` where networks are asked in slices, and certified by their last verdict."""
    verdict_on = certificates.make_verifier(solution)

    @jax.jit
    def answer(params, states):
        return certificates.network_policy(parts, params)(states)

    def judge(variables) -> tuple[Verdict, Seen]:
        ask = in_slices(functools.partial(answer, parts.network.fold(variables)), size=_SLICE)
        answers = ask(solution.decision_states)
        verdict = verdict_on(*answers)
        return verdict, Seen(atlas.make_portrait(places, solution, verdict, *answers))

    every = iterations_between(parts, len(solution.decisions), _SHARE)
    return Proof(
        solution=solution,
        judge=judge,
        certify=lambda params, verdict, *run: certificates.issue(parts, verdict, (), *run),
        every=min(every, most_between or every),
    )


def examine(
    proof: Proof | None, state: training.TrainState, anyway: bool = False
) -> tuple[Verdict | None, Seen | None]:
    """Examines the averaged network where it is time to, or anyway: `(Verdict, Seen)` or Nones."""
    if proof is None:
        return None, None
    if proof.every > 1 and not anyway and (not state.iteration or state.iteration % proof.every):
        return None, None
    return proof.judge(training.one_copy(state.learner.ema_params))


def save_seen(
    run_dir: pathlib.Path, iteration: int, proof: Proof | None, seen: Seen | None
) -> None:
    """Lets process 0 write portrait and answers; no run ends for want of them, it is noted."""
    if proof is None or seen is None or not launch.is_first():
        return
    portrait, logits, values = jax.device_get(seen)
    try:
        atlas.save_portrait(run_dir, iteration, portrait)
        if logits is not None:
            answers = networks.make_answers(proof.solution, logits, values)
            networks.save_answers(run_dir, iteration, answers)
    except OSError as error:
        console.note(f"the portrait of iteration {iteration} was not written: {error.strerror}")
