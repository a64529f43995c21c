"""Invalid custom parts are refused with one sentence before anything compiles."""

import dataclasses
import types
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
import pytest

import azjax
from azjax.games.base import init_batch
from azjax.networks import MLPConfig, from_module, make_network
from azjax.players import network_agent
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.runs.player import changed
from azjax.search import PUCT, make_resumable, make_search
from azjax.search.evaluators import network_evaluator, uniform_evaluator
from azjax.training.learner import make_learner
from azjax.training.parts import check_parts
from azjax.training.step import example
from azjax.training.targets import TargetConfig, make_targets

GAME, OTHER = azjax.make("tic_tac_toe"), azjax.make("connect_four")
TINY = MLPConfig(hidden=(4,), head_hidden=4)
NETWORK = make_network(TINY, GAME)
PARTS = make_parts(dataclasses.replace(presets.smoke(presets.get("default")), network=TINY))
SEARCH = PUCT(num_simulations=2)


def refused(sentence, call, *arguments, **named):
    with pytest.raises(ValueError) as error:
        call(*arguments, **named)
    assert sentence in str(error.value) and "\n" not in str(error.value)


# Losses.

LOSSES = {
    "a scalar": (lambda *_: jnp.zeros(()), "the loss returns float32[]: return a pair, the total"),
    "no terms": (
        lambda *_: (jnp.zeros(()), 3.0),
        "return a pair, the total, float32 [], and a",
    ),
    "three": (
        lambda *_: (jnp.zeros(()), {}, {}),
        "return a pair, the total, float32 [], and a",
    ),
    "none": (lambda *_: None, "the loss returns None: return a pair"),
    "a batch": (
        lambda outputs, *_: (outputs[1], {}),
        "the total of the loss is float32[2]: make it float32 [], such as a mean over the batch",
    ),
    "an integer": (
        lambda *_: (jnp.int32(1), {}),
        "the total of the loss is int32[]: make",
    ),
    "a term": (
        lambda outputs, *_: (jnp.zeros(()), {"moves_left": outputs[1]}),
        "the moves_left of the loss is float32[2]: make it",
    ),
    "a text": (lambda *_: (jnp.zeros(()), {"name": "x"}), "the name of the loss is str[]: make it"),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_with_wrong_outputs(name):
    loss, sentence = LOSSES[name]
    learner = make_learner(NETWORK, optax.sgd(0.1), loss)
    state = jax.eval_shape(lambda: learner.init(NETWORK.init(jax.random.key(0))))
    one = jax.eval_shape(lambda: example(PARTS))
    samples = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((2, *leaf.shape), leaf.dtype), one)
    refused(sentence, jax.eval_shape, lambda *given: learner.update(*given, None), state, samples)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"network": nn.Dense(3)}, "the network is of type Dense: use a Network"),
        ({"optimizer": optax.adam}, "the optimizer is of type function: use one of optax, such as"),
        ({"loss": 0.5}, "the loss is of type float: use a function (outputs, params, samples"),
        ({"steps": 0}, "steps is 0: use a whole number, 1 or more"),
        ({"steps": 1.5}, "steps is 1.5: use a whole number"),
        ({"ema_decay": "0.9"}, "ema_decay is '0.9': use 0 up to, not including, 1"),
        ({"ema_decay": 1.0}, "ema_decay is 1.0: use 0 up to, not including, 1"),
    ],
)
def test_a_learner_with_wrong_arguments(change, sentence):
    refused(sentence, make_learner, **({"network": NETWORK, "optimizer": optax.sgd(0.1)} | change))


# Networks.


class WithoutTrain(nn.Module):
    @nn.compact
    def __call__(self, planes):
        x = planes.reshape(len(planes), -1)
        return nn.Dense(9)(x), nn.Dense(1)(x)[:, 0]


class Dropping(nn.Module):
    @nn.compact
    def __call__(self, planes, train=False):
        x = nn.Dropout(0.5, deterministic=not train)(planes.reshape(len(planes), -1))
        return nn.Dense(9)(x), nn.Dense(1)(x)[:, 0]


class OneHead(nn.Module):
    @nn.compact
    def __call__(self, planes, **how):
        return nn.Dense(9)(planes.reshape(len(planes), -1))


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        (
            WithoutTrain(),
            "WithoutTrain.__call__(self, planes) does not take train: write __call__(",
        ),
        (WithoutTrain, "is the class WithoutTrain, not a Flax module: pass an instance, such as"),
        (len, "the module is of type builtin_function_or_method, not a Flax module: use"),
        (Dropping(), "or draws random numbers (Dropout_0 needs PRNG for "),
        (OneHead(), "the module returns float32[3, 9]: make it a tuple that starts with logits"),
    ],
)
def test_a_module_that_cannot_be_a_network(module, sentence):
    refused(sentence, from_module, GAME, module)


# Parts of different games, or of the wrong kind.

MIXED = (
    "the network was made for planes [3, 3, 2] and 9 actions, and connect_four has [6, 7, 2] and 7"
)


def test_a_network_of_another_game():
    refused(f"{MIXED}: make it for connect_four", network_evaluator, OTHER, NETWORK)
    refused("the network is of type Dense: use a Network", network_evaluator, OTHER, nn.Dense(3))
    unknown = NETWORK._replace(made_for=None)  # As in a record that is made by hand.
    network_evaluator(OTHER, unknown)
    same = GAME._replace(name="another")
    network_evaluator(same, NETWORK)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"game": OTHER}, MIXED),
        ({"network": dataclasses.replace(TINY)}, "the network is of type MLPConfig: use a Network"),
        ({"game": "hex"}, "parts.game is of type str: use a Game, as azjax.make returns"),
        ({"search": PUCT}, "the search is the class PUCT: pass an instance, such as PUCT()"),
        (
            {"selfplay": {}},
            "parts.selfplay is of type dict: use a SelfPlayConfig, as SelfPlayConfig",
        ),
        ({"targets": TargetConfig()}, "parts.targets is of type TargetConfig: use a Targets, as"),
        ({"replay": None}, "parts.replay is of type NoneType: use a Replay, as replay.make_replay"),
        ({"learner": optax.sgd(0.1)}, "use a Learner, as learner.make_learner returns"),
    ],
)
def test_parts_that_do_not_fit_together(change, sentence):
    check_parts(PARTS)
    refused(sentence, check_parts, PARTS._replace(**change))


def test_targets_of_another_game():
    one = jax.eval_shape(lambda: example(PARTS))
    samples = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((2, *leaf.shape), leaf.dtype), one)
    augment = make_targets(TargetConfig(), OTHER).augment
    sentence = "the targets were made for connect_four, and a sample has planes [3, 3, 2] and 9 act"
    refused(sentence, jax.eval_shape, augment, jax.random.key(0), samples)


# Searches and evaluators.


@dataclasses.dataclass(frozen=True)
class Incomplete:
    algorithm: str = "mine"
    num_simulations: int = 4


@dataclasses.dataclass(frozen=True)
class Wrong(Incomplete):
    num_simulations: str = "4"
    is_deterministic: bool = True


@pytest.mark.parametrize("make", [make_search, make_resumable])
@pytest.mark.parametrize(
    ("algorithm", "sentence"),
    [
        (
            Incomplete(),
            "the search, of type Incomplete, has no is_deterministic: give it is_determ",
        ),
        (
            Wrong(),
            "the search, of type Wrong, has the num_simulations '4': give it num_simulations",
        ),
        ("puct", "the search, of type str, has no algorithm: give it algorithm, its name, see"),
        (PUCT, "the search is the class PUCT: pass an instance, such as PUCT()"),
    ],
)
def test_a_search_that_lacks_members(algorithm, sentence, make):
    refused(sentence, make, algorithm, GAME, uniform_evaluator(GAME))
    refused(
        "the evaluator is of type Network: use one of azjax.search.evaluators",
        make,
        SEARCH,
        GAME,
        NETWORK,
    )


def test_settings_of_a_search_that_is_not_a_dataclass():
    search: Any = types.SimpleNamespace(
        algorithm="mine", num_simulations=3, is_deterministic=True, select=len
    )
    assert changed(search) is search
    sentence = "the search, of type SimpleNamespace, is not a dataclass, so its settings cannot be"
    refused(sentence, changed, search, num_simulations=4)
    refused("the search is the class PUCT: pass an instance", changed, PUCT, num_simulations=4)


def one_value(params, key, states):
    return jnp.zeros((len(states.board), 9)), jnp.zeros(())


@pytest.mark.parametrize("act", ["search", "agent"])
@pytest.mark.parametrize(
    ("evaluate", "sentence"),
    [
        (
            one_value,
            "for 2 positions of tic_tac_toe the evaluator returns (float32[2, 9], float32[])",
        ),
        (
            lambda *_: None,
            "the evaluator returns None: make it a tuple that starts with logits [2, 9",
        ),
        (lambda *_: (jnp.zeros((2, 7)), jnp.zeros(2)), "returns (float32[2, 7], float32[2]): make"),
        (network_evaluator(OTHER, make_network(TINY, OTHER)), "a batch of connect_four is State("),
    ],
)
def test_an_evaluator_with_other_outputs(evaluate, sentence, act):
    states, key = init_batch(GAME, 2), jax.random.key(0)
    find = make_search(SEARCH, GAME, evaluate)
    if act == "agent":
        find = network_agent(GAME, evaluate, None).act
    refused(sentence, jax.eval_shape, find, None, key, states)
