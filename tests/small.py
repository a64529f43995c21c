"""Networks, parts of training and run directories, small enough for tests."""

import functools
import types

import jax

from azjax import runs, training
from azjax.networks import ResNetConfig
from azjax.runs import checkpoint, make_parts
from azjax.training import SelfPlayConfig, Targets

conv = functools.partial(ResNetConfig, layers="conv", norm="batch")  # As in the papers.


def take(tree, rows):
    return jax.tree.map(lambda leaf: leaf[rows], tree)


class Playing(types.SimpleNamespace):
    """Parts that functions may keep what they compile for."""

    __hash__ = object.__hash__


def playing(game, search, evaluate, encoding="relative", grow=None, **settings):
    """What self-play reads of the parts of a training, with any evaluator instead of a network."""
    return Playing(
        game=game,
        network=types.SimpleNamespace(encoding=encoding, fold=lambda variables: variables),
        search=search,
        evaluate=evaluate,
        selfplay=SelfPlayConfig(**settings),
        targets=Targets(make=None, augment=None),
        grow=grow,
    )


def make_run(run_dir, config, iterations=(0,), game=None, network=None):
    """Creates a run with a checkpoint for each iteration; returns its folder."""
    mesh, parts = training.make_mesh(), make_parts(config, game, network)
    state = training.make_state(parts, jax.random.key(config.seed), mesh)
    runs.create_run(run_dir, config)
    for iteration in iterations:
        at = state.replace(iteration=state.iteration + iteration)
        checkpoint.write(run_dir, checkpoint.copy(at), keep=len(iterations))
    return run_dir
