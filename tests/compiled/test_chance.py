"""Games with dice: the solver, the contract, searches and self-play follow the probabilities."""

import dataclasses
import functools
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dice_pile
import guard
from azjax import players
from azjax.cli import play
from azjax.games import solver
from azjax.games.base import is_chance
from azjax.players import arena
from azjax.proof import certificate, verify_outputs
from azjax.search import (
    PUCT,
    UCT,
    Gumbel,
    MctxGumbel,
    MctxMuZero,
    MctxPolicy,
    evaluators,
    make_search,
    next_outcome,
    paths,
    simulate,
)
from azjax.training import selfplay, targets
from pairs import pair
from reference import minimax
from small import playing, take

ONE = pair("dice_pile")
GAME = ONE.game
ODDS = np.array([float(share) for share in dice_pile.ODDS])
PLIES, BATCH = 40, 256


@pytest.fixture(scope="module")
def solution():
    with guard.sharing():
        return solver.solve(GAME)


ALGORITHMS = PUCT(60), Gumbel(60), UCT(60), MctxGumbel(60), MctxMuZero(60)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda algorithm: algorithm.algorithm)
def test_searches_visit_outcomes_in_proportion(solution, algorithm):
    states = take(solution.states, ~solution.over)
    exact = np.zeros((dice_pile.STONES + 1, 3), np.float32)
    exact[states.stones, states.dice] = solution.values[~solution.over]

    def evaluate(params, keys, states):
        del params, keys
        values = jnp.asarray(exact)[states.stones, states.dice]
        return jnp.zeros((len(values), 3)), values

    with guard.sharing():
        search = jax.jit(make_search(algorithm, GAME, evaluate, simulate.grow))
        result = search(None, jax.random.key(0), states)
    tree = result.tree
    waits = np.asarray(jax.vmap(jax.vmap(functools.partial(is_chance, GAME)))(tree.embeddings))
    waits = waits & (np.asarray(tree.node_visits) > 0)
    if algorithm.algorithm.startswith("mctx_gumbel"):
        waits[:, 0] = False  # mctx draws at the root.
    visits = np.asarray(tree.children_visits)[waits]
    expected = visits.sum(axis=1, keepdims=True) * ODDS
    assert waits.sum() > 100 and np.abs(visits - expected).max() < 1.5
    decides = np.isin(np.flatnonzero(~solution.over), solution.decisions)
    chosen = solution.action_values[solution.decisions, np.asarray(result.action)[decides]]
    assert (solution.values[solution.decisions] - chosen).mean() < 0.1
    if not algorithm.algorithm.startswith("mctx"):
        with guard.sharing():
            other = jax.jit(make_search(algorithm, GAME, evaluate, paths.grow))
            same = other(None, jax.random.key(0), states)
        jax.tree.map(np.testing.assert_array_equal, same.tree.children_visits, tree.children_visits)
        np.testing.assert_array_equal(same.action, result.action)


def test_nodes_begin_with_different_outcomes():
    numbers, zeros = jnp.arange(6000, dtype=jnp.int16), jnp.zeros(6000, jnp.int8)
    states = dice_pile.State(numbers, zeros, zeros, zeros > 0)
    noise = jax.random.normal(jax.random.key(0), (2, 3))
    shares = []
    for seed in range(2):
        tree = types.SimpleNamespace(embeddings=states, extra_data=None)
        tree.children_visits = jnp.zeros((6000, 3), int)
        tree.children_prior_logits = noise[seed][None]
        find = jax.vmap(functools.partial(next_outcome, dice_pile.chance, tree))
        is_due, first = find(jnp.arange(6000))
        assert np.all(is_due)
        shares.append(np.asarray(first))
    # The share is that of the smallest of three uniform numbers, each divided by its probability.
    expected = np.array([0.1296, 0.5741, 0.2963])
    np.testing.assert_allclose(np.bincount(shares[0], minlength=3) / 6000, expected, atol=0.02)
    for other in (shares[0][1:], shares[1]):  # As if they were drawn: other nodes, other noise.
        same = (shares[0][: len(other)] == other).mean()
        assert abs(same - (expected**2).sum()) < 0.03


def test_a_policy_that_cannot_follow_dice_is_refused():
    search = make_search(MctxPolicy(lambda: None), GAME, evaluators.uniform_evaluator(GAME))
    states = jax.tree.map(lambda leaf: leaf[None], GAME.init())
    with pytest.raises(ValueError, match="qtransform"):
        search(None, jax.random.key(0), states)


def test_losses_of_expected_outcome_are_verified(solution, tic_tac_toe):
    """Of a policy that always takes one stone, and of one that is perfect but for one position."""
    positions = ONE.positions(solution.decision_states)
    outcomes = [minimax.action_values(ONE.rules, position) for position in positions]
    lost = [float(max(values.values()) - values[0]) for values in outcomes]
    first = np.tile(np.float32([1, 0, 0]), (len(lost), 1))
    best = solution.action_values[solution.decisions]
    near = solution._replace(action_values=solution.action_values - 5e-4)
    values = np.zeros(len(lost), np.float32)
    with guard.sharing():
        verdict = verify_outputs(solution, first, values)
        perfect = verify_outputs(solution, best, values)
        slight = verify_outputs(near, best, values)
    counts = verdict.counts()
    np.testing.assert_allclose(verdict.losses, lost, atol=1e-6)
    assert counts["blunders"] == np.sum(np.array(lost) > 0.001) == verdict.is_blunder.sum() > 5
    assert counts["large_blunders"] == np.sum(np.array(lost) > 0.01)
    bound = counts["largest_loss"]
    np.testing.assert_allclose((bound, counts["mean_loss"]), (max(lost), np.mean(lost)), atol=1e-6)
    assert certificate.reached(bound, verdict) and not certificate.reached(bound - 0.01, verdict)
    assert certificate.reached(0.0, perfect) and not certificate.reached(0.0, slight)
    assert slight.counts()["blunders"] == 0 and slight.counts()["mean_loss"] > 4e-4
    fields = {field.name: 0 for field in dataclasses.fields(certificate.Certificate)}
    fields |= dict.fromkeys(("losing_lines_first", "losing_lines_second", "value_sign_errors"))
    fields |= {"searches": (), "versions": {}} | slight.counts()
    proof = certificate.Certificate(**fields)
    title, rows = certificate.certificate_table(proof.as_json())
    assert title == "Verified: no move loses more than 0.0005 of the expected outcome"
    assert proof.perfect and not proof.unbeatable and proof.reaches(0.001)
    assert not proof.reaches(0.0001) and "losing lines" not in str(rows)
    for goal, game in (("unbeatable", GAME), (3.0, GAME), (0.1, tic_tac_toe)):
        with pytest.raises(ValueError, match="use 'perfect' or"):
            certificate.check_goal(goal, game)


def test_both_seats_get_the_same_dice(solution):
    perfect = players.perfect_agent(GAME, solution)
    with guard.sharing():
        match = arena.play_match(GAME, perfect, perfect, 2000, jax.random.key(0))
        games = arena.play_games(GAME, perfect, perfect, 8000, jax.random.key(1), batch_size=8000)
    first, second = match.moving_first, match.moving_second
    assert not match.deterministic and first.distinct > 50 and first[:3] == second[2::-1]
    # The mean of 8,000 results has a standard deviation of 0.011.
    assert abs(games.outcomes.mean() - solution.values[0]) < 0.04
    with pytest.raises(ValueError, match="dice, over which minimax does not average"):
        players.minimax_agent(GAME)


def test_self_play_throws_and_records_the_positions_before_the_dice():
    evaluate = evaluators.rollout_evaluator(GAME)
    parts: Any = playing(GAME, UCT(4), evaluate, games=BATCH, unroll_length=PLIES, opening_plies=2)
    parts.targets = parts.targets._replace(note=targets.no_extra)
    keys = jax.random.split(jax.random.key(1), BATCH)

    @jax.jit
    def run(keys):
        games = selfplay.start_games(parts.selfplay, GAME, keys)
        return games, *selfplay.self_play(parts, None, keys, games)

    with guard.sharing():
        start, _, moves = run(keys)
        waits = jax.vmap(functools.partial(is_chance, GAME))
        assert not np.any(waits(start.states))
        samples = targets.make_samples(targets.TargetConfig(), moves)
    planes = np.asarray(moves.planes)[:, :, 0]
    stones, dice = planes[..., :3].all(-1).sum(-1), planes[..., 0, 3:].argmax(-1)
    shares = np.bincount(dice.ravel(), minlength=3) / dice.size
    assert shares[0] == 0 and abs(shares[1] - 0.6) < 0.02  # 1/2 of 5/6; openings are few.
    over, action = np.asarray(moves.discount) == 0, np.asarray(moves.action)
    # A move goes on to a position with fewer stones, and the turn passes by action 1 only.
    left = np.maximum(stones - np.where(action == 0, 1, dice), 0)
    assert (left[:-1] == stones[1:])[~over[:-1]].all()
    assert (np.sign(moves.discount) == np.where(over, 0, 1 - 2 * action)).all()
    # A game ends by the last stone, or by a throw for who is then to move.
    won = left == 0
    expected = np.where(won, 1.0, np.where(over, np.where(action == 0, -1.0, 1.0), 0.0))
    assert (np.asarray(moves.reward) == expected).all() and (won <= over).all()
    # The second half are the positions before the dice; the last stone needs none, and the value
    # of the last move is not known.
    value, before = np.split(np.asarray(samples.value), 2)
    policy = np.split(np.asarray(samples.policy), 2)[1]
    won[-1] = True
    assert (policy.sum(-1) == won).all() and (before[won] == value[won]).all()
    assert (before[~won] == (value * (1 - 2 * action))[~won]).all()
    after = np.split(np.asarray(samples.planes), 2)[1][:, :, 0]
    assert (after[..., :3].all(-1).sum(-1) == left)[~won].all()
    assert after[..., 0, 3][~won].all()


def test_a_person_may_type_the_dice(capsys, monkeypatch):
    lines = iter(["7", "2", "1", "", "q"])
    monkeypatch.setattr(play, "read_line", lambda prompt: next(lines))
    display = GAME.display._replace(name_actions=lambda state: ("bust", "1", "2"))
    game = GAME._replace(display=display)
    with guard.sharing():
        hint = play.Machine(players.random_agent(game), jax.random.key(0))
        with pytest.raises(play.Leave):
            play.play_game(game, (None, None), hint, jax.random.key(0))
    shown = capsys.readouterr().out
    assert "'7' is not a throw: type one of bust, 1, 2, or press Enter." in shown
    assert "The dice for X show 2." in shown and "The dice for O show" in shown
