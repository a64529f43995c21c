"""Settings of every test: eight virtual CPU devices, and compilations kept between runs."""

import collections
import contextlib
import importlib.util
import os
from importlib.metadata import version

# Compiling is most of what tests do, and what they compile runs for moments.
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = " ".join(
    [
        os.environ.get("XLA_FLAGS", ""),
        "--xla_force_host_platform_device_count=8",
        "--xla_backend_optimization_level=0",
        "--xla_llvm_disable_expensive_passes=true",
        "--xla_cpu_parallel_codegen_split_count=1",
        # Newer versions have no such flag.
        "--xla_cpu_use_fusion_emitters=false" if version("jaxlib").startswith("0.10.") else "",
    ]
)

import jax
import numpy as np
import pytest

from azjax import games
from azjax.cli import console
from azjax.games import solver
from experiments.browser import open_browser
from firefox import open_firefox
from javascript import import_sources
from tables import BATCH


def pytest_configure(config):
    jax.config.update("jax_compilation_cache_dir", str(config.rootpath / ".pytest_cache" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


def pytest_addoption(parser):
    parser.addoption(
        "--first-cases",
        action="store_true",
        help="run only the first of the selected cases of each parametrized test",
    )


CASES = pytest.StashKey[collections.Counter]()


def pytest_itemcollected(item):
    """Marks all cases after the first N of a test with the mark `slow_after(N)` as slow."""
    if mark := item.get_closest_marker("slow_after"):
        cases = item.config.stash.setdefault(CASES, collections.Counter())
        name = item.nodeid.partition("[")[0]
        if cases[name] >= mark.args[0]:
            item.add_marker("slow")
        cases[name] += 1


@pytest.hookimpl(trylast=True)  # Markers and keywords select first.
def pytest_collection_modifyitems(config, items):
    if config.getoption("--first-cases"):
        first, others = {}, []
        for item in items:
            if first.setdefault(item.nodeid.partition("[")[0], item) is not item:
                others.append(item)
        items[:] = first.values()
        config.hook.pytest_deselected(items=others)


# With several worker processes, every worker deselects the same tests.

LEFT_OUT = pytest.StashKey[int]()


def pytest_deselected(items):
    slow = [item for item in items if item.get_closest_marker("slow")]
    if slow and slow[0].config.option.markexpr == "not slow":
        slow[0].config.stash[LEFT_OUT] = len(slow)


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = session.config.stash.get(LEFT_OUT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    node.config.stash[LEFT_OUT] = getattr(node, "workeroutput", {}).get("left_out", 0)


def pytest_terminal_summary(terminalreporter, config):
    if left_out := config.stash.get(LEFT_OUT, 0):
        said = f"{left_out} slower tests were left out: make test-all runs them"
        terminalreporter.section(said)


@pytest.fixture(autouse=True)
def _no_progress_lines(monkeypatch):
    """Slow machines would print lines about the progress of programs into their output."""
    monkeypatch.setattr(console, "_PAUSE", 3600.0)


@pytest.fixture(scope="session")
def tic_tac_toe():
    return games.make("tic_tac_toe")


@pytest.fixture(scope="session")
def solution(tic_tac_toe):
    return solver.solve(tic_tac_toe)


@pytest.fixture(scope="session")
def some_states(solution):
    """Random positions with a decision, `[BATCH, ...]`."""
    rows = np.random.default_rng(0).choice(solution.decisions, BATCH, replace=False)
    return jax.tree.map(lambda leaf: leaf[rows], solution.states)


@pytest.fixture(scope="module")
def browser():
    """A real Chromium, without a screen and without a network.

    Where there is none its tests are skipped, but not with `AZJAX_REQUIRE_BROWSER` set.
    """
    with contextlib.ExitStack() as stack:
        try:
            chromium = stack.enter_context(open_browser())
        except ValueError as error:
            give_up(error)
        yield chromium


def give_up(reason):
    """Skips a test of pages for want of something, where that is allowed."""
    (pytest.fail if os.environ.get("AZJAX_REQUIRE_BROWSER") else pytest.skip)(str(reason))


@pytest.fixture(scope="session")
def firefox():
    """The tab of a real Firefox, without a screen; what holds for `browser` holds for it."""
    with contextlib.ExitStack() as stack:
        try:
            tab = stack.enter_context(open_firefox())
        except ValueError as error:
            give_up(error)
        yield tab


@pytest.fixture(scope="module")
def module(browser):
    """A blank page that knows the functions of the page's sources."""
    tab = browser.new_page()
    import_sources(tab)
    yield tab
    tab.close()


@pytest.fixture(scope="session")
def barriers():
    """`find(page) -> list` of what axe-core calls a serious or critical violation."""
    if importlib.util.find_spec("axe_playwright_python") is None:
        give_up("axe-core is missing: pip install axe-playwright-python")
    from axe_playwright_python.sync_playwright import Axe

    def find(page):
        violations = Axe().run(page).response["violations"]
        serious = [found for found in violations if found["impact"] in ("serious", "critical")]
        return [f"{found['id']}: {node['html']}" for found in serious for node in found["nodes"]]

    return find


@pytest.fixture
def errors():
    """`watch(page) -> list`, which fills with what the page complains of in its console."""

    def watch(page):
        found = []
        page.on("pageerror", lambda error: found.append(str(error)))
        page.on("console", lambda m: found.append(m.text) if m.type == "error" else None)
        return found

    return watch
