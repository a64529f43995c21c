"""Reports of training runs: charts, games, the page, matches and the animation."""

import dataclasses
import json
import os
import re
import shutil
from html.parser import HTMLParser
from types import SimpleNamespace
from xml.etree import ElementTree

import jax
import numpy as np
import pytest

import azjax
import misere_pile
from azjax import program, runs, training
from azjax.cli import console, report, train
from azjax.drawing import signed
from azjax.games import connect_four, solver
from azjax.games.base import init_batch
from azjax.games.square import cell_names
from azjax.players.arena import Match, Tally
from azjax.players.ratings import Interval
from azjax.proof import certificate as certificates
from azjax.proof.verify import verify
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.runs.player import Player
from azjax.training import metrics
from azjax.viz import animation, atlas, callbacks, matches
from azjax.viz.chart import interval_chart, line_chart, side_by_side, standalone
from azjax.viz.games import Move, analyze, finish_game, games_strips, games_table, sample_games
from azjax.viz.page import style
from azjax.viz.report import write_report
from experiments import pictures
from javascript import OVERRIDDEN
from nim import NIM
from run_directories import make_run

CONFIG = presets.smoke(presets.get("default"))
WIN_OF_X = [0, 3, 1, 4, 2]
WIN_OF_O = [0, 3, 1, 4, 8, 5]
DRAW = [0, 1, 2, 4, 3, 5, 7, 6, 8]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of a few small iterations; its certificate does not run the searches."""
    run_dir = tmp_path_factory.mktemp("runs") / '<b>&"'
    with pytest.MonkeyPatch.context() as patch:
        raw = lambda parts, config, params: certificates.network_policy(parts, params)  # noqa: E731
        patch.setattr(certificates, "search_policy", raw)
        assert train.main(["--smoke", "--run-dir", str(run_dir)]) == 0
    return run_dir


@pytest.fixture(scope="module")
def player(tmp_path_factory):
    return azjax.load(make_run(tmp_path_factory.mktemp("untrained") / "run", CONFIG))


@pytest.fixture(scope="module")
def written(run):
    return Page((run / "report.html").read_text(encoding="utf-8"))


class Page(HTMLParser):
    """The content that a browser shows: text outside of scripts and styles, and the tags."""

    def __init__(self, content):
        super().__init__()
        self.content, self.tags, self.words, self._inside = content, [], [], None
        self.feed(content)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag):
        self._inside = None

    def handle_data(self, data):
        if self._inside not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


# Charts.


def paths(chart):
    return [e.get("d") for e in chart.iter("path")]


def texts(chart):
    return ["".join(element.itertext()).strip() for element in chart.iter("text")]


def heights(d):
    return [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)", d)]


def test_a_chart_has_lines_names_ticks_and_numbers():
    chart = line_chart(
        "Loss <now>", [1, 2, 3], {"a & b": [3.0, 2, 0], "c": [1.0, 1, 1]}, unit="nats"
    )
    assert len(paths(chart)) == 2
    assert {"a & b", "c", "0", "3", "iteration"} <= set(texts(chart))
    titles = [element.text for element in chart.iter("title")]
    assert "a & b, iteration 2: 2 nats" in titles and len(titles) == 6
    markup = ElementTree.tostring(chart, encoding="unicode")
    assert "Loss &lt;now&gt;" in markup and "a &amp; b" in markup
    assert heights(paths(chart)[0]) == sorted(heights(paths(chart)[0]))  # It falls.


def test_a_logarithmic_chart_includes_0():
    chart = line_chart("Blunders", [1, 2, 3, 4], {"blunders": [2000, 99, 9, 0]}, log=True)
    assert {"0", "1", "10", "100", "1,000", "2,000"} <= set(texts(chart))
    places = heights(paths(chart)[0])
    assert places[2] - places[1] == pytest.approx(places[1] - places[0], rel=0.35)
    with pytest.raises(ValueError, match="no room for negative numbers"):
        line_chart("Blunders", [1, 2], {"blunders": [-1, 2]}, log=True)


@pytest.mark.parametrize(
    ("xs", "ys", "points"),
    [
        ([1], [5.0], 1),
        ([1, 2], [0, 0], 2),
        ([1, 2], [7, 7], 2),
        ([1, 2, 3], [None, 2, float("nan")], 1),
        ([1, 2], [-2.5, 3.5], 2),
        ([10, 5000], [1e6, 3e6], 2),
        ([1, 2], [1e-7, 2e-7], 2),
    ],
)
@pytest.mark.parametrize("log", [False, True])
def test_charts_of_any_numbers_stay_inside(xs, ys, points, log):
    if log and any(y and y < 0 for y in ys):
        return
    chart = line_chart("Any", xs, {"y": ys}, log=log)
    [d] = paths(chart)
    assert len(heights(d)) == points
    assert all(39 <= y <= 205 for y in heights(d))


def test_a_chart_may_have_a_logarithmic_axis_and_ranges():
    xs, lines = [0, 1, 3, 10], {"y": [1.0, 2, 2, 1], "z": [0, 0, 0, 0]}
    bands = {"y": ([0.5, 1, 1, 0.5], [1.5, 4, 2.5, 1.5])}
    chart = line_chart("Any", xs, lines, log_x=True, x_label="C", bands=bands)
    assert {"0", "1", "2", "5", "10", "C", "4"} <= set(texts(chart))
    band, line, _ = paths(chart)
    assert band.endswith("Z") and len(heights(band)) == 2 * len(heights(line))
    upper, lower = heights(band)[4:][::-1], heights(band)[:4]
    assert all(low > y > high for low, y, high in zip(lower, heights(line), upper, strict=True))
    places = [float(x) for x in re.findall(r"[ML]([\d.]+) ", line)]
    assert places[1] - places[0] == pytest.approx(places[2] - places[1], abs=0.2)  # log(1 + x)
    at = {"".join(e.itertext()): float(e.get("x")) for e in chart.iter("text")}
    assert at["C"] - at["10"] > 20  # The axis name is right of its last number.


def test_each_chart_scrolls_if_it_would_be_too_small_to_read():
    one = line_chart("Any", [1, 2], {"y": [1, 2]})
    grid = side_by_side([one, one])
    assert [box.get("class") for box in grid] == ["az-scroll"] * 2
    assert {box.get("tabindex") for box in grid} == {"0"}  # The keyboard also scrolls it.
    least = int(re.findall(r"min-width: (\d+)px", one.get("style", ""))[0])
    smallest = min(float(e.get("font-size", 0)) for e in one.iter("text"))
    assert smallest * least / float(one.get("width", 0)) >= 9


@pytest.mark.parametrize(("width", "fits"), [(390, False), (1280, True)])
def test_lines_of_a_report_have_their_names_on_a_phone(run, browser, width, fits):
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto((run / "report.html").as_uri())
    assert page.evaluate(OVERRIDDEN) == []
    inside = """(box, query) => [...box.querySelectorAll(query)].filter((e) => {
      const [inner, outer] = [e, box].map((x) => x.getBoundingClientRect());
      return inner.width && inner.left >= outer.left && inner.right <= outer.right;
    }).map((e) => e.textContent)"""
    boxes = page.locator(".az-charts .az-scroll").all()
    assert len(boxes) == 4
    for box in boxes:
        names = box.locator(".az-name").all_text_contents()
        axis = box.locator(".az-axis-name").text_content()
        assert box.evaluate(inside, ".az-name") == (names if fits else []) and names
        legend = [] if fits else [*names, f"horizontal: {axis}"]
        assert box.evaluate(inside, ".az-names li") == legend
    page.close()


def test_labels_of_lines_that_end_together_do_not_overlap():
    chart = line_chart("Any", [1, 2], {"a": [1, 0], "b": [2, 0], "c": [3, 0]})
    ends = sorted(float(e.get("y")) for e in chart.iter("text") if e.text in ("a", "b", "c"))
    assert min(np.diff(ends)) >= 14.9


def test_a_standalone_chart_has_the_colors_of_the_pages_in_both_themes():
    text = str(standalone(line_chart("Any", [1, 2], {"a": [1, 0]})))
    assert "background" not in text and "min-width" not in text
    light, dark = text.split("@media (prefers-color-scheme: dark)")
    assert "color: #24292f" in light and "color: #e6e8eb" in dark
    styles = style()
    for name in ("x", "o", "selection", "expansion", "series-5", "series-6"):
        number = re.search(rf"--az-(series-\d): var\(--az-{name}\)", styles)
        expected = re.search(rf"--az-{name}: light-dark\(#\w+, (#\w+)\)", styles)[1]
        assert f"--az-{number[1] if number else name}: {expected}" in dark.lower()


def test_a_chart_of_intervals_is_to_scale():
    intervals = {"a & b": Interval(10.0, -20.0, 50.0), "c": Interval(-95.5, -100.0, -91.0)}
    chart = interval_chart("Elo", intervals)
    at = {"".join(e.itertext()): float(e.get("x")) for e in chart.iter("text")}
    assert {"a & b", "c", "-100", "-50", "0", "50"} <= set(at)
    places = np.array([
        [float(line.get("x1")), float(dot.get("cx")), float(line.get("x2"))]
        for line, dot in zip(
            [e for e in chart.iter("line") if e.get("y1") == e.get("y2")],
            chart.iter("circle"),
            strict=True,
        )
    ])  # fmt: skip
    values = (places - at["0"]) / (at["50"] - at["0"]) * 50
    np.testing.assert_allclose(values, [[-20, 10, 50], [-100, -95.5, -91]], atol=0.1)
    titles = [e.text for e in chart.iter("title")]
    assert titles == ["a & b: 10 [-20, 50]", "c: -95.5 [-100, -91]"]
    with pytest.raises(ValueError, match="'Elo' has no intervals: give one or more"):
        interval_chart("Elo", {})


def test_lines_of_another_length_raise():
    with pytest.raises(ValueError, match="'y' has 1 numbers for 2 points"):
        line_chart("Any", [1, 2], {"y": [1]})


# Games.


def replay(game, actions):
    """Plays a game by hand; returns its moves with outcomes computed from the rewards."""
    state, moves = game.init(), []
    probabilities = np.full(9, 1 / 9, np.float32)
    for action in actions:
        after, reward = game.step(state, action)
        move = Move(state, action, probabilities, 0.25, int(reward))
        moves.append((int(game.player(state)), move))
        state = after
    assert bool(game.is_over(state))
    return finish_game(moves)


@pytest.mark.parametrize(
    ("actions", "outcomes"),
    [
        (WIN_OF_X, [1, -1, 1, -1, 1]),
        (WIN_OF_O, [-1, 1, -1, 1, -1, 1]),
        (DRAW, [0] * 9),
    ],
)
def test_outcomes_are_for_the_player_who_moves(actions, outcomes, tic_tac_toe):
    assert [move.outcome for move in replay(tic_tac_toe, actions)] == outcomes


def test_outcomes_if_a_player_moves_twice_and_the_mover_loses():
    moves = [(0, 0), (0, 0), (1, 0), (0, -1)]  # Who moves, and the reward.
    games = finish_game([(player, Move(None, 0, np.ones(1), 0.0, r)) for player, r in moves])
    assert [move.outcome for move in games] == [-1, -1, 1, -1]


def test_a_table_shows_the_board_before_each_move(tic_tac_toe):
    table = games_table(tic_tac_toe, [replay(tic_tac_toe, WIN_OF_X), replay(tic_tac_toe, WIN_OF_O)])
    first, second = table.element.findall("tbody")
    titles = [body.find("tr/th").text for body in (first, second)]
    assert titles == [
        "Game 1: the first player wins after 5 moves",
        "Game 2: the second player wins after 6 moves",
    ]
    rows = [[cell.text for cell in row.findall("td")] for row in first.findall("tr")[1:]]
    assert [row[0] for row in rows] == ["1", "2", "3", "4", "5"]
    assert [row[4] for row in rows] == ["a1", "a2", "b1", "b2", "c1"]
    assert [row[5] for row in rows] == ["+1", "−1", "+1", "−1", "+1"]
    assert rows[0][2] == f"[{', '.join(['0.11'] * 9)}]" and rows[0][3] == "+0.25"
    labels = [svg.get("aria-label") for svg in first.iter("svg")]
    assert labels[:3] == ["board ... ... ...", "board X.. ... ...", "board X.. O.. ..."]
    marked = [
        len([e for e in svg.iter() if e.get("class") == "az-last"]) for svg in first.iter("svg")
    ]
    assert marked == [0, 1, 1, 1, 1]
    shown = table._repr_html_()
    assert shown.startswith('<table class="az-games">')
    assert shown.count("<img") == 5 + 6 and "<svg" not in shown  # Notebooks remove bare SVG.
    assert len(list(table.element.iter("svg"))) == 5 + 6


def test_a_strip_shows_each_position_with_its_move_and_value(tic_tac_toe):
    both = [replay(tic_tac_toe, WIN_OF_X), replay(tic_tac_toe, WIN_OF_O)]
    first, second = games_strips(tic_tac_toe, both).findall("details")
    assert (first.get("open"), second.get("open")) == ("open", None)  # One at a time.
    assert first.get("name") == second.get("name") is not None
    titles = [game.findtext("summary") for game in (first, second)]
    assert titles[1] == "Game 2: the second player wins after 6 moves"
    captions = [caption.text for caption in first.iter("figcaption")]
    assert captions[:2] == ["1: a1 (11%), +0.25", "2: a2 (11%), +0.25"] and len(captions) == 5
    boards = [svg.get("aria-label") for svg in first.iter("svg")]
    assert boards[:3] == ["board ... ... ...", "board X.. ... ...", "board X.. O.. ..."]


def test_sampled_games_are_games(tic_tac_toe, player):
    games = sample_games(player, jax.random.key(1), 5)
    assert len(games) == 5
    again = sample_games(player, jax.random.key(1), 5)
    for moves, same in zip(games, again, strict=True):
        actions = [move.action for move in moves]
        assert actions == [move.action for move in same]
        by_hand = replay(tic_tac_toe, actions)
        assert [m.outcome for m in moves] == [m.outcome for m in by_hand]
        for move, expected in zip(moves, by_hand, strict=True):
            np.testing.assert_array_equal(move.state.board, expected.state.board)
            assert move.probabilities.sum() == pytest.approx(1, abs=1e-5)
            assert not move.probabilities[np.asarray(expected.state.board) != 0].any()
            assert -1 <= move.value <= 1
        assert moves[-1].value == moves[-1].outcome  # The move ends the game.
    assert len({tuple(m.action for m in moves) for moves in games}) > 1  # They explore.


def test_sampling_zero_games_raises(player):
    with pytest.raises(ValueError, match="num_games is 0: use 1 or more"):
        sample_games(player, jax.random.key(0), 0)


def test_a_sampled_game_that_does_not_end_raises(player):
    game = player.game._replace(max_plies=4)
    player = dataclasses.replace(player, parts=player.parts._replace(game=game))
    with pytest.raises(ValueError, match="tic_tac_toe lasts longer than its max_plies, 4"):
        sample_games(player, jax.random.key(0), 1)


def test_analyze_equals_the_players_search(player, tic_tac_toe):
    states = init_batch(tic_tac_toe, 4)
    result, expected = analyze(player, states), player.search(jax.random.key(5), states)
    np.testing.assert_array_equal(result.visit_counts, expected.visit_counts)
    np.testing.assert_allclose(result.value, expected.value, atol=1e-6)


# Reports.


@pytest.mark.slow
def test_the_value_shown_is_that_of_the_move_played(run, written, tic_tac_toe):
    result = analyze(azjax.load(run), init_batch(tic_tac_toe, 1))
    action = int(result.action[0])
    expected = signed(float(result.q_values[0, action]))
    assert signed(float(result.value[0])) != expected  # The test needs them to differ.
    shown = re.search(r"Start: .*?; the search plays (\S+) with Q (\S+)", written.text)
    assert shown.groups() == (cell_names(3, 3)[action], expected)


def test_a_run_writes_a_snapshot_of_every_iteration(run):
    iterations, snapshots = atlas.load_snapshots(run)
    assert iterations.tolist() == [0, 1, 2, 3]
    records = metrics.read_records(run / "metrics.jsonl")
    assert snapshots.blunders.sum(axis=1)[1:].tolist() == [r["blunders"] for r in records]
    for path in (run / "snapshots").iterdir():
        assert path.stat().st_size < 8000


def test_the_report_shows_everything(run, written):
    for words in (
        *["Not proved: this player can be beaten", "decision states checked", "4,520"],
        *["Training", "Training loss", "Errors of the network alone, all positions"],
        *["losing lines as first", "losing lines as second", "Self-play speed"],
        *["Mean absolute error of the value, all positions"],
        *["The whole game, iteration by iteration"],
        *["First moves", "Start", "After move a1", "After move b1", "After move b2"],
        *["Games of self-play", "Game 1:", "Game 3:"],
        *["Configuration", "learner.learning_rate", "search.num_simulations"],
    ):
        assert words in written.text, words
    headings = re.findall(r"<h2.*?>(.*?)</h2>", written.content)
    assert headings[:2] == ["Training", "Not proved: this player can be beaten"]
    assert "azjax explain" not in written.text  # No section consists of a command.
    kinds = [attributes.get("data-kind") for _, attributes in written.tags]
    assert kinds.count("atlas") == 1
    assert [tag for tag, _ in written.tags].count("table") == 2
    charts = [a for tag, a in written.tags if tag == "svg" and a.get("class") == "az-chart"]
    assert len(charts) == 4
    [data] = re.findall(r'id="azjax-data">(.*?)</script>', written.content, re.DOTALL)
    [content] = json.loads(data)
    assert [frame["iteration"] for frame in content["frames"]] == [0, 1, 2, 3]


def test_the_report_has_no_external_resources(written):
    addresses = [a[k] for _, a in written.tags for k in ("src", "href") if a.get(k)]
    assert set(addresses) <= {"data:,"}
    assert len(written.content) < 900_000


def test_names_are_escaped(written):
    assert '<b>&": tic-tac-toe' in written.text
    assert "b" not in [tag for tag, _ in written.tags]


def test_a_report_is_deterministic(run, written, capfd):
    assert report.main(["--run-dir", str(run)]) == 0
    out, err = capfd.readouterr()
    assert (out, err) == (f"report: {run / 'report.html'}\n", "")
    assert (run / "report.html").read_text(encoding="utf-8") == written.content


def test_a_run_without_records_has_a_report(player, solution, tmp_path):
    spare = tmp_path / "tic_tac_toe"
    runs.create_run(spare, CONFIG)
    (spare / "explain.html").touch()
    written = Page(write_report(spare, player, solution).read_text(encoding="utf-8"))
    headings = re.findall(r"<h2.*?>(.*?)</h2>", written.content)
    assert "First moves" in headings and "Training" not in headings
    assert not [heading for heading in headings if "whole game" in heading or "proved" in heading]
    assert [attributes["href"] for tag, attributes in written.tags if tag == "a"] == [
        "explain.html"
    ]
    assert "<title>Training report of tic-tac-toe</title>" in written.content  # Only once.


@pytest.mark.slow
def test_a_report_of_a_game_with_names_and_without_symmetries(tmp_path):
    """Its moves have these names everywhere, and there are no classes of positions."""
    words = ["take one", "take two", "take three"]
    game = NIM._replace(display=NIM.display._replace(name_actions=lambda state: words))
    network = dataclasses.replace(CONFIG.network, encoding="unary")
    config = dataclasses.replace(CONFIG, game="nim.py:make", network=network)
    run_dir = make_run(tmp_path / "nim", config, game=game)
    solution = solver.solve(game)
    places = atlas.make_atlas(game, solution)
    logits = np.float32(solution.optimal[solution.decisions])
    verdict = verify(solution, lambda _: (logits, solution.values[solution.decisions]))
    snapshot = atlas.make_snapshot(places, solution, verdict, logits, np.float32(logits[:, 0]))
    atlas.save_snapshot(run_dir, 0, snapshot)
    path = write_report(run_dir, azjax.load(run_dir, game=game), solution)
    written = Page(path.read_text(encoding="utf-8"))
    assert written.text.startswith("Training report of nim Training report of nim The whole game")
    moves = re.findall(r"search plays (.*?) with|After move (.*?):|\d: (\S+ \S+) \(", written.text)
    assert len(moves) > 12 and {"".join(move) for move in moves} == set(words)
    assert not re.search(
        r"up to symmetry|symmetric [a-z]|class(es)? of|explain|counted from", written.text
    )
    [data] = re.findall(r'id="azjax-data">(.*?)</script>', written.content, re.DOTALL)
    assert json.loads(data)[0]["names"] == [words]
    drawn = animation.draw_animation(places, *atlas.load_snapshots(run_dir))
    assert "The dots are all 24" in str(drawn) and "symmetr" not in str(drawn)


@pytest.mark.parametrize("width", [1920, 2560])
def test_a_report_fills_a_wide_screen_and_its_prose_does_not(run, browser, width):
    page = browser.new_page(viewport={"width": width, "height": width * 9 // 16})
    page.goto((run / "report.html").as_uri())
    right = """query => Math.max(...[...document.querySelectorAll(query)].map(
        (e) => e.getBoundingClientRect().right))"""
    for query in (".az-charts .az-chart", ".az-atlas-controls", ".az-facts-columns .az-facts"):
        assert page.evaluate(right, query) > 0.8 * width, query
    assert page.evaluate(right, ".az-intro") < 0.5 * width
    atlas_map, detail = (page.locator(f".az-atlas-{x}").bounding_box() for x in ("map", "detail"))
    assert atlas_map["width"] > 750 and detail["x"] < atlas_map["x"] + atlas_map["width"] + 60
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.close()


OTHERS = {
    "with pictures": connect_four.make(),
    "with text": misere_pile.make()._replace(player=lambda state: state.player.reshape(())),
}


def write_labelled(run_dir, game):
    """Writes three records; the first and the last have errors in labelled positions."""
    errors = {}
    if game.positions:
        errors = dict.fromkeys([f"error/{name}" for name in game.positions().classes], 0.125)
        errors |= {"error": 0.5, "sign_error": 0.25}
    sink = metrics.JsonLines(run_dir / "metrics.jsonl")
    for iteration, some in ((1, errors), (2, {}), (20, errors)):
        sink(metrics.Record(iteration, float(iteration), 9, 9.0, {"loss": 1.0}, errors=some))
    sink.close()


@pytest.mark.slow
@pytest.mark.parametrize("look", OTHERS)
def test_another_game_has_a_report(look, tmp_path):
    """The functions of these games accept one state only, not a batch."""
    game = OTHERS[look]
    config = dataclasses.replace(presets.smoke(presets.get("default")), game=game.name)
    parts = make_parts(config, game)
    state = training.make_state(parts, jax.random.key(0), training.make_mesh(jax.devices()[:1]))
    params = parts.network.fold(state.learner.ema_params)
    runs.create_run(tmp_path / "run", config)
    write_labelled(tmp_path / "run", game)
    path = write_report(tmp_path / "run", Player(parts, params))
    written = Page(path.read_text(encoding="utf-8"))
    charts = [a for tag, a in written.tags if tag == "svg" and a.get("class") == "az-chart"]
    names = {chart["aria-label"] for chart in charts}
    titles = {"Errors of the network alone", "Wrong moves by class"}
    assert titles <= names or game.positions is None
    assert ("wrong value signs, iteration 20: 25 % of labelled positions" in written.text) == (
        game.positions is not None
    )
    assert ("middle-easy, iteration 20: 12.5 % of the class" in written.text) == (
        game.positions is not None
    )
    assert "A blunder is" not in written.text  # The run has no counts of blunders.
    assert "Start:" in written.text and ("After move 0" in written.text) == (
        game is OTHERS["with text"]
    )
    assert "Game 3:" in written.text
    texts = [a for tag, a in written.tags if tag == "text" and a.get("class") == "az-text"]
    assert bool(texts) == (game.display.draw is None)
    assert ("Matches" in written.text) == (game.positions is None and not game.enumerable)


@pytest.mark.slow
def test_a_game_without_ground_truth_has_matches(tmp_path):
    game = OTHERS["with text"]._replace(name="pile", most_positions=None)
    config = dataclasses.replace(presets.smoke(presets.get("default")), game="pile.py:make")
    run_dir = make_run(tmp_path / "run", config, iterations=(1, 5, 9), game=game)
    player = azjax.load(run_dir, game=game)
    text = Page(write_report(run_dir, player).read_text(encoding="utf-8")).text
    assert "alphazero(4) #9 is the newest network" in text
    rows = re.findall(r"(uct\(100\)|alphazero\(4\) #\d) (\d+) (\d+) (\d+) (\d+)% \(", text)
    assert [row[0] for row in rows] == ["uct(100)", "alphazero(4) #1", "alphazero(4) #5"]
    for _, won, drawn, lost, share in rows:
        games = int(won) + int(lost)
        assert games and drawn == "0" and float(share) == round(100 * int(won) / games)
    assert rows[1][1:] == rows[2][1:] and rows[1][1] == rows[1][3]  # The networks are equal.


@pytest.fixture
def unlabelled(tmp_path, monkeypatch):
    """A run with three checkpoints and no ground truth, where two games take 10 seconds."""
    game, clock = misere_pile.make()._replace(most_positions=None), [0.0]

    def play(game, first, second, num_games, key, openings):
        assert num_games == 2 * len(openings.player) == 2
        clock[0] += 10
        return Match(first.name, second.name, Tally(1, 0, 0, 1), Tally(0, 0, 1, 1), True)

    monkeypatch.setattr(matches, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(matches, "play_match", play)
    monkeypatch.setattr(matches, "_AT_ONCE", 1)
    config = dataclasses.replace(CONFIG, game="pile.py:make")
    run_dir = make_run(tmp_path / "run", config, iterations=(1, 5, 9), game=game)
    return run_dir, azjax.load(run_dir, game=game)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    ("seconds", "games", "played"),
    [
        (1000, 64, [8, 8, 8]),  # There are four openings.
        (1000, 4, [4, 4, 4]),
        (60, 64, [4, 4, 4]),  # 20 seconds for each.
        (70, 64, [6, 4, 4]),
        (0, 64, [2, 2, 2]),
        (0, 2, [2, 2, 2]),
    ],
)
def test_matches_end_when_their_time_is_over(seconds, games, played, unlabelled):
    notes = []
    (section,) = matches.matches(*unlabelled, games, seconds, lambda *now: notes.append(now))
    rows = [[cell.text for cell in row] for row in section.element.iter("tr")][1:]
    assert [row[0] for row in rows] == ["uct(100)", "alphazero(4) #1", "alphazero(4) #5"]
    assert [sum(map(int, row[1:4])) for row in rows] == played
    assert [row[1:4] for row in rows] == [[str(n // 2), "0", str(n // 2)] for n in played]
    assert f"at most {games} games against each" in section.intro
    assert f"{seconds} seconds for all matches" in section.intro
    most = min(games, 8)
    begun = [now for now in notes if now[1] == 0]
    assert begun == [(row[0], 0, most) for row in rows]
    assert max(now[1] for now in notes) <= max(played)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("smoke", "most"), [(True, 2), (False, 64)])
def test_a_smoke_run_plays_one_game_from_each_seat(smoke, most, unlabelled, monkeypatch, capsys):
    run_dir, player = unlabelled
    monkeypatch.setattr(callbacks, "make_player", lambda loop: player)
    settings = program._SMOKE if smoke else {}
    page = callbacks.Report(run_dir, None, console.report_progress, console.note, **settings)
    page.on_end(None)
    assert page.path == run_dir / "report.html" and page.failed is None
    out, err = capsys.readouterr()
    assert (out, err) == ("", "writing the report, with games against other players\n")
    page = (run_dir / "report.html").read_text(encoding="utf-8")
    assert f"at most {most} games against each" in page


@pytest.mark.slow
def test_no_report_writes_no_report(tmp_path, monkeypatch):
    monkeypatch.setattr("azjax.viz.report.write_report", None)
    arguments = ["--smoke", "--max-iterations", "1", "--no-report", "--game", "connect_four"]
    assert train.main([*arguments, "--run-dir", str(tmp_path / "run")]) == 0
    assert not (tmp_path / "run" / "report.html").exists()
    assert not (tmp_path / "run" / "snapshots").exists()


@pytest.mark.slow
def test_a_failing_report_does_not_affect_the_run(run, tmp_path, monkeypatch, capfd):
    def fail(*arguments, **settings):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("azjax.viz.report.write_report", fail)
    monkeypatch.setattr(atlas, "save_snapshot", fail)
    copy = shutil.copytree(run, tmp_path / "run")
    (copy / "report.html").unlink()
    assert train.main(["--resume", "--run-dir", str(copy)]) == 0
    err = capfd.readouterr().err
    assert "the report was not written" in err and "No space left on device" in err
    assert "the snapshot of iteration 3 was not written: No space left on device" in err


# Animations.


def test_an_animation_has_every_class_in_every_iteration(
    run, solution, tic_tac_toe, tmp_path, capfd
):
    path = tmp_path / "animation.svg"
    assert report.main(["--run-dir", str(run), "--animation", str(path)]) == 0
    assert f"animation: {path}\n" in capfd.readouterr().out
    assert path.stat().st_size < 100_000
    root = ElementTree.parse(path).getroot()
    iterations, snapshots = atlas.load_snapshots(run)
    places = atlas.make_atlas(tic_tac_toe, solution)
    frames = [g for g in root.iter() if g.get("class") == "az-animation-frame"]
    assert len(frames) == len(iterations) == 4
    for frame, iteration, blunders in zip(frames, iterations, snapshots.blunders, strict=True):
        dots = {e.get("class"): e.get("d").count("M") for e in frame if e.get("d")}
        assert sum(dots.values()) == (places.members > 0).sum()
        assert dots.get("az-animation-ok", 0) == ((blunders == 0) & (places.members > 0)).sum()
        assert (
            dots.get("az-animation-all", 0) == ((blunders == places.members) & (blunders > 0)).sum()
        )
        texts = [e.text for e in frame if e.text]
        assert texts == [f"iteration {iteration}", f"{blunders.sum():,} blunders"]
    delays = [float(g.get("style").split(":")[1].rstrip("s")) for g in frames]
    assert np.diff(delays).tolist() == [1, 1, 1]


def test_an_animation_is_deterministic(run, solution, tic_tac_toe):
    places = atlas.make_atlas(tic_tac_toe, solution)
    drawings = [str(animation.draw_animation(places, *atlas.load_snapshots(run))) for _ in range(2)]
    assert drawings[0] == drawings[1]


def test_an_animation_can_be_read_on_a_phone(run, solution, tic_tac_toe, browser):
    places = atlas.make_atlas(tic_tac_toe, solution)
    page = browser.new_page(viewport={"width": 390, "height": 800}, reduced_motion="reduce")
    page.set_content(
        f"<body style='margin: 16px'>{animation.draw_animation(places, *atlas.load_snapshots(run))}"
    )
    seen = page.locator("svg").evaluate(
        """svg => [svg, ...svg.querySelectorAll("text")].map((e) => {
          const {left, right, top, bottom} = e.getBoundingClientRect();
          return [e.textContent, parseFloat(getComputedStyle(e).fontSize) * svg.getScreenCTM().a,
                  left, 390 - right, top - svg.getBoundingClientRect().top,
                  svg.getBoundingClientRect().bottom - bottom];
        })"""
    )
    assert {"blunder in some, at least half, or all symmetric copies", "iteration 3"} <= {
        text for text, *_ in seen[1:]
    }
    for text, size, *margins in seen[1:]:
        assert size >= 9 and min(margins) >= 0, text
    assert seen[0][2:4] == [16, 16]  # The picture is not cut off.
    page.close()


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        ("--run-dir nothing", ["nothing is not a run directory"]),
        (
            "--animation animation.pdf",
            ["animation.pdf is not an SVG: give a name that ends in .svg"],
        ),
        ("--animation no/animation.svg", ["there is no folder no for no/animation.svg: make it"]),
        ("--frames 3", ["--frames", "--help"]),
    ],
)
def test_invalid_options_raise(arguments, fragments, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert report.main(arguments.split()) == 2
    assert_error(capfd, *fragments)
    assert list(tmp_path.iterdir()) == []


def assert_error(capfd, *fragments):
    out, err = capfd.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1, err
    for fragment in fragments:
        assert fragment in err


def test_an_animation_needs_snapshots(run, tmp_path, capfd):
    copy = shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("snapshots"))
    assert (
        report.main(["--run-dir", str(copy), "--animation", str(tmp_path / "animation.svg")]) == 2
    )
    assert_error(capfd, f"{copy} holds no snapshots")


def test_an_animation_needs_a_game_that_can_be_enumerated(tmp_path, capfd):
    run_dir = make_run(tmp_path / "run", dataclasses.replace(CONFIG, game="connect_four"))
    assert (
        report.main(["--run-dir", str(run_dir), "--animation", str(tmp_path / "animation.svg")])
        == 2
    )
    assert_error(capfd, "connect_four has too many positions to enumerate")


# The pictures of the README and the guide.


@pytest.mark.slow
def test_the_pictures_are_of_one_run(run, tmp_path, capfd):
    """The test needs a browser; see the fixture `browser`."""
    if "AZJAX_REQUIRE_BROWSER" not in os.environ and not shutil.which("chromium"):
        pytest.skip("there is no Chromium here")
    assert pictures.main(["--run-dir", str(run), "--out", str(tmp_path)]) == 0
    assert f"pictures of {run}: {tmp_path}\n" in capfd.readouterr().out
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"animation.svg", "explorer.png", "encoding.png", "play.png"}
    for path in tmp_path.glob("*.png"):
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG") and len(content) > 10_000


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
def test_the_report_is_accessible(run, browser, barriers, scheme, width):
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.goto((run / "report.html").as_uri())
    assert barriers(page) == []
    page.close()
