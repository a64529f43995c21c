"""Settings of every test: eight virtual CPU devices, and compilations kept between runs.

Fixtures import what they need themselves, so that a test waits only for its own imports.
"""

import contextlib
import importlib.util
import os
import shutil
import sys
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
import pytest

import guard


def pytest_configure(config):
    settings = {
        "jax_compilation_cache_dir": str(config.rootpath / ".pytest_cache" / "jax"),
        "jax_persistent_cache_min_compile_time_secs": 0.2,
    }
    for name, value in settings.items():
        jax.config.update(name, value)
        os.environ[name.upper()] = str(value)  # For the processes that tests start.
    config.pluginmanager.register(guard)


def pytest_addoption(parser):
    parser.addoption(
        "--cpu-seconds",
        type=float,
        help="fail if the tests take more CPU time than this",
    )


@pytest.fixture(autouse=True)
def _no_progress_lines(monkeypatch):
    """Slow machines would print lines about the progress of programs into their output."""
    if console := sys.modules.get("azjax.cli.console"):
        monkeypatch.setattr(console, "_PAUSE", 3600.0)


@pytest.fixture(scope="session")
def tic_tac_toe():
    from azjax import games

    return games.make("tic_tac_toe")


@pytest.fixture(scope="session")
def solution(tic_tac_toe):
    from azjax.games import solver

    return solver.solve(tic_tac_toe)


@pytest.fixture(scope="session")
def some_states(solution):
    """Random positions with a decision, `[BATCH, ...]`."""
    import numpy as np

    from tables import BATCH

    rows = np.random.default_rng(0).choice(solution.decisions, BATCH, replace=False)
    return jax.tree.map(lambda leaf: leaf[rows], solution.states)


@pytest.fixture(scope="module")
def compiled_once():
    """Keeps compiled programs of trainings, and leaves the searches of certificates out."""
    from trained import compiling_once

    with compiling_once():
        yield


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """One run of `azjax train`, and copies of its directory while it trained."""
    from trained import train_once

    return train_once(tmp_path_factory.mktemp("trained"))


@pytest.fixture
def run_dir(trained, tmp_path):
    """A copy of that run, for tests that change it."""
    return shutil.copytree(trained.run_dir, tmp_path / "run")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for other players, in place of those that come with azjax."""
    from azjax.runs import pretrained
    from integers import forget

    monkeypatch.setattr(pretrained, "FOLDER", tmp_path)
    (tmp_path / "index.json").write_text("{}")
    forget()
    yield tmp_path
    forget()


@pytest.fixture(scope="session")
def lacking():
    """Skips a test without the program that it needs; with `AZJAX_REQUIRE_PROGRAMS`, fails it."""
    return pytest.fail if os.environ.get("AZJAX_REQUIRE_PROGRAMS") else pytest.skip


@pytest.fixture(scope="module")
def browser(lacking):
    """A real Chromium, without a screen and without a network."""
    from experiments.pictures import open_browser

    with contextlib.ExitStack() as stack:
        try:
            chromium = stack.enter_context(open_browser())
        except ValueError as error:
            lacking(str(error))
        yield chromium


@pytest.fixture(scope="session")
def program(pytestconfig):
    """The program in `proofs/`, which does not import azjax."""
    path = pytestconfig.rootpath / "proofs" / "connect_four.py"
    specification = importlib.util.spec_from_file_location("independent", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def barriers():
    """`find(page) -> list` of what axe-core calls a serious or critical violation."""
    from axe_playwright_python.sync_playwright import Axe

    def find(page):
        violations = Axe().run(page).response["violations"]
        serious = [found for found in violations if found["impact"] in ("serious", "critical")]
        return [f"{found['id']}: {node['html']}" for found in serious for node in found["nodes"]]

    return find
