"""`azjax.train`, with custom games and parts, callbacks and resumed runs."""

import contextlib
import dataclasses
import io
import json
import pathlib
import types

import jax
import numpy as np
import pytest

import azjax as az
import misere_pile
from azjax import program, runs
from azjax.cli import custom, play, train, verify
from azjax.runs import presets
from azjax.runs.config import Config, Plan, make_parts
from azjax.training import Parts
from azjax.training.loop import Callback, check_callbacks
from refusals import assert_refused, check_program
from small import make_run

pytestmark = pytest.mark.usefixtures("compiled_once")

TINY = presets.smoke(presets.get("default"))
PARTS_FILE = """
from azjax.runs import presets
from azjax.runs.config import make_parts

def make():
    return make_parts(presets.smoke(presets.get("default")))
"""


class Counter(az.Callback):
    """Adds a metric, and records the calls."""

    def __init__(self, run_dir):
        self.events, self._run_dir = [], run_dir

    def on_start(self, loop):
        self.events.append("start")

    def on_iteration(self, loop):
        loop.add(squared=float(loop.iteration**2))

    def on_checkpoint(self, loop):
        self.events.append(f"checkpoint {runs.iterations(self._run_dir)[-1]}")

    def on_end(self, loop):
        self.events.append("end")


def test_a_run_from_python_is_a_run_and_resumes(tmp_path, capfd):
    counter = Counter(tmp_path / "run")
    settings = {"report": False, "display": False, "until": "never", "max_iterations": 3}
    run = az.train(TINY, tmp_path / "run", callbacks=[counter], checkpoint_every=2, **settings)
    assert counter.events == ["start", "checkpoint 2", "checkpoint 3", "end"]
    assert [record["squared"] for record in run.metrics] == [1, 4, 9]
    assert [record["blunders"] is not None for record in run.metrics] == [True] * 3
    loaded = az.load(run.run_dir)
    jax.tree.map(np.testing.assert_array_equal, run.player.params, loaded.params)
    assert loaded.iteration == run.player.iteration == 3
    written = json.loads((run.run_dir / "certificate.json").read_text())
    assert written == json.loads(json.dumps(run.certificate.as_json()))
    assert run.reached and not run.certificate.perfect
    az.train(TINY, tmp_path / "two", **settings | {"max_iterations": 2})
    capfd.readouterr()
    three = {"max_iterations": 3, "checkpoint_every": 9}
    resumed = az.train(TINY, tmp_path / "two", resume=True, **three)
    assert resumed.plan.checkpoint_every == 9
    out, err = capfd.readouterr()
    assert [line.split()[1] for line in out.splitlines()] == ["3"]
    assert err.splitlines()[-2:] == [
        "tic_tac_toe: compiling a training of 1,562 parameters for 8 x cpu…",
        "verifying the network with its searches, in every position",
    ]
    assert [r["loss"] for r in resumed.metrics] == [r["loss"] for r in run.metrics]
    jax.tree.map(np.testing.assert_array_equal, resumed.player.params, run.player.params)


@pytest.mark.compiles(1)  # The random games of other rules.
def test_custom_parts_are_trained_resumed_and_loaded(tmp_path, monkeypatch, capfd):
    """By the program, which names their file, and then from Python."""
    monkeypatch.chdir(tmp_path)
    pathlib.Path("mine.py").write_text(PARTS_FILE)
    named = ["--parts", "mine.py:make"]
    options = ["--until", "never", "--no-report", "--run-dir", "run", "--max-iterations", "1"]
    assert train.main([*named, *options, "--seed", "5"]) == 0
    out, err = capfd.readouterr()
    assert "play --run-dir run --parts mine.py:make\n" in out
    assert "tic_tac_toe: compiling a training of 1,562 parameters for 8 x cpu…\n" in err
    assert train.main(["--resume", "--run-dir", "run", *named, "--max-iterations", "2"]) == 0
    out, _ = capfd.readouterr()
    assert [line.split()[1] for line in out.splitlines() if line.startswith("iteration")] == ["2"]
    parts = custom.load_code("mine.py:make", Parts)
    run = az.train(parts, "run", resume=True, max_iterations=3, display=False)
    assert capfd.readouterr() == ("", "")
    assert run.config.seed == 5 and run.loop.iteration == 3 and run.loop.parts is parts
    player = az.load("run", parts=parts)
    jax.tree.map(np.testing.assert_array_equal, run.player.params, player.params)
    assert player.parts is parts
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert play.main(["--run-dir", "run", *named, "--o", "network"]) == 0
    both = "--parts has its own settings: leave --game out"
    check_program(train.main, [([*named, "--game", "hex:3"], both)], capfd)
    make_run("other", TINY)
    runs.create_run("third", Config(parts="python"))
    recorded = json.loads(pathlib.Path("third/config.json").read_text())  # No other settings.
    assert recorded.keys() == {"format", "game", "seed", "parts"}
    made = "of third was made in Python: use azjax.load('third', parts=...) there"
    check_program(verify.main, [("--run-dir third", made)], capfd)
    changed = dataclasses.replace(TINY, learner=dataclasses.replace(TINY.learner, l2=0.5))
    rows = [
        (lambda: az.load("run"), "the parts are custom, mine.py:make", "pass them as parts="),
        (lambda: az.train("tic_tac_toe", "run", resume=True), "network or parts: give the same to"),
        (lambda: az.train(parts, "other", resume=True), "is a run of tic_tac_toe: give the same"),
        (lambda: az.train("hex:3", "other", resume=True), "game was 'tic_tac_toe', not 'hex:3': "),
        (lambda: az.train(None, "other", resume=True, preset="mlp"), "has them all: leave preset"),
        (lambda: az.train(None, "other", resume=True, seed=3), "settings, and seed was 0, not 3"),
        (lambda: az.train(changed, "other", resume=True), "settings, and learner.l2 was 0.0, not "),
    ]
    assert_refused(*rows)


def test_presets_and_smoke_choose_the_settings(monkeypatch):
    opened = []  # The arguments of runs, of which none is trained.

    @contextlib.contextmanager
    def record(config, parts, plan, run_dir, **others):
        opened.append((config, parts, plan, others["preset"]))
        yield types.SimpleNamespace(train=lambda *callbacks, **others: None)

    monkeypatch.setattr(program, "open_run", record)
    for game in (az.make("connect_four"), "tic_tac_toe", misere_pile.make()):
        az.train(game)
        az.train(game, preset="mlp", smoke=True, seed=3)
    chosen = [preset for *_, preset in opened]
    assert chosen == ["connect_four", "mlp", "default", "mlp", "default", "mlp"]
    mlp = dataclasses.replace(presets.smoke(presets.get("mlp")), game="tic_tac_toe", seed=3)
    config, parts, plan, _ = opened[3]
    assert config == mlp and plan == Plan(until="never", max_iterations=3)
    assert parts == make_parts(mlp)
    config, *_ = opened[5]
    assert config.game == "python:misere_pile" and config.selfplay == mlp.selfplay
    az.train(preset="connect_four", smoke=True)  # As the command does.
    assert opened.pop()[0].game == "connect_four"
    az.train(TINY, seed=3, until="perfect")
    config, _, plan, preset = opened[6]
    assert config == dataclasses.replace(TINY, seed=3) and plan.until == "perfect"
    assert preset is None


def test_what_has_no_effect_is_refused(tmp_path):
    def call(what="tic_tac_toe", **fields):
        return lambda: az.train(what, tmp_path / "run", **fields)

    misspelled = type("Misspelled", (Callback,), {"on_iteratoin": print})()
    kinds = "give the name of a game, a Game, a Config, Parts, or a preset"
    assert_refused(
        (call(make_parts(TINY), smoke=True), "smoke chooses settings, but this run has them all: "),
        (call(callbacks=[print]), "callbacks[0] is <built-in function print>: give an instance of"),
        (lambda: check_callbacks([misspelled]), "on_iteratoin is not an event of...on_iteration"),
        (call(cpu_devices=2), "unknown setting 'cpu_devices': use one of until, "),
        *((call(what), f"of type {type(what).__name__}: {kinds}") for what in (3, None)),
        (call(max_minutes=-1), "max_minutes is -1.0: use 0 or more"),
        (call("connect_four", until="perfect"), "until is 'perfect', but connect_four has too"),
        (call(max_iteration=3), "one of ", "; did you mean max_iterations"),
    )
