"""Examples and experiments: several leaves a simulation, MuZero and its audit, the lecture."""

import functools
import runpy

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import guard
from azjax import games, make_search
from azjax.games.base import init_batch
from azjax.search import PUCT, ROOT, Gumbel
from azjax.search.algorithm import mask_logits
from azjax.training import Transition
from bad_players import first_legal
from experiments import learned_model
from experiments.lecture import matches
from experiments.lecture.cast import Setup
from experiments.lecture.learning import play_series
from experiments.lecture.persistent import PersistentPlayer, make_persistent
from reference import tic_tac_toe as rules
from small import take
from source import ROOT as FILES
from tables import AS_IN_TRAINING

LEAVES, MUZERO = (
    runpy.run_path(str(FILES / f"examples/{name}.py"), run_name=name)
    for name in ("leaves", "muzero")
)


# Several leaves a simulation, `examples/leaves.py`.

GAME = games.make("othello:4")  # Its players pass.


def search_leaves(num_simulations, evaluate):
    """Searches with one round of leaves."""
    grow = functools.partial(LEAVES["grow"], together=num_simulations)
    find = jax.jit(make_search(PUCT(num_simulations), GAME, evaluate, grow))
    return jax.device_get(find(None, jax.random.key(0), init_batch(GAME, 12)))


@pytest.mark.compiles(1)
def test_trees_of_several_leaves_add_up():
    """A leaf that is selected twice has one value, also of a random evaluator."""

    def draw(params, keys, states):
        values = jax.vmap(lambda key: jax.random.uniform(key, minval=-1.0))(keys)
        return jnp.zeros((len(values), GAME.num_actions)), values

    tree = search_leaves(32, draw).tree
    visits = tree.children_visits
    assert (visits[:, ROOT].sum(axis=1) == 32).all()
    own = tree.node_visits - visits.sum(axis=2)
    assert (own[tree.node_visits > 0] >= 1).all() and (own > 1).any()
    values = np.where(visits > 0, tree.children_values, 0)
    q = tree.children_rewards + tree.children_discounts * values
    total = own * tree.raw_values + (visits * q).sum(axis=2)
    np.testing.assert_allclose(tree.node_values * tree.node_visits, total, atol=1e-4)


@pytest.mark.compiles(1)
def test_a_round_of_leaves_sees_those_before_it():
    """Four leaves of one round are four different nodes: one that waits counts as a loss.

    As a draw, the move that the prior prefers would be selected again.
    """

    def prefer(params, keys, states):
        first = jnp.argmax(jax.vmap(GAME.legal_actions)(states), axis=1)
        return 1.5 * jax.nn.one_hot(first, GAME.num_actions), jnp.zeros(len(first))

    result = search_leaves(4, prefer)
    legal = np.sum(~result.tree.root_invalid_actions, axis=1)
    assert ((result.visit_counts > 0).sum(axis=1) == np.minimum(legal, 4)).all()


# MuZero, with a model that knows the rules.

DIGITS = 3 ** np.arange(9)


class Exact:
    """A model whose hidden states are the rows of the solution; `outputs` are `(logits, value)`."""

    def __init__(self, solution, logits, values):
        self.solution, self.outputs = solution, (logits, values)
        boards = np.where(solution.player == 0, 1, -1)[:, None] * solution.states.board
        self.rows = np.zeros(3**9, np.int32)
        self.rows[(boards % 3) @ DIGITS] = np.arange(len(boards))

    def predict(self, row):
        return tuple(jnp.asarray(head)[row] for head in self.outputs)

    def represent(self, planes):
        cells = planes.reshape(len(planes), 9, 2)
        row = jnp.asarray(self.rows)[(cells[..., 0] + 2 * cells[..., 1]) @ DIGITS]
        return *self.predict(row), row

    def apply(self, variables, *given, method=None):
        if method is None:
            return self.represent(*given)
        self.variables, (row, action) = variables, given
        tables = self.solution.rewards, self.solution.children
        reward, row = (jnp.asarray(table)[row, action] for table in tables)
        return row, reward, *self.predict(row)


@pytest.mark.compiles(1)
def test_a_search_in_an_exact_model_is_that_by_the_rules(tic_tac_toe, solution):
    """Bit for bit, with and without noise."""
    rng = np.random.default_rng(0)
    logits = mask_logits(solution.legal, rng.normal(size=solution.legal.shape))
    values = np.where(solution.over, 0, rng.uniform(-1, 1, solution.num_states))
    model = Exact(solution, logits, values.astype(np.float32))

    def evaluate(params, keys, states):
        planes = jax.vmap(lambda state: tic_tac_toe.observe(state, "relative"))(states)
        return model.represent(planes)[:2]

    states = jax.tree.map(lambda leaf: leaf[::17], solution.decision_states)
    noise = np.arange(len(states.board)) % 2 == 0

    def results(key, states):
        for rule in (Gumbel(num_simulations=16), MUZERO["LearnedModel"](tic_tac_toe, model)):
            search = make_search(rule, tic_tac_toe, evaluate)
            yield search("weights", key, states, add_noise=noise)._replace(tree=None)

    with guard.sharing():
        both = jax.jit(lambda *given: tuple(results(*given)))
        both = both.lower(jax.random.key(0), states).compile(AS_IN_TRAINING)
    ours, theirs = both(jax.random.key(0), states)
    jax.tree.map(np.testing.assert_array_equal, ours, theirs)
    assert len(set(ours.action.tolist())) == 9 and model.variables == "weights"


@pytest.mark.compiles(2)
def test_an_audit_counts_what_a_model_gets_wrong(tic_tac_toe, solution):
    """A model without rewards, which is right about everything else."""
    blind = solution._replace(rewards=np.zeros_like(solution.rewards))
    model = Exact(blind, np.float32(solution.optimal), solution.values)
    parts = MUZERO["make_parts"]()
    network = parts.network._replace(infer=lambda variables, planes: model.apply(variables, planes))
    search = MUZERO["LearnedModel"](tic_tac_toe, model)
    parts = parts._replace(network=network, search=search)
    right = learned_model.audit(parts, {}, solution, "legal")
    assert right["value"] == right["legal move"] == right["optimal move"] == [100] * 9 + [None]
    assert right["value after the end"] == right["reward of others"] == [None] + [100] * 9
    assert right["reward of a win"] == [None] + [0] * 9


@pytest.mark.compiles(1)
def test_windows_end_with_the_game_and_with_what_was_recorded(tic_tac_toe):
    """A game won by its third move, and the first four moves of the next one."""
    moves = [4, 0, 8, 2, 1, 5, 6]
    reward, discount = np.zeros((2, 7, 1), np.float32)
    reward[2], discount[:] = 1, -1
    discount[2] = 0
    policy = np.eye(9, dtype=np.float32)[moves][:, None]
    root_value = np.full((7, 1), 0.5, np.float32)
    action = np.array(moves, np.int32)[:, None]
    planes, legal = np.zeros((7, 1, 3, 3, 2), bool), np.ones((7, 1, 9), bool)
    targets = MUZERO["make_targets"](tic_tac_toe)
    sample = targets.make(Transition(planes, legal, policy, root_value, action, reward, discount))
    first = jax.tree.map(lambda leaf: np.asarray(leaf)[:, 0], sample).extra
    assert first.action[0].tolist() == moves[:5]
    assert first.reward[:4].tolist() == [[0, 0, 1, 0, 0], [0, 1, 0, 0, 0], [1] + [0] * 4, [0] * 5]
    assert first.value[0].tolist() == [-1, 1, 0, 0, 0]
    assert first.value[4, :2].tolist() == [-0.5, 0.5]
    assert first.policy[0, :2].argmax(axis=1).tolist() == moves[1:3]
    assert first.is_over[:4].sum(axis=1).tolist() == [3, 4, 5, 0]
    assert first.is_known.sum(axis=1).tolist() == [5, 5, 5, 3, 2, 1, 0]
    rows = jax.tree.map(lambda leaf: jnp.repeat(leaf[3], 16, axis=0), sample)
    turned = targets.augment(jax.random.key(0), rows)
    assert len(set(turned.extra.action[:, 1].tolist())) > 1
    assert (turned.policy.argmax(axis=1) == turned.extra.action[:, 0]).all()
    later = turned.extra.policy[:, :3].argmax(axis=2)
    assert (later == turned.extra.action[:, 1:4]).all()


# The lecture's players: one with a memory, its games, and counts.


@pytest.mark.compiles(3)
def test_a_memory_adds_up_and_finds_the_best_moves(tic_tac_toe, solution):
    """In late positions of both players; a large constant tries all moves equally often."""
    stones = (solution.states.board[solution.decisions] != 0).sum(axis=1)
    late = solution.decisions[stones >= 5][::30]
    states, rows = take(solution.states, late), np.arange(len(late))
    children = solution.children[late]

    def learn_twice(*settings):
        player = make_persistent(tic_tac_toe, solution, *settings)
        memory, learn = player.init_memory(len(late)), jax.jit(player.learn)
        for calls in (1, 2):
            actions, memory = learn(jax.random.key(calls), states, memory)
            visits = memory.visits[rows[:, None], children] * memory.tried[rows, late]
            assert (visits.sum(axis=1) == calls * settings[0]).all()
        return actions, visits, memory

    actions, visits, memory = learn_twice(500, 1.0)
    assert solution.optimal[late, actions].all()
    found = memory.totals[rows, children[rows, actions]] / visits[rows, actions]
    values = solution.values[late] * (1 - 2 * solution.player[late])
    assert np.corrcoef(found, values)[0, 1] > 0.9
    (_, visits, _), legal = learn_twice(100, 90.0), states.board == 0
    assert (abs(visits - 200 / legal.sum(axis=1, keepdims=True)) < 12)[legal].all()
    tried = learn_twice(1, 0.3)[1] > 0
    np.testing.assert_array_equal(tried, legal & (np.cumsum(legal[:, ::-1], 1)[:, ::-1] <= 2))


def counting(game):
    """Counts its games; its first move in game n is the nth free cell."""

    def learn(key, states, memory):
        legal = jax.vmap(game.legal_actions)(states)
        begins = jnp.sum(states.board != 0, axis=1) < 2
        turn = jnp.where(begins, memory, 0) % jnp.sum(legal, axis=1)
        action = jnp.argmax(jnp.cumsum(legal, axis=1) > turn[:, None], axis=1)
        return action.astype(jnp.int32), memory + begins

    return PersistentPlayer(lambda batch_size: jnp.zeros(batch_size, jnp.int32), learn)


def outcome(opening):
    """Returns the first player's outcome if both play the first legal move after the opening."""
    position, total, action = rules.start(), 0, opening
    while not position.over:
        sign = 1 if position.player == 0 else -1
        position, reward = rules.play(position, action)
        total += sign * reward
        action = position.board.index(0) if 0 in position.board else None
    return total


@pytest.mark.compiles(1)
def test_memories_last_from_game_to_game(tic_tac_toe):
    """The player opens with a different cell in each game; every series has a separate memory."""
    player, key = counting(tic_tac_toe), jax.random.key(0)
    player = player._replace(init_memory=lambda batch_size: jnp.arange(batch_size) * 2)
    result = play_series(tic_tac_toe, player, first_legal(tic_tac_toe), 5, 3, key)
    expected = [outcome(opening) for opening in range(9)]
    assert result.dtype == np.int8
    assert result.tolist() == [expected[game : game + 5 : 2] for game in range(5)]
    assert len({*expected}) > 1


@pytest.mark.compiles(2)
def test_outcomes_are_those_of_the_first_player(tic_tac_toe, solution, monkeypatch):
    """MCTS is compiled once, as the second agent; here both players are simple."""
    setup = Setup(tic_tac_toe, solution, quick=True, seed=0)
    lowest = first_legal(tic_tac_toe)
    monkeypatch.setattr(matches, "player", lambda name: lowest._replace(name=name))
    for first, second in (("MCTS(10)", "random"), ("random", "MCTS(10)"), ("a", "b")):
        outcomes = matches._play(setup, first, second, 8, jax.random.key(0))
        assert outcomes.tolist() == [outcome(0)] * 8 == [1] * 8
