"""The page of Dots and Boxes in a browser: a game without rules in JavaScript, from its table."""

import dataclasses
import itertools

import numpy as np
import pytest

import azjax
import dots
from azjax.cli import explain
from azjax.networks import MLPConfig
from azjax.runs import presets
from azjax.viz.live import solve
from azjax.viz.positions import true_values
from run_directories import make_run

GAME = dots.make()
PATH = f"{dots.__file__}:make"


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    network = MLPConfig(encoding="edges", hidden=(32,), head_hidden=16)
    config = presets.smoke(presets.get("default"))
    config = dataclasses.replace(config, game=PATH, network=network)
    return make_run(tmp_path_factory.mktemp("dots") / "run", config, game=GAME)


@pytest.fixture(scope="module")
def exported(run_dir):
    path = run_dir.parent / "explain.html"
    assert explain.main(["--run-dir", str(run_dir), "--game", PATH, "--out", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def moves(run_dir):
    """`int [S]`, the network's most likely move in every position."""
    player, solution = azjax.load(run_dir, game=GAME), solve(GAME)
    logits, _ = player.evaluate(solution.states)
    return np.argmax(np.where(solution.legal, logits, -np.inf), axis=1)


@pytest.fixture
def page(browser, exported, errors):
    page = browser.new_page(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    page.set_default_timeout(30_000)
    found = errors(page)
    page.goto(exported.as_uri())
    yield page
    assert found == []
    page.close()


def component(page, kind):
    return page.locator(f".az-component[data-kind={kind}]")


def test_the_page_has_its_parts_and_is_small(page, exported):
    kinds = page.locator(".az-component").evaluate_all("all => all.map((e) => e.dataset.kind)")
    assert [kind for kind in kinds if kind != "loop"] == [
        *("tour", "play", "explorer", "proof", "compare", "training")
    ]
    assert exported.stat().st_size < 2.5e6
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") == width


def replies_with_two_moves_in_a_row(solution, moves):
    """Finds X's moves, by row, of a game in which a player moves twice, against `moves` of O."""
    came_from, queue = {0: None}, [0]
    for row in queue:
        turn = solution.player[row]
        for action in np.flatnonzero(solution.legal[row]) if turn == 0 else [moves[row]]:
            child = int(solution.children[row, action])
            if not solution.over[child] and solution.player[child] == turn:
                replies = {row: int(action)}
                while came_from[row] is not None:
                    row, action = came_from[row]
                    replies[row] = int(action)
                return replies
            if child not in came_from and not solution.over[child]:
                came_from[child] = (row, action)
                queue.append(child)
    raise AssertionError("no player can move twice")


def test_a_game_is_played_in_which_a_player_moves_twice(page, moves):
    game, solution = component(page, "play"), solve(GAME)
    replies = replies_with_two_moves_in_a_row(solution, moves)
    row, path = 0, []
    while not solution.over[row]:
        action = int(moves[row])
        if solution.player[row] == 0:
            action = replies.get(row, int(np.flatnonzero(solution.legal[row])[0]))
            game.locator(f"[data-move='{action}']").click()
        path.append(int(solution.player[row]))
        row = int(solution.children[row, action])
        if solution.over[row] or solution.player[row] == 0:
            page.wait_for_function(
                "([e, text]) => e.dataset.board === text", arg=[game.element_handle(), str(row)]
            )
    assert any(first == second for first, second in itertools.pairwise(path))
    outcome = int(true_values(solution)[row]) * (1 if solution.player[row] == 0 else -1)
    assert game.get_attribute("data-result") == {1: "win", 0: "draw", -1: "loss"}[outcome]
    assert game.locator(".az-review li").count() == 12


@pytest.mark.parametrize("seat", [0, 1])
def test_all_games_against_the_network_are_counted(page, moves, seat):
    solution, walk = solve(GAME), component(page, "proof")
    truth, counts = true_values(solution), np.zeros((solution.num_states, 3), np.int64)
    for row in reversed(range(solution.num_states)):
        if solution.over[row]:
            value = truth[row] * (1 if solution.player[row] == seat else -1)
            counts[row, 1 - int(value)] = 1
            continue
        own = solution.player[row] == seat
        actions = [moves[row]] if own else np.flatnonzero(solution.legal[row])
        counts[row] = counts[solution.children[row, actions]].sum(axis=0)
    walk.locator(f"[data-button=seat-{seat}]").click()
    won, drawn, lost = counts[0]
    text = f"wins {won:,}, draws {drawn:,} and loses {lost:,} of them"
    assert text in walk.inner_text()
    while walk.locator(".az-proof-end").count() == 0:
        row = int(walk.get_attribute("data-board"))
        assert solution.player[row] == 1 - seat
        for action in np.flatnonzero(solution.legal[row]):
            reply = walk.locator(f"tr:has([data-button=reply-{action}])")
            shown = [int(cell) for cell in reply.locator("[data-kind]").all_inner_texts()]
            assert shown == counts[solution.children[row, action]].tolist()
        walk.locator("[data-button^=reply-]").first.click()


def test_the_explorer_searches_from_any_position(page):
    root, solution = component(page, "explorer"), solve(GAME)
    root.locator(".az-start [data-move='0']").click()
    row = int(solution.children[0, 0])
    page.wait_for_url(f"**#board={row}*")
    shown = root.locator("[data-k=N]").evaluate_all("cells => cells.map((c) => c.dataset.action)")
    assert list(map(int, shown)) == np.flatnonzero(solution.legal[row]).tolist()
    root.locator("[data-setting=evaluator]").select_option("exact")
    root.locator("[data-button=run-5]").click()
    assert "4 of 4" in root.locator(".az-progress").inner_text()
    assert component(page, "training").get_attribute("data-board") == str(row)


def test_the_tour_ends(page):
    tour = component(page, "tour")
    for _ in range(20):
        tour.locator("[data-button=tour-next]").click()
    assert "You answered 0 of 10 questions correctly." in tour.inner_text()
