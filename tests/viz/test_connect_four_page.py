"""The page of a Connect Four run in a browser: everything that needs no table of positions."""

import dataclasses

import pytest

from azjax.cli import explain
from azjax.networks import MLPConfig
from azjax.runs import presets
from run_directories import make_run

pytestmark = pytest.mark.slow

KINDS = ["play", "explorer", "compare", "encoding", "training", "loop"]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The page of eight iterations of the default network."""
    config = presets.smoke(presets.get("default"))
    config = dataclasses.replace(config, game="connect_four", network=MLPConfig())
    folder = tmp_path_factory.mktemp("four")
    run_dir = make_run(folder / "run", config, iterations=range(1, 9))
    path = folder / "explain.html"
    assert explain.main(["--run-dir", str(run_dir), "--out", str(path)]) == 0
    return path


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_page_of_a_large_network_is_small(tmp_path, capsys, dtype):
    preset = presets.get("connect_four")
    network = dataclasses.replace(preset.network, width=448, evaluation_dtype=dtype)
    config = dataclasses.replace(presets.smoke(preset), network=network)
    run_dir = make_run(tmp_path / "run", config)
    path = tmp_path / "explain.html"
    assert explain.main(["--run-dir", str(run_dir), "--out", str(path)]) == 0
    assert 1e6 < path.stat().st_size < 4e6
    assert ("rounded to 3 bytes" in capsys.readouterr().err) == (dtype == "float32")


@pytest.fixture
def page(browser, exported, errors):
    page = browser.new_page(viewport={"width": 1280, "height": 720}, reduced_motion="reduce")
    page.set_default_timeout(60_000)
    found = errors(page)
    page.goto(exported.as_uri())
    yield page
    assert found == []
    page.close()


def component(page, kind):
    return page.locator(f".az-component[data-kind={kind}]")


def board_of(root):
    return root.get_attribute("data-board")


def test_the_page_has_all_parts_and_is_small(page, exported):
    kinds = page.locator(".az-component").evaluate_all("all => all.map((e) => e.dataset.kind)")
    assert kinds == KINDS
    assert exported.stat().st_size < 4e6
    assert component(page, "training").locator("thead td, thead [scope=col]").count() > 2
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") == width
        texts = page.locator(".az-component svg text").evaluate_all(
            "all => all.map((e) => e.getScreenCTM().a * parseFloat(getComputedStyle(e).fontSize))"
        )
        assert len(texts) > 20 and min(texts) >= 9
    cells = page.locator(".az-cell").evaluate_all(
        "all => all.map((e) => 30 * e.getScreenCTM().a)"  # Drawing units of a cell.
    )
    assert len(cells) == 3 * 42 and min(cells) >= 44


def test_stones_are_dropped_and_removed_in_the_editor(page):
    viewer = component(page, "encoding")
    cells = viewer.locator(".az-cell")
    for cell in (3, 10, 17, 2):  # Any cell of a column drops a stone.
        cells.nth(cell).click()
    assert board_of(viewer) == "." * 24 + "X......" + "O.....OX..."
    assert board_of(component(page, "training")) == board_of(viewer)
    first = viewer.locator("[data-plane=absolute-0]").get_attribute("data-values")
    assert first == board_of(viewer).replace("O", "0").replace("X", "1").replace(".", "0")
    own = viewer.locator("h3", has_text="used by this network").inner_text()
    assert own.startswith("Relative encoding")
    assert viewer.locator(".az-network").get_attribute("data-move") in set("0123456")
    cells.nth(38).click()  # Removes the topmost stone of the column.
    assert board_of(viewer) == "." * 31 + "O.....OX..."
    assert "1 X and 2 O cannot occur" in viewer.inner_text()
    assert board_of(component(page, "training")) != board_of(viewer)


def test_a_game_is_played_and_every_move_is_reviewed_by_searches(page):
    game = component(page, "play")
    game.locator("[data-setting=strength]").select_option("32")
    assert game.locator("[data-button=truth]").count() == 0  # There is no table.
    while game.get_attribute("data-result") is None:
        board = board_of(game)
        column = max(column for column in range(7) if board[column] == ".")
        game.locator(".az-cell").nth(column).click()
        page.wait_for_function(  # Until it is the reader's turn again, or the game is over.
            "([e, full]) => e.dataset.result || e.dataset.board.split('.').length < full",
            arg=[game.element_handle(), board.count(".")],
        )
    stones = 42 - board_of(game).count(".")
    rows = game.locator(".az-review li")
    rows.first.wait_for()
    assert rows.count() == stones
    assert "The values come from searches of 100 simulations" in game.inner_text()
    last = float(rows.last.get_attribute("data-after"))
    assert last == (0 if game.get_attribute("data-result") == "draw" else 1)
    before = [
        float(value) for value in rows.evaluate_all("all => all.map((e) => e.dataset.before)")
    ]
    after = [float(value) for value in rows.evaluate_all("all => all.map((e) => e.dataset.after)")]
    assert after[:-1] == [-value for value in before[1:]]
    game.locator("[data-button=look-2]").click()
    assert board_of(component(page, "encoding")).count(".") == 40


def test_a_link_leads_to_a_long_search_with_legible_stones(page, exported):
    page.goto(f"{exported.as_uri()}#algorithm=gumbel&num_simulations=200&t=600")
    page.reload()
    root = component(page, "explorer")
    page.wait_for_function("e => !e.ariaBusy", arg=root.element_handle())
    assert root.get_attribute("data-t") == "600"
    sizes = root.locator(".az-compact :is(.az-x, .az-o)").evaluate_all(
        "stones => stones.map((e) => e.getBoundingClientRect().width)"
    )
    assert sizes and min(sizes) > 3
