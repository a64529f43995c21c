"""A pytest plugin that fails a quick test if it compiles a program of its own.

Compiling takes most of the time of the tests. A program is what XLA compiles for a function of
azjax or of a test, as opposed to one operation of `jax.numpy`. Tests in `tests/eager` compile none;
those in `tests/compiled` share theirs: compile them within `sharing()`.
"""

import contextlib
import functools
import sys

import jax
import pytest
from jax.extend.core import Primitive

_COMPILED: list[str] = []  # Programs compiled outside `sharing`.
_DEPTH = 0

ADVICE = (
    "{test} compiled {number} of its own: {names}. Ask a program that tests share (tables.py, "
    "trained.py, a fixture of the session or the module), or move the test to "
    "tests/system. A test in tests/compiled that needs N programs of its own says so with "
    "@pytest.mark.compiles(N)"
)


@contextlib.contextmanager
def sharing():
    """Programs that are compiled within this context belong to all tests."""
    global _DEPTH
    _DEPTH += 1
    try:
        yield
    finally:
        _DEPTH -= 1


@functools.cache
def _operations() -> set[str]:
    """The names of what JAX compiles when an operation is called outside a program."""
    public = [jax.numpy, jax.lax, jax.random, jax.nn, jax.scipy.special, jax.image]
    names = {name for module in public for name in vars(module)}
    for module in [module for name, module in sys.modules.items() if name.startswith("jax.")]:
        values = vars(module)
        names |= {name for name in values if name[0] == "_" and callable(values[name])}
        names |= {value.name for value in values.values() if isinstance(value, Primitive)}
    return names - {"while", "while_loop", "fori_loop", "scan", "map", "cond"}


def _count(event: str, duration: float, **details: str | int) -> None:
    del duration
    if event != "/jax/core/compile/backend_compile_duration" or _DEPTH:
        return
    name = str(details["fun_name"]).removeprefix("jit(").removesuffix(")")
    if name not in _operations():
        _COMPILED.append(name)


def pytest_configure(config):
    jax.monitoring.register_event_duration_secs_listener(_count)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    with contextlib.nullcontext() if fixturedef.scope == "function" else sharing():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Fails a test that compiled more programs than it may."""
    before = len(_COMPILED)
    result = yield
    layer = item.path.relative_to(item.config.rootpath / "tests").parts[0]
    mark = item.get_closest_marker("compiles")
    allowed = {"eager": 0, "compiled": mark.args[0] if mark else 0}.get(layer, sys.maxsize)
    names = _COMPILED[before:]
    if len(names) > allowed:
        number = "a program" if len(names) == 1 else f"{len(names)} programs"
        pytest.fail(ADVICE.format(test=item.name, number=number, names=", ".join(names)), False)
    return result
