"""One iteration of training, from self-play to updated parameters, as a pure function.

`init(parts, key)` returns the first `TrainState`, and `iteration(parts, state)` the next one with
metrics. Both can be jitted, and vmapped over keys to train many networks together. `mesh.py`
compiles them for several devices.
"""

from typing import Any, NamedTuple

import flax.struct
import jax
import jax.numpy as jnp

from azjax.games.base import Step, init_batch
from azjax.search import make_search
from azjax.training import archive as archives
from azjax.training.archive import Archive
from azjax.training.learner import LearnerState, Losses
from azjax.training.parts import Parts, check_parts
from azjax.training.selfplay import Games, self_play, start_games
from azjax.training.targets import Sample, Transition, afterstate, no_extra


@flax.struct.dataclass
class TrainState:
    """The complete state of training between iterations."""

    learner: LearnerState
    replay: Any  # The replay buffer; leaves [shards, ...].
    games: Games  # The games in flight; leaves [B, ...].
    archive: Archive | None  # Positions from which games may start.
    key: jax.Array  # Of the run; iteration `i` uses only `fold_in(key, i)`.
    iteration: jax.Array  # int32 [], number of completed iterations.

    def __repr__(self):
        return f"TrainState(iteration={self.iteration!r})"


class Metrics(NamedTuple):
    """Metrics of one iteration, each `float32 []`."""

    losses: Losses  # By name, means over the optimizer steps of the iteration.
    games: jax.Array  # Number of finished games.


def init(parts: Parts, key: jax.Array) -> TrainState:
    """Returns the state before the first iteration; all random draws derive from the key."""
    check_parts(parts)
    key_network, key_games, key_run = jax.random.split(key, 3)
    game_keys = jax.random.split(key_games, parts.selfplay.games)
    games = start_games(parts.selfplay, parts.game, game_keys)
    places, first = parts.selfplay.archive, jax.tree.map(lambda leaf: leaf[0], games)
    return TrainState(
        learner=parts.learner.init(parts.network.init(key_network)),
        replay=parts.replay.init(example(parts), parts.replay.shards),
        games=games,
        archive=archives.make_archive(first, places) if places else None,
        key=key_run,
        iteration=jnp.zeros((), jnp.int32),
    )


def iteration(
    parts: Parts, state: TrainState, axis_name: str | None = None
) -> tuple[TrainState, Metrics]:
    """Runs one iteration: self-play, storing samples, learning.

    Under `jax.shard_map`, `state` is the part of one device, and `axis_name` is the mesh axis over
    which games and buffer are split and gradients are averaged.
    """
    check_parts(parts, 1 if axis_name is None else jax.lax.axis_size(axis_name))
    key = jax.random.fold_in(state.key, state.iteration)
    key_play, key_learn = jax.random.split(key)
    keys = local_keys(key_play, len(state.games.ply), axis_name)
    average = state.learner.average
    games, transitions = self_play(parts, average, keys, state.games, state.archive)
    shards = jax.tree.leaves(state.replay)[0].shape[0]
    samples = jax.tree.map(  # By game: [T, B, ...] become [D, K, ...].
        lambda leaf: jnp.swapaxes(leaf, 0, 1).reshape(shards, -1, *leaf.shape[2:]),
        parts.targets.make(transitions),
    )
    replay = parts.replay.add(state.replay, samples)
    learner, losses = _learn(parts, key_learn, state.learner, replay, axis_name)
    finished = jnp.sum(transitions.discount == 0, dtype=jnp.float32)
    metrics = Metrics(
        losses=jax.tree.map(jnp.mean, losses),
        games=finished if axis_name is None else jax.lax.psum(finished, axis_name),
    )
    archive = _remember(state.archive, transitions.new_starts, axis_name)
    return TrainState(learner, replay, games, archive, state.key, state.iteration + 1), metrics


def local_keys(key: jax.Array, count: int, axis_name: str | None) -> jax.Array:
    """Returns keys for the games or shards of this device.

    The key of a game or shard does not depend on the number of devices.
    """
    first = 0 if axis_name is None else jax.lax.axis_index(axis_name) * count
    return jax.vmap(lambda i: jax.random.fold_in(key, i))(first + jnp.arange(count))


def _remember(archive: Archive | None, met: Games, axis_name: str | None) -> Archive | None:
    """Adds games `[T, B, 2, ...]` to the archive, if there is one: the same on every device."""
    if archive is None:
        return None
    if axis_name is not None:
        met = jax.lax.all_gather(met, axis_name, axis=1, tiled=True)
    met = jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 0, 3), met)
    return archives.add(archive, met.states, met)


def _learn(
    parts: Parts, key: jax.Array, learner: LearnerState, replay: Any, axis_name: str | None
) -> tuple[LearnerState, Losses]:
    """Makes the optimizer steps of an iteration, with batches from the buffer."""
    shards, steps = jax.tree.leaves(replay)[0].shape[0], parts.learner.steps
    keys = local_keys(key, shards, axis_name)
    keys = jax.vmap(lambda key: jax.random.split(key, (steps, 2)))(keys)

    def step(learner, keys):
        samples = parts.replay.sample(replay, keys[:, 0])
        samples = jax.vmap(parts.targets.augment)(keys[:, 1], samples)
        batch = jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 0, 2), samples)
        return parts.learner.update(learner, batch, axis_name)

    return jax.lax.scan(step, learner, jnp.swapaxes(keys, 0, 1))


def example(parts: Parts) -> Sample:
    """Returns a sample with the shapes and types of the run."""

    def note():
        params = parts.network.fold(parts.network.init(jax.random.key(0)))
        search = make_search(parts.search, parts.game, parts.evaluate, parts.grow)
        return parts.targets.note(search(params, jax.random.key(0), init_batch(parts.game, 1)))

    # Without a note, no search is traced.
    notes = () if parts.targets.note is no_extra else jax.eval_shape(note)
    state = parts.game.init()
    legal = parts.game.legal_actions(state)
    step = Step(state, jnp.float32(0), jnp.float32(0))
    transition = Transition(
        planes=parts.game.observe(state, parts.network.encoding),
        legal=legal,
        action_weights=legal.astype(jnp.float32),
        root_value=jnp.zeros((), jnp.float32),
        action=jnp.zeros((), jnp.int32),
        reward=jnp.zeros((), jnp.float32),
        discount=jnp.zeros((), jnp.float32),
        extra=jax.tree.map(lambda leaf: jnp.zeros(leaf.shape[1:], leaf.dtype), notes),
        after=afterstate(parts.game, parts.network.encoding, step),
    )
    one = jax.tree.map(lambda leaf: leaf[None, None], transition)
    return jax.tree.map(lambda leaf: leaf[0, 0], parts.targets.make(one))
