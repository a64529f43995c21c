"""What TensorBoard and Weights & Biases are given, with stand-ins for their packages."""

import functools
import importlib.util
import sys
import types

import pytest

from azjax.training import loggers
from azjax.training.loop import Loop
from refusals import assert_refused
from small import LOSSES, record


class Error(Exception):
    """Of Weights & Biases."""


class Package:
    """Both packages; notes what is called."""

    def __init__(self, start_error="", step=0):
        self.calls, self.step, self.start_error = [], step, start_error
        self.errors = types.SimpleNamespace(Error=Error)

    def init(self, **settings):
        if self.start_error:
            raise Error(self.start_error)
        self.calls.append(("start", settings))
        return self

    def log(self, metrics, step):
        self.calls.append((metrics, step))

    def SummaryWriter(self, folder, purge_step):  # noqa: N802
        self.calls.append((folder, purge_step))
        return self

    def add_scalar(self, name, value, step):
        self.calls.append((name, value, step))

    def __getattr__(self, name):
        return lambda: self.calls.append(name)


@pytest.fixture
def install(monkeypatch):
    """Installs a stand-in for both packages."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)

    def install(**settings):
        package = Package(**settings)
        for name in ("tensorboardX", "wandb"):
            monkeypatch.setitem(sys.modules, name, package)
        return package

    return install


def log(callback, start, iterations):
    loop = Loop(None, types.SimpleNamespace(iteration=start), None, 9, 0.0)
    callback.on_start(loop)
    for loop.state.iteration in iterations:
        number = loop.state.iteration
        loop.record = record(number, blunders=None, extra={"elo": 7.0 * number})
        callback.on_iteration(loop)
    callback.close()


def scalars(number):
    made = record(number).as_dict() | {"elo": 7.0 * number}
    return {name: x for name, x in made.items() if name not in ("iteration", "blunders")}


def test_tensorboard_gets_every_metric_and_purges_later_points(install, tmp_path):
    package = install()
    loggers.TensorBoard(tmp_path).close()  # Training may end before it starts.
    log(loggers.TensorBoard(tmp_path / "new"), 3, [4, 5])
    written = [[(*item, step) for item in scalars(step).items()] for step in (4, 5)]
    first, last = ([*points, "flush"] for points in written)
    assert package.calls == [(str(tmp_path / "new"), 4), *first, *last, "close"]
    assert {*LOSSES, "seconds", "games"} <= scalars(4).keys()


def test_weights_and_biases_gets_every_metric_once(install, tmp_path):
    package, given = install(step=5), {"mode": "offline", "dir": str(tmp_path)}
    for name in ("offline-run-20260102_030405-an-id", "run-20250102_030405-old", "latest-run"):
        (tmp_path / "wandb" / name).mkdir(parents=True)
    loggers.WeightsAndBiases().close()
    log(loggers.WeightsAndBiases("mine", **given), 3, [4, 5])  # W&B has step 4 already.
    settings = {"id": "an-id", "resume": "allow", "project": "mine"} | given
    assert package.calls == [("start", settings), (scalars(5), 5), "finish"]
    log(loggers.WeightsAndBiases(**given), 0, [])
    assert package.calls[3:] == [("start", {"project": "azjax"} | given), "finish"]


def test_what_cannot_work_is_one_sentence(install, monkeypatch):
    install(start_error="no API key.\nAsk for one")
    with pytest.raises(ConnectionError, match=r"did not start \(no API key\): call `wandb login`"):
        log(loggers.WeightsAndBiases(), 0, [])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert_refused(
        (
            loggers.WeightsAndBiases,
            "Weights & Biases needs the package wandb: ...pip install wandb",
        ),
        (functools.partial(loggers.TensorBoard, "x"), "needs the package tensorboardX: install"),
    )
