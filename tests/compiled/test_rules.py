"""The rules of every game equal references in plain Python."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import guard
from azjax import games
from azjax.games import backgammon, base, from_pgx, solver
from azjax.games.square import ENCODINGS
from integers import observe
from pairs import Pair, pair
from reference import sign
from small import take

BOARDS = ["tic_tac_toe", "connect_four:4x5", "othello:4", "hex:3", "hex_swap:3", "breakthrough:5x3"]
BOARDS += ["misere_pile"]
NAMES = [*BOARDS, "pgx:tic_tac_toe", "einstein:3", "einstein", "race", "dice_pile", "backgammon"]
PLIES, COUNT = 320, 6
BEYOND = 2  # Actions tried below 0 and above A - 1.


class Walk(NamedTuple):
    """Random games and the successors of all of their positions; `S = PLIES * COUNT`."""

    one: Pair
    states: tuple  # [S, ...]
    legal: np.ndarray  # bool [S, A]
    chance: np.ndarray  # float32 [S, A]
    steps: base.Step  # [S, X, ...], of all actions, and some out of range.


@pytest.fixture(scope="module", params=NAMES)
def walk(request):
    one = pair(request.param)
    game, actions = one.game, np.arange(-BEYOND, one.game.num_actions + BEYOND)

    def move(states, key):
        keys = jax.random.split(key, COUNT)
        drawn = jax.vmap(functools.partial(base.random_action, game))(keys, states)
        after = jax.vmap(game.step)(states, drawn)[0]
        over = jax.vmap(game.is_over)(states)
        return base.where(over, base.init_batch(game, COUNT), after), states

    def examine(state):
        legal = game.legal_actions(state)
        chance = game.chance(state) if game.chance else jnp.zeros(legal.shape)
        return legal, chance, jax.vmap(lambda action: base.play(game, state, action))(actions)

    @jax.jit
    def explore(key):
        states = base.init_batch(game, COUNT)
        states = jax.lax.scan(move, states, jax.random.split(key, PLIES))[1]
        states = jax.tree.map(lambda leaf: leaf.reshape(PLIES * COUNT, *leaf.shape[2:]), states)
        return states, *jax.lax.map(examine, states)

    return Walk(one, *jax.device_get(explore(jax.random.key(0))))


def test_step_equals_the_reference(walk):
    rules, steps = walk.one.rules, walk.steps
    before = walk.one.positions(walk.states)
    over = np.array([position.over for position in before])
    assert before[0] == rules.start() and over.any() and steps.reward.any()
    for position, legal, chance in zip(before, walk.legal, walk.chance, strict=True):
        assert np.flatnonzero(legal).tolist() == rules.legal(position)
        odds = {action: float(share) for action, share in rules.chance(position).items()}
        assert {action: chance[action] for action in np.flatnonzero(chance)} == pytest.approx(odds)
    allowed = np.pad(walk.legal, ((0, 0), (BEYOND, BEYOND)))
    rows, numbers = np.nonzero(allowed)
    made = take(steps, (rows, numbers))
    after = walk.one.positions(made.state)
    found = zip(rows, numbers - BEYOND, after, made.reward, made.discount, strict=True)
    for row, action, position, reward, discount in found:
        assert (position, reward) == rules.play(before[row], action)
        assert discount == (0 if position.over else sign(before[row], position))
    illegal, numbers = np.nonzero(~allowed)  # They change nothing.
    made = take(steps, (illegal, numbers))
    jax.tree.map(np.testing.assert_array_equal, made.state, take(walk.states, illegal))
    assert not made.reward.any()
    np.testing.assert_array_equal(made.discount, ~over[illegal])


@pytest.mark.parametrize("walk", [*BOARDS, "pgx:tic_tac_toe"], indirect=True)
def test_planes(walk):
    """`relative` shows the boards of Breakthrough and Hex from the mover's perspective."""
    game, positions = walk.one.game, walk.one.positions(walk.states)
    board = np.array([position.board for position in positions])
    first = np.array([[position.player == 0] for position in positions])
    shape = (len(board), *game.board_shape, -1)
    planes = {encoding: observe(game, walk.states, encoding) for encoding in game.encodings}
    if game.name == "hex_swap:3":
        swaps = np.broadcast_to(walk.states.swaps[:, None, None], (*shape[:-1],))
        for encoding in ENCODINGS:
            assert (planes[encoding][..., -1] == swaps).all()
            planes[encoding] = planes[encoding][..., :-1]
    turned = board[:, ::-1] if game.name == "breakthrough:5x3" else board
    if game.name.startswith("hex"):
        turned = board.reshape(-1, 3, 3).swapaxes(1, 2).reshape(-1, 9)
    mover = np.where(first, board, -turned)
    expected = {
        "absolute": [board == 1, board == -1, first | np.zeros_like(board, bool)],
        "relative": [mover == 1, mover == -1],
    }
    for encoding, found in planes.items():
        np.testing.assert_array_equal(found, np.stack(expected[encoding], -1).reshape(shape))


# Positions that random games seldom reach.


@pytest.mark.parametrize("name", ["hex_swap:3", "mnk:2x2x2", "breakthrough:4x2"])
def test_the_bounds_on_positions_and_plies_hold(name):
    game = games.make(name)
    with guard.sharing():
        solution = solver.solve(game)
    assert solution.num_states <= game.most_positions
    assert len(solution.layers) - 2 <= game.max_plies
    if name == "hex_swap:3":
        assert solution.values[0] == -1  # Who may swap wins.


@pytest.mark.compiles(1)
def test_discs_are_turned_across_the_largest_board():
    """Also, the 256 discs of one color are counted."""
    board = np.ones((16, 16), np.int8)
    board[0, 1:] = [-1] * 14 + [0]
    game = games.make("othello:16")
    boards, corners = np.stack([board.ravel(), board.T.ravel()]), np.array([15, 15 * 16])
    states = base.init_batch(game, 2)._replace(board=jnp.asarray(boards))
    after, reward = jax.jit(jax.vmap(game.step))(states, corners)
    assert (after.board == 1).all() and after.over.all() and reward.tolist() == [1, 1]


@pytest.mark.compiles(1)
def test_a_long_path_connects_the_sides_of_the_largest_board():
    """The path goes down the last column, along a row, and down the first; each cell is needed."""
    game = games.make("hex:19")
    board = np.zeros((19, 19), bool)
    board[:9, 18] = board[9, 1:18] = board[10:, 0] = True
    stones = np.flatnonzero(board)
    orders = np.array([np.roll(stones, -i) for i in range(len(stones))])  # Any stone comes last.

    @jax.jit
    @jax.vmap
    def play_alone(actions, player):
        def move(state, action):
            state = game.step(state._replace(player=player), action)[0]
            return state, (state.over, state.board)

        return jax.lax.scan(move, game.init(), actions)[1]

    for player, expected in ((0, board), (1, -board.astype(int).T)):
        over, boards = play_alone(orders, np.full(len(stones), player, np.int8))
        assert over[:, -1].all() and not over[:, :-1].any()
        np.testing.assert_array_equal(boards[:, -1], [expected.ravel()] * len(stones))


def test_capturing_every_piece_wins():
    game = games.make("breakthrough:5x3")
    board = np.zeros((5, 3), np.int8)
    board[3, 0], board[2, 1] = 1, -1
    state = game.init()._replace(board=jnp.asarray(board.ravel()))
    actions = np.flatnonzero(game.legal_actions(state))
    assert [game.display.name_actions(state)[action] for action in actions] == ["a4a3", "a4b3"]
    after, rewards = jax.vmap(game.step, (None, 0))(state, actions)
    assert after.over.tolist() == [False, True] and rewards.tolist() == [0, 1]


@pytest.mark.compiles(1)
def test_backgammon_plays_as_many_dice_as_possible():
    """Random positions with few checkers, where the rule excludes moves more often."""
    random, size, one = np.random.default_rng(0), 3000, pair("backgammon")
    checkers = np.zeros((size, 2, 26), np.int8)
    for row in checkers:
        points = random.permutation(24)[:12] + 1
        row[0, points[:3]], row[1, 25 - points[3:]] = 1, random.integers(1, 4, 9)
        row[0, 0], row[1, 0] = 12, 15 - row[1].sum()
        row[0, 25], row[0, 0] = (2, 10) if random.random() < 0.1 else (0, 12)
    left = np.zeros((size, 6), np.int8)
    left[np.arange(size), random.integers(0, 6, size)] += 1
    left[np.arange(size), random.integers(0, 6, size)] += 1
    left[left == 2] = 4
    states = backgammon.State(checkers, np.zeros(size, np.int8), left, np.ones(size, np.int16))
    legal = np.asarray(jax.jit(jax.vmap(one.game.legal_actions))(states))
    excluded = {1: 0, 2: 0}  # Positions with excluded moves, by the number of dice to play.
    for position, actions in zip(one.positions(states), legal, strict=True):
        *sides, thrown, _ = position.board
        assert np.flatnonzero(actions).tolist() == one.rules.legal(position)
        movable = sum(len(one.rules.movable(tuple(sides), 0, die)) for die in set(thrown))
        if actions.sum() < movable:
            excluded[one.rules.longest(tuple(sides), 0, thrown)] += 1
    assert min(excluded.values()) > 20


def test_go_has_its_own_coordinates():
    """The lower left is a1, and the letter i is skipped."""
    state = np.zeros((9, 9, 2), bool)  # In place of a state, its planes.
    state[8, 8, 0] = True
    display = from_pgx._go_display(9, lambda state: state, lambda state: 0)
    names = display.name_actions(state)
    assert (names[0], names[8], *names[-2:]) == ("a9", "j9", "j1", "pass")
    first, *_, last = display.render(state).splitlines()
    assert (first, last) == ("  a b c d e f g h j", "1 . . . . . . . . X")
