"""The bridge to mctx: the loop of `mctx.search` as an engine, and games for mctx's policies."""

import functools
import json
import pathlib
import runpy
import types

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax import games, runs
from azjax.games.base import init_batch
from azjax.networks import MLPConfig, make_network
from azjax.runs.config import Config
from azjax.search import (
    ALGORITHMS,
    PUCT,
    UCT,
    Gumbel,
    make,
    make_resumable,
    make_search,
)
from azjax.search.evaluators import network_evaluator, rollout_evaluator, uniform_evaluator
from tables import AS_IN_TRAINING, bench

ENGINES = ("azjax", "mctx")
EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


# The engine.


def draw(states, size, seed=0):
    """A random batch of `states`."""
    rows = np.random.default_rng(seed).choice(len(states.board), size, replace=False)
    return jax.tree.map(lambda leaf: leaf[rows], states)


def evaluator(game, kind):
    """An evaluator and its parameters."""
    if kind == "rollout":
        return rollout_evaluator(game), None
    network = make_network(MLPConfig(hidden=(16,), head_hidden=8), game)
    variables = network.init(jax.random.key(3))
    larger = jax.tree.map(lambda leaf: 3 * leaf, variables)  # So that outputs differ.
    return network_evaluator(game, network), network.fold(larger)


def random_evaluator(params, keys, states):
    """Outputs drawn only with the position's key."""
    del params, states
    drawn = jax.vmap(lambda key: jax.random.uniform(key, (10,), minval=-1))(keys)
    return drawn[:, :9], drawn[:, 9]


def search_by(engine, config, game, evaluate, params, states, add_noise):
    """The result of one engine; half of the positions play at temperature 1."""
    size = len(states.board)
    temperature = np.arange(size, dtype=np.float32) % 2
    keys = jax.random.split(jax.random.key(7), size)
    search = make_search(config, game, evaluate, engine)
    run = jax.jit(
        functools.partial(search, temperature=temperature, add_noise=add_noise),
        compiler_options=AS_IN_TRAINING,
    )
    return jax.device_get(run(params, keys, states))


def assert_equal(ours, theirs):
    """Every field of the results and of their trees, in every bit; NaN equals NaN."""
    paths = jax.tree_util.tree_leaves_with_path(ours)
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for (path, expected), found in zip(paths, jax.tree.leaves(theirs), strict=True):
        assert expected.dtype == found.dtype
        np.testing.assert_array_equal(expected, found, err_msg=jax.tree_util.keystr(path))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["network", "rollout"])
@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_both_engines_find_the_same_bit_for_bit(algorithm, name, kind, solution):
    """In 256 positions each, finished ones among them, half of them with noise."""
    game, config = games.make(name), ALGORITHMS[algorithm](num_simulations=40)
    every = solution.states if name == "tic_tac_toe" else game.positions().states
    states = draw(jax.device_get(every), 256)
    arguments = config, game, *evaluator(game, kind), states, np.arange(256) % 4 < 2
    ours, theirs = (search_by(engine, *arguments) for engine in ENGINES)
    assert_equal(ours, theirs)
    over = jax.vmap(jax.vmap(game.is_over))(ours.tree.embeddings)
    assert (ours.tree.node_visits[:, 1:] * over[:, 1:] > 1).any()  # mctx expanded these.
    legal = jax.vmap(game.legal_actions)(states)
    assert (~legal & ~over[:, :1]).any()  # Some actions were illegal.


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("algorithm", "add_noise"), [("puct", False), ("gumbel", True), ("uct", True)]
)
def test_both_engines_find_the_same_in_late_positions(algorithm, add_noise, solution):
    """With random outputs of the evaluator, so that every key has an effect."""
    game, config = games.make("tic_tac_toe"), ALGORITHMS[algorithm](num_simulations=24)
    plies = (solution.states.board != 0).sum(axis=1)
    late = jax.tree.map(lambda leaf: leaf[plies > 4], solution.states)
    arguments = config, game, random_evaluator, None, draw(late, 32), add_noise
    ours, theirs = (search_by(engine, *arguments) for engine in ENGINES)
    assert_equal(ours, theirs)
    assert (theirs.tree.node_visits[:, 1:] * theirs.tree.embeddings.over[:, 1:] > 1).any()


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_both_engines_find_the_same_where_values_are_nan(algorithm, some_states):
    """Also where a player may move twice."""
    for name, states in (
        ("tic_tac_toe", draw(some_states, 16)),
        ("misere_pile", init_batch(bench("misere_pile").game, 2)),
    ):
        table = bench(name).random_table()
        table = table._replace(values=np.where(table.values > 0.8, np.nan, table.values))
        config = ALGORITHMS[algorithm](num_simulations=40)
        arguments = config, bench(name).game, bench(name).evaluate, table, states, False
        ours, theirs = (search_by(engine, *arguments) for engine in ENGINES)
        assert np.isnan(ours.tree.raw_values).any()
        assert_equal(ours, theirs)


@pytest.mark.slow
def test_a_custom_algorithm_runs_on_both_engines(tic_tac_toe, some_states):
    rule = runpy.run_path(str(EXAMPLES / "search_rule.py"))["GrowingPUCT"](num_simulations=40)
    assert not hasattr(rule, "engine")
    arguments = rule, tic_tac_toe, *evaluator(tic_tac_toe, "network"), some_states, False
    assert_equal(*(search_by(engine, *arguments) for engine in ENGINES))


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_search_by_mctx_may_be_resumed(algorithm, tic_tac_toe, some_states):
    config, states = ALGORITHMS[algorithm](num_simulations=30), draw(some_states, 16)
    keys, evaluate = jax.random.split(jax.random.key(7), 16), random_evaluator

    @functools.partial(jax.jit, compiler_options=AS_IN_TRAINING)
    def in_steps(engine_steps):
        steps = make_resumable(config, tic_tac_toe, evaluate, "mctx")
        tree = steps.start(None, keys, states, 30)
        for done, count in engine_steps:
            tree = steps.grow(None, keys, states, 30, tree, done, count)
        return steps.finish(None, keys, states, 30, tree)

    @functools.partial(jax.jit, compiler_options=AS_IN_TRAINING)
    def at_once():
        return make_search(config, tic_tac_toe, evaluate, "azjax")(None, keys, states)

    stepwise = in_steps(jnp.int32([[0, 11], [11, 1], [12, 18]]))
    assert_equal(jax.device_get(at_once()), jax.device_get(stepwise))


@pytest.fixture
def searches(monkeypatch):
    """The calls of `mctx.search` and of azjax's loop, by name, in order."""
    calls = []

    def spy(module, name):
        original = getattr(module, name)

        def called(*args, **kwargs):
            calls.append(name)
            return original(*args, **kwargs)

        monkeypatch.setattr(module, name, called)

    spy(mctx, "search")
    spy(make, "simulate")
    return calls


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("algorithm", [PUCT, Gumbel, UCT])
@pytest.mark.parametrize(
    ("setting", "given", "runs"),
    [
        ({}, None, "simulate"),
        ({"engine": "mctx"}, None, "search"),
        ({"engine": "mctx"}, "azjax", "simulate"),
        ({}, "mctx", "search"),
    ],
)
def test_the_engine_is_the_one_chosen(algorithm, setting, given, runs, searches, tic_tac_toe):
    config, evaluate = algorithm(num_simulations=2, **setting), uniform_evaluator(tic_tac_toe)
    states, key = init_batch(tic_tac_toe, 2), jax.random.key(0)
    jax.eval_shape(make_search(config, tic_tac_toe, evaluate, given), None, key, states)
    assert set(searches) == {runs}
    del searches[:]
    steps = make_resumable(config, tic_tac_toe, evaluate, given)
    tree = jax.eval_shape(steps.start, None, key, states, 2)
    jax.eval_shape(steps.grow, None, key, states, 2, tree, 0, 2)
    assert set(searches) == {runs}


@pytest.mark.parametrize("algorithm", [PUCT, Gumbel, UCT])
def test_runs_keep_their_engine_and_older_runs_get_the_default(algorithm, tmp_path):
    config = Config(search=algorithm(engine="mctx"))
    runs.create_run(tmp_path / "run", config)
    assert runs.read_config(tmp_path / "run") == config
    path = tmp_path / "run" / "config.json"
    content = json.loads(path.read_text())
    assert content["search"].pop("engine") == "mctx"
    path.write_text(json.dumps(content))
    assert runs.read_config(tmp_path / "run") == Config(search=algorithm(engine="azjax"))


def test_unknown_engines_are_rejected(tic_tac_toe):
    evaluate, known = uniform_evaluator(tic_tac_toe), "use 'azjax' or 'mctx'"
    for build in (make_search, make_resumable):
        with pytest.raises(ValueError, match=f"the search's engine is 'fast': {known}"):
            build(PUCT(), tic_tac_toe, evaluate, "fast")
        custom = types.SimpleNamespace(
            algorithm="custom",
            num_simulations=1,
            is_deterministic=True,
            select=PUCT().select,
            engine="mcts",
        )
        with pytest.raises(ValueError, match=f"the search's engine is 'mcts': {known}"):
            build(custom, tic_tac_toe, evaluate)
    for algorithm in (PUCT, Gumbel, UCT):
        with pytest.raises(ValueError, match=f"search.engine is 'mcts': {known}; did you mean"):
            algorithm(engine="mcts")
