"""What a search depends on, and what it refuses, while it is traced."""

import functools
from typing import get_args

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax import make
from azjax.games.base import init_batch
from azjax.networks import MLPConfig, make_network
from azjax.search import (
    PUCT,
    UCT,
    Gumbel,
    MctxPolicy,
    make_search,
    mctx_fns,
    network_evaluator,
    paths,
    simulate,
    uniform_evaluator,
)
from azjax.search.make import Engine
from refusals import assert_refused


def test_a_tree_is_continued_for_each_position(tic_tac_toe):
    one, two = (init_batch(tic_tac_toe, size) for size in (1, 2))
    search = make_search(PUCT(num_simulations=2), tic_tac_toe, uniform_evaluator(tic_tac_toe))
    tree = jax.eval_shape(search, None, jax.random.key(0), one).tree
    call = functools.partial(jax.eval_shape, search, None, jax.random.key(0), two, tree=tree)
    assert_refused((call, "tree has 1 trees for 2 positions"))


def test_values_of_any_type_become_float32(tic_tac_toe):
    def evaluate(params, keys, states):
        return jnp.zeros((2, 9), jnp.bfloat16), jnp.zeros(2, jnp.bfloat16)

    search = make_search(PUCT(num_simulations=2), tic_tac_toe, evaluate, "azjax")
    states = init_batch(tic_tac_toe, 2)
    tree = jax.eval_shape(search, None, jax.random.key(0), states).tree
    assert tree.node_values.dtype == tree.raw_values.dtype == jnp.float32


def test_the_engine_is_the_one_chosen(monkeypatch, tic_tac_toe):
    """The results are equal, so only the calls of the loops tell them apart."""
    calls, states, key = [], init_batch(tic_tac_toe, 2), jax.random.key(0)

    def spy(engine, original, *args, **kwargs):
        calls.append(engine)
        return original(*args, **kwargs)

    monkeypatch.setattr(mctx, "search", functools.partial(spy, "mctx", mctx.search))
    for name, module in (("azjax", simulate), ("paths", paths)):
        monkeypatch.setattr(module, "simulate", functools.partial(spy, name, module.simulate))
    make = functools.partial(make_search, UCT(num_simulations=2), tic_tac_toe)
    given = {engine: (engine, "gpu") for engine in get_args(Engine)}
    fastest = {"paths": (None, "cuda"), "azjax": (None, "tpu")}
    for expected, (engine, platform) in [*given.items(), *fastest.items()]:
        monkeypatch.setattr(jax, "default_backend", lambda platform=platform: platform)
        search = make(uniform_evaluator(tic_tac_toe), engine)
        with monkeypatch.context() as patch:  # It is chosen when the search is built.
            patch.setattr(jax, "default_backend", None)
            jax.eval_shape(search, None, key, states)
        assert {*calls} == {expected}
        calls.clear()


def wrong_arguments(game):
    states, key = init_batch(game, 2), jax.random.key(0)
    search = make_search(PUCT(), game, uniform_evaluator(game))
    for arguments, fragment in (
        ({"temperature": np.array([1.0, np.nan])}, "nan]: use 0 or more"),
        ({"temperature": np.ones(3)}, "temperature has shape (3,): use one for all"),
        ({"add_noise": np.ones(3, bool)}, "add_noise has shape (3,): use one for all"),
    ):
        yield functools.partial(search, None, key, states, **arguments), fragment


def wrong_settings(game):
    for algorithm, name, value in [
        *((each, "num_simulations", 0) for each in (PUCT, Gumbel, UCT)),
        *((PUCT, "dirichlet_fraction", 1.5), (PUCT, "c_puct", -1.0)),
        *((PUCT, "first_play_urgency", "win"), (Gumbel, "max_considered_actions", 0)),
    ]:
        yield functools.partial(algorithm, **{name: value}), f"search.{name} is {value!r}: use "


def wrong_parts(game):
    """Engines, policies and evaluators."""
    evaluate, policy = uniform_evaluator(game), mctx.gumbel_muzero_policy
    states, key = init_batch(game, 1), jax.random.key(0)
    network = network_evaluator(game, make_network(MLPConfig(hidden=(4,), head_hidden=4), game))
    rows = [
        (
            make_search,
            (PUCT(), game, evaluate, "fast"),
            "engine is 'fast': use 'azjax' or 'paths' or 'mctx'",
        ),
        (MctxPolicy, (3,), "search.policy is 3, which is not of type Callable"),
        (MctxPolicy, (policy, 0), "search.num_simulations is 0"),
        (MctxPolicy, (mctx.stochastic_muzero_policy,), "other arguments than params, ..."),
        (make_search(PUCT(), game, network), (None, key, states), "params is None, and the eval"),
    ]
    yield from ((functools.partial(call, *given), fragment) for call, given, fragment in rows)


def wrong_states(game):
    """What the functions of `mctx_fns` are given."""
    fns, key = mctx_fns(game, uniform_evaluator(game)), jax.random.key(0)
    bad = mctx_fns(game, lambda params, keys, states: (jnp.zeros((1, 8)), jnp.zeros(1)))
    two, others = init_batch(game, 2), init_batch(make("connect_four"), 2)
    yield functools.partial(bad.root, None, key, init_batch(game, 1)), "the evaluator returns"
    yield (
        functools.partial(fns.root, None, jax.random.split(key, 3), two),
        "use one key, or a batch",
    )
    yield functools.partial(fns.invalid_actions, others), "use states of that game"
    yield functools.partial(fns.recurrent_fn, None, key, jnp.zeros(2, int), others), "of that game"


@pytest.mark.parametrize("rows", [wrong_arguments, wrong_settings, wrong_parts, wrong_states])
def test_refusals(rows, tic_tac_toe):
    assert_refused(*rows(tic_tac_toe))
