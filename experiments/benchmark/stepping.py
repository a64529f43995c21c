"""How long a reader of the explorer waits: for a search, and for each of its steps."""

import dataclasses
import pathlib
import statistics
import tempfile
from typing import Any

import jax

from azjax import games, presets
from azjax.config import make_parts
from azjax.player import Player
from azjax.search import PUCT
from azjax.viz import page
from azjax.viz.live import live_data, pack_player
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
_SEARCH = """async ([setting, values]) => {
  const root = document.querySelector("[data-kind=explorer]");
  const field = root.querySelector(`[data-setting=${setting}]`);
  const times = [];
  for (const value of values) {
    field.value = value;
    const before = performance.now();
    field.dispatchEvent(new Event("change"));
    while (root.hasAttribute("aria-busy")) await new Promise((done) => setTimeout(done));
    times.push(performance.now() - before);
  }
  return times;
}"""
_SEEDS = ["seed", list(range(1, 21))]
_SLOWER = 4  # So many times slower is a phone's processor.
_PAGES = 3  # Searches with a tower, each in a page that computed nothing before.


def time_explorer(simulations: int = 200) -> list[dict]:
    """Times searches in the page, and every step through one, from the click to the painting.

    Searches are timed with the processor held back, too, so that it is as slow as a phone's.
    """
    search = PUCT(num_simulations=simulations)
    data = live_data(games.make("tic_tac_toe"), search, evaluator="rollout")
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        tab = _open(browser, pathlib.Path(folder) / "page.html", data)
        devtools = tab.context.new_cdp_session(tab)
        devtools.send("Emulation.setCPUThrottlingRate", {"rate": _SLOWER})
        held_back = tab.evaluate(_SEARCH, _SEEDS)
        devtools.send("Emulation.setCPUThrottlingRate", {"rate": 1})
        searches = tab.evaluate(_SEARCH, _SEEDS)
        steps = tab.evaluate(_STEP_THROUGH)
        path, data = pathlib.Path(folder) / "four.html", _with_tower()
        long = ["num_simulations", [simulations]]
        with_tower = [_open(browser, path, data).evaluate(_SEARCH, long)[0] for _ in range(_PAGES)]
    if len(steps) != 3 * simulations:
        raise RuntimeError(f"{len(steps)} steps were made and {3 * simulations} expected")
    measured = {
        "a search": searches,
        f"a search, processor {_SLOWER} times slower": held_back,
        "a step, click to paint": steps,
        "a search of Connect Four, tower of 64 channels and 2 blocks": with_tower,
    }
    rows = [
        {"waiting for": name, "median, ms": statistics.median(ms), "slowest, ms": max(ms)}
        | {"times": len(ms)}
        for name, ms in measured.items()
    ]
    return show(f"the explorer of {simulations} simulations", rows)


def _open(browser: Any, path: pathlib.Path, data: dict[str, Any]) -> Any:
    section = page.Section("search", kind="explorer", data=data)
    page.write_page(path, "benchmark", [section])
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.goto(path.as_uri())
    return tab


def _with_tower() -> dict[str, Any]:
    """Connect Four with the network of the preset `paper`, as it is before it learns."""
    parts = make_parts(dataclasses.replace(presets.get("paper"), game="connect_four"))
    init = jax.jit(lambda key: parts.network.fold(parts.network.init(key)))
    player = Player(parts, init(jax.random.key(0)))
    return live_data(parts.game, PUCT(num_simulations=1), [pack_player(player)])
