"""Games that a player can be led into, counted by the rules alone: the oracle counts as many."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

import misere_pile
from azjax import lines
from azjax.oracle import symmetry_classes
from azjax.verify import count_losing_lines


@pytest.fixture(scope="module")
def player(solution):
    """Plays anyhow, but always the same in a position: how, and the moves in all positions."""
    rows = {board.tobytes(): row for row, board in enumerate(np.asarray(solution.states.board))}
    scores = np.random.default_rng(0).random(solution.legal.shape)
    actions = np.where(solution.legal, scores, -1).argmax(axis=1)
    return lambda states: actions[[rows[board.tobytes()] for board in states.board]], actions


def walk(game, act, seat, folder, **settings):
    *_, last = lines.follow(game, act, seat, folder, **settings)
    return last


def count(solution, actions, seat, row=0):
    """Games won, drawn and lost by a player from a position on, one after the other."""
    own = solution.player[row] == seat
    total = np.zeros(3)
    for action in [actions[row]] if own else np.flatnonzero(solution.legal[row]):
        child, reward = solution.children[row, action], solution.rewards[row, action]
        if solution.over[child]:
            total[int(1 - reward * (1 if own else -1))] += 1
        else:
            total += count(solution, actions, seat, child)
    return total


@pytest.mark.parametrize("part_size", [2**18, 50])
@pytest.mark.parametrize("seat", [0, 1])
def test_all_games_are_counted(tic_tac_toe, solution, player, seat, part_size, tmp_path):
    act, actions = player
    found = walk(tic_tac_toe, act, seat, tmp_path / "lines", part_size=part_size)
    assert found.ends.games[0].tolist() == count(solution, actions, seat).tolist()
    assert found.ends.games[0, 2] == count_losing_lines(solution, actions[solution.decisions])[seat]
    assert not found.ends.games[1:].any() and not found.sampled
    share = found.ends.games[0, 2] / found.ends.games[0].sum()
    assert found.ends.share(2) == (share, share, share)


@pytest.fixture(scope="module")
def fair_player(tic_tac_toe, solution):
    """Likes images of each other as well: how it plays, and the moves in all positions."""
    classes = symmetry_classes(tic_tac_toe, solution)
    worth = np.random.default_rng(1).random(classes.max() + 1)[classes]
    actions = np.where(solution.legal, worth[solution.children], -1).argmax(axis=1)
    rows = {board.tobytes(): row for row, board in enumerate(np.asarray(solution.states.board))}
    return lambda states: actions[[rows[board.tobytes()] for board in states.board]], actions


@pytest.mark.parametrize("seat", [0, 1])
def test_images_of_each_other_are_followed_once(tic_tac_toe, solution, fair_player, seat, tmp_path):
    act, actions = fair_player
    every = walk(tic_tac_toe, act, seat, tmp_path / "every")
    found = walk(tic_tac_toe, act, seat, tmp_path / "one", symmetric=True, part_size=50)
    assert found.ends.games.tolist() == every.ends.games.tolist()
    assert found.ends.games[0].tolist() == count(solution, actions, seat).tolist()
    assert found.ends.decisions < every.ends.decisions / 2
    for game in [*lines.lost_games(tmp_path / "one")]:
        row = 0
        for action in game:
            assert solution.legal[row, action]
            row = solution.children[row, action]
        assert solution.over[row] and len(game) % 2 == seat


@pytest.mark.parametrize(("seat", "line", "distinct"), [(0, (0, 5), 8), (1, (1,), 4)])
def test_a_player_is_compared_with_itself_in_images(
    tic_tac_toe, solution, fair_player, seat, line, distinct, tmp_path
):
    """Each image of a position that it comes to is mistreated in turn."""
    act, actions = fair_player
    symmetric = walk(tic_tac_toe, act, seat, tmp_path / "symmetric", symmetric=True)
    fair = walk(tic_tac_toe, act, seat, tmp_path / "fair", symmetric=True, compare=True)
    assert jax.tree.all(jax.tree.map(np.array_equal, fair, symmetric)) and not fair.unlike
    assert seat or actions[0] == line[0]
    images = tic_tac_toe.symmetries.actions
    boards = lines.replay(tic_tac_toe, [tuple(image[[*line]]) for image in images]).board
    original = action_of(act, boards[0])
    for image in range(len(images)):
        here = (boards == boards[image]).all(axis=1)
        liked = images[here, original]
        assert here.sum() == 8 / distinct and action_of(act, boards[image]) in liked
        other = np.setdiff1d(np.flatnonzero(boards[image] == 0), liked)[0]

        def mistreat(states, board=boards[image], other=other):
            return np.where((states.board == board).all(axis=1), other, act(states))

        folder = tmp_path / str(image)
        found = walk(tic_tac_toe, mistreat, seat, folder, symmetric=True, compare=True)
        [(*before, last)] = lines.unlike_games(folder)
        [board] = lines.replay(tic_tac_toe, [tuple(before)]).board
        assert found.unlike and (boards == board).all(axis=1).any()
        assert last == action_of(mistreat, board)
        blind = walk(tic_tac_toe, mistreat, seat, tmp_path / f"blind {image}", symmetric=True)
        assert not blind.unlike and not [*lines.unlike_games(tmp_path / f"blind {image}")]


def action_of(act, board):
    return act(SimpleNamespace(board=board[None]))[0]


def test_a_lost_game_is_the_player_s_own(tic_tac_toe, solution, player, tmp_path):
    act, actions = player
    found = walk(tic_tac_toe, act, 0, tmp_path / "lines", part_size=50)
    games = list(lines.lost_games(tmp_path / "lines"))
    assert found.lost == games[0] and len({*games}) == len(games) == found.ends.moves[2]
    assert [len(game) for game in games] == sorted(len(game) for game in games)
    for game in games:
        row = 0
        for ply, action in enumerate(game):
            assert solution.legal[row, action] and (ply % 2 or action == actions[row])
            reward, row = solution.rewards[row, action], solution.children[row, action]
        assert solution.over[row] and reward == (1 if len(game) % 2 == 0 else -1)


@pytest.mark.parametrize("symmetric", [False, True])
def test_games_may_be_followed_from_other_positions(
    tic_tac_toe, solution, player, symmetric, tmp_path
):
    act, actions = player
    starts = [(4, 0), (8, 4, 0, 2)]
    found = walk(tic_tac_toe, act, 0, tmp_path / "lines", starts=starts, symmetric=symmetric)
    total, lost = np.zeros(3), list(lines.lost_games(tmp_path / "lines"))
    for start in starts:
        row = 0
        for action in start:
            row = solution.children[row, action]
        total += count(solution, actions, 0, row)
    if not symmetric:  # Which this player is not.
        assert found.ends.games[0].tolist() == total.tolist()
    assert lost and all(game[:2] == (4, 0) or game[:4] == (8, 4, 0, 2) for game in lost)
    states = lines.replay(tic_tac_toe, lost)
    assert states.over.all() and found.ends.moves[2] == len(lost)


def test_a_player_may_move_twice_in_a_row(tmp_path):
    game = misere_pile.make()

    def act(states):
        legal = np.asarray(jax.vmap(game.legal_actions)(states))
        return legal.shape[1] - 1 - legal[:, ::-1].argmax(axis=1)  # The last legal one.

    def recurse(state, seat):
        own, total = int(game.player(state)) == seat, np.zeros(3)
        legal = np.flatnonzero(game.legal_actions(state))
        for action in legal[-1:] if own else legal:
            after, reward = game.step(state, action)
            outcome = int(1 - reward * (1 if own else -1))
            total += np.eye(3)[outcome] if game.is_over(after) else recurse(after, seat)
        return total

    for seat in (0, 1):
        found = walk(game, act, seat, tmp_path / str(seat))
        assert found.ends.games[0].tolist() == recurse(game.init(), seat).tolist()
        assert found.ends.games[0].sum() > 1


def test_a_sample_is_an_unbiased_estimate(tic_tac_toe, solution, player, tmp_path):
    act, actions = player
    truth, estimates = count(solution, actions, 1), []
    for most in (96, 128, 160):
        found = walk(tic_tac_toe, act, 1, tmp_path / str(most), most=most, part_size=64)
        assert found.sampled
        share, low, high = found.ends.share(2)
        assert low < share < high and share == pytest.approx(truth[2] / truth.sum(), abs=0.2)
        estimates.extend(found.ends.games[:1] + found.ends.games[1:])
    error = np.std(estimates, axis=0, ddof=1) / np.sqrt(len(estimates))
    assert (abs(np.mean(estimates, axis=0) - truth) < 4 * error).all()
    assert (error < truth / 5).all()


def test_an_interrupted_walk_goes_on(tic_tac_toe, player, tmp_path):
    act, _ = player
    settings = {"most": 128, "part_size": 64}
    whole = walk(tic_tac_toe, act, 1, tmp_path / "whole", **settings)
    calls = []

    def interrupted(states):
        calls.append(len(states.board))
        if len(calls) % 3 == 0:
            raise KeyboardInterrupt
        return act(states)

    for _ in range(100):
        try:
            found = walk(tic_tac_toe, interrupted, 1, tmp_path / "cut", **settings)
            break
        except KeyboardInterrupt:
            continue
    assert len(calls) > 9
    assert jax.tree.all(jax.tree.map(np.array_equal, found, whole))
    asked = len(calls)
    walk(tic_tac_toe, interrupted, 1, tmp_path / "cut", **settings)
    assert len(calls) == asked  # All is known.
