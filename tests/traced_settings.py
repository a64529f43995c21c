"""The program of each section of settings, to find settings without effect."""

import dataclasses
import functools
import re
import typing

import jax
import jax.numpy as jnp

from azjax import games, training
from azjax.games.base import init_batch
from azjax.networks import MLPConfig, ResNetConfig
from azjax.runs import config as configs
from azjax.runs.config import Config
from azjax.search import PUCT, UCT, Gumbel, MctxGumbel, MctxMuZero, make_search, uniform_evaluator
from azjax.training import LearnerConfig, ReplayConfig, SelfPlayConfig
from azjax.training import step as steps
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
    | {"max_considered_actions": 2, "value_scale": 0.3, "maxvisit_init": 9.0},
    PUCT(num_simulations=3): {"num_simulations": 4, "c_puct": 2.0, "first_play_urgency": "loss"}
    | {"dirichlet_alpha": 0.7, "dirichlet_fraction": 0.5},
    UCT(num_simulations=3): {"num_simulations": 4, "exploration": 0.5},
    MctxGumbel(num_simulations=3): {"num_simulations": 4},
    MctxMuZero(num_simulations=3): {"num_simulations": 4},
    SELFPLAY: {"games": 8, "games_at_once": 2, "unroll_length": 3, "carry_over": False}
    | {"opening_share": 0.7, "opening_plies": 3, "archive": 16, "archive_share": 0.7}
    | {"temperature": 0.7, "temperature_plies": 5},
    TargetConfig(): {"outcome_weight": 0.7, "td_lambda": 0.7},
    REPLAY: {"capacity": 64, "shards": 1},
    LEARNER: {"batch_size": 8, "steps": 3, "optimizer": "sgd", "learning_rate": 0.1}
    | {"warmup_steps": 7, "decay_steps": 70, "final_learning_rate": 0.0007, "l2": 0.7}
    | {"weight_decay": 0.7, "clip_norm": 0.7, "value_weight": 0.7, "policy_surprise": 0.7}
    | {"ema_decay": 0.7},
}


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
    sections = {"network": MLP, "search": PUCT(num_simulations=3), "selfplay": SELFPLAY}
    sections |= {"replay": REPLAY, "learner": LEARNER, section_of(settings): settings}
    game = games.make(Config.game)
    parts = configs._make_parts.__wrapped__(Config(**sections), game, None, "cpu")
    traced = jax.make_jaxpr(functools.partial(explore, section_of(settings), parts))
    closed = traced(jax.random.key(0))
    constants = [jnp.asarray(constant).tolist() for constant in closed.consts]
    return re.sub(" at 0x[0-9a-f]+", "", str(closed)), constants


def without_effect(settings, changes):
    """The changes that leave the program as it is; first, that two traces of one are equal."""
    assert program(settings, 1) == program(settings)
    others = {name: dataclasses.replace(settings, **{name: changes[name]}) for name in changes}
    return [name for name, other in others.items() if program(other) == program(settings)]
