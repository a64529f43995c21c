"""The program that writes the page about a player: the page's data, and rejected input."""

import dataclasses
import json

import numpy as np
import pytest

import azjax
import dots
from azjax.cli import explain
from azjax.runs import presets
from azjax.viz import networks
from azjax.viz.live import pack_player, solve
from azjax.viz.positions import board_text
from javascript import OVERRIDDEN
from run_directories import make_run

CONFIG = presets.smoke(presets.get("default"))


def explain_in(folder, run_dir, out="explain.html"):
    return explain.main(["--run-dir", str(run_dir), "--out", str(folder / out)])


def test_a_run_that_does_not_exist_is_rejected(tmp_path, capsys):
    assert explain_in(tmp_path, tmp_path / "nothing") == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and "nothing" in said and said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist_is_rejected_before_the_work(tmp_path, capsys):
    assert explain_in(tmp_path, tmp_path / "nothing", "nowhere/explain.html") == 2
    assert "there is no folder" in capsys.readouterr().err


def data_of(path):
    text = path.read_text().partition('id="azjax-data">')[2].partition("</script>")[0]
    return json.loads(text)


@pytest.fixture(scope="module")
def explained(tmp_path_factory, solution):
    """`(player, answers, page)` of a run; earlier iterations have other answers."""
    folder = tmp_path_factory.mktemp("explained")
    run_dir = make_run(folder / "run", CONFIG, iterations=(12,))
    player = azjax.load(run_dir)
    other = networks.Answers(
        *(field * 0 for field in networks.evaluate_positions(player, solution))
    )
    for iteration in (*range(12), 20):
        networks.save_answers(run_dir, iteration, other)
    (run_dir / "answers" / "000001.npz").write_bytes(b"cut")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explain, "_loop", lambda run_dir, player: [])  # Tested elsewhere.
        assert explain_in(folder, run_dir) == 0
    return player, other, folder / "explain.html"


def test_a_page_holds_the_networks_of_the_iterations(explained):
    player, other, path = explained
    [data] = data_of(path)
    iterations = [network["iteration"] for network in data["networks"]]
    assert iterations[0] == 0 and iterations[-2:] == [11, 12] and 1 not in iterations
    assert len(iterations) <= 8
    assert data["networks"][-1] == pack_player(player)
    assert data["networks"][-2] == networks.pack_answers(11, other)


@pytest.mark.parametrize("width", [390, 1280])
def test_every_declaration_of_the_style_sheets_has_an_effect(explained, browser, width):
    _, _, path = explained
    page = browser.new_page(viewport={"width": width, "height": 900}, reduced_motion="reduce")
    page.goto(path.as_uri())
    assert page.locator(".az-training .az-share-best, .az-proof-replies").count() > 2
    assert page.evaluate(OVERRIDDEN) == []
    page.close()


@pytest.mark.slow
def test_a_page_of_connect_four_holds_the_networks_as_weights(tmp_path):
    config = dataclasses.replace(CONFIG, game="connect_four")
    run_dir = make_run(tmp_path / "run", config, iterations=(0, 2, 5))
    assert explain_in(tmp_path, run_dir) == 0
    page = (tmp_path / "explain.html").read_text()
    assert page.index("Play against the network") < page.index("The search, step by step")
    assert "learned Connect Four only from games against itself" in page
    data, taught = data_of(tmp_path / "explain.html")
    assert taught["game"] == "connect_four"
    assert [network["iteration"] for network in data["networks"]] == [0, 2, 5]
    assert data["networks"][1] == pack_player(azjax.load(run_dir, 2))
    assert data["settings"]["evaluator"] == "network" and "positions" not in data


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("tic_tac_toe", ["tour", "play", "explorer", "proof", "compare", "encoding"]),
        ("connect_four", ["play", "explorer", "compare", "encoding"]),
    ],
)
def test_a_player_that_comes_with_azjax_is_explained(name, parts, tmp_path, browser):
    path = tmp_path / "page.html"
    assert explain.main([name, "--out", str(path)]) == 0
    assert f"{name} comes with azjax. It learned" in path.read_text()
    assert data_of(path)[0]["networks"] == [pack_player(azjax.load(name))]
    page = browser.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector(".az-explorer svg")
    kinds = "elements => elements.map((element) => element.dataset.kind)"
    assert page.eval_on_selector_all(".az-component[data-kind]", kinds) == parts
    assert not errors
    page.close()


@pytest.mark.slow
def test_a_network_that_the_page_cannot_compute_is_left_out(tmp_path, monkeypatch, capsys):
    def refuse(player):
        raise ValueError("this network is another")

    monkeypatch.setattr(explain, "pack_player", refuse)
    run_dir = make_run(tmp_path / "run", dataclasses.replace(CONFIG, game="connect_four"))
    assert explain_in(tmp_path, run_dir) == 0
    said = "the page has no network and no games against it: this network is another\n"
    assert capsys.readouterr().err == said
    page = (tmp_path / "explain.html").read_text()
    assert 'data-kind="explorer"' in page and 'data-kind="play"' not in page
    assert data_of(tmp_path / "explain.html")[0]["settings"]["evaluator"] == "uniform"


def test_the_positions_fit_their_titles(solution):
    boards = board_text(solution.states)
    texts = [boards[9 * row :][:9] for row in range(solution.num_states)]
    optimal = {title: solution.optimal[texts.index(x)] for title, x in explain._POSITIONS.items()}
    assert optimal["Empty board"].all()
    assert np.flatnonzero(optimal["O answers a corner"]).tolist() == [4]
    assert np.flatnonzero(optimal["O must block"]).tolist() == [2]
    assert 2 in np.flatnonzero(optimal["X can win in one move"])
    assert np.flatnonzero(optimal["O between two corners"]).tolist() == [1, 3, 5, 7]


def test_the_tour_starts_where_a_single_move_keeps_the_value(tic_tac_toe, solution):
    assert explain.tour_start(tic_tac_toe, solution) == "X........"
    game = dots.make()
    table = solve(game)
    row = int(explain.tour_start(game, table))
    assert table.optimal[row].sum() == 1 and table.legal[row].sum() > 2
    assert explain.tour_start(game, table._replace(optimal=table.legal)) is None
