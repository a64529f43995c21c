"""Boards as pictures: stones, values, labels and marks, in the right places and colors."""

import base64
from xml.etree import ElementTree

import jax
import numpy as np
import pytest

import azjax
from azjax import drawing
from azjax.games import hexagons
from azjax.games.base import init_batch
from azjax.games.square import cell_names
from azjax.games.tic_tac_toe import LINES
from azjax.search import ALGORITHMS, make_search
from azjax.search.evaluators import uniform_evaluator
from azjax.viz.pictures import draw_search, draw_state, draw_states
from small import NAMES

IMAGE = '<img src="data:image/svg+xml;base64,'
SVG = "{http://www.w3.org/2000/svg}"


def svg_of(shown):
    """Returns the SVG text of the single image that a notebook shows."""
    assert shown.startswith(IMAGE) and shown.count("<") == 1
    return base64.b64decode(shown.removeprefix(IMAGE).split('"')[0]).decode()


def parts(picture, tag, name):
    """Returns the elements of one tag and class."""
    root = ElementTree.fromstring(str(picture))
    return [e for e in root.iter(SVG + tag) if e.get("class") == name]


def draw_empty(**look):
    """Draws the empty board of tic-tac-toe."""
    game = azjax.make("tic_tac_toe")
    return draw_state(game, game.init(), **look)


def test_every_stone_is_in_its_cell():
    cells = [1, -1, 0, 0, 1, 0, -1, 0, 0]
    picture = drawing.board(cells, (3, 3))
    rings = {(float(e.get("cx")), float(e.get("cy"))) for e in parts(picture, "circle", "az-o")}
    assert rings == {(45, 15), (15, 75)}
    crosses = [e.get("d") for e in parts(picture, "path", "az-x")]
    assert [d.split("l")[0] for d in crosses] == ["M7.8 7.8", "M37.8 37.8"]


def test_the_winning_line_is_struck_through():
    lines = parts(drawing.board([1, 1, 1, -1, -1, 0, 0, 0, 0], (3, 3), LINES), "line", "az-line")
    assert [(e.get("x1"), e.get("y1"), e.get("x2"), e.get("y2")) for e in lines] == [
        ("15", "15", "75", "15")
    ]
    assert not parts(drawing.board([1, 1, 0, -1, -1, 0, 0, 0, 0], (3, 3), LINES), "line", "az-line")


def test_the_heat_map_grows_with_the_values():
    cells = draw_empty(values=np.linspace(0, 1, 9))
    heat = [float(e.get("fill-opacity")) for e in parts(cells, "rect", "az-heat")]
    assert len(heat) == 8 and heat == sorted(heat)  # A value of 0 leaves its cell empty.


def test_labels_are_text_and_not_markup():
    picture = draw_empty(labels=['<b>&"'] + [""] * 8, last=4)
    assert [e.text for e in parts(picture, "text", "az-label")] == ['<b>&"']
    assert len(parts(picture, "rect", "az-last")) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cells": [0] * 8}, "cells has shape"),
        ({"cells": [0] * 9, "values": [1.0]}, "values has shape"),
        ({"cells": [0] * 9, "labels": ["a"]}, "labels has shape"),
    ],
)
def test_arrays_of_another_shape_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        drawing.board(shape=(3, 3), **arguments)


def test_a_picture_is_saved_in_an_existing_folder_only(tmp_path):
    picture = draw_empty()
    picture.save(tmp_path / "board.svg")
    assert ElementTree.parse(tmp_path / "board.svg").getroot().tag == SVG + "svg"
    with pytest.raises(ValueError, match="there is no folder .*nowhere"):
        picture.save(tmp_path / "nowhere" / "board.svg")


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_show_states_and_batches(name):
    game = azjax.make(name)
    pictures = draw_state(game, game.init()), draw_states(game, init_batch(game, 100))
    one, many = (svg_of(picture._repr_html_()) for picture in pictures)
    assert len(list(ElementTree.fromstring(one).iter(SVG + "svg"))) == 1
    assert len(list(ElementTree.fromstring(many).iter(SVG + "svg"))) == 1 + 8
    assert "and 92 more" in many


def test_a_notebook_shows_an_image_described_by_its_label():
    picture = drawing.board([1, *[0] * 8], (3, 3))
    assert svg_of(picture._repr_html_()) == str(picture)
    assert 'alt="board X.. ... ..."' in picture._repr_html_()
    pair = drawing.gallery([picture, drawing.board([0] * 9, (3, 3))], ['a "b"', "two"])
    assert 'alt="a &quot;b&quot;; two; board X.. ... ...; board' in pair._repr_html_()


def test_connect_four_shows_values_where_the_stone_would_fall():
    game = azjax.make("connect_four")
    state = game.step(game.init(), 3)[0]
    picture = draw_state(game, state, values=[0, 0, 0, 1, 0, 0, 0], last=3)
    (heat,), (last,) = parts(picture, "rect", "az-heat"), parts(picture, "rect", "az-last")
    assert (heat.get("x"), heat.get("y")) == ("90", "120")
    assert (last.get("x"), last.get("y")) == ("92", "152")


def test_only_stones_of_connect_four_are_discs():
    """A disc fills its cell; the mark in it shows the player without a color."""
    for name in ("connect_four", "tic_tac_toe"):
        game = azjax.make(name)
        state = game.step(game.step(game.init(), 2)[0], 0)[0]
        root = ElementTree.fromstring(str(draw_state(game, state)))
        discs = [e for e in root.iter(SVG + "g") if "az-disc" in e.get("class", "")]
        assert [(e.get("class"), e.get("fill"), [part.tag for part in e]) for e in discs] == [
            ("az-disc az-o", drawing.COLOR_O, [SVG + "circle", SVG + "circle"]),
            ("az-disc az-x", drawing.COLOR_X, [SVG + "circle", SVG + "path"]),
        ] * (name == "connect_four")
        assert all(float(disc[0].get("r")) > 0.4 * drawing.CELL for disc in discs)


def test_connect_four_shows_no_value_of_a_full_column():
    game = azjax.make("connect_four")
    board = np.zeros((6, 7), np.int8)
    board[:, 0] = [1, -1] * 3
    state = game.init()._replace(board=board.ravel())
    picture = draw_state(game, state, values=np.eye(7)[0], labels=["a", *[""] * 6])
    assert not parts(picture, "rect", "az-heat") and not parts(picture, "text", "az-label")


def test_hex_shows_values_and_labels_where_the_stone_will_be():
    """The actions of O are named as if O also had to connect top and bottom."""
    game = azjax.make("hex_swap:3")
    before, _ = game.step(game.init(), 1)

    def center(hexagon):
        corners = [corner.split(",") for corner in hexagon.get("points").split()]
        return np.mean(np.asarray(corners, float), axis=0)

    for action in np.flatnonzero(game.legal_actions(before))[:-1]:
        after, _ = game.step(before, action)
        (stone,) = parts(draw_state(game, after), "circle", "az-o")
        place = float(stone.get("cx")), float(stone.get("cy"))
        chosen = np.arange(10) == action
        labels = ["a" if here else "" for here in chosen]
        shown = draw_state(game, before, values=chosen, labels=labels)
        (heat,), (label,) = parts(shown, "polygon", "az-heat"), parts(shown, "text", "az-label")
        (last,) = parts(draw_state(game, after, last=action), "polygon", "az-last")
        np.testing.assert_allclose([center(heat), center(last)], [place, place], atol=0.01)
        assert float(label.get("x")) == place[0]
    swapped = game.step(before, 9)[0]
    assert not parts(draw_state(game, swapped, last=9), "polygon", "az-last")


def test_hexagons_lean_to_the_right_between_sides_of_two_colors():
    """Coordinates are in cells and rows, without the shift of each row."""
    picture = hexagons.board(np.zeros(9, np.int8))

    def straight(element):
        corners = [corner.split(",") for corner in element.get("points").split()]
        x, y = np.asarray(corners, float).T / [[drawing.CELL], [1.5 * drawing.CELL / np.sqrt(3)]]
        return np.stack([x - y / 2, y], axis=1)

    centers = [straight(cell).mean(axis=0) for cell in parts(picture, "polygon", "az-paper")]
    expected = [(column, row) for row, column in np.ndindex(3, 3)]
    np.testing.assert_allclose(centers - centers[0], expected, atol=0.01)
    lines = ElementTree.fromstring(str(picture)).iter(SVG + "polyline")
    top, bottom, left, right = sides = [*lines]
    assert [side.get("stroke") for side in sides] == [drawing.COLOR_X] * 2 + [drawing.COLOR_O] * 2
    top, bottom, left, right = (straight(side) - centers[0] for side in (top, bottom, left, right))
    assert (top[:, 1] < 0).all() and (bottom[:, 1] > 2).all()
    assert (left[:, 0] < 0).all() and (right[:, 0] > 2).all()
    assert len(top) == len(bottom) == len(left) == len(right) == 9
    for side in sides:  # The sides follow the edges of hexagons.
        corners = [corner.split(",") for corner in side.get("points").split()]
        steps = np.hypot(*np.diff(np.asarray(corners, float), axis=0).T)
        assert steps.max() < 1.01 * drawing.CELL / np.sqrt(3)


def test_breakthrough_shows_values_and_labels_where_a_move_leads():
    """Covers the moves of both players; moves to one cell share its heat and label."""
    game = azjax.make("breakthrough:5x3")
    step, state = jax.jit(game.step), game.init()
    for _ in range(2):
        legal = np.flatnonzero(game.legal_actions(state))
        values = np.zeros(game.num_actions)
        for action in legal:
            after, _ = step(state, action)
            (cell,) = np.flatnonzero((after.board != state.board) & (after.board != 0))
            corner, chosen = np.array([cell % 3, cell // 3]) * 30, np.arange(len(values)) == action
            labels = ["a" if here else "" for here in chosen]
            shown = draw_state(game, state, values=chosen, labels=labels)
            (heat,), labels = parts(shown, "rect", "az-heat"), parts(shown, "text", "az-label")
            (last,) = parts(draw_state(game, after, last=action), "rect", "az-last")
            assert [float(heat.get(axis)) for axis in "xy"] == corner.tolist()
            assert [float(last.get(axis)) for axis in "xy"] == (corner + 2).tolist()
            free = [corner[0] + 15] if state.board[cell] == 0 else []  # Only empty cells.
            assert [float(label.get("x")) for label in labels] == free
            values[action] = 0.1
        shown = parts(draw_state(game, state, values=values), "rect", "az-heat")
        heat = [float(e.get("fill-opacity")) for e in shown]
        assert sum(heat) == pytest.approx(0.7 * 0.1 * len(legal)) and len(heat) < len(legal)
        state, _ = step(state, legal[0])


def test_a_pass_is_not_shown():
    game = azjax.make("othello:4")
    picture = draw_state(game, game.init(), values=np.eye(17)[16], last=16)
    assert not parts(picture, "rect", "az-last") and not parts(picture, "rect", "az-heat")


@pytest.mark.parametrize(
    "algorithm",
    ["gumbel", *(pytest.param(name, marks=pytest.mark.slow) for name in ("puct", "uct"))],
)
def test_notebooks_show_searches(tic_tac_toe, algorithm):
    config = ALGORITHMS[algorithm](num_simulations=8)
    search = jax.jit(make_search(config, tic_tac_toe, uniform_evaluator(tic_tac_toe)))
    states = init_batch(tic_tac_toe, 20)
    result = search(None, jax.random.split(jax.random.key(0), 20), states)
    shown = svg_of(draw_search(tic_tac_toe, states, result)._repr_html_())
    name = cell_names(3, 3)[int(result.action[0])]
    assert f"plays {name}, value" in shown
    assert "and 16 more" in shown
    shares = [f"{share:.0%}" for share in result.action_weights[:4].ravel()]
    assert [e.text for e in parts(shown, "text", "az-label")] == shares


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere/page.html", "there is no folder .*nowhere for "),
        (".", " is a folder: give the name of a file in it"),
        ("folder", "folder is a folder: give the name of a file in it"),
        ("x" * 252, "x cannot be written .File name too long.: use another"),
        ("/proc/page.html", "/proc/page.html cannot be written ("),
    ],
)
def test_a_path_that_cannot_be_written_raises(name, message, tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(ValueError, match=message.replace("(", "[(]")):
        drawing.check_folder(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_checking_a_path_changes_nothing(tmp_path):
    (tmp_path / "old.html").write_text("old")
    (tmp_path / "link.html").symlink_to("nothing")
    for name in ("old.html", "new.html", "link.html"):
        drawing.check_folder(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.html", "old.html"]
    assert (tmp_path / "old.html").read_text() == "old"
