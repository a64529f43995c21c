"""MuZero (Schrittwieser et al. 2020) for tic-tac-toe: the search plays in a model that is learned.

A search knows the legal moves at its root and no other rule: below it, every action is allowed, and
the network predicts positions, rewards and the end of the game. `LearnedModel` is an algorithm, so
all of azjax takes it. The targets hold the moves after a position; the loss unrolls the model over
them.
"""

import dataclasses
import functools
import sys
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

import azjax
from azjax import search, training
from azjax.games import Game
from azjax.networks import from_module
from azjax.training import Parts, Sample, Targets, Transition

UNROLL = 5  # Moves over which the model is trained.


class Model(nn.Module):
    """Representation, dynamics and prediction; a hidden state is `float32 [width]`."""

    num_actions: int
    width: int = 128

    def setup(self):
        """Makes the layers."""

        def layers():
            hidden, out = nn.Dense(self.width), nn.Dense(self.width)
            return nn.Sequential([hidden, nn.relu, out, nn.LayerNorm()])

        self.encoder, self.dynamics, self.trunk = layers(), layers(), nn.Dense(self.width)
        self.policy, self.value, self.reward = map(nn.Dense, (self.num_actions, 1, 1))

    def __call__(self, planes, train: bool = False):
        """Represents positions: returns `(logits [B, A], value [B], hidden states)`."""
        hidden = self.encoder(planes.reshape(len(planes), -1) * 1.0)
        if self.is_initializing():
            self.play(hidden, jnp.zeros(len(planes), jnp.int32))
        return *self.predict(hidden), hidden

    def predict(self, hidden):
        """Returns `(logits [B, A], value [B])`, for the player to move."""
        x = nn.relu(self.trunk(hidden))
        return self.policy(x), jnp.tanh(self.value(x)[:, 0])

    def play(self, hidden, actions):
        """Returns the hidden states after a move, its reward, and the prediction there."""
        moves = jax.nn.one_hot(actions, self.num_actions)
        hidden = self.dynamics(jnp.concatenate([hidden, moves], axis=-1))
        return hidden, jnp.tanh(self.reward(hidden)[:, 0]), *self.predict(hidden)


def play(model: Model, variables: Any, hidden: jax.Array, actions: jax.Array) -> Any:
    """Returns `Model.play` with these variables."""
    return model.apply(variables, hidden, actions, method="play")


@dataclasses.dataclass(frozen=True)
class LearnedModel:
    """Gumbel AlphaZero in trees of hidden states: Gumbel MuZero."""

    game: Game
    model: Model
    num_simulations: int = 16
    algorithm: str = "muzero"
    is_deterministic: bool = True

    def select(self, roots: search.Roots) -> search.SearchResult:
        """Searches from hidden states; `expand` applies the model instead of the rules."""
        planner = search.Gumbel(self.num_simulations)
        if roots.params is None:  # An evaluator without a network, as in the estimate of memory.
            return search.search_roots(planner, roots, search.simulate.grow)

        def expand(keys, actions, hidden):
            hidden, reward, logits, value = play(self.model, roots.params, hidden, actions)
            return search.Expansion(hidden, reward, -jnp.ones_like(reward), logits, value)

        planes = jax.vmap(lambda state: self.game.observe(state, "relative"))(roots.states)
        *_, hidden = self.model.apply(roots.params, planes)
        roots = roots._replace(states=hidden, expand=expand)
        return search.search_roots(planner, roots, search.simulate.grow)


class Window(NamedTuple):
    """The moves after a position, `[..., UNROLL]`; once the game is over, those of another game."""

    action: jax.Array  # int32
    reward: jax.Array  # float32, of the move; 0 once the game is over.
    policy: jax.Array  # float32 [..., UNROLL, A], the target after the move.
    value: jax.Array  # float32, the target after the move; 0 once the game is over.
    is_over: jax.Array  # bool, after the move.
    is_known: jax.Array  # bool, whether self-play got that far.


def make_targets(game: Game) -> Targets:
    """Returns AlphaZero's targets, with the `Window` of each position as `extra`."""
    usual, symmetries = training.make_targets(training.TargetConfig(), game), game.symmetries
    assert symmetries is not None

    def make(transitions: Transition) -> Sample:
        sample = usual.make(transitions)
        left = len(sample.value) - jnp.arange(len(sample.value))[:, None]  # Recorded moves.
        is_over, window = jnp.zeros(sample.value.shape, bool), []
        for k in range(UNROLL):
            move = jax.tree.map(lambda leaf, k=k: jnp.roll(leaf, -k, axis=0), transitions)
            after = jax.tree.map(lambda leaf, k=k: jnp.roll(leaf, -k - 1, axis=0), sample)
            reward = jnp.where(is_over, 0.0, move.reward)
            is_over |= (move.discount == 0) & (left > k)
            value, is_known = jnp.where(is_over, 0.0, after.value), is_over | (left > k + 1)
            window.append(Window(move.action, reward, after.policy, value, is_over, is_known))
        return sample._replace(extra=jax.tree.map(lambda *x: jnp.stack(x, axis=2), *window))

    def augment(key, samples: Sample) -> Sample:
        chosen = jax.random.randint(key, samples.value.shape, 0, game.num_symmetries)
        turned = jax.vmap(lambda s, g: training.transform(game, s, g))(samples, chosen)
        window, actions = samples.extra, jnp.asarray(symmetries.actions)[chosen]
        action = jnp.take_along_axis(jnp.argsort(actions, axis=1), window.action, axis=1)
        policy = jnp.take_along_axis(window.policy, actions[:, None], axis=2)
        return turned._replace(extra=window._replace(action=action, policy=policy))

    return usual._replace(make=make, augment=augment)


def unrolled_loss(model: Model, outputs: Any, params: Any, samples: Sample, axis_name: str | None):
    """Returns the loss of policy, value and reward, in the position and over its window."""
    logits, value, hidden = outputs
    policy_loss = optax.softmax_cross_entropy(logits, samples.policy)
    value_loss, reward_loss = jnp.square(value - samples.value), jnp.zeros_like(value)
    for k in range(UNROLL):
        target: Window = jax.tree.map(lambda leaf, k=k: leaf[:, k], samples.extra)
        hidden = (hidden + jax.lax.stop_gradient(hidden)) / 2  # Halves the gradient.
        hidden, reward, logits, value = play(model, {"params": params}, hidden, target.action)
        weight = target.is_known / UNROLL
        cross_entropy = optax.softmax_cross_entropy(logits, target.policy)
        policy_loss += weight * jnp.where(target.is_over, 0.0, cross_entropy)
        value_loss += weight * jnp.square(value - target.value)
        reward_loss += weight * jnp.square(reward - target.reward)
    terms = {"policy_loss": policy_loss, "value_loss": value_loss, "reward_loss": reward_loss}
    return jnp.mean(policy_loss + value_loss + reward_loss), jax.tree.map(jnp.mean, terms)


def make_parts() -> Parts:
    """Returns the parts; also usable as `azjax train --parts FILE.py:make_parts`."""
    game = azjax.make("tic_tac_toe")
    model = Model(game.num_actions)
    network = from_module(game, model)
    optimizer = training.make_optimizer(training.LearnerConfig(decay_steps=4_000))
    loss = functools.partial(unrolled_loss, model)
    return Parts(
        game=game,
        network=network,
        search=LearnedModel(game, model),
        selfplay=training.SelfPlayConfig(games=256, unroll_length=16),
        targets=make_targets(game),
        replay=training.make_replay(training.ReplayConfig(), batch_size=256),
        learner=training.make_learner(network, optimizer, loss),
    )


def main(iterations: int = 30, seed: int = 0) -> None:
    """Trains, and counts blunders in all positions: of the network, and of its search."""
    parts, key = make_parts(), jax.random.key(seed)
    solution, evaluate = azjax.solve(parts.game), parts.evaluate
    states, find = solution.decision_states, azjax.make_search(parts.search, parts.game, evaluate)

    @jax.jit
    def outputs(params):
        result = find(params, key, states)
        moves = jax.nn.one_hot(result.action, parts.game.num_actions)
        return evaluate(params, key, states), (moves, result.value)

    state = training.init(parts, key)
    step = jax.jit(functools.partial(training.iteration, parts))
    for number in range(1, iterations + 1):
        state, _ = step(state)
        both = outputs(parts.network.fold(state.learner.average))
        alone, searched = (azjax.proof.verify_outputs(solution, *each).blunders for each in both)
        print(f"iteration {number}: {alone} blunders alone, {searched} with the search")
        if searched == 0:
            break


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
