"""An experiment beyond the lecture: the same search with a network's priors and values."""

import functools
import pathlib
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from azjax import training
from azjax.games.base import choose
from azjax.runs import presets
from azjax.runs.config import fit_devices, make_parts
from azjax.runs.loading import load
from azjax.search import ALGORITHMS
from azjax.search.evaluators import Evaluator, rollout_evaluator
from azjax.viz.chart import line_chart
from experiments.lecture.setup import Setup, flexible_search

SIMULATIONS = (2, 4, 8, 16, 32, 64, 128)
# The algorithm, whether it uses the network's priors, and whether it uses its values.
KINDS: dict[str, tuple[Literal["puct", "uct"], bool, bool]] = {
    "UCT, rollouts": ("uct", False, False),
    "PUCT, rollouts": ("puct", False, False),
    "PUCT + priors": ("puct", True, False),
    "PUCT + priors, values": ("puct", True, True),
}


def compute(setup: Setup, run_dir: pathlib.Path | None = None) -> dict:
    """Counts the blunders of each search, by number of simulations, in every decision position."""
    evaluate, params, source = _network(setup, run_dir)
    simulations, repeats = SIMULATIONS[: setup.choose(7, 5)], setup.choose(4, 1)
    key, curves = setup.key("network"), {}
    for kind, (algorithm, *uses) in KINDS.items():
        count = _blunders(setup, algorithm, evaluate, max(simulations))
        curves[kind] = []
        for number in simulations:
            key_number = jax.random.fold_in(key, number)
            keys = [jax.random.fold_in(key_number, repeat) for repeat in range(repeats)]
            blunders = [count((params, *uses), key, number) for key in keys]
            curves[kind].append(float(np.mean(blunders)))
        setup.advance(1)
    logits, _ = evaluate(params, None, setup.solution.decision_states)
    alone = _count(setup, choose(logits, setup.solution.legal[setup.solution.decisions]))
    return {
        "source": source, "simulations": simulations, "curves": curves, "alone": int(alone),
        "decisions": len(setup.solution.decisions),
    }  # fmt: skip


def _network(setup: Setup, run_dir: pathlib.Path | None) -> tuple[Any, Any, str]:
    """Returns evaluator, parameters and description of a run, or of a short training."""
    if run_dir is not None:
        player = load(run_dir)
        if player.game.name != setup.game.name:
            raise ValueError(
                f"{run_dir} was trained on {player.game.name}: give a run of {setup.game.name}"
            )
        evaluate = player.parts.evaluate
        return evaluate, player.params, f"the network of {run_dir}, iteration {player.iteration}"
    mesh, iterations = training.make_mesh(), 2
    config = fit_devices(presets.get("default"), mesh.size)
    parts = make_parts(config)
    iterate = training.make_iteration(parts, mesh)
    state = training.make_state(parts, jax.random.key(config.seed), mesh)
    for _ in range(iterations):
        state, _ = iterate(state)
    params = parts.network.fold(jax.device_get(state.learner.average))
    return parts.evaluate, params, f"a network after {iterations} iterations of self-play"


@functools.cache
def _blunders(setup: Setup, algorithm: Literal["puct", "uct"], evaluate: Evaluator, room: int):
    """Builds `(params, key, simulations) -> blunders` over all decision states.

    `params` are the network's parameters, whether to use its priors, and whether to use its
    values. Without them, priors are uniform and values are the outcome of a random game.
    """
    states, rollout = setup.solution.decision_states, rollout_evaluator(setup.game)

    def mix(params, key, states):
        network, use_priors, use_values = params
        logits, value = evaluate(network, key, states)
        _, outcome = rollout(None, key, states)
        return jnp.where(use_priors, logits, 0.0), jnp.where(use_values, value, outcome)

    settings = ALGORITHMS[algorithm](num_simulations=room)
    search = flexible_search(setup.game, settings, Evaluator(mix))

    @jax.jit
    def count(params, key, simulations):
        keys = jax.random.split(key, len(setup.solution.decisions))
        return _count(setup, search(params, keys, states, simulations).action)

    return count


def _count(setup: Setup, actions: jax.Array) -> jax.Array:
    optimal = jnp.asarray(setup.solution.optimal[setup.solution.decisions])
    return jnp.sum(~jnp.take_along_axis(optimal, actions[:, None], axis=1))


def show(results: dict, page) -> None:
    """Shows the curves and their table."""
    decisions = results["decisions"]
    page.text(
        f"Every search chooses a move in each of the {decisions:,} positions with a choice, and "
        "its blunders (moves that give up a win or a draw) are counted. The priors and values are "
        f"those of {results['source']}; without search it blunders in {results['alone']:,} "
        "positions. Its priors replace uniform ones, and then its values replace rollouts."
    )
    lines = results["curves"] | {"network alone": [results["alone"]] * len(results["simulations"])}
    title = f"Blunders in {decisions:,} positions"
    page.charts(
        "Both scales are logarithmic and include 0.",
        line_chart(title, results["simulations"], lines, log=True, log_x=True,
                   x_label="simulations"),
    )  # fmt: skip
    titles = [f"{n} sims" for n in results["simulations"]]
    page.table([
        {"search": kind} | dict(zip(titles, map("{:,.1f}".format, curve), strict=True))
        for kind, curve in results["curves"].items()
    ])  # fmt: skip
