"""Iterations of games with large boards against the textbook's, and where their time goes."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pgx
from jax.sharding import NamedSharding, PartitionSpec
from rich.progress import track

from azjax import train
from azjax.config import make_parts
from azjax.game import Game, State, init_batch, play
from experiments.benchmark import textbook
from experiments.benchmark.iterations import go_on, run_config
from experiments.benchmark.measuring import median_seconds, show
from experiments.benchmark.options import Large, Options

_PLIES = 2  # Few, so that large networks take seconds.


def time_large(options: Options) -> list[dict]:
    """Times iterations of both sides in turn, from the same sizes and with the same learning."""
    names = track(options.large_games, "large games", transient=True)
    rows = [_time_game(options, name) for name in names]
    title = f"an iteration of {_PLIES} moves in each of {options.games:,} games, {options.sizes}"
    return show(f"{title}; medians of {options.repeats}", rows)


def _time_game(options: Options, name: Large) -> dict:
    mesh, key = train.make_mesh(), jax.random.key(0)
    config = run_config(options, mesh.size, options.games, _PLIES)
    parts = make_parts(dataclasses.replace(config, game=f"pgx:{name}"))
    held = [train.make_state(parts, key, mesh)]
    iterate = train.compiled(train.make_iteration(parts, mesh), held[0])
    theirs = _textbook_iteration(options, name, config.learner.batch_size)
    game, folded = parts.game, parts.network.fold(held[0].learner.ema_params)
    spread = NamedSharding(mesh, PartitionSpec(train.AXIS))
    states = jax.device_put(init_batch(game, options.games), spread)
    planes = jax.vmap(lambda state: game.observe(state, parts.network.encoding))(states)
    network = train.compiled(jax.jit(parts.network.infer), folded, planes)
    rules = train.compiled(jax.jit(jax.vmap(lambda state: _meet(game, state))), states)
    seconds = median_seconds(
        options.repeats,
        azjax=lambda: go_on(iterate, held),
        textbook=theirs,
        network=lambda: network(folded, planes),
        rules=lambda: rules(states),
    )
    asked = _PLIES * (options.simulations + 1)  # Positions that a game's searches ask about.
    ours = seconds["azjax"]
    return {
        "game": f"pgx:{name}",
        "azjax, s": ours,
        "textbook, s": seconds["textbook"],
        "times as fast": seconds["textbook"] / ours,
        "network, %": 100 * asked * seconds["network"] / ours,
        "rules, %": 100 * asked * seconds["rules"] / ours,
    }


def _textbook_iteration(options: Options, name: Large, batch: int) -> Callable[[], Any]:
    env = pgx.make(name)
    _, network = textbook.make_network(env, options.channels, options.blocks)
    search = textbook.make_search(env, "gumbel", network.apply, options.simulations)
    init, iterate = textbook.make_iteration(env, network, search, _PLIES, batch)
    training = jax.jit(init, static_argnums=1)(jax.random.key(0), options.games)
    return lambda: iterate(training, jax.random.key(1))


def _meet(game: Game, state: State) -> tuple[Any, ...]:
    """All that a search does with a new position by the rules."""
    after = play(game, state, jnp.argmax(game.legal_actions(state)))
    return after, game.legal_actions(after.state), game.observe(after.state, "relative")
