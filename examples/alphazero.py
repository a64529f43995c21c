# pyright: reportCallIssue=false, reportArgumentType=false, reportOperatorIssue=false
"""AlphaZero in one file: rules, network, search, self-play and learning, for tic-tac-toe.

All functions are pure. The last lines count, with azjax, the network's blunders in all positions.
"""

import itertools
import sys
import time
from typing import Any

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import mctx
import numpy as np
import optax
from flax.training.train_state import TrainState

GAMES, MOVES, SIMULATIONS, STEPS, BATCH = 1024, 8, 16, 128, 512
CELLS = np.arange(9).reshape(3, 3)
LINES = np.array([*CELLS, *CELLS.T, CELLS.diagonal(), CELLS[::-1].diagonal()])
SYMMETRIES = np.array([np.rot90(x, k).ravel() for x in (CELLS, CELLS.T) for k in range(4)])


def step(board: jax.Array, action: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns the next board, the reward (1 if the move wins), and whether the game is over.

    A board is int8 [9]: 1 for the player to move, -1 for the opponent, 0 if empty.
    """
    after = -board.at[action].set(1)
    is_won = jnp.any(jnp.all(after[LINES] == -1, axis=1))
    return after, is_won.astype(jnp.float32), is_won | jnp.all(after != 0)


class ResNet(nn.Module):
    """A residual network."""

    @nn.compact
    def __call__(self, boards):
        """Returns logits [B, 9], and values [B] in [-1, 1] for the player to move."""
        x = jnp.concatenate([boards == 1, boards == -1], axis=-1).astype(jnp.float32)
        x = nn.relu(nn.Dense(256)(x))
        inner = nn.relu(nn.Dense(256)(nn.LayerNorm()(x)))
        x = nn.LayerNorm()(nn.relu(x + nn.Dense(256, kernel_init=nn.initializers.zeros)(inner)))
        policy, value = (nn.relu(nn.Dense(64)(x)) for _ in range(2))
        logits = jnp.where(boards == 0, nn.Dense(9)(policy), -1e9)
        return logits, jnp.tanh(nn.Dense(1)(value)[:, 0])


network, optimizer = ResNet(), optax.adam(2e-3)


def search(params: Any, key: jax.Array, boards: jax.Array) -> mctx.PolicyOutput:
    """Searches from boards [B, 9] by Gumbel AlphaZero (Danihelka et al. 2022)."""

    def recurrent_fn(params, key, action, boards):
        boards, reward, is_over = jax.vmap(step)(boards, action)
        logits, value = network.apply(params, boards)
        discount = jnp.where(is_over, 0.0, -1.0)  # The opponent moves next.
        outputs = {"prior_logits": logits, "value": value}
        return mctx.RecurrentFnOutput(reward=reward, discount=discount, **outputs), boards

    logits, value = network.apply(params, boards)
    root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=boards)
    given = {"num_simulations": SIMULATIONS, "invalid_actions": boards != 0}
    return mctx.gumbel_muzero_policy(params, key, root, recurrent_fn, **given)


def start(key: jax.Array) -> jax.Array:
    """Returns boards [GAMES, 9] after up to 8 random moves; good players reach few positions."""
    key_count, key_moves = jax.random.split(key)
    count = jax.random.randint(key_count, (GAMES,), 0, 9)

    def move(ply, boards):
        logits = jnp.where(boards == 0, 0.0, -1e9)
        action = jax.random.categorical(jax.random.fold_in(key_moves, ply), logits)
        after, _, is_over = jax.vmap(step)(boards, action)
        return jnp.where(((ply < count) & ~is_over)[:, None], after, boards)

    return jax.lax.fori_loop(0, 8, move, jnp.zeros((GAMES, 9), jnp.int8))


def self_play(params: Any, key: jax.Array) -> tuple[chex.Array, ...]:
    """Makes moves in all games; returns boards, policies [MOVES, GAMES, 9] and outcomes."""
    key_start, key_moves = jax.random.split(key)

    def move(boards, key):
        key_search, key_start = jax.random.split(key)
        output = search(params, key_search, boards)
        after, reward, is_over = jax.vmap(step)(boards, output.action)
        after = jnp.where(is_over[:, None], start(key_start), after)
        return after, (boards, output.action_weights, reward, is_over)

    def backward(next_value, ending):  # A win of one player is a loss of the other.
        reward, is_over = ending
        value = jnp.where(is_over, reward, -next_value)
        return value, value

    keys = jax.random.split(key_moves, MOVES)
    last, (boards, policies, *endings) = jax.lax.scan(move, start(key_start), keys)
    estimate = network.apply(params, last)[1]  # Of the outcomes of games in progress.
    _, values = jax.lax.scan(backward, estimate, endings, reverse=True)
    return boards, policies, values


def loss(params: Any, boards: jax.Array, policies: jax.Array, outcomes: jax.Array) -> jax.Array:
    """Cross-entropy of the policy plus squared error of the value (Silver et al. 2017)."""
    logits, values = network.apply(params, boards)
    chex.assert_equal_shape([values, outcomes])
    return jnp.mean(optax.softmax_cross_entropy(logits, policies) + (values - outcomes) ** 2)


@jax.jit
def iteration(state: TrainState, key: jax.Array) -> TrainState:
    """Plays, then learns from random symmetric copies of the positions."""
    key_play, key_learn = jax.random.split(key)
    boards, policies, outcomes = map(jnp.concatenate, self_play(state.params, key_play))

    def update(state, key):
        rows, turns = jax.random.randint(key, (2, BATCH), 0, len(boards))
        cells = jnp.asarray(SYMMETRIES)[turns % 8]
        copies = (jnp.take_along_axis(x[rows], cells, axis=1) for x in (boards, policies))
        grads = jax.grad(loss)(state.params, *copies, outcomes[rows])
        return state.apply_gradients(grads=grads), None

    state, _ = jax.lax.scan(update, state, jax.random.split(key_learn, STEPS))
    return state


def main(seed: int = 0) -> None:
    """Trains until the network has no blunder in any position."""
    import azjax as az

    solution = az.solve(az.make("tic_tac_toe"))
    states, started = solution.decision_states, time.time()
    key, key_network = jax.random.split(jax.random.key(seed))
    boards = jnp.where(states.player[:, None] == 0, states.board, -states.board)
    state = TrainState.create(apply_fn=None, params=network.init(key_network, boards), tx=optimizer)
    for number in itertools.count(1):
        state = iteration(state, jax.random.fold_in(key, number))
        verdict = az.proof.verify_outputs(solution, *network.apply(state.params, boards))
        print(f"iteration {number}: {verdict.blunders} blunders, {time.time() - started:.0f} s")
        if verdict.blunders == 0:
            break


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
