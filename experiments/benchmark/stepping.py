"""How long a reader waits for a step of the explorer."""

import pathlib
import statistics
import tempfile

from azjax.viz import page
from azjax.viz.searches import Request, Searcher
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


def time_explorer(simulations: int = 200) -> list[dict]:
    """Times every step through a search, from the click to the painted picture."""
    recording = Searcher().record(Request(evaluator="rollout", simulations=simulations))
    data = {"recordings": [recording], "evaluators": ["rollout"], "lines": []}
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        section = page.Section("search", kind="explorer", data=data)
        path = page.write_page(pathlib.Path(folder) / "page.html", "benchmark", [section])
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(path.as_uri())
        times = tab.evaluate(_STEP_THROUGH)
    if len(times) != 3 * simulations:
        raise RuntimeError(f"{len(times)} steps were made and {3 * simulations} expected")
    title = f"a step of the explorer, {simulations} simulations, click to paint"
    row = {"median, ms": statistics.median(times), "slowest, ms": max(times), "steps": len(times)}
    return show(title, [row])
