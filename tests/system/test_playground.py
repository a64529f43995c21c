"""The playground: its player plays as in Python, and it can be used in a browser."""

import jax
import numpy as np
import pytest

import azjax
import playground
from javascript import evaluate, opened, press, states_at

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
    decisions, lost = evaluate(PLAY, [playground.pack_player(player), 150])
    states = states_at(player.game, decisions)
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
    with opened(browser, playground.FOLDER / "index.html", width, 844) as tab:
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
        press(tab, "game-2")
        tab.wait_for_selector(".az-match polygon")
        wait_for_turn(tab, 1)
        press(tab, "watch")
        explorer = tab.locator("[data-kind=explorer]")
        assert 0 <= tab.locator(".az-watch").bounding_box()["y"] < 400
        tab.wait_for_function("e => !e.ariaBusy", arg=explorer.element_handle())
        press(tab, "run-search")
        tab.wait_for_function("e => e.dataset.simulation === '64'", arg=explorer.element_handle())
        board = match.get_attribute("data-board")
        assert explorer.locator(f".az-start [data-board='{board}']").count() == 1
        match.locator(f"[data-cell='{board.index('.')}']").click()
        wait_for_turn(tab, 3)
        now = match.get_attribute("data-board")
        explorer.locator(f".az-start [data-board='{now}']").wait_for()
        assert tab.evaluate("document.documentElement.scrollWidth") == width
