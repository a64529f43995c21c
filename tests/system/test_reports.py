"""Reports in a browser, reports of other games, and the pictures of the guide."""

import contextlib

import pytest

from azjax.cli import report
from azjax.runs import presets
from experiments import pictures

CONFIG = presets.smoke(presets.get("mlp"))


@pytest.fixture(scope="session")
def run(trained):
    return trained.run_dir


def open_report(run, browser, width, height=800, **settings):
    page = browser.new_page(viewport={"width": width, "height": height}, **settings)
    page.goto((run / "report.html").as_uri())
    return page


@pytest.mark.parametrize(("scheme", "width"), [("light", 390), ("dark", 1280)])
def test_a_report_is_accessible(run, browser, barriers, scheme, width):
    page = open_report(run, browser, width, color_scheme=scheme)
    assert barriers(page) == []
    assert page.locator(".az-charts .az-scroll").count() == 4
    page.close()


def test_an_animation_is_written_and_can_be_read_on_a_phone(run, browser, tmp_path, capfd):
    path = tmp_path / "animation.svg"
    assert report.main(["--run-dir", str(run), "--animation", str(path)]) == 0
    assert f"animation: {path}\n" in capfd.readouterr().out
    page = browser.new_page(viewport={"width": 390, "height": 800}, reduced_motion="reduce")
    page.set_content(f"<body style='margin: 16px'>{path.read_text()}")
    seen = page.locator("svg").evaluate(
        """svg => [svg, ...svg.querySelectorAll("text")].map((e) => {
          const {left, right, top, bottom} = e.getBoundingClientRect();
          return [e.textContent, parseFloat(getComputedStyle(e).fontSize) * svg.getScreenCTM().a,
                  left, 390 - right, top - svg.getBoundingClientRect().top,
                  svg.getBoundingClientRect().bottom - bottom];
        })"""
    )
    words = {"blunder in some, at least half, or all symmetric copies", "iteration 8"}
    assert words <= {text for text, *_ in seen[1:]}
    for text, size, *margins in seen[1:]:
        assert size >= 9 and min(margins) >= 0, text
    assert seen[0][2:4] == [16, 16]  # The picture is not cut off.
    page.close()


def test_the_pictures_are_of_one_run(run, browser, monkeypatch, tmp_path, capfd):
    monkeypatch.setattr(pictures, "open_browser", lambda: contextlib.nullcontext(browser))
    assert pictures.main(["--run-dir", str(run), "--out", str(tmp_path)]) == 0
    assert f"pictures of {run}: {tmp_path}" in capfd.readouterr().out
    names = {"animation.svg", "explorer.png", "play.png"}
    assert {path.name for path in tmp_path.iterdir()} == names
    for path in tmp_path.glob("*.png"):
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG") and len(content) > 10_000
