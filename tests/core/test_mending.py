"""Players that are beaten learn better moves, until they are beaten no more."""

import jax
import numpy as np
import pytest

from azjax import lines, mending
from azjax.agents import Decision, network_agent
from azjax.evaluators import uniform_evaluator
from azjax.game import init_batch
from azjax.mending import book_agent, empty_book, load_book, mend, save_book
from azjax.oracle import symmetry_classes


def rows_of(states, rows):
    return jax.tree.map(lambda leaf: leaf[rows], states)


@pytest.fixture(scope="module")
def place(solution):
    """`states -> rows` of the solution."""
    rows = {board.tobytes(): row for row, board in enumerate(np.asarray(solution.states.board))}
    return lambda states: np.array([rows[board.tobytes()] for board in states.board], int)


@pytest.fixture(scope="module")
def think(solution, place):
    """Expects of every move what it is worth."""

    def think(states):
        rows = place(states)
        worth, legal = solution.action_values[rows], solution.legal[rows]
        q_values = np.where(legal, worth, 0)
        return Decision(worth.argmax(axis=1), legal, q_values=q_values, visit_counts=legal)

    return think


def by_book(book, place):
    """Its moves, by the positions' rows of the solution."""
    rows = place(book.states)
    assert len({*rows.tolist()}) == len(rows)
    return dict(zip(rows.tolist(), book.actions.tolist(), strict=True))


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("seat", [0, 1])
def test_a_player_is_mended_until_no_game_is_lost(
    tic_tac_toe, solution, place, think, seat, symmetric, tmp_path
):
    worth = np.random.default_rng(1).random(solution.num_states)
    if symmetric:
        worth = worth[symmetry_classes(tic_tac_toe, solution)]
    actions = np.where(solution.legal, worth[solution.children], -1).argmax(axis=1)
    book, lost = empty_book(tic_tac_toe), []
    for number in range(12):
        moves = by_book(book, place)

        def act(states, moves=moves):
            return np.array([moves.get(row, actions[row]) for row in place(states).tolist()])

        folder = tmp_path / str(number)
        *_, found = lines.follow(tic_tac_toe, act, seat, folder, symmetric=symmetric)
        games = list(lines.lost_games(folder))
        lost.append(found.ends.moves[2])
        if not games:
            break
        mended = mend(tic_tac_toe, book, games, seat, think, symmetric)
        assert not mended.helpless and 0 < len(mended.starts) <= len(games)
        rows = place(lines.replay(tic_tac_toe, mended.starts)).tolist()
        book, moves = mended.book, by_book(mended.book, place)
        assert len({*rows}) == len(rows) and {*rows} <= {*moves}
    assert lost[0] > 20 and lost[-1] == 0
    assert moves and all(solution.optimal[row, action] for row, action in moves.items())
    assert all(solution.player[row] == seat for row in moves)
    if symmetric:  # So it may be played, too, in the images that were not followed.
        *_, every = lines.follow(tic_tac_toe, act, seat, tmp_path / "every")
        assert every.ends.moves[2] == 0 and every.ends.decisions > found.ends.decisions


def test_the_last_mistake_is_mended(tic_tac_toe, solution, place, think):
    """X plays 0 and 1, both in time to be saved, and 5, which loses; O plays 4, 2 and 6."""
    game = (0, 4, 1, 2, 5, 6)
    mended = mend(tic_tac_toe, empty_book(tic_tac_toe), [game], 0, think, False)
    book = mended.book
    assert mended.helpless == 0 and book.actions.tolist() == [6]
    assert mended.starts == [(0, 4, 1, 2)]
    assert np.flatnonzero(book.states.board[0]).tolist() == [0, 1, 2, 4]
    [row] = place(book.states)
    assert solution.values[row] == 0 > solution.action_values[row, 5]


def test_what_was_not_tried_counts_as_lost_and_a_little_is_better_than_nothing(tic_tac_toe):
    def make(visits, values):
        def think(states):
            shape = len(states.board), 9
            q_values, counts = np.zeros(shape), np.zeros(shape, int)
            counts[:] = visits
            stones = np.abs(states.board).sum(axis=1)
            for stone, value in values.items():
                q_values[stones == stone, 8] = value
            return Decision(np.full(shape[0], 8), None, q_values=q_values, visit_counts=counts)

        return mend(tic_tac_toe, empty_book(tic_tac_toe), [(0, 4, 1, 2, 5, 6)], 0, think, False)

    tried = np.ones(9, int)
    stones = lambda book: np.abs(book.states.board).sum(axis=1).tolist()  # noqa: E731
    assert stones(make(tried, {0: 0.5, 2: 0.6, 4: 0.1}).book) == [2]  # The last that matters.
    assert stones(make(tried, {0: 0.1, 2: 0.2, 4: 0.1}).book) == [2]  # The most.
    assert stones(make(np.eye(9, dtype=int)[8], {4: -0.5}).book) == [4]
    book, starts, helpless = make(tried, {})
    assert helpless == 1 and starts == [] and not len(book.actions)


def test_the_newest_move_of_a_position_counts(tic_tac_toe, think):
    old, *_ = mend(tic_tac_toe, empty_book(tic_tac_toe), [(0, 4, 1, 2, 5, 6)], 0, think, False)
    new, *_ = mend(
        tic_tac_toe,
        old._replace(actions=np.array([3], np.int32)),
        [(0, 4, 1, 2, 3, 6)],
        0,
        think,
        False,
    )
    assert new.actions.tolist() == old.actions.tolist() == [6]


def test_a_book_comes_before_the_player(tic_tac_toe, solution, tmp_path):
    evaluate = uniform_evaluator(tic_tac_toe)
    agent = network_agent(tic_tac_toe, evaluate, None, name="first")
    chosen = solution.decisions[::7]
    book = mending.Book(
        rows_of(solution.states, chosen),
        solution.legal[chosen].cumsum(axis=1).argmax(axis=1).astype(np.int32),  # The last one.
        rounds=3,
    )
    save_book(tmp_path / "book.npz", book)
    loaded = load_book(tmp_path / "book.npz", tic_tac_toe)
    assert all(map(np.array_equal, jax.tree.leaves(loaded), jax.tree.leaves(book)))
    player = book_agent(tic_tac_toe, agent, loaded)
    assert player.name == f"first with {len(chosen)} moves by book" and player.deterministic
    assert book_agent(tic_tac_toe, agent, loaded, "x").name == "x"
    key, states = jax.random.key(0), solution.decision_states
    plain, found = (jax.jit(one.act)(None, key, states) for one in (agent, player))
    is_known = np.isin(solution.decisions, chosen)
    assert found.action[is_known].tolist() == book.actions.tolist()
    assert (found.action[is_known] != plain.action[is_known]).any()
    np.testing.assert_array_equal(found.weights[is_known], np.eye(9)[book.actions])
    for ours, theirs in ((found.action, plain.action), (found.weights, plain.weights)):
        np.testing.assert_array_equal(ours[~is_known], theirs[~is_known])
    np.testing.assert_array_equal(found.value, plain.value)


def test_an_empty_book_is_no_book(tic_tac_toe, tmp_path):
    book, agent = empty_book(tic_tac_toe), network_agent(tic_tac_toe, None, None)
    save_book(tmp_path / "book.npz", book)
    assert load_book(tmp_path / "book.npz", tic_tac_toe).states.board.shape == (0, 9)
    with pytest.raises(ValueError, match="the book has no positions: play without it"):
        book_agent(tic_tac_toe, agent, book)


def test_lines_lead_to_their_positions(tic_tac_toe, solution):
    found = lines.replay(tic_tac_toe, [(), (4,), (4, 0, 8)])
    start = jax.device_get(init_batch(tic_tac_toe, 3))
    assert jax.tree.map(np.shape, found) == jax.tree.map(np.shape, start)
    assert found.board.tolist() == [[0] * 9, [0] * 4 + [1] + [0] * 4, [-1, 0, 0, 0, 1, 0, 0, 0, 1]]
    assert found.player.tolist() == [0, 1, 1]
