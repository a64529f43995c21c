"""Every player satisfies the contract; minimax and alpha-beta equal their recursions."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games.tic_tac_toe import from_board
from azjax.players import (
    alpha_beta_agent,
    anytime_agent,
    minimax_agent,
    network_agent,
    perfect_agent,
    random_agent,
    search_agent,
)
from azjax.search import ALGORITHMS, PUCT, UCT, Gumbel
from azjax.search.evaluators import Evaluator, rollout_evaluator, uniform_evaluator
from contract import ROWS, ask, assert_contract, assert_policies, some_states
from reference import Position, misere_pile, negamax, tic_tac_toe
from refusals import assert_refused
from tables import bench

RULES = {"tic_tac_toe": tic_tac_toe, "misere_pile": misere_pile}


SCORED = {"value", "q_values"}
SEARCHED = SCORED | {"prior", "visit_counts", "nodes"}
HAS = {  # The fields of a decision in addition to the action and the weights.
    "random": set(),
    "perfect": SCORED,
    "network": {"value", "prior"},
    "puct": SEARCHED,
    "gumbel": SEARCHED,
    "uct": SEARCHED - {"prior"},
    "minimax": SCORED | {"nodes"},
    "alpha_beta": SCORED | {"nodes"},
}


@functools.cache
def make_agent(kind, name):
    game, table = bench(name).game, bench(name).random_table()
    evaluate = Evaluator(bench(name).evaluate, is_deterministic=True)
    if kind in ("puct", "gumbel"):
        return search_agent(game, ALGORITHMS[kind](num_simulations=8), evaluate, table)
    return {
        "random": lambda: random_agent(game),
        "network": lambda: network_agent(game, evaluate, table),
        "uct": lambda: search_agent(game, UCT(num_simulations=8), rollout_evaluator(game)),
        "minimax": lambda: minimax_agent(game, 3, evaluate, table),
        "alpha_beta": lambda: alpha_beta_agent(game, 3, evaluate, table),
    }[kind]()


@pytest.mark.parametrize("kind", HAS)
def test_contract(kind, solution):
    game = bench("tic_tac_toe").game
    agent = perfect_agent(game, solution) if kind == "perfect" else make_agent(kind, game.name)
    assert agent.deterministic == (kind not in {"random", "uct"})
    assert_contract(agent, "tic_tac_toe", HAS[kind])


def test_a_player_is_as_deterministic_as_its_evaluator(tic_tac_toe):
    known = uniform_evaluator(tic_tac_toe)
    for evaluate in (known, rollout_evaluator(tic_tac_toe), known.function):
        for agent in (
            network_agent(tic_tac_toe, evaluate, None),
            search_agent(tic_tac_toe, PUCT(num_simulations=2), evaluate),
            alpha_beta_agent(tic_tac_toe, 1, evaluate),
        ):
            assert agent.deterministic == (evaluate is known)


@pytest.mark.compiles(1)
def test_no_evaluator_makes_a_player_play_an_illegal_action(tic_tac_toe):
    def evaluate(params, keys, states):
        return jnp.full((len(states.board), 9), params), jnp.full(len(states.board), params)

    states = jax.tree.map(lambda leaf: leaf[None], from_board([1, -1, 1, 0, 0, 0, 0, 0, 0]))
    agents = [network_agent(tic_tac_toe, evaluate, None)]
    agents += [make(tic_tac_toe, 1, evaluate, None) for make in (minimax_agent, alpha_beta_agent)]

    @jax.jit
    def act(value):
        return [agent.act(value, jax.random.key(0), states).action[0] for agent in agents]

    for value in (np.nan, -np.inf):
        assert min(act(np.float32(value))) >= 3, value


@pytest.mark.parametrize("name", RULES)
def test_searches_to_a_horizon_equal_the_recursion(name):
    """Values, actions and visited positions equal those of the recursive implementation."""
    a_bench, rules, table = bench(name), RULES[name], bench(name).random_table()
    count = ROWS if name == "tic_tac_toe" else 64  # Few of them have enough stones for a cut.
    states, values = some_states(name, count, finished=1), []

    def evaluate(position):
        return float(table.values[a_bench.number(np.array(position.board), position.player)])

    for kind in ("minimax", "alpha_beta"):
        decision = ask(make_agent(kind, name), states)
        boards, players, _ = (np.asarray(leaf[:-1]).tolist() for leaf in states)
        for row, (board, player) in enumerate(zip(boards, players, strict=True)):
            position = Position(tuple(board), player, False)
            expected = negamax.search(rules, evaluate, position, 3, kind == "alpha_beta")
            found = {action: decision.q_values[row, action] for action in expected.outcomes}
            assert found == expected.outcomes
            assert decision.value[row] == expected.value
            assert decision.action[row] == max(expected.outcomes, key=expected.outcomes.get)
            assert decision.nodes[row] == expected.positions
        values.append(decision.value)
    np.testing.assert_array_equal(*values)


class Clock:
    """A clock that advances only with the evaluations of a search."""

    def __init__(self):
        self.now, self.cost = 0.0, 0.001

    def __call__(self):
        return self.now

    def _pass(self):
        self.now += self.cost
        return np.float32(0)

    def evaluator(self, game):
        uniform = uniform_evaluator(game)

        def evaluate(params, key, states):
            nothing = jax.ShapeDtypeStruct((), jnp.float32)
            logits, values = uniform(params, key, states)
            return logits, values + jax.experimental.io_callback(self._pass, nothing)

        return evaluate


@pytest.mark.compiles(3)  # The steps of the search.
def test_a_search_ends_with_its_time(tic_tac_toe):
    """It plans for as many simulations as there is time for."""
    clock, states = Clock(), some_states("tic_tac_toe", 2)
    config, key = Gumbel(num_simulations=700), jax.random.key(0)
    evaluate = clock.evaluator(tic_tac_toe)
    agent = anytime_agent(tic_tac_toe, config, evaluate, seconds=0.4, clock=clock)
    assert (agent.traceable, agent.deterministic, agent.nodes) == (False, False, 701)
    assert agent.name == "gumbel(0.4 s)"
    agent.act(None, key, states)  # Measures the speed.
    clock.cost = 0.002
    began, decision = clock(), agent.act(None, key, states)  # Corrects the estimate.
    assert clock() - began == pytest.approx(0.4, rel=0.1)
    count = int(decision.nodes[0])
    assert 120 < count <= 200 and (decision.nodes == count).all()
    # The first phase of sequential halving: 190 / (8 log2(8)), where 375 had been planned.
    assert decision.visit_counts[0][states.board[0] == 0].min() == 7
    clock.cost = 1e-6
    for seed in (3, 4):  # Time for more simulations than the tree can store.
        decision = agent.act(None, jax.random.key(seed), states)
    assert (decision.nodes == 700).all()
    assert_policies(np.asarray(decision.weights), legal := states.board == 0)
    assert legal[np.arange(2), decision.action].all()


def test_refusals(tic_tac_toe):
    timed = functools.partial(anytime_agent, tic_tac_toe, PUCT(), uniform_evaluator(tic_tac_toe))
    assert_refused(
        (lambda: minimax_agent(tic_tac_toe, 0), "the search depth is 0: use 1"),
        (lambda: timed(seconds=float("nan")), "seconds is nan: use a number above 0"),
    )
