"""Every player satisfies the contract; minimax and alpha-beta equal their recursions."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import guard
from azjax.cli.custom import find_game
from azjax.games.tic_tac_toe import from_board
from azjax.players import (
    minimax_agent,
    network_agent,
    perfect_agent,
    random_agent,
    search_agent,
)
from azjax.players.arena import draw_openings
from azjax.search import ALGORITHMS, PUCT, UCT
from azjax.search.evaluators import Evaluator, rollout_evaluator, uniform_evaluator
from guard import sharing
from reference import Position, minimax, misere_pile, tic_tac_toe
from small import take
from source import ROOT
from tables import bench, pile_states

ROWS = 8
DEPTHS = {"tic_tac_toe": 4, "misere_pile": 9}
SCORED = {"value", "q_values"}
SEARCHED = SCORED | {"prior", "visit_counts"}
HAS = {  # The fields of a decision in addition to the action and the weights.
    "random": set(),
    "perfect": SCORED,
    "network": {"value", "prior"},
    "puct": SEARCHED,
    "gumbel": SEARCHED,
    "uct": SEARCHED - {"prior"},
    "minimax": SCORED,
    "alpha_beta": SCORED,
}


@functools.cache
def make_agent(kind, name="tic_tac_toe"):
    game, table = bench(name).game, bench(name).random_table()
    evaluate = Evaluator(bench(name).evaluate, is_deterministic=True)
    if kind in ("puct", "gumbel"):
        return search_agent(game, ALGORITHMS[kind](num_simulations=8), evaluate, table)
    return {
        "random": lambda: random_agent(game),
        "network": lambda: network_agent(game, evaluate, table),
        "uct": lambda: search_agent(game, UCT(num_simulations=8), rollout_evaluator(game)),
        "minimax": lambda: minimax_agent(game, DEPTHS[name]),
        "alpha_beta": lambda: minimax_agent(game, DEPTHS[name], prune=True),
    }[kind]()


def ask(agent, states, seed=0):
    with guard.sharing():
        return jax.device_get(jax.jit(agent.act)(agent.params, jax.random.key(seed), states))


@pytest.mark.parametrize("kind", HAS)
def test_contract(kind, solution, some_states):
    game, states = bench("tic_tac_toe").game, take(some_states, slice(ROWS))
    agent = perfect_agent(game, solution) if kind == "perfect" else make_agent(kind)
    assert agent.deterministic == (kind not in {"random", "uct"})
    decision, legal = ask(agent, states), states.board == 0
    found = {field: leaf for field, leaf in decision._asdict().items() if leaf is not None}
    assert found.keys() == {"action", "weights", *HAS[kind]}
    assert legal[np.arange(ROWS), decision.action].all()
    for policy in (decision.weights, found.get("prior", decision.weights)):
        assert (policy >= 0).all() and not policy[~legal].any()
        np.testing.assert_allclose(policy.sum(axis=1), 1, atol=1e-5)
    assert all((abs(found[name]) <= 1).all() for name in SCORED & found.keys())
    if kind in {"perfect", "minimax"}:
        best = legal & (decision.q_values == decision.value[:, None])
        np.testing.assert_array_equal(decision.weights > 0, best)
    if kind == "alpha_beta":
        assert (decision.weights.max(axis=1) == 1).all()
    if agent.deterministic:  # And independent of the rest of the batch.
        alone = np.full(ROWS, 4)
        again = ask(agent, states, seed=1), ask(agent, take(states, alone))
        jax.tree.map(np.testing.assert_array_equal, (decision, take(decision, alone)), again)


def test_a_player_is_as_deterministic_as_its_evaluator(tic_tac_toe):
    known = uniform_evaluator(tic_tac_toe)
    for evaluate in (known, rollout_evaluator(tic_tac_toe), known.function):
        for agent in (
            network_agent(tic_tac_toe, evaluate, None),
            search_agent(tic_tac_toe, PUCT(num_simulations=2), evaluate),
        ):
            assert agent.deterministic == (evaluate is known)
    assert not search_agent(tic_tac_toe, UCT(num_simulations=2), known).deterministic


@pytest.mark.compiles(1)
def test_no_evaluator_makes_a_player_play_an_illegal_action(tic_tac_toe):
    def evaluate(params, keys, states):
        values = jnp.full(len(states.board), params)
        return jnp.full((len(states.board), 9), params), values, values

    states = jax.tree.map(lambda leaf: leaf[None], from_board([1, -1, 1, 0, 0, 0, 0, 0, 0]))
    act = jax.jit(network_agent(tic_tac_toe, evaluate, None).act)
    for value in (np.nan, -np.inf):
        assert act(np.float32(value), jax.random.key(0), states).action[0] >= 3, value


@pytest.mark.parametrize(
    ("name", "rules"), [("tic_tac_toe", tic_tac_toe), ("misere_pile", misere_pile)]
)
def test_minimax_equals_the_recursion(name, rules, some_states):
    """Values and actions equal those of the recursive implementation."""
    states = take(some_states, slice(ROWS)) if name == "tic_tac_toe" else pile_states()
    every, pruned = (ask(make_agent(kind, name), states) for kind in ("minimax", "alpha_beta"))
    rows = zip(states.board.tolist(), states.player.tolist(), strict=True)
    for row, (board, player) in enumerate(rows):
        position = Position(tuple(board), player, False)
        expected = minimax.action_values(rules, position, DEPTHS[name])
        assert {action: every.q_values[row, action] for action in expected} == expected
        assert every.value[row] == pruned.value[row] == max(expected.values())
        assert every.action[row] == pruned.action[row] == max(expected, key=expected.get)


def test_alpha_beta_where_a_player_can_move_again():
    game = find_game(f"{ROOT}/examples/dots_and_boxes.py:make")
    with sharing():
        states = draw_openings(game, jax.random.key(0), count=256, plies=8)
    agents = [minimax_agent(game, 4, prune=prune) for prune in (False, True)]
    np.testing.assert_array_equal(*(ask(agent, states).value for agent in agents))
