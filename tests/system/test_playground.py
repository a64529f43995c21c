"""The playground in a browser: its players play as they do in Python, and it can be used."""

import dataclasses

import jax
import numpy as np
import pytest

import azjax
import playground
from azjax.players.overrides import oriented_overrides
from javascript import data_of, evaluate, opened, press, states_at

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
MOVES = """async ([packed, texts]) => {
  const shipped = await azjax.openShipped(packed);
  return texts.map((text) => shipped.choose(shipped.game.read(text)).action);
}"""


def test_players_choose_the_moves_of_python_and_a_proved_one_loses_no_game():
    player = azjax.load("connect_four")
    decisions, lost = evaluate(PLAY, [playground.pack_player(player), 150])
    states = states_at(player.game, decisions)
    act = jax.jit(player.agent.act)
    expected = act(player.agent.params, jax.random.key(0), states).action
    np.testing.assert_array_equal(list(decisions.values()), expected)
    assert len(decisions) > 200 and lost == []
    searching = azjax.load("hex:6")
    texts = ["." * 36, "X" + "." * 34 + "O", "XO" * 6 + "." * 24]
    states = states_at(searching.game, texts)
    act = jax.jit(searching.agent.act)
    expected = act(searching.agent.params, jax.random.key(0), states).action
    found = evaluate(MOVES, [playground.pack_player(searching), texts])
    np.testing.assert_array_equal(found, expected)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A page with a player whose table has its reply to 4, 4, and with counts of a proof."""
    player = azjax.load("connect_four")
    states = states_at(player.game, ["." * 31 + "O......X..."])
    table = oriented_overrides(player.game, player.parts.network.encoding, states, np.array([2]))
    packed = playground.pack_player(dataclasses.replace(player, overrides=table))
    proof = {"sha256": "0", "decisions": 12345, "won": 6789, "drawn": 321, "lost": 0}
    packed["about"] |= {"name": "connect_four", "sha256": "0", "proof": proof}
    path = tmp_path_factory.mktemp("playground") / "index.html"
    return playground.write_playground(path, [packed, playground.pack_shipped("hex:6")])


def match(tab):
    return tab.locator(".az-match")


def wait_for_turn(tab, stones):
    """Waits until the board has at least this number of stones, or the game is over."""
    tab.wait_for_function(
        """(stones) => {
          const { board, result } = document.querySelector(".az-match")?.dataset ?? {};
          return result || board?.replaceAll(".", "").length >= stones;
        }""",
        arg=stones,
    )


def test_a_game_is_played_with_keys_and_the_table_is_marked(browser, written):
    with opened(browser, written) as tab:
        wait_for_turn(tab, 1)
        about, moves = tab.locator("[data-about]"), tab.locator(".az-move-list li")
        assert "proved never to lose" in about.inner_text()
        assert "In 1 position" in match(tab).inner_text()
        match(tab).locator("[data-button=undo]").dispatch_event("click")  # Has no effect.
        for _ in range(2):
            press(match(tab), "thoughts")
        column = match(tab).locator("[data-cell='3']")
        column.press("Enter")
        wait_for_turn(tab, 3)
        assert moves.all_inner_texts() == ["X 4", "O 4", "X 3 \N{BLACK CIRCLE}"]
        assert match(tab).locator(".az-mark").count() == 1
        assert column.evaluate("e => e === document.activeElement")
        press(match(tab), "undo")
        wait_for_turn(tab, 1)
        assert moves.count() == 1 and match(tab).locator(".az-mark").count() == 0
        while not match(tab).get_attribute("data-result"):
            board = match(tab).get_attribute("data-board")
            match(tab).locator(f"[data-cell='{board[:7].rindex('.')}']").click()
            wait_for_turn(tab, 44 - board.count("."))
        assert match(tab).get_attribute("data-result") == "loss"
        strength = match(tab).locator("[data-setting=strength]")
        for value, words in (("32", "does not cover this game"), ("0", "proved never to lose")):
            strength.select_option(value)
            assert words in about.inner_text()
        press(match(tab), "play-X")
        assert "in this game, you do" in about.inner_text()
        assert match(tab).get_attribute("data-board") == "." * 42


def test_hex_is_played_against_a_search_that_can_be_watched(browser, written):
    with opened(browser, written) as tab:
        press(tab, "game-1")
        tab.wait_for_selector(".az-match polygon")
        wait_for_turn(tab, 1)
        match(tab).locator("[data-cell='14']").press("Enter")
        wait_for_turn(tab, 3)
        assert match(tab).get_attribute("data-board")[14] == "O"
        press(tab, "watch")
        explorer = tab.locator("[data-kind=explorer]")
        tab.wait_for_function("e => !e.ariaBusy", arg=explorer.element_handle())
        board = match(tab).get_attribute("data-board")
        assert explorer.locator(f".az-start [data-board='{board}']").count() == 1
        press(tab, "run-search")
        tab.wait_for_function("e => e.dataset.simulation === '64'", arg=explorer.element_handle())
        explorer.evaluate("e => { e.isFirst = true; }")
        for _ in range(2):  # Hides it and shows it again.
            press(tab, "watch")
        assert explorer.evaluate("e => e.isFirst") and explorer.is_visible()
        explorer.locator("[data-setting=num_simulations]").fill("70")
        explorer.locator("[data-setting=num_simulations]").press("Enter")
        press(tab, "run-search")
        tab.wait_for_function("e => e.dataset.simulation === '70'", arg=explorer.element_handle())
        match(tab).locator(f"[data-cell='{board.index('.')}']").click()
        wait_for_turn(tab, 5)
        now = match(tab).get_attribute("data-board")
        explorer.locator(f".az-start [data-board='{now}']").wait_for()
        assert explorer.get_attribute("data-t") == "0"


@pytest.mark.parametrize("width", [390, 800, 1440])
def test_everything_on_the_page_is_about_the_player_that_is_shown(browser, width):
    """The board comes first, and a search is scrolled into sight."""
    path = playground.FOLDER / "index.html"
    players = data_of(path)[0]["players"]
    with opened(browser, path, width, 844) as tab:
        root = tab.locator("[data-kind=playground]")
        for number, packed in enumerate(players):
            press(root, f"game-{number}")
            root.and_(tab.locator(f"[data-player='{packed['about']['name']}']")).wait_for()
            wait_for_turn(tab, 1)
            assert match(tab).locator("svg.az-board").first.bounding_box()["y"] < 300
            text = f"{tab.title()} {tab.locator('main').inner_text()}"
            proof = packed["about"]["proof"]
            assert text.count("Connect Four") == (2 if number == 0 else 1)  # A button has its name.
            assert ("never to lose" in text) == ("No opponent can beat it" in text) == bool(proof)
            for other in filter(None, (each["about"]["proof"] for each in players)):
                assert (f"{other['decisions']:,} decisions" in text) == (other is proof)
        press(tab, "watch")
        assert 0 <= root.locator(".az-watch").bounding_box()["y"] < 400
        assert tab.evaluate("document.documentElement.scrollWidth") == width


def test_replies_are_chosen_and_lines_end(browser, written):
    with opened(browser, written) as tab:
        root = tab.locator("[data-proof]")
        root.locator("[data-button=reply-3]").wait_for()
        assert root.locator("[data-claim]").inner_text().startswith("No opponent can")
        how = root.locator(".az-intro").inner_text()
        for count in ("12,345 decisions", "6,789 wins", "321 draws", "no losses"):
            assert count in how
        assert root.locator("[data-answer]").nth(3).inner_text() == "column 3 \N{BLACK CIRCLE}"
        while not root.get_attribute("data-result"):
            root.locator(".az-proof-replies [data-button]").first.click()
        assert root.get_attribute("data-result") == "won"
        assert "1 won, 0 drawn and none lost" in root.locator("[data-tally]").inner_text()
        press(root, "line-1")
        assert root.get_attribute("data-result") is None
        press(root, "random-lines")
        tab.wait_for_function("document.querySelector('[data-random]').dataset.random === '100'")


def test_without_a_proof_the_page_claims_none(browser, tmp_path):
    packed = playground.pack_shipped("connect_four")
    path = playground.write_playground(tmp_path / "page.html", [packed])
    host = path.with_name("host.html")  # In a frame, as on other pages.
    host.write_text(
        "<!doctype html><title>host</title>"
        f'<iframe sandbox="allow-scripts" src="{path.name}" width="600" height="600"></iframe>'
    )
    with opened(browser, host) as tab:
        frame = tab.frame_locator("iframe")
        frame.locator(".az-match [data-cell='3']").wait_for()
        assert "It was not proved unbeatable" in frame.locator("[data-about]").inner_text()
        assert frame.locator("[data-proof]").count() == 0
