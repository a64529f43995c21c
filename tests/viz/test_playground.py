"""The playground in a browser: its players play as they do in Python, and it can be used."""

import base64
import dataclasses
import functools
import json
import pathlib
import re

import jax
import numpy as np
import pytest

import azjax
from azjax import games
from azjax.games.base import init_batch
from azjax.networks import MLPConfig
from azjax.networks.rounding import quantize
from azjax.players.overrides import oriented_overrides
from azjax.runs.config import Config, make_parts
from azjax.runs.player import Player
from azjax.runs.pretrained import names
from azjax.viz import playground
from azjax.viz.networks import pack_weights
from azjax.viz.page import script, style
from javascript import OVERRIDDEN, SIZES_OF_PARTS

ROOT = pathlib.Path(__file__).parents[2]
PLAYERS = ["connect_four:5x4", "hex:4", "hex:6", "tic_tac_toe", "connect_four"]
POSITIONS = {"tic_tac_toe": 1000, "connect_four": 10_000}  # Otherwise 2,000.

# Evaluates positions, given by their texts, with the network of a packed player.
EVALUATE = """async ([packed, texts]) => {
  const { game, network } = await azjax.openShipped(packed);
  const bytes = (array) => btoa(String.fromCharCode(...new Uint8Array(array.buffer)));
  return texts.map((text) => {
    const { logits, value } = network.evaluate(game.read(text));
    return [bytes(logits), bytes(new Float32Array([value]))];
  });
}"""

# The same with a network that `pack_weights` packs for other pages.
EVALUATE_ON_OTHER_PAGES = """([data, texts]) => {
  const game = azjax.openGame(data);
  const [network] = azjax.openNetworks(data, game);
  return texts.map((text) => {
    const { logits, value } = network.evaluate(game.read(text));
    return [Array.from(logits), value];
  });
}"""

# Chooses a move in each position.
CHOOSE = """async ([packed, texts]) => {
  const shipped = await azjax.openShipped(packed);
  return texts.map((text) => {
    const { action, isOverride } = shipped.choose(shipped.game.read(text));
    return [action, isOverride];
  });
}"""

# The legal moves of positions, and the positions after given moves.
STEP = """([name, texts, actions]) => {
  const game = azjax.gameNamed(name);
  return texts.map((text, i) => {
    const before = game.read(text);
    const after = game.step(before, actions[i]);
    return [after.text, after.over, game.reward(after), game.legal(before)];
  });
}"""

# Plays games against a player who moves first. Every other opponent moves at random; the others win
# or prevent a win if they can. Returns the player's moves by position, and the results for it.
PLAY = """async ([packed, count]) => {
  const shipped = await azjax.openShipped(packed);
  const { game } = shipped;
  let seed = 1;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  const wins = (position, action, player) => {
    const board = position.board.with(game.cell(position.board, action), player ? -1 : 1);
    return game.at(board).line !== null;
  };
  const reply = (position, isGreedy) => {
    const legal = game.legal(position);
    const any = legal[Math.floor(random() * legal.length)];
    if (!isGreedy) return any;
    const win = legal.find((action) => wins(position, action, 1));
    return win ?? legal.find((action) => wins(position, action, 0)) ?? any;
  };
  const [decisions, results] = [{}, {won: 0, drawn: 0, lost: 0}];
  for (let i = 0; i < count; i++) {
    let position = game.init();
    while (!position.over) {
      const isPlayer = position.player === 0;
      const action = isPlayer ? shipped.choose(position).action : reply(position, i % 2 === 1);
      if (isPlayer) decisions[position.text] = action;
      position = game.step(position, action);
    }
    results[{null: "drawn", 0: "won", 1: "lost"}[game.winner(position)]] += 1;
  }
  return [decisions, results];
}"""

FOLDER = ROOT / "docs" / "playground"
PROOFS = playground.read_proofs(FOLDER / "proofs.json")


@functools.cache
def load(name):
    """A player that comes with azjax, or one of tic-tac-toe, whose symmetries include rotations."""
    if name != "tic_tac_toe":
        return azjax.load(name)
    config = Config(game=name, network=MLPConfig(hidden=(64, 32), head_hidden=32, symmetric=True))
    network, game = make_parts(config).network, games.make(name)
    variables = network.init(jax.random.key(5))
    made = quantize(game, network, variables, positions(name, 1000))
    parts = make_parts(config, game, made.network)
    return Player(parts, made.network.fold(made.variables), alone=True)


@functools.cache
def positions(name, count):
    """`count` different unfinished positions of random games, `[count, ...]`."""
    game = games.make(name)
    rng, size = np.random.default_rng(0), max(600, 4 * count // game.max_plies)
    move = jax.jit(jax.vmap(lambda state, action: game.step(state, action)[0]))
    legal, over = (jax.jit(jax.vmap(f)) for f in (game.legal_actions, game.is_over))
    states, found = init_batch(game, size), []
    for _ in range(game.max_plies):
        found.append(jax.tree.map(lambda leaf: np.asarray(leaf)[~np.asarray(over(states))], states))
        actions = np.where(legal(states), rng.random((size, game.num_actions)), -1).argmax(axis=1)
        states = move(states, actions)
    every = jax.tree.map(lambda *leaves: np.concatenate(leaves), *found)
    _, rows = np.unique(texts_of(every), return_index=True)
    chosen = rng.permutation(rows)[:count]
    assert len(chosen) == count
    return jax.tree.map(lambda leaf: leaf[chosen], every)


def texts_of(states):
    return ["".join(".XO"[cell] for cell in board) for board in np.asarray(states.board)]


def floats(texts):
    return np.stack([np.frombuffer(base64.b64decode(text), np.float32) for text in texts])


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("name", PLAYERS)
def test_outputs_have_equal_bits(module, name):
    player = load(name)
    states = positions(name, POSITIONS.get(name, 2000))
    texts = texts_of(states)
    logits, values = (np.asarray(output) for output in player.evaluate(states))
    found = module.evaluate(EVALUATE, [playground.pack_player(player), texts])
    found_logits, found_values = (floats(column) for column in zip(*found, strict=True))
    np.testing.assert_array_equal(found_logits.view(np.int32), logits.view(np.int32))
    np.testing.assert_array_equal(found_values[:, 0].view(np.int32), values.view(np.int32))


def test_other_pages_compute_the_same_outputs(module):
    name = "connect_four:5x4"
    player, states = load(name), positions(name, 200)
    data = {"game": name, "networks": [pack_weights(player)]}
    found = module.evaluate(EVALUATE_ON_OTHER_PAGES, [data, texts_of(states)])
    for column, expected in zip(zip(*found, strict=True), player.evaluate(states), strict=True):
        np.testing.assert_array_equal(column, expected)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("name", ["tic_tac_toe", "hex:4", "connect_four", "connect_four:5x4"])
def test_moves_are_those_of_the_agent_with_its_table(module, name):
    """A table of random moves replaces those of the network, also in mirrored positions."""
    player = load(name)
    game, states = player.game, positions(name, 1000 if name == "tic_tac_toe" else 2000)
    some = jax.tree.map(lambda leaf: leaf[:300], states)
    rng, legal = np.random.default_rng(1), np.asarray(jax.vmap(game.legal_actions)(some))
    moves = np.where(legal, rng.random(legal.shape), -1).argmax(axis=1)
    table = oriented_overrides(
        game, player.parts.network.encoding, *without_copies(game, some, moves)
    )
    player = dataclasses.replace(player, overrides=table)
    expected = jax.jit(player.agent.act)(player.agent.params, jax.random.key(0), states).action
    found = module.evaluate(CHOOSE, [playground.pack_player(player), texts_of(states)])
    actions, listed = zip(*found, strict=True)
    np.testing.assert_array_equal(actions, expected)
    assert sum(listed[:300]) > 250 and sum(not each for each in listed) > 0


def without_copies(game, states, moves):
    """Removes positions of which a symmetric copy comes earlier."""
    cells = game.symmetries.cells
    boards = np.asarray(states.board)
    keys = [min(bytes(board[order]) for order in cells) for board in boards + 1]
    _, rows = np.unique(keys, return_index=True)
    return jax.tree.map(lambda leaf: leaf[rows], states), moves[rows]


def test_the_rules_of_hex_are_those_of_python(module):
    name = "hex:4"
    game, states = games.make(name), positions(name, 2000)
    rng, legal = np.random.default_rng(2), np.asarray(jax.vmap(game.legal_actions)(states))
    actions = np.where(legal, rng.random(legal.shape), -1).argmax(axis=1)
    after, rewards = jax.vmap(game.step)(states, actions)
    found = module.evaluate(STEP, [name, texts_of(states), actions.tolist()])
    texts, over, reward, moves = zip(*found, strict=True)
    assert list(texts) == texts_of(after)
    np.testing.assert_array_equal(over, after.over)
    np.testing.assert_array_equal(reward, rewards)
    assert 100 < np.sum(after.over) < 1900
    assert list(moves) == [np.flatnonzero(mask).tolist() for mask in legal]


def test_a_player_that_searches_chooses_the_moves_of_python(module):
    player = azjax.load("hex:6")
    states = jax.tree.map(lambda leaf: leaf[:8], positions("hex:6", 2000))
    expected = jax.jit(player.agent.act)(player.agent.params, jax.random.key(0), states).action
    found = module.evaluate(CHOOSE, [playground.pack_player(player), texts_of(states)])
    np.testing.assert_array_equal([action for action, _ in found], expected)


# Games against a player.


def games_against(module, packed, count):
    """Plays in the browser; returns the decisions of the player, and the results for it."""
    return module.evaluate(PLAY, [packed, count])


def states_at(game, texts):
    boards = np.array([[".XO".index(cell) for cell in text] for text in texts])
    boards = np.where(boards == 2, -1, boards).astype(np.int8)
    empty = game.init()
    zeros = np.zeros(len(boards))
    return empty._replace(board=boards, player=zeros.astype(np.int8), over=zeros.astype(bool))


def check_games(module, player, count):
    """Compares every move of a player, X, with Python; returns its decisions and results."""
    decisions, results = games_against(module, playground.pack_player(player), count)
    texts = list(decisions)
    states = states_at(player.game, texts)
    expected = jax.jit(player.agent.act)(player.agent.params, jax.random.key(0), states).action
    np.testing.assert_array_equal([decisions[text] for text in texts], expected)
    assert sum(results.values()) == count
    return decisions, results


def with_overrides(player, decisions):
    """A player whose table has random moves in a third of some positions."""
    game, texts = player.game, list(decisions)[::3]
    states = states_at(game, texts)
    legal = np.asarray(jax.vmap(game.legal_actions)(states))
    moves = np.where(legal, np.random.default_rng(3).random(legal.shape), -1).argmax(axis=1)
    states, moves = without_copies(game, states, moves)
    table = oriented_overrides(game, player.parts.network.encoding, states, moves)
    return dataclasses.replace(player, overrides=table)


def test_300_games_have_the_moves_of_python_and_a_proved_player_loses_none(module):
    player = azjax.load("connect_four")
    decisions, results = check_games(module, player, 300)
    assert len(decisions) > 700
    assert results["lost"] == 0 and PROOFS["connect_four"]["lost"] == 0
    check_games(module, with_overrides(player, decisions), 300)


# The page.


def data_of(path):
    return json.loads(path.read_text().partition('id="azjax-data">')[2].partition("</script>")[0])


def test_the_page_of_the_guide_has_the_players_that_come_with_azjax():
    """If this fails, run `make playground`."""
    page = FOLDER / "index.html"
    (data,) = data_of(page)
    found = {packed["about"]["name"]: packed["about"] for packed in data["players"]}
    expected = [name for name in playground.SHOWN if name in names()]
    assert list(found) == expected
    for name, about in found.items():
        assert about["sha256"] == playground.sha256_of(name)
        assert about["proof"] == PROOFS.get(name)
    assert page.stat().st_size < playground.MOST_BYTES


@pytest.mark.parametrize("name", ["index.html", playground.TRAINING])
def test_the_pages_of_the_guide_have_the_current_program(name):
    """If this fails, run `make playground`."""
    text = (FOLDER / name).read_text()
    assert script() in text and style() in text


def test_a_proof_of_another_file_is_rejected(tmp_path):
    path = tmp_path / "proofs.json"
    proof = dict.fromkeys(("decisions", "won", "drawn", "lost"), 1)
    path.write_text(json.dumps({"connect_four": proof}))
    with pytest.raises(ValueError, match="needs sha256, decisions"):
        playground.read_proofs(path)
    path.write_text(json.dumps({"connect_four": proof | {"sha256": "0"}}))
    with pytest.raises(ValueError, match="belongs to another file: repeat it"):
        playground.read_proofs(path)
    sha256 = playground.sha256_of("connect_four")
    path.write_text(json.dumps({"connect_four": proof | {"sha256": sha256}}))
    with pytest.raises(ValueError, match="says that connect_four loses: repair"):
        playground.read_proofs(path)


def test_a_page_that_is_too_large_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr(playground, "MOST_BYTES", 1000)
    path, player = tmp_path / "page.html", azjax.load("connect_four")
    with pytest.raises(ValueError, match="more than 1,000: leave a player out"):
        playground.write_playground(path, player, [])
    assert not path.exists()


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
    return playground.write_playground(path, player, [packed, playground.pack_shipped("hex:6")])


@pytest.fixture
def open_page(browser, errors):
    """`(path, **options) -> tab`, from disk; nothing may be requested or reported."""
    tabs, found, asked = [], [], []

    def open_it(path, width=1280, **options):
        options = {"reduced_motion": "reduce"} | options
        tab = browser.new_page(viewport={"width": width, "height": 844}, **options)
        tabs.append(tab)
        found.append(errors(tab))
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto(path.as_uri())
        return tab

    yield open_it
    assert [line for lines in found for line in lines] == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    for tab in tabs:
        tab.close()


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


def press(root, name):
    root.locator(f"[data-button={name}]").first.click()


def test_a_game_is_played_with_keys_and_the_table_is_marked(open_page, written):
    tab = open_page(written)
    wait_for_turn(tab, 1)
    about = tab.locator("[data-about]").inner_text()
    assert "proved never to lose" in about and "In 1 position (symmetric" in about
    column = match(tab).locator("[data-cell='3']")
    column.focus()
    tab.keyboard.press("Enter")
    wait_for_turn(tab, 3)
    moves = tab.locator(".az-move-list li")
    assert moves.all_inner_texts() == ["X 4", "O 4", "X 3 \N{BLACK CIRCLE}"]
    assert match(tab).locator(".az-mark").count() == 1
    assert match(tab).locator("[data-cell='3']").evaluate("e => e === document.activeElement")
    press(match(tab), "undo")
    wait_for_turn(tab, 1)
    assert moves.count() == 1 and match(tab).locator(".az-mark").count() == 0
    for _ in range(21):
        if match(tab).get_attribute("data-result"):
            break
        board = match(tab).get_attribute("data-board")
        match(tab).locator(f"[data-cell='{board[:7].rindex('.')}']").click()
        wait_for_turn(tab, 44 - board.count("."))
    assert match(tab).get_attribute("data-result") == "loss"
    match(tab).locator("[data-setting=strength]").select_option("32")
    assert "does not cover this game" in tab.locator("[data-about]").inner_text()
    match(tab).locator("[data-setting=strength]").select_option("0")
    assert "proved never to lose" in tab.locator("[data-about]").inner_text()
    press(match(tab), "play-X")
    assert "when you move first, you may win" in tab.locator("[data-about]").inner_text()
    assert match(tab).get_attribute("data-board") == "." * 42


def test_hex_is_played_against_a_search_that_can_be_watched(open_page, written):
    tab = open_page(written)
    press(tab, "game-1")
    tab.wait_for_selector(".az-match polygon")
    wait_for_turn(tab, 1)
    match(tab).locator("[data-cell='14']").press("Enter")
    wait_for_turn(tab, 3)
    assert match(tab).get_attribute("data-board")[14] == "O"
    press(tab, "watch")
    explorer = tab.locator("[data-kind=explorer]")
    tab.wait_for_function("e => !e.ariaBusy", arg=explorer.element_handle())
    board = explorer.locator(".az-start [data-board]").get_attribute("data-board")
    assert board == match(tab).get_attribute("data-board")
    press(tab, "run-search")
    tab.wait_for_function("e => e.dataset.simulation === '64'", arg=explorer.element_handle())
    empty = board.index(".")
    match(tab).locator(f"[data-cell='{empty}']").click()
    wait_for_turn(tab, 5)
    now = match(tab).get_attribute("data-board")
    explorer.locator(f".az-start [data-board='{now}']").wait_for()
    assert explorer.get_attribute("data-t") == "0"


def test_replies_are_chosen_and_lines_end(open_page, written):
    tab = open_page(written)
    root = tab.locator("[data-kind=unbeaten]")
    root.locator("[data-button=choose-3]").wait_for()
    assert root.locator("[data-claim]").inner_text().startswith("No opponent can")
    how = root.locator(".az-intro").inner_text()
    for count in ("12,345 decisions", "6,789 wins", "321 draws", "no losses"):
        assert count in how
    assert "in a win for this player or in a draw" in root.inner_text()
    assert root.locator("[data-answer]").nth(3).inner_text() == "column 3 \N{BLACK CIRCLE}"
    while not root.get_attribute("data-result"):
        root.locator(".az-proof-replies [data-button]").first.click()
    assert root.get_attribute("data-result") == "won"
    assert "1 won, 0 drawn and none lost" in root.locator("[data-tally]").inner_text()
    press(root, "line-1")
    assert root.get_attribute("data-result") is None
    press(root, "random-lines")
    tab.wait_for_function("document.querySelector('[data-random]').dataset.random === '100'")


@pytest.mark.parametrize("width", [1920, 2560])
def test_a_wide_screen_shows_both_boards_side_by_side(open_page, written, width):
    tab = open_page(written, width)
    wait_for_turn(tab, 1)
    query = ".az-play-board svg.az-board", "[data-kind=unbeaten] .az-columns > svg.az-board"
    mine, its = (tab.locator(name).bounding_box() for name in query)
    assert its["width"] == mine["width"] >= 490 and its["x"] > mine["x"] + 1.5 * mine["width"]
    assert tab.locator(".az-hero g.az-disc").count() > 10
    assert match(tab).locator("g.az-disc.az-x").count() == 1
    press(tab, "watch")
    tree = tab.locator(".az-watch .az-tree").bounding_box()  # A search has the whole width.
    assert tree["width"] > 0.5 * width
    assert tab.evaluate("document.documentElement.scrollWidth") == width


def test_the_first_sentences_need_no_other_words(written):
    [text] = re.findall(r"<p>(It is a neural network .*?)</p>", written.read_text())
    _, second, third, *_ = text.split(". ")
    assert second == "When it moves first, it never loses: a program played every possible reply"
    assert re.fullmatch(r"In [\d,]+ positions, it plays a stored move instead of its own", third)


def test_without_a_proof_the_page_claims_none(open_page, tmp_path):
    packed = playground.pack_shipped("connect_four")
    player = azjax.load("connect_four")
    tab = open_page(playground.write_playground(tmp_path / "page.html", player, [packed]))
    wait_for_turn(tab, 1)
    assert "It was not proved unbeatable: you may win." in tab.locator("[data-about]").inner_text()
    tab.locator("[data-claim=open]").wait_for()
    assert tab.locator("[data-claim=proved]").count() == 0
    assert tab.locator(".az-picker").count() == 0  # There is only one game.


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    ("width", "scheme"), [(390, "dark"), (1280, "light"), (1440, "dark"), (390, "light")]
)
def test_the_page_is_legible_and_accessible(open_page, written, barriers, width, scheme):
    tab = open_page(written, width, color_scheme=scheme)
    wait_for_turn(tab, 1)
    if width == 390:
        press(tab, "game-1")
        tab.wait_for_selector(".az-match polygon")
    press(tab, "watch")
    tab.wait_for_function("!document.querySelector('[data-kind=explorer]').ariaBusy")
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    seen = tab.locator("body").evaluate(SIZES_OF_PARTS)
    assert min(seen["fonts"])[0] >= 9, min(seen["fonts"])
    assert barriers(tab) == []
    if width == 1280:
        assert tab.evaluate(OVERRIDDEN) == []


def test_the_picture_moves_unless_motion_is_reduced(open_page, written):
    moving = "document.querySelector('.az-hero svg').getAnimations({subtree: true}).length"
    tab = open_page(written, reduced_motion="no-preference")
    assert tab.evaluate(moving) > 10
    running = moving.replace("length", "filter((each) => each.playState === 'running').length")
    assert tab.evaluate(running) > 10
    tab.get_by_label("pause the animation").check()
    assert tab.evaluate(running) == 0
    assert open_page(written).evaluate(moving) == 0


@pytest.mark.slow
def test_the_page_works_in_firefox(firefox, written):
    firefox.goto(written.as_uri())
    firefox.wait_for("() => document.querySelector('.az-match')?.dataset.board?.includes('X')")
    firefox.click(".az-match [data-cell='3']")
    moves = "() => document.querySelectorAll('.az-move-list li').length === 3"
    firefox.wait_for(moves)
    firefox.wait_for("() => document.querySelector('[data-answer]') !== null")
    assert firefox.errors == []


def test_the_page_works_in_a_frame(open_page, written):
    host = written.with_name("host.html")
    host.write_text(
        "<!doctype html><title>host</title>"
        f'<iframe sandbox="allow-scripts" src="{written.name}" width="600" height="600"></iframe>'
    )
    frame = open_page(host).frame_locator("iframe")
    frame.locator(".az-match [data-cell='3']").wait_for()
    frame.locator(".az-hero a").click()
    frame.locator("[data-button=choose-3]").click()
    frame.locator("[data-button=line-3]").wait_for()
