"""The bridge to mctx: the loop of `mctx.search` as an engine."""

import dataclasses
import functools
import json
import pathlib
import runpy

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax import games, runs
from azjax.games.base import init_batch
from azjax.networks import MLPConfig, make_network
from azjax.runs.config import Config
from azjax.search import ALGORITHMS, PUCT, make, make_resumable, make_search
from azjax.search.algorithm import choose_engine
from azjax.search.evaluators import network_evaluator, uniform_evaluator
from tables import AS_IN_TRAINING, BATCH, FAULTS, Faulty, bench, run

ENGINES = ("azjax", "mctx")
EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
EACH = pytest.mark.parametrize("algorithm", ALGORITHMS)


def assert_equal(ours, theirs, atol=0.0):
    """Every field of the results and of their trees; NaN equals NaN."""
    paths = jax.tree_util.tree_leaves_with_path(ours)
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for (path, expected), found in zip(paths, jax.tree.leaves(theirs), strict=True):
        assert expected.dtype == found.dtype
        error = atol if np.issubdtype(expected.dtype, np.floating) else 0
        where = jax.tree_util.keystr(path)
        np.testing.assert_allclose(found, expected, rtol=0, atol=error, err_msg=where)


@EACH
def test_both_engines_find_the_same(algorithm, solution):
    """In late positions, with random outputs of the evaluator, so that every key has an effect."""
    a_bench, config = bench("tic_tac_toe"), ALGORITHMS[algorithm]()
    late = np.flatnonzero((solution.states.board != 0).sum(axis=1) > 5)
    rows = np.random.default_rng(0).choice(late, BATCH, replace=False)
    states = jax.tree.map(lambda leaf: leaf[rows], solution.states)
    noise = np.arange(BATCH) % 2 == 0
    search = functools.partial(run, table=a_bench.random_table(), states=states, add_noise=noise)
    ours, theirs = (
        search(dataclasses.replace(config, engine=engine), luck=0.5) for engine in ENGINES
    )
    assert_equal(ours, theirs, atol=1e-5)  # Unoptimized programs may round differently.
    assert (theirs.tree.node_visits[:, 1:] * theirs.tree.embeddings.over[:, 1:] > 1).any()


def search_by(engine, config, game, evaluate, params, states):
    """The result of one engine, rounded as in training; half of the rows have noise."""
    size = len(states.board)
    temperature = np.arange(size, dtype=np.float32) % 2
    keys, noise = jax.random.split(jax.random.key(7), size), np.arange(size) % 4 < 2
    search = jax.jit(make_search(config, game, evaluate, engine), compiler_options=AS_IN_TRAINING)
    return jax.device_get(search(params, keys, states, temperature, noise))


def small_network(game):
    network = make_network(MLPConfig(hidden=(16,), head_hidden=8), game)
    variables = network.init(jax.random.key(3))
    larger = jax.tree.map(lambda leaf: 3 * leaf, variables)  # So that outputs differ.
    return network_evaluator(game, network), network.fold(larger)


@pytest.mark.slow
@EACH
def test_both_engines_find_the_same_bit_for_bit(algorithm, some_states):
    """With a network in positions of Connect Four, and with a table where some values are NaN."""
    game, config = games.make("connect_four"), ALGORITHMS[algorithm](num_simulations=40)
    states = jax.tree.map(lambda leaf: leaf[::97][:BATCH], game.positions().states)
    cases = [(game, *small_network(game), states)]
    for name in ("tic_tac_toe", "misere_pile"):  # In the pile, a player may move twice.
        a_bench = bench(name)
        states = some_states if name == "tic_tac_toe" else init_batch(a_bench.game, BATCH)
        fault = np.int32([*FAULTS].index("some values NaN"))
        params = Faulty(a_bench.random_table(), np.float32(0.5), fault, np.arange(BATCH) % 2 == 0)
        cases.append((a_bench.game, a_bench.evaluate_faulty, params, states))
    for arguments in cases:
        ours, theirs = (search_by(engine, config, *arguments) for engine in ENGINES)
        assert_equal(ours, theirs)


@pytest.mark.slow
def test_a_custom_algorithm_runs_on_both_engines(tic_tac_toe, some_states):
    rule = runpy.run_path(str(EXAMPLES / "search_rule.py"))["GrowingPUCT"](num_simulations=40)
    assert not hasattr(rule, "engine")
    arguments = rule, tic_tac_toe, *small_network(tic_tac_toe), some_states
    assert_equal(*(search_by(engine, *arguments) for engine in ENGINES))


@pytest.mark.slow
@EACH
def test_a_search_by_mctx_may_be_resumed(algorithm, tic_tac_toe, some_states):
    a_bench, config = bench("tic_tac_toe"), ALGORITHMS[algorithm](num_simulations=30)
    keys = jax.random.split(jax.random.key(7), BATCH)
    params = Faulty(a_bench.random_table(), np.float32(1), np.int32(0), np.zeros(BATCH, bool))

    @functools.partial(jax.jit, compiler_options=AS_IN_TRAINING)
    def in_steps(engine_steps, *arguments):
        steps = make_resumable(config, tic_tac_toe, a_bench.evaluate_faulty, "mctx")
        tree = steps.start(*arguments, 30)
        for done, count in engine_steps:
            tree = steps.grow(*arguments, 30, tree, done, count)
        return steps.finish(*arguments, 30, tree)

    at_once = make_search(config, tic_tac_toe, a_bench.evaluate_faulty, "azjax")
    at_once = jax.jit(at_once, compiler_options=AS_IN_TRAINING)
    stepwise = in_steps(jnp.int32([[0, 11], [11, 1], [12, 18]]), params, keys, some_states)
    assert_equal(*jax.device_get((at_once(params, keys, some_states), stepwise)))


def test_the_engine_is_the_one_chosen(monkeypatch, tic_tac_toe):
    """Also in a resumable search; only the calls of the two loops tell them apart."""
    calls, states, key = [], init_batch(tic_tac_toe, 2), jax.random.key(0)
    evaluate = uniform_evaluator(tic_tac_toe)

    def spy(engine, original, *args, **kwargs):
        calls.append(engine)
        return original(*args, **kwargs)

    monkeypatch.setattr(mctx, "search", functools.partial(spy, "mctx", mctx.search))
    monkeypatch.setattr(make, "simulate", functools.partial(spy, "azjax", make.simulate))
    for default, given, expected in [
        ("azjax", None, "azjax"),
        ("mctx", None, "mctx"),
        ("mctx", "azjax", "azjax"),
        ("azjax", "mctx", "mctx"),
    ]:
        config = PUCT(num_simulations=2, engine=default)
        jax.eval_shape(make_search(config, tic_tac_toe, evaluate, given), None, key, states)
        assert {*calls} == {expected}
        calls.clear()
        steps = make_resumable(config, tic_tac_toe, evaluate, given)
        tree = jax.eval_shape(steps.start, None, key, states, 2)
        jax.eval_shape(steps.grow, None, key, states, 2, tree, 0, 2)
        assert {*calls} == {expected}
        calls.clear()


@EACH
def test_runs_keep_their_engine_and_older_runs_get_the_default(algorithm, tmp_path):
    search = ALGORITHMS[algorithm]
    assert [choose_engine(search(engine=engine)) for engine in ENGINES] == [*ENGINES]
    config = Config(search=search(engine="mctx"))
    runs.create_run(tmp_path / "run", config)
    assert runs.read_config(tmp_path / "run") == config
    path = tmp_path / "run" / "config.json"
    content = json.loads(path.read_text())
    assert content["search"].pop("engine") == "mctx"
    path.write_text(json.dumps(content))
    assert runs.read_config(tmp_path / "run") == Config(search=search(engine="azjax"))
