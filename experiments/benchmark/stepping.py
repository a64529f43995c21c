"""Waiting times in the explorer: for a search, and for each of its steps."""

import contextlib
import dataclasses
import pathlib
import statistics
import tempfile
from typing import Any

from azjax import games
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.search import PUCT
from azjax.viz import page
from azjax.viz.live import live_data, pack_player
from experiments.benchmark.measuring import new_player, show
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
_SLOWER = 4  # Slowdown of the processor; about that of a phone.
_SPEEDS = {"": 1, f", processor {_SLOWER} times slower": _SLOWER}
_SETTLING = 700  # Milliseconds until a page has opened.
_PAGES = 5  # Searches of Connect Four, each in a new page.
_PRESETS = {"2 dense blocks of 320": "connect_four", "2 blocks of 64 channels": "paper"}


def time_explorer(simulations: int = 200) -> list[dict]:
    """Times searches in the page, and each step through one from click to paint.

    Searches are also timed with the processor throttled to a phone's speed.
    """
    search = PUCT(num_simulations=simulations)
    data = live_data(games.make("tic_tac_toe"), search, evaluator="rollout")
    measured = {}
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        path = pathlib.Path(folder) / "page.html"
        _write(path, data)
        tab = _open(browser, path)
        for name, rate in reversed(_SPEEDS.items()):
            measured[f"a search{name}"] = _search(tab, rate, _SEEDS)
        measured["a step, click to paint"] = tab.evaluate(_STEP_THROUGH)
        for network, preset in _PRESETS.items():
            _write(path, _connect_four(preset))
            for name, rate in _SPEEDS.items():
                long = ["num_simulations", [simulations]]
                times = measured[f"a search of Connect Four, {network}{name}"] = []
                for _ in range(_PAGES):
                    with contextlib.closing(_open(browser, path)) as tab:
                        times += _search(tab, rate, long)
    steps = len(measured["a step, click to paint"])
    if steps != 3 * simulations:
        raise RuntimeError(f"{steps} steps were made and {3 * simulations} expected")
    rows = [
        {"waiting for": name, "median, ms": statistics.median(ms), "slowest, ms": max(ms)}
        | {"times": len(ms)}
        for name, ms in measured.items()
    ]
    return show(f"the explorer of {simulations} simulations", rows)


def _write(path: pathlib.Path, data: dict[str, Any]) -> None:
    page.write_page(path, "benchmark", [page.Section("search", kind="explorer", data=data)])


def _open(browser: Any, path: pathlib.Path) -> Any:
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.goto(path.as_uri())
    tab.wait_for_timeout(_SETTLING)
    return tab


def _search(tab: Any, slower: int, setting: list) -> list[float]:
    """Returns the milliseconds of a search for each value of a setting."""
    devtools = tab.context.new_cdp_session(tab)
    devtools.send("Emulation.setCPUThrottlingRate", {"rate": slower})
    times = tab.evaluate(_SEARCH, setting)
    devtools.send("Emulation.setCPUThrottlingRate", {"rate": 1})
    return times


def _connect_four(preset: str) -> dict[str, Any]:
    """Connect Four with the untrained network of a preset."""
    player = new_player(make_parts(dataclasses.replace(presets.get(preset), game="connect_four")))
    return live_data(player.game, PUCT(num_simulations=1), [pack_player(player)])
