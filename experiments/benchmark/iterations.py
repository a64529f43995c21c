"""Times of iterations: self-play by number of games, and verification."""

from collections.abc import Callable
from typing import Any

import jax
from jax.sharding import Mesh, PartitionSpec

from azjax import training
from azjax.cli import console
from azjax.networks import ResNetConfig
from azjax.proof.callbacks import Verification
from azjax.runs import Config, make_parts, presets
from azjax.search import Gumbel
from azjax.training import LearnerConfig, ReplayConfig, SelfPlayConfig, memory, self_play
from experiments.benchmark.options import Options, median_seconds, show

_BATCH = 1024  # Batch size of the learner.
_PLIES = 2  # With --batch; few, so that the largest sizes take seconds.


def run_config(
    options: Options, devices: int, games: int, plies: int, opening_plies: int = 0
) -> Config:
    """Returns settings with `plies` moves per game, each sampled once on average."""
    moves = games * plies
    batch = min(_BATCH, moves) // devices * devices
    return Config(
        game=options.game,
        network=ResNetConfig(
            layers="conv",
            norm="batch",
            width=options.channels,
            blocks=options.blocks,
            evaluation_dtype="auto",
            learning_dtype="auto",
        ),
        search=Gumbel(num_simulations=options.simulations),
        selfplay=SelfPlayConfig(
            games=games, unroll_length=plies, opening_share=1.0, opening_plies=opening_plies
        ),
        replay=ReplayConfig(capacity=4 * moves, shards=devices),
        learner=LearnerConfig(batch_size=batch, steps=moves // batch),
    )


def step(iterate: Any, held: list[training.TrainState]) -> training.Metrics:
    """Runs one iteration on the state in `held`, which is donated and replaced."""
    held[0], metrics = iterate(held[0])
    return metrics


def make_play(parts: training.Parts, mesh: Mesh) -> Callable:
    """Compiles the self-play of an iteration alone."""

    def play(state):
        key = jax.random.fold_in(state.key, state.iteration)
        keys = training.local_keys(key, len(state.games.ply), training.AXIS)
        return self_play(parts, state.learner.average, keys, state.games, state.archive)

    specs = PartitionSpec(training.AXIS), PartitionSpec(None, training.AXIS)
    return jax.jit(
        jax.shard_map(
            play, mesh=mesh, in_specs=(training.state_specs(),), out_specs=specs, check_vma=False
        )
    )


def time_batches(options: Options) -> list[dict]:
    """Times self-play with each number of games."""
    mesh = training.make_mesh()
    sizes = console.track(options.batch_sizes, "self-play")
    rows = [_time_batch(options, mesh, games) for games in sizes]
    title = f"{options.game}, self-play, gumbel, {options.sizes}; medians of {options.repeats}"
    return show(title, rows)


def _time_batch(options: Options, mesh: Mesh, games: int) -> dict:
    # Random openings, so that two moves cover positions of all lengths.
    parts = make_parts(run_config(options, mesh.size, games, _PLIES, opening_plies=8))
    state = training.make_state(parts, jax.random.key(0), mesh)
    play = training.compiled(make_play(parts, mesh), state)
    seconds = median_seconds(options.repeats, play=lambda: play(state))["play"]
    return {
        "games": games,
        "moves/s": games * _PLIES / seconds,
        "microseconds/move": 1e6 * seconds / (games * _PLIES),
        "search, bytes/game": memory.tree_bytes(parts.search, parts.game),
    }


def time_verification(options: Options) -> list[dict]:
    """Times iterations of the preset `default` and verifications in turn."""
    parts, mesh = make_parts(presets.get("default")), training.make_mesh()
    held = [training.make_state(parts, jax.random.key(0), mesh)]
    iterate = training.compiled(training.make_iteration(parts, mesh), held[0])
    verify = Verification(parts)._examine
    seconds = median_seconds(
        options.repeats,
        iteration=lambda: step(iterate, held),
        verification=lambda: verify(training.one_copy(held[0].learner.average)),
    )
    row = {f"{name}, ms": 1e3 * taken for name, taken in seconds.items()}
    row["verification over iteration, %"] = 100 * seconds["verification"] / seconds["iteration"]
    return show(f"preset default; medians of {options.repeats}", [row])
