"""The proof by enumeration against a plain recursion, and the effect of one wrong move."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

import guard
import misere_pile
from azjax.games import solver
from azjax.proof.verify import count_losing_lines, verify_outputs
from reference import Position, minimax
from reference import misere_pile as misere_pile_rules
from reference import tic_tac_toe as tic_tac_toe_rules


@pytest.fixture(scope="module")
def check(solution):
    """`(scores [D, A], values [D]) -> Verdict`, compiled once."""
    zeros = np.zeros((len(solution.decisions), 9), np.float32)
    verify_outputs(solution, zeros, zeros[:, 0])
    return lambda scores, values: verify_outputs(solution, np.float32(scores), np.float32(values))


def noise(solution, seed):
    return np.random.default_rng(seed).normal(size=solution.legal[solution.decisions].shape)


def policies(solution):
    """Scores `[D, A]` of several policies."""
    outcomes = np.where(solution.legal, solution.action_values, 0)[solution.decisions]
    return {
        "perfect": solution.optimal[solution.decisions] * 1.0,
        "worst": -outcomes,
        "lowest": np.zeros_like(outcomes),
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


@pytest.mark.parametrize("name", ["perfect", "worst", "lowest", "good"])
def test_verdict_equals_the_reference(solution, check, name):
    scores = policies(solution)[name].astype(np.float32)
    policy, truth = choices(solution, scores), solution.values[solution.decisions]
    values = np.random.default_rng(2).uniform(-1, 1, len(truth)).astype(np.float32)
    values[:100:2], values[1:100:2] = np.nan, 0
    if name == "perfect":
        values = truth
    verdict = check(scores, values)
    outcomes = functools.partial(minimax.action_values, tic_tac_toe_rules)
    blunders = [outcomes(p)[a] < max(outcomes(p).values()) for p, a in policy.items()]
    assert verdict.decision_states == 4520
    assert verdict.actions.tolist() == list(policy.values())
    assert verdict.is_blunder.tolist() == blunders
    assert verdict.blunders == sum(blunders)
    assert verdict.losing_lines.tolist() == lost(tic_tac_toe_rules, policy)
    wrong = [t != 0 and not v * t > 0 for v, t in zip(values, truth, strict=True)]
    assert verdict.value_sign_errors == sum(wrong)
    perfect = [not any(count) for count in (blunders, lost(tic_tac_toe_rules, policy), wrong)]
    assert all(perfect) == (name == "perfect")
    if name == "perfect":
        assert verdict.value_error == 0
        assert check(scores, values + (truth == 0)).value_sign_errors == 0
        half = check(scores, 0.5 * values)
        assert half.value_error == pytest.approx(0.5 * np.mean(truth != 0))


def test_losing_lines_where_the_mover_can_lose_and_a_player_moves_twice():
    with guard.sharing():
        solution = solver.solve(misere_pile.make())
        for seed in range(8):
            scores = np.float32(noise(solution, seed))
            found = verify_outputs(solution, scores, scores[:, 0])
            policy = choices(solution, scores)
            assert found.actions.tolist() == [*policy.values()]
            assert found.losing_lines.tolist() == lost(misere_pile_rules, policy)


def chain(plies, count, in_vain):
    """Player 1 wins after some moves in a row; the first positions are lost for player 0 anyway."""
    legal = np.vstack([np.ones((plies, count), bool), np.zeros((1, count), bool)])
    return solver.Solution(
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


def test_counts_of_losing_lines_are_capped_and_fit_in_32_bits(monkeypatch):
    """Eight moves of 256 actions each: sums would wrap to 0."""
    for in_vain in (0, 1, 7):
        lines = count_losing_lines(chain(8, 256, in_vain), jnp.zeros(8, jnp.int32)).tolist()
        assert lines == [(2**31 - 1) // 256, 0]
    for cap, expected in ((10**7, 3**5), (20, 20)):
        monkeypatch.setattr("azjax.proof.verify._MOST_LINES", cap)
        lines = count_losing_lines(chain(5, 3, 0), jnp.zeros(5, jnp.int32))
        assert lines.tolist() == [expected, 0]
