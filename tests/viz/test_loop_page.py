"""The lesson in a browser: every step shows the numbers from Python."""

import contextlib
import dataclasses
import math
import re

import jax
import pytest

import misere_pile
from azjax import games
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.search import PUCT
from azjax.viz.live import live_data
from azjax.viz.loop import lesson_data
from azjax.viz.page import Section, write_page

pytestmark = pytest.mark.slow

STEPS = ["position", "search", "pi", "move", "z", "loss", "step", "after"]
CONFIG = presets.smoke(presets.get("default"))
RATES = {"learning_rate": 0.02, "warmup_steps": 0, "steps": 6, "l2": 0.01, "value_weight": 0.5}
CONFIG = dataclasses.replace(CONFIG, learner=dataclasses.replace(CONFIG.learner, **RATES))


def loop_of(game, name=None):
    """What `loop_data` returns, with networks that need no run."""
    parts = make_parts(CONFIG, game)
    sections = ("search", "selfplay", "targets", "learner")
    learners = [parts.learner.init(parts.network.init(jax.random.key(i))) for i in (0, 1)]
    return {
        "settings": {name: dataclasses.asdict(getattr(CONFIG, name)) for name in sections},
        "game": name,
        "lessons": [
            {"iteration": 3 * i} | lesson_data(parts, CONFIG.learner, learner)
            for i, learner in enumerate(learners)
        ],
    }


@pytest.fixture(scope="module")
def data(tic_tac_toe):
    return loop_of(tic_tac_toe, "tic_tac_toe")


@pytest.fixture(scope="module")
def path(tmp_path_factory, data, tic_tac_toe):
    sections = [
        Section("How it learned", kind="loop", data=data),
        Section("Planes", kind="encoding", data=live_data(tic_tac_toe, PUCT())),
    ]
    return write_page(tmp_path_factory.mktemp("loop") / "page.html", "Loop", sections)


@pytest.fixture
def page(browser, path, errors):
    page = browser.new_page(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    found = errors(page)
    page.goto(path.as_uri())
    yield page
    assert found == []
    page.close()


@pytest.fixture
def lesson(page):
    return page.locator(".az-component[data-kind=loop]")


def press(root, name):
    root.locator(f"[data-button={name}]").click()


def number(text):
    return float(text.replace("\N{MINUS SIGN}", "-"))


def columns_of(root):
    """`{column: numbers}` of the table, from top to bottom."""
    cells = root.locator("td[data-column]").evaluate_all(
        "cells => cells.map(c => [c.dataset.column, c.firstChild.textContent])"
    )
    columns = {}
    for name, text in cells:
        columns.setdefault(name, []).append(number(text))
    return columns


def expected(move, step, frame):
    """The columns of a step, and the numbers below them."""
    network, goal = ("p", move["prior"], move["value"]), ("π", move["pi"], None)
    search = ("N", move["visits"], move["found"])
    first, later = move["frames"][0], move["frames"][frame]
    now, after = (("p now", first["p"], first["v"]), ("p after", later["p"], later["v"]))
    goal_z = ("π", move["pi"], move["target"])
    return {
        "position": [network],
        "search": [network, search],
        "pi": [network, search, goal],
        "move": [network, search, goal],
        "z": [network, goal_z],
        "loss": [now, goal_z],
        "step": [now, goal_z, after],
        "after": [now, goal_z, after],
    }[step]


@pytest.mark.parametrize("step", STEPS)
def test_every_step_shows_its_numbers(lesson, data, step):
    press(lesson, f"step-{step}")
    for i, taught in enumerate(data["lessons"]):
        press(lesson, f"lesson-{3 * i}")
        for at, move in enumerate(taught["moves"]):
            press(lesson, f"move-{at}")
            wanted = expected(move, step, 1 if step == "step" else -1)
            shown = columns_of(lesson)
            assert list(shown) == [name for name, _, _ in wanted]
            for name, shares, _ in wanted:
                assert shown[name] == pytest.approx(shares, abs=6e-4), (name, at)
            below = lesson.locator("tfoot td").all_inner_texts()
            for text, (_, _, value) in zip(below, wanted, strict=True):
                shown_below = re.findall(r"[+\N{MINUS SIGN}]?\d.*", text)
                assert [number(x) for x in shown_below] == (
                    [] if value is None else [pytest.approx(value, abs=6e-3)]
                )


def test_the_loss_is_the_value_of_its_formula(lesson, data):
    press(lesson, "step-loss")
    press(lesson, "move-2")
    frame = data["lessons"][1]["moves"][2]["frames"][0]
    rows = {
        row.get_attribute("data-term"): row.locator("td").all_inner_texts()
        for row in lesson.locator("[data-term]").all()
    }
    plain = {
        name: [
            text.replace("\N{MINUS SIGN}", "-").replace("\N{NO-BREAK SPACE}", " ") for text in row
        ]
        for name, row in rows.items()
    }
    products = re.findall(r"([\d.]+) log ([\d.]+)", plain["policy"][0])
    policy = -sum(float(pi) * math.log(float(p)) for pi, p in products)
    assert float(plain["policy"][1]) == pytest.approx(policy, abs=0.02)
    squared = eval(plain["value"][0].replace("²", "**2"))
    assert float(plain["value"][1]) == pytest.approx(squared, abs=0.01)
    c, norm = plain["l2"][0].split(" · ")
    assert float(plain["l2"][1]) == pytest.approx(float(c) * float(norm), abs=2e-3)
    total = eval(plain["total"][0].replace("·", "*"))
    assert float(plain["total"][1]) == pytest.approx(total, abs=3e-3)
    for name, key in (("policy", "policy_loss"), ("value", "value_loss"), ("total", "loss")):
        assert float(plain[name][1]) == pytest.approx(frame[key], abs=6e-4)
    text = lesson.inner_text()
    assert f"{frame['policy_kl']:.3f}, is the KL divergence of p from π" in text


def test_the_step_describes_the_step_of_the_learner(lesson, data):
    press(lesson, "step-step")
    taught = data["lessons"][1]
    text = lesson.inner_text()
    assert f"from {taught['loss'][0]:.3f} to {taught['loss'][1]:.3f}" in text
    assert "Step 1 of this learner" in text and "0.0200" in text
    norm = taught["grad_norm"][0]
    assert f"{norm:.3f}" in text
    clipped = f"to 1: multiplied by {1 / norm:.3f}" if norm > 1 else "below 1, so not clipped"
    assert clipped in text


def test_more_steps_are_chosen_and_bring_p_to_pi(lesson, data):
    press(lesson, "step-after")
    slider = lesson.get_by_label("steps on this game")
    counts = data["lessons"][1]["counts"]
    assert counts == [0, 1, 2, 4, 6]
    for i, count in enumerate(counts):
        slider.fill(str(i))
        assert slider.get_attribute("aria-valuetext") == f"{count} of 6 steps"
        move = data["lessons"][1]["moves"][0]
        assert columns_of(lesson)["p after"] == pytest.approx(move["frames"][i]["p"], abs=6e-4)
        assert f"After {count} steps on this game alone" in lesson.inner_text()
    slider.focus()
    slider.press("ArrowLeft")  # The focus stays.
    slider.press("ArrowLeft")
    assert slider.get_attribute("aria-valuetext") == "2 of 6 steps"


def test_keys_go_through_steps_and_moves(page, lesson, data):
    def at():
        data = lesson.evaluate("e => ({...e.dataset})")
        focus = page.evaluate("document.activeElement.dataset.focus")
        return data["step"], data["move"], focus

    lesson.locator("[data-button=step-position]").focus()
    page.keyboard.press("ArrowLeft")  # There is nothing before.
    assert at() == ("position", "0", "step-position")
    for step in STEPS[1:]:
        page.keyboard.press("ArrowRight")
        assert at() == (step, "0", f"step-{step}")
    lesson.locator("[data-button=move-0]").focus()
    page.keyboard.press("ArrowRight")
    assert at() == ("after", "1", "move-1")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert at() == ("after", "0", "move-0")
    press(lesson, "back")
    assert at() == ("step", "0", "back")
    press(lesson, "next")
    assert lesson.locator("[data-button=next]").get_attribute("aria-disabled") == "true"
    current = lesson.locator("[aria-current]").evaluate_all("all => all.map(e => e.dataset.button)")
    assert current == ["move-0", "step-after"]


def test_a_move_is_chosen_for_the_whole_page(page, lesson, data):
    viewer = page.locator(".az-component[data-kind=encoding]")
    board = data["lessons"][1]["moves"][2]["board"]
    press(lesson, "move-2")
    assert viewer.get_attribute("data-board") == board
    page.wait_for_url(f"**#board={board}")
    address = page.url
    page.goto("about:blank")
    page.goto(address)
    assert lesson.get_attribute("data-move") == "2"


def test_the_game_ends_as_z_says(lesson, data):
    press(lesson, "step-z")
    moves = data["lessons"][1]["moves"]
    z = moves[0]["z"]
    end = {1: "X wins", 0: "a draw", -1: "O wins"}[z]
    for i in range(len(moves)):
        press(lesson, f"move-{i}")
        status = lesson.locator(".az-loop-status").inner_text()
        assert f"after {len(moves)} moves: {end}." in status
        assert moves[i]["z"] == z * (-1) ** i
    final = lesson.locator(".az-figure [data-board]")
    stones = final.get_attribute("data-board")
    last = moves[-1]
    assert stones[last["action"]] == "XO"[last["player"]]
    assert stones.count(".") == last["board"].count(".") - 1
    assert final.locator(".az-line").count() == (z != 0)


@contextlib.contextmanager
def opened(browser, errors, folder, data):
    """The page of another game."""
    sections = [Section("How it learned", kind="loop", data=data)]
    page = browser.new_page()
    found = errors(page)
    page.goto(write_page(folder / "page.html", "Loop", sections).as_uri())
    yield page, page.locator(".az-component[data-kind=loop]")
    assert found == []
    page.close()


def test_a_game_without_rules_in_the_page_is_shown_as_text(browser, tmp_path, errors):
    data = loop_of(misere_pile.make())
    moves = data["lessons"][1]["moves"]
    with opened(browser, errors, tmp_path, data) as (page, root):
        for step in STEPS:
            press(root, f"step-{step}")
            assert root.locator("pre").inner_text() == "....."
        press(root, "move-1")
        assert root.locator("pre").inner_text() == moves[1]["board"]
        label = root.locator("[aria-current=true]").get_attribute("aria-label")
        assert f"2. {'XO'[moves[1]['player']]}: {moves[1]['action']}" in label
        assert "#" not in page.url


def test_stones_of_connect_four_fall(browser, tmp_path, errors):
    data = loop_of(games.make("connect_four"), "connect_four")
    with opened(browser, errors, tmp_path, data) as (page, root):
        for step in STEPS:
            press(root, f"step-{step}")
        move = data["lessons"][1]["moves"][0]
        heat = root.locator(".az-figure .az-heat").evaluate_all(
            "all => all.map(e => [+e.getAttribute('x'), +e.getAttribute('y')])"
        )
        assert heat == [[30 * column, 150] for column in move["actions"]]
        press(root, "move-4")
        board = data["lessons"][1]["moves"][4]["board"]
        assert root.locator(".az-figure [data-board]").get_attribute("data-board") == board
        page.wait_for_url(f"**#board={board}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_and_controls_are_large_enough(page, lesson, width, scheme):
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    for step in STEPS:
        press(lesson, f"step-{step}")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        boxes = [button.bounding_box() for button in lesson.locator(".az-button").all()]
        assert min(box["height"] for box in boxes) >= (44 if width == 390 else 34)
        sizes = lesson.evaluate(
            """root => [...root.querySelectorAll("text, th, td, p, span, button, output")].map(e =>
              parseFloat(getComputedStyle(e).fontSize) *
              (e.ownerSVGElement ? e.ownerSVGElement.getScreenCTM().a : 1))"""
        )
        assert min(sizes) >= 9


def test_bars_grow_only_without_reduced_motion(page, lesson, data):
    def animation():
        bar = lesson.locator("[data-column='p after'] .az-loop-bar").first
        return bar.evaluate("e => getComputedStyle(e).animationName")

    press(lesson, "step-after")

    assert animation() == "none"
    page.emulate_media(reduced_motion="no-preference")
    assert animation() == "az-loop-grow"
    frames = data["lessons"][1]["moves"][0]["frames"]
    lesson.get_by_label("steps on this game").fill("1")
    bar = lesson.locator("[data-column='p after'] .az-loop-bar").first
    ends = bar.evaluate("e => ['was', 'share'].map(x => e.style.getPropertyValue(`--az-${x}`))")
    assert [float(end.rstrip("%")) / 100 for end in ends] == [
        pytest.approx(frames[i]["p"][0], abs=1e-3) for i in (-1, 1)
    ]
