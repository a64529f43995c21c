"""TensorBoard and Weights & Biases get all metrics, with their names and iterations."""

import os
import subprocess
import sys
import types

import pytest

from azjax.cli import train
from azjax.training import loggers
from azjax.training.loop import Loop
from azjax.training.metrics import Record

LOSSES = {"loss": 0.5, "value_loss": 0.25}


def log(callback, iterations=2):
    """Passes the records of some iterations to a callback."""
    loop = Loop(None, types.SimpleNamespace(iteration=0), None, iterations, 0.0)
    callback.on_start(loop)
    for number in range(1, iterations + 1):
        loop.state = types.SimpleNamespace(iteration=number)
        loop.record = Record(number, 1.0, 2, 3.0, LOSSES, extra={"elo": float(number)})
        callback.on_iteration(loop)
    callback.close()


def test_tensorboard_gets_every_metric(tmp_path):
    tensorboardX = pytest.importorskip("tensorboardX")
    written = []

    class Writer(tensorboardX.SummaryWriter):
        def add_scalar(self, name, value, step):
            written.append((name, value, step))
            super().add_scalar(name, value, step)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tensorboardX, "SummaryWriter", Writer)
        log(loggers.TensorBoard(tmp_path))
    (file,) = tmp_path.iterdir()
    assert b"value_loss" in file.read_bytes()
    names = ["seconds", "games", "games_per_second", *LOSSES, "elo"]
    assert [name for name, _, step in written if step == 2] == names
    assert ("elo", 2.0, 2) in written and ("value_loss", 0.25, 1) in written


# In a separate process, since it starts others and waits for their end.
OFFLINE = """
import sys, types
from azjax.training.loggers import WeightsAndBiases
from azjax.training.loop import Loop
from azjax.training.metrics import Record
import wandb
callback = WeightsAndBiases(
    mode="offline", dir=sys.argv[1], name="mine", config={"seed": 3},
    settings=wandb.Settings(silent=True),
)
loop = Loop(None, types.SimpleNamespace(iteration=0), None, 2, 0.0)
callback.on_start(loop)
assert wandb.run.config["seed"] == 3 and wandb.run.name == "mine"
for number in (1, 2):
    loop.state = types.SimpleNamespace(iteration=number)
    loop.record = Record(number, 1.0, 2, 3.0, {"loss": 0.5}, extra={"elo": 7.0})
    callback.on_iteration(loop)
    assert wandb.run.step == number
assert dict(wandb.run.summary)["elo"] == 7.0 and dict(wandb.run.summary)["loss"] == 0.5
callback.close()
assert wandb.run is None
"""


def test_weights_and_biases_gets_every_metric_offline(tmp_path):
    pytest.importorskip("wandb")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", OFFLINE, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))


@pytest.mark.parametrize(
    ("make", "package"),
    [(lambda: loggers.TensorBoard("x"), "tensorboardX"), (loggers.WeightsAndBiases, "wandb")],
)
def test_a_missing_package_is_named_before_training(make, package, monkeypatch):
    monkeypatch.setattr(loggers.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=f"needs the package {package}: .* install {package}$"):
        make()


REFUSED = [
    (["wandb"], {}, "rejects the login (No API key configured"),
    (["wandb"], {"WANDB_API_KEY": "short"}, "rejects the login (WANDB_API_KEY invalid"),
    (
        ["wandb"],
        {"WANDB_MODE": "off"},
        "the mode of Weights & Biases is off: use online,",
    ),
    (["tensorboard", "--run-dir", "file/run"], {}, "TensorBoard cannot write to file/run/tens"),
]


def test_a_logger_that_cannot_start_stops_before_anything_is_compiled(tmp_path, capfd, monkeypatch):
    pytest.importorskip("wandb")
    pytest.importorskip("tensorboardX")
    monkeypatch.setattr(train, "open_run", None)
    monkeypatch.setenv("HOME", str(tmp_path))  # Without a key in .netrc.
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    for arguments, variables, sentence in REFUSED:
        with monkeypatch.context() as patch:
            for name in ("WANDB_API_KEY", "WANDB_MODE"):
                patch.delenv(name, raising=False)
            for name, value in variables.items():
                patch.setenv(name, value)
            assert train.main(["--smoke", "--log", *arguments]) == 2
        said = capfd.readouterr().err.splitlines()[-1]
        assert said.startswith("error: ") and sentence in said
    assert not (tmp_path / "runs").exists()


def test_a_resumed_run_purges_later_points_and_continues_its_run(tmp_path, monkeypatch):
    tensorboardX, wandb = map(pytest.importorskip, ("tensorboardX", "wandb"))
    given = []

    def start(*folder, **settings):
        given.append(settings)
        return types.SimpleNamespace(step=5, log=lambda _, step: given.append(step))

    monkeypatch.setattr(tensorboardX, "SummaryWriter", start)
    monkeypatch.setattr(wandb, "init", start)
    for name in ("offline-run-20260102_030405-an-id", "run-20250102_030405-old", "latest-run"):
        (tmp_path / "wandb" / name).mkdir(parents=True)
    loop = Loop(None, types.SimpleNamespace(iteration=3), None, 9, 0.0)
    loggers.TensorBoard(tmp_path).on_start(loop)
    logger = loggers.WeightsAndBiases("mine", mode="offline", dir=str(tmp_path))
    logger.on_start(loop)
    expected = {"project": "mine", "mode": "offline", "dir": str(tmp_path)}
    assert given == [{"purge_step": 4}, {"id": "an-id", "resume": "allow", **expected}]
    for number in (4, 5):  # W&B has step 4 already.
        loop.state.iteration = number
        loop.record = Record(number, 1.0, 2, 3.0, LOSSES)
        logger.on_iteration(loop)
    assert given[2:] == [5]
    loop.state.iteration = 0
    logger.on_start(loop)
    assert given[3] == expected


@pytest.mark.slow
def test_a_training_logs_into_its_run(tmp_path):
    pytest.importorskip("tensorboardX")
    few = ["--smoke", "--no-report", "--max-iterations", "1", "--run-dir", str(tmp_path / "run")]
    assert train.main([*few, "--log", "tensorboard"]) == 0
    (file,) = (tmp_path / "run" / "tensorboard").iterdir()
    assert b"blunders" in file.read_bytes()
