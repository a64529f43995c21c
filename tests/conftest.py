"""Settings of every test: eight virtual CPU devices, and compilations kept between runs."""

import contextlib
import os

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = " ".join(
    [
        os.environ.get("XLA_FLAGS", ""),
        "--xla_force_host_platform_device_count=8",
        "--xla_backend_optimization_level=1",  # As training does; it compiles sooner.
    ]
)

import jax
import numpy as np
import pytest

from azjax import games, oracle
from experiments.browser import open_browser
from tables import BATCH


def pytest_configure(config):
    jax.config.update("jax_compilation_cache_dir", str(config.rootpath / ".pytest_cache" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


@pytest.fixture(scope="session")
def tic_tac_toe():
    return games.make("tic_tac_toe")


@pytest.fixture(scope="session")
def solution(tic_tac_toe):
    return oracle.solve(tic_tac_toe)


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
            give_up = pytest.fail if os.environ.get("AZJAX_REQUIRE_BROWSER") else pytest.skip
            give_up(str(error))
        yield chromium


@pytest.fixture
def errors():
    """`watch(page) -> list`, which fills with what the page complains of in its console."""

    def watch(page):
        found = []
        page.on("pageerror", lambda error: found.append(str(error)))
        page.on("console", lambda m: found.append(m.text) if m.type == "error" else None)
        return found

    return watch
