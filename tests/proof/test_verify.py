"""The proof by enumeration against a plain recursion, and the effect of one wrong move."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import misere_pile
from azjax.games import solver
from azjax.proof.verify import count_losing_lines, verify
from reference import Position, minimax
from reference import misere_pile as misere_pile_rules
from reference import tic_tac_toe as tic_tac_toe_rules


@pytest.fixture(scope="module")
def check(solution):
    """`(scores [D, A], values [D]) -> Verdict`, compiled once."""
    return jax.jit(lambda scores, values: verify(solution, lambda states: (scores, values)))


def noise(solution, seed):
    return np.random.default_rng(seed).normal(size=solution.legal[solution.decisions].shape)


def policies(solution):
    """Scores `[D, A]` of several policies."""
    outcomes = np.where(solution.legal, solution.action_values, 0)[solution.decisions]
    return {
        "perfect": solution.optimal[solution.decisions] * 1.0,
        "worst": -outcomes,
        "lowest": np.zeros_like(outcomes),
        "random": noise(solution, 0),
        "good": outcomes + noise(solution, 1),
    }


def choices(solution, scores):
    """The policy as `{position: action}`, with the legal action of the highest score."""
    board, player, over = (np.asarray(leaf).tolist() for leaf in solution.decision_states)
    chosen = {}
    for d, position in enumerate(map(Position, map(tuple, board), player, over)):
        legal = np.flatnonzero(solution.legal[solution.decisions[d]]).tolist()
        chosen[position] = max(legal, key=lambda action: scores[d, action])
    return chosen


def lost(rules, policy):
    return [minimax.losing_lines(rules, rules.start(), seat, policy) for seat in (0, 1)]


@pytest.mark.parametrize("name", ["perfect", "worst", "lowest", "random", "good"])
def test_verdict_equals_the_reference(solution, check, name):
    scores = policies(solution)[name].astype(np.float32)
    policy = choices(solution, scores)
    verdict = check(scores, solution.values[solution.decisions])
    outcomes = functools.partial(minimax.action_values, tic_tac_toe_rules)
    blunders = [outcomes(p)[a] < max(outcomes(p).values()) for p, a in policy.items()]
    assert verdict.decision_states == 4520
    assert verdict.actions.tolist() == list(policy.values())
    assert verdict.is_blunder.tolist() == blunders
    assert verdict.blunders == sum(blunders)
    assert verdict.losing_lines.tolist() == lost(tic_tac_toe_rules, policy)


def test_a_perfect_policy_has_no_faults(solution, check):
    verdict = check(policies(solution)["perfect"], solution.values[solution.decisions])
    assert verdict.blunders == 0
    assert verdict.losing_lines.tolist() == [0, 0]
    assert verdict.value_sign_errors == 0
    assert verdict.value_error == 0


def test_the_worst_policy_has_many(solution, check):
    verdict = check(policies(solution)["worst"], -solution.values[solution.decisions])
    assert verdict.blunders > 2000
    assert (verdict.losing_lines > 50).all()


def test_value_errors(solution, check):
    scores, truth = policies(solution)["perfect"], solution.values[solution.decisions]
    decided = int((truth != 0).sum())
    assert check(scores, -truth).value_sign_errors == decided
    assert check(scores, 0 * truth).value_sign_errors == decided
    assert check(scores, 0.01 * truth).value_sign_errors == 0
    assert check(scores, truth + (truth == 0)).value_sign_errors == 0
    values = np.random.default_rng(0).uniform(-1, 1, len(truth)).astype(np.float32)
    verdict = check(scores, values)
    assert verdict.value_sign_errors == sum(
        v * t <= 0 for v, t in zip(values, truth, strict=True) if t != 0
    )
    assert verdict.value_error == pytest.approx(abs(values - truth).mean(), abs=1e-6)


@pytest.mark.parametrize(
    ("moves", "wrong", "lines"),
    [
        ((), None, [0, 0]),
        # X in the corner, O in the center, X opposite: O in a corner loses; X is perfect.
        ((0, 4, 8), 2, [0, 1]),
        # X does not block the column 0, 3, 6, and O wins there.
        ((4, 0, 2, 6), 8, [1, 0]),
    ],
)
def test_one_wrong_move_changes_the_counts(solution, check, moves, wrong, lines):
    """It is one blunder; lines are lost only if the policy itself leads there."""
    scores = policies(solution)["perfect"]
    state = 0
    for move in moves:
        d = np.flatnonzero(solution.decisions == state)[0]
        scores[d] = np.eye(9)[move]  # The policy plays the moves that lead there.
        state = solution.children[state, move]
    before = check(scores, solution.values[solution.decisions])
    assert (before.blunders, before.losing_lines.tolist()) == (0, [0, 0])
    if wrong is not None:
        d = np.flatnonzero(solution.decisions == state)[0]
        scores[d] = np.eye(9)[wrong]
    after = check(scores, solution.values[solution.decisions])
    assert after.blunders == (wrong is not None)
    expected = lost(tic_tac_toe_rules, choices(solution, scores))
    assert after.losing_lines.tolist() == expected
    assert [count > 0 for count in expected] == [line > 0 for line in lines]


def test_a_wrong_move_off_the_path_loses_no_line(solution, check):
    """The policy opens in the center, so its move after an opening at 0 never matters."""
    scores = policies(solution)["perfect"]
    scores[0] = np.eye(9)[4]
    state = solution.children[solution.children[0, 0], 1]  # X at 0, O at 1: O has already lost.
    d = np.flatnonzero(solution.decisions == state)[0]
    scores[d] = np.eye(9)[2]
    verdict = check(scores, solution.values[solution.decisions])
    assert verdict.is_blunder[d]
    assert (verdict.blunders, verdict.losing_lines.tolist()) == (1, [0, 0])


def test_losing_lines_where_the_mover_can_lose():
    solution = solver.solve(misere_pile.make())
    count = jax.jit(functools.partial(count_losing_lines, solution))
    for seed in range(8):
        policy = choices(solution, noise(solution, seed))
        lines = count(jnp.array(list(policy.values())))
        assert lines.tolist() == lost(misere_pile_rules, policy)


def test_the_count_of_losing_lines_is_capped(monkeypatch, solution):
    actions = jnp.argmax(solution.legal[solution.decisions], axis=1)
    whole = count_losing_lines(solution, actions)
    assert (whole > 20).all()
    monkeypatch.setattr("azjax.proof.verify._MOST_LINES", 20)
    assert count_losing_lines(solution, actions).tolist() == [20, 20]


@pytest.mark.parametrize("in_vain", [0, 1, 7])
def test_very_many_losing_lines_of_many_actions_fit_in_32_bits(in_vain):
    """Player 1 wins after eight moves in a row, each of 256 actions: sums would wrap to 0."""
    plies, count = 8, 256
    legal = np.vstack([np.ones((plies, count), bool), np.zeros((1, count), bool)])
    solution = solver.Solution(
        states=None,
        layers=np.arange(plies + 2),
        player=np.ones(plies + 1, np.int8),
        over=~legal[:, 0],
        legal=legal,
        children=np.where(legal, np.arange(1, plies + 2)[:, None], 0),
        rewards=np.where(np.arange(plies + 1) == plies - 1, 1.0, 0.0)[:, None] * legal,
        values=np.where(np.arange(plies + 1) < in_vain, 1.0, 0.0),
        action_values=np.zeros(legal.shape),
        optimal=legal,
        decisions=np.arange(plies),
    )
    lines = count_losing_lines(solution, jnp.zeros(plies, jnp.int32)).tolist()
    assert lines == [(2**31 - 1) // count, 0]


def test_illegal_actions_are_never_chosen(solution, check):
    legal = solution.legal[solution.decisions]
    verdict = check(np.where(legal, -5.0, 5.0), solution.values[solution.decisions])
    assert np.take_along_axis(legal, np.asarray(verdict.actions)[:, None], axis=1).all()


@pytest.mark.parametrize("score", [np.nan, -np.inf])
def test_a_policy_without_preferences_still_plays_legal_moves(check, solution, score):
    legal = solution.legal[solution.decisions]
    scores = np.where(legal, score, 1.0).astype(np.float32)
    truth = solution.values[solution.decisions]
    verdict = check(scores, truth * np.nan)
    np.testing.assert_array_equal(verdict.actions, legal.argmax(axis=1))
    assert verdict.value_sign_errors == (truth != 0).sum()
