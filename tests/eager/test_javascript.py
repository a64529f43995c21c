"""Pages: their JavaScript in Node, its searches against references, and what pages are made of."""

import dataclasses
import json
import re

import numpy as np
import pytest

import playground
from azjax import games
from azjax.runs.pretrained import names
from azjax.search import PUCT, UCT, Gumbel
from azjax.viz import page
from azjax.viz.live import is_live, live_data
from javascript import PLAYGROUND, ROOT, data_of, evaluate, run_node
from reference import connect_four, gumbel, hex, puct
from reference import tic_tac_toe as rules_of_tic_tac_toe
from refusals import assert_refused

TESTS = sorted((ROOT / "tests" / "javascript").glob("*.test.js"))


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name.removesuffix(".test.js"))
def test_the_tests_in_javascript_pass(path):
    done = run_node("--test", "--test-reporter=tap", str(path))
    assert done.returncode == 0, done.stdout
    assert re.search(r"^# pass [1-9]", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("folder", [page.FOLDER, PLAYGROUND], ids=["library", "playground"])
def test_modules_are_joined_into_one(folder, tmp_path):
    """Node finds names that are missing in modules, or that two modules declare."""
    source, path = page.script(folder / "main.js"), tmp_path / "one.mjs"
    assert not re.search(r"^import|^export |innerHTML|eval\(", source, re.MULTILINE)
    path.write_text(f"{source}\nexport {{ COMPONENTS, mountPage }};")
    kinds = evaluate("async (path) => Object.keys((await import(path)).COMPONENTS)", str(path))
    assert ("playground" in kinds) == (folder == PLAYGROUND)


# Searches and rules in JavaScript equal the reference implementations in plain Python.


def play_randomly(rules, games, seed=0):
    """The different positions of random games."""
    rng, found = np.random.default_rng(seed), {}
    for _ in range(games):
        position = rules.start()
        while not position.over:
            found[position] = None
            position, _ = rules.play(position, rng.choice(rules.legal(position)))
        found[position] = None
    return list(found)


def text_of(position):
    return "".join(".XO"[cell] for cell in position.board)


# Searches, with a table of random logits and values as the evaluator.

SEARCH = """({ name, texts, settings, logits, values }) => {
  const game = azjax.gameNamed(name);
  const evaluator = ({ board, player }) => {
    const row = board.reduce((sum, stone, i) => sum + (stone + 1) * (7 * i + 1), player) % 97;
    return { logits: logits[row], value: values[row] };
  };
  return texts.map((text) => {
    const search = new azjax.Search(game, game.read(text), evaluator, settings);
    const { N } = search.stats(0, search.length);
    const { actions } = search.nodes[0];
    return [Object.fromEntries(actions.map((action, i) => [action, N[i]])), search.value,
      search.action];
  });
}"""


@pytest.mark.parametrize(
    "config",
    [
        PUCT(num_simulations=60, c_puct=1.3),
        PUCT(num_simulations=60, first_play_urgency="parent"),
        Gumbel(num_simulations=40, max_considered_actions=5, maxvisit_init=20.0),
    ],
    ids=["puct", "urgency", "gumbel"],
)
def test_searches_equal_those_of_the_reference(config):
    """Also from late positions, in which games end within the tree."""
    rng, rules = np.random.default_rng(1), rules_of_tic_tac_toe
    logits, values = rng.normal(size=(97, 9)).tolist(), rng.uniform(-1, 1, 97).tolist()
    positions = [position for position in play_randomly(rules, 12) if not position.over]

    def evaluator(position):
        cells = sum((stone + 1) * (7 * i + 1) for i, stone in enumerate(position.board))
        row = (cells + position.player) % 97
        return logits[row], values[row]

    def search(position):
        if isinstance(config, PUCT):
            urgency = config.c_puct, config.first_play_urgency
            return puct.search(rules, evaluator, position, config.num_simulations, *urgency)
        fields = {name: getattr(config, name) for name in gumbel.Settings._fields}
        return gumbel.search(rules, evaluator, position, [0.0] * 9, gumbel.Settings(**fields))

    no_noise = {"dirichlet_fraction": 0.0, "gumbel_scale": 0.0}
    settings = dataclasses.asdict(config) | no_noise | {"seed": 0}
    texts = [text_of(position) for position in positions]
    argument = {"name": "tic_tac_toe", "texts": texts, "settings": settings}
    found = evaluate(SEARCH, argument | {"logits": logits, "values": values})
    compared = 0
    for position, (visits, value, action) in zip(positions, found, strict=True):
        expected = search(position)
        if expected.margin < 1e-5:  # Rounding may decide.
            continue
        compared += 1
        assert {int(move): n for move, n in visits.items()} == expected.visit_counts
        assert value == pytest.approx(expected.value, abs=1e-5)
        if isinstance(config, Gumbel):
            assert action == expected.action
        else:
            assert visits[str(action)] == max(visits.values())
    assert compared > 30


STEP = """([name, texts]) => {
  const game = azjax.gameNamed(name);
  return texts.map((text) => {
    const before = game.read(text);
    const legal = game.legal(before);
    const after = legal.map((action) => game.step(before, action));
    return [legal, after.map((next) => [next.text, next.player, next.over, game.reward(next)])];
  });
}"""


@pytest.mark.parametrize(
    ("name", "rules"),
    [("tic_tac_toe", rules_of_tic_tac_toe), ("connect_four:4x5", connect_four), ("hex:3", hex)],
    ids=["tic_tac_toe", "connect_four", "hex"],
)
def test_the_rules_are_those_of_the_reference(name, rules):
    positions = play_randomly(rules, 20)
    found = evaluate(STEP, [name, [text_of(position) for position in positions]])
    for position, (legal, after) in zip(positions, found, strict=True):
        assert legal == rules.legal(position)
        for action, shown in zip(legal, after, strict=True):
            later, reward = rules.play(position, action)
            assert shown == [text_of(later), later.player, later.over, reward]


# What pages are made of, and what they reject.


def test_a_page_starts_with_the_given_search():
    given = Gumbel(num_simulations=5000, gumbel_scale=0.5, maxvisit_init=20.0)
    data = live_data(games.make("connect_four"), given)
    settings = data["settings"]
    shown = dataclasses.replace(given, num_simulations=1000, gumbel_scale=0.0)
    assert dataclasses.asdict(shown).items() <= settings.items()
    assert settings["c_puct"] == PUCT().c_puct and settings["exploration"] == UCT().exploration
    assert settings["dirichlet_fraction"] == 0 and settings["evaluator"] == "uniform"
    assert "positions" not in data and data["networks"] == []


def test_a_page_searches_only_games_with_the_rules_that_it_has(tic_tac_toe):
    step = lambda state, action: tic_tac_toe.step(state, action)  # noqa: E731
    assert is_live(tic_tac_toe) and is_live(games.make("hex:3"))
    assert not is_live(games.make("othello:4")) and not is_live(tic_tac_toe._replace(step=step))
    assert not is_live(tic_tac_toe._replace(name="mnk:0x0x0"))


def test_a_page_shows_text_as_text_and_writes_shared_data_once(tmp_path):
    evil = '</script><script>alert(1)</script><b>&"'
    shared = {"name": evil, "once": "only once"}
    sections = [page.Section(evil, evil, kind="play", data=shared, label=evil)] * 2
    text = page.write_page(tmp_path / "page.html", evil, sections).read_text()
    assert "<script>alert" not in text and "<b>" not in text
    assert "\\u003c/script>" in text and [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert text.count("only once") == 1 and text.count('data-number="0"') == 2
    assert page.script() + "\nmountPage(document);" in text and page.style() in text


def test_the_playground_of_the_guide_has_the_players_and_the_current_program():
    """If this fails, run `make playground`."""
    path = playground.FOLDER / "index.html"
    proofs = playground.read_proofs(playground.FOLDER / "proofs.json")
    found = {packed["about"]["name"]: packed["about"] for packed in data_of(path)[0]["players"]}
    assert list(found) == [name for name in playground.SHOWN if name in names()]
    for name, about in found.items():
        assert about["sha256"] == playground.sha256_of(name)
        assert about["proof"] == proofs.get(name)
    text = path.read_text()
    assert page.script(playground.FOLDER / "main.js") in text
    assert page.style(playground.FOLDER / "playground.css") in text


def test_pages_and_proofs_that_cannot_be_written_or_read_are_rejected(tmp_path, monkeypatch):
    proof = dict.fromkeys(("decisions", "won", "drawn", "lost"), 1)

    def read(proof):
        (tmp_path / "proofs.json").write_text(json.dumps({"connect_four": proof}))
        return playground.read_proofs(tmp_path / "proofs.json")

    right = proof | {"sha256": playground.sha256_of("connect_four")}
    nowhere = tmp_path / "nowhere" / "page.html"
    assert_refused(
        (lambda: page.write_page(nowhere, "", []), "there is no folder ...nowhere for ...: make"),
        (lambda: read(proof), "needs sha256, decisions"),
        (lambda: read(proof | {"sha256": "0"}), "belongs to another file: repeat it"),
        (lambda: read(right), "says that connect_four loses: repair"),
    )
    assert read(right | {"lost": 0})
    monkeypatch.setattr(playground, "MOST_BYTES", 1000)
    path = tmp_path / "page.html"
    path.write_text("old")
    write = lambda: playground.write_playground(path, [{"about": {}}])  # noqa: E731
    assert_refused((write, "more than 1,000: leave a player out"))
    assert path.read_text() == "old" and not [*tmp_path.glob(".*")]
