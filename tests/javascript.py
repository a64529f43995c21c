"""The JavaScript of pages, to be called function by function in a browser."""

import re

from azjax.viz.page import script

_IMPORT = """async (source) => {
  const url = URL.createObjectURL(new Blob([source], {type: "text/javascript"}));
  window.azjax = Object.assign({}, ...Object.values(await import(url)));
}"""

# How high text and controls are, in pixels. Text that only a screen reader meets has no size.
SIZES_OF_PARTS = """root => {
  const seen = (e) => e.checkVisibility() && e.getClientRects().length > 0;
  const all = (query, from = root) => [...from.querySelectorAll(query)].filter(seen);
  const hasText = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  const height = (e) => parseFloat(getComputedStyle(e).fontSize) * (e.getScreenCTM?.()?.a ?? 1);
  const texts = all("*").filter((e) => hasText(e) && !e.matches("title, option") && height(e) > 0);
  const control = (e) => e.matches("[type=checkbox]") ? e.closest("label") : e;
  return {
    ...{ all, hasText },
    fonts: texts.map((e) => [height(e), e.textContent]),
    controls: all("button, select, input, summary, [role=button]").map((e) => [
      e.dataset.button ?? e.textContent.slice(0, 20), control(e).getBoundingClientRect().height]),
  };
}"""


def import_sources(tab):
    """Makes all that the sources export known to a tab, as `azjax.NAME`."""
    source = script()
    names = re.findall(r"^const (\$\w+) = ", source, re.M)
    tab.evaluate(_IMPORT, f"{source}\nexport {{ {', '.join(names)} }};\n")
