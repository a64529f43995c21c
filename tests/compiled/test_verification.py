"""Verification of networks: alone and with searches, in training, and against a recursion."""

import dataclasses
import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games import solver
from azjax.networks import MLPConfig
from azjax.proof import certificate as certificates
from azjax.proof.callbacks import Verification
from azjax.proof.enumeration import count_losing_lines, verify_outputs
from azjax.runs import player as player_module
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.runs.player import Player
from azjax.search import PUCT, Gumbel, SearchResult
from azjax.training.loop import Loop
from azjax.training.metrics import Record
from guard import sharing
from integers import random_like
from pairs import pair
from reference import minimax

CONFIG = dataclasses.replace(
    presets.smoke(presets.get("default")), network=MLPConfig(hidden=(8,), head_hidden=4)
)
PARTS = make_parts(CONFIG)
LARGER = PARTS._replace(game=PARTS.game._replace(most_positions=10**6))
VARIABLES = random_like(jax.eval_shape(PARTS.network.init, jax.random.key(0)), 0)


@pytest.fixture(scope="module")
def alone(solution):
    """The verdict on the network alone."""
    player = Player(PARTS, PARTS.network.fold(VARIABLES))
    return jax.device_get(certificates.examine(player, solution))


def test_searches_are_verified_with_their_settings_and_without_noise(solution, monkeypatch, alone):
    calls = []

    def make_search(search, game, evaluate):
        def find(params, key, states, temperature=0.0, add_noise=False, tree=None):
            calls.append((search, len(states.board), temperature, add_noise))
            legal = jax.vmap(game.legal_actions)(states)
            first, last = jnp.argmax(legal, axis=1), 8 - jnp.argmax(legal[:, ::-1], axis=1)
            action = first if search.algorithm == "puct" else last
            nothing = jnp.zeros(legal.shape)
            return SearchResult(action, nothing, nothing, nothing, nothing[:, 0], tree)

        return find

    monkeypatch.setattr(player_module, "make_search", make_search)
    monkeypatch.setattr(certificates, "SLICE", 1000)
    parts = PARTS._replace(search=PUCT(c_puct=0.3))
    player = Player(parts, parts.network.fold(VARIABLES), 7, moves=77)
    with sharing():
        certificate = certificates.verify(player, (6,), solution=solution)
    searches = PUCT(num_simulations=6, c_puct=0.3), Gumbel(num_simulations=6)
    assert calls == [(search, 1000, 0.0, False) for search in searches]
    legal, optimal = solution.legal[solution.decisions], solution.optimal[solution.decisions]
    played = legal.argmax(axis=1), 8 - legal[:, ::-1].argmax(axis=1)
    blunders = [(~optimal[np.arange(4520), actions]).sum() for actions in played]
    assert [search.blunders for search in certificate.searches] == blunders
    assert certificate.blunders == alone.blunders
    assert (certificate.iterations, certificate.moves) == (7, 77)


# In training.


@pytest.fixture(scope="module")
def verifications():
    """Of a small game, and of the same game with the limits of a larger one."""
    return [Verification(parts) for parts in (PARTS, LARGER)]


def make_loop(iteration, last=9):
    """A loop whose parameters differ from their average."""
    average = jax.device_put(VARIABLES, jax.devices()[-1])
    wrong = jax.tree.map(lambda leaf: leaf + np.nan, average)
    learner = types.SimpleNamespace(average=average, variables=wrong)
    state = types.SimpleNamespace(iteration=np.int32(iteration), learner=learner)
    record = Record(iteration, 0.0, 0, 0.0, {"loss": 0.0})
    return Loop(PARTS, state, None, last, -1e9, record=record)


def test_the_verdict_on_the_average_is_added_to_the_record(verifications, alone, monkeypatch):
    loop, verdict = make_loop(9), alone
    given = []

    def verify(player, simulations, solution):
        given.append((simulations, player.iteration, solution))
        return certificates.Certificate(**dict.fromkeys(fields, 0))

    fields = [field.name for field in dataclasses.fields(certificates.Certificate)]
    monkeypatch.setattr(certificates, "verify", verify)
    for verification in verifications:
        with sharing():
            verification.on_iteration(loop)
        certificate = verification.certify(loop, 5)
        assert (certificate.seed, certificate.device) == (5, "1 x cpu")
        assert certificate.seconds > 1e9  # They count from the start of the training.
    assert given == [(None, 9, verifications[0].solution), ((), 9, verifications[1].solution)]
    jax.tree.map(np.testing.assert_array_equal, verifications[0].verdict, verdict)
    found = loop.record.as_dict()
    for name in ("blunders", "value_sign_errors", "value_error"):
        assert found[name] == getattr(verdict, name)
    lines = [found["losing_lines_first"], found["losing_lines_second"]]
    assert lines == verdict.losing_lines.tolist() and lines[0] != lines[1]


def test_a_larger_game_is_verified_every_few_iterations_and_at_the_end(
    verifications, alone, monkeypatch
):
    """A resumed run is verified at its start."""
    assert verifications[0].every == 1
    every = -(-4520 // (0.1 * 16 * 4 * 5))  # Games, plies, evaluations per move.
    assert verifications[1].every == every
    with sharing():
        assert Verification(LARGER, 500).every == every
        verification = Verification(LARGER, 3)
    monkeypatch.setattr(verification, "_examine", lambda variables: alone)

    def is_verified(iteration, method, last=9):
        verification.verdict = None
        getattr(verification, method)(make_loop(iteration, last))
        return verification.verdict is not None

    assert [i for i in range(1, 8) if is_verified(i, "on_iteration", 8)] == [3, 6]
    assert is_verified(5, "on_iteration", 5)
    stopped = make_loop(5)
    stopped.stop = True  # The time is over.
    verification.on_iteration(stopped)
    assert verification.verdict is not None
    assert is_verified(1, "on_start") and not is_verified(0, "on_start")


# The proof by enumeration, against a plain recursion.


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
        "good": outcomes + noise(solution, 1),
    }


def choices(name, solution, scores):
    """The policy as `{position: action}`, with the legal action of the highest score."""
    legal = np.where(solution.legal[solution.decisions], scores, -np.inf)
    positions = pair(name).positions(solution.decision_states)
    return dict(zip(positions, legal.argmax(axis=1).tolist(), strict=True))


def lost(name, policy):
    rules = pair(name).rules
    return [minimax.losing_lines(rules, rules.start(), seat, policy) for seat in (0, 1)]


@pytest.mark.parametrize("name", ["perfect", "worst", "good"])
def test_verdict_equals_the_reference(solution, check, name):
    scores = policies(solution)[name].astype(np.float32)
    policy, truth = choices("tic_tac_toe", solution, scores), solution.values[solution.decisions]
    values = np.random.default_rng(2).uniform(-1, 1, len(truth)).astype(np.float32)
    values[:100:2], values[1:100:2] = np.nan, 0
    if name == "perfect":
        values = truth
    verdict = check(scores, values)
    outcomes = functools.partial(minimax.action_values, pair("tic_tac_toe").rules)
    blunders = [outcomes(p)[a] < max(outcomes(p).values()) for p, a in policy.items()]
    assert verdict.actions.tolist() == list(policy.values())
    assert verdict.is_blunder.tolist() == blunders
    assert verdict.blunders == sum(blunders)
    assert verdict.losing_lines.tolist() == lost("tic_tac_toe", policy)
    wrong = [t != 0 and not v * t > 0 for v, t in zip(values, truth, strict=True)]
    assert verdict.value_sign_errors == sum(wrong)
    perfect = [not any(count) for count in (blunders, lost("tic_tac_toe", policy), wrong)]
    assert all(perfect) == (name == "perfect")
    if name == "perfect":
        assert verdict.value_error == 0
        assert check(scores, values + (truth == 0)).value_sign_errors == 0
        half = check(scores, 0.5 * values)
        assert half.value_error == pytest.approx(0.5 * np.mean(truth != 0))


def test_losing_lines_where_the_mover_can_lose_and_a_player_moves_twice():
    with sharing():
        solution = solver.solve(pair("misere_pile").game)
        for seed in range(8):
            scores = np.float32(noise(solution, seed))
            found = verify_outputs(solution, scores, scores[:, 0])
            policy = choices("misere_pile", solution, scores)
            assert found.actions.tolist() == [*policy.values()]
            assert found.losing_lines.tolist() == lost("misere_pile", policy)


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
        monkeypatch.setattr("azjax.proof.enumeration._MOST_LINES", cap)
        lines = count_losing_lines(chain(5, 3, 0), jnp.zeros(5, jnp.int32))
        assert lines.tolist() == [expected, 0]
