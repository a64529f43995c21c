"""Pictures of states: stones, values, labels and marks are in the right places and colors."""

import base64
import re
from xml.etree import ElementTree

import numpy as np

import azjax
from azjax import drawing
from azjax.games.base import init_batch
from azjax.games.display import Display
from azjax.games.tic_tac_toe import LINES
from azjax.viz.page import style
from azjax.viz.pictures import draw_state, draw_states, draw_text
from nim import NIM
from refusals import assert_refused
from small import NAMES

SVG = "{http://www.w3.org/2000/svg}"


def svg_of(shown):
    """Returns the SVG text of the single image that a notebook shows."""
    start = '<img src="data:image/svg+xml;base64,'
    assert shown.startswith(start) and shown.count("<") == 1
    return base64.b64decode(shown.removeprefix(start).split('"')[0]).decode()


def parts(picture, tag, name):
    """Returns the elements of one tag and class."""
    root = ElementTree.fromstring(str(picture))
    return [e for e in root.iter(SVG + tag) if e.get("class") == name]


def texts(picture):
    return [e.text for e in ElementTree.fromstring(str(picture)).iter(SVG + "text")]


def draw_empty(**look):
    game = azjax.make("tic_tac_toe")
    return draw_state(game, game.init(), **look)


def test_every_stone_is_in_its_cell_and_full_lines_are_struck_through():
    picture = drawing.board([1, -1, 0, 0, 1, 0, -1, 0, 0], (3, 3), LINES)
    rings = {(float(e.get("cx")), float(e.get("cy"))) for e in parts(picture, "circle", "az-o")}
    assert rings == {(45, 15), (15, 75)}
    crosses = [e.get("d") for e in parts(picture, "path", "az-x")]
    assert [d.split("l")[0] for d in crosses] == ["M7.8 7.8", "M37.8 37.8"]
    assert not parts(picture, "line", "az-line")
    (line,) = parts(drawing.board([1, 1, 1, -1, -1, 0, 0, 0, 0], (3, 3), LINES), "line", "az-line")
    assert [line.get(end) for end in ("x1", "y1", "x2", "y2")] == ["15", "15", "75", "15"]


def test_values_are_heat_and_labels_are_text():
    labels = ['<b>&"'] + [""] * 8
    picture = draw_empty(values=np.linspace(0, 1, 9), labels=labels, last=4)
    heat = [float(e.get("fill-opacity")) for e in parts(picture, "rect", "az-heat")]
    assert len(heat) == 8 and heat == sorted(heat)  # A value of 0 leaves its cell empty.
    assert [e.text for e in parts(picture, "text", "az-label")] == ['<b>&"']
    (last,) = parts(picture, "rect", "az-last")
    assert (last.get("x"), last.get("y")) == ("32", "32")


def test_what_cannot_be_drawn_or_written_is_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "old.html").write_text("old")
    (tmp_path / "link.html").symlink_to("nothing")

    def check(name):
        return lambda: drawing.check_folder(tmp_path / name)

    assert_refused(
        (lambda: drawing.board([0] * 8, (3, 3)), "cells has shape (8,): a board of 3 by 3"),
        (lambda: drawing.board([0] * 9, (3, 3), values=[1.0]), "values has shape (1,)"),
        (lambda: drawing.board([0] * 9, (3, 3), labels=["a"]), "labels has shape (1,)"),
        (lambda: draw_states(NIM, np.zeros(2, np.int8)), "states must be a batch, with one"),
        (lambda: draw_empty().save(tmp_path / "nowhere" / "x.svg"), "there is no folder ...where"),
        (check("nowhere/page.html"), "there is no folder ...nowhere for "),
        (check("."), " is a folder: give the name of a file in it"),
        (check("folder"), "folder is a folder: give the name of a file in it"),
        (check("x" * 252), "x cannot be written (File name too long): use another"),
        (check("/proc/page.html"), "/proc/page.html cannot be written ("),
    )
    for name in ("old.html", "new.html", "link.html"):
        drawing.check_folder(tmp_path / name)
    assert {path.name for path in tmp_path.iterdir()} == {"folder", "old.html", "link.html"}
    assert (tmp_path / "old.html").read_text() == "old"
    draw_empty().save(tmp_path / "board.svg")
    assert ElementTree.parse(tmp_path / "board.svg").getroot().tag == SVG + "svg"


def test_notebooks_show_states_and_batches_of_every_game():
    for game in map(azjax.make, NAMES):
        state, look = game.init(), {"labels": ["a"] * game.num_actions, "last": None}
        one = draw_state(game, state, 50, **look)
        assert str(one) == str(game.display.draw(state, size=50, **look))
        assert svg_of(one._repr_html_()) == str(one)
        many = svg_of(draw_states(game, init_batch(game, 100))._repr_html_())
        assert len(list(ElementTree.fromstring(many).iter(SVG + "svg"))) == 1 + 8
        assert "and 92 more" in many
    boards = [drawing.board([mark, *[0] * 8], (3, 3)) for mark in (1, 0)]
    shown = drawing.gallery(boards, ['a "b"', "two"])._repr_html_()
    assert 'alt="a &quot;b&quot;; two; board X.. ... ...; board' in shown


def test_connect_four_shows_values_where_the_stone_would_fall():
    game = azjax.make("connect_four")
    state = game.step(game.init(), 3)[0]
    picture = draw_state(game, state, values=[0, 0, 0, 1, 0, 0, 0], last=3)
    (heat,), (last,) = parts(picture, "rect", "az-heat"), parts(picture, "rect", "az-last")
    assert (heat.get("x"), heat.get("y")) == ("90", "120")
    assert (last.get("x"), last.get("y")) == ("92", "152")
    board = np.zeros((6, 7), np.int8)
    board[:, 0] = [1, -1] * 3
    full = game.init()._replace(board=board.ravel())
    picture = draw_state(game, full, values=np.eye(7)[0], labels=["a", *[""] * 6])
    assert not parts(picture, "rect", "az-heat") and not parts(picture, "text", "az-label")


def test_only_stones_of_connect_four_are_discs():
    """A disc fills its cell; the mark in it shows the player without a color."""
    for name, number in (("connect_four", 1), ("tic_tac_toe", 0)):
        game = azjax.make(name)
        state = game.step(game.step(game.init(), 2)[0], 0)[0]
        root = ElementTree.fromstring(str(draw_state(game, state)))
        discs = [e for e in root.iter(SVG + "g") if "az-disc" in e.get("class", "")]
        assert [(e.get("class"), e.get("fill"), [part.tag for part in e]) for e in discs] == [
            ("az-disc az-o", drawing.COLOR_O, [SVG + "circle", SVG + "circle"]),
            ("az-disc az-x", drawing.COLOR_X, [SVG + "circle", SVG + "path"]),
        ] * number
        assert all(float(disc[0].get("r")) > 0.4 * drawing.CELL for disc in discs)


def test_hexagons_lean_to_the_right_between_sides_of_two_colors():
    """Coordinates are in cells and rows, without the shift of each row."""
    game = azjax.make("hex:3")
    picture = draw_state(game, game.init())

    def straight(element):
        corners = [corner.split(",") for corner in element.get("points").split()]
        x, y = np.asarray(corners, float).T / [[drawing.CELL], [1.5 * drawing.CELL / np.sqrt(3)]]
        return np.stack([x - y / 2, y], axis=1)

    centers = [straight(cell).mean(axis=0) for cell in parts(picture, "polygon", "az-paper")]
    expected = [(column, row) for row, column in np.ndindex(3, 3)]
    np.testing.assert_allclose(centers - centers[0], expected, atol=0.01)
    sides = [*ElementTree.fromstring(str(picture)).iter(SVG + "polyline")]
    assert [side.get("stroke") for side in sides] == [drawing.COLOR_X] * 2 + [drawing.COLOR_O] * 2
    top, bottom, left, right = (straight(side) - centers[0] for side in sides)
    assert (top[:, 1] < 0).all() and (bottom[:, 1] > 2).all()
    assert (left[:, 0] < 0).all() and (right[:, 0] > 2).all()
    assert len(top) == len(bottom) == len(left) == len(right) == 9
    for side in sides:  # The sides follow the edges of hexagons.
        corners = [corner.split(",") for corner in side.get("points").split()]
        steps = np.hypot(*np.diff(np.asarray(corners, float), axis=0).T)
        assert steps.max() < 1.01 * drawing.CELL / np.sqrt(3)


def test_hex_shows_values_labels_and_marks_where_the_stone_is():
    """The actions of O are named as if O also had to connect top and bottom."""
    game = azjax.make("hex_swap:3")
    board = np.zeros(9, np.int8)
    state = game.init()._replace(player=np.int8(1))

    def center(hexagon):
        corners = [corner.split(",") for corner in hexagon.get("points").split()]
        return np.mean(np.asarray(corners, float), axis=0)

    for action in (1, 3, 8):
        cell = action % 3 * 3 + action // 3  # Mirrored at the diagonal.
        after = state._replace(board=np.where(np.arange(9) == cell, -1, board), player=np.int8(0))
        (stone,) = parts(draw_state(game, after), "circle", "az-o")
        place = float(stone.get("cx")), float(stone.get("cy"))
        chosen = np.arange(10) == action
        labels = ["a" if here else "" for here in chosen]
        shown = draw_state(game, state, values=chosen, labels=labels)
        (heat,), (label,) = parts(shown, "polygon", "az-heat"), parts(shown, "text", "az-label")
        (last,) = parts(draw_state(game, after, last=action), "polygon", "az-last")
        np.testing.assert_allclose([center(heat), center(last)], [place, place], atol=0.01)
        assert float(label.get("x")) == place[0]
    assert not parts(draw_state(game, state, last=9), "polygon", "az-last")  # A swap.


def test_breakthrough_shows_values_and_labels_where_a_move_leads():
    """Covers the moves of both players; moves to one cell share its heat and label."""
    game = azjax.make("breakthrough:5x3")
    state = game.init()
    for _ in range(2):
        legal = np.flatnonzero(game.legal_actions(state))
        values = np.zeros(game.num_actions)
        for action in legal:
            after, _ = game.step(state, action)
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
        heat = sum(float(e.get("fill-opacity")) for e in shown)
        assert abs(heat - 0.7 * 0.1 * len(legal)) < 1e-6 and len(shown) < len(legal)
        state, _ = game.step(state, legal[0])


def test_a_pass_is_not_shown():
    game = azjax.make("othello:4")
    picture = draw_state(game, game.init(), values=np.eye(17)[16], last=16)
    assert not parts(picture, "rect", "az-last") and not parts(picture, "rect", "az-heat")


def test_a_game_without_pictures_is_drawn_as_text():
    state = NIM.step(NIM.init(), 1)[0]
    picture = draw_state(NIM, state, 80, labels=["10%", "", "90%"], values=np.ones(3))
    assert texts(picture) == ["|||||", "0: 10%, 2: 90%"]
    assert texts(draw_state(NIM, state, last=2)) == ["|||||"]
    picture = draw_text(" a  b\n\n<c>\x1b[1m\n")
    assert texts(picture) == [" a  b", None, "<c> [1m"]
    space = "{http://www.w3.org/XML/1998/namespace}space"
    lines = [*ElementTree.fromstring(str(picture)).iter(SVG + "text")]
    assert {line.get(space) for line in lines} == {"preserve"}
    assert texts(draw_text("")) == []
    name = lambda state: [f"leave {state[0] - taken}" for taken in (1, 2, 3)]  # noqa: E731
    named = NIM._replace(display=NIM.display._replace(name_actions=name))
    assert texts(draw_state(named, NIM.init(), labels=["10%", "20%", "70%"])) == [
        *["|||||||", "leave 6: 10%,", "leave 5: 20%,", "leave 4: 70%"]  # No break in a name.
    ]


def test_text_has_the_font_size_of_the_pages_whatever_its_length():
    sizes = set(re.findall(r"\.az-text-picture {[^}]*font-size: (\d+)px", style()))
    for text, size in (("|", 44), ("|" * 90, 44), ("|\n" * 30, 280)):
        game = NIM._replace(display=Display(lambda state, text=text: text))
        picture = draw_state(game, game.init(), size).element
        view = [float(side) for side in picture.get("viewBox").split()[2:]]
        assert [float(picture.get(side)) for side in ("width", "height")] == view
        sizes |= {element.get("font-size") for element in picture.iter("text")}
    assert sizes == {"13"}


def test_a_batch_has_captions_and_labels_by_state():
    states = np.array([[3, 0], [2, 0], [1, 0]], np.int8)
    look = {"labels": [["a", "", ""], ["", "b", ""], ["", "", "c"]], "size": 40}
    picture = draw_states(NIM, states, ["one", "two", "three"], most=2, **look)
    assert texts(picture) == ["|||", "0: a", "||", "1: b", "one", "two", "and 1 more"]
