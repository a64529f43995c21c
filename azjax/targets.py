"""What the network learns from self-play: targets, and symmetric copies of samples."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from azjax.game import Game
from azjax.selfplay import Transition
from azjax.settings import check_range, check_types


@dataclasses.dataclass(frozen=True)
class TargetConfig:
    """What the value head learns."""

    outcome_weight: float = 1.0
    """Share of the game's outcome z in the value target; the rest is the search's root
    value. AlphaZero: 1."""
    trace_decay: float = 1.0
    """Lambda of TD(lambda): 1 carries the outcome back unchanged, less blends in the root
    value at every ply on the way. AlphaZero: 1."""

    def __post_init__(self):
        check_types("targets", self)
        check_range("targets", self, "outcome_weight trace_decay", 0, 1)


class Sample(NamedTuple):
    """One position to learn from.

    Attributes:
      planes: `bool [H, W, C]`.
      legal: `bool [A]`.
      policy: `float32 [A]`, the target policy; sums to 1.
      value: `float32 []`, the target value in [-1, 1], for the player to move.
    """

    planes: jax.Array
    legal: jax.Array
    policy: jax.Array
    value: jax.Array


def outcomes(transitions: Transition, trace_decay: float = 1.0) -> jax.Array:
    """Carries results back to every ply, each from the view of the player to move there.

    The outcome obeys `z[t] = reward[t] + discount[t] * z[t + 1]`; with a trace decay below
    1, `z[t + 1]` is blended with the root value there (TD(lambda), Sutton 1988). A game
    that the fragment cuts off is bootstrapped: its last `z` is the search's root value.

    Args:
      transitions: leaves `[T, B, ...]`.
      trace_decay: lambda in [0, 1].

    Returns:
      `float32 [T, B]`.
    """

    def backward(z_next, t: Transition):
        z = t.reward + t.discount * z_next
        return (1 - trace_decay) * t.root_value + trace_decay * z, z

    last = jax.tree.map(lambda leaf: leaf[-1], transitions)
    cut = jnp.where(last.discount == 0, last.reward, last.root_value)
    earlier = jax.tree.map(lambda leaf: leaf[:-1], transitions)
    carry = (1 - trace_decay) * last.root_value + trace_decay * cut
    _, z = jax.lax.scan(backward, carry, earlier, reverse=True)
    return jnp.concatenate([z, cut[None]])


def make_samples(config: TargetConfig, transitions: Transition) -> Sample:
    """Turns moves `[T, B, ...]` into samples of the same leading axes."""
    z = outcomes(transitions, config.trace_decay)
    weight = config.outcome_weight
    value = weight * z + (1 - weight) * transitions.root_value
    return Sample(transitions.planes, transitions.legal, transitions.action_weights, value)


def augment(game: Game, key: jax.Array, samples: Sample) -> Sample:
    """Applies a random symmetry of the board to each sample, planes and policy alike.

    Args:
      game: gives the symmetries.
      key: one key for the batch.
      samples: leaves `[B, ...]`.
    """
    size = samples.value.shape[0]
    chosen = jax.random.bits(key, (size,)) % game.num_symmetries
    return jax.vmap(lambda s, g: transform(game, s, g))(samples, chosen)


def transform(game: Game, sample: Sample, symmetry: jax.Array) -> Sample:
    """Applies symmetry number `symmetry` to one sample."""
    cells = jnp.asarray(game.symmetries.cells)[symmetry]
    actions = jnp.asarray(game.symmetries.actions)[symmetry]
    planes = sample.planes.reshape(len(cells), -1)[cells].reshape(sample.planes.shape)
    return Sample(planes, sample.legal[actions], sample.policy[actions], sample.value)
