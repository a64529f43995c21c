"""The example on MuZero and its audit, with a model that knows the rules."""

import runpy

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import guard
from azjax import make_search
from azjax.search import Gumbel
from azjax.search.algorithm import mask_logits
from azjax.training import Transition
from experiments import learned_model
from source import ROOT
from tables import AS_IN_TRAINING

NAMES = runpy.run_path(str(ROOT / "examples/muzero.py"), run_name="muzero")
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
        for rule in (Gumbel(num_simulations=16), NAMES["LearnedModel"](tic_tac_toe, model)):
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
    parts = NAMES["make_parts"]()
    network = parts.network._replace(infer=lambda variables, planes: model.apply(variables, planes))
    search = NAMES["LearnedModel"](tic_tac_toe, model)
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
    targets = NAMES["make_targets"](tic_tac_toe)
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
