"""What tests in a browser share: screens, measures, and pages that must not complain."""

import contextlib
import itertools

from javascript import SIZES_OF_PARTS

SIZES = {"desktop": (1440, 900), "laptop": (1280, 720), "phone": (390, 844)}

# The boxes on the screen, in pixels.
MEASURE = """root => {
  const box = (e) => {
    const r = e.getBoundingClientRect();
    return [r.left, r.top, r.right, r.bottom];
  };
  const { all, hasText, fonts, controls } = (SIZES)(root);
  const picture = root.querySelector(".az-tree");
  const groups = all("[data-key], [data-ghost]", picture);
  const points = (path) => Array.from({length: 33}, (_, i) => {
    const at = path.getPointAtLength(path.getTotalLength() * i / 32);
    const {x, y} = at.matrixTransform(path.getScreenCTM());
    return [x, y];
  });
  return {
    ...{ fonts, controls },
    picture: box(picture),
    groups: groups.map((g) => ({
      node: g.dataset.node ?? null,
      lit: Boolean(g.dataset.phase),
      level: Number(g.getAttribute("aria-level")),
      box: box(g.querySelector("rect")),
      board: g.querySelector(".az-board") ? box(g.querySelector(".az-board")) : null,
      texts: all("text", g).filter(hasText).map(
        (e) => [e.textContent, e.getAttribute("class"), box(e)]),
    })),
    edges: all(".az-edge", picture).map(points),
    parts: all(".az-transport, .az-status, .az-tree-box, .az-moves").map(box),
  };
}""".replace("SIZES", SIZES_OF_PARTS)


@contextlib.contextmanager
def opened(browser, path, width=1280, height=800, address="", **options):
    """A tab with a page from disk: it must not load anything or report errors."""
    options = {"reduced_motion": "reduce"} | options
    tab = browser.new_page(viewport={"width": width, "height": height}, **options)
    tab.set_default_timeout(30_000)
    errors, asked = [], []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(f"{path.as_uri()}{address}")
    yield tab
    assert errors == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    tab.close()


def component(page, kind):
    return page.locator(f".az-component[data-kind={kind}]")


def press(root, name):
    root.locator(f"[data-button={name}]").first.click()


def go(root, t):
    """Moves the slider of an explorer to a time; -1 is the end."""
    root.get_by_label("time").evaluate(
        "(e, t) => { e.value = t < 0 ? e.max : t; e.dispatchEvent(new Event('input')); }", t
    )


def check_fits(page, width, least=43.9):
    """Checks that nothing sticks out of the page, and that all of it can be read and pressed."""
    assert page.evaluate("document.documentElement.scrollWidth") == width
    sizes = page.locator("main").evaluate(SIZES_OF_PARTS)
    assert [text for text in sizes["fonts"] if text[0] < 9] == []
    if width < 500:
        assert [control for control in sizes["controls"] if control[1] < least] == []


def inside(inner, outer, slack=0.5):
    low = all(a >= b - slack for a, b in zip(inner[:2], outer[:2], strict=True))
    return low and all(a <= b + slack for a, b in zip(inner[2:], outer[2:], strict=True))


def overlap(a, b, slack=0.75):
    across = min(a[2], b[2]) - max(a[0], b[0])
    return across > slack and min(a[3], b[3]) - max(a[1], b[1]) > slack


def rectangles(group):
    return [group["box"], *(box for _, _, box in group["texts"])]


def check_tree(seen):
    """Checks that nothing is too small, cut off or covered, and that no edge crosses a word."""
    groups = seen["groups"]
    assert min(seen["fonts"])[0] >= 9, min(seen["fonts"])
    for group in groups:
        if group["node"] == "0" or group["lit"]:
            assert all(inside(box, seen["picture"]) for box in rectangles(group)), group
        for text, look, box in group["texts"]:
            labels = "az-edge-label", "az-edge-label az-gain"
            assert look in labels or inside(box, group["box"]), text
        own = [box for _, _, box in group["texts"]] + ([group["board"]] if group["board"] else [])
        assert not any(overlap(a, b) for i, a in enumerate(own) for b in own[:i]), group
    for a, b in itertools.combinations(groups, 2):
        pairs = itertools.product(rectangles(a), rectangles(b))
        assert not any(overlap(*pair) for pair in pairs), (a, b)
    words = [box for group in groups for _, _, box in group["texts"]]
    for x, y in (point for edge in seen["edges"] for point in edge):
        assert not any(b[0] < x < b[2] and b[1] + 1 < y < b[3] - 1 for b in words), (x, y)
