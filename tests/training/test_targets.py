"""Targets computed by hand; TD(lambda) as a mean of returns; symmetries by replaying."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import misere_pile
from azjax import games
from azjax.games.base import play, random_action
from azjax.games.square import ENCODINGS
from azjax.training.targets import (
    Sample,
    TargetConfig,
    Transition,
    augment,
    make_samples,
    outcomes,
    transform,
)
from refusals import assert_refused

GAMES = {"tic_tac_toe": games.make("tic_tac_toe"), "misere_pile": misere_pile.make()}
X_WINS = [0, 3, 1, 4, 2]
O_WINS = [0, 3, 1, 4, 8, 5]
DRAWN = [0, 1, 2, 4, 3, 5, 7, 6, 8]


@functools.cache
def compiled(game_name):
    return jax.jit(functools.partial(play, GAMES[game_name]))


def record(game_name, moves, root_values=None):
    """Plays moves, restarting finished games; returns transitions `[T, 1]`."""
    game, rows = GAMES[game_name], []
    state = game.init()
    for move in moves:
        step = compiled(game_name)(state, move)
        rows.append((step.reward, step.discount))
        state = game.init() if game.is_over(step.state) else step.state
    reward, discount = np.array(rows, np.float32).T[:, :, None]
    return transitions(
        reward, discount, np.zeros(len(moves)) if root_values is None else root_values
    )


def transitions(reward, discount, root_value):
    """Transitions `[T, B]` with only the fields that the outcome depends on."""
    root_value = np.asarray(root_value, np.float32).reshape(reward.shape)
    blank = np.zeros((*reward.shape, 1))
    action = np.zeros(reward.shape, np.int32)
    return Transition(blank, blank, blank, root_value, action, reward, discount)


def test_every_ply_of_a_finished_game():
    for game_name, moves, expected in [
        ("tic_tac_toe", X_WINS, [1, -1, 1, -1, 1]),
        ("tic_tac_toe", DRAWN, [0] * 9),
        ("tic_tac_toe", O_WINS + DRAWN + X_WINS, [-1, 1, -1, 1, -1, 1, *[0] * 9, 1, -1, 1, -1, 1]),
        # Player 0 takes 1 and moves again, takes 2; player 1 takes 1, and must take the last.
        ("misere_pile", [0, 1, 0, 0], [1, 1, -1, -1]),
        # Player 0 takes all five stones, one by one.
        ("misere_pile", [0, 0, 0, 0, 0], [-1, -1, -1, -1, -1]),
        # Player 0 takes 2, player 1 takes 2, player 0 must take the last.
        ("misere_pile", [1, 1, 0], [-1, 1, -1]),
    ]:
        z = outcomes(record(game_name, moves, root_values=np.full(len(moves), 0.7)))
        np.testing.assert_array_equal(z[:, 0], expected)


def test_a_cut_off_game_is_bootstrapped_with_the_root_value():
    for game_name, moves, tail, expected in [
        ("tic_tac_toe", X_WINS[:4], 0.25, [-0.25, 0.25, -0.25, 0.25]),
        ("tic_tac_toe", X_WINS[:1], -0.5, [-0.5]),
        ("tic_tac_toe", X_WINS + O_WINS[:3], 0.25, [1, -1, 1, -1, 1, 0.25, -0.25, 0.25]),
        ("misere_pile", [0, 1, 0], 0.25, [-0.25, -0.25, 0.25]),
        ("misere_pile", [0, 0], 0.25, [0.25, 0.25]),
    ]:
        root_values = np.full(len(moves), 0.7)  # Only the last root value counts.
        root_values[-1] = tail
        fragment = record(game_name, moves, root_values)
        assert fragment.discount[-1] != 0
        np.testing.assert_array_equal(outcomes(fragment)[:, 0], expected)


def test_the_target_mixes_outcome_and_root_value():
    root_values = np.array([0.2, -0.4, 0.6, -0.8, 0.9])
    moves = record("tic_tac_toe", X_WINS, root_values)
    for weight in (0.0, 0.5, 1.0):
        samples = make_samples(TargetConfig(outcome_weight=weight), moves)
        expected = weight * np.array([1, -1, 1, -1, 1]) + (1 - weight) * root_values
        np.testing.assert_allclose(samples.value[:, 0], expected, rtol=1e-6)


def test_samples_have_the_observation_and_policy_of_the_search():
    moves = record("tic_tac_toe", X_WINS)._replace(
        planes=np.full((5, 1, 3, 3, 2), 1),
        legal=np.full((5, 1, 9), 2),
        action_weights=np.full((5, 1, 9), 3),
    )
    samples = make_samples(TargetConfig(), moves)
    assert samples.planes is moves.planes
    assert samples.legal is moves.legal
    assert samples.policy is moves.action_weights


def sum_of_returns(td_lambda, reward, discount, root_value):
    """TD(lambda) by its definition (Sutton 1988): a mean of n-step returns, one game `[T]`."""
    length = len(reward)
    z = np.zeros(length)
    for start in range(length):
        total, weight, product, t = 0.0, 1.0, 1.0, start
        earned = 0.0
        while True:
            if t == length - 1 and discount[t] != 0:  # Cut off: the rest is the root value.
                total += weight * (earned + product * root_value[t])
                break
            earned += product * reward[t]
            product *= discount[t]
            if product == 0:  # The game is over: longer returns are the same.
                total += weight * earned
                break
            t += 1
            total += weight * (1 - td_lambda) * (earned + product * root_value[t])
            weight *= td_lambda
        z[start] = total
    return z


def test_td_lambda_is_a_mean_of_n_step_returns():
    rng = np.random.default_rng(0)
    shape = (12, 7)
    discount = rng.choice([-1.0, 0.0, 1.0], shape, p=[0.6, 0.2, 0.2]).astype(np.float32)
    reward = np.where(discount == 0, rng.choice([-1.0, 0.0, 1.0], shape), 0).astype(np.float32)
    root_value = rng.uniform(-1, 1, shape).astype(np.float32)
    assert (discount[-1] == 0).any() and (discount[-1] != 0).any()
    for td_lambda in (0.0, 0.3, 0.9, 1.0):
        z = outcomes(transitions(reward, discount, root_value), td_lambda)
        arrays = reward.T, discount.T, root_value.T
        columns = [sum_of_returns(td_lambda, *c) for c in zip(*arrays, strict=True)]
        np.testing.assert_allclose(z, np.stack(columns, axis=1), atol=1e-5)


def test_settings_out_of_range_are_rejected():
    cases = [(name, value) for name in ("outcome_weight", "td_lambda") for value in (-0.1, 1.1)]
    calls = [functools.partial(TargetConfig, **{name: value}) for name, value in cases]
    fragments = [f"targets.{name} is {value}: use 0 to 1" for name, value in cases]
    assert_refused(*zip(calls, fragments, strict=True))


def walk(game, moves):
    """The samples of a game `[T]`: planes of every encoding, the move as the target policy."""

    def step(state, move):
        planes = jnp.concatenate([game.observe(state, e) for e in ENCODINGS], axis=-1)
        policy = jax.nn.one_hot(move, game.num_actions)
        sample = Sample(planes, game.legal_actions(state), policy, jnp.float32(0.5))
        return game.step(state, move)[0], sample

    return jax.lax.scan(step, game.init(), moves)[1]


def random_moves(game, key):
    def step(state, key):
        move = random_action(game, key, state)
        return game.step(state, move)[0], move

    return jax.lax.scan(step, game.init(), jax.random.split(key, game.max_plies))[1]


@pytest.mark.parametrize("name", ["tic_tac_toe", "hex_swap:3", "breakthrough:5x3"])
def test_a_transformed_game_is_the_game_of_the_transformed_moves(name):
    game = games.make(name)

    @jax.jit
    @jax.vmap
    def both_ways(key, symmetry):
        moves = random_moves(game, key)
        image = jnp.argsort(jnp.asarray(game.symmetries.actions)[symmetry])[moves]
        transformed = jax.vmap(lambda s: transform(game, s, symmetry))(walk(game, moves))
        return transformed, walk(game, image)

    symmetries = np.tile(np.arange(game.num_symmetries), 4)
    keys = jax.random.split(jax.random.key(0), len(symmetries))
    transformed, replayed = both_ways(keys, symmetries)
    jax.tree.map(np.testing.assert_array_equal, transformed, replayed)


@pytest.mark.parametrize("name", ["tic_tac_toe", "hex_swap:3"])
def test_augmentation_draws_a_symmetry_for_each_sample(name):
    game, copies = games.make(name), 1024
    rng = np.random.default_rng(0)
    sample = Sample(
        *(rng.random(shape) for shape in (game.board_shape, *[game.num_actions] * 2, ()))
    )
    sample = sample._replace(planes=sample.planes[..., None])
    batch = jax.tree.map(lambda leaf: np.stack([leaf] * copies), sample)
    batch = batch._replace(value=np.linspace(-1, 1, copies, dtype=np.float32))
    drawn = jax.device_get(jax.jit(lambda batch: augment(game, jax.random.key(0), batch))(batch))
    np.testing.assert_array_equal(drawn.value, batch.value)

    cells, actions = game.symmetries.cells, game.symmetries.actions
    flat = np.float32(sample.planes.ravel()[cells])  # [G, H * W]
    same = (drawn.planes.reshape(copies, 1, -1) == flat).all(axis=2)  # [copies, G]
    np.testing.assert_array_equal(same.sum(axis=1), 1)
    which = same.argmax(axis=1)
    np.testing.assert_array_equal(drawn.legal, np.float32(sample.legal[actions])[which])
    np.testing.assert_array_equal(drawn.policy, np.float32(sample.policy[actions])[which])

    count, expected = same.sum(axis=0), copies / game.num_symmetries
    assert (abs(count - expected) < 5 * np.sqrt(expected)).all()
