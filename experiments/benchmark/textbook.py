# mctx's dataclasses hide their fields and shapes from type checkers.
# pyright: reportCallIssue=false
"""The baseline: AlphaZero written the usual way from public libraries, without azjax.

It uses pgx's environment, flax's convolutions with BatchNorm and mctx's policies with their
defaults; games restart in a scan of fixed length.
"""

from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import mctx
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
