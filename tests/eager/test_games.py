"""Games by name: sizes, refusals, texts and names of actions."""

import functools

import jax
import numpy as np

from azjax import games
from azjax.games import connect_four, mnk
from azjax.games.base import choose, random_action
from azjax.games.square import column_name
from azjax.games.tic_tac_toe import from_board
from misere_pile import NIM
from refusals import assert_refused


def test_records_can_be_hashed():
    assert games.make("tic_tac_toe") is games.make("tic_tac_toe")
    assert len({games.make(name) for name in games.available() * 2}) == len(games.available())
    assert connect_four.make(6, 7) == games.make("connect_four:6x7x4") == games.make("connect_four")
    assert connect_four.make(rows=4, columns=5) == games.make("connect_four:4x5")
    assert games.make("connect_four:4x5x3").name == "connect_four:4x5x3"
    assert connect_four.make().positions and not connect_four.make(6, 7, 5).positions
    assert NIM in {NIM._replace(name="nim")} and NIM not in {NIM._replace(name="other")}
    assert games.is_built_in(games.make("hex")) and not games.is_built_in(NIM)


def test_the_number_of_symmetries():
    counts = {"tic_tac_toe": 8, "mnk:4x2x3": 4, "mnk:1x4x2": 2, "connect_four": 2, "othello:4": 4}
    counts |= {"hex:3": 2, "hex_swap:3": 2, "breakthrough:5x3": 2}
    assert {name: games.make(name).num_symmetries for name in counts} == counts
    assert NIM.num_symmetries == 1


def test_random_action_is_uniform_over_the_legal_ones(tic_tac_toe):
    state = from_board([1, -1, 1, 1, -1, -1, 0, 0, 0])
    draw = jax.vmap(lambda key: random_action(tic_tac_toe, key, state))
    counts = np.bincount(draw(jax.random.split(jax.random.key(0), 3000)), minlength=9)
    assert counts[:6].sum() == 0
    assert (abs(counts[6:] - 1000) < 130).all()  # Five standard deviations.


def test_only_legal_actions_are_chosen():
    """Also where an illegal action has the best score, or a legal one has none."""
    scores = np.array([[2, 1, 1], [1, 1, 0], [0, np.nan, 1]], np.float32)
    assert choose(scores, np.array([False, True, True])).tolist() == [1, 1, 1]


def test_refusals(tic_tac_toe):
    names = [
        (3, "the game is 3: use a name, such as"),
        ("go", "unknown game 'go': use one of tic_tac_toe"),
        ("mnk:3x3", "mnk:3x3 has no valid size: write mnk:ROWSxCOLUMNSxLENGTH"),
        ("connect_four:0x5", "connect_four has no board of 0 by 5: use 1 to 32 rows and 1 to"),
        ("mnk:4x5x6", "6 in a row do not fit on 4 by 5 in mnk: use 1 to 5"),
        ("othello:5", "othello has no board of 5 by 5: use an even number from 4 to 16"),
        ("breakthrough:3x3", "breakthrough has no board of 3 by 3: use 4 to 32 rows and 2 to 32"),
    ]
    boards = [  # `tests/system/test_games.py` tries every board.
        ([0] * 8, "a board is 9 numbers"),
        ([1, 1, 0, 0, 0, 0, 0, 0, 0], "0, 0] cannot occur: X moves first, the players take turns"),
        ([1, 1, 1, -1, -1, 0, -1, 0, 0], "three in a row end a game"),
    ]
    unknown = "encoding is 'none': use 'absolute' or 'relative'"
    assert_refused(
        *((functools.partial(games.make, name), sentence) for name, sentence in names),
        *((functools.partial(from_board, board), sentence) for board, sentence in boards),
        (lambda: tic_tac_toe.observe(tic_tac_toe.init(), "none"), unknown),
        (lambda: mnk.make(3, 3, 2.5), "in_a_row is 2.5, which is not of type int"),
    )
    assert mnk.make(np.int8(3), 4, 3) is games.make("mnk:3x4x3")


def test_a_move_can_be_made_in_a_state_of_numpy(tic_tac_toe):
    state = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), tic_tac_toe.init())
    after, _ = jax.eval_shape(lambda: tic_tac_toe.step(state, 4))
    assert after.board.shape == (9,)


def test_moves_have_their_usual_names():
    def names(name, player=0):
        game = games.make(name)
        return [*game.display.name_actions(game.init()._replace(player=np.int8(player)))]

    othello = [names("othello")[action] for action in (19, 26, 37, 44, 64)]
    assert othello == ["d3", "c4", "f5", "e6", "pass"]
    assert " ".join(names("hex_swap:3")) == "a1 b1 c1 a2 b2 c2 a3 b3 c3 swap"
    # The top row is on the left for O.
    assert " ".join(names("hex_swap:3", 1)) == "a1 a2 a3 b1 b2 b3 c1 c2 c3 swap"
    # The middle piece moves straight; one of O moves to its right.
    assert (names("breakthrough:5x3")[31], names("breakthrough:5x3", 1)[28]) == ("b4b3", "c2c3")
    assert [column_name(column) for column in (25, 26, 52)] == ["z", "aa", "ba"]


def test_moves_of_games_with_dice_have_their_usual_names():
    """Stone 1 of O starts in the lower right corner; its picture shows its number."""
    game = games.make("einstein:3")
    assert game.display.name_actions(game.init())[:3] == ["1", "2", "3"]
    state = game.init()._replace(die=np.int8(1), player=np.int8(1))
    assert game.display.name_actions(state)[:3] == ["1c2", "1b2", "1b3"]
    picture = "\n1  X1 X2 .\n2  X3 .  O3\n3  .  O2 O1\ndie: 1"
    assert game.display.render(state).endswith(picture)
    game = games.make("backgammon")
    assert game.display.name_actions(game.init())[:4] == ["11", "21", "22", "31"]
    state = game.init()._replace(left=np.array([1, 0, 0, 0, 0, 1], np.int8))
    names = game.display.name_actions(state)
    assert [names[action] for action in (47, 23, 149, 150)] == ["8/2", "4/off(6)", "bar/19", "pass"]
    lines = game.display.render(state).splitlines()
    assert lines[1].split() == ["X5", ".", ".", ".", "O3", ".", "O5", ".", ".", ".", ".", "X2"]
    assert lines[-1] == "dice: 1 6"
