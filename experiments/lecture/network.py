"""One step past the lecture: priors, then values, of a trained network in the same search."""

import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax import presets, train
from azjax.evaluators import combined_evaluator, rollout_evaluator, uniform_evaluator
from azjax.player import load
from azjax.search import SearchConfig
from experiments.lecture.setup import ROOT_2, Setup, flexible_search

SIMULATIONS = (2, 4, 8, 16, 32, 64, 128)
KINDS = (
    "UCT, random rollouts",
    "PUCT, equal priors, random rollouts",
    "PUCT, the network's priors, random rollouts",
    "PUCT, the network's priors and values",
)


def compute(setup: Setup, run_dir: pathlib.Path | None = None) -> dict:
    """Counts blunders over every position for each search and number of simulations."""
    evaluate, params, source = _network(setup, run_dir)
    rollout, uniform = rollout_evaluator(setup.game), uniform_evaluator(setup.game)
    evaluators = {
        KINDS[0]: ("uct", rollout),
        KINDS[1]: ("puct", combined_evaluator(uniform, rollout)),
        KINDS[2]: ("puct", combined_evaluator(evaluate, rollout)),
        KINDS[3]: ("puct", evaluate),
    }
    simulations, repeats = SIMULATIONS[: setup.choose(7, 5)], setup.choose(4, 1)
    curves = {}
    for kind, (algorithm, evaluator) in evaluators.items():
        config = SearchConfig(algorithm, num_simulations=max(simulations))
        count = _blunders(setup, flexible_search(setup.game, config, evaluator))
        key = setup.key(kind)
        curves[kind] = [
            float(np.mean([
                count(params, jax.random.fold_in(jax.random.fold_in(key, n), repeat), n)
                for repeat in range(repeats)
            ]))
            for n in simulations
        ]  # fmt: skip
        setup.advance(1)
    logits, _ = evaluate(params, None, setup.solution.decision_states)
    alone = _count(setup, jnp.argmax(_legal_only(setup, logits), axis=-1))
    return {
        "source": source, "simulations": simulations, "curves": curves, "alone": int(alone),
        "decisions": len(setup.solution.decisions),
    }  # fmt: skip


def _network(setup: Setup, run_dir: pathlib.Path | None) -> tuple[Any, Any, str]:
    """Returns the evaluator and parameters of a run, or of a few iterations of training."""
    if run_dir is not None:
        player = load(run_dir)
        if player.game.name != setup.game.name:
            raise ValueError(
                f"{run_dir} was trained on {player.game.name}: give a run of {setup.game.name}"
            )
        evaluate = train.make_parts(player.config).evaluate
        return evaluate, player.params, f"the network of {run_dir}, iteration {player.iteration}"
    config, mesh = presets.get("default"), train.make_mesh()
    iterations = 2
    parts, iterate = train.make_parts(config), train.make_iteration(config, mesh)
    state = train.make_state(config, mesh)
    for _ in range(iterations):
        state, _ = iterate(state)
    params = parts.network.fold(jax.device_get(state.learner.average))
    return parts.evaluate, params, f"a network after {iterations} iterations of self-play"


def _blunders(setup: Setup, search) -> Any:
    """Builds `(params, key, simulations) -> blunders` over all decision states."""
    states = setup.solution.decision_states

    @jax.jit
    def count(params, key, simulations):
        keys = jax.random.split(key, len(setup.solution.decisions))
        return _count(setup, search(params, keys, states, simulations, ROOT_2).action)

    return count


def _count(setup: Setup, actions: jax.Array) -> jax.Array:
    optimal = jnp.asarray(setup.solution.optimal[setup.solution.decisions])
    return jnp.sum(~jnp.take_along_axis(optimal, actions[:, None], axis=1))


def _legal_only(setup: Setup, logits: jax.Array) -> jax.Array:
    return jnp.where(setup.solution.legal[setup.solution.decisions], logits, -jnp.inf)


def show(results: dict, page) -> None:
    """The curves and their table."""
    decisions = results["decisions"]
    page.text(
        f"Every search decides in all {decisions:,} positions with a decision, and its blunders "
        "(moves that throw away a win or a draw) are counted: no sample of games. The priors and "
        f"values are those of {results['source']}, which alone blunders in {results['alone']:,} "
        "positions. Priors tell the search where to look first; values replace rollouts, whose "
        "noise costs most of the simulations."
    )
    (axes,) = page.axes(
        "network", "Blunders against simulations, both on logarithmic axes where above 0.",
        size=(6.4, 3.8),
    )  # fmt: skip
    for kind, curve in results["curves"].items():
        axes.plot(results["simulations"], curve, "o-", markersize=4, label=kind)
    axes.axhline(results["alone"], color="black", linestyle=":", linewidth=1, label="network alone")
    axes.set_xscale("log", base=2)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_ylim(bottom=0)
    axes.set(xlabel="simulations", ylabel=f"blunders in {decisions:,} positions")
    axes.legend(fontsize=8)
    page.table(
        ("search", *(f"{n} sims" for n in results["simulations"])),
        [(kind, *(f"{n:,.1f}" for n in curve)) for kind, curve in results["curves"].items()],
    )
