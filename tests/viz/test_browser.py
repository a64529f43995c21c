"""The exported page in a browser, from disk and offline: every control."""

import itertools
import re

import jax
import numpy as np
import pytest

import azjax
from azjax import runs
from azjax.cli import explain, train
from azjax.games.tic_tac_toe import LINES, board_text, from_board
from azjax.search import PUCT, make_search
from azjax.search.evaluators import uniform_evaluator
from azjax.viz import atlas as atlases
from azjax.viz.positions import true_values
from azjax.viz.trace import trace
from javascript import OVERRIDDEN, SIZES_OF_PARTS

SIMULATIONS = 12
CELLS = [f"{column}{row}" for row in (1, 2, 3) for column in "abc"]  # By action.

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    """A run of an MLP, whose first searches have small trees that are drawn completely."""
    run_dir = tmp_path_factory.mktemp("explained") / "run"
    train.main(["--smoke", "--network.kind=mlp", "--no-report", "--run-dir", str(run_dir)])
    return run_dir


@pytest.fixture(scope="module")
def exported(run_dir):
    """The page of a run."""
    path = run_dir.parent / "explain.html"
    assert explain.main(["--run-dir", str(run_dir), "--out", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def context(browser):
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_offline(True)
    context.set_default_timeout(20_000)
    yield context
    context.close()


@pytest.fixture
def page(context, exported, errors):
    """The page, newly opened; it must not load anything or report errors."""
    page = context.new_page()
    found, asked = errors(page), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(exported.as_uri())
    yield page
    assert found == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    page.close()


def component(page, kind):
    return page.locator(f".az-component[data-kind={kind}]")


@pytest.fixture
def explorer(page):
    """The explorer with a search by PUCT, whose history can be traced."""
    root = component(page, "explorer")
    choose(root, "algorithm", "puct")
    enter(root, "num_simulations", SIMULATIONS)
    return root


def choose(root, setting, value):
    root.locator(f"[data-setting={setting}]").select_option(str(value))


def enter(root, setting, value):
    root.locator(f"[data-setting={setting}]").fill(str(value))
    root.locator(f"[data-setting={setting}]").press("Enter")


def settings_on_screen(root):
    return root.locator("[data-setting]").evaluate_all(
        "fields => Object.fromEntries(fields.map((f) => [f.dataset.setting, f.value]))"
    )


def press(root, name):
    root.locator(f"[data-button={name}]").click()


def moment(root):
    data = root.evaluate("e => ({...e.dataset})")
    return int(data["t"]), int(data["simulation"]), data["phase"]


# The explorer.


def table_on_screen(root):
    """`{action: {"N": text, "Q": …}}` of the node that is selected."""
    cells = root.locator("[data-k]").evaluate_all(
        "cells => cells.map(c => [c.dataset.action, c.dataset.k, c.textContent])"
    )
    table = {}
    for action, name, text in cells:
        table.setdefault(int(action), {})[name] = text
    return table


def number(text):
    return float(text.replace("\N{MINUS SIGN}", "-"))


@pytest.fixture(scope="module")
def traced(run_dir):
    """The same search in Python, with its trace."""
    player = azjax.load(str(run_dir))
    config = PUCT(num_simulations=SIMULATIONS, dirichlet_fraction=0.0)
    search = jax.jit(make_search(config, player.game, _evaluator(player)))
    states = jax.tree.map(lambda leaf: leaf[None], player.game.init())
    result = search(player.params, jax.random.split(jax.random.key(0), 1), states)
    return trace(config, result.tree)


def _evaluator(player):
    return lambda params, key, states: player.evaluate(states)


def check_table(root, traced, node, k):
    """Checks that the table shows the numbers of the trace."""
    terms, visits = traced.history.terms, traced.history.children_visits
    table = table_on_screen(root)
    assert sorted(table) == np.flatnonzero(np.isfinite(terms.score[k, node])).tolist()
    for action, row in table.items():
        assert int(row["N"]) == visits[k, node, action]
        shown = {"Q": terms.q, "U": terms.bonus, "S": terms.score}
        for name, expected in shown.items():
            assert number(row[name]) == pytest.approx(expected[k, node, action], abs=6e-5), name
        assert number(row["P"]) == pytest.approx(terms.prior[k, node, action], abs=6e-4)


def test_ten_simulations_forward_and_back_show_the_numbers_of_the_trace(explorer, traced):
    def check():
        t, k, phase = moment(explorer)
        selected = int(explorer.get_attribute("data-selected"))
        node = int(traced.nodes[selected])
        over = bool(traced.states.over[node])
        known = k if phase == "backup" else k - 1
        if over or phase == "start" or traced.history.node_visits[known, node] == 0:
            return t
        check_table(explorer, traced, node, known)
        if phase == "selection":
            simulation = traced.simulations[k - 1]
            assert node == simulation.path[-1]  # It follows the search.
            chosen = explorer.locator("tr.az-best [data-k=S]").get_attribute("data-action")
            assert int(chosen) == simulation.actions[-1]
        return t

    seen = {}
    for t in range(1, 31):
        press(explorer, "next")
        assert check() == t
        seen[t] = explorer.inner_text()
    for t in range(29, 0, -1):
        press(explorer, "previous")
        assert check() == t
        assert explorer.inner_text() == seen[t]
    press(explorer, "previous")
    assert moment(explorer) == (0, 0, "start")
    assert explorer.locator("[data-button=previous]").is_disabled() or (
        explorer.locator("[data-button=previous]").get_attribute("aria-disabled") == "true"
    )


def test_the_tree_shows_the_visits_of_the_trace(explorer, traced):
    for k in range(1, SIMULATIONS + 1):
        press(explorer, "run-1")
        assert moment(explorer) == (3 * k, k, "backup")
        shown = explorer.locator("[data-node]").evaluate_all(
            "nodes => nodes.map(n => [n.dataset.node, n.dataset.n, n.dataset.q])"
        )
        assert len(shown) == (traced.history.node_visits[k, traced.nodes] > 0).sum()
        for node, visits, q in shown:
            i = int(traced.nodes[int(node)])
            if i == 0:
                assert int(visits) == traced.history.node_visits[k, 0]
                continue
            edge = (k, traced.parents[i], traced.actions[i])
            assert int(visits) == traced.history.children_visits[edge]
            assert number(q) == pytest.approx(traced.history.terms.q[edge], abs=6e-5)


def test_running_resetting_and_the_end(explorer):
    press(explorer, "run-5")
    assert moment(explorer) == (15, 5, "backup")
    explorer.get_by_label("how many simulations to run").fill("4")
    press(explorer, "run-n")
    assert moment(explorer)[1] == 9
    press(explorer, "next")
    assert moment(explorer) == (28, 10, "selection")
    press(explorer, "run-1")  # It finishes the current one.
    assert moment(explorer) == (30, 10, "backup")
    explorer.get_by_label("how many simulations to run").fill("400")
    press(explorer, "run-n")
    assert moment(explorer) == (3 * SIMULATIONS, SIMULATIONS, "backup")
    assert f"The search ends after {SIMULATIONS} simulations; the setting" in explorer.inner_text()
    assert "has the most visits" in explorer.locator(".az-status").inner_text()
    press(explorer, "reset")
    assert moment(explorer) == (0, 0, "start")


def test_the_status_describes_the_moment_with_its_numbers(explorer, traced):
    status = explorer.locator(".az-status")
    first = traced.simulations[0]
    press(explorer, "next")
    assert "Simulation 1" in status.inner_text() and f"chose {CELLS[first.actions[0]]}" in (
        status.inner_text()
    )
    press(explorer, "next")
    value = f"{first.value:+.2f}".replace("-", "\N{MINUS SIGN}")
    assert value in status.inner_text() and "O" in status.inner_text()
    press(explorer, "next")
    opposite = f"{-first.value:+.2f}".replace("-", "\N{MINUS SIGN}")
    assert opposite in status.inner_text()


def test_keys_do_what_the_buttons_do(page, explorer):
    explorer.locator("[data-button=next]").focus()
    for key, t in [("ArrowRight", 1), ("n", 2), ("ArrowLeft", 1), ("p", 0), ("1", 3), ("5", 18)]:
        page.keyboard.press(key)
        assert moment(explorer)[0] == t, key
    page.keyboard.press("r")
    assert moment(explorer)[0] == 0
    amount = explorer.get_by_label("how many simulations to run")
    amount.focus()
    page.keyboard.press("1")  # Typing a number is not stepping.
    assert moment(explorer)[0] == 0
    amount.fill("2")
    explorer.locator("[data-button=next]").focus()
    page.keyboard.press("Shift+N")
    assert moment(explorer)[1] == 2


def test_nodes_are_selected_by_click_and_by_key(page, explorer, traced):
    press(explorer, "run-5")
    child = explorer.locator("[data-node='1']")
    child.click()
    assert explorer.get_attribute("data-selected") == "1"
    check_table(explorer, traced, int(traced.nodes[1]), 5)
    explorer.locator("[data-node='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    selected = int(explorer.get_attribute("data-selected"))
    assert traced.parents[traced.nodes[selected]] == 0
    explorer.get_by_label("follow the search").check()
    assert explorer.get_attribute("data-selected") == "0"


def test_zoom_pan_and_fit(page, explorer):
    press(explorer, "run-5")
    picture = explorer.locator("svg:has([data-node])").first

    def view():
        boxes = explorer.locator("[data-node='0']").bounding_box()
        return boxes["x"], boxes["y"], boxes["width"]

    start = view()
    press(explorer, "zoom-in")
    assert view()[2] > start[2]
    press(explorer, "zoom-out")
    press(explorer, "zoom-out")
    assert view()[2] < start[2]
    press(explorer, "fit")
    assert view() == pytest.approx(start, abs=2)
    picture.hover(position={"x": 12, "y": 60})  # It also scrolls there.
    start, box = view(), picture.bounding_box()
    page.mouse.down()
    page.mouse.move(box["x"] + 72, box["y"] + 90, steps=4)
    page.mouse.up()
    moved = view()
    assert moved[0] - start[0] == pytest.approx(60, abs=3)
    assert moved[1] - start[1] == pytest.approx(30, abs=3)


def test_the_explorer_starts_with_puct_and_the_settings_of_the_run(page, run_dir):
    root, config = component(page, "explorer"), runs.read_config(run_dir)
    shown = settings_on_screen(root)
    assert shown["algorithm"] == "puct"
    assert shown["num_simulations"] == str(config.search.num_simulations)
    assert shown["evaluator"] == "network" and shown["dirichlet_fraction"] == "0"
    first = settings_on_screen(component(page, "compare").locator(".az-compare-panel").first)
    assert first["algorithm"] == config.search.algorithm and first["gumbel_scale"] == "0"
    newest = azjax.load(str(run_dir)).iteration
    assert shown["iteration"] == str(newest) and newest > 0
    listed = root.locator("[data-setting=iteration] option").all_inner_texts()
    assert listed == [str(i) for i in range(newest + 1)]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        *(("evaluator", name) for name in ("uniform", "rollout", "exact")),
        *(("algorithm", "gumbel"), ("algorithm", "uct"), ("iteration", "0")),
        *(("first_play_urgency", "loss"), ("c_puct", "5"), ("dirichlet_fraction", "0.5")),
        *(("num_simulations", "1000"), ("start", "2")),
    ],
)
def test_a_setting_changes_and_no_other_does(explorer, setting, value):
    def board():
        return explorer.locator(".az-start svg").get_attribute("data-board")

    enter(explorer, "seed", 7)
    press(explorer, "run-5")
    before, start, tree = settings_on_screen(explorer), board(), table_on_screen(explorer)
    field = explorer.locator(f"[data-setting={setting}]")
    is_list = field.evaluate("field => field.tagName") == "SELECT"
    choose(explorer, setting, value) if is_list else enter(explorer, setting, value)
    after = settings_on_screen(explorer)
    shared = before.keys() & after.keys() - {setting}
    assert {name: after[name] for name in shared} == {name: before[name] for name in shared}
    assert after[setting] == value and (board() == start) == (setting != "start")
    if setting == "num_simulations":
        assert moment(explorer)[1] == 5 and table_on_screen(explorer) == tree
    else:
        assert moment(explorer)[0] == 0
        press(explorer, "run-5")
        assert table_on_screen(explorer) != tree
    press(explorer, "reset")
    assert settings_on_screen(explorer) == after


def test_an_invalid_number_is_rejected_with_a_sentence(explorer):
    press(explorer, "run-1")
    for setting, value, sentence in (
        ("c_puct", "-1", "c_puct is -1: use 0 to 100."),
        ("num_simulations", "1001", "simulations is 1001: use a whole number from 1 to 1000."),
        ("seed", "0.5", "seed is 0.5: use a whole number from 0 to 2147483647."),
        ("dirichlet_fraction", "", "root noise is not a number: use 0 to 1."),
    ):
        before = settings_on_screen(explorer)
        enter(explorer, setting, value)
        assert explorer.locator(".az-alert").inner_text() == sentence
        assert settings_on_screen(explorer) == before and moment(explorer)[1] == 1


def test_any_position_is_set_by_playing_there(explorer):
    def board():
        return explorer.locator(".az-start svg").get_attribute("data-board")

    note = explorer.locator("[data-start-note]")
    cells = explorer.locator(".az-start [role=button]")
    for cell, text in ((0, "X........"), (4, "X...O...."), (1, "XX..O...."), (2, "XXO.O....")):
        cells.nth(cell).click()
        assert board() == text and moment(explorer)[0] == 0
        assert sorted(table_on_screen(explorer)) == [i for i in range(9) if text[i] == "."]
    cells.nth(0).click()  # It is taken.
    assert board() == "XXO.O...."
    for cell in (8, 6):
        cells.nth(cell).click()
    assert "O wins: there is nothing to search" in note.inner_text()
    assert sorted(table_on_screen(explorer)) == [3, 5, 6, 7]  # Of the position before.
    press(explorer, "undo")
    assert board() == "XXO.O...X" and "O to move" in note.inner_text()
    press(explorer, "empty")
    assert board() == "." * 9 and len(table_on_screen(explorer)) == 9
    press(explorer, "undo")
    assert board() == "XXO.O...X"


# The encoding viewer.


def test_boards_are_valid_exactly_if_they_are_valid_in_python(module):
    """All 19,683 boards: the same ones are rejected, with the same words."""
    boards = np.array(list(itertools.product((0, 1, -1), repeat=9)))
    reasons = module.evaluate(
        "([boards, lines]) => boards.map((cells) => azjax.whyImpossible(cells, lines))",
        [boards.tolist(), LINES.tolist()],
    )
    assert len(reasons) == 3**9 and sum(reason is None for reason in reasons) == 5478
    for board, reason in zip(boards, reasons, strict=True):
        try:
            from_board(board)
        except ValueError as error:
            assert reason == str(error), board
        else:
            assert reason is None, board


def test_the_planes_equal_those_of_the_game(module, tic_tac_toe, solution):
    boards = solution.states.board.tolist()
    for encoding, name in (("absolute", "three"), ("relative", "two")):
        shown = module.evaluate(
            "([boards, name]) => boards.map((cells) => azjax.planesOf(cells)[name])",
            [boards, name],
        )
        observe = jax.vmap(lambda state: tic_tac_toe.observe(state, encoding))
        planes = np.asarray(observe(solution.states)).reshape(len(boards), 9, -1)
        assert np.array_equal(np.swapaxes(shown, 1, 2), planes.astype(int))


@pytest.fixture(scope="module")
def answers(run_dir, solution):
    """The network's outputs in every position: `(policy [S, 9], value [S])`."""
    logits, values = azjax.load(str(run_dir)).evaluate(solution.states)
    policy = jax.nn.softmax(np.where(solution.legal, logits, -np.inf))
    return np.where(solution.over[:, None], 0.0, policy), np.asarray(values)


def row_of(solution, board):
    return int(np.flatnonzero((solution.states.board == board).all(axis=1))[0])


def cells_of(root, board=0):
    return root.locator("svg").nth(board).locator("[role=button]")


def test_the_viewer_shows_state_planes_and_the_networks_answer(page, answers, solution):
    viewer = component(page, "encoding")
    cells = cells_of(viewer)
    for cell in (4, 0):
        cells.nth(cell).click()
    assert "[\N{MINUS SIGN}1, 0, 0, 0, 1, 0, 0, 0, 0]" in viewer.inner_text() or (
        "[-1, 0, 0, 0, 1, 0, 0, 0, 0]" in viewer.inner_text()
    )
    policy, values = answers
    row = row_of(solution, [-1, 0, 0, 0, 1, 0, 0, 0, 0])
    value = f"{values[row]:+.2f}".replace("-", "\N{MINUS SIGN}")
    assert value in viewer.inner_text()
    for share in policy[row][policy[row] > 0.01]:
        assert re.search(rf"{share * 100:.0f}\s?%|{share * 100:.1f}\s?%", viewer.inner_text())
    cells.nth(4).click()  # O alone.
    assert "0 X and 1 O cannot occur" in viewer.inner_text()
    viewer.locator("[data-button=clear]").click()
    assert "cannot occur" not in viewer.inner_text()


# A game against the network.


@pytest.mark.parametrize("seat", ["X", "O"])
def test_a_whole_game_is_played_against_the_network(page, answers, solution, seat):
    game = component(page, "play")
    policy, _ = answers
    press(game, f"play-{seat}")
    board, me = np.zeros(9, int), 1 if seat == "X" else -1
    for _ in range(9):
        state = from_board(board)
        if state.over:
            break
        mover = 1 if state.player == 0 else -1
        if mover == me:
            cell = int(np.flatnonzero(solution.optimal[row_of(solution, board)])[-1])
            cells_of(game).nth(cell).click()
        else:
            cell = int(policy[row_of(solution, board)].argmax())
        board[cell] = mover
        page.wait_for_function(
            "([e, cell, mark]) => e.dataset.board[cell] === mark",
            arg=[game.element_handle(), cell, "XO"[mover == -1]],
        )
    over = from_board(board)
    assert over.over
    stones = board[LINES]
    won = ((stones == me).all(axis=1)).any()
    assert game.get_attribute("data-result") == ("win" if won else "draw")
    assert game.get_attribute("data-board") == "".join(".XO"[mark] for mark in board)
    assert game.locator(f"[data-tally={'won' if won else 'drawn'}]").inner_text() == "1"
    press(game, "undo")
    assert game.get_attribute("data-result") is None
    press(game, "new")
    assert game.get_attribute("data-you") == seat


def test_the_policy_and_perfect_play_are_shown_on_demand(page, answers, solution):
    game = component(page, "play")
    policy, _ = answers
    best = policy[0].max()
    press(game, "thoughts")
    assert re.search(rf"{best * 100:.0f}\s?%", game.inner_text())
    press(game, "truth")
    assert game.locator("[data-truth]").get_attribute("data-truth") == "0"
    assert "With perfect play from here the game is a draw" in game.inner_text()
    cells_of(game).nth(4).click()
    expected = "".join("X" if cell == 4 else "." for cell in range(9))
    assert game.get_attribute("data-board").replace("O", ".") == expected


# The map of the game.


def test_every_dot_of_every_iteration_shows_its_snapshot(page, run_dir, solution):
    picture = component(page, "atlas")
    iterations, snapshots = atlases.load_snapshots(run_dir)
    slider = picture.get_by_label("iteration")
    dots = picture.locator("[data-index]")
    assert dots.count() == 765
    for place, iteration in enumerate(iterations):
        slider.fill(str(place))
        blunders = int(snapshots.blunders[place].sum())
        assert f"Iteration {iteration}: {blunders:,} blunder" in picture.inner_text()
        looks = dots.evaluate_all("dots => dots.map(d => d.getAttribute('class'))")
        shown = ["az-atlas-ok" not in look and "az-atlas-over" not in look for look in looks]
        assert np.array_equal(shown, snapshots.blunders[place] > 0)


def test_a_dot_shows_its_board_the_networks_answer_and_the_truth(page, run_dir, solution):
    picture = component(page, "atlas")
    _, snapshots = atlases.load_snapshots(run_dir)
    places = atlases.make_atlas(azjax.make("tic_tac_toe"), solution)
    index = int(np.flatnonzero(snapshots.blunders[-1])[0])
    row = places.representatives[index]
    picture.locator(f"[data-index='{index}']").hover(force=True)
    text = picture.inner_text()
    action = snapshots.action[-1, index]
    assert f"{places.ply[index]} move" in text and f"{CELLS[action]} (" in text
    assert {1: "a win", 0: "a draw", -1: "a loss"}[int(solution.values[row])] in text
    assert f"blunders in {snapshots.blunders[-1, index]}" in text
    verdict = "optimal" if solution.optimal[row, action] else "a blunder"
    assert f"): {verdict}" in text
    board = picture.locator("svg.az-board").first
    assert board.locator(".az-x").count() == (solution.states.board[row] == 1).sum()


def test_the_picture_plays_and_is_walked_by_keys(page, run_dir):
    picture = component(page, "atlas")
    iterations, _ = atlases.load_snapshots(run_dir)
    picture.get_by_role("button", name="Play").click()
    assert f"Iteration {iterations[0]}:" in picture.inner_text()
    picture.get_by_text(f"Iteration {iterations[-1]}:").wait_for()
    picture.get_by_role("button", name="Play").wait_for()  # It stops there.
    picture.locator(".az-atlas-picture").focus()
    page.keyboard.press("ArrowDown")
    assert "1 move, O to move" in picture.inner_text()
    picture.get_by_label("color by").select_option("error")
    assert "mean |value" in picture.inner_text()


def test_the_theme_is_that_of_the_system_until_another_is_chosen(page):
    def paper():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    light = paper()
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    dark = paper()
    assert dark != light
    page.get_by_label("theme").select_option("light")
    assert paper() == light
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.get_by_label("theme").select_option("dark")
    assert paper() == dark


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_sticks_out_of_the_page_or_is_too_small(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") == width
    sizes = page.locator("main").evaluate(SIZES_OF_PARTS)
    assert [text for text in sizes["fonts"] if text[0] < 9] == []
    if width == 390:
        assert [control for control in sizes["controls"] if control[1] < 43.9] == []


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
def test_the_page_is_accessible(page, barriers, scheme, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    press(component(page, "tour"), "option-1")
    press(component(page, "training"), "blunder")
    press(component(page, "play"), "thoughts")
    press(component(page, "play"), "truth")
    assert barriers(page) == []


@pytest.mark.parametrize("width", [390, 1280])
def test_every_declaration_of_the_style_sheets_has_an_effect(page, explorer, width):
    page.set_viewport_size({"width": width, "height": 800})
    press(component(page, "tour"), "option-1")
    choose(explorer, "evaluator", "rollout")
    press(explorer, "run-5")  # To a backup, whose values are shown in the tree.
    press(component(page, "loop"), "step-loss")
    assert page.locator(".az-tour-wrong, .az-gain, .az-atlas-play, .az-loop-terms").count() > 3
    assert page.evaluate(OVERRIDDEN) == []


# One position, shared by the whole page.


def board_of(root):
    return root.evaluate("e => e.dataset.board ?? ''")


def test_a_dot_sets_the_position_of_the_whole_page(page, exported, solution):
    picture, viewer = component(page, "atlas"), component(page, "encoding")
    places = atlases.make_atlas(azjax.make("tic_tac_toe"), solution)
    index = 20
    text = board_text(solution.states)[9 * places.representatives[index] :][:9]
    picture.locator(f"[data-index='{index}']").click(force=True)
    assert board_of(viewer) == text
    page.wait_for_url(f"**#board={text}*")
    page.goto(exported.as_uri())  # A new tab, which has only the address.
    other = page.context.new_page()
    other.goto(f"{exported.as_uri()}#board={text}&iteration=1&algorithm=uct&num_simulations=9&t=8")
    assert board_of(component(other, "encoding")) == text
    searched = component(other, "explorer")
    assert moment(searched) == (8, 3, "expansion")
    chosen = searched.locator("[data-setting]").evaluate_all(
        "fields => Object.fromEntries(fields.map((e) => [e.dataset.setting, e.value]))"
    )
    assert (chosen["algorithm"], chosen["num_simulations"]) == ("uct", "9")
    assert "Iteration 1:" in component(other, "atlas").inner_text()
    ring = other.locator(".az-atlas-ring")
    dot = other.locator(f"[data-index='{index}']")
    assert ring.get_attribute("cx") == dot.get_attribute("cx")
    other.close()


@pytest.mark.parametrize(
    "address",
    [
        "board=XXX",
        "board=%3Cb%3E",
        "board=%zz",
        "iteration=x",
        "t=1e9&algorithm=alphabeta&seed=-1",
        "=",
        "board",
    ],
)
def test_an_invalid_address_gives_the_empty_board(page, exported, address):
    other = page.context.new_page()
    other.goto(f"{exported.as_uri()}#{address}")
    assert board_of(component(other, "encoding")) == "." * 9
    other.close()


def test_symmetric_positions_have_the_same_dot(page):
    picture, viewer = component(page, "atlas"), component(page, "encoding")
    rings = []
    for corner in (0, 2, 6, 8):
        cells_of(viewer).nth(corner).click()
        ring = picture.locator(".az-atlas-ring")
        rings.append((ring.get_attribute("cx"), ring.get_attribute("cy")))
        press(viewer, "clear")
    assert len(set(rings)) == 1


def test_a_game_continues_from_the_position_shown(page):
    viewer, game = component(page, "encoding"), component(page, "play")
    assert game.locator("[data-button=there]").count() == 0
    for cell in (0, 1, 4):
        cells_of(viewer).nth(cell).click()
    press(game, "there")
    assert board_of(game) == "XO..X...." and game.get_attribute("data-you") == "O"


def test_after_a_game_every_move_has_its_exact_value(page, solution):
    """Allowing X to complete a row is a mistake, for any reply of the network."""
    viewer, game = component(page, "encoding"), component(page, "play")
    for cell in (0, 4, 1):
        cells_of(viewer).nth(cell).click()
    press(game, "there")
    free = [8, 3, 5, 6, 7, 2]
    while game.get_attribute("data-result") is None:
        board = board_of(game)
        cell = next(cell for cell in free if board[cell] == ".")
        cells_of(game).nth(cell).click()
        page.wait_for_function(  # Until it is the reader's turn again, or the game is over.
            "([e, full]) => e.dataset.result || e.dataset.board.split('.').length === full",
            arg=[game.element_handle(), board.count(".") - 1],
        )
    rows = game.locator(".az-review li")
    first = rows.nth(0)
    assert "O (you): c3. Turns a draw into a loss; c1 would have kept it." in first.inner_text()
    assert (first.get_attribute("data-before"), first.get_attribute("data-after")) == ("0", "-1")
    assert "Your first mistake was c3, move 1 of the game." in game.inner_text()
    press(game, "look-0")
    assert board_of(viewer) == "XX..O...."


# The proof.


def count_lines(solution, policy, row, seat):
    """Counts the games that a policy wins, draws and loses from one position."""
    if solution.over[row]:
        outcome = true_values(solution)[row] * (1 if solution.player[row] == seat else -1)
        return np.array([outcome > 0, outcome == 0, outcome < 0], int)
    legal = np.flatnonzero(solution.legal[row])
    moves = [policy[row].argmax()] if solution.player[row] == seat else legal
    children = (solution.children[row, action] for action in moves)
    return sum(count_lines(solution, policy, child, seat) for child in children)


@pytest.mark.parametrize("seat", [0, 1])
def test_all_games_against_the_network_are_counted(page, answers, solution, seat):
    walk, (policy, _) = component(page, "proof"), answers
    press(walk, f"seat-{seat}")
    won, drawn, lost = count_lines(solution, policy, 0, seat)
    said = f"there are {won + drawn + lost:,} games. The network of iteration"
    assert said in walk.inner_text() and f"wins {won:,}, draws {drawn:,} and" in walk.inner_text()
    assert ("It never loses." in walk.inner_text()) == (lost == 0)
    for _ in range(9):
        row = row_of(solution, [{"X": 1, "O": -1, ".": 0}[mark] for mark in board_of(walk)])
        if solution.over[row]:
            break
        for action in np.flatnonzero(solution.legal[row]):
            child = solution.children[row, action]
            reply = walk.locator(f"tr:has([data-button=reply-{action}])")
            shown = [int(text) for text in reply.locator("[data-kind]").all_inner_texts()]
            assert shown == count_lines(solution, policy, child, seat).tolist()
        press(walk, f"reply-{np.flatnonzero(solution.legal[row])[-1]}")
    assert walk.locator(".az-proof-end").count() == 1
    press(walk, "step-0")
    assert walk.locator(".az-proof-end").count() == 0
    assert board_of(walk).count(".") == 8 + seat


# A position during the training.


def test_a_blunder_is_shown_with_the_search_that_corrects_it(page, answers, solution):
    section, (policy, _) = component(page, "training"), answers
    chosen = solution.optimal[solution.decisions, policy[solution.decisions].argmax(axis=1)]
    assert f"is a blunder in {(~chosen).sum():,} positions" in section.inner_text()
    press(section, "blunder")
    row = row_of(solution, [{"X": 1, "O": -1, ".": 0}[mark] for mark in board_of(section)])
    assert not solution.optimal[row, policy[row].argmax()]
    searched = component(page, "explorer")
    t, _, phase = moment(searched)
    assert phase == "backup" and t == int(searched.locator(".az-slider").get_attribute("max"))
    said = searched.locator(".az-status").inner_text()
    (played,) = re.findall(r"(\w\d) is played|(\w\d) has the most visits .* is played", said)
    assert solution.optimal[row, CELLS.index("".join(played))], said


def test_the_output_of_each_network_for_the_position_shown(page, answers, solution):
    section, (policy, values) = component(page, "training"), answers
    cells_of(component(page, "encoding")).nth(4).click()
    row = row_of(solution, [0, 0, 0, 0, 1, 0, 0, 0, 0])
    shares = section.locator("tbody tr td:last-child[data-share]")
    shown = shares.evaluate_all("cells => cells.map((cell) => Number(cell.dataset.share))")
    assert shown == pytest.approx(policy[row][solution.legal[row]].tolist(), abs=1e-5)
    value = section.locator("[data-value]").last.get_attribute("data-value")
    assert float(value) == pytest.approx(values[row], abs=1e-5)


# Two searches, side by side.


def test_two_searches_of_one_position_are_compared_with_perfect_play(page, tic_tac_toe, solution):
    """In a search without a network, moves tie, and the move played is a blunder."""
    section = component(page, "compare")
    cells_of(component(page, "encoding")).nth(0).click()
    other = section.locator(".az-compare-panel").nth(1)
    for name, value in (("num_simulations", "48"), ("algorithm", "uct"), ("algorithm", "puct")):
        field = other.locator(f"[data-setting={name}]")
        (field.select_option if name == "algorithm" else field.fill)(value)
        field.blur()
    state = from_board([1, 0, 0, 0, 0, 0, 0, 0, 0])
    states = jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)
    find = make_search(PUCT(num_simulations=48), tic_tac_toe, uniform_evaluator(tic_tac_toe))
    result = jax.jit(find)(None, jax.random.key(0), states)
    visits = np.asarray(result.tree.children_visits[0, 0, 1:])  # Cell 0 is taken.
    said = other.locator(".az-compare-said")
    assert said.get_attribute("data-visits") == ",".join(map(str, visits))
    assert int(said.get_attribute("data-action")) == result.action[0]
    tied = int((visits == visits.max()).sum())
    assert tied > 1 and f"{tied} moves tie with {visits.max()} visits" in said.inner_text()
    assert "A blunder: a draw becomes a loss." in said.inner_text()
    wrong = int(
        (~solution.optimal[row_of(solution, state.board), 1:][visits == visits.max()]).sum()
    )
    assert f"{wrong} of the {tied} tied moves, would lose the draw." in said.inner_text()


# The tour.


def test_the_tour_asks_before_it_answers_and_describes_the_search(page):
    section, searched = component(page, "tour"), component(page, "explorer")
    last = searched.locator(".az-slider")
    moves = []
    for step in range(10):
        assert section.get_attribute("data-step") == str(step)
        assert section.locator(".az-tour-right, .az-tour-said").count() == 0
        press(section, "tour-next")
        assert section.locator(".az-tour-right").count() > 0
        said = section.locator(".az-tour-said").inner_text()
        if plays := re.search(r"It plays (\w\d), with (\d+) of (\d+) visits", said):
            status = searched.locator(".az-status").inner_text()
            assert moment(searched)[0] == int(last.get_attribute("max")) == 3 * int(plays[3])
            assert f"{plays[1]} is played" in status or f"{plays[1]} has the most" in status
            moves.append(plays[1])
        press(section, "tour-next")
    assert len(moves) == 5 and moves[1] == "b2"  # With 1,000 simulations it finds the only move.
    assert "You answered 0 of 10 questions correctly." in section.inner_text()
    press(section, "tour-again")
    assert section.get_attribute("data-step") == "0"


def test_the_tour_explains_a_wrong_answer(page):
    section = component(page, "tour")
    press(section, "option-1")
    said = section.locator(".az-tour-said").inner_text()
    assert said.startswith("Not quite. Only b2 keeps the draw.")
    assert "After b1, perfect play ends in a loss for O." in said
    press(section, "tour-next")
    press(section, "tour-back")
    press(section, "option-4")
    assert (
        section.locator(".az-tour-said").inner_text().startswith("Correct. Only b2 keeps the draw.")
    )


def test_the_card_and_the_tree_of_the_tour_fit_one_screen(page):
    page.set_viewport_size({"width": 1280, "height": 720})
    section = component(page, "tour")
    for step in range(10):
        press(section, "tour-next")
        section.evaluate("e => e.scrollIntoView()")
        for part in (".az-tour", ".az-tree"):
            box = section.locator(part).bounding_box()
            assert box["y"] >= 0 and box["y"] + box["height"] <= 720, (step, part)
        press(section, "tour-next")


def test_the_contents_lead_to_every_section(page):
    first = page.locator("main .az-about a.az-primary, main p a.az-primary")
    assert first.inner_text() == "Start the tour"
    titles = [link.inner_text() for link in page.locator(".az-contents a").all()]
    assert titles[:4] == ["Tour", "Play", "Search", "Proof"]
    page.locator(".az-contents a", has_text="Proof").click()
    top = page.locator("section:has([data-kind=proof])").bounding_box()["y"]
    assert 0 <= top < 60 and "section" not in page.url


# Another browser.


def test_the_page_works_in_firefox(firefox, exported, traced):
    def read(code):
        return firefox.evaluate(f"() => {code}")

    searched = "document.querySelector('[data-kind=explorer]')"
    address = f"algorithm=puct&num_simulations={SIMULATIONS}&t={3 * SIMULATIONS}"
    firefox.goto(f"{exported.as_uri()}#{address}")
    shown = read(f"[...{searched}.querySelectorAll('[data-k=N]')].map((e) => e.textContent)")
    assert list(map(int, shown)) == traced.history.children_visits[SIMULATIONS, 0].tolist()
    for name, t in (("reset", 0), ("run-5", 15), ("next", 16), ("previous", 15)):
        firefox.click(f"[data-kind=explorer] [data-button={name}]")
        assert read(f"Number({searched}.dataset.t)") == t
    read(f"{searched}.querySelector('[data-node=\"0\"]').focus()")
    for key in ("ArrowDown", "Enter"):
        firefox.press(key)
    selected = traced.nodes[int(read(f"{searched}.dataset.selected"))]
    assert traced.parents[selected] == 0
    game = "document.querySelector('[data-kind=play]').dataset.board"
    firefox.click("[data-kind=play] [data-cell='4']")
    firefox.wait_for(f"() => {game}.includes('O')")
    assert read(game)[4] == "X"
    assert firefox.errors == []
