"""What pages are made of, and what they reject."""

import dataclasses
import json

import playground
from azjax import games
from azjax.runs.pretrained import names
from azjax.search import PUCT, UCT, Gumbel
from azjax.viz import page
from azjax.viz.live import is_live, live_data
from javascript import data_of
from refusals import assert_refused

FOUR = games.make("connect_four")


def test_searches_that_cannot_be_shown_are_rejected(tic_tac_toe):
    assert_refused(
        (
            lambda: live_data(tic_tac_toe, object()),
            "does not support the search object: use PUCT, Gumbel or UCT",
        ),
    )


def test_a_page_starts_with_the_given_search():
    given = Gumbel(num_simulations=5000, gumbel_scale=0.5, maxvisit_init=20.0)
    data = live_data(FOUR, given)
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
        return lambda: playground.read_proofs(tmp_path / "proofs.json")

    nowhere = tmp_path / "nowhere" / "page.html"
    assert_refused(
        (lambda: page.write_page(nowhere, "", []), "there is no folder ...nowhere for ...: make"),
    )
    right = proof | {"sha256": playground.sha256_of("connect_four")}
    for given, sentence in (
        (proof, "needs sha256, decisions"),
        (proof | {"sha256": "0"}, "belongs to another file: repeat it"),
        (right, "says that connect_four loses: repair"),
    ):
        assert_refused((read(given), sentence))
    assert read(right | {"lost": 0})()
    monkeypatch.setattr(playground, "MOST_BYTES", 1000)
    path = tmp_path / "page.html"
    path.write_text("old")
    write = lambda: playground.write_playground(path, [{"about": {}}])  # noqa: E731
    assert_refused((write, "more than 1,000: leave a player out"))
    assert path.read_text() == "old" and not [*tmp_path.glob(".*")]
