"""The JavaScript of pages, to be called function by function in a browser."""

import re

from azjax.viz.page import script

_IMPORT = """async (source) => {
  const url = URL.createObjectURL(new Blob([source], {type: "text/javascript"}));
  window.azjax = Object.assign({}, ...Object.values(await import(url)));
}"""


def import_sources(tab):
    """Makes all that the sources export known to a tab, as `azjax.NAME`."""
    source = script()
    names = re.findall(r"^const (\$\w+) = ", source, re.M)
    tab.evaluate(_IMPORT, f"{source}\nexport {{ {', '.join(names)} }};\n")
