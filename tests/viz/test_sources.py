"""Imports between the page's sources; JavaScript does not report missing names."""

import re
from importlib import resources

import pytest

from azjax.viz import page

FOLDER = resources.files("azjax.viz") / "js"
SOURCES = {name: (FOLDER / f"{name}.js").read_text() for name in page._SOURCES}
IMPORTS = [
    (name, imported, source)
    for name, text in SOURCES.items()
    for names, source in re.findall(r'^import \{ (.*) \} from "\./(\w+)\.js";$', text, re.MULTILINE)
    for imported in names.split(", ")
]


def test_every_source_is_in_the_page():
    written = {path.name for path in FOLDER.iterdir() if path.name.endswith(".js")}
    assert written == {f"{name}.js" for name in SOURCES}


@pytest.mark.parametrize(("name", "imported", "source"), IMPORTS)
def test_imports_exist_and_come_earlier(name, imported, source):
    declared = rf"^export (?:async )?(?:function|const|class) {imported}\b"
    assert re.search(declared, SOURCES[source], re.MULTILINE)
    order = list(SOURCES)
    assert order.index(source) < order.index(name)
