"""The labelled positions of Connect Four are correct, and errors on them are counted."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
from azjax.games import connect_four
from azjax.games.positions import ILLEGAL, Positions
from azjax.players import alpha_beta_agent
from azjax.players.statistics import mean_proportion, proportion
from azjax.proof.labelled import MEAN, ErrorCounts, count_errors, in_slices, random_errors, rates
from azjax.proof.verify import verify
from reference import Position
from reference import connect_four as rules

GAME = azjax.make("connect_four")
ENDGAMES = 36
LEFT = 7  # Empty cells of an endgame, at most.
PHASES = {"begin": (0, 14), "middle": (15, 28), "end": (29, 41)}
LENGTHS = {"easy": (1, 14), "medium": (15, 28), "hard": (29, 42)}
# Expected errors of random moves, in %.
RANDOM = {
    "begin-easy": 32.6,
    "begin-medium": 26.1,
    "begin-hard": 46.4,
    "middle-easy": 33.5,
    "middle-medium": 33.2,
    "end-easy": 27.2,
    "decisive": 83.3,
    "mean": 33.2,
}


@pytest.fixture(scope="module")
def positions():
    return connect_four.positions()


@pytest.fixture(scope="module")
def plies():
    """`int8 [S, 7]`, plies to the end of the game after each move."""
    with np.load(connect_four.POSITIONS) as file:
        return file["plies"]


def stones(positions):
    return np.count_nonzero(positions.states.board, axis=1)


def best(positions):
    return positions.outcomes.max(axis=1, keepdims=True)


# The positions of Connect Four.


def test_there_are_a_thousand_of_each_class(positions):
    names = np.array(positions.classes)[positions.class_of]
    assert dict(zip(*np.unique(names, return_counts=True), strict=True)) == dict.fromkeys(
        positions.classes, 1000
    )
    assert positions.apart == ("decisive",)
    assert {*positions.classes, MEAN} == {*RANDOM}


def test_positions_fit_their_classes(positions, plies):
    """With perfect play the winner wins as soon, and the loser loses as late, as possible."""
    sooner = np.where(positions.outcomes == 1, -1, 1) * plies.astype(int)
    kept = np.where(positions.outcomes == best(positions), sooner, -99)
    length = np.abs(kept.max(axis=1))
    for k, name in enumerate(positions.classes):
        rows = positions.class_of == k
        if name == "decisive":
            assert ((positions.outcomes == best(positions)).sum(axis=1) == 1)[rows].all()
            continue
        phase, difficulty = name.split("-")
        ranges = (stones(positions), PHASES[phase]), (length, LENGTHS[difficulty])
        for numbers, (low, high) in ranges:
            assert low <= numbers[rows].min() and numbers[rows].max() <= high


def test_no_two_are_the_same_or_mirror_images(positions):
    boards = positions.states.board.reshape(-1, 6, 7)
    distinct = {min(board.tobytes(), board[:, ::-1].tobytes()) for board in boards}
    assert len(distinct) == len(boards)


def test_outcomes_and_plies_agree(positions, plies):
    """The player to move wins after an odd number of plies; a draw fills the board."""
    left = 42 - stones(positions)[:, None]
    for outcome, right in {
        1: (plies % 2 == 1) & (plies <= left),
        0: plies == left,
        -1: (plies % 2 == 0) & (plies <= left) & (plies > 0),
        ILLEGAL: plies == 0,
    }.items():
        assert right[positions.outcomes == outcome].all()


@pytest.fixture(scope="module")
def endgames(positions):
    able = np.flatnonzero(stones(positions) >= 42 - LEFT)
    return np.random.default_rng(0).choice(able, ENDGAMES, replace=False)


@pytest.mark.parametrize("mirrored", [False, True])
def test_alpha_beta_finds_the_labels_of_endgames(mirrored, positions, endgames):
    states = jax.tree.map(lambda leaf: leaf[endgames], positions.states)
    order = slice(None, None, -1 if mirrored else 1)
    boards = states.board.reshape(-1, 6, 7)[..., order].reshape(-1, 42)
    step = jax.vmap(jax.vmap(GAME.step, (None, 0)), (0, None))
    after, rewards = jax.jit(step)(states._replace(board=boards), jnp.arange(7))
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), after)
    act = jax.jit(functools.partial(alpha_beta_agent(GAME, LEFT).act, None))
    values = act(jax.random.key(0), flat).value.reshape(rewards.shape)
    outcomes = positions.outcomes[endgames][:, order]
    found = np.where(outcomes == ILLEGAL, ILLEGAL, rewards - values * ~after.over)
    np.testing.assert_array_equal(found, outcomes)


def solve(position):
    """Returns `{action: (outcome, plies)}` for the player to move, by plain recursion."""
    found = {}
    for action in rules.legal(position):
        after, reward = rules.play(position, action)
        found[action] = (reward, 1)
        if not after.over:
            outcome, plies = choose(solve(after))
            found[action] = (-outcome, plies + 1)
    return found


def choose(found):
    """The best result: win soon, or lose late."""
    return max(found.values(), key=lambda pair: (pair[0], -pair[0] * pair[1]))


def test_recursion_finds_the_plies_of_endgames(positions, plies, endgames):
    for row in endgames:
        board, player = positions.states.board[row], positions.states.player[row]
        found = solve(Position(tuple(board.tolist()), int(player), False))
        assert {a: o for a, (o, _) in found.items()} == {
            a: o for a, o in enumerate(positions.outcomes[row].tolist()) if o != ILLEGAL
        }
        assert [found.get(a, (0, 0))[1] for a in range(7)] == plies[row].tolist()


# Errors.


@pytest.fixture(scope="module")
def tic_tac_toe_positions(solution):
    """Every position of tic-tac-toe with several moves, in classes by the number of stones."""
    rows = solution.decisions[solution.legal[solution.decisions].sum(axis=1) > 1]
    outcomes = np.where(solution.legal, solution.action_values, ILLEGAL)[rows].astype(np.int8)
    states = jax.tree.map(lambda leaf: leaf[rows], solution.states)
    class_of = np.count_nonzero(states.board, axis=1)
    names = tuple(f"{count} stones" for count in range(8))
    return Positions(states, outcomes, names, class_of, apart=("0 stones",))


@functools.cache
def counted(make):
    """Compiles the count once for the positions that a function makes."""
    return jax.jit(lambda *answers: count_errors(make(), lambda _: answers))


def noise(positions, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=positions.outcomes.shape), rng.normal(size=len(positions.outcomes))


@pytest.mark.slow
def test_errors_equal_the_blunders_of_the_proof(solution, tic_tac_toe_positions):
    """Over all positions with several moves; the others cannot be wrong."""
    scores, values = noise(tic_tac_toe_positions, 0)
    rows = np.flatnonzero(solution.legal[solution.decisions].sum(axis=1) > 1)
    everywhere = np.zeros((len(solution.decisions), 9)), solution.values[solution.decisions].copy()
    everywhere[0][rows], everywhere[1][rows] = scores, values
    verdict = verify(solution, lambda _: everywhere)
    counts = count_errors(tic_tac_toe_positions, lambda _: (scores, values))
    assert counts.errors.sum() == verdict.blunders > 0
    assert counts.sign_errors.sum() == verdict.value_sign_errors > 0
    assert counts.positions.sum() == len(rows)
    assert counts.positions.tolist() == np.bincount(tic_tac_toe_positions.class_of).tolist()


def test_decisive_positions_are_those_with_one_good_move(tic_tac_toe_positions):
    scores, values = noise(tic_tac_toe_positions, 1)
    counts = count_errors(tic_tac_toe_positions, lambda _: (scores, values))
    outcomes, class_of = tic_tac_toe_positions.outcomes, tic_tac_toe_positions.class_of
    legal = outcomes != ILLEGAL
    actions = np.where(legal, scores, -np.inf).argmax(axis=1)
    wins = outcomes.max(axis=1)
    one = np.array([list(row).count(win) == 1 for row, win in zip(outcomes, wins, strict=True)])
    wrong = outcomes[np.arange(len(actions)), actions] < wins
    for k in range(8):
        of = class_of == k
        assert (counts.decisive[k], counts.decisive_errors[k]) == (
            (of & one).sum(),
            (of & one & wrong).sum(),
        )
        assert counts.decided[k] == (of & (wins != 0)).sum()


def test_a_perfect_policy_has_no_errors_and_an_inverted_one_has_all(positions):
    truth = best(positions)[:, 0]
    scores = positions.outcomes.astype(np.float32)
    perfect = counted(connect_four.positions)(scores, 0.1 * truth)
    assert perfect.errors.sum() == perfect.sign_errors.sum() == 0
    worst = counted(connect_four.positions)(-scores, -truth)
    assert (worst.sign_errors == worst.decided).all()
    assert (worst.decisive_errors == worst.decisive).all()
    losing = (positions.outcomes != ILLEGAL) & (positions.outcomes < best(positions))
    assert worst.errors.sum() == losing.any(axis=1).sum()


def test_random_moves_have_the_expected_errors(positions):
    expected = random_errors(positions)
    assert {name: round(100 * share, 1) for name, share in expected.items()} == RANDOM
    scores, values = noise(positions, 2)
    found = rates(positions, counted(connect_four.positions)(scores, values)).errors
    for name, share in expected.items():
        assert abs(found[name].estimate - share) < 0.06  # Four standard deviations of 1,000.


def test_illegal_moves_and_nan_give_a_legal_move(positions):
    """It is the lowest one, as in the proof."""
    legal = positions.outcomes != ILLEGAL
    lowest = positions.outcomes[np.arange(len(legal)), legal.argmax(axis=1)]
    wrong = (lowest < best(positions)[:, 0]).sum()
    for score in (np.nan, -np.inf):
        scores = np.where(legal, score, 1.0).astype(np.float32)
        counts = counted(connect_four.positions)(scores, np.full(len(legal), np.nan))
        assert counts.errors.sum() == wrong
        assert (counts.sign_errors == counts.decided).all()


def test_rates_are_shares_with_intervals():
    positions = Positions((), np.zeros((1, 1)), ("a", "b", "c"), np.zeros(1), apart=("c",))
    counts = ErrorCounts(
        *map(np.array, ([9, 4, 5], [3, 1, 5], [0, 2, 1], [0, 1, 0], [0, 0, 1], [0, 0, 0]))
    )
    found = rates(positions, counts)
    expected = {"a": (3, 9), "b": (1, 4), "c": (5, 5)}
    mean = mean_proportion([3, 1], [9, 4])
    assert found.errors == {n: proportion(*x) for n, x in expected.items()} | {MEAN: mean}
    assert found.decisive_errors == {
        "b": proportion(1, 2),
        "c": proportion(0, 1),
        MEAN: mean_proportion([1], [2]),
    }
    assert found.sign_errors == {"c": proportion(0, 1)}  # No mean without positions.


@pytest.mark.parametrize("count", [1, 500, 1203])
def test_slices_give_the_same_results(count):
    sizes, done = [], []

    def policy(states):
        sizes.append(len(states))
        return states[:, None] * np.arange(3), -states

    states = np.arange(count)
    scores, values = in_slices(policy, done.append)(states)
    np.testing.assert_array_equal(scores, states[:, None] * np.arange(3))
    np.testing.assert_array_equal(values, -states)
    assert set(sizes) == {500} and done[-1] == count and len(done) == -(-count // 500)
