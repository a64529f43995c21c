"""Every setting of a run changes the compiled program."""

import dataclasses
import functools
import re
import typing

import jax
import jax.numpy as jnp
import pytest

from azjax import training
from azjax._settings import find_kinds
from azjax.games.base import init_batch
from azjax.networks import MLPConfig, ResNetConfig
from azjax.runs import config as configs
from azjax.runs.config import Config
from azjax.search import PUCT, UCT, Gumbel, MctxGumbel, MctxMuZero, make_search
from azjax.search.evaluators import uniform_evaluator
from azjax.training import step as steps
from azjax.training.learner import LearnerConfig
from azjax.training.parts import SelfPlayConfig
from azjax.training.replay import ReplayConfig
from azjax.training.targets import Sample, TargetConfig, Transition

# Settings that others depend on.
SELFPLAY = SelfPlayConfig(games=4, unroll_length=2, opening_plies=2, archive=8)
REPLAY = ReplayConfig(capacity=32, shards=2)
LEARNER = LearnerConfig(batch_size=4, steps=2)
MLP = MLPConfig(hidden=(16,), head_hidden=8)
RESNET = ResNetConfig(width=16, blocks=1, head_hidden=8)
# A different value for each setting, in the order of the fields.
OTHERS = {
    MLP: {"encoding": "absolute", "hidden": (8,), "head_hidden": 16}
    | {"evaluation_dtype": "bfloat16", "learning_dtype": "bfloat16", "symmetric": True},
    RESNET: {"encoding": "absolute", "layers": "conv", "width": 8, "blocks": 2, "norm": "none"}
    | {"head_hidden": 16, "symmetric": True}
    | {"evaluation_dtype": "bfloat16", "learning_dtype": "bfloat16"},
    Gumbel(num_simulations=3): {"num_simulations": 4, "gumbel_scale": 0.5}
    | {"max_considered_actions": 2, "value_scale": 0.3, "maxvisit_init": 9.0}
    | {"engine": "mctx"},
    PUCT(num_simulations=3): {"num_simulations": 4, "c_puct": 2.0, "first_play_urgency": "loss"}
    | {"dirichlet_alpha": 0.7, "dirichlet_fraction": 0.5, "engine": "mctx"},
    UCT(num_simulations=3): {"num_simulations": 4, "exploration": 0.5, "engine": "mctx"},
    MctxMuZero(num_simulations=3): {"num_simulations": 4, "pb_c_init": 0.5}
    | {"dirichlet_alpha": 0.7, "dirichlet_fraction": 0.5},
    MctxGumbel(num_simulations=3): {"num_simulations": 4, "gumbel_scale": 0.5}
    | {"max_num_considered_actions": 2},
    SELFPLAY: {"games": 8, "games_at_once": 2, "unroll_length": 3, "carry_over": False}
    | {"opening_share": 0.7, "opening_plies": 3, "archive": 16, "archive_share": 0.7}
    | {"temperature": 0.7, "temperature_plies": 5},
    TargetConfig(): {"outcome_weight": 0.7, "td_lambda": 0.7},
    REPLAY: {"capacity": 64, "shards": 1},
    LEARNER: {"batch_size": 8, "steps": 3, "optimizer": "sgd", "learning_rate": 0.1}
    | {"warmup_steps": 7, "decay_steps": 70, "final_learning_rate": 0.007, "l2": 0.7}
    | {"weight_decay": 0.7, "clip_norm": 0.7, "value_weight": 0.7, "policy_surprise": 0.7}
    | {"ema_decay": 0.7},
}
NO_PROGRAM = {"kind", "algorithm"}  # Tags, which select the class.
EVERY = [(section, name) for section, changes in OTHERS.items() for name in changes]


def section_of(settings):
    """The field of `Config` that such settings belong to."""
    hints = typing.get_type_hints(Config)
    return next(name for name, hint in hints.items() if isinstance(settings, hint))


BLANK = Sample(jnp.zeros((3, 3, 2), bool), jnp.ones(9, bool), jnp.ones(9) / 9, jnp.zeros(()))
MOVES = Transition(*[jnp.zeros((2, 1))] * 7)


def explore(name, parts, key):
    """Traces the functions that depend on a section."""
    game, network = parts.game, parts.network
    if name == "targets":
        return parts.targets.make(MOVES)
    if name == "search":
        search = make_search(parts.search, game, uniform_evaluator(game))
        return search(None, key, init_batch(game, 2), 1.0, True)
    if name == "selfplay":
        state = training.init(parts, key)
        keys = steps.local_keys(key, len(state.games.ply), None)
        average = state.learner.average
        return state.games, steps.self_play(parts, average, keys, state.games, state.archive)
    variables = network.init(key)
    if name == "network":
        planes = game.observe(game.init(), network.encoding)[None]
        inferred = network.infer(network.fold(variables), planes)
        return network.train(variables, planes, None), inferred
    replay = parts.replay.init(BLANK, parts.replay.shards)
    return steps._learn(parts, key, parts.learner.init(variables), replay, None)


@functools.cache
def program(settings, again=0):
    """Returns the program of a section as text, without any cache."""
    del again
    sections = {"network": MLP, "search": PUCT(num_simulations=2), "selfplay": SELFPLAY}
    sections |= {"replay": REPLAY, "learner": LEARNER, section_of(settings): settings}
    parts = configs._make_parts.__wrapped__(Config(**sections), None, None, "cpu")
    traced = jax.make_jaxpr(functools.partial(explore, section_of(settings), parts))
    closed = traced(jax.random.key(0))
    constants = [jnp.asarray(constant).tolist() for constant in closed.consts]
    return re.sub(" at 0x[0-9a-f]+", "", str(closed)), constants


@pytest.mark.parametrize(
    ("settings", "name"), EVERY, ids=[f"{type(s).__name__}.{name}" for s, name in EVERY]
)
def test_every_setting_changes_the_program(settings, name):
    other = dataclasses.replace(settings, **{name: OTHERS[settings][name]})
    assert program(other) != program(settings)


@pytest.mark.parametrize("network", [MLP, RESNET], ids=lambda network: network.kind)
@pytest.mark.parametrize("name", ["evaluation_dtype", "learning_dtype"])
def test_the_arithmetic_is_a_setting_of_layers_that_symmetries_share(name, network):
    settings = dataclasses.replace(network, symmetric=True)
    assert program(dataclasses.replace(settings, **{name: "bfloat16"})) != program(settings)


@pytest.mark.parametrize("settings", OTHERS, ids=lambda settings: type(settings).__name__)
def test_the_same_settings_make_the_same_program(settings):
    """Otherwise the tests of changed settings could not fail."""
    assert program(settings, 1) == program(settings)


def test_no_setting_is_left_out():
    classes = set()
    for name, hint in typing.get_type_hints(Config).items():
        kinds = find_kinds(hint)
        found = kinds.classes.values() if kinds else [hint]
        classes |= {cls for cls in found if dataclasses.is_dataclass(cls)}
        assert dataclasses.is_dataclass(hint) or kinds or name in ("game", "seed", "parts")
    classes.remove(configs.CustomNetworkConfig)  # Has no effect.
    assert {type(settings) for settings in OTHERS} == classes
    for settings, changes in OTHERS.items():
        names = {field.name for field in dataclasses.fields(settings)}
        assert changes.keys() == names - NO_PROGRAM


# Devices.

SHARED = Config(
    selfplay=SelfPlayConfig(games=16, unroll_length=4),
    replay=ReplayConfig(capacity=64),
    learner=LearnerConfig(batch_size=32),
)


def numbers(config):
    """Games, batch, capacity and shards."""
    replay = config.replay
    return config.selfplay.games, config.learner.batch_size, replay.capacity, replay.shards


@pytest.mark.parametrize(
    ("devices", "keep", "expected"),
    [
        (4, (), (16, 32, 64, 8)),
        (3, (), (18, 33, 72, 3)),
        (6, (), (18, 36, 72, 6)),
        (16, (), (16, 32, 64, 16)),
        (100, (), (100, 100, 400, 100)),
        (3, ("replay.shards",), (16, 32, 64, 8)),
        (3, ("selfplay.games",), (16, 33, 64, 3)),
        (3, ("learner.batch_size", "seed"), (18, 32, 72, 3)),
        (3, ("replay.capacity",), (18, 33, 64, 3)),
    ],
)
def test_settings_are_rounded_up_for_the_devices(devices, keep, expected):
    fitted = configs.fit_devices(SHARED, devices, keep)
    assert numbers(fitted) == expected
    if numbers(fitted) == numbers(SHARED):
        assert fitted is SHARED
    named = [name for name in keep if name.partition(".")[2]]
    if not named:
        training.check_parts(configs.make_parts(fitted), devices)
        return
    with pytest.raises(ValueError, match=named[0]):
        training.check_parts(configs.make_parts(fitted), devices)
