"""`azjax.train`, with custom games and parts, callbacks and resumed runs."""

import contextlib
import dataclasses
import io
import json
import pathlib
import shutil
import signal
import types

import jax
import numpy as np
import pytest

import azjax as az
import misere_pile
from azjax.cli import custom, play, train, verify
from azjax.programs import prepare, training
from azjax.runs import checkpoint, presets
from azjax.runs.plan import Plan
from refusals import assert_refused, check_program
from run_directories import make_run

pytestmark = pytest.mark.usefixtures("compiled_once")

TINY = presets.smoke(presets.get("default"))
LARGE = az.make("connect_four")
FEW = {"report": False, "display": False, "until": "never"}
PARTS_FILE = """
import dataclasses

import misere_pile
from azjax.runs import presets
from azjax.runs.config import make_parts


def make():
    tiny = presets.smoke(presets.get("default"))
    network = dataclasses.replace(tiny.network, symmetric=False, norm="none")
    game = misere_pile.make()
    parts = make_parts(dataclasses.replace(tiny, network=network), game)
    search = dataclasses.replace(parts.search, num_simulations=3)
    return parts._replace(search=search)
"""


class Counter(az.Callback):
    """Adds a metric, counts the calls, and copies the run directory at its first checkpoint."""

    def __init__(self, run_dir, copy):
        self.events, self._run_dir, self._copy = [], run_dir, copy

    def on_start(self, loop):
        self.events.append("start")

    def on_iteration(self, loop):
        loop.add(squared=float(loop.iteration**2))

    def on_checkpoint(self, loop):
        self.events.append(f"checkpoint {loop.iteration}")
        if not self._copy.exists():
            shutil.copytree(self._run_dir, self._copy)

    def on_end(self, loop):
        self.events.append("end")


@pytest.fixture(scope="module")
def counted(compiled_once, tmp_path_factory):
    """A run with a custom callback and matches, the callback, and a copy at iteration 2."""
    folder = tmp_path_factory.mktemp("train")
    counter = Counter(folder / "run", folder / "copy")
    settings = FEW | {"strength_every": 1, "strength_games": 4, "checkpoint_every": 2}
    run = az.train(TINY, folder / "run", callbacks=[counter], max_iterations=3, **settings)
    return run, counter, folder / "copy"


def test_a_run_from_python_is_a_run(counted):
    run, counter, _ = counted
    assert counter.events == ["start", "checkpoint 2", "checkpoint 3", "end"]
    assert [record["squared"] for record in run.metrics] == [1, 4, 9]
    assert [record["blunders"] is not None for record in run.metrics] == [True] * 3
    loaded = az.load(run.run_dir)
    jax.tree.map(np.testing.assert_array_equal, run.player.params, loaded.params)
    assert loaded.iteration == run.player.iteration == 3
    written = json.loads((run.run_dir / "certificate.json").read_text())
    assert written == json.loads(json.dumps(run.certificate.as_json()))
    assert run.reached and not run.certificate.perfect
    again = az.verify(loaded, simulations=())
    assert again.blunders == run.certificate.blunders and again.searches == ()
    large = dataclasses.replace(loaded, parts=loaded.parts._replace(game=LARGE))
    said = "has too many positions to enumerate: play a seat"
    assert_refused((lambda: az.verify(large), said))


def test_a_resumed_run_equals_an_uninterrupted_one(counted, capfd):
    whole, _, copy = counted
    run = az.train(TINY, copy, resume=True, display=True, checkpoint_every=9)
    assert run.plan.checkpoint_every == 9
    out, err = capfd.readouterr()
    assert [line.split()[1] for line in out.splitlines()] == ["3"]
    assert err == "verifying the network with its searches, in every position\n"
    for mine, theirs in zip(run.metrics, whole.metrics, strict=True):
        for name in ("loss", "elo_uct", "elo_best_low", "elo_best_iteration"):
            assert mine[name] == theirs[name]
    jax.tree.map(np.testing.assert_array_equal, run.player.params, whole.player.params)


def test_an_interrupt_loses_nothing(tmp_path):
    class Presses(az.Callback):
        def on_iteration(self, loop):
            if loop.iteration == 2:
                signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        az.train(TINY, tmp_path / "run", callbacks=[Presses()], max_iterations=9, **FEW)
    assert az.load(tmp_path / "run").iteration == 2
    assert signal.getsignal(signal.SIGINT) is before


def test_custom_parts_are_trained_resumed_and_loaded(tmp_path, monkeypatch, capfd):
    """By the program, which names their file, and then from Python."""
    monkeypatch.chdir(tmp_path)
    pathlib.Path("mine.py").write_text(PARTS_FILE)
    named = ["--parts", "mine.py:make"]
    options = ["--until", "never", "--no-report", "--run-dir", "run", "--max-iterations", "1"]
    assert train.main([*named, *options, "--seed", "5"]) == 0
    assert "play --run-dir run --parts mine.py:make\n" in capfd.readouterr().out
    assert json.loads(pathlib.Path("run/config.json").read_text())["game"] == "misere_pile"
    assert train.main(["--resume", "--run-dir", "run", *named, "--max-iterations", "2"]) == 0
    parts = custom.find_parts("mine.py:make")
    run = az.train(parts, "run", resume=True, max_iterations=3, display=False)
    assert run.config.seed == 5 and run.loop.iteration == 3
    player = az.load("run", parts=parts)
    jax.tree.map(np.testing.assert_array_equal, run.player.params, player.params)
    assert player.parts.search.num_simulations == 3
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert play.main(["--run-dir", "run", *named, "--x", "network", "--o", "random"]) == 0
    pathlib.Path("edited.py").write_text(PARTS_FILE + "# Edited.\n")
    edited = ["--parts", "edited.py:make", "--simulations", "0", "--json"]
    assert verify.main(["--run-dir", "run", *edited]) in (0, 1)
    assert "edited.py:make was edited since run was trained" in capfd.readouterr().err
    pathlib.Path("wrong.py").write_text(PARTS_FILE.replace('norm="none"', 'norm="layer"'))
    unnamed = "run has custom parts, and azjax imports only code that you name: add --parts mine.py"
    rows = [("--run-dir run", unnamed), ("--run-dir run --parts wrong.py:make", "its custom parts")]
    check_program(verify.main, rows, capfd)
    both = "--parts has its own game: leave --game out"
    check_program(train.main, [([*named, "--game", "hex:3"], both)], capfd)
    make_run("other", TINY)
    rows = [
        (lambda: az.load("run"), "the parts are custom, mine.py:make", "pass them as parts="),
        (lambda: az.train("tic_tac_toe", "run", resume=True), "custom parts: give the same to"),
        (lambda: az.train(parts, "other", resume=True), "is a run of tic_tac_toe: give the same"),
        (lambda: az.train("hex:3", "other", resume=True), "is a run of tic_tac_toe, not of hex:3"),
    ]
    assert_refused(*rows)


@pytest.fixture
def opened(monkeypatch):
    """The arguments of the runs that `azjax.train` opens; none is trained."""
    calls = []

    @contextlib.contextmanager
    def record(config, plan, run_dir, make_parts, **others):
        calls.append((config, plan, make_parts))
        yield types.SimpleNamespace(train=lambda *callbacks, **others: None)

    monkeypatch.setattr(training, "open_run", record)
    return calls


def test_a_custom_game_is_trained_by_its_record(opened, tmp_path):
    game = misere_pile.make()
    az.train(game, smoke=True)
    ((config, _, make_parts),) = opened
    assert config.game == "python:misere_pile" and make_parts(config).game is game
    assert az.load(make_run(tmp_path / "run", config, (1,), game), game=game).iteration == 1


def test_presets_and_smoke_choose_the_settings(opened):
    for game in ("connect_four", "tic_tac_toe", misere_pile.make()):
        az.train(game)
        az.train(game, preset="mlp", smoke=True, seed=3)
    chosen = [plan.preset for _, plan, _ in opened]
    assert chosen == ["connect_four", "mlp", "default", "mlp", "default", "mlp"]
    mlp = dataclasses.replace(presets.smoke(presets.get("mlp")), game="tic_tac_toe", seed=3)
    config, plan, _ = opened[3]
    assert config == mlp and plan == Plan("mlp", smoke=True, until="never", max_iterations=3)
    config, plan, _ = opened[5]
    assert config.game == "python:misere_pile" and config.selfplay == mlp.selfplay
    az.train(presets.get("mlp"), smoke=True, until="perfect")
    config, plan, _ = opened[6]
    assert config == presets.smoke(presets.get("mlp")) and plan.until == "perfect"


def test_what_has_no_effect_is_refused(tmp_path):
    def call(what="tic_tac_toe", **fields):
        return lambda: az.train(what, tmp_path / "run", **fields)

    space = {}
    exec(PARTS_FILE, space)
    rows = [
        (call(preset="papre"), "unknown preset 'papre': ", "; did you mean paper"),
        (call(preset="mlp", resume=True), "keeps its settings: leave preset out"),
        (call(TINY, preset="mlp"), "preset changes settings, but Config has them all: leave"),
        (call(space["make"](), smoke=True), "smoke changes settings, but Parts has them all: "),
        (call(cpu_devices=2), "cpu_devices is an option of `azjax train`: in"),
        (call(3), "of type int: give the name of a game, a Game, "),
        (call(max_iteration=3), "one of ", "; did you mean max_iterations"),
        (lambda: az.train(resume=True), "run_dir is None: name the run to resume"),
    ]
    assert_refused(*rows)
    assert not (tmp_path / "run").exists()


RECORDS = [  # Iterations in `metrics.jsonl`, the seconds to continue from, and the note.
    ([1, 2, 3], 3.0, ""),
    ([1, 2, 3, 4], 3.0, "was saved after iteration 3, but recorded up to 4"),
    ([1, 2], 2.0, "metrics.jsonl ends at iteration 2, before checkpoint 3"),
    ([], 0.0, "metrics.jsonl ends at iteration 0, before checkpoint 3"),
]


def test_a_resumed_run_reports_missing_records(tmp_path, monkeypatch):
    restored = checkpoint.Restored(types.SimpleNamespace(iteration=3), [])
    monkeypatch.setattr(prepare.checkpoint, "restore", lambda *_, **__: restored)
    for iterations, seconds, note in RECORDS:
        lines = [json.dumps({"iteration": i, "seconds": float(i)}) + "\n" for i in iterations]
        (tmp_path / "metrics.jsonl").write_text("".join(lines))
        notes = []
        assert prepare._restore(tmp_path, None, None, notes.append)[1] == seconds
        assert len(notes) == bool(note) and note in "".join(notes)
