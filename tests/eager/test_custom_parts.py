"""Invalid custom parts are refused with one sentence before anything compiles."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import optax

import azjax
from azjax.games.base import init_batch
from azjax.networks import MLPConfig, make_network
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.search import PUCT, make_search
from azjax.search.evaluators import network_evaluator, uniform_evaluator
from azjax.training.learner import make_learner
from azjax.training.parts import check_parts
from azjax.training.step import example
from azjax.training.targets import TargetConfig, make_targets
from refusals import assert_refused

GAME, OTHER = azjax.make("tic_tac_toe"), azjax.make("connect_four")
TINY = MLPConfig(hidden=(4,), head_hidden=4)
NETWORK = make_network(TINY, GAME)
PARTS = make_parts(dataclasses.replace(presets.smoke(presets.get("default")), network=TINY))
SEARCH = PUCT(num_simulations=2)


def samples():
    one = jax.eval_shape(lambda: example(PARTS))
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((2, *leaf.shape), leaf.dtype), one)


MIXED = (
    "the network was made for planes [3, 3, 2] and 9 actions, and connect_four has [6, 7, 2] and 7"
)


@dataclasses.dataclass(frozen=True)
class Incomplete:
    algorithm: str = "mine"
    num_simulations: int = 4


def test_losses_with_wrong_outputs():
    def update(loss):
        learner = make_learner(NETWORK, optax.sgd(0.1), loss)
        state = jax.eval_shape(lambda: learner.init(NETWORK.init(jax.random.key(0))))
        given = state, samples()
        return lambda: jax.eval_shape(lambda *given: learner.update(*given, None), *given)

    zero = jnp.zeros(())
    assert_refused(
        (update(lambda *_: zero), "the loss returns float32[]: return a pair, the total"),
        (update(lambda outputs, *_: (outputs[1], {})), "the total of the loss is float32[2]: make"),
        (update(lambda outputs, *_: (zero, {"a": outputs[1]})), "the a of the loss is float32[2]"),
    )


def test_parts_that_do_not_fit_together():
    check_parts(PARTS)
    augment = make_targets(TargetConfig(), OTHER).augment
    key, states = jax.random.key(0), init_batch(GAME, 2)
    wide = make_search(SEARCH, GAME, lambda *_: (jnp.zeros((2, 7)), jnp.zeros(2)))
    changes: list[tuple[dict[str, Any], str]] = [
        ({"game": OTHER}, MIXED),
        ({"network": TINY}, "the network is of type MLPConfig: use a Network"),
        ({"search": PUCT}, "the search is the class PUCT: pass an instance, such as PUCT()"),
        ({"targets": TargetConfig()}, "parts.targets is of type TargetConfig: use a Targets, as"),
        ({"learner": optax.sgd(0.1)}, "use a Learner, as learner.make_learner returns"),
    ]
    make: Any = functools.partial(make_search, game=GAME, evaluate=uniform_evaluator(GAME))
    assert_refused(
        *((functools.partial(check_parts, PARTS._replace(**c)), said) for c, said in changes),
        (lambda: network_evaluator(OTHER, NETWORK), f"{MIXED}: make it for connect_four"),
        (
            lambda: jax.eval_shape(augment, key, samples()),
            "the targets were made for connect_four, and a sample has planes [3, 3, 2] and 9 act",
        ),
        (lambda: make(Incomplete()), "the search, of type Incomplete, has no is_deterministic: "),
        (lambda: make(SEARCH, evaluate=NETWORK), "the evaluator is of type Network: use one"),
        (
            lambda: jax.eval_shape(wide, None, key, states),
            "returns (float32[2, 7], float32[2]): make",
        ),
    )
    network_evaluator(GAME._replace(name="another"), NETWORK)
