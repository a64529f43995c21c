"""The rules of every game equal references in plain Python, and satisfy the contract."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
import guard
import misere_pile
import reference
from azjax import games
from azjax.games import base, solver
from azjax.games.check import check_game
from azjax.games.square import ENCODINGS, with_pass
from azjax.players import random_agent
from azjax.players.arena import play_match
from azjax.proof.exhaustive import explore
from integers import observe
from misere_pile import NIM
from reference import Position, sign
from refusals import assert_refused

# Sizes of the references in `tests/reference`.
NAMES = ["tic_tac_toe", "connect_four:4x5", "othello:4", "hex:3", "hex_swap:3", "breakthrough:5x3"]
GAMES = {name: games.make(name) for name in NAMES} | {"misere_pile": misere_pile.make()}
COUNT = 8  # Complete random games of each game.
BEYOND = 2  # Actions tried below 0 and above A - 1.


class Walk(NamedTuple):
    """Random games and the successors of all of their positions; `S = (max_plies + 1) * COUNT`."""

    game: base.Game
    states: tuple  # [S, ...]
    legal: np.ndarray  # bool [S, A]
    over: np.ndarray  # bool [S]
    actions: np.ndarray  # [X], all actions, and some out of range.
    steps: base.Step  # [S, X, ...]

    @property
    def allowed(self):
        """Whether each of `actions` is legal, `bool [S, X]`."""
        return np.pad(self.legal, ((0, 0), (BEYOND, BEYOND)))


@pytest.fixture(scope="module", params=GAMES)
def walk(request):
    game = GAMES[request.param]
    actions = np.arange(-BEYOND, game.num_actions + BEYOND)

    def random_game(key):
        def move(state, key):
            action = base.random_action(game, key, state)
            after = game.step(state, action)[0]
            return after, after

        states = jax.lax.scan(move, game.init(), jax.random.split(key, game.max_plies))[1]
        start = jax.tree.map(lambda leaf: leaf[None], game.init())
        return jax.tree.map(lambda *parts: jnp.concatenate(parts), start, states)

    def examine(state):
        steps = jax.vmap(lambda action: base.play(game, state, action))(actions)
        return game.legal_actions(state), game.is_over(state), actions, steps

    @jax.jit
    def explore(keys):
        states = jax.vmap(random_game, out_axes=1)(keys)
        states = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), states)
        out_axes = (0, 0, None, 0)
        return states, *jax.vmap(examine, out_axes=out_axes)(states)

    return Walk(game, *jax.device_get(explore(jax.random.split(jax.random.key(0), COUNT))))


def position(states, *index):
    """One state of a batch, as a position of the reference implementation."""
    board, player, over = (leaf[index] for leaf in (states.board, states.player, states.over))
    return Position(tuple(board.tolist()), int(player), bool(over))


def test_step_equals_the_reference(walk):
    """The random games cover every kind of position."""
    assert {0.0} < set(walk.steps.reward[walk.allowed].tolist())
    assert set(walk.over.tolist()) == {True, False} and set(walk.states.player.tolist()) == {0, 1}
    rules = getattr(reference, walk.game.name.partition(":")[0])
    for s, x in np.ndindex(walk.steps.reward.shape):
        before = position(walk.states, s)
        after, reward = rules.play(before, walk.actions[x])
        assert np.flatnonzero(walk.legal[s]).tolist() == rules.legal(before)
        assert position(walk.steps.state, s, x) == after
        assert walk.steps.reward[s, x] == reward
        assert walk.steps.discount[s, x] == (0 if after.over else sign(before, after))
    moves_twice = (walk.steps.discount[walk.allowed] == 1).any()
    assert moves_twice == (walk.game.name == "misere_pile")


def test_planes(walk):
    """`relative` shows the boards of Breakthrough and Hex from the mover's perspective."""
    board, first = walk.states.board, walk.states.player[:, None] == 0
    shape = (len(board), *walk.game.board_shape, -1)
    absolute, relative = (observe(walk.game, walk.states, encoding) for encoding in ENCODINGS)
    if walk.game.name == "hex_swap:3":
        swaps = np.broadcast_to(walk.states.swaps[:, None, None], (*shape[:-1],))
        assert (absolute[..., 3] == swaps).all() and (relative[..., 2] == swaps).all()
        absolute, relative = absolute[..., :3], relative[..., :2]
    expected = np.stack([board == 1, board == -1, first | np.zeros_like(board, bool)], axis=-1)
    np.testing.assert_array_equal(absolute, expected.reshape(shape))
    turned = board[:, ::-1] if walk.game.name == "breakthrough:5x3" else board
    if walk.game.name.startswith("hex"):
        turned = board.reshape(-1, 3, 3).swapaxes(1, 2).reshape(-1, 9)
    mover = np.where(first, board, -turned)
    np.testing.assert_array_equal(relative, np.stack([mover == 1, mover == -1], -1).reshape(shape))


# The error for a game that violates the contract; `tests/system/test_games.py` checks the games.

SQUARE = games.make("tic_tac_toe")
CELLS = SQUARE.symmetries.cells
PAIR = games.make("mnk:1x3x2")
SWAP = np.array([range(9), [1, 0, *range(2, 9)]])  # Exchanges two cells.
GRID = np.arange(16).reshape(4, 4)
QUARTERS = np.stack([np.rot90(GRID, k).ravel() for k in range(4)])
dice = jax.jit(lambda seed: jax.random.bernoulli(jax.random.PRNGKey(seed)))


def step_of(game, change):
    """Wraps `step` and changes its result by `change(state, action, after, reward)`."""

    def step(state, action):
        return change(state, action, *game.step(state, action))

    return step


def nim_step(change):
    return {"step": step_of(NIM, change)}


REWARDS = {  # Outside the contract.
    "half": nim_step(lambda s, a, t, r: (t, r / 2)),
    "double": nim_step(lambda s, a, t, r: (t, 2 * r)),
    "early": nim_step(lambda s, a, t, r: (t, jnp.where((t != s).any(), 1.0, 0.0))),
}


def square(cells, actions):
    return {"symmetries": base.Symmetries(cells, actions)}


def without_the_corner(state, action, after, reward):
    return base.where(action != 0, after, state), jnp.where(action != 0, reward, 0.0)


def punishes_the_first_cell(state, action, after, reward):
    return after, jnp.where(after.board[0] == 1, -reward, reward)


def labelled(outcomes=((-1, 1, -2), (-1, -1, -1)), class_of=(0, 1), apart=(), left=(2, 4)):
    """Two positions of Nim: with two stones left, and with four."""
    states = np.array([[stones, 0] for stones in left], np.int8)
    positions = base.Positions(
        states, np.array(outcomes), ("few", "many"), np.array(class_of), apart
    )
    return {"positions": lambda: positions}


def no_move_at_four(state):
    return (jnp.arange(3) < state[0]) & (state[0] != 4)


WEAK = {"init": lambda: jnp.int32(7), "step": lambda s, a: (jnp.where(a > 0, 6, 7), 0.0)}
NARROW = {"observe": lambda s, encoding: jnp.zeros((1, 7 if encoding == "unary" else 3, 2), bool)}
STUCK = nim_step(lambda s, a, t, r: (jnp.where(s[0] == 4, s, t), r))
NO_CORNER = {"legal_actions": lambda s: SQUARE.legal_actions(s).at[0].set(False)}
NO_CORNER |= {"step": step_of(SQUARE, without_the_corner)}
UNCHANGED = (
    "on action -2, violates the contract: an illegal action, or one in a finished game, changes"
)
BROKEN_NIM = [  # A change of its record, and the rule that the change violates.
    ({"encodings": ()}, "encodings is a tuple of one name or more"),
    ({"max_plies": None}, "max_plies is an integer above 0"),
    ({"init": lambda key: None}, "init raises TypeError: ... missing 1 required positional"),
    ({"init": lambda: jax.random.key(0)}, "a state has no random key"),
    (nim_step(lambda s, a, t, r: (t, r * dice(a))), "step draws no random numbers"),
    ({"step": lambda s, a: NIM.step(s, a)[0]}, "the next state and the reward, not int8[2]"),
    (nim_step(lambda s, a, t, r: (t + jnp.int32(0), r)), "step returns a state like that of"),
    (WEAK, "is int32[], not int32[] (weak: [True])"),
    ({"num_actions": 4}, "legal_actions is bool[4], not bool[3]"),
    (NARROW, "'binary' is [1, 7, C] as in the first one, not bool[1, 3, 2]"),
    ({"observe": lambda s, encoding: s}, "'unary' is bool or float32[H, W, C], not int8[2]"),
    ({"init": lambda: jnp.array([7, 1], jnp.int8)}, "player 0 is to move at the start"),
    (STUCK | {"legal_actions": no_move_at_four}, "an unfinished game has a legal action"),
    (
        nim_step(lambda s, a, t, r: (jnp.where(a < 0, s - 1, t), r)),
        f"nim at the start, {UNCHANGED}",
    ),
    (nim_step(lambda s, a, t, r: (t, jnp.where(a < 0, 1.0, r))), UNCHANGED),
    (REWARDS["half"], "rewards are -1, 0 or 1"),
    (REWARDS["early"], "on action 0, violates the contract: only the move that ends a"),
    ({"player": lambda s: s[1] % 3}, "the player to move is 0 or 1"),
    ({"display": base.Display(lambda s: 1 / 0)}, "render raises ZeroDivisionError"),
    ({"display": base.Display(name_actions=lambda s: ["1"])}, "name_actions names every action"),
    ({"display": base.Display(draw=lambda s, **look: "nim")}, "draw returns a drawing.Drawing"),
    ({"positions": lambda: None}, "positions returns Positions"),
    (labelled(apart=("few", "many")), "class_of and apart name classes, some are not apart"),
    (labelled(left=(1, 4)), "each of its positions has two or more legal actions"),
    (labelled(outcomes=[(-1, 1, 0), (1, 1, 1)]), "are -2 where illegal, and -1, 0 or 1"),
    (labelled(outcomes=[(-1, 0, -2), (1, 1, 1)]), "that ends the game is its reward"),
]
BROKEN_BOARDS = [
    (SQUARE, square(CELLS[:, :4], CELLS), "the cells of the symmetries are integers [G, 9], not "),
    (SQUARE, square(CELLS.tolist(), CELLS), "the cells and actions of the symmetries are arrays"),
    (SQUARE, square(CELLS[::-1], CELLS), "the first of the symmetries is the identity"),
    (SQUARE, square(CELLS[[0, 0]], CELLS[[0, 0]]), "no two symmetries are the same"),
    (SQUARE, square(CELLS[:2], CELLS[:2]), "the composition of two symmetries is a symmetry"),
    (
        games.make("othello:4"),
        {"symmetries": with_pass(QUARTERS)},
        "symmetry 1 keeps the planes 'ab",
    ),
    (SQUARE, square(CELLS, CELLS[[0] * 8]), "permute the planes of 'absolute' like their cells"),
    (SQUARE, square(SWAP, SWAP), "symmetries keep the turn, the end and the reward"),
    (PAIR, {"step": step_of(PAIR, punishes_the_first_cell)}, "keep the turn, the end and the rew"),
    (SQUARE, NO_CORNER, "the contract: symmetries take legal actions to legal actions"),
    (games.make("mnk:1x3x3"), {"max_plies": 2}, "a game lasts at most max_plies, ... is 2"),
]


def test_every_violation_is_detected():
    """In one sentence."""
    broken = [(NIM, *row) for row in BROKEN_NIM] + BROKEN_BOARDS
    calls = [functools.partial(check_game, g._replace(**change), 8) for g, change, _ in broken]
    with guard.sharing():
        check_game(NIM._replace(**labelled()), 8)
        rules = [rule for *_, rule in broken]
        assert_refused(*zip(calls, rules, strict=True), error=AssertionError)


def test_who_counts_results_refuses_rewards_outside_the_contract(tmp_path):
    """`azjax.train` checks the whole contract first; nothing is left behind."""
    key, rows = jax.random.key(0), []
    for number, change in enumerate(REWARDS.values()):
        game = NIM._replace(name="odd", encodings=("unary",), **change)
        agent = random_agent(game)
        explored = explore(game, lambda s: np.zeros(len(s), int), 0, tmp_path / f"{number}")
        said = "odd gives a reward before the end of a game, or one other than -1, 0 and 1"
        rows += [
            (functools.partial(play_match, game, agent, agent, 32, key), said),
            (functools.partial(solver.solve, game), said),
            (functools.partial(list, explored), said),
            (functools.partial(azjax.train, game, tmp_path / "run"), "violates the contract: "),
        ]
    with guard.sharing():
        assert_refused(*rows)
    assert not (tmp_path / "run").exists()


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
    game = GAMES["breakthrough:5x3"]
    board = np.zeros((5, 3), np.int8)
    board[3, 0], board[2, 1] = 1, -1
    state = game.init()._replace(board=jnp.asarray(board.ravel()))
    actions = np.flatnonzero(game.legal_actions(state))
    assert [game.display.name_actions(state)[action] for action in actions] == ["a4a3", "a4b3"]
    after, rewards = jax.vmap(game.step, (None, 0))(state, actions)
    assert after.over.tolist() == [False, True] and rewards.tolist() == [0, 1]
