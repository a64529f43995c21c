"""Settings of every test: two virtual CPU devices, and compilations kept between runs."""

import os

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
)

import jax
import pytest

from azjax import games, oracle


def pytest_configure(config):
    jax.config.update("jax_compilation_cache_dir", str(config.rootpath / ".pytest_cache" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


@pytest.fixture(scope="session")
def tic_tac_toe():
    return games.make("tic_tac_toe")


@pytest.fixture(scope="session")
def solution(tic_tac_toe):
    return oracle.solve(tic_tac_toe)
