"""A pytest plugin: which test compiles which program, and what all tests cost.

Compiling takes most of the time of the tests.

A program is what XLA compiles for a function of azjax or of a test, as opposed to one operation of
`jax.numpy`. Tests in `tests/eager` compile none; those in `tests/compiled` share theirs.
"""

import contextlib
import functools
import resource
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


def layer(item: pytest.Item) -> str:
    return item.path.relative_to(item.config.rootpath / "tests").parts[0]


def check(item: pytest.Item, before: int) -> None:
    """Fails a test that compiled more than it may since `before` programs were compiled."""
    mark = item.get_closest_marker("compiles")
    allowed = {"eager": 0, "compiled": mark.args[0] if mark else 0}.get(layer(item), sys.maxsize)
    names = _COMPILED[before:]
    if len(names) > allowed:
        number = "a program" if len(names) == 1 else f"{len(names)} programs"
        pytest.fail(ADVICE.format(test=item.name, number=number, names=", ".join(names)), False)


def cpu_seconds() -> float:
    """The CPU time of this process and of the ended ones that it started."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def pytest_configure(config):
    jax.monitoring.register_event_duration_secs_listener(_count)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    with contextlib.nullcontext() if fixturedef.scope == "function" else sharing():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    before = len(_COMPILED)
    result = yield
    check(item, before)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session):
    result = yield  # The processes of pytest-xdist have ended then.
    limit = session.config.getoption("--cpu-seconds")
    if limit and not hasattr(session.config, "workerinput") and cpu_seconds() > limit:
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
    return result


def pytest_terminal_summary(terminalreporter, config):
    limit = config.getoption("--cpu-seconds")
    text = f", of at most {limit:.0f}" if limit else ""
    terminalreporter.line(f"{cpu_seconds():.0f} CPU seconds{text}")
