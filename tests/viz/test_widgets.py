"""What widgets and pages are made of: searches on request, tables of positions, one file."""

import base64
import json

import jax
import numpy as np
import pytest

from azjax import presets
from azjax.config import make_parts
from azjax.games.tic_tac_toe import from_board
from azjax.player import Player
from azjax.search import PUCT, make_search
from azjax.viz import page
from azjax.viz.positions import position_table
from azjax.viz.searches import Request, Searcher
from azjax.viz.widgets import Encodings, Explorer, Play


def make_player(game="tic_tac_toe"):
    """A player that has learned nothing."""
    settings = presets.smoke(presets.get("default"))
    config = type(settings)(**{**vars(settings), "game": game})
    parts = make_parts(config)
    params = parts.network.fold(parts.network.init(jax.random.key(0)))
    return Player(parts, params)


@pytest.fixture(scope="module")
def player():
    return make_player()


@pytest.fixture(scope="module")
def searcher(player):
    return Searcher(player)


@pytest.mark.parametrize("evaluator", ["network", "rollout"])
@pytest.mark.slow
def test_a_recording_is_the_search_of_the_package(tic_tac_toe, player, searcher, evaluator):
    board = [1, 0, 0, 0, -1, 0, 0, 0, 1]
    request = Request(board, evaluator, c_puct=2.0, noise=0.25, simulations=16, seed=3)
    shown = searcher.record(request)
    config = PUCT(num_simulations=16, c_puct=2.0, dirichlet_fraction=0.25)
    search = make_search(config, tic_tac_toe, searcher._evaluators[evaluator])
    states = jax.tree.map(lambda leaf: leaf[None], from_board(board))
    keys = jax.random.split(jax.random.key(3), 1)
    result = jax.jit(search, static_argnums=4)(player.params, keys, states, 0.0, True)
    actions, last = shown["nodes"][0]["actions"], shown["snapshots"][0][-1]
    assert last[3] == result.visit_counts[0, np.array(actions)].tolist()
    assert shown["action"] == int(result.action[0])
    assert shown["evaluator"] == evaluator and shown["seed"] == 3 and shown["noise"] == 0.25


@pytest.mark.slow
def test_a_longer_search_begins_like_a_shorter_one(searcher):
    short = searcher.record(Request(evaluator="rollout", noise=0.25, simulations=10))
    long = searcher.record(Request(evaluator="rollout", noise=0.25, simulations=16))
    assert long["simulations"][:10] == short["simulations"]
    assert long["frames"][:11] == short["frames"]


@pytest.mark.slow
def test_frames_show_the_path_and_at_most_so_many_nodes(searcher):
    shown = searcher.record(Request(evaluator="exact", simulations=120))
    assert len(shown["nodes"]) > 60
    for k, frame in enumerate(shown["frames"]):
        assert len(frame["ids"]) == len(frame["x"]) <= 48 + 9
        if k:
            simulation = shown["simulations"][k - 1]
            assert {*simulation["path"], simulation["leaf"]} <= set(frame["ids"])
        known = sum(node["born"] <= k for node in shown["nodes"])
        assert known == len(frame["ids"]) + _hidden_below(shown, frame, k)


def _hidden_below(shown, frame, k):
    """All nodes below hidden children, these included."""
    alive = [i for i, node in enumerate(shown["nodes"]) if node["born"] <= k]
    hidden = set(alive) - set(frame["ids"])
    parents = [shown["nodes"][i]["parent"] for i in hidden]
    counts = dict(frame["hidden"])
    for node in frame["ids"]:
        assert counts.get(node, 0) == parents.count(node)
    return len(hidden)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"board": [1] * 9}, "9 X and 0 O cannot occur"),
        ({"board": [1, 1, 1, -1, -1, 0, 0, 0, 0]}, "the game is over in this position"),
        ({"board": [1, 0]}, "a board is 9 numbers"),
        ({"evaluator": "oracle"}, "evaluator 'oracle' is unknown: use network, uniform"),
        ({"c_puct": -1}, "c_puct is -1: use 0 to 100"),
        ({"c_puct": None}, "c_puct is None: use a number"),
        ({"c_puct": float("nan")}, "c_puct is nan"),
        ({"noise": 2}, "noise is 2: use a share from 0 to 1"),
        ({"simulations": 0}, "simulations is 0: use 1 to 500"),
        ({"simulations": 501}, "simulations is 501: use 1 to 500"),
        ({"simulations": 2.5}, "simulations is 2.5: use a whole number"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_bad_requests_are_refused_with_a_sentence(searcher, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        searcher.record(Request(**settings))


def test_a_player_of_another_game_is_refused():
    with pytest.raises(ValueError, match="this player plays connect_four"):
        Searcher(make_player("connect_four"))
    with pytest.raises(ValueError, match="this player plays connect_four"):
        Play(make_player("connect_four"))


def decode(text, kind):
    return np.frombuffer(base64.b64decode(text), kind)


def test_the_table_of_positions_is_what_network_and_oracle_say(player, solution):
    table = position_table(solution, player, "name")
    logits, values = player.evaluate(solution.states)
    policy = decode(table["policy"], "<u2").reshape(-1, 9) / 10_000
    logits = np.where(solution.legal, logits, -np.inf)
    expected = np.where(solution.over[:, None], 0, np.asarray(jax.nn.softmax(logits)))
    assert np.abs(policy - expected).max() <= 0.5001e-4
    assert np.abs(decode(table["value"], "<i2") / 10_000 - values).max() <= 0.5001e-4
    moves = decode(table["move"], "u1")
    goes_on = ~solution.over
    assert (moves[goes_on] == logits.argmax(axis=1)[goes_on]).all()
    assert (moves[solution.over] == 255).all()
    optimal = decode(table["optimal"], "<u2")
    assert np.array_equal(optimal[:, None] >> np.arange(9) & 1, solution.optimal.astype(int))
    truth = decode(table["truth"], "i1")
    assert np.array_equal(truth[goes_on], solution.values[goes_on])
    last = solution.children[solution.legal]
    ends = solution.over[last]
    assert np.array_equal(truth[last[ends]], -solution.rewards[solution.legal][ends])
    cells = table["boards"].translate(str.maketrans({"X": "1", "O": "2", ".": "0"}))
    boards = np.array([int(c) for c in cells]).reshape(-1, 9)
    assert np.array_equal(np.where(boards == 2, -1, boards), solution.states.board)


@pytest.mark.slow
def test_widgets_carry_the_module_and_answer(player):
    explorer = Explorer(player, simulations=8)
    assert explorer.kind == "explorer" and explorer._esm == page.script()
    sent = []
    explorer.send = sent.append
    settings = {"board": [0] * 9, "evaluator": "exact", "c_puct": 1, "noise": 0}
    good = settings | {"simulations": 8, "seed": 0}
    explorer._answer(explorer, {"id": 1, "settings": good}, [])
    explorer._answer(explorer, {"id": 2, "settings": good | {"board": [1] * 9}}, [])
    explorer._answer(explorer, {"id": 3, "settings": good | {"nonsense": 1}}, [])
    assert [answer["id"] for answer in sent] == [1, 2, 3]
    assert sent[0]["recording"]["evaluator"] == "exact"
    assert "9 X and 0 O cannot occur" in sent[1]["error"]
    assert "nonsense" in sent[2]["error"]
    json.dumps(sent)
    assert "policy" not in Encodings().data["positions"]
    assert "policy" in Play(player).data["positions"]


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


def test_what_two_sections_share_is_written_once(tmp_path):
    shared = {"name": "only once"}
    sections = [page.Section("a", kind="encoding", data=shared)] * 2
    text = page.write_page(tmp_path / "page.html", "title", sections).read_text()
    assert text.count("only once") == 1 and text.count('data-number="0"') == 2


def test_a_page_without_a_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match="there is no folder .*nowhere for .*page.html: make it"):
        page.write_page(tmp_path / "nowhere" / "page.html", "title", [])
