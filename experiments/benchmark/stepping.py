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


_SLOWER = 4  # So many times slower is a phone's processor.


def time_explorer(simulations: int = 200) -> list[dict]:
    """Times searches in the page, and every step through one, from the click to the painting.

    Searches are timed with the processor held back, too, so that it is as slow as a phone's.
    """
    search = PUCT(num_simulations=simulations)
    data = live_data(games.make("tic_tac_toe"), search, evaluator="rollout")
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        section = page.Section("search", kind="explorer", data=data)
        path = page.write_page(pathlib.Path(folder) / "page.html", "benchmark", [section])
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(path.as_uri())
        devtools = tab.context.new_cdp_session(tab)
        devtools.send("Emulation.setCPUThrottlingRate", {"rate": _SLOWER})
        held_back = tab.evaluate(_SEARCH, 20)
        devtools.send("Emulation.setCPUThrottlingRate", {"rate": 1})
        searches = tab.evaluate(_SEARCH, 20)
        times = tab.evaluate(_STEP_THROUGH)
    if len(times) != 3 * simulations:
        raise RuntimeError(f"{len(times)} steps were made and {3 * simulations} expected")
    measured = {
        "a search": searches,
        f"a search, processor {_SLOWER} times slower": held_back,
        "a step, click to paint": times,
    }
    rows = [
        {"waiting for": name, "median, ms": statistics.median(ms), "slowest, ms": max(ms)}
        | {"times": len(ms)}
        for name, ms in measured.items()
    ]
    return show(f"the explorer of {simulations} simulations", rows)
