"""Access to single JavaScript functions of pages in a browser."""

import re

from azjax.viz.page import script

_IMPORT = """async (source) => {
  const url = URL.createObjectURL(new Blob([source], {type: "text/javascript"}));
  window.azjax = Object.assign({}, ...Object.values(await import(url)));
}"""

# The heights of text and controls, in pixels. Text for screen readers has height 0.
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

# Declarations of a page's style sheet that an earlier rule overrides on an element of the page:
# `selector { name: value } loses to selector`. A later rule should win.
OVERRIDDEN = """() => {
  const flat = (list) => [...list].flatMap((rule) =>
    rule.selectorText ? [rule] : rule instanceof CSSKeyframesRule ? [] : flat(rule.cssRules ?? []));
  const rules = flat(document.querySelector("style").sheet.cssRules);
  const kinds = new Map();  // One element of each kind.
  for (const e of document.querySelectorAll(".azjax, .azjax *")) {
    const classes = [e, e.parentElement].map((x) => `${x.tagName}.${x.getAttribute("class")}`);
    kinds.set([...classes, ...e.getAttributeNames(), ...e.ariaPressed ?? ""].join(), e);
  }
  const get = (e, name) => getComputedStyle(e).getPropertyValue(name);
  const during = (style, name, value, look) => {  // With another value, or with none.
    const old = [style.getPropertyValue(name), style.getPropertyPriority(name)];
    if (value === null) style.removeProperty(name);
    else style.setProperty(name, value, "important");
    const seen = look();
    style.removeProperty(name);
    if (old[0]) style.setProperty(name, ...old);
    return seen;
  };
  rules.forEach((rule, i) => rule.style.setProperty(`--az-probe-${i}`, "yes"));
  const applied = rules.map(({ selectorText }, i) => [...kinds.values()].filter((e) =>
    e.matches(selectorText) && get(e, `--az-probe-${i}`) === "yes"));
  rules.forEach((rule, i) => rule.style.removeProperty(`--az-probe-${i}`));
  const lost = new Set();
  rules.forEach((rule, i) => {
    for (const e of applied[i]) {
      for (const name of [...rule.style].filter((name) => !name.startsWith("--"))) {
        const value = rule.style.getPropertyValue(name);
        const [now, look] = [get(e, name), () => get(e, name)];
        if (now === value || now === during(e.style, name, value, look)) continue;
        const winner = rules.slice(0, i).find((other) => e.matches(other.selectorText)
          && other.style.getPropertyValue(name) && during(other.style, name, null, look) !== now);
        const said = `${rule.selectorText} { ${name}: ${value} } loses to`;
        if (winner) lost.add(`${said} ${winner.selectorText}`);
      }
    }
  });
  return [...lost];
}"""


def import_sources(tab):
    """Makes all exports of the sources available in a tab, as `azjax.NAME`."""
    source = script()
    names = re.findall(r"^const (\$\w+) = ", source, re.M)
    tab.evaluate(_IMPORT, f"{source}\nexport {{ {', '.join(names)} }};\n")
