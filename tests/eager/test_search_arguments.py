"""What a search depends on, and what it refuses, while it is traced."""

import functools
import re

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax import make
from azjax.games.base import init_batch
from azjax.networks import MLPConfig, make_network
from azjax.search import (
    ALGORITHMS,
    PUCT,
    UCT,
    Gumbel,
    MctxGumbel,
    MctxMuZero,
    MctxPolicy,
    make_search,
    mctx_fns,
    network_evaluator,
    paths,
    simulate,
    uniform_evaluator,
)
from refusals import assert_refused


def test_values_of_any_type_become_float32(tic_tac_toe):
    def evaluate(params, keys, states):
        return jnp.zeros((2, 9), jnp.bfloat16), jnp.zeros(2, jnp.bfloat16)

    search = make_search(PUCT(num_simulations=2), tic_tac_toe, evaluate)
    states = init_batch(tic_tac_toe, 2)
    tree = jax.eval_shape(search, None, jax.random.key(0), states).tree
    assert tree.node_values.dtype == tree.raw_values.dtype == jnp.float32


def test_trees_grow_in_the_loop_of_the_platform_or_the_one_given(monkeypatch, tic_tac_toe):
    """The results are equal, so only the calls of the loops tell them apart."""
    calls = []

    def spy(module, original, *args):
        calls.append(module)
        return original(*args)

    for module in (simulate, paths):
        monkeypatch.setattr(module, "simulate", functools.partial(spy, module, module.simulate))
    for platform, grow, size, expected in (
        *(
            ("cuda", None, 2, paths),
            ("tpu", None, 2, simulate),
            ("gpu", simulate.grow, 2, simulate),
        ),
        *(("cpu", paths.grow, 8192, paths), ("cpu", paths.grow, 8193, simulate)),
    ):
        monkeypatch.setattr(jax, "default_backend", lambda platform=platform: platform)
        search = make_search(UCT(2), tic_tac_toe, uniform_evaluator(tic_tac_toe), grow)
        with monkeypatch.context() as patch:  # It is chosen when the search is built.
            patch.setattr(jax, "default_backend", None)
            states = jax.eval_shape(lambda size=size: init_batch(tic_tac_toe, size))
            jax.eval_shape(search, None, jax.random.key(0), states)
        assert {*calls} == {expected}
        calls.clear()


def test_the_policies_of_mctx_have_names(tic_tac_toe):
    def program(algorithm):
        search = make_search(algorithm, tic_tac_toe, uniform_evaluator(tic_tac_toe))
        arguments = None, jax.random.key(0), init_batch(tic_tac_toe, 2), 1.0, True
        return re.sub(" at 0x[0-9a-f]+", "", str(jax.make_jaxpr(search)(*arguments)))

    muzero, gumbel = mctx.muzero_policy, mctx.gumbel_muzero_policy
    for name, policy in ((MctxMuZero, muzero), (MctxGumbel, gumbel)):
        assert program(name(3)) == program(MctxPolicy(policy, 3)) != program(name(4))


def test_the_first_argument_of_an_algorithm_is_its_number_of_simulations():
    for algorithm in ALGORITHMS.values():
        assert algorithm(50) == algorithm(num_simulations=50) != algorithm()


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
    """Policies and evaluators."""
    policy = mctx.gumbel_muzero_policy
    states, key = init_batch(game, 1), jax.random.key(0)
    network = network_evaluator(game, make_network(MLPConfig(hidden=(4,), head_hidden=4), game))
    rows = [
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
    yield functools.partial(fns.invalid_actions, others), "a batch of tic_tac_toe is"
    yield functools.partial(fns.recurrent_fn, None, key, jnp.zeros(2, int), others), "these"


@pytest.mark.parametrize("rows", [wrong_arguments, wrong_settings, wrong_parts, wrong_states])
def test_refusals(rows, tic_tac_toe):
    assert_refused(*rows(tic_tac_toe))
