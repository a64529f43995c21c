"""The lecture's experiments: their arithmetic, their page, and the program around them."""

import itertools
import json
import math
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games.tic_tac_toe import LINES
from azjax.players import perfect_agent
from azjax.players.statistics import Interval
from azjax.search.evaluators import rollout
from experiments.lecture import __main__ as program
from experiments.lecture import exploration, integration, learning, matches, network, steps
from experiments.lecture.page import Page
from experiments.lecture.setup import Experiment, Setup, classic, learner, tabulated
from refusals import check_program


class Tiny(Setup):
    """Uses even smaller amounts than a quick run."""

    batch_size = 32

    def choose(self, full, quick):
        return min(quick, 32) if isinstance(quick, int) else quick


@pytest.fixture(scope="module")
def setup(tic_tac_toe, solution):
    return Tiny(tic_tac_toe, solution, quick=True, seed=0)


def shown(show, results):
    """Returns the elements that an experiment adds to the page."""
    page = Page("test")
    page.heading("the experiment")
    show(results, page)
    root = ElementTree.Element("div")
    root.extend(section.element for section in page.sections)
    return root


def text(element):
    return " ".join(" ".join(element.itertext()).split())


def column(root, title):
    """Returns the cells below a title, in every table that has it."""
    cells = []
    for table in root.iter("table"):
        titles = [text(cell) for cell in table.iter("th")]
        if title in titles:
            rows = table.findall("tbody/tr")
            cells += [text(row[titles.index(title)]) for row in rows]
    return cells


def test_the_numbers_of_all_games_equal_the_lectures(setup):
    results = matches.count_all(setup)
    assert results["all"] == [131_184, 46_080, 77_904]
    page = shown(matches.show_all, results)
    assert ": the same." in text(page) and "NOT" not in text(page)
    assert column(page, "equal") == ["yes"] * 3
    results["by first move"][0][0] += 1
    assert column(shown(matches.show_all, results), "equal") == ["no", "yes", "yes"]


@pytest.fixture(scope="module")
def short_search(setup):
    """A shorter search, step by step, and its elements."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "BUDGETS", (10, 40))
        patch.setattr(steps, "SIMULATIONS", 12)
        results = steps.compute(setup)
        return results, shown(steps.show, results)


@pytest.mark.slow
def test_steps_take_the_moves_of_the_search(short_search):
    """The scores shown are those by which the search chose."""
    results, _ = short_search
    assert [step[0] for step in results["steps"]] == [1, 6, 12]
    for _, before, after, path, _ in results["steps"]:
        for i in path[1:]:
            scores = steps.ucb1(before, after.parents[i])[2]
            assert scores[after.action_from_parent[i]] == scores.max()
    first, all_tried, last = (steps.ucb1(step[1], 0)[2] for step in results["steps"])
    assert set(first) == {-np.inf, np.inf}
    assert np.isfinite([all_tried.max(), last.max()]).all()
    visits, means, _ = steps.ucb1(results["steps"][-1][2], 0)
    np.testing.assert_array_equal(visits, results["small"].visit_counts[0])
    np.testing.assert_allclose(means, results["small"].q_values[0])


@pytest.mark.slow
def test_steps_show_the_random_games_of_the_search(short_search, tic_tac_toe):
    for _, _, after, path, states in short_search[0]["steps"]:
        leaf = jax.tree.map(lambda leaf: leaf[path[-1]], after.embeddings)
        np.testing.assert_array_equal(states[0].board, leaf.board)
        assert [bool(state.over) for state in states] == [False] * (len(states) - 1) + [True]
        for old, new in itertools.pairwise(states):
            assert (old.board != new.board).sum() == 1
        stones = states[-1].board[LINES].sum(axis=1)
        winner = 1 * (3 in stones) - (-3 in stones)
        value = winner * (1 - 2 * int(leaf.player)) if len(states) > 1 else 0
        assert after.raw_values[path[-1]] == value


def test_a_position_always_has_the_same_random_game(tic_tac_toe, some_states):
    key, evaluate = jax.random.key(3), steps.repeatable_rollout(tic_tac_toe)
    _, values = evaluate(key, jax.random.key(0), some_states)
    _, again = evaluate(key, jax.random.key(1), some_states)
    np.testing.assert_array_equal(values, again)
    _, others = evaluate(jax.random.key(4), None, some_states)
    assert (np.asarray(values) != np.asarray(others)).any()
    one = jax.tree.map(lambda leaf: leaf[:1], some_states)
    keys = jax.vmap(lambda state: steps._key_of(key, state))(one)
    assert values[0] == rollout(tic_tac_toe, keys, one)[0]


@pytest.mark.slow
def test_steps_have_named_phases_and_trees(short_search):
    words = text(short_search[1])
    for phase in ("1. Selection", "2. Expansion", "3. Rollout", "4. Back-propagation"):
        assert words.count(phase) == 3, phase
    assert (
        column(short_search[1], "UCB1")[:5] == ["∞"] * 5
        and column(short_search[1], "bonus")[:5] == [""] * 5
    )
    trees = [e for e in short_search[1].iter("svg") if "positions" in (e.get("aria-label") or "")]
    roots = [tree.find("g/title").text for tree in trees]
    assert [title.split(", ")[1] for title in roots] == ["13 visits", "11 visits", "41 visits"]


def test_a_curve_is_u_shaped_only_if_both_ends_are_significantly_higher():
    rows = [
        ((0.5, 0.2, 0.5), "yes: both ends lose"),
        ((0.5, 0.2, 0.25), "no: only too little exploration loses"),
        ((0.25, 0.2, 0.5), "no: only too much exploration loses"),
        ((0.25, 0.2, 0.25), "no: neither end loses"),
        ((0.2, 0.5, 0.6), "no: only too much exploration loses"),
    ]
    for estimates, verdict in rows:
        lost = [Interval(x, x - 0.1, x + 0.1) for x in estimates]
        constant, interval, answer = exploration._find_u([0, 1, 10], lost).values()
        assert answer == f"{verdict} significantly more"
        assert constant == f"{(0, 1, 10)[int(np.argmin(estimates))]:.2f}"
        assert interval.startswith("0.200 [")


def test_flat_curves_are_not_called_u_shaped():
    flat = {"moves in use": 5.0, "mean depth": 2.0, "random": [90, 0, 10], "minimax": [0, 50, 50]}
    rows = [{"simulations": 10, "constant": c} | flat for c in (0.0, 1.0, 10.0)]
    page = shown(exploration.show_constant, {"rows": rows, "games": 100})
    assert column(page, "U-shaped?") == ["no: neither end loses significantly more"] * 2
    assert "is U-shaped" not in text(page)
    for row in (rows[0], rows[2]):
        row["random"] = [50, 0, 50]
    page = shown(exploration.show_constant, {"rows": rows, "games": 100})
    assert [answer[:4] for answer in column(page, "U-shaped?")] == ["yes:", "no: "]
    assert column(page, "points lost with it")[0].startswith("0.100 [")


def test_a_missing_verdict_has_a_reason():
    row = {"first": "a", "second": "b", "lecture": None, "counts": [1, 2, 3], "distinct": 6}
    page = shown(matches.show_matches, [row | {"p-value": None}])
    assert column(page, "compatible") == ["– no count to compare with"]
    outcomes = np.ones((375, 4), np.int8)
    series = learning.SERIES[1]._replace(lecture=(375, 0, 0))
    page = shown(learning.show, [learning._summarize(series, "last", outcomes)])
    assert column(page, "compatible") == ["– a range needs 100 learners, not 4"]
    outcomes = np.ones((375, 100), np.int8)
    page = shown(learning.show, [learning._summarize(series, "last", outcomes)])
    assert column(page, "compatible") == ["yes"]


def test_outcomes_are_those_of_the_first_player(setup):
    """Search beats random moves from both seats."""
    for first, second, sign in (("MCTS(10)", "random", 1), ("random", "MCTS(10)", -1)):
        games = matches._play(setup, first, second, 64, jax.random.key(0))
        assert sign * games.outcomes.mean() > 0.4


def test_a_table_plays_the_moves_of_its_agent(tic_tac_toe, solution):
    agent = perfect_agent(tic_tac_toe, solution)
    table = tabulated(tic_tac_toe, solution, agent)
    assert (table.name, table.deterministic) == (agent.name, True)
    order = np.random.default_rng(0).permutation(len(solution.decisions))
    states = jax.tree.map(lambda leaf: leaf[order], solution.decision_states)
    key = jax.random.key(0)
    actual, expected = table.act(None, key, states), agent.act(None, key, states)
    np.testing.assert_array_equal(actual.action, expected.action)
    np.testing.assert_allclose(actual.weights, expected.weights, atol=1e-6)


def test_players_share_programs():
    assert classic(10).act is classic(500, 0.1).act
    assert learner(10).learn is learner(10).learn


def test_the_crossing_is_where_the_learner_stays_ahead():
    behind_then_ahead = np.where(np.arange(200) < 60, -0.5, 0.5)
    assert 64 <= learning._crossing(behind_then_ahead) <= 66
    assert learning._crossing(np.full(100, 0.2)) == 1
    assert learning._crossing(np.full(100, -0.2)) is None


def test_a_series_is_summarized_game_by_game():
    outcomes = np.array([[1, -1], [0, -1], [1, 1]], np.int8)  # Three games of two learners.
    series = learning.Series(10, "minimax", 3, (1, 1, 1))
    summary = learning._summarize(series, "last", outcomes)
    assert summary["mean counts"] == [1.5, 0.5, 1.0]
    np.testing.assert_allclose(summary["per game"], [0, -0.5, 1])
    np.testing.assert_allclose(summary["running"], [0, -0.25, (2 / 3 - 1 / 3) / 2])


def test_depths_of_a_tree():
    parents = jnp.array([[-1, 0, 0, 1, 3, -1], [-1, 0, 1, 2, 3, 4]])
    expected = [[0, 1, 1, 2, 3, -1], [0, 1, 2, 3, 4, 5]]
    np.testing.assert_array_equal(exploration._depths(parents), expected)


def test_the_spread_of_visits_and_depth():
    visits = np.array([[5, 5, 0], [10, 0, 0]])
    depths = np.array([[0, 1, 1, 2, -1], [0, 1, 2, 3, 4]])
    shape = exploration._shape(visits, depths)
    assert shape["moves in use"] == pytest.approx((2 + 1) / 2)
    assert shape["mean depth"] == pytest.approx((4 / 3 + 10 / 4) / 2)


def test_the_worked_example_of_ucb1():
    for row in exploration.compute_bound(None)["example"]:
        assert row["ours"] == pytest.approx(row["lecture"], abs=0.006)


def test_an_integral_converges_at_the_rate_of_theory():
    samples = jax.random.uniform(jax.random.key(0), (400, 1000))
    paths = jax.vmap(lambda row: integration.converge(jnp.sin, 0.0, math.pi, row))(samples)
    assert abs(paths[:, -1].mean() - 2) < 5 * integration._DEVIATION / math.sqrt(400_000)
    for n in (10, 100, 1000):
        theory = integration._DEVIATION / math.sqrt(n)
        assert paths[:, n - 1].std() == pytest.approx(theory, rel=0.15)
    line, corners = (lambda x: 3 * x, 1.0, 2.0), jnp.array([0.0, 1.0])
    np.testing.assert_allclose(integration.converge(*line, corners), [3.0, 4.5])
    assert integration.integrate(*line, corners) == 4.5


def test_blunders_of_a_search_are_counted_in_every_position(setup):
    right = np.argmax(setup.solution.optimal[setup.solution.decisions], axis=1)
    assert int(network._count(setup, right)) == 0
    legal = setup.solution.legal[setup.solution.decisions]
    wrong = np.argmax(legal & ~setup.solution.optimal[setup.solution.decisions], axis=1)
    bad = (legal & ~setup.solution.optimal[setup.solution.decisions]).any(axis=1)
    assert int(network._count(setup, np.where(bad, wrong, right))) == bad.sum()


def test_text_on_the_page_is_escaped(tmp_path):
    page = Page("<b>title</b>")
    page.heading("<i>")
    page.text("a < b & c")
    page.table([{"<th>": "<td>"}, {"<th>": "no"}])
    content = page.write(tmp_path).read_text()
    body = content[content.index("<main") : content.index("</main>")]
    assert "<i>" not in body and "&lt;i&gt;" in body
    assert "a &lt; b &amp; c" in body and "<b>" not in body and "&lt;td&gt;" in body
    assert body.count("var(--az-bad)") == 1


_READ = """() => {
    const fill = (query) => getComputedStyle(document.querySelector(query)).fill;
    const sizes = [...document.querySelectorAll("svg text")].map((text) =>
        parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a);
    const roots = [...document.querySelectorAll("svg[aria-label*=positions]")].map((tree) =>
        tree.querySelector("g").getBoundingClientRect().right);
    return {
        width: document.documentElement.scrollWidth, smallest: Math.min(...sizes),
        root: Math.max(...roots), page: getComputedStyle(document.body).backgroundColor,
        tree: fill("svg[aria-label*=positions] > rect"), board: fill("svg svg .az-paper"),
        ink: fill("svg[aria-label*=positions] > text"),
    };
}"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_is_legible_in_light_and_dark_and_on_a_phone(
    width, short_search, browser, barriers, errors, tmp_path
):
    page = Page("The lecture")
    page.heading("A search")
    page.add(short_search[1])
    exploration.show_bound(exploration.compute_bound(None), page)
    path, seen = page.write(tmp_path), {}
    for scheme in ("light", "dark"):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        shown = context.new_page()
        messages = errors(shown)
        shown.goto(path.as_uri())
        seen[scheme] = shown.evaluate(_READ)
        assert messages == [] and barriers(shown) == []
        context.close()
        assert seen[scheme]["width"] == width and seen[scheme]["smallest"] >= 9
        assert seen[scheme]["root"] <= width
        assert seen[scheme]["page"] == seen[scheme]["tree"] == seen[scheme]["board"]
    assert seen["light"]["page"] != seen["dark"]["page"]
    assert seen["light"]["ink"] != seen["dark"]["ink"]


def some_experiments(options):
    def count(setup):
        setup.advance(1)
        return matches.count_all(setup)

    return (
        Experiment("All games", count, matches.show_all),
        Experiment("The bound", exploration.compute_bound, exploration.show_bound),
    )


def test_the_program_writes_one_page_with_its_pictures(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(program, "_experiments", some_experiments)
    out = tmp_path / "new" / "lecture"
    assert program.main(["--out", str(out), "--quick"]) == 0
    assert str(out / "index.html") in capsys.readouterr().out
    assert sorted(path.name for path in out.iterdir()) == ["index.html", "results.json"]
    page = (out / "index.html").read_text()
    assert page.count("<h2 ") == 3 and page.count('class="az-chart"') == 1 and "quick" in page
    assert "<img" not in page and "src=" not in page[: page.index("<script")]
    results = json.loads((out / "results.json").read_text())
    assert sum(results["All games"]["all"]) == 255_168


def test_a_failing_experiment_ends_the_program(tmp_path, monkeypatch):
    def fail(setup):
        raise RuntimeError("broken")

    monkeypatch.setattr(program, "_experiments", lambda options: (Experiment("x", fail, print),))
    with pytest.raises(RuntimeError, match="broken"):
        program.main(["--out", str(tmp_path / "out")])
    assert not list((tmp_path / "out").iterdir())


def test_invalid_options_give_one_error_line(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    rows = [
        ("", "--out"),
        ("--out file/below", "file"),
        ("--out new --seed -1", "--seed is -1: use 0 to"),
        ("--out new --run-dir none", "is not a run directory"),
    ]
    check_program(program.main, rows, capfd)
    assert not (tmp_path / "new").exists()
