"""Every player satisfies the contract; searches agree with their reference implementations."""

import functools
import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games import solver
from azjax.games.base import init_batch
from azjax.games.tic_tac_toe import from_board
from azjax.players import (
    alpha_beta_agent,
    anytime_agent,
    minimax_agent,
    network_agent,
    perfect_agent,
    random_agent,
    sampled,
    search_agent,
)
from azjax.search import ALGORITHMS, PUCT, UCT, Gumbel, make_resumable, make_search
from azjax.search.evaluators import Evaluator, rollout_evaluator, uniform_evaluator
from contract import ROWS, ask, assert_contract, assert_policies, rows_of, same, some_states
from reference import Position, minimax, negamax
from refusals import assert_refused
from tables import AS_IN_TRAINING, bench


def rules_of(name):
    return importlib.import_module(f"reference.{name}")


@functools.cache
def solved(name):
    return solver.solve(bench(name).game)


def positions_of(states):
    boards, players, over = (np.asarray(leaf).tolist() for leaf in states)
    return list(map(Position, map(tuple, boards), players, over))


# The contract.


def make_agent(kind, name):
    game, table = bench(name).game, bench(name).random_table()
    evaluate = Evaluator(bench(name).evaluate, is_deterministic=True)
    if kind == "random":
        return random_agent(game)
    if kind == "perfect":
        return perfect_agent(game, solved(name))
    if kind == "sampled":
        return sampled(perfect_agent(game, solved(name)))
    if kind == "network":
        return network_agent(game, evaluate, table)
    if kind in ("puct", "gumbel"):
        return search_agent(game, ALGORITHMS[kind](num_simulations=8), evaluate, table)
    if kind == "uct":
        return search_agent(game, UCT(num_simulations=8), rollout_evaluator(game))
    if kind == "minimax":
        return minimax_agent(game, 2, evaluate, table)
    return alpha_beta_agent(game, 2, evaluate, table)


DETERMINISTIC = ["perfect", "network", "puct", "gumbel", "minimax", "alpha_beta"]
KINDS = [*DETERMINISTIC, "random", "sampled", "uct"]
HAS = {  # The fields of a decision in addition to the action and the weights.
    "random": set(),
    "perfect": {"value", "q_values"},
    "sampled": {"value", "q_values"},
    "network": {"value", "prior"},
    "puct": {"value", "q_values", "prior", "visit_counts", "nodes"},
    "gumbel": {"value", "q_values", "prior", "visit_counts", "nodes"},
    "uct": {"value", "q_values", "visit_counts", "nodes"},
    "minimax": {"value", "q_values", "nodes"},
    "alpha_beta": {"value", "q_values", "nodes"},
}
LARGE = ["random", "network", "puct", "alpha_beta"]  # In games of many positions.
CASES = [
    *(("tic_tac_toe", kind) for kind in KINDS if kind != "uct"),
    pytest.param("tic_tac_toe", "uct", marks=pytest.mark.slow),
    *(pytest.param("connect_four", kind, marks=pytest.mark.slow) for kind in LARGE),
]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_contract(name, kind):
    agent = make_agent(kind, name)
    assert agent.deterministic == (kind in DETERMINISTIC)
    assert_contract(agent, name, HAS[kind])


RANDOM = {  # The players of these kinds with a random evaluator, or with a plain function.
    "network": network_agent,
    "puct": lambda game, evaluate, params: search_agent(game, PUCT(num_simulations=2), evaluate),
    "gumbel": lambda game, evaluate, params: search_agent(game, Gumbel(), evaluate),
    "minimax": lambda game, evaluate, params: minimax_agent(game, 1, evaluate),
    "alpha_beta": lambda game, evaluate, params: alpha_beta_agent(game, 1, evaluate),
}


def test_a_player_is_as_deterministic_as_its_evaluator(tic_tac_toe):
    known = uniform_evaluator(tic_tac_toe)
    for kind, make in RANDOM.items():
        assert make(tic_tac_toe, known, None).deterministic, kind
        for evaluate in (rollout_evaluator(tic_tac_toe), known.function):
            assert not make(tic_tac_toe, evaluate, None).deterministic, kind


def test_draws_follow_the_weights():
    """Frequencies of 5,000 moves, each within five standard errors."""
    game, table = bench("tic_tac_toe").game, bench("tic_tac_toe").random_table()
    network = network_agent(game, bench("tic_tac_toe").evaluate, table)
    for agent in (random_agent(game), sampled(network)):
        decision = ask(agent, rows_of(some_states("tic_tac_toe", ROWS), np.zeros(5000, int)))
        weights = decision.weights[0]
        found = np.bincount(decision.action, minlength=9) / 5000
        assert (abs(found - weights) <= 5 * np.sqrt(weights * (1 - weights) / 5000)).all()
    assert np.ptp(weights[weights > 0]) > 0.05


def test_a_perfect_player_plays_the_first_of_the_optimal_actions(solution):
    agent = make_agent("perfect", "tic_tac_toe")
    rows = solution.decisions
    decision = ask(agent, solution.decision_states)
    np.testing.assert_array_equal(decision.action, solution.optimal[rows].argmax(axis=1))
    np.testing.assert_array_equal(decision.weights > 0, solution.optimal[rows])
    np.testing.assert_array_equal(decision.value, solution.values[rows])


def test_no_evaluator_makes_a_player_play_an_illegal_action(tic_tac_toe):
    def evaluate(params, keys, states):
        return jnp.full((len(states.board), 9), params), jnp.full(len(states.board), params)

    states = jax.tree.map(lambda leaf: leaf[None], from_board([1, -1, 1, 0, 0, 0, 0, 0, 0]))
    agents = [network_agent(tic_tac_toe, evaluate, None)]
    agents += [make(tic_tac_toe, 1, evaluate, None) for make in (minimax_agent, alpha_beta_agent)]
    search = search_agent(tic_tac_toe, Gumbel(num_simulations=2), evaluate, None)
    agents += [sampled(agents[0]), sampled(search)]
    for agent in agents:
        act = jax.jit(agent.act)
        for value in (np.nan, -np.inf):
            action = act(np.float32(value), jax.random.key(0), states).action
            assert action[0] >= 3, (agent.name, value)


# Minimax and alpha-beta.


def ask_everywhere(agent, solution):
    """The decisions in all decision states, in batches by ply, which differ in cost."""
    found = []
    for ply in range(len(solution.layers) - 1):
        rows = np.arange(*solution.layers[ply : ply + 2])
        rows = rows[~solution.over[rows]]
        size = next(size for size in (1, 16, 256) if len(rows) <= size or size == 256)
        for first in range(0, len(rows), size):
            chunk = rows[first : first + size]
            decision = ask(agent, rows_of(solution.states, np.resize(chunk, size)), level=1)
            found.append(rows_of(decision, slice(len(chunk))))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *found)


@pytest.fixture(scope="module")
def full_searches(solution):
    """The decisions of minimax and alpha-beta in every position, searched to the end."""
    game = bench("tic_tac_toe").game
    return [ask_everywhere(make(game), solution) for make in (minimax_agent, alpha_beta_agent)]


@pytest.mark.slow
def test_full_searches_equal_the_solver(full_searches, solution):
    rows = solution.decisions
    optimal = solution.optimal[rows]
    for found in full_searches:
        np.testing.assert_array_equal(found.value, solution.values[rows])
        np.testing.assert_array_equal(found.action, optimal.argmax(axis=1))
    plain, pruned = full_searches
    legal, outcomes = solution.legal[rows], solution.action_values[rows]
    np.testing.assert_array_equal(plain.q_values, np.where(legal, outcomes, 0))
    np.testing.assert_allclose(plain.weights, optimal / optimal.sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(pruned.weights, np.eye(9)[pruned.action])
    assert (pruned.q_values >= np.where(legal, outcomes, 0)).all()  # Upper bounds.


@pytest.mark.slow
def test_full_searches_count_their_positions(full_searches, solution):
    plain, pruned = (found.nodes for found in full_searches)
    lines = np.ones(solution.num_states, int)
    for state in reversed(solution.decisions):  # Children come after their parents.
        lines[state] += lines[solution.children[state][solution.legal[state]]].sum()
    np.testing.assert_array_equal(plain, lines[solution.decisions])
    assert (plain[0], pruned[0]) == (549_946, 18_297)
    assert (pruned <= plain).all()
    early = (solution.decisions >= solution.layers[1]) & (solution.decisions < solution.layers[4])
    assert early.sum() == 9 + 72 + 252
    assert (pruned < plain)[early].all()


@pytest.mark.parametrize(("name", "depth"), [("tic_tac_toe", 3), ("misere_pile", 3)])
def test_searches_to_a_horizon_equal_the_recursion(name, depth):
    """Values, actions and visited positions equal those of the recursive implementation."""
    a_bench, rules, table = bench(name), rules_of(name), bench(name).random_table()
    states = some_states(name, 16)

    def evaluate(position):
        return float(table.values[a_bench.number(np.array(position.board), position.player)])

    values = []
    for make, twin in [
        (minimax_agent, negamax.minimax),
        (alpha_beta_agent, negamax.alpha_beta),
    ]:
        decision = ask(make(a_bench.game, depth, a_bench.evaluate, table), states)
        for row, position in enumerate(positions_of(states)):
            expected = twin(rules, evaluate, position, depth)
            found = {action: decision.q_values[row, action] for action in expected.outcomes}
            assert found == expected.outcomes
            assert decision.value[row] == expected.value
            assert decision.action[row] == max(expected.outcomes, key=expected.outcomes.get)
            assert decision.nodes[row] == expected.positions
        values.append(decision.value)
    np.testing.assert_array_equal(*values)
    assert (abs(decision.q_values) % 1 > 0).any()  # The horizon was evaluated.


@pytest.mark.parametrize("make", [minimax_agent, alpha_beta_agent])
def test_full_searches_where_a_player_may_move_twice(make):
    solution, rules = solved("misere_pile"), rules_of("misere_pile")
    decision = ask(make(bench("misere_pile").game), solution.decision_states)
    for row, position in enumerate(positions_of(solution.decision_states)):
        outcomes = minimax.action_values(rules, position)
        assert decision.value[row] == max(outcomes.values())
        assert decision.action[row] == max(outcomes, key=outcomes.get)
    assert set(decision.value.tolist()) == {1, -1}


def test_refusals(tic_tac_toe):
    evaluate = uniform_evaluator(tic_tac_toe)
    cases = [
        (functools.partial(make, tic_tac_toe, depth), f"the search depth is {depth}: use 1")
        for make in (minimax_agent, alpha_beta_agent)
        for depth in (0, -3)
    ]
    for seconds in (0, -1.0, float("nan")):
        call = functools.partial(anytime_agent, tic_tac_toe, PUCT(), evaluate, seconds=seconds)
        cases.append((call, "seconds is ...: use a number above 0"))
    assert_refused(*cases)


@pytest.mark.slow
def test_a_horizon_beyond_the_end_is_the_end(full_searches, solution):
    late = solution.decisions >= solution.layers[6]
    states = rows_of(solution.decision_states, late)
    beyond = ask(alpha_beta_agent(bench("tic_tac_toe").game, 50), states)
    assert same(beyond, rows_of(full_searches[1], late))


# Players with a time limit, and resumable searches.


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


@pytest.mark.slow
@pytest.mark.parametrize(
    "algorithm",
    ["puct", "uct", "gumbel"],
)
def test_a_search_ends_with_its_time(algorithm, tic_tac_toe):
    clock, states = Clock(), some_states("tic_tac_toe", 2)
    config = ALGORITHMS[algorithm](num_simulations=700)
    evaluate = clock.evaluator(tic_tac_toe)
    agent = anytime_agent(tic_tac_toe, config, evaluate, seconds=0.4, clock=clock)
    assert (agent.traceable, agent.deterministic, agent.nodes) == (False, False, 701)
    agent.act(None, jax.random.key(0), states)  # Measures the speed.
    simulations = []
    for cost in (0.001, 0.004):
        clock.cost = cost
        agent.act(None, jax.random.key(1), states)  # Corrects the estimate.
        began = clock()
        decision = agent.act(None, jax.random.key(2), states)
        assert clock() - began == pytest.approx(0.4, rel=0.1)
        assert (decision.nodes == decision.nodes[0]).all()
        simulations.append(int(decision.nodes[0]))
    assert simulations[0] <= 400 and simulations[1] <= 100
    assert simulations[0] > 3 * simulations[1] > 120
    clock.cost = 1e-6
    for seed in (3, 4):  # Time for more simulations than the tree can store.
        decision = agent.act(None, jax.random.key(seed), states)
    assert (decision.nodes == 700).all()
    assert_policies(np.asarray(decision.weights), legal := states.board == 0)
    assert legal[np.arange(2), decision.action].all()


@pytest.mark.slow
def test_more_time_gives_more_simulations(tic_tac_toe):
    clock, states, found = Clock(), init_batch(tic_tac_toe, 1), []
    evaluate = clock.evaluator(tic_tac_toe)
    for seconds in (0.05, 0.2):
        agent = anytime_agent(
            tic_tac_toe, PUCT(num_simulations=300), evaluate, None, seconds, clock=clock
        )
        assert agent.name == f"puct({seconds} s)"
        found.append(int(agent.act(None, jax.random.key(0), states).nodes[0]))
    assert 20 < found[0] <= 50 and 100 < found[1] <= 200


@pytest.mark.parametrize("algorithm", ["puct", "gumbel"])
@pytest.mark.slow
def test_a_resumable_search_equals_the_search(algorithm):
    jit = functools.partial(jax.jit, compiler_options=AS_IN_TRAINING)
    a_bench, config = bench("tic_tac_toe"), ALGORITHMS[algorithm](num_simulations=16)
    table, states = a_bench.random_table(), some_states("tic_tac_toe", ROWS)
    keys = jax.random.split(jax.random.key(0), ROWS)
    whole = jit(make_search(config, a_bench.game, a_bench.evaluate))(table, keys, states)
    search = make_resumable(config, a_bench.game, a_bench.evaluate)
    grow, budget = jit(search.step), np.int32(16)
    tree, done = jit(search.init)(table, keys, states, budget), 0
    assert (tree.node_visits[:, 0] == 1).all()
    for count in (3, 5, 8):
        tree = grow(table, keys, states, budget, tree, np.int32(done), np.int32(count))
        done += count
        assert (tree.node_visits[:, 0] == 1 + done).all()
    result = jit(search.finish)(table, keys, states, budget, tree)
    for found, expected in zip(jax.tree.leaves(result), jax.tree.leaves(whole), strict=True):
        np.testing.assert_array_equal(found, expected)
