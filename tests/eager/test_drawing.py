"""Pictures of states: stones, values, labels and marks are in the right places and colors."""

from unittest.mock import Mock
from xml.etree import ElementTree

import numpy as np
import pytest

import azjax
from azjax import drawing
from azjax._files import check_folder
from azjax.games.base import init_batch
from azjax.viz.pictures import Move, draw_state, draw_states, games_strips
from misere_pile import NIM
from refusals import assert_refused

SVG = "{http://www.w3.org/2000/svg}"


def parts(picture, tag, name):
    """Returns the elements of one tag and class."""
    root = ElementTree.fromstring(str(picture))
    return [e for e in root.iter(SVG + tag) if e.get("class") == name]


def places(picture, tag, name):
    return [(float(e.get("x")), float(e.get("y"))) for e in parts(picture, tag, name)]


def texts(picture):
    return [e.text for e in ElementTree.fromstring(str(picture)).iter(SVG + "text")]


def draw_empty(**look):
    game = azjax.make("tic_tac_toe")
    return draw_state(game, game.init(), **look)


def test_stones_values_and_labels_are_in_their_cells():
    """Values are heat, and labels are text."""
    picture = drawing.board([1, -1, 0, 0, 1, 0, -1, 0, 0], (3, 3))
    rings = {(e.get("cx"), e.get("cy")) for e in parts(picture, "circle", "az-o")}
    assert rings == {("45", "15"), ("15", "75")}
    crosses = [e.get("d").split("l")[0] for e in parts(picture, "path", "az-x")]
    assert crosses == ["M7.8 7.8", "M37.8 37.8"]
    picture = draw_empty(values=np.linspace(0, 2, 9), labels=['<b>&"'] + [""] * 8, last=4)
    heat = [float(e.get("fill-opacity")) for e in parts(picture, "rect", "az-heat")]
    assert len(heat) == 8 and heat == sorted(heat)  # A value of 0 leaves its cell empty.
    assert heat[3:] == [0.7] * 5  # Values above 1 are shown as 1.
    assert [e.text for e in parts(picture, "text", "az-label")] == ['<b>&"']
    assert places(picture, "rect", "az-last") == [(32, 32)]


def test_a_value_that_rounds_to_zero_has_no_sign():
    values = 0.214, -0.214, 0.001, -0.001
    assert [*map(drawing.signed, values)] == ["+0.21", "\N{MINUS SIGN}0.21", "0.00", "0.00"]


def test_what_cannot_be_drawn_or_written_is_refused(tmp_path, monkeypatch):
    (tmp_path / "old.html").write_text("old")
    assert_refused(
        (lambda: drawing.board([0] * 8, (3, 3)), "cells has shape (8,): a board of 3 by 3"),
        (lambda: drawing.board([0] * 9, (3, 3), labels=["a"]), "labels has shape (1,)"),
        (lambda: draw_states(NIM, np.zeros(2, np.int8)), "with B from 1 on, but these states are"),
        (lambda: draw_empty().save(tmp_path / "nowhere" / "x.svg"), "there is no folder ...where"),
        (lambda: check_folder(tmp_path), " is a folder: give the name of a file in it"),
        (lambda: check_folder(tmp_path / ("x" * 252)), "cannot be written (File name too long): "),
    )
    check_folder(tmp_path / "old.html")
    monkeypatch.setattr("os.replace", Mock(side_effect=OSError(28, "No space left on device")))
    with pytest.raises(OSError):
        draw_empty().save(tmp_path / "old.html")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_hexagons_lean_to_the_right_between_sides_of_two_colors():
    picture = draw_state(azjax.make("hex:3"), azjax.make("hex:3").init())

    def points(element):
        return np.array([corner.split(",") for corner in element.get("points").split()], float)

    centers = [points(cell).mean(axis=0) for cell in parts(picture, "polygon", "az-paper")]
    across, down = drawing.CELL * np.array([[1, 0], [0.5, 1.5 / np.sqrt(3)]])
    expected = [column * across + row * down for row, column in np.ndindex(3, 3)]
    np.testing.assert_allclose(centers - centers[0], expected, atol=0.5)
    sides = [*ElementTree.fromstring(str(picture)).iter(SVG + "polyline")]
    assert [side.get("stroke") for side in sides] == [drawing.COLOR_X] * 2 + [drawing.COLOR_O] * 2
    top, bottom, left, right = (points(side).mean(axis=0) for side in sides)
    assert top[1] < centers[0][1] and centers[8][1] < bottom[1] and left[0] < right[0]


def test_breakthrough_shows_values_and_labels_where_a_move_leads():
    """Covers the moves of both players; moves to one cell share its heat and label."""
    game = azjax.make("breakthrough:5x3")
    state = game.init()
    for _ in range(2):
        legal = np.flatnonzero(game.legal_actions(state))
        for action in legal:
            after, _ = game.step(state, action)
            (cell,) = np.flatnonzero((after.board != state.board) & (after.board != 0))
            x, y = cell % 3 * 30, cell // 3 * 30
            chosen = np.arange(game.num_actions) == action
            labels = ["a" if here else "" for here in chosen]
            shown = draw_state(game, state, values=chosen, labels=labels)
            assert places(shown, "rect", "az-heat") == [(x, y)]
            marked = draw_state(game, after, last=action)
            assert places(marked, "rect", "az-last") == [(x + 2, y + 2)]
            free = [x + 15] if state.board[cell] == 0 else []  # Only empty cells.
            assert [place for place, _ in places(shown, "text", "az-label")] == free
        values = np.where(game.legal_actions(state), 0.1, 0.0)
        shown = parts(draw_state(game, state, values=values), "rect", "az-heat")
        heat = sum(float(e.get("fill-opacity")) for e in shown)
        assert abs(heat - 0.7 * 0.1 * len(legal)) < 1e-6 and len(shown) < len(legal)
        state, _ = game.step(state, legal[0])


def test_connect_four_marks_the_stone_that_fell_last():
    game = azjax.make("connect_four:4x5")
    state = game.init()
    for row in (3, 2):
        state, _ = game.step(state, 1)
        marked = places(draw_state(game, state, last=1), "rect", "az-last")
        assert marked == [(30 + 2, row * 30 + 2)]


def test_a_batch_has_captions_and_labels_by_state():
    game, captions = azjax.make("tic_tac_toe"), ["one", "two", "three"]
    labels = np.array([["a"] + [""] * 8, ["", "b"] + [""] * 7, ["c"] * 9])
    picture = draw_states(game, init_batch(game, 3), captions, most=2, labels=labels, size=40)
    assert texts(picture) == ["a", "b", "one", "two", "and 1 more"]
    picture = draw_states(NIM, np.array([[1, 0], [3, 0], [2, 0]], np.int8))
    assert texts(picture) == ["|", "|||", "||"]
    _, *states = ElementTree.fromstring(str(picture)).iter(SVG + "svg")
    ends = [float(state.get("x")) + float(state.get("width")) for state in states]
    assert all(end < float(state.get("x")) for end, state in zip(ends, states[1:], strict=False))


def test_games_have_their_moves_and_their_winners():
    """Rewards are those of the players who move; a caption is about the move made there."""
    game = azjax.make("tic_tac_toe")
    share = np.linspace(0, 0.8, 9, dtype=np.float32)

    def play(*rewards, first=0):
        players = [(first + ply) % 2 for ply in range(len(rewards))]
        return [
            Move(game.init(), player, 6 + ply, share, 0.1 * ply, reward)
            for ply, (player, reward) in enumerate(zip(players, rewards, strict=True))
        ]

    strips = games_strips(game, [play(0, 0, 1), play(0, 1), play(0, -1), play(0, 0)])
    assert [strip.findtext("summary") for strip in strips] == [
        "Game 1: the first player wins after 3 moves",
        "Game 2: the second player wins after 2 moves",
        "Game 3: the first player wins after 2 moves",
        "Game 4: drawn after 2 moves",
    ]
    assert [strip.get("open") for strip in strips] == ["open", None, None, None]
    captions = [e.text for e in strips[0].iter("figcaption")]
    assert captions == ["1: a3 (60%), 0.00", "2: b3 (70%), +0.10", "3: c3 (80%), +0.20"]
    marked = [len(list(e.iter("rect"))) for e in strips[0].iter("svg")]
    assert marked[1] == marked[2] == marked[0] + 1  # The cell of the move before.
