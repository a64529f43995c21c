"""`azjax.train`, with custom games and parts, callbacks and resumed runs."""

import contextlib
import dataclasses
import io
import json
import pathlib
import signal
import types

import jax
import numpy as np
import pytest

import azjax as az
import misere_pile
from azjax.cli import explain, play, report, train, verify
from azjax.programs import prepare, training
from azjax.proof import callbacks, certificate
from azjax.runs import checkpoint, presets
from azjax.runs.plan import Plan

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
    """Adds a metric, and counts the calls."""

    def __init__(self):
        self.events = []

    def on_start(self, loop):
        self.events.append("start")

    def on_iteration(self, loop):
        loop.add(squared=float(loop.iteration**2))

    def on_checkpoint(self, loop):
        self.events.append(f"checkpoint {loop.iteration}")

    def on_end(self, loop):
        self.events.append("end")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Skips what takes longer than training: verification of searches, and compilation."""

    def network_alone(parts, config, params):
        return certificate.network_policy(parts, params)

    monkeypatch.setattr(certificate, "search_policy", network_alone)


@pytest.fixture
def parts():
    space = {}
    exec(PARTS_FILE, space)
    return space["make"]()


def test_a_run_from_python_is_a_run(tmp_path, capfd):
    counter, path = Counter(), tmp_path / "run"
    plan = FEW | {"display": True, "max_iterations": 3, "checkpoint_every": 2}
    run = az.train(TINY, path, callbacks=[counter], **plan)
    assert counter.events == ["start", "checkpoint 2", "checkpoint 3", "end"]
    assert capfd.readouterr().err == "verifying the network with its searches, in every position\n"
    assert [record["squared"] for record in run.metrics] == [1, 4, 9]
    assert [record["blunders"] is not None for record in run.metrics] == [True] * 3
    loaded = az.load(path)
    jax.tree.map(np.testing.assert_array_equal, run.player.params, loaded.params)
    assert loaded.iteration == run.player.iteration == 3
    written = json.loads((path / "certificate.json").read_text())
    assert written == json.loads(json.dumps(run.certificate.as_json()))
    assert run.reached and not run.certificate.perfect
    again = az.verify(loaded, simulations=())
    assert again.blunders == run.certificate.blunders and again.searches == ()
    with pytest.raises(ValueError, match="has too many positions to enumerate: play a seat"):
        az.verify(dataclasses.replace(loaded, parts=loaded.parts._replace(game=LARGE)))
    assert verify.main(["--run-dir", str(path), "--json"]) == 1


def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path, capfd):
    measured = FEW | {"strength_every": 1, "strength_games": 4}
    whole = az.train(TINY, tmp_path / "whole", max_iterations=4, **measured)
    az.train(TINY, tmp_path / "run", max_iterations=2, **measured)
    run = az.train(TINY, tmp_path / "run", resume=True, max_iterations=4, display=True)
    assert [line.split()[1] for line in capfd.readouterr().out.splitlines()] == ["3", "4"]
    for mine, theirs in zip(run.metrics, whole.metrics, strict=True):
        for name in ("loss", "elo_uct", "elo_best_low", "elo_best_iteration"):
            assert mine[name] == theirs[name]
    jax.tree.map(np.testing.assert_array_equal, run.player.params, whole.player.params)
    with pytest.raises(ValueError, match="is a run of tic_tac_toe, not of hex:3"):
        az.train("hex:3", tmp_path / "run", resume=True)


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


def test_custom_parts_are_saved_resumed_and_loaded(tmp_path, parts):
    path = tmp_path / "run"
    az.train(parts, path, seed=5, max_iterations=1, **FEW)
    run = az.train(parts, path, resume=True, max_iterations=2)
    assert run.config.seed == 5 and run.loop.iteration == 2
    player = az.load(path, parts=parts)
    jax.tree.map(np.testing.assert_array_equal, run.player.params, player.params)
    assert player.parts.search.num_simulations == 3
    with pytest.raises(ValueError, match="the parts are custom, python: pass them as parts="):
        az.load(path)
    other = parts._replace(game=parts.game._replace(step=lambda state, action: (state, 0.0)))
    for refused in (
        lambda: az.load(path, parts=other),
        lambda: az.train(other, path, resume=True),
    ):
        with pytest.raises(ValueError, match="rules"):
            refused()
    with pytest.raises(ValueError, match="is a run of a custom game or .*: give the same"):
        az.train("tic_tac_toe", path, resume=True)
    az.train(TINY, tmp_path / "other", max_iterations=1, **FEW)
    with pytest.raises(ValueError, match="is a run of tic_tac_toe: give the same to resume it"):
        az.train(parts, tmp_path / "other", resume=True)


def test_a_custom_game_is_trained_by_its_record(tmp_path, monkeypatch):
    game = misere_pile.make()
    monkeypatch.setattr(presets, "get", lambda name: dataclasses.replace(TINY, game="x"))
    run = az.train(game, tmp_path / "run", max_iterations=1, **FEW)
    assert run.config.game == "python:misere_pile"
    assert az.load(tmp_path / "run", game=game).iteration == 1
    with pytest.raises(ValueError, match="of type int: give the name of a game, a Game, "):
        az.train(3)
    with pytest.raises(ValueError, match="one of .*; did you mean max_iterations"):
        az.train("tic_tac_toe", max_iteration=3)


def test_presets_and_smoke_choose_the_settings(tmp_path, monkeypatch):
    chosen = []

    @contextlib.contextmanager
    def record(config, plan, run_dir, **others):
        chosen.append((config, plan))
        yield types.SimpleNamespace(train=lambda *callbacks, **others: None)

    monkeypatch.setattr(training, "open_run", record)
    for game in ("connect_four", "tic_tac_toe", misere_pile.make()):
        az.train(game)
        az.train(game, preset="mlp", smoke=True, seed=3)
    presets_of = [plan.preset for _, plan in chosen]
    assert presets_of == ["connect_four", "mlp", "default", "mlp", "default", "mlp"]
    mlp = dataclasses.replace(presets.smoke(presets.get("mlp")), game="tic_tac_toe", seed=3)
    config, plan = chosen[3]
    assert config == mlp and plan == Plan("mlp", smoke=True, until="never", max_iterations=3)
    config, plan = chosen[5]
    assert config.game == "python:misere_pile" and config.selfplay == mlp.selfplay
    az.train(presets.get("mlp"), smoke=True, until="perfect")
    config, plan = chosen[6]
    assert config == presets.smoke(presets.get("mlp")) and plan.until == "perfect"


@pytest.mark.parametrize(
    ("what", "fields", "said"),
    [
        ("tic_tac_toe", {"preset": "papre"}, "unknown preset 'papre': .*; did you mean paper"),
        ("tic_tac_toe", {"preset": "mlp", "resume": True}, "keeps its settings: leave preset out"),
        (TINY, {"preset": "mlp"}, "preset changes settings, but Config has them all: leave"),
        (None, {"smoke": True}, "smoke changes settings, but Parts has them all: leave smoke out"),
        ("tic_tac_toe", {"cpu_devices": 2}, "cpu_devices is an option of `azjax train`: in"),
    ],
)
def test_fields_without_an_effect_are_rejected(what, fields, said, tmp_path, parts):
    with pytest.raises(ValueError, match=said):
        az.train(parts if what is None else what, tmp_path / "run", **fields)
    assert not (tmp_path / "run").exists()


def test_results_in_memory_are_reused(tmp_path, monkeypatch):
    """The game is solved only once, and the certificate and the report do not load the player."""
    counts = {"solve": 0, "load": 0}

    def count(owner, name, key):
        original = getattr(owner, name)

        def counting(*arguments, **settings):
            counts[key] += 1
            return original(*arguments, **settings)

        monkeypatch.setattr(owner, name, counting)

    count(callbacks.solver, "solve", "solve")
    count(prepare.checkpoint, "restore_player", "load")
    settings = FEW | {"report": True, "smoke": True}
    az.train(TINY, tmp_path / "run", max_iterations=1, **settings)
    assert (tmp_path / "run" / "report.html").exists()
    assert counts == {"solve": 1, "load": 0}


def test_the_programs_take_custom_parts(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("mine.py").write_text(PARTS_FILE)
    named = ["--parts", "mine.py:make"]
    options = ["--until", "never", "--no-report", "--run-dir", "run"]
    assert train.main([*named, *options, "--max-iterations", "1"]) == 0
    printed = capfd.readouterr().out
    assert "play --run-dir run --parts mine.py:make\n" in printed
    assert train.main(["--resume", "--run-dir", "run", *named, "--max-iterations", "2"]) == 0
    assert json.loads(pathlib.Path("run/config.json").read_text())["game"] == "misere_pile"
    found = ["--run-dir", "run", *named]
    assert verify.main([*found, "--json"]) in (0, 1)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert play.main([*found, "--x", "network", "--o", "random"]) == 0
    for program in (explain, report):
        assert program.main([*found, *(["--out", "x.html"] if program is explain else [])]) == 0
    capfd.readouterr()
    assert verify.main(["--run-dir", "run"]) == 2
    said = (
        "run has custom parts, and azjax imports only code that you name: add --parts mine.py:make"
    )
    assert said in capfd.readouterr().err
    pathlib.Path("edited.py").write_text(PARTS_FILE + "# Edited.\n")
    assert verify.main(["--run-dir", "run", "--parts", "edited.py:make", "--json"]) in (0, 1)
    assert "edited.py:make was edited since run was trained" in capfd.readouterr().err
    pathlib.Path("wrong.py").write_text(PARTS_FILE.replace('norm="none"', 'norm="layer"'))
    assert verify.main(["--run-dir", "run", "--parts", "wrong.py:make"]) == 2
    assert train.main([*named, "--game", "hex:3"]) == 2
    assert "--parts has its own game: leave --game out" in capfd.readouterr().err


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
