"""The explorer is legible at three screen sizes, after few and after many simulations."""

import dataclasses
import itertools
import math
import re

import pytest

from azjax.search import PUCT, UCT, Gumbel
from azjax.viz.live import live_data
from azjax.viz.page import Section, write_page
from javascript import SIZES_OF_PARTS
from reference import gumbel

CELLS = [f"{column}{row}" for row in (1, 2, 3) for column in "abc"]  # By action.
SIZES = {"desktop": (1440, 900), "laptop": (1280, 720), "phone": (390, 844)}
COUNTS = (15, 48, 200, 1000)
DEFAULT = {("laptop", 48), ("phone", 48)}
CORNERS = [
    pytest.param(
        size,
        count,
        id=f"{size}-{count}",
        marks=() if (size, count) in DEFAULT else pytest.mark.slow,
    )
    for size in SIZES
    for count in COUNTS
]

# The boxes on the screen, in pixels.
MEASURE = """root => {
  const box = (e) => {
    const r = e.getBoundingClientRect();
    return [r.left, r.top, r.right, r.bottom];
  };
  const { all, hasText, fonts, controls } = (SIZES)(root);
  const picture = root.querySelector(".az-tree");
  const groups = all("[data-key], [data-ghost]", picture);
  const points = (path) => Array.from({length: 33}, (_, i) => {
    const at = path.getPointAtLength(path.getTotalLength() * i / 32);
    const {x, y} = at.matrixTransform(path.getScreenCTM());
    return [x, y];
  });
  return {
    ...{ fonts, controls },
    picture: box(picture),
    groups: groups.map((g) => ({
      node: g.dataset.node ?? null,
      fold: g.dataset.fold ?? null,
      lit: Boolean(g.dataset.phase),
      level: Number(g.getAttribute("aria-level")),
      box: box(g.querySelector("rect")),
      board: g.querySelector(".az-board") ? box(g.querySelector(".az-board")) : null,
      texts: all("text", g).filter(hasText).map(
        (e) => [e.textContent, e.getAttribute("class"), box(e)]),
    })),
    edges: all(".az-edge", picture).map(points),
    parts: all(".az-transport, .az-status, .az-tree-box, .az-moves").map(box),
  };
}""".replace("SIZES", SIZES_OF_PARTS)


@pytest.fixture(scope="module")
def make_page(tmp_path_factory, tic_tac_toe):
    """`(simulations, **start) -> path` of a page with one search."""
    folder, made = tmp_path_factory.mktemp("legible"), {}

    def make(simulations, **start):
        name = f"{simulations}-{'-'.join(map(str, start.values()))}.html"
        if name not in made:
            search = PUCT(num_simulations=simulations, dirichlet_fraction=0.0)
            data = live_data(tic_tac_toe, search, **start)
            sections = [Section("A search", kind="explorer", data=data)]
            made[name] = write_page(folder / name, "A search", sections)
        return made[name]

    return make


@pytest.fixture
def open_search(make_page, browser, errors):
    """`(size, simulations, **settings) -> explorer` on a screen of that size."""
    contexts, found = [], []

    def open_it(size, simulations, **settings):
        width, height = SIZES[size]
        viewport = {"width": width, "height": height}
        contexts.append(browser.new_context(viewport=viewport, reduced_motion="reduce"))
        page = contexts[-1].new_page()
        found.append(errors(page))
        page.goto(make_page(simulations, **settings).as_uri())
        return page.locator(".az-component[data-kind=explorer]")

    yield open_it
    assert [line for lines in found for line in lines] == []
    for context in contexts:
        context.close()


@pytest.fixture
def explorer(open_search):
    return open_search("laptop", 48)


def go(root, t):
    """Moves the slider to a time; -1 is the end."""
    root.get_by_label("time").evaluate(
        "(e, t) => { e.value = t < 0 ? e.max : t; e.dispatchEvent(new Event('input')); }", t
    )


def press(root, name):
    root.locator(f"[data-button={name}]").click()


def inside(inner, outer, slack=0.5):
    low = all(a >= b - slack for a, b in zip(inner[:2], outer[:2], strict=True))
    return low and all(a <= b + slack for a, b in zip(inner[2:], outer[2:], strict=True))


def overlap(a, b, slack=0.75):
    across = min(a[2], b[2]) - max(a[0], b[0])
    return across > slack and min(a[3], b[3]) - max(a[1], b[1]) > slack


def rectangles(group):
    return [group["box"], *(box for _, _, box in group["texts"])]


def check_tree(seen):
    """Checks that nothing is too small, cut off or covered, and that no edge crosses a word."""
    groups = seen["groups"]
    assert min(seen["fonts"])[0] >= 9, min(seen["fonts"])
    for group in groups:
        if group["node"] == "0" or group["lit"]:
            assert all(inside(box, seen["picture"]) for box in rectangles(group)), group
        for text, look, box in group["texts"]:
            assert look in ("az-edge-label", "az-edge-label az-gain") or inside(
                box, group["box"]
            ), text
        own = [box for _, _, box in group["texts"]] + ([group["board"]] if group["board"] else [])
        assert not any(overlap(a, b) for i, a in enumerate(own) for b in own[:i]), group
    for a, b in itertools.combinations(groups, 2):
        pairs = itertools.product(rectangles(a), rectangles(b))
        assert not any(overlap(*pair) for pair in pairs), (a, b)
    words = [box for group in groups for _, _, box in group["texts"]]
    for x, y in (point for edge in seen["edges"] for point in edge):
        assert not any(b[0] < x < b[2] and b[1] + 1 < y < b[3] - 1 for b in words), (x, y)


@pytest.mark.parametrize(("size", "count"), CORNERS)
def test_every_size_of_screen_and_search_is_legible(open_search, size, count):
    explorer = open_search(size, count)
    middle = 3 * (2 * count // 3)
    for t in (0, middle + 1, middle + 2, middle + 3, -1):
        go(explorer, t)
        seen = explorer.evaluate(MEASURE)
        check_tree(seen)
        lit = sorted(group["level"] for group in seen["groups"] if group["lit"])
        if explorer.get_attribute("data-phase") in ("selection", "backup"):
            assert lit == list(range(1, lit[-1] + 1))  # The whole path.
        if size == "phone":
            assert [c for c in seen["controls"] if c[1] < 43.9] == []
        else:
            top, bottom = zip(*((box[1], box[3]) for box in seen["parts"]), strict=True)
            assert max(bottom) - min(top) <= SIZES[size][1]


def test_the_transport_of_a_phone_sticks(open_search):
    explorer = open_search("phone", 48)
    for part in (".az-tree-box", ".az-moves"):
        explorer.locator(part).scroll_into_view_if_needed()
        box = explorer.locator(".az-transport").bounding_box()
        assert box["y"] + box["height"] == pytest.approx(844, abs=1)
        assert box["height"] < 130
    explorer.get_by_label("how many simulations to run").fill("7")
    press(explorer, "run-n")
    assert explorer.get_attribute("data-simulation") == "7"


@pytest.mark.slow
@pytest.mark.parametrize("size", ["laptop", "phone"])
def test_hidden_nodes_are_counted_and_can_be_opened(open_search, size):
    explorer = open_search(size, 48)
    go(explorer, -1)

    def shown():
        groups = explorer.evaluate(MEASURE)["groups"]
        nodes = {int(group["node"]) for group in groups if group["node"] is not None}
        folded = sum(int(g["texts"][0][0]) for g in groups if g["fold"] is not None)
        assert len(nodes) + folded == 49  # All of the tree, each node once.
        return nodes

    before = shown()
    assert len(before) < 49
    parent = explorer.locator("[data-fold]").first.get_attribute("data-fold")
    explorer.locator(f"[data-fold='{parent}']").click()
    opened = shown() - before
    assert opened
    check_tree(explorer.evaluate(MEASURE))
    focused = explorer.evaluate("root => document.activeElement.dataset.node")
    assert int(focused) in opened
    press(explorer, "fit")
    assert shown() == before
    explorer.locator("[data-node='0']").focus()
    for key in ("ArrowDown", *["ArrowRight"] * 9):  # To the end of the root's row.
        explorer.page.keyboard.press(key)
    for _ in range(9):
        if explorer.evaluate("root => document.activeElement.dataset.fold"):
            break
        explorer.page.keyboard.press("ArrowDown")
    explorer.page.keyboard.press("Enter")
    assert shown() != before


@pytest.mark.slow
@pytest.mark.parametrize("size", ["laptop", "phone"])
def test_the_root_stays_visible_and_fit_restores_the_view(open_search, size):
    explorer = open_search(size, 48)
    go(explorer, 100)
    # On a phone, the controls would cover the picture's center, where drags start.
    explorer.locator(".az-tree-box").evaluate("box => box.scrollIntoView()")
    page, start = explorer.page, explorer.evaluate(MEASURE)["groups"]

    def check_root():
        seen = explorer.evaluate(MEASURE)
        assert min(seen["fonts"])[0] >= 9
        root = next(group for group in seen["groups"] if group["node"] == "0")
        assert all(inside(box, seen["picture"]) for box in rectangles(root))

    for name in ("zoom-in",) * 4 + ("zoom-out",) * 8 + ("zoom-in",) * 5:
        press(explorer, name)
        check_root()
    left, top, right, bottom = explorer.evaluate(MEASURE)["picture"]
    for corner in ((left, top), (right, top), (left, bottom), (right, bottom)):
        page.mouse.move((left + right) / 2, (top + bottom) / 2)
        page.mouse.down()
        page.mouse.move(*corner, steps=3)
        page.mouse.up()
        check_root()
    press(explorer, "fit")
    assert explorer.evaluate(MEASURE)["groups"] == start
    press(explorer, "zoom-in")
    page.mouse.move((left + right) / 2, bottom - 20)
    page.mouse.down()
    page.mouse.move(left, bottom - 20, steps=3)
    page.mouse.up()
    for _ in range(6):  # The path of a new simulation is always visible.
        press(explorer, "next")
        check_tree(explorer.evaluate(MEASURE))


# Words and formulas.


def number(text):
    return float(text.replace("\N{MINUS SIGN}", "-"))


def evaluate(text):
    """Evaluates both sides of the last "=" of a formula of the page."""
    text = text.replace("\N{MINUS SIGN}", "-").replace("\N{MULTIPLICATION SIGN}", "*")
    text = re.sub(r"\N{SQUARE ROOT}(\d+)", r"math.sqrt(\1)", text)
    text = re.sub(r"ln (\d+)", r"math.log(\1)", text).replace("\N{SQUARE ROOT}", "math.sqrt")
    left, right = text.removeprefix("= ").rsplit(" = ", 1)
    return eval(left, {"math": math}), float(right)


def formulas(root):
    pairs = root.locator("[data-formula]").evaluate_all(
        "lines => lines.map(e => [e.dataset.formula, e.textContent])"
    )
    return dict(pairs)


def rows(root):
    """`{action: {"N": 3.0, ...}}` of the table, and where to point for each."""
    cells = root.locator("[data-k]").evaluate_all(
        "cells => cells.map(c => [c.dataset.action, c.dataset.k, c.textContent])"
    )
    table = {}
    for action, name, text in cells:
        table.setdefault(int(action), {})[name] = number(text)
    return table


SLOW_TIMES = [pytest.param(t, marks=pytest.mark.slow) for t in (0, 100, -1)]


@pytest.mark.parametrize("t", [41, *SLOW_TIMES])
def test_the_formula_gives_the_numbers_of_the_table(explorer, t):
    go(explorer, t)
    for action, row in rows(explorer).items():
        explorer.locator(f"[data-k=U][data-action='{action}']").hover()
        lines = formulas(explorer)
        for name in "US":
            computed, shown = evaluate(lines[name])
            assert computed == pytest.approx(shown, abs=3e-3), lines
            assert shown == pytest.approx(row[name], abs=6e-4), lines
        assert f"(1 + {row['N']:.0f})" in lines["U"]
        assert f"{CELLS[action]} for" in explorer.locator(".az-formula").inner_text()
        untried = "it counts as Q = 0, an even game" in explorer.locator(".az-formula").inner_text()
        assert untried == (row["N"] == 0)


def test_the_formula_explains_the_sign_and_the_visits_of_the_root(open_search):
    explorer = open_search("laptop", 48, board=(1, 1, 0, 0, -1, 0, 0, 0, 0), evaluator="rollout")
    words = explorer.locator(".az-formula")
    assert "The root starts with N = 1" in words.inner_text()
    go(explorer, -1)
    assert "N = 49: 48 simulations and the root" in words.inner_text()
    child = explorer.locator("[data-node='1']")
    q = number(child.get_attribute("data-q"))
    action = CELLS.index(re.search(r"O: (\w\d),", child.text_content())[1])
    explorer.locator(f"[data-k=U][data-action='{action}']").hover()
    minus = "\N{MINUS SIGN}"
    value = f"{-q:+.3f}".replace("-", minus)
    assert f"the value is {value} for X" in words.inner_text()
    assert re.search(r"Q is (a single value|the mean of \d+ values) for O\.", words.inner_text())


def test_expansion_shows_every_new_move_with_its_prior(explorer):
    for t in (0, 2, 62, 95):
        go(explorer, t)
        row = rows(explorer)
        ghosts = explorer.locator("[data-ghost]").evaluate_all(
            "all => all.map(g => [g.dataset.ghost, g.lastElementChild.textContent])"
        )
        assert {int(action): float(P) for action, P in ghosts} == pytest.approx(
            {action: values["P"] for action, values in row.items()}, abs=6e-3
        )
        assert all(values["N"] == 0 for values in row.values())
    press(explorer, "previous")
    assert explorer.locator("[data-ghost]").count() == 0  # Selection comes first.


def test_the_table_of_gumbel_shows_the_moves_still_considered(explorer):
    explorer.locator("[data-setting=algorithm]").select_option("gumbel")
    explorer.locator("[data-setting=max_considered_actions]").fill("8")
    explorer.locator("[data-setting=max_considered_actions]").press("Enter")
    turns, stands = gumbel.halving(gumbel.Settings(48, max_considered_actions=8), 9), set()
    for k in range(0, 48, 5):
        go(explorer, 3 * k)
        if k:
            explorer.locator("[data-node='0']").click()
        read = "rows => rows.map(r => [r.cells[2].textContent, r.lastChild.textContent])"
        rows = explorer.locator("[data-row]").evaluate_all(read)
        for visits, mark in rows:
            ahead = int(visits) - turns[k]
            expected = ("out", "in turn", "waits")[(ahead > 0) - (ahead < 0) + 1]
            assert mark == expected or (mark == "\N{LEFTWARDS ARROW} next" and ahead == 0)
            stands.add(mark)
    assert len(stands) == 4
    go(explorer, -1)
    marks = explorer.locator(".az-mark-next").all_inner_texts()
    assert [mark for mark in marks if mark] == ["\N{LEFTWARDS ARROW} played"]


@pytest.mark.slow
def test_the_random_game_of_a_rollout_is_shown_move_by_move(open_search):
    explorer = open_search("laptop", 48, evaluator="rollout")
    games = explorer.locator(".az-playout li")
    for t in (1, 3):
        go(explorer, t)
        assert games.count() == 0
    for t in (2, 20, 101):
        go(explorer, t)
        boards = games.locator("svg").evaluate_all("all => all.map(e => e.dataset.board)")
        for before, after in itertools.pairwise(boards):
            (cell,) = (c for c in range(9) if before[c] != after[c])
            assert before[cell] == "." and after[cell] == "XO"[before.count(".") % 2 == 0]
        lost = games.last.locator(".az-line").count()
        said = explorer.locator(".az-status").inner_text()
        value = number(re.search(r"the value (\S+) for [XO]", said)[1])
        assert value == lost * (-1) ** len(boards)
        explorer.page.emulate_media(reduced_motion="no-preference")
        delays = games.evaluate_all("all => all.map(e => getComputedStyle(e).animationDelay)")
        waits = [float(delay.removesuffix("s")) for delay in delays]
        assert waits == pytest.approx([0.35 * i for i in range(len(boards))])
        explorer.page.emulate_media(reduced_motion="reduce")
        assert games.first.evaluate("e => getComputedStyle(e).animationName") == "none"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "a1, b1 and c1 tie with 6 of 48 visits each, and a1 is played."),
        (
            {"evaluator": "rollout"},  # Another move has the highest score.
            "c2 has the most visits (23 of 48) and is played. Its score is not the highest: one "
            "more simulation would choose b3.",
        ),
        (
            {"board": (1, 1, 0, 0, -1, 0, 0, 0, 0), "evaluator": "exact"},
            "c1 has the most visits (48 of 48) and is played.",
        ),
    ],
)
def test_the_move_played_is_marked_at_the_end_and_not_before(open_search, settings, said):
    explorer = open_search("laptop", 48, **settings)
    go(explorer, -1)
    assert said in explorer.locator(".az-status").inner_text()
    played = re.search(r"(\w\d) (?:has|is)", said)[1]
    table = explorer.locator("tr.az-played")
    assert "played" in table.inner_text() and table.inner_text().startswith(played)
    further = re.search(r"would choose (\w\d)", said)
    marked = explorer.locator("tr", has_text="highest")
    assert marked.count() == bool(further)
    assert not further or marked.inner_text().startswith(further[1])
    node = explorer.locator(".az-node.az-played")
    assert f"{played} played" in node.text_content()
    press(explorer, "previous")
    assert explorer.locator(".az-played").count() == 0


def test_words_mention_ties_and_the_player_of_every_value(explorer):
    status = explorer.locator(".az-status")
    press(explorer, "next")
    assert "in a tie with 8 others" in status.inner_text()
    value = r"(?:Q|value|counts as|,) ([+\N{MINUS SIGN}]?\d\.\d\d)(?! for [XO])"
    for t in [*range(0, 145, 7), -1]:
        go(explorer, t)
        assert not re.search(value, status.inner_text()), status.inner_text()
        labels = explorer.locator(".az-q").all_text_contents()
        whose = (
            r"(new|(V|Q) [+\N{MINUS SIGN}]?\d\.\d\d [XO]|(X wins|O wins|draw) [+\N{MINUS SIGN}]?\d)"
        )
        assert all(re.fullmatch(whose, label) for label in labels), labels


FORMULA_OF_UCT = """{
  algorithm: "uct", settings: {exploration: 1.4142135}, last: 36, action: 2,
  nodes: [{id: 0, parent: null, player: 0, actions: [2, 5], priors: [0.5, 0.5]}],
  stats: () => ({visits: 13, value: 0.1, N: [4, 0], Q: [0.25, 0],
                 U: [1.4142135 * Math.sqrt(Math.log(13) / 4), Infinity],
                 S: [0.25 + 1.4142135 * Math.sqrt(Math.log(13) / 4), Infinity]}),
  child: () => null,
}"""
FORMULA_OF_GUMBEL = """{
  algorithm: "gumbel", settings: {maxvisit_init: 50, value_scale: 0.1}, last: 36, action: 2,
  nodes: [0, 1].map((id) => (
    {id, parent: id ? 0 : null, player: id, actions: [2, 5], priors: [0.5, 0.5]})),
  stats: (id) => ({visits: 13, value: 0.1, N: [7, 0], Q: [0.25, 0.1],
                   U: id ? [-7 / 8, 0] : [-1.5, 0],
                   S: id ? [0.6 - 7 / 8, 0.4] : [-1.5 + 57 * 0.05 * 0.25, 57 * 0.05 * 0.1]}),
  child: () => null,
}"""


@pytest.fixture
def formula(module):
    """`(search, node, i) -> (lines, words)` of the formula of one move."""

    def write(search, node, i):
        lines = f"azjax.formula({search}, {{t: 9, known: 3}}, {node}, {i})"
        module.evaluate(f"document.body.replaceChildren(...{lines}.flat())")
        return formulas(module.locator("body")), module.locator("body").inner_text()

    return write


@pytest.mark.parametrize(
    ("visits", "scores", "said"),
    [
        ([3, 9], [0.1, 0.2], "move 2 is played, with 3 visits; move 5 has 9 of 12."),
        (
            [6, 6],
            [0.2, 0.2],
            "move 2 and move 5 tie with 6 of 12 visits each, and move 2 is played.",
        ),
        ([9, 3], [0.2, 0.1], "move 2 has the most visits (9 of 12) and is played."),
    ],
)
def test_the_end_names_the_move_played_and_the_most_visited(module, visits, scores, said):
    search = """([N, S]) => ({
      action: 2, settings: {}, length: 12, last: 36, stats: () => ({N, S}),
      nodes: [{player: 0, actions: [2, 5]}, {player: 1, over: false}],
    })"""
    moment = "{t: 36, phase: 'backup', step: {path: [0], leaf: 1, value: -0.1, backup: [0.1]}}"
    told = module.evaluate(
        f"(given) => azjax.describe(({search})(given), {moment})", [visits, scores]
    )
    assert f"All 12 simulations are done: {said}" in told
    assert "for O" in told and "for X" in told


def test_the_bound_of_uct_is_written_with_its_numbers(formula):
    lines, words = formula(FORMULA_OF_UCT, 0, 0)
    assert "\N{SQUARE ROOT}(ln 13 / 4)" in lines["U"] and "UCB1: move 2 for X" in words
    assert evaluate(lines["U"]) == pytest.approx((1.132, 1.132), abs=1e-3)
    assert evaluate(lines["S"]) == pytest.approx((1.382, 1.382), abs=2e-3)
    lines, words = formula(FORMULA_OF_UCT, 0, 1)
    assert "\N{INFINITY}" in lines["S"] and "the score of an untried move is infinite" in words


@pytest.mark.parametrize(("node", "i"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_the_formula_of_gumbel_completes_and_weights_q(formula, node, i):
    lines, words = formula(FORMULA_OF_GUMBEL, node, i)
    assert "(50 + 7) \N{MULTIPLICATION SIGN} 0.1 / 2" in lines["\N{GREEK SMALL LETTER SIGMA}"]
    computed, shown = evaluate(lines["\N{GREEK SMALL LETTER SIGMA}"])
    assert computed == pytest.approx(shown, abs=1e-3)
    assert evaluate(lines["S"])[0] == pytest.approx(evaluate(lines["S"])[1], abs=2e-3)
    assert ("Sequential halving" in words) == (node == 0)
    assert ("its Q is the mixed value" in words) == (i == 1)


# All words about a search, and the names that they read but that do not exist.
TOLD = """data => {
  const missing = new Set();
  const isObject = (value) => typeof value === "object" && value !== null;
  const strict = (value, path) => !isObject(value) ? value : new Proxy(value, {
    get(target, name) {
      const found = Reflect.get(target, name);
      if (typeof name === "symbol") return found;
      if (!(name in target)) missing.add(`${path}.${name}`);
      if (typeof found === "function" && !Array.isArray(target)) {
        return (...given) => strict(found.apply(target, given), `${path}.${name}()`);
      }
      return strict(found, `${path}.${name}`);
    },
  });
  const search = strict(new azjax.Bench(data).search, "search");
  const told = [];
  for (let t = 0; t <= search.last; t++) {
    const moment = search.moment(t);
    told.push(azjax.describe(search, moment));
    for (const { id, over, actions } of search.nodes) {
      if (!search.exists(id, moment)) continue;
      told.push(azjax.nodeWords(search, id, moment.known));
      if (over) continue;
      told.push(...azjax.columns(search, id).flat());
      const parts = actions.flatMap((_, i) => azjax.formula(search, moment, id, i)).flat(9);
      told.push(...parts.map((part) => part.textContent));
    }
  }
  return [told.join("\\n"), [...missing]];
}"""


@pytest.mark.parametrize("evaluator", ["rollout", "exact"])
@pytest.mark.parametrize(
    ("search", "said"),
    [
        (PUCT(num_simulations=9, dirichlet_fraction=0.25), "after mixing in noise (0.25)"),
        (PUCT(num_simulations=9, dirichlet_fraction=0.0, first_play_urgency="parent"), None),
        (Gumbel(num_simulations=9, gumbel_scale=1.0), "with the noise drawn for this search"),
        (Gumbel(num_simulations=9, gumbel_scale=0.0), None),
        (UCT(num_simulations=9), None),
    ],
)
def test_words_read_only_what_a_search_has_and_mention_its_noise(
    module, tic_tac_toe, search, said, evaluator
):
    data = live_data(tic_tac_toe, search, evaluator=evaluator)
    told, missing = module.evaluate(TOLD, data)
    assert missing == []
    assert said in told if said else "noise" not in told


@pytest.mark.parametrize(
    ("search", "noise", "rule"),
    [
        (PUCT(num_simulations=9, dirichlet_fraction=0.25), " 25% of the root", ""),
        (PUCT(num_simulations=9, dirichlet_fraction=0.0), "", ""),
        (Gumbel(num_simulations=9, gumbel_scale=1.0), " Noise helps", "the highest noise + log p"),
        (Gumbel(num_simulations=9, gumbel_scale=0.0), "", "the highest log p"),
        (UCT(num_simulations=9), "", ""),
    ],
)
def test_the_lesson_mentions_noise_if_there_is_some(module, search, noise, rule):
    sentence = """settings => {
      const move = {player: 0, action: 4, actions: [4], pi: [1], visits: [9], value: 0, found: 0};
      const view = {move, mover: azjax.playerName, moveName: String, data: {settings}, at: 0};
      return ["search", "move"].map((step) => azjax.loopSentence({...view, step}));
    }"""
    selfplay = {"temperature": 1.0, "temperature_plies": 9}
    settings = {"search": dataclasses.asdict(search), "selfplay": selfplay}
    of_search, of_move = module.evaluate(sentence, settings)
    assert f"began with each move.{noise}" in of_search and rule in of_move
    assert ("oise" in of_search + of_move) == bool(noise)
