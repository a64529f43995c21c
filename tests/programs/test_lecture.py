"""The lecture's experiments: their arithmetic, their page, and the program around them."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.agents import perfect_agent
from experiments.lecture import __main__ as program
from experiments.lecture import exploration, integration, learning, matches, network
from experiments.lecture.page import Page
from experiments.lecture.setup import Experiment, Setup, classic, learner, tabulated


class Tiny(Setup):
    """Even less of everything than a quick run."""

    batch_size = 32

    def choose(self, full, quick):
        return min(quick, 32) if isinstance(quick, int) else quick


@pytest.fixture(scope="module")
def setup(tic_tac_toe, solution):
    return Tiny(tic_tac_toe, solution, quick=True, seed=0)


def test_all_games_are_the_lectures(setup):
    results = matches.count_all(setup)
    assert results["all"] == [131_184, 46_080, 77_904]
    page = Page("test")
    matches.show_all(results, page)
    page.heading("that is all")
    assert ": the same." in "".join(page._blocks) and "NOT" not in "".join(page._blocks)
    results["by first move"][0][0] += 1
    page = Page("test")
    matches.show_all(results, page)
    assert 'class="no"' in "".join(page._blocks)


def test_outcomes_count_for_the_player_named_first(setup):
    """Search beats chance, whichever of the two is named first."""
    for first, second, sign in (("MCTS(10)", "random", 1), ("random", "MCTS(10)", -1)):
        games = matches._play(setup, first, second, 64, jax.random.key(0))
        assert sign * games.outcomes.mean() > 0.4


def test_a_table_plays_the_same_everywhere(tic_tac_toe, solution):
    agent = perfect_agent(tic_tac_toe, solution)
    table = tabulated(tic_tac_toe, solution, agent)
    assert (table.name, table.deterministic) == (agent.name, True)
    order = np.random.default_rng(0).permutation(len(solution.decisions))
    states = jax.tree.map(lambda leaf: leaf[order], solution.decision_states)
    key = jax.random.key(0)
    found, expected = table.act(None, key, states), agent.act(None, key, states)
    np.testing.assert_array_equal(found.action, expected.action)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-6)


def test_players_share_programs():
    assert classic(10).act is classic(500, 0.1).act
    assert learner(10).learn is learner(10).learn


def test_the_crossing_is_where_the_learner_gets_ahead_for_good():
    behind_then_ahead = np.where(np.arange(200) < 60, -0.5, 0.5)
    assert 64 <= learning._crossing(behind_then_ahead) <= 66
    assert learning._crossing(np.full(100, 0.2)) == 1
    assert learning._crossing(np.full(100, -0.2)) is None


def test_a_series_is_summarised_game_by_game():
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
    assert shape["largest share"] == pytest.approx(0.75)
    assert shape["mean depth"] == pytest.approx((4 / 3 + 10 / 4) / 2)
    assert shape["deepest"] == pytest.approx(3)


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
    page.heading("<script>")
    page.text("a < b & c")
    page.table(["<th>"], [["<td>"], ["no"]])
    content = page.write(tmp_path).read_text()
    body = content[content.index("<body>") :]
    assert "<script>" not in body and "&lt;script&gt;" in body
    assert "a &lt; b &amp; c" in body and "<b>" not in body and "&lt;td&gt;" in body
    assert body.count('class="no"') == 1


def some_experiments(options):
    def count(setup):
        setup.advance(1)
        return matches.count_all(setup)

    return (
        Experiment("All games", count, matches.show_all),
        Experiment("The bound", exploration.compute_bound, exploration.show_bound),
    )


def test_the_program_writes_a_page_with_its_pictures(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(program, "_experiments", some_experiments)
    out = tmp_path / "new" / "lecture"
    assert program.main(["--out", str(out), "--quick"]) == 0
    assert str(out / "index.html") in capsys.readouterr().out
    assert sorted(path.name for path in out.iterdir()) == [
        "bound.png", "index.html", "results.json",
    ]  # fmt: skip
    page = (out / "index.html").read_text()
    assert page.count("<h2>") == 2 and 'src="bound.png"' in page and "quick" in page
    results = json.loads((out / "results.json").read_text())
    assert sum(results["All games"]["all"]) == 255_168


def test_a_failing_experiment_ends_the_program(tmp_path, monkeypatch):
    def fail(setup):
        raise RuntimeError("broken")

    monkeypatch.setattr(program, "_experiments", lambda options: (Experiment("x", fail, print),))
    with pytest.raises(RuntimeError, match="broken"):
        program.main(["--out", str(tmp_path / "out")])
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "--out"),
        (["--out", "{tmp}/file/below"], "file"),
        (["--out", "{tmp}/new", "--seed", "-1"], "--seed is -1: use 0 to"),
        (["--out", "{tmp}/new", "--run-dir", "{tmp}/none"], "is not a run directory"),
    ],
)
def test_nonsense_is_refused_in_one_sentence(arguments, sentence, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert program.main([argument.format(tmp=tmp_path) for argument in arguments]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1 and sentence in said[0] and said[0].startswith("error: ")
    assert not (tmp_path / "new").exists()
