"""Pages and the playground in browsers: they open, and can be read and used."""

import io
import re
import shutil
import sys

import jax
import numpy as np
import pytest

import azjax
import javascript as js
import misere_pile
import playground
from azjax.cli import custom, explain, play
from azjax.runs import presets
from azjax.search import PUCT
from azjax.viz import animation
from azjax.viz.live import live_data, pack_player
from azjax.viz.page import Section, write_page
from small import make_run
from trained import chosen, compiling_once

SMOKE = presets.smoke(presets.get("mlp"))


@pytest.fixture(scope="module")
def exported(trained, tmp_path_factory):
    path = tmp_path_factory.mktemp("explained") / "explain.html"
    assert explain.main(["--run-dir", str(trained.run_dir), "--out", str(path)]) == 0
    return path


def test_a_page_has_the_search_of_its_address_and_is_used_by_keys(browser, exported):
    address = "#algorithm=puct&num_simulations=12&t=36&constructor=x"
    with js.opened(browser, exported, address=address) as page:
        page.locator(".az-contents a", has_text="Proof").click()
        top = page.locator("section:has([data-kind=proof])").bounding_box()["y"]
        assert 0 <= top < 60 and "section" not in page.url
        root = js.component(page, "explorer")
        assert sum(map(int, root.locator("[data-k=N]").all_inner_texts())) == 12
        js.press(root, "reset")
        root.locator("[data-button=next]").focus()
        for key, t in (("ArrowRight", 1), ("n", 2), ("p", 1), ("5", 15)):
            page.keyboard.press(key)
            assert root.get_attribute("data-t") == str(t), key
        for key in ("1", "Backspace"):
            root.locator("[data-setting=seed]").press(key)
            assert root.get_attribute("data-t") == "15"  # Typing a number is not stepping.
        root.locator("[data-node='0']").focus()
        for key in ("ArrowDown", "Enter"):
            page.keyboard.press(key)
        selected = root.get_attribute("data-selected")
        assert selected != "0"
        assert page.evaluate("document.activeElement.dataset.node") == selected
        game = js.component(page, "play").locator("[data-cell='4']")
        game.press("Enter")
        page.wait_for_function(
            "document.querySelector('[data-kind=play]').dataset.board.includes('O')"
        )
        assert game.evaluate("e => e === document.activeElement")
        js.component(page, "proof").locator("[data-button^=reply]").first.press("Enter")
        assert page.evaluate("document.activeElement.matches('[data-kind=proof] .az-cell')")


LIGHT, DARK = (390, "light"), (1280, "dark")


@pytest.mark.parametrize(
    ("name", "look"),
    [("explain", LIGHT), ("playground", DARK), ("report", LIGHT), ("report", DARK)],
)
def test_pages_are_legible_and_accessible(name, look, browser, barriers, exported, trained):
    """On a phone in the light theme, and on a laptop in the dark one."""
    width, scheme = look
    written = trained.run_dir / "report.html"
    paths = {"explain": exported, "playground": js.PLAYGROUND / "index.html", "report": written}
    with js.opened(browser, paths[name], width, color_scheme=scheme) as page:
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (int(re.search(r"\d+", paper)[0]) < 128) == (scheme == "dark")
        if name == "explain":
            js.press(js.component(page, "play"), "thoughts")
            js.press(js.component(page, "play"), "truth")
        elif name == "report":
            assert page.locator(".az-charts .az-scroll").count() == 4
        else:
            page.wait_for_selector(".az-match [data-cell]")
            page.wait_for_selector("[data-button=reply-3]")
            js.press(page, "watch")
            page.wait_for_function("!document.querySelector('[data-kind=explorer]').ariaBusy")
        js.check_fits(page, width)
        assert barriers(page) == []


# The explorer on screens of two sizes.


@pytest.mark.parametrize(("width", "height", "count"), [(1280, 720, 48), (390, 844, 1000)])
def test_every_size_of_screen_and_search_is_legible(
    width, height, count, browser, tmp_path, tic_tac_toe
):
    data = live_data(tic_tac_toe, PUCT(num_simulations=count, dirichlet_fraction=0.0))
    sections = [Section("A search", kind="explorer", data=data)]
    path = write_page(tmp_path / "page.html", "A search", sections)
    with js.opened(browser, path, width, height) as page:
        root = js.component(page, "explorer")
        middle = 3 * (2 * count // 3)
        for t in (0, middle + 1, middle + 3, -1):
            js.go(root, t)
            seen = root.evaluate(js.MEASURE)
            js.check_tree(seen)
            lit = sorted(group["level"] for group in seen["groups"] if group["lit"])
            if root.get_attribute("data-phase") in ("selection", "backup"):
                assert lit == list(range(1, lit[-1] + 1))  # The whole path.
            if width == 390:
                assert [c for c in seen["controls"] if c[1] < 43.9] == []
            else:
                top, bottom = zip(*((box[1], box[3]) for box in seen["parts"]), strict=True)
                assert max(bottom) - min(top) <= height
        nodes = "all => all.map((e) => e.dataset.node)"
        shown = root.locator("[data-node]").evaluate_all(nodes)
        root.locator("[data-fold]").first.click()
        assert page.evaluate("document.activeElement.dataset.node") not in [None, *shown]
        js.check_tree(root.evaluate(js.MEASURE))
        js.press(root, "fit")
        assert root.locator("[data-node]").evaluate_all(nodes) == shown
        if width == 390:  # The buttons stick to the screen.
            root.locator(".az-moves").scroll_into_view_if_needed()
            box = root.locator(".az-transport").bounding_box()
            assert box["y"] + box["height"] == pytest.approx(844, abs=1) and box["height"] < 130


# Pages of other games and players.


def test_a_player_that_comes_with_azjax_is_explained(tmp_path, browser):
    path, name = tmp_path / "page.html", "tic_tac_toe"
    assert explain.main([name, "--out", str(path)]) == 0
    assert '<th scope="row">command</th><td>azjax train ' in path.read_text()
    assert js.data_of(path)[0]["networks"] == [pack_player(azjax.load(name))]
    with js.opened(browser, path) as page:
        page.wait_for_selector(".az-explorer svg")
        kinds = page.locator(".az-component").evaluate_all("all => all.map((e) => e.dataset.kind)")
        assert kinds == ["play", "explorer", "proof"]


def test_programs_accept_a_game_without_optional_fields(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(misere_pile.__file__, "pile.py")
    with open("pile.py", "a") as file:
        file.write("\n\ndef rules():\n    return Game(*make()[:10])\n")
    own = ["--game", "pile.py:rules", "--run-dir", "rules"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("0\n"))
    with compiling_once():
        found = chosen("--smoke", "--network.kind=mlp", *own)
        make_run(tmp_path / "rules", found.config, game=custom.find_game("pile.py:rules"))
        assert explain.main(own) == 2
        said = "pages have the rules of tic_tac_toe, connect_four, mnk, hex, and not of misere_pile"
        assert said in capfd.readouterr().err
        assert play.main(["--o", "network", *own]) == 0
    shown = capfd.readouterr().out
    assert "board [0 0 0 0 0]\nplayer 0\nover False" in shown and "board [1 0 0 0 0]" in shown


def test_an_animation_can_be_read_on_a_phone(trained, browser, tmp_path, tic_tac_toe, solution):
    path = tmp_path / "animation.svg"
    animation.draw_run(trained.run_dir, tic_tac_toe, solution).save(path)
    page = browser.new_page(viewport={"width": 390, "height": 800}, reduced_motion="reduce")
    page.set_content(f"<body style='margin: 16px'><main>{path.read_text()}</main>")
    assert "blunder in some, at least half, or all symmetric copies" in page.text_content("svg")
    js.check_fits(page, 390)
    outer = page.locator("svg").bounding_box()
    for box in (text.bounding_box() for text in page.locator("svg text").all()):
        assert outer["x"] <= box["x"] and box["x"] + box["width"] <= outer["x"] + outer["width"]
    page.close()


# The playground: its player plays as in Python, and it is used with keys.

# Plays games against random replies; returns the player's moves by position, and its lost games.
PLAY = """async ([packed, count]) => {
  const shipped = await azjax.openShipped(packed);
  const { game } = shipped;
  const random = azjax.generator(1);
  const [decisions, lost] = [{}, []];
  for (let i = 0; i < count; i++) {
    let position = game.init();
    while (!position.over) {
      const legal = game.legal(position);
      const isPlayer = position.player === 0;
      const any = legal[Math.floor(random() * legal.length)];
      const action = isPlayer ? shipped.choose(position).action : any;
      if (isPlayer) decisions[position.text] = action;
      position = game.step(position, action);
    }
    if (game.winner(position) === 1) lost.push(position.text);
  }
  return [decisions, lost];
}"""


def test_a_proved_player_chooses_the_moves_of_python_and_loses_no_game():
    player = azjax.load("connect_four")
    decisions, lost = js.evaluate(PLAY, [playground.pack_player(player), 150])
    states = js.states_at(player.game, decisions)
    act = jax.jit(player.agent.act)
    expected = act(player.agent.params, jax.random.key(0), states).action
    np.testing.assert_array_equal(list(decisions.values()), expected)
    assert len(decisions) > 200 and lost == []


def wait_for_turn(tab, stones):
    """Waits until the board has at least this number of stones, or the game is over."""
    tab.wait_for_function(
        """(stones) => {
          const { board, result } = document.querySelector(".az-match")?.dataset ?? {};
          return result || board?.replaceAll(".", "").length >= stones;
        }""",
        arg=stones,
    )


@pytest.mark.parametrize("width", [390, 1440])
def test_a_game_is_played_with_keys_and_its_search_is_watched(browser, width):
    """Connect Four against the proved player, and Hex against a search."""
    with js.opened(browser, playground.FOLDER / "index.html", width, 844) as tab:
        match = tab.locator(".az-match")
        wait_for_turn(tab, 1)
        assert match.locator("svg.az-board").first.bounding_box()["y"] < 300
        column = match.locator("[data-cell='3']")
        column.press("Enter")
        wait_for_turn(tab, 3)
        assert column.evaluate("e => e === document.activeElement")
        while not match.get_attribute("data-result"):
            board = match.get_attribute("data-board")
            match.locator(f"[data-cell='{board[:7].rindex('.')}']").click()
            wait_for_turn(tab, 44 - board.count("."))
        assert match.get_attribute("data-result") == "loss"
        js.press(tab, "game-2")
        tab.wait_for_selector(".az-match polygon")
        wait_for_turn(tab, 1)
        js.press(tab, "watch")
        explorer = tab.locator("[data-kind=explorer]")
        assert 0 <= tab.locator(".az-watch").bounding_box()["y"] < 400
        tab.wait_for_function("e => !e.ariaBusy", arg=explorer.element_handle())
        js.press(tab, "run-search")
        tab.wait_for_function("e => e.dataset.simulation === '64'", arg=explorer.element_handle())
        board = match.get_attribute("data-board")
        assert explorer.locator(f".az-start [data-board='{board}']").count() == 1
        match.locator(f"[data-cell='{board.index('.')}']").click()
        wait_for_turn(tab, 3)
        now = match.get_attribute("data-board")
        explorer.locator(f".az-start [data-board='{now}']").wait_for()
        assert tab.evaluate("document.documentElement.scrollWidth") == width
