"""Every game satisfies the conventions of `azjax.games.base` in random reachable states."""

import functools
import importlib
import itertools
import re
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import misere_pile
from azjax import games, players
from azjax.games import connect_four, solver
from azjax.games.base import (
    Game,
    Step,
    Symmetries,
    init_batch,
    play,
    random_action,
    where,
)
from azjax.games.check import check_game
from azjax.games.display import Display
from azjax.games.in_a_row import find_lines
from azjax.games.positions import Positions
from azjax.games.rows import in_batches
from azjax.games.square import ENCODINGS, column_name
from azjax.games.tic_tac_toe import from_board
from azjax.players.arena import play_match
from azjax.search import UCT, Gumbel
from azjax.search.evaluators import rollout_evaluator, uniform_evaluator
from azjax.training.selfplay import self_play, start_games
from azjax.training.targets import TargetConfig, augment, make_samples
from nim import NIM
from reference import Position, minimax
from reference import tic_tac_toe as tic_tac_toe_rules
from refusals import assert_refused
from small import playing

NAMES = ["tic_tac_toe", "connect_four", "connect_four:3x5", "mnk", "mnk:4x2x3", "mnk:1x4x2"]
NAMES += ["othello:4", "hex:3", "hex_swap:3", "breakthrough:5x3"]  # Sizes for the tests.
GAMES = {name: games.make(name) for name in NAMES}
GAMES |= {"misere_pile": misere_pile.make(), "nim": NIM}
REFERENCES = ["tic_tac_toe", "connect_four", "misere_pile", *NAMES[-4:]]  # In `tests/reference`.
COUNT = 12  # Complete random games of each game.
BEYOND = 2  # Actions tried below 0 and above A - 1.


class Walk(NamedTuple):
    """Random games and the successors of all of their positions; `S = (max_plies + 1) * COUNT`."""

    game: Game
    states: tuple  # [S, ...]
    legal: np.ndarray  # bool [S, A]
    over: np.ndarray  # bool [S]
    actions: np.ndarray  # [X], all actions, and some out of range.
    steps: Step  # [S, X, ...]

    @property
    def allowed(self):
        """Whether each of `actions` is legal, `bool [S, X]`."""
        return np.pad(self.legal, ((0, 0), (BEYOND, BEYOND)))


@pytest.fixture(scope="module", params=REFERENCES)
def walk(request):
    game = GAMES[request.param]
    actions = np.arange(-BEYOND, game.num_actions + BEYOND)

    def random_game(key):
        def move(state, key):
            action = random_action(game, key, state)
            after = game.step(state, action)[0]
            return after, after

        states = jax.lax.scan(move, game.init(), jax.random.split(key, game.max_plies))[1]
        start = jax.tree.map(lambda leaf: leaf[None], game.init())
        return jax.tree.map(lambda *parts: jnp.concatenate(parts), start, states)

    def examine(state):
        steps = jax.vmap(lambda action: play(game, state, action))(actions)
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


def test_the_random_games_cover_every_kind_of_position(walk):
    legal_rewards = walk.steps.reward[walk.allowed]
    assert {0.0} < set(legal_rewards.tolist())
    assert set(walk.over.tolist()) == {True, False}
    assert set(walk.states.player.tolist()) == {0, 1}


def test_step_equals_the_reference(walk):
    rules = importlib.import_module(f"reference.{walk.game.name.partition(':')[0]}")
    for s, x in np.ndindex(walk.steps.reward.shape):
        before = position(walk.states, s)
        after, reward = rules.play(before, walk.actions[x])
        assert np.flatnonzero(walk.legal[s]).tolist() == rules.legal(before)
        assert position(walk.steps.state, s, x) == after
        assert walk.steps.reward[s, x] == reward


def test_the_discount_depends_on_who_moves_next(walk):
    same_player = walk.steps.state.player == walk.states.player[:, None]
    expected = np.where(walk.steps.state.over, 0, np.where(same_player, 1, -1))
    np.testing.assert_array_equal(walk.steps.discount, expected)
    moves_twice = (walk.steps.discount[walk.allowed] == 1).any()
    assert moves_twice == (walk.game.name == "misere_pile")


def test_planes(walk):
    board, first = walk.states.board, walk.states.player[:, None] == 0
    shape = (len(board), *walk.game.board_shape, -1)
    absolute, relative = (observe(walk.game, walk.states, encoding) for encoding in ENCODINGS)
    if walk.game.name == "hex_swap:3":
        swaps = np.broadcast_to(walk.states.swaps[:, None, None], (*shape[:-1],))
        assert (absolute[..., 3] == swaps).all() and (relative[..., 2] == swaps).all()
        absolute, relative = absolute[..., :3], relative[..., :2]
    expected = np.stack([board == 1, board == -1, first | np.zeros_like(board, bool)], axis=-1)
    np.testing.assert_array_equal(absolute, expected.reshape(shape))
    turned = board
    if walk.game.name == "breakthrough:5x3":
        turned = board[:, ::-1]
    elif walk.game.name.startswith("hex"):
        turned = board.reshape(-1, 3, 3).swapaxes(1, 2).reshape(-1, 9)
    mover = np.where(first, board, -turned)
    expected = np.stack([mover == 1, mover == -1], axis=-1)
    np.testing.assert_array_equal(relative, expected.reshape(shape))


def observe(game, states, encoding):
    return np.asarray(jax.jit(jax.vmap(lambda state: game.observe(state, encoding)))(states))


# The contract of every game, and the error for a game that violates it.


# One size of each kind of rules; the others are played against references or pgx.
CHECKED = ["tic_tac_toe", "connect_four:3x5", "mnk:1x4x2", *NAMES[-4:], "misere_pile", "nim"]


@pytest.mark.parametrize("name", CHECKED)
def test_every_game_satisfies_the_contract(name):
    check_game(NIM._replace(**labelled()) if name == "nim" else GAMES[name], num_games=16)


def test_every_registered_game_has_a_reference():
    references = {name.partition(":")[0] for name in REFERENCES}
    assert {*games.available()} - {"mnk"} < references  # Tic-tac-toe of other sizes.


def test_the_number_of_symmetries():
    counts = {name: game.num_symmetries for name, game in GAMES.items()}
    assert counts == {
        **{"tic_tac_toe": 8, "mnk": 8, "mnk:4x2x3": 4, "mnk:1x4x2": 2},
        **{"connect_four": 2, "connect_four:3x5": 2, "misere_pile": 1, "nim": 1},
        **{"othello:4": 4, "hex:3": 2, "hex_swap:3": 2, "breakthrough:5x3": 2},
    }


SQUARE = GAMES["tic_tac_toe"]
CELLS = SQUARE.symmetries.cells
SWAP = np.array([range(9), [1, 0, *range(2, 9)]])  # Exchanges two cells.


def step_of(game, change):
    """Wraps `step` and changes its result by `change(state, action, after, reward)`."""

    def step(state, action):
        return change(state, action, *game.step(state, action))

    return step


def nim_step(change):
    return {"step": step_of(NIM, change)}


def square(cells, actions):
    return {"symmetries": Symmetries(cells, actions)}


def without_the_corner(state, action, after, reward):
    return where(action != 0, after, state), jnp.where(action != 0, reward, 0.0)


def forgetful(calls):
    """An impure `observe`: two calls return different planes."""

    def observe(state, encoding):
        calls.append(encoding)
        return NIM.observe(state, encoding) ^ (len(calls) // 2 % 2 == 1)

    return observe


def labelled(outcomes=((-1, 1, -2), (-1, -1, -1)), class_of=(0, 1), apart=(), left=(2, 4)):
    """Two positions of Nim: with two stones left, and with four."""
    states = np.array([[stones, 0] for stones in left], np.int8)
    positions = Positions(states, np.array(outcomes), ("few", "many"), np.array(class_of), apart)
    return {"positions": lambda: positions}


BROKEN = [  # A game, a change of its record, and the rule that the change violates.
    (NIM, {"encodings": ()}, "encodings is a tuple of one name or more"),
    (NIM, {"encodings": "unary"}, "encodings is a tuple of one name or more"),
    (NIM, {"num_actions": 0}, "num_actions is above 0"),
    (NIM, {"max_plies": 0}, "max_plies is above 0"),
    (NIM, nim_step(lambda s, a, t, r: (t + jnp.int32(0), r)), "step returns a state like that of"),
    (NIM, nim_step(lambda s, a, t, r: (t, r > 0)), "reward of step is float32[], not bool[]"),
    (NIM, {"player": lambda s: s[1] % jnp.int32(2)}, "player is int8[], not int32[]"),
    (NIM, {"is_over": lambda s: s == 0}, "is_over is bool[], not bool[2]"),
    (NIM, {"num_actions": 4}, "legal_actions is bool[4], not bool[3]"),
    (
        NIM,
        {"observe": lambda s, encoding: jnp.zeros((1, 7, 5), jnp.int8)},
        "observe in the encoding 'unary' is bool or float32[1, 7, C], not int8[1, 7, 5]",
    ),
    (
        NIM,
        {"observe": lambda s, encoding: jnp.zeros(7, bool)},
        "observe in the encoding 'unary' is bool or float32[H, W, C], not bool[7]",
    ),
    (
        NIM,
        {"observe": lambda s, encoding: jnp.zeros((1, 7 if encoding == "unary" else 3, 2), bool)},
        "observe in the encoding 'binary' is bool or float32[1, 7, C], not bool[1, 3, 2]",
    ),
    (NIM, {"observe": lambda s, encoding: jnp.zeros((0, 7, 1), bool)}, "planes ... are not empty"),
    (NIM, {"init": lambda: jnp.array([0, 0], jnp.int8)}, "the starting position is not over"),
    (NIM, {"init": lambda: jnp.array([7, 1], jnp.int8)}, "player 0 is to move at the start"),
    (SQUARE, square(CELLS[:, :4], CELLS), "the cells of the symmetries are [G, 9], not [8, 4"),
    (SQUARE, square(CELLS, 0 * CELLS), "every row of the symmetries' actions is a permutation"),
    (SQUARE, square(CELLS[::-1], CELLS), "the first of the symmetries is the identity"),
    (SQUARE, square(CELLS[[0, 0]], CELLS[[0, 0]]), "no two symmetries are the same"),
    (SQUARE, square(CELLS[:3], CELLS[:3]), "the composition of two symmetries is a symmetry"),
    (SQUARE, square(CELLS, CELLS[[0] * 8]), "permute the planes of 'absolute' like their cells"),
    (SQUARE, square(SWAP, SWAP), "symmetries keep the turn, the end and the reward"),
    (
        SQUARE,
        {
            "legal_actions": lambda s: SQUARE.legal_actions(s).at[0].set(False),
            "step": step_of(SQUARE, without_the_corner),
        },
        "at the start violates the contract: symmetries take legal actions to legal actions",
    ),
    (NIM, {"max_plies": 3}, "] violates the contract: a game lasts at most max_plies, ... is 3"),
    (
        NIM,
        nim_step(lambda s, a, t, r: (jnp.where(s[0] == 4, s, t), r))
        | {"legal_actions": lambda s: (jnp.arange(3) < s[0]) & (s[0] != 4)},
        "an unfinished game has a legal action",
    ),
    (NIM, {"is_over": lambda s: s[0] < 2}, "a finished game has no legal action"),
    (
        NIM,
        nim_step(lambda s, a, t, r: (jnp.where(a < 0, s - 1, t), r)),
        "nim at the start, on action -2, violates the contract: an illegal action, or one in a "
        "finished game, changes nothing and earns 0",
    ),
    (
        NIM,
        nim_step(lambda s, a, t, r: (t, jnp.where(s[0] == 0, -1.0, r))),
        "nim after the actions [...], on action -2, violates ...: an illegal action, or one in a",
    ),
    (NIM, nim_step(lambda s, a, t, r: (t, 2 * r)), "rewards are -1, 0 or 1"),
    (
        NIM,
        nim_step(lambda s, a, t, r: (t, jnp.where((t != s).any(), 1.0, 0.0))),
        "on action 0, violates the contract: only the move that ends a game is rewarded",
    ),
    (NIM, {"player": lambda s: s[1] % 3}, "the player to move is 0 or 1"),
    (NIM, {"observe": forgetful([])}, "its functions are pure: they return the same with and"),
    (NIM, {"display": Display(render=lambda s: s)}, "render returns a string"),
    (NIM, {"display": Display(name_actions=lambda s: ["1"])}, "name_actions names every action"),
    (NIM, {"display": Display(draw=lambda s, **look: "nim")}, "draw returns a drawing.Drawing"),
    (NIM, labelled(outcomes=[(-1, 1), (1, 1)]), "outcomes of its positions are ... [2, 3]"),
    (NIM, labelled(class_of=(0, 2)), "class_of and apart of its positions refer to entries"),
    (NIM, labelled(apart=("none",)), "class_of and apart of its positions refer to entries"),
    (NIM, labelled(left=(1, 4)), "each of its positions has two or more legal actions"),
    (NIM, labelled(outcomes=[(-1, 1, 0), (1, 1, 1)]), "are -2 where illegal, and -1, 0 or 1"),
    (NIM, labelled(outcomes=[(-1, 1, -2), (1, 3, 1)]), "are -2 where illegal, and -1, 0 or 1"),
    (NIM, labelled(outcomes=[(-1, 0, -2), (1, 1, 1)]), "that ends the game is its reward"),
]


def test_every_violation_is_detected():
    """In one sentence."""
    calls = [functools.partial(check_game, g._replace(**change), 8) for g, change, _ in BROKEN]
    rules = [rule for _, _, rule in BROKEN]
    assert_refused(*zip(calls, rules, strict=True), error=AssertionError)


# Custom games work everywhere.


def test_records_can_be_hashed():
    assert games.make("tic_tac_toe") is games.make("tic_tac_toe")
    assert len({games.make(name) for name in games.available() * 2}) == len(games.available())
    assert connect_four.make(6, 7) == games.make("connect_four:6x7x4") == games.make("connect_four")
    assert connect_four.make(rows=4, columns=5) == games.make("connect_four:4x5")
    assert connect_four.make().positions and not connect_four.make(6, 7, 5).positions
    assert NIM in {NIM._replace(name="nim")} and NIM not in {NIM._replace(name="other")}


@pytest.fixture(scope="module")
def nim_solution():
    return solver.solve(NIM)


def test_a_game_without_fields_is_solved(nim_solution):
    """With four stones or none, the player to move loses."""
    left = nim_solution.states[:, 0]
    expected = np.where(left == 0, 0, np.where(left % 4 == 0, -1, 1))
    np.testing.assert_array_equal(nim_solution.values, expected)
    classes = solver.symmetry_classes(NIM, nim_solution)
    assert len(set(classes.tolist())) == nim_solution.num_states


@pytest.mark.slow
def test_a_game_without_fields_is_searched_and_played(nim_solution):
    perfect = players.perfect_agent(NIM, nim_solution)
    rivals = [
        players.random_agent(NIM),
        players.search_agent(NIM, UCT(num_simulations=8), rollout_evaluator(NIM)),
    ]
    for rival in rivals:
        match = play_match(NIM, perfect, rival, 8, jax.random.key(0))
        assert match.moving_first.losses == 0 < match.moving_first.wins


@pytest.mark.slow
def test_a_game_without_fields_is_trained():
    search, evaluate = Gumbel(num_simulations=4), uniform_evaluator(NIM)
    parts = playing(NIM, search, evaluate, "binary", games=4, unroll_length=3)
    started = start_games(parts.selfplay, NIM, jax.random.split(jax.random.key(0), 4))
    move = jax.jit(functools.partial(self_play, parts, None))
    _, seen = move(jax.random.key(1), started)
    assert seen.planes.shape == (3, 4, 1, 7, 3)
    samples = jax.tree.map(lambda leaf: leaf[0], make_samples(TargetConfig(), seen))
    same = augment(NIM, jax.random.key(2), samples)
    jax.tree.map(np.testing.assert_array_equal, same, samples)


# Single functions.


def test_random_action_is_uniform_over_the_legal_ones(tic_tac_toe):
    state = from_board([1, -1, 1, 1, -1, -1, 0, 0, 0])
    draw = jax.jit(jax.vmap(lambda key: random_action(tic_tac_toe, key, state)))
    counts = np.bincount(draw(jax.random.split(jax.random.key(0), 3000)), minlength=9)
    assert counts[:6].sum() == 0
    assert (abs(counts[6:] - 1000) < 130).all()  # Five standard deviations.


def test_where_chooses_whole_states(tic_tac_toe):
    started = jax.device_get(init_batch(tic_tac_toe, 2))
    moved = started._replace(board=started.board + np.int8([[1], [-1]]), player=np.int8([1, 0]))
    mixed = where(jnp.array([True, False]), moved, started)
    for leaf, on_true, on_false in zip(mixed, moved, started, strict=True):
        np.testing.assert_array_equal(leaf, [on_true[0], on_false[1]])
    np.testing.assert_array_equal(where(jnp.array(True), moved, started).board, moved.board)


def test_refusals(tic_tac_toe):
    names = [
        ("go", "unknown game 'go': use one of tic_tac_toe"),
        ("connect_four:4", "connect_four:4 has no valid size: write connect_four:ROWSx"),
        ("mnk:3x3", "mnk:3x3 has no valid size: write mnk:ROWSxCOLUMNSxLENGTH"),
        ("mnk:axbxc", "mnk:axbxc has no valid size"),
        ("connect_four:0x5", "connect_four has no board of 0 by 5: use 1 to 32 rows and columns"),
        ("mnk:4x5x6", "6 in a row do not fit on 4 by 5 in mnk: use 1 to 5"),
        ("tic_tac_toe:4x4", "unknown game 'tic_tac_toe:4x4': use one of tic_tac_toe"),
        ("othello:5", "othello has no board of 5 by 5: use an even number from 4 to 16"),
        ("hex:20", "hex has no board of 20 by 20: use 1 to 19"),
        ("hex_swap:1", "hex of 1 by 1 is over before a swap is possible: use 2 or more"),
        ("breakthrough:3x3", "breakthrough has no board of 3 by 3: use 4 to 16 rows and 2 to 16"),
        ("hex:3x3", "hex:3x3 has no valid size: write hex:SIZE"),
    ]
    boards = [
        ([0] * 8, "a board is 9 numbers...shape (8,)"),
        ([[0] * 3] * 3, "a board is 9 numbers...shape (3, 3)"),
        ([2, 0, 0, 0, 0, 0, 0, 0, 0], "cell value 2 is not allowed"),
        ([0.5, 0, 0, 0, 0, 0, 0, 0, 0], "cell value 0.5 is not allowed"),
        ([1, 1, 0, 0, 0, 0, 0, 0, 0], "2 X and 0 O cannot occur"),
        ([-1, 0, 0, 0, 0, 0, 0, 0, 0], "0 X and 1 O cannot occur"),
        ([1, 1, 1, -1, -1, -1, 0, 0, 0], "both X and O have three in a row"),
        ([1, 1, 1, -1, -1, 0, -1, 0, 0], "X has three in a row but O moved after that"),
        ([-1, -1, -1, 1, 1, 0, 1, 1, 0], "O has three in a row but X moved after that"),
    ]
    assert_refused(
        *((functools.partial(games.make, name), sentence) for name, sentence in names),
        *((functools.partial(from_board, board), sentence) for board, sentence in boards),
        (
            lambda: tic_tac_toe.observe(tic_tac_toe.init(), "none"),
            "unknown encoding 'none': use 'absolute' or 'relative'",
        ),
        (
            lambda: jax.jit(from_board)(np.zeros(9, np.int8)),
            "from_board ... on the host, so it cannot be traced: call",
        ),
        (
            lambda: jax.vmap(lambda cell: from_board([cell, *[0] * 8]))(np.zeros(3, np.int8)),
            "pass the states, or play moves inside with",
        ),
    )


def test_games_that_fit_in_memory_can_be_enumerated():
    for name in ("connect_four:4x4", "connect_four:5x4", "connect_four:4x5", "mnk:4x4x4", "mnk"):
        assert games.make(name).enumerable, name
    for name in ("connect_four:5x5", "connect_four", "mnk:4x5x4"):
        assert not games.make(name).enumerable, name


def test_every_line_wins_at_any_size():
    for rows, columns, length in itertools.product(range(1, 5), range(1, 6), range(1, 6)):
        grid = np.arange(rows * columns).reshape(rows, columns)
        windows = {
            frozenset(line.tolist())
            for board in (grid, grid[:, ::-1])
            for r, c in np.ndindex(rows, columns)
            for line in (board[r, c : c + length], board[r : r + length, c],
                         board[r:, c:].diagonal()[:length])
            if len(line) == length
        }  # fmt: skip
        if length <= max(rows, columns):
            lines = find_lines(rows, columns, length)
            assert {frozenset(line) for line in lines.tolist()} == windows
            assert len(lines) == len(windows)


TIC_TAC_TOE_DRAWING = """\
  X | b1 | c1
----+----+----
 a2 |  O | c2
----+----+----
 a3 | b3 |  X"""

CONNECT_FOUR_DRAWING = """\
. . . . . . .
. . . . . . .
. . . . . . .
. . . . . . .
X . . . . . .
X . . . . . O
1 2 3 4 5 6 7"""

MNK_DRAWING = """\
  X | b1 | c1 | d1 | e1 | f1
----+----+----+----+----+----
 a2 | b2 | c2 | d2 | e2 |  O"""

WIDE_DRAWING = """\
 X  .  .  .  .  .  .  .  .  .  .
 X  .  .  .  .  .  .  .  .  .  O
 1  2  3  4  5  6  7  8  9 10 11"""


HEX_DRAWING = """\
  a b c
1 . X .
 2 . . .
  3 O . ."""


def test_render():
    for name, actions, drawing in [
        ("tic_tac_toe", (0, 4, 8), TIC_TAC_TOE_DRAWING),
        ("connect_four", (0, 6, 0), CONNECT_FOUR_DRAWING),
        ("mnk:2x6x3", (0, 11), MNK_DRAWING),
        ("connect_four:2x11", (0, 10, 0), WIDE_DRAWING),
        ("hex_swap:3", (1, 2), HEX_DRAWING),
    ]:
        game = games.make(name)
        state, step = game.init(), jax.jit(game.step)
        for action in actions:
            state = step(state, action)[0]
        assert game.display.render(state) == drawing


def test_the_default_text_of_a_state_is_its_arrays():
    plain, state = Display(), misere_pile.init()
    assert plain.render(state) == "board [0 0 0 0 0]\nplayer 0\nover False"
    assert plain.render(jax.device_get(state)) == plain.render(state)
    assert plain.render(NIM.init()) == "[7 0]"
    nested = {"key": jax.random.key(0), "one": (state.player,)}
    assert re.fullmatch(r"(?s)key .*\[0 0\]\none\.0 0", plain.render(nested))


def test_every_line_wins_in_connect_four():
    """The first stone of each line completes it on top of stones of O."""
    boards, columns = [], []
    for (down, right), row, column in itertools.product(
        [(0, 1), (1, 0), (1, 1), (1, -1)], range(6), range(7)
    ):
        line = [(row + i * down, column + i * right) for i in range(4)]
        if all(0 <= r < 6 and 0 <= c < 7 for r, c in line):
            board = np.zeros((6, 7), np.int8)
            for r, c in line:
                board[r:, c] = -1
            board[tuple(np.transpose(line))] = 1
            board[row, column] = 0
            boards.append(board.ravel())
            columns.append(column)
    assert len(boards) == 69
    game = connect_four.make()
    states = type(game.init())(np.stack(boards), np.zeros(69, np.int8), np.zeros(69, bool))
    after, rewards = jax.jit(jax.vmap(game.step))(states, np.array(columns))
    assert after.over.all() and (rewards == 1).all()


@pytest.mark.slow
def test_from_board_accepts_exactly_the_reachable_boards():
    reachable = {p.board: p for p in set().union(*minimax.reachable(tic_tac_toe_rules))}
    assert len(reachable) == 5478
    for board in itertools.product((-1, 0, 1), repeat=9):
        if board in reachable:
            state = jax.device_get(from_board(board))
            assert position(state) == reachable[board]
        else:
            with pytest.raises(ValueError):
                from_board(board)


def test_every_game_is_tested():
    assert {name.partition(":")[0] for name in NAMES} == set(games.available())


def test_othello_has_the_published_numbers_of_games():
    """Perft numbers, passes included."""
    game, counts = games.make("othello"), [4, 12, 56, 244, 1396, 8200]
    legal_actions = jax.jit(jax.vmap(game.legal_actions))
    step = jax.jit(jax.vmap(lambda state, action: game.step(state, action)[0]))
    states = jax.tree.map(lambda leaf: np.asarray(leaf)[None], game.init())
    for expected in counts:
        parents, actions = np.nonzero(in_batches(legal_actions, (states,), 1024))
        assert len(actions) == expected
        before = jax.tree.map(lambda leaf, parents=parents: leaf[parents], states)
        states = in_batches(step, (before, actions), 1024)


@pytest.mark.parametrize(
    ("name", "value"),  # Of the start, for the first player.
    [
        ("hex:3", 1),
        ("hex_swap:3", -1),
        pytest.param("othello:4", -1, marks=pytest.mark.slow),
    ],
)
def test_games_have_the_published_values(name, value):
    game = games.make(name)
    solution = solver.solve(game)
    assert solution.num_states <= game.most_positions
    assert solution.values[0] == value
    assert (solution.values[solution.decisions] != 0).all() == (name != "othello:4")


@pytest.mark.parametrize("name", ["connect_four:2x2x2", "mnk:2x2x2", "breakthrough:4x2"])
def test_the_bounds_on_positions_and_plies_hold(name):
    game = games.make(name)
    solution = solver.solve(game)
    assert solution.num_states <= game.most_positions
    assert len(solution.layers) - 2 <= game.max_plies


@pytest.mark.parametrize("turned", [False, True])
def test_discs_are_turned_across_the_largest_board(turned):
    """Also, the 256 discs of one color are counted."""
    game = games.make("othello:16")
    board = np.ones((16, 16), np.int8)
    board[0, 1:] = [-1] * 14 + [0]
    state = game.init()._replace(board=jnp.asarray((board.T if turned else board).ravel()))
    after, reward = jax.jit(game.step)(state, 15 * 16 if turned else 15)
    assert (after.board == 1).all() and after.over and reward == 1


@pytest.mark.parametrize("turned", [False, True])
def test_a_long_path_connects_the_sides_of_the_largest_board(turned):
    """The path goes down the last column, along a row, and down the first; each cell is needed."""
    game = games.make("hex:19")
    board = np.zeros((19, 19), np.int8)
    board[:9, 18] = board[9, 1:18] = board[10:, 0] = 1
    stones = np.flatnonzero(board)
    board = (-board.T if turned else board).ravel()
    cells = np.arange(361).reshape(19, 19).T.ravel()[stones] if turned else stones
    all_false = np.zeros(len(stones), bool)
    states = game.init()._replace(
        board=np.where(np.arange(361) == cells[:, None], 0, board),
        player=all_false.astype(np.int8) + np.int8(turned),
        over=all_false,
        swaps=all_false,
    )
    step = jax.jit(jax.vmap(game.step))
    assert step(states, stones)[0].over.all()
    assert not step(states, np.full_like(stones, 360))[0].over.any()


def test_capturing_every_piece_wins():
    game = games.make("breakthrough:5x3")
    board = np.zeros((5, 3), np.int8)
    board[3, 0], board[2, 1] = 1, -1
    state = game.init()._replace(board=jnp.asarray(board.ravel()))
    actions = np.flatnonzero(jax.jit(game.legal_actions)(state))
    assert [game.display.name_actions(state)[action] for action in actions] == ["a4a3", "a4b3"]
    after, rewards = jax.jit(jax.vmap(game.step, (None, 0)))(state, actions)
    assert after.over.tolist() == [False, True] and rewards.tolist() == [0, 1]


def test_a_swap_takes_over_the_mirrored_stone():
    game = games.make("hex_swap:3")
    state, _ = game.step(game.init(), jnp.int32(1))
    assert game.legal_actions(state)[9]
    swapped, _ = game.step(state, jnp.int32(9))
    assert swapped.board.tolist() == [0, 0, 0, -1, 0, 0, 0, 0, 0]
    assert int(swapped.player) == 0 and not game.legal_actions(swapped)[9]
    refused, _ = game.step(state, jnp.int32(5))
    assert not game.legal_actions(refused)[9]


@pytest.mark.parametrize("name", ["hex:4", "breakthrough:5x4"])
def test_there_are_no_draws(name):
    game = games.make(name)

    def finish(key):
        def move(carry, key):
            state, total = carry
            after, reward = game.step(state, random_action(game, key, state))
            return (after, total + jnp.abs(reward)), None

        start = game.init(), jnp.float32(0)
        (state, total), _ = jax.lax.scan(move, start, jax.random.split(key, game.max_plies))
        return game.is_over(state), total

    over, total = jax.jit(jax.vmap(finish))(jax.random.split(jax.random.key(0), 64))
    assert over.all() and (total == 1).all()


def test_columns_after_z_have_two_letters():
    names = [column_name(column) for column in (0, 25, 26, 51, 52)]
    assert names == ["a", "z", "aa", "az", "ba"]


def test_moves_have_their_usual_names():
    othello, hexes, breakthrough = map(games.make, ("othello", "hex_swap:3", "breakthrough:5x3"))
    legal = np.flatnonzero(othello.legal_actions(othello.init()))
    names = othello.display.name_actions(othello.init())
    assert [names[a] for a in legal] == ["d3", "c4", "f5", "e6"]
    assert names[64] == "pass"
    assert [*hexes.display.name_actions(hexes.init())] == [
        *("a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "c3", "swap")
    ]
    state, _ = hexes.step(hexes.init(), jnp.int32(1))  # In the top row, which is on the left for O.
    assert [*hexes.display.name_actions(state)] == [
        *("a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2", "c3", "swap")
    ]
    after, _ = hexes.step(state, jnp.int32(2))
    assert after.board.tolist() == [0, 1, 0, 0, 0, 0, -1, 0, 0]
    state, moves = breakthrough.init(), []
    for action in (31, 28):  # The middle piece moves straight; a piece of O moves to its right.
        moves.append(breakthrough.display.name_actions(state)[action])
        state, _ = breakthrough.step(state, jnp.int32(action))
    assert moves == ["b4b3", "c2c3"]
