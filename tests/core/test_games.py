"""Every game keeps the conventions of `azjax.game`, on random reachable states."""

import importlib
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import misere_pile
from azjax import games
from azjax.game import ENCODINGS, Game, Step, init_batch, play, random_action, where
from azjax.games import connect_four
from azjax.games.tic_tac_toe import from_board
from reference import Position, minimax
from reference import tic_tac_toe as tic_tac_toe_rules

NAMES = [*games.available(), "misere_pile"]
GAMES = 32  # Random games played of each game, from the start to the end.
BEYOND = 2  # Actions tried below 0 and above A - 1.


class Walk(NamedTuple):
    """Random games, and what follows each of their positions; `S = (max_plies + 1) * GAMES`."""

    game: Game
    moves: np.ndarray  # int32 [T, GAMES]
    states: tuple  # [S, ...]
    legal: np.ndarray  # bool [S, A]
    over: np.ndarray  # bool [S]
    actions: np.ndarray  # [X], all actions and some that do not exist.
    steps: Step  # [S, X, ...]

    @property
    def allowed(self):
        """Which of `actions` are legal, `bool [S, X]`."""
        return np.pad(self.legal, ((0, 0), (BEYOND, BEYOND)))


@pytest.fixture(scope="module", params=NAMES)
def walk(request):
    game = misere_pile.make() if request.param == "misere_pile" else games.make(request.param)
    actions = np.arange(-BEYOND, game.num_actions + BEYOND)

    def random_game(key):
        def move(state, key):
            action = random_action(game, key, state)
            after = game.step(state, action)[0]
            return after, (action, after)

        moves, states = jax.lax.scan(move, game.init(), jax.random.split(key, game.max_plies))[1]
        start = jax.tree.map(lambda leaf: leaf[None], game.init())
        return moves, jax.tree.map(lambda *parts: jnp.concatenate(parts), start, states)

    def examine(state):
        steps = jax.vmap(lambda action: play(game, state, action))(actions)
        return game.legal_actions(state), game.is_over(state), actions, steps

    @jax.jit
    def explore(keys):
        moves, states = jax.vmap(random_game, out_axes=1)(keys)
        states = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), states)
        out_axes = (0, 0, None, 0)
        return moves, states, *jax.vmap(examine, out_axes=out_axes)(states)

    return Walk(game, *jax.device_get(explore(jax.random.split(jax.random.key(0), GAMES))))


def position(states, *index):
    """One of many states, as the reference has it."""
    board, player, over = (leaf[index] for leaf in (states.board, states.player, states.over))
    return Position(tuple(board.tolist()), int(player), bool(over))


def test_walk_meets_every_kind_of_position(walk):
    legal_rewards = walk.steps.reward[walk.allowed]
    assert {0.0} < set(legal_rewards.tolist())
    assert set(walk.over.tolist()) == {True, False}
    assert set(walk.states.player.tolist()) == {0, 1}


def test_shapes_and_types(walk):
    game = walk.game
    state = jax.eval_shape(game.init)
    after, reward = jax.eval_shape(game.step, state, jnp.int32(0))
    same = [a == b and not b.weak_type for a, b in zip(jax.tree.leaves(state), after, strict=True)]
    assert all(same)
    assert (game.player(game.init()).dtype, game.player(game.init()).shape) == (jnp.int8, ())
    assert walk.states.board.dtype == np.int8
    assert (reward.dtype, reward.shape) == (jnp.float32, ())
    assert walk.steps.discount.dtype == np.float32
    assert (walk.legal.dtype, walk.legal.shape[1]) == (bool, game.num_actions)
    for encoding, planes in zip(ENCODINGS, (3, 2), strict=True):
        observed = jax.eval_shape(lambda s: game.observe(s, encoding), state)
        assert (observed.dtype, observed.shape) == (bool, (*game.board_shape, planes))


def test_an_action_is_legal_until_the_game_is_over(walk):
    assert (walk.legal.any(axis=1) == ~walk.over).all()


def test_a_game_lasts_at_most_max_plies(walk):
    assert walk.over[-GAMES:].all()


def test_step_equals_the_reference(walk):
    rules = importlib.import_module(f"reference.{walk.game.name}")
    for s, x in np.ndindex(walk.steps.reward.shape):
        before = position(walk.states, s)
        after, reward = rules.play(before, walk.actions[x])
        assert np.flatnonzero(walk.legal[s]).tolist() == rules.legal(before)
        assert position(walk.steps.state, s, x) == after
        assert walk.steps.reward[s, x] == reward


def test_a_step_that_is_not_allowed_changes_nothing(walk):
    ignored = ~walk.allowed
    assert ignored[walk.over].all() and ignored[:, [0, 1, -2, -1]].all()
    assert (walk.steps.reward[ignored] == 0).all()
    for before, after in zip(walk.states, walk.steps.state, strict=True):
        before = np.broadcast_to(np.expand_dims(before, 1), after.shape)
        np.testing.assert_array_equal(after[ignored], before[ignored])


def test_discount_follows_from_who_moves_next(walk):
    same_player = walk.steps.state.player == walk.states.player[:, None]
    expected = np.where(walk.steps.state.over, 0, np.where(same_player, 1, -1))
    np.testing.assert_array_equal(walk.steps.discount, expected)
    moves_twice = (walk.steps.discount[walk.allowed] == 1).any()
    assert moves_twice == (walk.game.name == "misere_pile")


def test_only_the_last_move_is_rewarded(walk):
    goes_on = ~walk.steps.state.over
    assert (walk.steps.reward[goes_on] == 0).all()
    assert np.isin(walk.steps.reward, (-1, 0, 1)).all()


def test_planes(walk):
    absolute, relative = (observe(walk.game, walk.states, encoding) for encoding in ENCODINGS)
    board, first = walk.states.board, walk.states.player[:, None] == 0
    shape = (len(board), *walk.game.board_shape, -1)
    expected = np.stack([board == 1, board == -1, first | np.zeros_like(board, bool)], axis=-1)
    np.testing.assert_array_equal(absolute, expected.reshape(shape))
    mover = np.where(first, board, -board)
    expected = np.stack([mover == 1, mover == -1], axis=-1)
    np.testing.assert_array_equal(relative, expected.reshape(shape))


def observe(game, states, encoding):
    return np.asarray(jax.jit(jax.vmap(lambda state: game.observe(state, encoding)))(states))


def test_symmetries_are_a_group_of_permutations(walk):
    cells, actions = walk.game.symmetries
    height, width = walk.game.board_shape
    assert cells.shape == (walk.game.num_symmetries, height * width)
    assert actions.shape == (walk.game.num_symmetries, walk.game.num_actions)
    assert walk.game.num_symmetries == {"tic_tac_toe": 8, "connect_four": 2}.get(walk.game.name, 1)
    for permutations in (cells, actions):
        assert (np.sort(permutations) == np.arange(permutations.shape[1])).all()
        assert (permutations[0] == np.arange(permutations.shape[1])).all()
    group = {(tuple(c), tuple(a)) for c, a in zip(cells.tolist(), actions.tolist(), strict=True)}
    assert len(group) == walk.game.num_symmetries
    for g, h in itertools.product(range(len(cells)), repeat=2):
        both = tuple(cells[g][cells[h]].tolist()), tuple(actions[g][actions[h]].tolist())
        assert both in group


def test_the_transformed_moves_lead_to_the_transformed_positions(walk):
    """Planes, legal actions and rewards of a game replayed in a mirror are the mirrored ones."""
    game = walk.game

    @jax.jit
    def replay(moves):  # [T, G * GAMES]
        def move(states, actions):
            steps = jax.vmap(lambda state, action: play(game, state, action))(states, actions)
            planes = jax.vmap(lambda state: game.observe(state, "absolute"))(steps.state)
            legal = jax.vmap(game.legal_actions)(steps.state)
            return steps.state, (planes, legal, steps.reward, steps.discount)

        return jax.lax.scan(move, init_batch(game, moves.shape[1]), moves)[1]

    cells, actions = game.symmetries
    moves = np.argsort(actions)[:, walk.moves].transpose(1, 0, 2)  # The inverse, [T, G, GAMES].
    seen = replay(moves.reshape(len(moves), -1))
    planes, legal, reward, discount = (np.reshape(x, (*moves.shape, *x.shape[2:])) for x in seen)
    planes = planes.reshape(*moves.shape, -1, 3)
    for g in range(game.num_symmetries):
        np.testing.assert_array_equal(planes[:, g], planes[:, 0][:, :, cells[g]])
        np.testing.assert_array_equal(legal[:, g], legal[:, 0][..., actions[g]])
        np.testing.assert_array_equal(reward[:, g], reward[:, 0])
        np.testing.assert_array_equal(discount[:, g], discount[:, 0])


def test_a_second_step_does_not_retrace(walk):
    traces = []

    @jax.jit
    @jax.vmap
    def step(state, action):
        traces.append(1)
        return walk.game.step(state, action)[0]

    actions = jnp.zeros(3, jnp.int32)
    step(step(init_batch(walk.game, 3), actions), actions)
    assert len(traces) == 1


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


def test_unknown_names_are_refused(tic_tac_toe):
    with pytest.raises(ValueError, match="unknown game 'go': use one of tic_tac_toe"):
        games.make("go")
    with pytest.raises(ValueError, match="unknown encoding 'none': use 'absolute' or 'relative'"):
        tic_tac_toe.observe(tic_tac_toe.init(), "none")


TIC_TAC_TOE_DRAWING = """\
 X | 1 | 2
---+---+---
 3 | O | 5
---+---+---
 6 | 7 | X"""

CONNECT_FOUR_DRAWING = """\
. . . . . . .
. . . . . . .
. . . . . . .
. . . . . . .
X . . . . . .
X . . . . . O
0 1 2 3 4 5 6"""


@pytest.mark.parametrize(
    ("name", "actions", "drawing"),
    [
        ("tic_tac_toe", (0, 4, 8), TIC_TAC_TOE_DRAWING),
        ("connect_four", (0, 6, 0), CONNECT_FOUR_DRAWING),
    ],
    ids=games.available(),
)
def test_render(name, actions, drawing):
    game = games.make(name)
    state, step = game.init(), jax.jit(game.step)
    for action in actions:
        state = step(state, action)[0]
    assert game.render(state) == drawing


def test_connect_four_sees_every_line():
    """The first stone of each line falls onto O's; the other three of X lie there."""
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
    states = connect_four.State(np.stack(boards), np.zeros(69, np.int8), np.zeros(69, bool))
    after, rewards = jax.jit(jax.vmap(connect_four.step))(states, np.array(columns))
    assert after.over.all() and (rewards == 1).all()


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


@pytest.mark.parametrize("player", [None, 0])
def test_from_board_cannot_be_traced(player):
    with pytest.raises(ValueError, match="from_board .* on the host, so it cannot be traced: call"):
        jax.jit(lambda board: from_board(board, player))(np.zeros(9, np.int8))
    with pytest.raises(ValueError, match="hand the states in, or move inside by jax.vmap over"):
        jax.vmap(lambda cell: from_board([cell, *[0] * 8]))(np.zeros(3, np.int8))


def test_from_board_takes_the_player_whose_turn_it_is():
    assert from_board([1, 0, 0, 0, 0, 0, 0, 0, 0], player=1).player == 1


@pytest.mark.parametrize(
    ("board", "player", "message"),
    [
        ([0] * 8, None, r"a board is 9 numbers.*shape \(8,\)"),
        ([[0] * 3] * 3, None, r"a board is 9 numbers.*shape \(3, 3\)"),
        ([2, 0, 0, 0, 0, 0, 0, 0, 0], None, "cell value 2 is not allowed"),
        ([0.5, 0, 0, 0, 0, 0, 0, 0, 0], None, "cell value 0.5 is not allowed"),
        ([1, 1, 0, 0, 0, 0, 0, 0, 0], None, "2 X and 0 O cannot occur"),
        ([-1, 0, 0, 0, 0, 0, 0, 0, 0], None, "0 X and 1 O cannot occur"),
        ([1, 0, 0, 0, 0, 0, 0, 0, 0], 0, "player 0 cannot be to move.*pass player=1"),
        ([0, 0, 0, 0, 0, 0, 0, 0, 0], 1, "player 1 cannot be to move.*pass player=0"),
        ([1, 1, 1, -1, -1, -1, 0, 0, 0], None, "both X and O have three in a row"),
        ([1, 1, 1, -1, -1, 0, -1, 0, 0], None, "X has three in a row but O moved after that"),
        ([-1, -1, -1, 1, 1, 0, 1, 1, 0], None, "O has three in a row but X moved after that"),
    ],
)
def test_from_board_says_what_is_wrong(board, player, message):
    with pytest.raises(ValueError, match=message):
        from_board(board, player)
