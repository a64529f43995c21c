"""Times of iterations on large boards, against the textbook baseline and by component."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pgx
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from azjax import training
from azjax.cli import console
from azjax.games.base import init_batch, play
from azjax.runs.config import make_parts
from experiments.benchmark import textbook
from experiments.benchmark.iterations import run_config, step
from experiments.benchmark.measuring import median_seconds, show
from experiments.benchmark.options import Large, Options

_PLIES = 2  # Few, so that iterations of large networks take seconds.


def time_large(options: Options) -> list[dict]:
    """Times iterations of azjax and the baseline in turn, with equal sizes and settings."""
    names = console.track(options.large_games, "large games")
    rows = [_time_game(options, name) for name in names]
    title = f"an iteration of {_PLIES} moves in each of {options.games:,} games, {options.sizes}"
    return show(f"{title}; medians of {options.repeats}", rows)


def _time_game(options: Options, name: Large) -> dict:
    mesh, key = training.make_mesh(), jax.random.key(0)
    config = run_config(options, mesh.size, options.games, _PLIES)
    parts = make_parts(dataclasses.replace(config, game=f"pgx:{name}"))
    held = [training.make_state(parts, key, mesh)]
    iterate = training.compiled(training.make_iteration(parts, mesh), held[0])
    textbook_iterate = _textbook_iteration(options, name, config.learner.batch_size)
    game, folded = parts.game, parts.network.fold(held[0].learner.average)
    spread = NamedSharding(mesh, PartitionSpec(training.AXIS))
    states = jax.device_put(init_batch(game, options.games), spread)
    evaluations = _PLIES * (options.simulations + 1)  # Network calls in the searches of one game.
    rules, both = (
        _play(parts, mesh, evaluations, evaluates).lower(folded, states).compile()
        for evaluates in (False, True)
    )
    seconds = median_seconds(
        options.repeats,
        azjax=lambda: step(iterate, held),
        textbook=textbook_iterate,
        rules=lambda: rules(folded, states),
        both=lambda: both(folded, states),
    )
    ours = seconds["azjax"]
    return {
        "game": f"pgx:{name}",
        "azjax, s": ours,
        "textbook, s": seconds["textbook"],
        "times as fast": seconds["textbook"] / ours,
        "network, %": 100 * (seconds["both"] - seconds["rules"]) / ours,
        "rules, %": 100 * seconds["rules"] / ours,
    }


def _play(parts: training.Parts, mesh: Mesh, moves: int, evaluates: bool) -> Any:
    """Builds `(folded, states [B]) -> states`, which plays moves with or without the network."""
    game = parts.game

    def move(folded, states):
        legal = jax.vmap(game.legal_actions)(states)
        logits, _ = parts.evaluate(folded, None, states) if evaluates else (legal, None)
        actions = jnp.argmax(jnp.where(legal, logits, -jnp.inf), axis=-1)
        return jax.vmap(lambda state, action: play(game, state, action).state)(states, actions)

    def play_all(folded, states):
        return jax.lax.scan(lambda x, _: (move(folded, x), None), states, None, moves)[0]

    spread = PartitionSpec(training.AXIS)
    specs = (PartitionSpec(), spread)
    return jax.jit(
        jax.shard_map(play_all, mesh=mesh, in_specs=specs, out_specs=spread, check_vma=False)
    )


def _textbook_iteration(options: Options, name: Large, batch: int) -> Callable[[], Any]:
    env = pgx.make(name)
    init, network = textbook.make_network(env, options.channels, options.blocks)
    search = textbook.make_search(env, "gumbel", network.apply, options.simulations)
    start, iterate = textbook.make_iteration(env, network, search, _PLIES, batch)
    key = jax.random.key(0)
    games = jax.jit(lambda: textbook.init_games(env, key, options.games))()
    training = start(jax.jit(init)(key), games)
    return lambda: iterate(training, jax.random.key(1))
