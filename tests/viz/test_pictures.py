"""Pictures of games, with and without a `draw` function."""

import base64
import re
from xml.etree import ElementTree

import jax
import numpy as np
import pytest

from azjax import games
from azjax.games import solver
from azjax.games.base import init_batch
from azjax.games.display import Display
from azjax.proof.verify import verify
from azjax.search import PUCT, make_search
from azjax.search.evaluators import uniform_evaluator
from azjax.viz import atlas as atlases
from azjax.viz.games import Move, games_strips, games_table
from azjax.viz.page import style
from azjax.viz.pictures import draw_search, draw_state, draw_states, draw_text
from azjax.viz.tree import BOARD, draw_tree, graphviz
from nim import NIM
from small import NAMES

SVG = "{http://www.w3.org/2000/svg}"


def texts(picture):
    """Returns the lines of text in a picture."""
    return [e.text for e in ElementTree.fromstring(str(picture)).iter(SVG + "text")]


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_that_of_the_games_display(name):
    game = games.make(name)
    state, look = game.init(), {"labels": ["a"] * game.num_actions, "last": None}
    draw = game.display.draw
    assert str(draw_state(game, state, 50, **look)) == str(draw(state, size=50, **look))
    assert draw_state(game, state)._repr_html_() == draw(state)._repr_html_()
    assert not hasattr(type(state), "draw") and not hasattr(type(state), "_repr_html_")


def test_a_game_without_pictures_is_drawn_as_text():
    state = NIM.step(NIM.init(), 1)[0]
    picture = draw_state(NIM, state, 80, labels=["10%", "", "90%"], values=np.ones(3))
    assert texts(picture) == ["|||||", "0: 10%, 2: 90%"]
    assert texts(draw_state(NIM, state, last=2)) == ["|||||"]


def test_text_keeps_its_whitespace():
    picture = draw_text(" a  b\n\n<c>\x1b[1m\n")
    assert texts(picture) == [" a  b", None, "<c> [1m"]
    space = "{http://www.w3.org/XML/1998/namespace}space"
    lines = [*ElementTree.fromstring(str(picture)).iter(SVG + "text")]
    assert {line.get(space) for line in lines} == {"preserve"}
    assert texts(draw_text("")) == []


def test_text_has_the_font_size_of_the_pages_whatever_its_length():
    sizes = set(re.findall(r"\.az-text-picture {[^}]*font-size: (\d+)px", style()))
    for text, size in (("|", 44), ("|" * 90, 44), ("|\n" * 30, 280)):
        game = NIM._replace(display=Display(lambda state, text=text: text))
        picture = draw_state(game, game.init(), size).element
        view = [float(side) for side in picture.get("viewBox").split()[2:]]
        assert [float(picture.get(side)) for side in ("width", "height")] == view
        sizes |= {element.get("font-size") for element in picture.iter("text")}
    assert sizes == {"13"}


def test_custom_names_of_actions_are_used_in_every_picture(searched):
    """The names depend on the position, and a label is not broken within a name."""
    name = lambda state: [f"leave {state[0] - taken}" for taken in (1, 2, 3)]  # noqa: E731
    game = NIM._replace(display=NIM.display._replace(name_actions=name))
    assert texts(draw_state(game, game.init(), labels=["10%", "20%", "70%"])) == [
        *["|||||||", "leave 6: 10%,", "leave 5: 20%,", "leave 4: 70%"]
    ]
    chosen = f"plays leave {6 - int(searched.action[0])}, value"
    assert any(
        chosen in str(text) for text in texts(draw_search(game, init_batch(game, 2), searched))
    )
    edges = re.findall(r'(\d+) -> (\d+) \[label="leave (\d): P', graphviz(game, searched))
    stones = searched.tree.embeddings[0, :, 0]
    assert len(edges) == 8
    assert all(int(stones[int(child)]) == int(left) for _, child, left in edges)
    move = Move(game.init(), 2, np.float32([0.5, 0.25, 0.25]), 0.0, 1)
    for shown in (games_table(game, [[move]]).element, games_strips(game, [[move]])):
        assert "leave 4" in "".join(shown.itertext())


@pytest.fixture(scope="module")
def searched():
    search = make_search(PUCT(num_simulations=8), NIM, uniform_evaluator(NIM))
    return jax.jit(search)(None, jax.random.key(0), init_batch(NIM, 2))


def test_a_tree_of_a_game_without_pictures(searched):
    picture = draw_tree(NIM, searched, row=1)
    assert texts(picture).count("|" * 7) == 1 and "|" * 6 in texts(picture)
    boards = [e for e in ElementTree.fromstring(str(picture)).iter(SVG + "svg") if e.get("x")]
    widths = [float(e.get("width")) for e in boards]
    assert max(widths) == BOARD and min(widths) < BOARD
    scales = [x / float(e.get("viewBox").split()[2]) for x, e in zip(widths, boards, strict=True)]
    assert scales == pytest.approx([scales[0]] * len(boards), rel=1e-3)  # One font size.
    assert "|" * 7 in graphviz(NIM, searched)


def test_a_search_of_a_game_without_pictures_is_shown_as_text(searched):
    written = texts(draw_search(NIM, init_batch(NIM, 2), searched, most=1))
    assert written[0] == "|" * 7 and written[-1] == "and 1 more"
    assert written[-2].startswith(f"plays {searched.action[0]}, value ")


def test_a_batch_has_captions_and_labels_by_state():
    states = np.array([[3, 0], [2, 0], [1, 0]], np.int8)
    look = {"labels": [["a", "", ""], ["", "b", ""], ["", "", "c"]], "size": 40}
    picture = draw_states(NIM, states, ["one", "two", "three"], most=2, **look)
    assert texts(picture) == ["|||", "0: a", "||", "1: b", "one", "two", "and 1 more"]
    with pytest.raises(ValueError, match="states must be a batch, with one leading axis"):
        draw_states(NIM, states[0])


def test_a_table_of_a_game_without_pictures_has_its_texts():
    state, moves = NIM.init(), []
    for action, outcome in ((2, 1), (0, -1), (2, 1)):
        moves.append(Move(state, action, np.float32([0.5, 0.25, 0.25]), 0.0, outcome))
        state = NIM.step(state, action)[0]
    table = games_table(NIM, [moves])
    shown = [e.text for e in table.element.iter("text")]
    assert shown == ["|" * 7, "|" * 4, "|" * 3]


@pytest.mark.slow
def test_an_atlas_of_a_game_without_pictures_has_its_texts():
    solution = solver.solve(NIM)
    atlas = atlases.make_atlas(NIM, solution)
    logits = np.float32(solution.optimal[solution.decisions])
    verdict = verify(solution, lambda _: (logits, solution.values[solution.decisions]))
    snapshot = atlases.make_snapshot(atlas, solution, verdict, logits, np.float32(logits[:, 0]))
    snapshots = jax.tree.map(lambda leaf: np.asarray(leaf)[None], snapshot)
    data = atlases.atlas_data(NIM, solution, atlas, np.array([0]), snapshots)
    left = solution.states[atlas.representatives, 0]
    lines, numbers = data["pictures"]["parts"], base64.b64decode(data["pictures"]["indices"])
    shown = [lines[i] for i in np.frombuffer(numbers, "<u4")]
    assert shown == ["|" * int(count) or "-" for count in left]
    assert "boards" not in data
