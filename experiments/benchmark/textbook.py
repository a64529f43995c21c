# mctx's dataclasses hide their fields and shapes from type checkers.
# pyright: reportCallIssue=false
"""The baseline: AlphaZero written the usual way from public libraries, without azjax.

It uses pgx's environment, flax's convolutions with BatchNorm and mctx's policies with their
defaults; games restart in a scan of fixed length. An iteration learns from each of its moves once,
as in pgx's AlphaZero example.
"""

from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import mctx
import optax
from pgx.experimental.wrappers import auto_reset


class ResNet(nn.Module):
    """The residual tower of AlphaGo Zero."""

    channels: int
    blocks: int
    num_actions: int

    @nn.compact
    def __call__(self, x, train: bool = False):
        """Returns `(logits [B, A], value [B])` for pgx's observations `[B, H, W, C]`."""

        def layer(x, features=self.channels, size=3):
            x = nn.Conv(features, (size, size), use_bias=False)(x)
            return nn.BatchNorm(use_running_average=not train, momentum=0.9)(x)

        x = nn.relu(layer(x.astype(jnp.float32)))
        for _ in range(self.blocks):
            x = nn.relu(x + layer(nn.relu(layer(x))))
        policy = nn.relu(layer(x, features=2, size=1)).reshape(len(x), -1)
        value = nn.relu(layer(x, features=1, size=1)).reshape(len(x), -1)
        value = nn.Dense(1)(nn.relu(nn.Dense(64)(value)))
        return nn.Dense(self.num_actions)(policy), jnp.tanh(value[:, 0])


class Move(NamedTuple):
    """Records of self-play, leaves `[T, B, ...]`."""

    observation: jax.Array
    weights: jax.Array
    reward: jax.Array
    terminated: jax.Array


class Training(NamedTuple):
    """The state between iterations."""

    variables: Any
    optimizer: Any
    games: Any


def make_network(env: Any, channels: int, blocks: int):
    """Returns `init(key) -> variables` and the network."""
    network = ResNet(channels, blocks, env.num_actions)
    observation = jnp.zeros((1, *env.observation_shape))
    return lambda key: network.init(key, observation), network


def init_games(env: Any, key, games: int):
    """Starts a batch of games."""
    return jax.vmap(env.init)(jax.random.split(key, games))


def make_search(env: Any, algorithm: str, evaluate, simulations: int):
    """Builds `search(variables, key, states) -> mctx.PolicyOutput`."""
    policy = {"puct": mctx.muzero_policy, "gumbel": mctx.gumbel_muzero_policy}[algorithm]

    def recurrent(variables, key, action, state):
        del key
        player = state.current_player
        state = jax.vmap(env.step)(state, action)
        logits, value = evaluate(variables, state.observation)
        logits = jnp.where(state.legal_action_mask, logits, jnp.finfo(jnp.float32).min)
        output = mctx.RecurrentFnOutput(
            reward=state.rewards[jnp.arange(len(player)), player],
            discount=jnp.where(state.terminated, 0.0, -1.0),
            prior_logits=logits,
            value=jnp.where(state.terminated, 0.0, value),
        )
        return output, state

    def search(variables, key, state):
        logits, value = evaluate(variables, state.observation)
        root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=state)
        invalid = ~state.legal_action_mask
        return policy(variables, key, root, recurrent, simulations, invalid_actions=invalid)

    return search


def make_selfplay(env: Any, search, plies: int):
    """Builds `play(variables, key, states) -> (states, Move [T, B])`, with auto-reset."""
    step = auto_reset(env.step, env.init)

    def play(variables, key, state):
        def move(state, key):
            key_search, key_reset = jax.random.split(key)
            output = search(variables, key_search, state)
            player = state.current_player
            keys = jax.random.split(key_reset, len(player))
            after = jax.vmap(step)(state, output.action, keys)
            reward = after.rewards[jnp.arange(len(player)), player]
            record = Move(state.observation, output.action_weights, reward, after.terminated)
            return after, record

        return jax.lax.scan(move, state, jax.random.split(key, plies))

    return play


def make_iteration(env: Any, network: ResNet, search, plies: int, batch: int):
    """Builds `start(variables, games) -> Training` and `iterate(Training, key) -> Training`.

    Self-play is one program, and an optimizer step is another.
    """
    play, optimizer = jax.jit(make_selfplay(env, search, plies)), optax.adam(1e-3)

    def start(variables, games):
        return Training(variables, optimizer.init(variables["params"]), games)

    def loss(params, statistics, sample):
        observation, weights, target, is_known = sample
        variables = {"params": params, "batch_stats": statistics}
        (logits, value), changed = network.apply(
            variables, observation, train=True, mutable=["batch_stats"]
        )
        policy = optax.softmax_cross_entropy(logits, weights).mean()
        return policy + jnp.mean(is_known * (value - target) ** 2), changed["batch_stats"]

    @jax.jit
    def learn(variables, state, sample):
        gradients, statistics = jax.grad(loss, has_aux=True)(
            variables["params"], variables["batch_stats"], sample
        )
        updates, state = optimizer.update(gradients, state)
        params = optax.apply_updates(variables["params"], updates)
        return {"params": params, "batch_stats": statistics}, state

    @jax.jit
    def shuffle(key, moves):
        """Adds outcomes of ended games; returns random batches `[steps, batch, ...]`."""

        def back(carry, move):
            target, is_known = carry
            target = jnp.where(move.terminated, move.reward, -target)
            is_known = is_known | move.terminated
            return (target, is_known), (target, is_known)

        nothing = jnp.zeros(moves.reward.shape[1])
        _, values = jax.lax.scan(back, (nothing, nothing > 0), moves, reverse=True)
        order = jax.random.permutation(key, moves.reward.size)
        order = order[: len(order) // batch * batch].reshape(-1, batch)
        samples = (moves.observation, moves.weights, *values)
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[order], samples)

    def iterate(training, key):
        key_play, key_order = jax.random.split(key)
        games, moves = play(training.variables, key_play, training.games)
        samples = shuffle(key_order, moves)
        variables, state = training.variables, training.optimizer
        for step in range(len(samples[0])):
            variables, state = learn(variables, state, jax.tree.map(lambda x: x[step], samples))
        return Training(variables, state, games)

    return start, iterate
