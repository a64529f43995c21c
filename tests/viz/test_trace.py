"""The trace of a search: replayed, it is the search."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from azjax.games.base import init_batch
from azjax.search import PUCT, Gumbel, make_search
from azjax.search.evaluators import exact_evaluator, rollout_evaluator, uniform_evaluator
from azjax.viz import trace as trace_module
from azjax.viz.trace import trace
from tables import AS_IN_TRAINING

BATCH, SIMULATIONS = 64, 40
CASES = [("uniform", "zero"), ("rollout", "zero"), ("exact", "zero")]
CASES += [("rollout", "parent"), ("rollout", "loss")]


@pytest.fixture(scope="module")
def states(solution):
    """Positions of all plies, the empty board among them, most of them late in the game."""
    rows = np.random.default_rng(0).choice(solution.decisions[1:], BATCH - 1, replace=False)
    return jax.tree.map(lambda leaf: leaf[[0, *rows]], solution.states)


@pytest.fixture(
    scope="module",
    params=[CASES[0], *(pytest.param(case, marks=pytest.mark.slow) for case in CASES[1:])],
    ids="-".join,
)
def search(request, tic_tac_toe, solution, states):
    """64 noisy searches: their settings and their trees."""
    evaluator, urgency = request.param
    evaluate = {
        "uniform": uniform_evaluator(tic_tac_toe),
        "rollout": rollout_evaluator(tic_tac_toe),
        "exact": exact_evaluator(tic_tac_toe, solution),
    }[evaluator]
    config = PUCT(num_simulations=SIMULATIONS, c_puct=1.7, first_play_urgency=urgency)
    search = make_search(config, tic_tac_toe, evaluate)
    run = jax.jit(search, static_argnums=4, compiler_options=AS_IN_TRAINING)
    keys = jax.random.split(jax.random.key(1), BATCH)
    return config, jax.device_get(run(None, keys, states, 0.0, True).tree)


@pytest.fixture(scope="module")
def traces(search):
    """The histories; compiled like the searches, so that both round equally."""
    config, tree = search
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax, "jit", functools.partial(jax.jit, compiler_options=AS_IN_TRAINING))
        trace_module._compiled.cache_clear()
        return [trace(config, tree, row) for row in range(BATCH)]


def test_replaying_the_trace_gives_the_visits_and_values_of_the_tree(search, traces):
    _, tree = search
    for row, traced in enumerate(traces):
        visits = np.zeros(SIMULATIONS + 1, int)
        values = traced.values.copy()
        visits[0] = 1
        for simulation in traced.simulations:
            assert simulation.new == (visits[simulation.leaf] == 0)
            visits[simulation.leaf] += 1
            for node, backup in zip(simulation.path, simulation.backup, strict=True):
                # XLA multiplies and adds with one rounding.
                total = np.float32(np.float64(values[node]) * visits[node] + np.float64(backup))
                visits[node] += 1
                values[node] = total / np.float32(visits[node])
        nodes = traced.nodes
        assert np.array_equal(visits[nodes], tree.node_visits[row, nodes])
        assert np.array_equal(values[nodes], tree.node_values[row, nodes])
        assert visits.sum() == tree.node_visits[row].sum()


def test_every_action_taken_has_the_highest_score(traces):
    for traced in traces:
        for k, simulation in enumerate(traced.simulations):
            for node, action in zip(simulation.path, simulation.actions, strict=True):
                assert traced.history.terms.score[k, node].argmax() == action


def test_the_history_ends_in_the_finished_tree(search, traces):
    _, tree = search
    for row, traced in enumerate(traces):
        assert np.array_equal(traced.history.node_values[-1], tree.node_values[row])
        assert np.array_equal(traced.history.children_visits[-1], tree.children_visits[row])


def test_the_backup_turns_its_sign_with_the_player(traces, solution):
    for traced in traces:
        for simulation in traced.simulations:
            leaf, mover = simulation.leaf, traced.states.player[simulation.path[-1]]
            if traced.states.over[leaf]:
                for_mover = traced.rewards[leaf]
                assert simulation.value == 0 and for_mover in (0, 1)
            else:
                for_mover = -np.float32(simulation.value)
            signs = np.where(traced.states.player[list(simulation.path)] == mover, 1, -1)
            assert np.array_equal(simulation.backup, signs * for_mover)


def test_simulations_start_at_the_root_and_follow_the_edges(traces):
    for traced in traces:
        for simulation in traced.simulations:
            *path, last = (*simulation.path, simulation.leaf)
            assert path[0] == 0
            for parent, child, action in zip(
                path, (*path[1:], last), simulation.actions, strict=True
            ):
                assert traced.parents[child] == parent and traced.actions[child] == action
            assert traced.depths[last] == len(path)


def test_a_tree_of_other_settings_is_refused(search):
    config, tree = search
    other = dataclasses.replace(config, c_puct=0.01)
    with pytest.raises(ValueError, match="belongs to other settings"):
        for row in range(BATCH):  # Some trees are equal.
            trace(other, tree, row)


def test_only_puct_is_traced(tic_tac_toe):
    config = Gumbel(num_simulations=4)
    search = jax.jit(make_search(config, tic_tac_toe, uniform_evaluator(tic_tac_toe)))
    result = search(None, jax.random.split(jax.random.key(0), 1), init_batch(tic_tac_toe, 1))
    with pytest.raises(ValueError, match=r"search with PUCT\(\)"):
        trace(config, result.tree)
