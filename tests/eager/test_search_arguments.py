"""What a search depends on, and what it refuses, while it is traced."""

import functools
import types

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax import make
from azjax.games.base import init_batch
from azjax.games.tic_tac_toe import from_board
from azjax.networks import MLPConfig, make_network
from azjax.search import (
    ALGORITHMS,
    PUCT,
    UCT,
    Gumbel,
    MctxMuZero,
    from_mctx,
    make_resumable,
    make_search,
    mctx_fns,
    network_evaluator,
    uniform_evaluator,
)
from azjax.search import make as making
from refusals import assert_refused


def test_a_search_does_not_rely_on_the_length_of_the_longest_game(tic_tac_toe):
    """A record whose `max_plies` is too small gives the same program."""
    states, key = init_batch(tic_tac_toe, 2), jax.random.key(0)
    evaluate = uniform_evaluator(tic_tac_toe)

    def program(game):
        search = make_search(PUCT(num_simulations=2), game, evaluate)
        return str(jax.make_jaxpr(search)(None, key, states))

    assert program(tic_tac_toe._replace(max_plies=1)) == program(tic_tac_toe)


def test_the_engine_is_the_one_chosen(monkeypatch, tic_tac_toe):
    """The results are equal, so only the calls of the two loops tell them apart."""
    calls, states, key = [], init_batch(tic_tac_toe, 2), jax.random.key(0)

    def spy(engine, original, *args, **kwargs):
        calls.append(engine)
        return original(*args, **kwargs)

    monkeypatch.setattr(mctx, "search", functools.partial(spy, "mctx", mctx.search))
    monkeypatch.setattr(making, "simulate", functools.partial(spy, "azjax", making.simulate))
    for default, given, expected in [
        ("azjax", None, "azjax"),
        ("mctx", None, "mctx"),
        ("mctx", "azjax", "azjax"),
        ("azjax", "mctx", "mctx"),
    ]:
        config = UCT(num_simulations=2, engine=default)
        search = make_search(config, tic_tac_toe, uniform_evaluator(tic_tac_toe), given)
        jax.eval_shape(search, None, key, states)
        assert {*calls} == {expected}
        calls.clear()


def wrong_arguments(game):
    states, key = init_batch(game, 2), jax.random.key(0)
    search = make_search(PUCT(), game, uniform_evaluator(game))
    for arguments, fragment in (
        ({"temperature": -0.5}, "temperature is -0.5: use 0 or more"),
        ({"temperature": float("nan")}, "temperature is nan: use 0 or more"),
        ({"temperature": np.array([1.0, np.nan])}, "nan]: use 0 or more"),
        ({"temperature": np.ones(3)}, "temperature has shape (3,): use one for all"),
        ({"add_noise": np.ones(3, bool)}, "add_noise has shape (3,): use one for all"),
    ):
        call = functools.partial(search, None, key, states, **arguments)
        yield from ((call, fragment), (jax.jit(call), fragment))


def wrong_settings():
    for algorithm, name, value in [
        *((each, "num_simulations", 0) for each in (PUCT, Gumbel, UCT, MctxMuZero)),
        *((each, "engine", "mcts") for each in (PUCT, Gumbel, UCT)),
        *((PUCT, "dirichlet_fraction", share) for share in (1.5, -0.1)),
        *((PUCT, "dirichlet_alpha", 0.0), (PUCT, "c_puct", -1.0)),
        *((PUCT, "first_play_urgency", "win"), (PUCT, "algorithm", "gumbel")),
        *((Gumbel, "max_considered_actions", 0), (Gumbel, "gumbel_scale", -1.0)),
        *((Gumbel, "value_scale", -1.0), (Gumbel, "maxvisit_init", -1.0)),
        *((UCT, "exploration", -1.0), (MctxMuZero, "dirichlet_fraction", 1.5)),
    ]:
        yield functools.partial(algorithm, **{name: value}), f"search.{name} is {value!r}: use "


def wrong_parts(game):
    """Engines, policies, evaluators, and algorithms that cannot be resumed."""
    evaluate, known = uniform_evaluator(game), "use 'azjax' or 'mctx'"
    states, key, policy = init_batch(game, 1), jax.random.key(0), mctx.gumbel_muzero_policy
    members = {"algorithm": "custom", "num_simulations": 1, "is_deterministic": True}
    custom = types.SimpleNamespace(**members, select=PUCT().select, engine="mcts")
    network = network_evaluator(game, make_network(MLPConfig(hidden=(4,), head_hidden=4), game))
    steps = make_resumable(from_mctx(policy), game, evaluate)
    rows = [
        (make_search, (PUCT(), game, evaluate, "fast"), "the search's engine is 'fast': " + known),
        (make_search, (custom, game, evaluate), "the search's engine is 'mcts': " + known),
        (make_search, ("puct", game, evaluate), "the search, of type str, has no algorithm"),
        (make_resumable, (PUCT, game, evaluate), "the search is the class PUCT: pass an inst"),
        (make_resumable, (PUCT(), game, "uniform"), "the evaluator is of type str"),
        (from_mctx, (3,), "search.policy is 3, which is not of type Callable"),
        (from_mctx, (policy, 0), "search.num_simulations is 0"),
        (
            from_mctx,
            (mctx.stochastic_muzero_policy,),
            "other arguments than params, ... a required argument",
        ),
        (
            jax.eval_shape,
            (steps.init, None, key, states, 32),
            "mctx runs its own loop, which cannot stop",
        ),
        (
            make_search(PUCT(), game, network),
            (None, key, states),
            "params is None, and the evaluator is a network",
        ),
    ]
    yield from ((functools.partial(call, *given), fragment) for call, given, fragment in rows)


def wrong_states(game):
    """What the functions of `mctx_fns` are given."""
    fns = mctx_fns(game, uniform_evaluator(game))
    bad = mctx_fns(game, lambda params, keys, states: (jnp.zeros((1, 8)), jnp.zeros(1)))
    two, key, actions = init_batch(game, 2), jax.random.key(0), jnp.zeros(2, jnp.int32)
    yield functools.partial(mctx_fns, game, "uniform"), "the evaluator is of type str"
    yield functools.partial(bad.root, None, key, init_batch(game, 1)), "the evaluator returns"
    for call, before in (
        (fns.root, lambda key: (None, key)),
        (fns.recurrent_fn, lambda key: (None, key, actions)),
        (fns.invalid_actions, lambda key: ()),
    ):
        for states, keys, fragment in (
            (from_board([0] * 9), key, "states must be a batch, with one leading axis"),
            (init_batch(make("connect_four"), 2), key, "use states of that game"),
            (two, jnp.zeros(2, jnp.uint32), "use typed keys"),
            (two, jax.random.split(key, 3), "use one key, or a batch of"),
        ):
            if before(key) or states is not two:
                yield functools.partial(call, *before(keys), states), fragment


@pytest.mark.parametrize("rows", [wrong_arguments, wrong_parts, wrong_states])
def test_refusals(rows, tic_tac_toe):
    assert_refused(*rows(tic_tac_toe))


def test_refused_settings():
    assert UCT(exploration=0).exploration == 0 and {*ALGORITHMS} == {"puct", "gumbel", "uct"}
    assert_refused(*wrong_settings())
