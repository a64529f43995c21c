"""Training targets from self-play, and their augmentation with symmetric copies."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

from azjax._settings import Fraction, Settings
from azjax.games.base import Game, Step, is_chance, where
from azjax.search import SearchResult


class Afterstate(NamedTuple):
    """The position after a move, before the dice that follow."""

    planes: jax.Array  # bool or float32 [H, W, C], its observation.
    discount: jax.Array  # float32 [], as of the move; 0 if nature is not to move there.


class Transition(NamedTuple):
    """One searched move; self-play stacks them to `[T, B, ...]`."""

    planes: jax.Array  # bool or float32 [H, W, C], the observation before the move.
    legal: jax.Array  # bool [A]
    action_weights: jax.Array  # float32 [A], the search's policy.
    root_value: jax.Array  # float32 [], `SearchResult.policy_value`, for the player to move.
    action: jax.Array  # int32 [], the move made.
    reward: jax.Array  # float32 [], to the player who moved.
    discount: jax.Array  # float32 [], see `games.base.Step`; 0 if the move ended the game.
    extra: Any = ()  # What `Targets.note` returns.
    after: Afterstate | tuple[()] = ()  # In games with chance.
    new_starts: Any = ()  # `Games [2, ...]` for the archive, if there is one.


def afterstate(game: Game, encoding: str, step: Step) -> Afterstate | tuple[()]:
    """Observes the position after one move."""
    if game.chance is None:
        return ()
    discount = jnp.where(is_chance(game, step.state), step.discount, 0.0)
    return Afterstate(game.observe(step.state, encoding), discount)


def no_extra(result: SearchResult) -> Any:
    """Records nothing about a search except its policy and value."""
    del result
    return ()


@dataclasses.dataclass(frozen=True)
class TargetConfig(Settings, section="targets"):
    """Settings of the value target."""

    outcome_weight: Fraction = 1.0
    """Weight of the game's outcome z in the value target; the rest is the root value of the search.
    For games that go on after the iteration, z is the value of the last search. AlphaZero: 1."""
    td_lambda: Fraction = 1.0
    """Lambda of TD(lambda): 1 is the outcome of the game; smaller values mix in the root values of
    later plies. AlphaZero: 1."""


class Sample(NamedTuple):
    """A training sample: one position."""

    planes: jax.Array  # bool or float32 [H, W, C]
    legal: jax.Array  # bool [A]
    policy: jax.Array  # float32 [A], the target policy; sums to 1.
    value: jax.Array  # float32 [], the target in [-1, 1], for the player to move.
    extra: Any = ()  # Further targets for a custom loss.


class Targets(NamedTuple):
    """Training targets as pure functions."""

    make: Callable[[Transition], Sample]  # `transitions [T, B, ...] -> Sample [T, B, ...]`.
    # `(key, Sample [B, ...]) -> Sample [B, ...]`, replaces each sample by a random symmetric copy.
    augment: Callable[[jax.Array, Sample], Sample]
    # `SearchResult -> extra`, further data about each search; passed to `make` as
    # `Transition.extra`.
    note: Callable[[SearchResult], Any] = no_extra


def make_targets(config: TargetConfig, game: Game) -> Targets:
    """Builds AlphaZero's targets: the search's policy, and the game's outcome."""
    return Targets(
        make=functools.partial(make_samples, config), augment=functools.partial(augment, game)
    )


def outcomes(transitions: Transition, td_lambda: float = 1.0) -> jax.Array:
    """Returns the outcomes `float32 [T, B]` at every ply, for the player to move there.

    The outcome is `z[t] = reward[t] + discount[t] * z[t + 1]`. With lambda below 1, `z[t + 1]` is
    replaced by `(1 - lambda) root_value + lambda z` there (TD(lambda), Sutton 1988). If a game has
    not ended after the last transition, its last `z` is the root value there (bootstrapping).
    """
    chex.assert_tree_shape_prefix(transitions, transitions.reward.shape)

    def backward(later, move: Transition):
        z = move.reward + move.discount * later
        return (1 - td_lambda) * move.root_value + td_lambda * z, z

    last = jax.tree.map(lambda leaf: leaf[-1], transitions)
    cut = jnp.where(last.discount == 0, last.reward, last.root_value)
    earlier = jax.tree.map(lambda leaf: leaf[:-1], transitions)
    carry = (1 - td_lambda) * last.root_value + td_lambda * cut
    _, z = jax.lax.scan(backward, carry, earlier, reverse=True)
    return jnp.concatenate([z, cut[None]])


def make_samples(config: TargetConfig, transitions: Transition) -> Sample:
    """Returns the samples of moves `[T, B, ...]`, with the same axes, or `[2 T, B]` with chance.

    With chance, searches evaluate positions before the dice, so the network learns their values as
    well. The loss of their policy is 0, which lowers its mean over a batch.
    """
    z = outcomes(transitions, config.td_lambda)
    weight = config.outcome_weight
    value = weight * z + (1 - weight) * transitions.root_value
    samples = Sample(transitions.planes, transitions.legal, transitions.action_weights, value)
    after = transitions.after
    if not isinstance(after, Afterstate):
        return samples
    # Nothing is earned by a move that nature follows, so z is the value after it, up to its sign.
    before_dice = Sample(
        after.planes,
        jnp.zeros_like(samples.legal),
        jnp.zeros_like(samples.policy),
        after.discount * z,
    )
    # The last z may be bootstrapped: the value of the best move instead of the one made.
    is_known = (after.discount != 0).at[-1].set(False)
    second = where(is_known, before_dice, samples)  # In other places, samples count twice.
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), samples, second)


def augment(game: Game, key: jax.Array, samples: Sample) -> Sample:
    """Applies a random symmetry of the game to each sample."""
    if game.symmetries is None:
        return samples
    if jax.tree.leaves(samples.extra):
        raise ValueError(
            "the samples have an extra, which a symmetry of the board may change: pass Targets a "
            "custom augment, for example lambda key, samples: samples"
        )
    size = samples.value.shape[0]
    chosen = jax.random.bits(key, (size,)) % game.num_symmetries
    return jax.vmap(lambda s, g: transform(game, s, g))(samples, chosen)


def transform(game: Game, sample: Sample, symmetry: jax.Array) -> Sample:
    """Applies the symmetry with the number `symmetry` to one sample."""
    if game.symmetries is None:
        return sample
    cells = jnp.asarray(game.symmetries.cells)[symmetry]
    actions = jnp.asarray(game.symmetries.actions)[symmetry]
    planes = sample.planes.reshape(len(cells), -1)[cells].reshape(sample.planes.shape)
    return Sample(planes, sample.legal[actions], sample.policy[actions], sample.value)
