# The types of flax and mctx say less than their values.
# pyright: reportCallIssue=false, reportArgumentType=false, reportOperatorIssue=false
"""AlphaZero in one file: rules, network, search, self-play and learning, for tic-tac-toe.

Every function is pure, and one iteration is one compiled program. The last lines count, with azjax,
the blunders of the network, without search, in all 4,520 positions with a move to choose.
"""

import sys
import time
from typing import Any, NamedTuple

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import mctx
import numpy as np
import optax

GAMES, MOVES, SIMULATIONS = 1024, 9, 16
STEPS, BATCH, KEPT = 128, 512, 2  # The replay buffer keeps the games of two iterations.
CELLS = np.arange(9).reshape(3, 3)
LINES = np.array([*CELLS, *CELLS.T, CELLS.diagonal(), CELLS[::-1].diagonal()])
SYMMETRIES = np.array([np.rot90(x, k).ravel() for x in (CELLS, CELLS.T) for k in range(4)])


class State(NamedTuple):
    """A position."""

    board: jax.Array  # int8 [9]: 1 for the player to move, -1 for the opponent, 0 if empty.
    over: jax.Array  # bool []

    @property
    def legal(self) -> jax.Array:
        """The legal actions, bool [9]; none after the end."""
        return (self.board == 0) & ~self.over[..., None]


def step(state: State, action: jax.Array) -> tuple[State, jax.Array]:
    """Returns the next state, and 1 if the move wins; nothing changes after the end."""
    board = state.board.at[action].set(1)
    won = jnp.any(jnp.all(board[LINES] == 1, axis=-1))
    after = State(-board, won | jnp.all(board != 0))
    after = jax.tree.map(lambda new, old: jnp.where(state.over, old, new), after, state)
    return after, jnp.where(state.over, 0.0, won)


class ResNet(nn.Module):
    """A residual network."""

    @nn.compact
    def __call__(self, board):
        """Returns logits [B, 9], and values [B] in [-1, 1] for the player to move."""
        x = jnp.concatenate([board == 1, board == -1], axis=-1).astype(jnp.float32)
        x = nn.relu(nn.Dense(256)(x))
        inner = nn.relu(nn.Dense(256)(nn.LayerNorm()(x)))
        x = nn.LayerNorm()(nn.relu(x + nn.Dense(256, kernel_init=nn.initializers.zeros)(inner)))
        policy, value = (nn.relu(nn.Dense(64)(x)) for _ in range(2))
        return nn.Dense(9)(policy), jnp.tanh(nn.Dense(1)(value)[:, 0])


network = ResNet()
rate = optax.cosine_decay_schedule(2e-3, 16 * STEPS, 0.1)
optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate))


def search(params: Any, key: jax.Array, states: State) -> mctx.PolicyOutput:
    """Searches from states [B, ...] by Gumbel AlphaZero (Danihelka et al. 2022)."""

    def evaluate(params, states):
        logits, value = network.apply(params, states.board)
        value = jnp.where(states.over, 0.0, value)
        return {"prior_logits": jnp.where(states.legal, logits, -1e9), "value": value}

    def recurrent_fn(params, key, actions, states):
        states, reward = jax.vmap(step)(states, actions)
        discount = jnp.where(states.over, 0.0, -1.0)  # The opponent moves next.
        outputs = evaluate(params, states)
        return mctx.RecurrentFnOutput(reward=reward, discount=discount, **outputs), states

    root = mctx.RootFnOutput(embedding=states, **evaluate(params, states))
    return mctx.gumbel_muzero_policy(params, key, root, recurrent_fn, SIMULATIONS, ~states.legal)


class Sample(NamedTuple):
    """Positions and what to learn about them."""

    board: jax.Array  # int8 [..., 9]
    policy: jax.Array  # float32 [..., 9], of the search.
    value: jax.Array  # float32 [...], the outcome of the game for the player to move.
    weight: jax.Array  # float32 [...]; 0: not to learn from.


def self_play(params: Any, key: jax.Array) -> Sample:
    """Plays all games, with up to eight random moves at first; returns samples [MOVES, GAMES]."""
    key_count, key_moves = jax.random.split(key)
    count = jax.random.randint(key_count, (GAMES,), 0, 9)  # Good players reach few positions.

    def move(states, ply):
        key_search, key_random = jax.random.split(jax.random.fold_in(key_moves, ply))
        output, is_random = search(params, key_search, states), ply < count
        noise = jnp.where(states.legal, jax.random.uniform(key_random, (GAMES, 9)), -1.0)
        action = jnp.where(is_random, jnp.argmax(noise, axis=1), output.action)
        after, reward = jax.vmap(step)(states, action)
        weight = jnp.where(is_random | states.over, 0.0, 1.0)
        return after, (Sample(states.board, output.action_weights, reward, weight), reward)

    def backward(outcome, reward):  # A win of one player is a loss of the other.
        outcome = jnp.where(reward > 0, reward, -outcome)
        return outcome, outcome

    states = State(jnp.zeros((GAMES, 9), jnp.int8), jnp.zeros(GAMES, bool))
    _, (samples, reward) = jax.lax.scan(move, states, jnp.arange(MOVES))
    _, outcomes = jax.lax.scan(backward, jnp.zeros(GAMES), reward, reverse=True)
    return samples._replace(value=outcomes)


def loss(params: Any, samples: Sample) -> jax.Array:
    """Squared error of the value plus cross-entropy of the policy (Silver et al. 2017)."""
    logits, value = network.apply(params, samples.board)
    chex.assert_equal_shape([value, samples.value, samples.weight])
    logits = jnp.where(samples.board == 0, logits, -1e9)
    errors = optax.softmax_cross_entropy(logits, samples.policy) + (value - samples.value) ** 2
    return jnp.sum(samples.weight * errors) / jnp.sum(samples.weight)


@jax.jit
def iteration(params: Any, opt_state: Any, buffer: Sample, key: jax.Array) -> tuple:
    """Plays, then learns from random symmetric copies of samples; returns the first three."""
    key_play, key_learn = jax.random.split(key)
    new = self_play(params, key_play)
    buffer = jax.tree.map(lambda old, x: jnp.roll(old, 1, axis=0).at[0].set(x), buffer, new)
    samples = jax.tree.map(lambda x: jax.lax.collapse(x, 0, 3), buffer)

    def update(learner, key):
        params, opt_state = learner
        rows, turns = jax.random.randint(key, (2, BATCH), 0, len(samples.value))
        batch = jax.tree.map(lambda x: x[rows], samples)
        cells = jnp.asarray(SYMMETRIES)[turns % 8]
        turned = (jnp.take_along_axis(x, cells, axis=1) for x in batch[:2])
        grads = jax.grad(loss)(params, Sample(*turned, *batch[2:]))
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return (optax.apply_updates(params, updates), opt_state), None

    keys = jax.random.split(key_learn, STEPS)
    (params, opt_state), _ = jax.lax.scan(update, (params, opt_state), keys)
    return params, opt_state, buffer


def main(seed: int) -> None:
    """Trains until the network has no blunder in any position."""
    import azjax as az

    solution = az.solve(az.make("tic_tac_toe"))
    states, optimal = solution.decision_states, solution.optimal[solution.decisions]
    boards = jnp.where(states.player[:, None] == 0, states.board, -states.board)
    started, key, blunders, number = time.time(), jax.random.key(seed), 1, 0
    params = network.init(key, boards)
    samples = jax.eval_shape(self_play, params, key)
    buffer = jax.tree.map(lambda x: jnp.zeros((KEPT, *x.shape), x.dtype), samples)
    state = params, optimizer.init(params), buffer
    while blunders:
        number += 1
        state = iteration(*state, jax.random.fold_in(key, number))
        logits = jnp.where(boards == 0, network.apply(state[0], boards)[0], -jnp.inf)
        blunders = int(jnp.sum(~optimal[jnp.arange(len(boards)), jnp.argmax(logits, axis=1)]))
        print(f"iteration {number}: {blunders} blunders, {time.time() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
