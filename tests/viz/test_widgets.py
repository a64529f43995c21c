"""The data and the files of widgets and pages."""

import base64
import dataclasses
import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dots
from azjax import games
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.runs.player import Player
from azjax.search import PUCT, UCT, Gumbel
from azjax.viz import networks, page
from azjax.viz.live import live_data, pack_player, quiet, solve
from azjax.viz.positions import position_table
from azjax.viz.widgets import Encodings, Explorer, Play
from nim import NIM


def make_player(game="tic_tac_toe"):
    """An untrained player."""
    settings = presets.smoke(presets.get("default"))
    config = type(settings)(**{**vars(settings), "game": game})
    parts = make_parts(config)
    params = parts.network.fold(parts.network.init(jax.random.key(0)))
    return Player(parts, params)


@pytest.fixture(scope="module")
def player():
    return make_player()


@pytest.mark.parametrize(
    ("search", "start", "sentence"),
    [
        (PUCT(), {"board": [1] * 9}, "9 X and 0 O cannot occur"),
        (PUCT(), {"board": [1, 1, 1, -1, -1, 0, 0, 0, 0]}, "the game is over in this position"),
        (PUCT(), {"board": [1, 0]}, "a board is 9 numbers"),
        (PUCT(), {"evaluator": "oracle"}, "evaluator 'oracle' is unknown: use uniform, rollout"),
        (PUCT(), {"evaluator": "network"}, "a network needs a trained run"),
        (PUCT(), {"seed": -1}, "seed is -1: use 0 to 2147483647"),
        (PUCT(num_simulations=1001), {}, "num_simulations is 1001: use 1 to 1000"),
        (object(), {}, "does not support the search object: use PUCT, Gumbel or UCT"),
    ],
)
def test_a_search_that_cannot_be_shown_is_rejected(tic_tac_toe, search, start, sentence):
    with pytest.raises(ValueError, match=sentence):
        live_data(tic_tac_toe, search, **start)


def test_a_game_that_is_too_large_for_a_page_is_rejected():
    with pytest.raises(ValueError, match="nim is too large for a page: use tic_tac_toe, connect"):
        live_data(NIM._replace(most_positions=None), PUCT())
    assert live_data(NIM, PUCT())["start"] == "0"
    with pytest.raises(ValueError, match="the position is not a state of connect_four"):
        live_data(games.make("connect_four"), PUCT(), board=[0] * 42)


def test_a_page_starts_with_the_given_search(tic_tac_toe):
    given = Gumbel(num_simulations=7, gumbel_scale=0.5, maxvisit_init=20.0)
    settings = live_data(tic_tac_toe, given, seed=3)["settings"]
    assert settings["algorithm"] == "gumbel" and settings["seed"] == 3
    assert dataclasses.asdict(given).items() <= settings.items()
    assert settings["c_puct"] == PUCT().c_puct and settings["exploration"] == UCT().exploration
    assert settings["dirichlet_fraction"] == 0  # Other algorithms start without noise.
    assert quiet(given) == dataclasses.replace(given, gumbel_scale=0.0) and quiet(UCT()) == UCT()
    assert quiet(PUCT(num_simulations=5000)) == PUCT(num_simulations=1000, dirichlet_fraction=0.0)


def test_a_page_starts_with_the_given_position(tic_tac_toe, player):
    four = games.make("connect_four")
    state = four.step(four.init(), jnp.int32(3))[0]
    assert live_data(four, PUCT(), board=state)["start"].index("X") == 38
    board = [1, 0, 0, 0, -1, 0, 0, 0, 1]
    data = Explorer(player, board, PUCT(), evaluator="rollout", c_puct=2.0).data
    assert data["start"] == "X...O...X" and data["settings"]["c_puct"] == 2
    assert data["settings"]["evaluator"] == "rollout"
    with pytest.raises(ValueError, match="unknown setting 'c_puct' of gumbel"):
        Explorer(player, c_puct=2.0)


def decode(text, kind) -> Any:
    return np.frombuffer(base64.b64decode(text), kind)


def test_the_table_of_positions_equals_the_solution(tic_tac_toe, solution):
    table = position_table(tic_tac_toe, solution)
    rows, actions = np.nonzero(solution.legal)
    assert np.array_equal(decode(table["counts"], "<u2"), solution.legal.sum(axis=1))
    assert np.array_equal(decode(table["actions"], "<u2"), actions)
    assert np.array_equal(decode(table["optimal"], "u1"), solution.optimal[rows, actions])
    truth = decode(table["truth"], "i1")
    open_rows = ~solution.over
    assert np.array_equal(truth[open_rows], solution.values[open_rows])
    last = solution.children[solution.legal]
    ends = solution.over[last]
    assert np.array_equal(truth[last[ends]], -solution.rewards[solution.legal][ends])
    cells = table["boards"].translate(str.maketrans({"X": "1", "O": "2", ".": "0"}))
    boards = np.array([int(c) for c in cells]).reshape(-1, 9)
    assert np.array_equal(np.where(boards == 2, -1, boards), solution.states.board)


@pytest.mark.parametrize("name", ["hex:2", "dots"])
def test_every_position_of_a_small_game_has_its_picture(name):
    """Each picture is put together from its parts again; anchors show where moves lead."""
    game = dots.make() if name == "dots" else games.make(name)
    solution = solve(game)
    packed = position_table(game, solution)["pictures"]
    ends = np.cumsum(decode(packed["counts"], "<u2"))
    indices = decode(packed["indices"], "<u4")
    for row, end in enumerate(ends):
        state = jax.tree.map(lambda leaf, row=row: leaf[row], solution.states)
        parts = [packed["parts"][i] for i in indices[ends[row - 1] if row else 0 : end]]
        if name == "dots":
            assert "\n".join(parts) == game.display.render(state)
            continue
        shown = [
            e.tag for e in game.display.draw(state).element.iter() if e.tag not in ("svg", "g")
        ]
        tags = [[part, *(p for p in part if isinstance(p, list))][-1][0] for part in parts]
        assert tags == shown
    if name != "dots":
        anchors = decode(packed["anchors"], "<u4")
        assert len(anchors) == solution.legal.sum() and anchors.all()
        assert {packed["parts"][i - 1][-1][-1] for i in anchors} == {"@"}


def test_a_position_of_a_table_is_found_or_rejected():
    game = dots.make()
    state = game.step(game.init(), jnp.int32(3))[0]
    row = int(live_data(game, PUCT(), board=state)["start"])
    children = solve(game).children
    assert row == children[0, 3]
    with pytest.raises(ValueError, match="no game of dots reaches this position"):
        live_data(game, PUCT(), board=state._replace(player=jnp.int8(0)))


def test_stored_answers_equal_the_outputs_of_the_network(tmp_path, player, solution):
    logits, values = player.evaluate(solution.decision_states)
    answers = networks.make_answers(solution, logits, values)
    legal = solution.legal[solution.decisions]
    assert np.array_equal(answers.logits, np.asarray(logits)[legal])
    for iteration in (12, 3, 700, 41, 5, 88):
        networks.save_answers(tmp_path, iteration, answers)
    assert networks.list_answers(tmp_path) == [3, 5, 12, 41, 88, 700]
    packed = networks.pack_answers(12, networks.load_answers(tmp_path, 12, solution))
    assert packed == pack_player(player) | {"iteration": 12}
    assert np.array_equal(decode(packed["values"], "<f4"), values)


@pytest.mark.parametrize("damage", ["cut", "another game"])
def test_damaged_answers_are_rejected(tmp_path, solution, damage):
    networks.save_answers(tmp_path, 3, networks.Answers(np.ones(3, "<f4"), np.ones(2, "<f4")))
    path = tmp_path / "answers" / "000003.npz"
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(ValueError, match="delete it"):
        networks.load_answers(tmp_path, 3, solution)


def test_widgets_contain_the_module_and_its_data(player):
    explorer = Explorer(player)
    assert explorer.kind == "explorer" and explorer._esm == page.script()
    data = json.loads(json.dumps(explorer.data))
    assert data["settings"]["num_simulations"] == player.parts.search.num_simulations
    assert data["settings"]["algorithm"] == "gumbel" and data["settings"]["evaluator"] == "network"
    assert [network["iteration"] for network in data["networks"]] == [player.iteration]
    assert Explorer().data["settings"]["algorithm"] == "puct" and not Explorer().data["networks"]
    assert not Encodings().data["networks"] and Encodings().data["game"] == "tic_tac_toe"
    assert Play(player).data["networks"] == data["networks"]
    four = make_player("connect_four")
    assert Play(four).data == Encodings(four).data
    assert Play(four).data["game"] == "connect_four" and Play(four).data["networks"]
    assert Play(four).data["encoding"] == four.parts.network.encoding


def test_the_module_is_one_module():
    source = page.script()
    assert "\nimport " not in source
    assert source.count("\nexport ") == 1 and "export default" in source
    assert "innerHTML" not in source and "eval(" not in source


def test_a_page_shows_text_as_text(tmp_path):
    evil = '</script><script>alert(1)</script><b>&"'
    sections = [page.Section(evil, evil, kind="encoding", data={"name": evil})]
    text = page.write_page(tmp_path / "page.html", evil, sections).read_text()
    assert "<script>alert" not in text and "<b>" not in text
    assert "\\u003c/script>" in text
    assert not (tmp_path / "page.tmp").exists()


def test_shared_data_is_written_once(tmp_path):
    shared = {"name": "only once"}
    sections = [page.Section("a", kind="encoding", data=shared)] * 2
    text = page.write_page(tmp_path / "page.html", "title", sections).read_text()
    assert text.count("only once") == 1 and text.count('data-number="0"') == 2


def test_a_page_without_a_folder_is_rejected(tmp_path):
    with pytest.raises(ValueError, match="there is no folder .*nowhere for .*page.html: make it"):
        page.write_page(tmp_path / "nowhere" / "page.html", "title", [])
