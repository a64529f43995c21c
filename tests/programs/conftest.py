"""Fixtures of the programs' tests. They import what they need, so that others need not wait."""

import shutil

import pytest


@pytest.fixture(scope="module")
def compiled_once():
    """Keeps compiled programs, and leaves the searches of certificates out."""
    from trained import compiling_once

    with compiling_once():
        yield


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """One run of `azjax train`, its output, and copies of its directory while it trained."""
    from trained import train_once

    return train_once(tmp_path_factory.mktemp("trained"))


@pytest.fixture
def run_dir(trained, tmp_path):
    """A copy of that run, for tests that change it."""
    return shutil.copytree(trained.run_dir, tmp_path / "run")


@pytest.fixture(scope="session")
def solution(tic_tac_toe):
    from trained import solve_once

    return solve_once(tic_tac_toe)
