"""The contract of evaluators; rollouts and the exact evaluator against plain recursion."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import misere_pile
from azjax import games
from azjax.games import solver
from azjax.games.base import init_batch
from azjax.games.tic_tac_toe import from_board
from azjax.networks import MLPConfig, make_network
from azjax.search.evaluators import (
    exact_evaluator,
    network_evaluator,
    rollout_evaluator,
    uniform_evaluator,
)
from reference import Position, minimax
from reference import misere_pile as misere_pile_rules
from reference import tic_tac_toe as tic_tac_toe_rules
from small import FEW

EVALUATORS = ["network", "uniform", "rollout", "exact"]
SMALL = MLPConfig(hidden=(8,), head_hidden=4, encoding="absolute")


def make_evaluator(kind, game, solution):
    """Returns `(evaluate, params)`."""
    if kind == "network":
        network = make_network(SMALL, game)
        shapes = jax.eval_shape(network.init, jax.random.key(0))
        draw = np.random.default_rng(0).normal
        variables = jax.tree.map(lambda leaf: draw(size=leaf.shape).astype(leaf.dtype), shapes)
        return network_evaluator(game, network), network.fold(variables)
    if kind == "exact":
        return exact_evaluator(game, solution), None
    return {"uniform": uniform_evaluator, "rollout": rollout_evaluator}[kind](game), None


def some_states(game, solution):
    if game.name != "tic_tac_toe":
        return init_batch(game, 5)
    return jax.tree.map(lambda leaf: leaf[::97], solution.states)


CASES = [
    (name, kind) for name in FEW for kind in EVALUATORS if kind != "exact" or name == "tic_tac_toe"
]


@pytest.mark.slow_after(5)
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_contract(solution, name, kind):
    game = games.make(name)
    evaluate, params = make_evaluator(kind, game, solution)
    states = some_states(game, solution)
    logits, values = jax.jit(evaluate)(params, jax.random.key(1), states)
    assert evaluate.is_deterministic == (kind != "rollout")
    other = jax.jit(evaluate)(params, jax.random.key(2), states)
    assert np.array_equal(values, other[1]) == evaluate.is_deterministic
    batch = len(jax.tree.leaves(states)[0])
    assert (logits.shape, logits.dtype) == ((batch, game.num_actions), jnp.float32)
    assert (values.shape, values.dtype) == ((batch,), jnp.float32)
    assert jnp.isfinite(logits).all()
    assert (abs(values) <= 1).all()


def test_network_evaluator_observes_and_infers(tic_tac_toe, solution):
    network = make_network(SMALL, tic_tac_toe)
    evaluate, params = make_evaluator("network", tic_tac_toe, solution)
    states = some_states(tic_tac_toe, solution)
    planes = jax.vmap(lambda state: tic_tac_toe.observe(state, "absolute"))(states)
    found = evaluate(params, jax.random.key(1), states)
    for ours, expected in zip(found, network.infer(params, planes), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-6)


def test_uniform_evaluator_returns_zeros(tic_tac_toe, solution):
    logits, values = uniform_evaluator(tic_tac_toe)(None, None, solution.states)
    assert not logits.any() and not values.any()


@pytest.mark.parametrize(
    ("game", "rules"),
    [(games.make("tic_tac_toe"), tic_tac_toe_rules), (misere_pile.make(), misere_pile_rules)],
)
def test_rollouts_average_to_the_value_of_random_play(game, rules):
    """In five positions of a random game, 4,000 rollouts each; 0.08 is five standard errors."""
    rng = np.random.default_rng(0)
    state, position = game.init(), rules.start()
    rollout = jax.jit(rollout_evaluator(game))
    means, expected = [], []
    for _ in range(5):
        many = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (4000, *leaf.shape)), state)
        _, values = rollout(None, jax.random.key(len(means)), many)
        assert set(np.unique(values).tolist()) <= {-1, 0, 1}
        means.append(values.mean())
        expected.append(minimax.random_play_value(rules, position))
        if not position.over:
            action = int(rng.choice(rules.legal(position)))
            state, position = game.step(state, action)[0], rules.play(position, action)[0]
    np.testing.assert_allclose(means, expected, atol=0.08)
    assert np.ptp(expected) > 0.5  # A constant would not pass.


def test_rollouts_differ_between_the_rows_of_a_batch(tic_tac_toe):
    evaluate = jax.jit(rollout_evaluator(tic_tac_toe))
    values = evaluate(None, jax.random.key(0), init_batch(tic_tac_toe, 4000))[1]
    assert len(np.unique(values)) == 3


def test_a_rollout_that_max_plies_cuts_off_has_no_value(tic_tac_toe):
    """It does not count as a draw."""
    states, key = init_batch(tic_tac_toe, 64), jax.random.key(0)
    short = rollout_evaluator(tic_tac_toe._replace(max_plies=6))(None, key, states)[1]
    whole = rollout_evaluator(tic_tac_toe)(None, key, states)[1]
    ended = ~np.isnan(short)
    assert 0 < ended.sum() < 64 and np.isfinite(whole).all()


@pytest.mark.parametrize("name", ["tic_tac_toe", "misere_pile"])
def test_exact_evaluator_equals_the_solver(name, solution):
    game = misere_pile.make() if name == "misere_pile" else games.make(name)
    solution = solution if name == "tic_tac_toe" else solver.solve(game)
    order = np.random.default_rng(0).permutation(solution.num_states)
    states = jax.tree.map(lambda leaf: leaf[order], solution.states)
    logits, values = jax.jit(exact_evaluator(game, solution))(None, None, states)
    np.testing.assert_array_equal(values, solution.values[order])
    np.testing.assert_array_equal(logits, np.where(solution.optimal[order], 0, -10))


def test_exact_evaluator_is_for_the_player_to_move(tic_tac_toe, solution):
    evaluate = jax.jit(functools.partial(exact_evaluator(tic_tac_toe, solution), None, None))
    x_wins, o_wins = [1, 1, 0, -1, -1, 0, 0, 0, 0], [1, 1, 0, -1, -1, 0, 0, 0, 1]
    for board in (x_wins, o_wins):
        states = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], from_board(board))
        position = Position(tuple(board), int(states.player[0]), False)
        assert minimax.value(tic_tac_toe_rules, position) == evaluate(states)[1][0] == 1
