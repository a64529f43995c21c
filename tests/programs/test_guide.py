"""The guide: what `make docs` builds, opened from a folder as its readers do."""

import ast
import base64
import dataclasses
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tomllib

import pytest

from azjax.runs import presets

ROOT = pathlib.Path(__file__).parent.parent.parent
SOURCES = sorted((ROOT / "azjax").rglob("*.py"))

# Names that are broken within, outside of the places where any text may be broken.
BROKEN = """() => [...document.querySelectorAll(":is(td, th) code")]
  .filter((e) => !/[\\s/-]/.test(e.textContent) && e.getClientRects().length > 1)
  .map((e) => e.textContent)"""
# What axe-core calls serious in the theme's own parts.
OF_THE_THEME = ("aria-dialog-name: ", "scrollable-region-focusable: ", 'label: <input class="md-')


@pytest.fixture(scope="module")
def guide(tmp_path_factory):
    """The folder of the guide."""
    folder = tmp_path_factory.mktemp("guide") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return folder


@pytest.fixture
def open_page(guide, browser):
    """`(name, **options) -> tab` of a page, from disk; nothing may be asked of a network."""
    tabs, asked = [], []

    def open_it(name, width=1280, **options):
        viewport = {"width": width, "height": 900}
        tab = browser.new_page(viewport=viewport, reduced_motion="reduce", **options)
        tabs.append(tab)
        tab.on("request", lambda request: asked.append(request.url))
        tab.goto((guide / name).as_uri())
        return tab

    yield open_it
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    for tab in tabs:
        tab.close()


def test_tables_of_docstrings_have_each_row_on_one_line():
    """Markdown makes a row of every line: a second one is a row without a name."""
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef)
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            text = (isinstance(node, holders) and ast.get_docstring(node)) or ""
            assert re.findall(r"^\|\s+\|.*", text, re.MULTILINE) == [], path


@pytest.mark.slow
def test_the_conventions_are_a_table_and_signatures_are_laid_out(guide):
    page = (guide / "api" / "games.html").read_text()
    table = re.search(r"<table>\s*<thead>\s*<tr>\s*<th>thing.*?</table>", page, re.DOTALL)
    rows = re.findall(r"<td>(.*?)</td>\s*<td>(.*?)</td>", table[0], re.DOTALL)
    assert len(rows) > 9 and all(thing and convention for thing, convention in rows)
    signatures = re.findall(r'<div class="doc-signature.*?<code>(.*?)</code>', page, re.DOTALL)
    lines = [re.sub("<.*?>", "", line) for text in signatures for line in text.splitlines()]
    assert len(signatures) > 20 and max(map(len, lines)) < 80  # Longer ones are cut.


def test_the_guide_has_what_it_needs():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = [re.match(r"[\w-]+", name)[0] for name in extras["optional-dependencies"]["docs"]]
    assert "ruff" in names  # Which lays out signatures.
    settings = (ROOT / "mkdocs.yml").read_text()
    assert "\nuse_directory_urls: false" in settings and "\n  - search\n  - offline " in settings
    recipe = (ROOT / "Makefile").read_text().partition("\ndocs: ")[2].partition("\n\n")[0]
    assert "mkdocs build" in recipe and recipe.endswith('@echo "The guide: site/index.html"')


# Opened from a folder, the theme loads its index once the field is focused, and then greets.
INDEX_IS_LOADED = """() => {
  const text = document.querySelector(".md-search-result__meta").textContent;
  return text.trim() !== "" && !text.includes("Initializing");
}"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["while the index loads", "after the index is loaded"])
def test_the_guide_is_searched_from_a_folder(open_page, moment):
    """Types as a reader does: the theme reads the field when a key is released.

    It also reads the field when its index is loaded. Text that is filled in without keys is
    therefore found only if it is there before the index.
    """
    tab = open_page("api/games.html")
    field = tab.locator(".md-search__input")
    field.focus()
    if moment == "after the index is loaded":
        tab.wait_for_function(INDEX_IS_LOADED)
    field.press_sequentially("illegal action")
    link = tab.locator(".md-search-result__link").first
    link.wait_for(state="attached")
    assert link.get_attribute("href").startswith("file:")


def test_every_setting_of_a_preset_is_in_the_tables():
    place = importlib.util.spec_from_file_location("hook", ROOT / "docs" / "settings_hook.py")
    hook = importlib.util.module_from_spec(place)
    place.loader.exec_module(hook)
    page = hook.on_page_markdown((ROOT / "docs" / "reference" / "settings.md").read_text())
    for preset in presets.PRESETS.values():
        for part in ("network", "search", "selfplay", "targets", "replay", "learner"):
            for field in dataclasses.fields(getattr(preset, part)):
                if field.name not in ("kind", "algorithm"):
                    assert f"\n| `{field.name}` | " in page, (part, field.name)
    row = re.search(r"^\| `learning_rate` \| (.*) \| (.*) \| (.*) \| (.*) \|$", page, re.M)
    assert row.groups()[:2] == ("`0.002`", "above 0")
    assert "0.05: paper" in row[3] and "learning rate" in row[4]
    commands = (ROOT / "docs" / "reference" / "commands.md").read_text()
    assert "settings:" not in hook.on_page_markdown(commands)


@pytest.mark.slow
def test_names_in_tables_are_whole_and_pictures_can_be_read_on_a_phone(open_page):
    tab = open_page("results/connect_four.html", width=390)
    assert tab.evaluate(BROKEN) == []
    boxes = [picture.bounding_box() for picture in tab.locator("img[src$='.svg']").all()]
    assert len(boxes) == 2 and min(box["width"] for box in boxes) > 480  # They scroll.


# How much of a picture is drawn, and its brightest red.
DRAWN = """e => {
  const [width, height] = [640, 240];
  const canvas = Object.assign(document.createElement("canvas"), {width, height});
  const context = canvas.getContext("2d");
  context.drawImage(e, 0, 0, width, height);
  const {data} = context.getImageData(0, 0, width, height);
  const drawn = [...Array(width * height).keys()].filter((i) => data[4 * i + 3] > 200);
  return [drawn.length / (width * height), drawn.reduce((m, i) => Math.max(m, data[4 * i]), 0)];
}"""


def test_pictures_of_the_guide_follow_a_dark_theme(browser):
    tab = browser.new_page(color_scheme="dark")
    pictures = sorted(set((ROOT / "docs").glob("*.svg")) - {ROOT / "docs" / "animation.svg"})
    for path in pictures:
        packed = base64.b64encode(path.read_bytes()).decode()
        tab.set_content(f"<img src='data:image/svg+xml;base64,{packed}'>")
        tab.wait_for_function("document.images[0].complete")
        share, brightest = tab.locator("img").evaluate(DRAWN)
        assert share < 0.3 and brightest > 200, path  # No paper, and bright letters.
    assert len(pictures) > 3
    tab.close()


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_every_page_fits_and_nothing_keeps_readers_out(guide, browser, barriers, width, scheme):
    tab = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    for path in sorted(set(guide.rglob("*.html")) - {guide / "404.html"}):
        tab.goto(path.as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, path
        assert tab.evaluate(BROKEN) == [], path
        if path.name in ("index.html", "games.html", "game.html", "settings.html"):
            found = [line for line in barriers(tab) if not line.startswith(OF_THE_THEME)]
            assert found == [], path
    tab.close()
