"""How long a reader of the explorer waits: for a search, and for each of its steps."""

import pathlib
import statistics
import tempfile

from azjax import games
from azjax.search import PUCT
from azjax.viz import page
from azjax.viz.live import live_data
from experiments.benchmark.measuring import show
from experiments.browser import open_browser

_STEP_THROUGH = """async () => {
  const next = document.querySelector("[data-button=next]");
  const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const times = [];
  while (!next.disabled && next.getAttribute("aria-disabled") !== "true") {
    const before = performance.now();
    next.click();
    await painted();
    times.push(performance.now() - before);
  }
  return times;
}"""
_SEARCH = """(repeats) => {
  return Array.from({ length: repeats }, (_, i) => {
    const field = document.querySelector("[data-setting=seed]");
    field.value = i + 1;
    const before = performance.now();
    field.dispatchEvent(new Event("change"));
    return performance.now() - before;
  });
}"""


def time_explorer(simulations: int = 200) -> list[dict]:
    """Times searches in the page, and every step through one, from the click to the painting."""
    search = PUCT(num_simulations=simulations)
    data = live_data(games.make("tic_tac_toe"), search, evaluator="rollout")
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        section = page.Section("search", kind="explorer", data=data)
        path = page.write_page(pathlib.Path(folder) / "page.html", "benchmark", [section])
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(path.as_uri())
        searches = tab.evaluate(_SEARCH, 20)
        times = tab.evaluate(_STEP_THROUGH)
    if len(times) != 3 * simulations:
        raise RuntimeError(f"{len(times)} steps were made and {3 * simulations} expected")
    rows = [
        {"waiting for": "a search", "median, ms": statistics.median(searches)},
        {"waiting for": "a step, click to paint", "median, ms": statistics.median(times)},
    ]
    for row, measured in zip(rows, (searches, times), strict=True):
        row |= {"slowest, ms": max(measured), "times": len(measured)}
    return show(f"the explorer of {simulations} simulations", rows)
