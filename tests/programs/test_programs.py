"""`azjax train` and `azjax verify`: what a training leaves, resumes after, and says about it."""

import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import types

import jax
import numpy as np
import pytest

import azjax
from azjax import runs
from azjax._commands import command
from azjax.cli import arena, custom, explain, options, play, report, train, verify
from azjax.games import base
from azjax.programs import prepare
from azjax.proof import callbacks
from azjax.proof import certificate as certificates
from azjax.proof.certificate import Certificate, VerifiedSearch
from azjax.runs import checkpoint, lock
from azjax.runs.config import make_parts
from azjax.training import memory, metrics
from refusals import assert_refused, check_program
from terminal import Terminal
from trained import MOMENTS, RUN, damage, files, process_environment

pytestmark = pytest.mark.usefixtures("compiled_once")


def train_in(run_dir, *arguments):
    return train.main([*map(str, arguments), "--run-dir", str(run_dir)])


def resume(run_dir, *arguments):
    return train_in(run_dir, "--resume", "--no-report", *arguments)


def arrays(run_dir):
    """Returns the arrays of a run's newest checkpoint, from the parameters to the key."""
    state, skipped = checkpoint.restore(run_dir, make_parts(runs.read_config(run_dir)))
    assert not skipped
    state = dataclasses.replace(state, key=jax.random.key_data(state.key))
    leaves = jax.tree_util.tree_leaves_with_path(state)
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def records(run_dir, without_time=False):
    lines = (run_dir / "metrics.jsonl").read_text().splitlines()
    times = ("seconds", "games_per_second") if without_time else ()
    return [{k: v for k, v in json.loads(line).items() if k not in times} for line in lines]


def assert_same_end(run_dir, whole):
    """Checks that two runs have the same final state, bit for bit, and one record per iteration."""
    left, right = arrays(run_dir), arrays(whole)
    assert {n: x.dtype for n, x in left.items()} == {n: x.dtype for n, x in right.items()}
    assert [name for name in left if left[name].tobytes() != right[name].tobytes()] == []
    assert records(run_dir, without_time=True) == records(whole, without_time=True)


def read(run_dir, name="certificate.json"):
    return json.loads((run_dir / name).read_text())


# A whole run.


def test_a_training_prints_lines_and_what_to_do_next(trained):
    memory, *lines = trained.out.splitlines()
    assert re.fullmatch(r"memory on each of 8 devices: .* of .* \(network .*, work .*\)", memory)
    for number, line in enumerate(lines[:8], start=1):
        assert re.match(rf"iteration +{number} .* s .* games/s  loss .*blunders \d+ ", line)
    assert "\x1b" not in trained.out and "iteration" not in lines[8]
    assert lines[-4:] == [
        f"report: {trained.run_dir / 'report.html'}",
        f"run directory: {trained.run_dir}",
        f"play against it: {command('azjax', 'play')} --run-dir {trained.run_dir}",
        f"see how it searches: {command('azjax', 'explain')} --run-dir {trained.run_dir}",
    ]
    first, second, *others = trained.err.splitlines()
    assert first.startswith("verifying the network") and second.startswith("writing the report")
    assert all(line.startswith("for the report: ") for line in others)


def test_a_training_writes_checkpoints_records_and_a_certificate(trained):
    assert (trained.run_dir / "report.html").exists()
    found = records(trained.run_dir)
    assert [record["iteration"] for record in found] == [*range(1, 9)]
    best = min(found[1::2], key=lambda record: (record["blunders"], record["loss"]))
    assert runs.iterations(trained.run_dir) == sorted({6, 8, best["iteration"]})
    assert azjax.load(trained.run_dir).iteration == 8
    certificate, last = read(trained.run_dir), found[-1]
    fields = [field.name for field in dataclasses.fields(Certificate)]
    assert certificate.keys() == {*fields, "perfect", "unbeatable"}
    for name in ("blunders", "losing_lines_first", "losing_lines_second", "value_sign_errors"):
        assert certificate[name] == last[name]
    assert (certificate["iterations"], certificate["moves"]) == (8, 8 * 16 * 4)
    assert certificate["decision_states"] == 4520 and certificate["seconds"] >= last["seconds"]
    assert not certificate["perfect"] and not certificate["unbeatable"]


def test_results_in_memory_are_reused(trained):
    """The game is solved only once, and neither certificate nor report loads the player."""
    assert trained.calls == ["solve"]


def test_verify_finds_the_certificate(trained, capfd):
    assert verify.main(["--run-dir", str(trained.run_dir), "--json"]) == 1  # It is not perfect.
    said = json.loads(capfd.readouterr().out)
    assert said | {"seconds": 0} == read(trained.run_dir) | {"seconds": 0}
    assert len(said["searches"]) == 2
    arguments = ["--run-dir", str(trained.run_dir), "--limit", "2", "--simulations", "0"]
    assert verify.main(arguments) == 1
    out, err = capfd.readouterr()
    assert "NOT PROVED" in out and "network +" not in out and "\x1b" not in out and err == ""
    assert out.count("instead of") == 2
    assert f"and {said['blunders'] - 2:,} more: add --limit {said['blunders']} to see them" in out


def test_exhaustive_play_counts_the_losing_lines_of_the_certificate(run_dir, capfd):
    for seat in ("first", "second"):
        losing = read(run_dir)[f"losing_lines_{seat}"]
        status = verify.main(["--run-dir", str(run_dir), "--lines", seat, "--json"])
        found = json.loads(capfd.readouterr().out)
        assert found["games"]["lost"] == losing and status == (losing > 0)
        assert (found["seat"], found["simulations"], found["sampled"]) == (seat, 0, False)


@pytest.mark.slow
def test_verify_finds_the_searches_of_the_certificate(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(certificates, "search_policy", REAL_SEARCH)
    assert train_in(tmp_path / "run", *RUN, "--no-report", "--max-iterations", "1") == 0
    said = read(tmp_path / "run")
    assert len({search["blunders"] for search in said["searches"]} | {said["blunders"]}) == 3
    capfd.readouterr()
    assert verify.main(["--run-dir", str(tmp_path / "run"), "--json"]) == 1
    assert json.loads(capfd.readouterr().out) | {"seconds": 0} == said | {"seconds": 0}


REAL_SEARCH = certificates.search_policy


@pytest.mark.slow
@pytest.mark.parametrize("arguments", ["--preset paper", "--preset mlp", "--game connect_four"])
def test_smoke_runs_finish(arguments, tmp_path):
    run_dir = tmp_path / "run"
    assert train_in(run_dir, "--smoke", *arguments.split()) == 0
    assert [record["iteration"] for record in records(run_dir)] == [1, 2, 3]
    judged = [record["iteration"] for record in records(run_dir) if "error" in record]
    assert judged == ([1, 3] if "connect_four" in arguments else [])
    assert (run_dir / "certificate.json").exists() == ("connect_four" not in arguments)


# Killed and interrupted runs.


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_run_resumes_to_the_same_end(moment, trained, tmp_path):
    run_dir = shutil.copytree(trained.copies / moment, tmp_path / "run")
    assert not (run_dir / "certificate.json").exists() and (run_dir / lock.NAME).exists()
    assert resume(run_dir) == 0
    assert_same_end(run_dir, trained.run_dir)
    assert not (run_dir / lock.NAME).exists() and not (run_dir / "damaged").exists()
    assert (run_dir / "certificate.json").exists()
    assert all(path.name.isdigit() for path in (run_dir / "checkpoints").iterdir())


@pytest.mark.slow
def test_a_process_killed_repeatedly_ends_the_same(trained, tmp_path):
    run_dir = tmp_path / "run"
    for delay in (0.0, 0.05, 0.2):
        given = ["--resume"] if run_dir.exists() else [*RUN, "--checkpoint-every", "1"]
        process = subprocess.Popen(
            [sys.executable, "-m", "experiments.train", *given, "--run-dir", str(run_dir)],
            **{"env": os.environ | process_environment(), "text": True},
            **dict.fromkeys(["stdout", "stderr"], subprocess.PIPE),
        )
        process.stdout.readline()  # The line of the next iteration.
        time.sleep(delay)
        process.kill()
        _, stderr = process.communicate()
        assert process.returncode in (0, -signal.SIGKILL), stderr
    assert resume(run_dir) == 0
    assert_same_end(run_dir, trained.run_dir)


def test_a_resumed_run_is_lowered_for_its_own_state(monkeypatch):
    """Its keys may have another implementation than JAX's default."""
    lowered, state = [], object()
    program = types.SimpleNamespace(compile=lambda options: "compiled")
    step = types.SimpleNamespace(lower=lambda given: lowered.append(given) or program)
    monkeypatch.setattr(prepare.training, "make_iteration", lambda parts, mesh: step)
    game = azjax.make("connect_four")
    parts = types.SimpleNamespace(game=game)
    assert prepare._compile(None, parts, None, 0, state) == (state, "compiled", None)
    assert lowered == [state]


def test_ctrl_c_finishes_the_iteration_and_saves(trained, tmp_path, monkeypatch, capfd):
    run_dir, write = tmp_path / "run", metrics.JsonLines.__call__

    def interrupted(sink, record):
        if record.iteration == 3:
            signal.raise_signal(signal.SIGINT)
        write(sink, record)

    monkeypatch.setattr(metrics.JsonLines, "__call__", interrupted)
    assert train_in(run_dir, *RUN, "--no-report") == 130
    said = f"interrupted: continue with --resume --run-dir {run_dir}\n"
    assert capfd.readouterr().err == said
    assert runs.iterations(run_dir) == [2, 3] and len(records(run_dir)) == 3
    monkeypatch.undo()
    assert resume(run_dir) == 0
    assert_same_end(run_dir, trained.run_dir)


def test_only_one_program_at_a_time_trains_or_explores(run_dir, capfd):
    with lock.hold(run_dir):
        before = files(run_dir)
        held = f"process {os.getpid()} on host "
        check_program(lambda _: resume(run_dir), [("", held, f"trains in {run_dir}: wait")], capfd)
        assert files(run_dir) == before
        assert azjax.load(run_dir).iteration == 8  # Readers need no lock.
    folder, arguments = run_dir / "lines", ["--run-dir", str(run_dir), "--lines", "first"]
    folder.mkdir()
    with lock.hold(folder, "8-first-0.lock", "explores the games of this player"):
        said = f" explores the games of this player in {folder}: wait until it ends"
        check_program(verify.main, [(arguments, said)], capfd)


def test_a_defect_leaves_no_lock(tmp_path, monkeypatch):
    def fail(*arguments):
        assert (tmp_path / "run" / lock.NAME).exists()
        raise KeyError("a defect")

    monkeypatch.setattr(memory, "describe", fail)
    with pytest.raises(KeyError, match="a defect"):
        train_in(tmp_path / "run", "--smoke")
    assert not (tmp_path / "run" / lock.NAME).exists()


# The end of a training.


def pretend(monkeypatch, *found):
    """Makes the verdicts of a training: whether its goal is reached, and the certificate."""
    verdicts = iter(found)

    def reached(goal, verdict):
        found = next(verdicts)
        monkeypatch.setattr(callbacks.Verification, "certify", lambda *_: found)
        return found is not None

    monkeypatch.setattr(certificates, "reached", reached)


def proved(**fields):
    """Returns a certificate without blunders and losing lines, but for some fields."""
    zeros = {field.name: 0 for field in dataclasses.fields(Certificate)}
    return Certificate(
        **zeros | {"versions": {}, "device": "", "game": "", "searches": ()} | fields
    )


def test_stops_as_soon_as_the_goal_is_reached(tmp_path, capfd, monkeypatch):
    for goal, blunders in (("perfect", 0), ("unbeatable", 3)):
        run_dir = tmp_path / goal
        pretend(monkeypatch, None, *[proved(blunders=blunders)] * 2)
        given = ["--smoke", "--until", goal, "--max-iterations", "9", "--no-report"]
        assert train_in(run_dir, *given) == 0
        assert runs.iterations(run_dir) == [2] and len(records(run_dir)) == 2
        before = files(run_dir)
        capfd.readouterr()
        assert resume(run_dir) == 0
        assert files(run_dir).keys() == before.keys()
        assert f"{run_dir} was finished already, after 2 iterations" in capfd.readouterr().err
    # A network alone without blunders may still fail with a search.
    almost = proved(searches=(VerifiedSearch("puct", 32, 1),))
    pretend(monkeypatch, almost, proved())
    given = ["--smoke", "--until", "perfect", "--no-report"]
    assert train_in(tmp_path / "search", *given) == 0
    assert runs.iterations(tmp_path / "search") == [2]


def test_exit_status_1_when_the_iterations_ran_out(tmp_path, capfd):
    given = ["--smoke", "--until", "perfect", "--max-iterations", "2", "--no-report"]
    assert train_in(tmp_path / "run", *given) == 1
    assert capfd.readouterr().err == (
        "verifying the network with its searches, in every position\n"
        f"not perfect after 2 iterations: continue with --resume --run-dir {tmp_path / 'run'} "
        "--max-iterations 4\n"
    )
    assert [*tmp_path.iterdir()] == [tmp_path / "run"]


def test_a_larger_game_is_examined_now_and_then_and_at_the_end(tmp_path, monkeypatch, capfd):
    """At a terminal, where the display has room for verdicts that are sometimes missing."""
    monkeypatch.setattr(base, "_SMALL", 0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    run_dir, every = tmp_path / "run", ["--examine-every", "2", "--max-iterations"]
    assert train_in(run_dir, "--smoke", "--no-report", *every, "5") in (0, 1)
    assert resume(run_dir, "--until", "never", "--examine-every", "3", "--max-iterations", "7") == 0
    screen = re.sub("\x1b\\[[0-9;?]*[a-zA-Z]", "", capfd.readouterr().out)
    assert re.search(r"blunders +losing +wrong *\n.*games/s.* left +lines +signs", screen)
    examined = [r["iteration"] for r in records(run_dir) if r["blunders"] is not None]
    assert examined == [2, 4, 5, 6, 7]


def test_the_checkpoint_with_the_fewest_blunders_is_kept(tmp_path, monkeypatch):
    blunders, as_metrics = iter([9, 3, 5, 4, 8, 7]), callbacks._as_metrics
    monkeypatch.setattr(
        callbacks, "_as_metrics", lambda verdict: as_metrics(verdict) | {"blunders": next(blunders)}
    )
    every = ["--checkpoint-every", "1", "--keep-checkpoints", "3", "--max-iterations", "6"]
    assert train_in(tmp_path / "run", *RUN, *every, "--no-report") == 0
    assert runs.iterations(tmp_path / "run") == [2, 4, 5, 6]


def test_a_finished_run_is_resumed(run_dir, monkeypatch, capfd):
    """Without more iterations nothing changes."""
    before = files(run_dir)
    assert resume(run_dir, "--report") == 0
    assert files(run_dir) == before
    out, err = capfd.readouterr()
    for program in ("play", "explain"):
        assert f": {command('azjax', program, '--run-dir', run_dir)}\n" in out
    assert err == (
        f"{run_dir} was finished already, after 8 iterations: to continue training, add "
        "--until never --max-iterations 16\n"
    )
    monkeypatch.setattr(train.interrupts.now, "started", time.monotonic())
    assert resume(run_dir, "--max-iterations", "10") == 0
    seconds = [record["seconds"] for record in records(run_dir)]
    assert len(seconds) == 10 and seconds == sorted(seconds)  # The records of both sessions.
    certificate = read(run_dir)
    assert certificate["iterations"] == 10 and certificate["seconds"] >= seconds[-1]
    assert runs.iterations(run_dir)[-2:] == [8, 10]
    assert read(run_dir, "plan.json")["max_iterations"] == 10


# Damage and divergence.


def test_a_damaged_run_continues_from_an_older_checkpoint(run_dir, trained, capfd):
    damage(run_dir, 8)
    assert resume(run_dir) == 0
    moved, repeated = capfd.readouterr().err.splitlines()[:2]
    assert f"checkpoint 8 in {run_dir} is damaged" in moved and f"{run_dir}/damaged" in moved
    assert f"{run_dir} was saved after iteration 6, but recorded up to 8" in repeated
    assert (run_dir / "damaged" / "8-1").is_dir()
    assert_same_end(run_dir, trained.run_dir)


def spoil(name, content):
    return lambda run_dir: (run_dir / name).write_text(content)


def edit_seed(run_dir):
    path = run_dir / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"seed": 1}))
    damage(run_dir, 8)


def damage_newest(run_dir):
    damage(run_dir, 8)


def damage_all(run_dir):
    for step in runs.iterations(run_dir):
        damage(run_dir, step)


def remove(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def put_folder(path):
    if path.exists():
        remove(path)
    path.mkdir()


def put_link(path):
    path.rename(path.parent / "elsewhere")
    path.symlink_to("elsewhere")


def test_a_spoiled_run_is_refused_before_anything_moves(trained, tmp_path, monkeypatch, capfd):
    """By the programs that read it as well, and before compiling."""
    monkeypatch.setattr(prepare, "_compile", None)
    everywhere = [
        resume,
        *(lambda run_dir, p=p: p.main(["--run-dir", str(run_dir)]) for p in (verify, report, play)),
        lambda run_dir: arena.main([f"network@{run_dir}#all", "random"]),
    ]
    start = f'{{"format": {runs.FORMAT}, '
    kinds = [start + '"colour": 3}', start + '"seed": "x", "preset": 1}', "", "[" * 10_000]
    rows = [
        (edit_seed, everywhere, "seed is 1 in ", "and checkpoint 8 was written with 0: restore"),
        (damage_newest, everywhere[1:], "checkpoint 8 in ", " is damaged", "use one of ", " 6"),
        (damage_all, [resume], "no checkpoint in ", " is sound", "start a new run"),
        *(
            (lambda run_dir, change=change, name=name: change(run_dir / name), [resume], said)
            for change, name, said in [
                (remove, "checkpoints", "checkpoints is missing: restore it"),
                (put_link, "checkpoints", "checkpoints is a link to elsewhere, and azjax"),
                (put_link, "metrics.jsonl", "metrics.jsonl is a link to elsewhere, and azjax"),
                (put_folder, "metrics.jsonl", "metrics.jsonl: Is a directory"),
                (put_folder, "config.json", "config.json cannot be used"),
                (put_folder, "plan.json", "plan.json cannot be used"),
                (remove, "plan.json", "plan.json cannot be used"),
                (put_folder, "train.lock", "train.lock: Is a directory"),
            ]
        ),
        *((spoil("config.json", kind), [resume], "config.json cannot be used") for kind in kinds),
        *((spoil("plan.json", kind), [resume], "plan.json cannot be used") for kind in kinds),
        (spoil("metrics.jsonl", "no record\n" * 2), [resume], "line 1, is not a record of an"),
    ]
    for number, (change, programs, *fragments) in enumerate(rows):
        run_dir = shutil.copytree(trained.run_dir, tmp_path / str(number))
        change(run_dir)
        before = files(run_dir)
        for program in programs:
            check_program(lambda _: program(run_dir), [("", *fragments)], capfd)
        assert files(run_dir) == before


# What happens to one path of a run, and what a resumed training notes before it compiles.
NOTED = [
    (remove, "metrics.jsonl", "metrics.jsonl ends at iteration 0, before checkpoint 8\n"),
    (put_folder, "checkpoints/8", "checkpoint 8 in ", "saved after iteration 6, but"),
    (put_folder, "checkpoints", "saved after iteration 0, but recorded up to 8", "trained again"),
    (put_folder, "checkpoints/99", "checkpoint 99 in ", "it was moved to "),
]


def refuse_to_compile(*arguments):
    raise ValueError("refused while compiling")


def test_damage_is_noted_before_a_resumed_run_compiles(trained, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(prepare, "_compile", refuse_to_compile)
    for number, (change, name, *fragments) in enumerate(NOTED):
        run_dir = shutil.copytree(trained.run_dir, tmp_path / str(number))
        change(run_dir / name)
        before = files(run_dir)
        assert resume(run_dir) == 2
        out, err = capfd.readouterr()
        assert out == "" and err.endswith("error: refused while compiling\n"), (name, err)
        assert all(fragment in err for fragment in fragments), (name, err)
        if "moved" not in err:
            assert files(run_dir) == before, name


@pytest.mark.slow
def test_training_stops_at_nan(tmp_path, capfd):
    run_dir = tmp_path / "run"
    wild = ["--learner.learning-rate", "1e9", "--learner.clip-norm", "0", "--learner.steps", "1"]
    wild += ["--learner.optimizer", "sgd", "--max-iterations", "9"]
    assert train_in(run_dir, "--smoke", *wild, "--checkpoint-every", "1") == 2
    err = capfd.readouterr().err
    assert err.count("\n") == 1 and err.startswith("error: ") and "lower learner.learning_" in err
    name, iteration = re.search(r"(\w+) became nan in iteration (\d+)", err).groups()
    assert name in records(run_dir)[-1]
    assert [record["iteration"] for record in records(run_dir)] == list(range(1, int(iteration)))
    player = azjax.load(run_dir)
    assert player.iteration == int(iteration) - 1
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(player.params))


# Refusals.

TRAIN = [
    ("--game chess", "unknown game 'chess'", "tic_tac_toe, connect_four"),
    ("--preset tiny", "unknown preset 'tiny'", "default, paper, mlp, connect_four"),
    ("--until maybe", "--until is 'maybe': use 'auto' or 'perfect' or"),
    ("--network.encoding colour", "network.encoding is 'colour': use 'absolute' or"),
    ("--frobnicate 3", "--frobnicate", "--help"),
    ("--learner.batchsize 3", "--learner.batchsize", "; did you mean --learner.batch-size?"),
    ("train", "train", "--help"),
    ("--learner.batch-size many", "--learner.batch-size is 'many': use an integer"),
    ("--learner.l2 much", "--learner.l2 is 'much': use a number"),
    ("--learner.l2 -1", "learner.l2 is -1.0", "use 0 or more"),
    ("--learner.batch-size 0", "--learner.batch-size is 0: use "),
    ("--max-iterations 0", "--max-iterations is 0: use "),
    ("--network.kind mlp --network.hidden 0", "network.hidden", ": use "),
    ("--smoke=3", "'3' follows no option that takes it: "),
    ("--run-dir", "--run-dir has no value: add one"),
    ("--learner.batch-size", "--learner.batch-size has no value: add one"),
    ("--learner.batch-size 1001", "learner.batch_size is 1001", "such as 1008"),
    ("--selfplay.games 1001", "selfplay.games is 1001", "such as 1008"),
    ("--replay.shards 3", "replay.shards is 3", "the number of devices, 8", "use 8 or a multiple"),
    ("--replay.capacity 100", "replay.capacity is 100", "use at least 512"),
    ("--replay.capacity 1000", "replay.capacity is 1000", "use at least 8192"),
    ("--game connect_four --until perfect", "connect_four", "--until never"),
    ("--game connect_four --until unbeatable", "--until unbeatable", "--until never"),
    ("--resume", "--resume", "add --run-dir"),
    ("--resume --run-dir nothing", "nothing is not a run directory", "config.json"),
    ("--resume --run-dir=", ". is not a run directory"),
    ("--resume --run_dir nothing", "nothing is not a run directory", "config.json"),
    ("--run-dir /dev/null/run", "/dev/null/run cannot be created", "choose another --run-dir"),
    ("--smoke --run-dir dangling", "dangling is a broken link to nothing: ", "another --run-dir"),
]
VERIFY = [
    ("--run-dir nothing", "nothing is not a run directory", "use the folder"),
    ("--run-dir file", "file is not a run directory"),
    ("one", "no player 'one' comes with azjax", "use connect_four", "--run-dir"),
    ("--simulations 32 -1", "--simulations is -1", "use 0 to 1000000"),
    ("--simulations 100000000", "--simulations is 100000000", "use 0 to 1000000"),
    ("--limit -1", "--limit is -1", "use 0 or more"),
    ("--lines both", "--lines is 'both': use 'first' or 'second'"),
    ("--simulations many", "--simulations is 'many': use an integer"),
    ("--lines first --until perfect", "--until is for all positions", "leave one of them out"),
    ("--lines first --most 3", "--most is 3", "use 16 or more"),
    ("--most 999", "--most is a setting of --lines: add --lines first"),
    ("--repair 9", "--repair is a setting of --lines: add --lines first"),
    ("--lines first --repair -1", "--repair is -1", "use 0 or more"),
    ("--lines first --repair 9 --most 99", "--repair explores all games: leave --most out"),
    ("--until never", "'never'", "'perfect'", "'unbeatable'"),
]


def test_train_and_verify_refuse_bad_options(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(prepare, "_compile", None)
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to("nothing")
    before = files(tmp_path)
    check_program(train.main, TRAIN, capfd)
    check_program(verify.main, VERIFY, capfd)
    for program in (verify, report, explain):
        of_game = [("", "runs/ has no trained player", ": train one", "with --run-dir")]
        check_program(program.main, of_game, capfd)
    assert files(tmp_path) == before


def test_a_run_keeps_its_settings(run_dir, capfd):
    before = files(run_dir)
    rows = [
        ("", "run exists already", "with --resume", "another --run-dir"),
        ("--resume --game connect_four", "is a run of tic_tac_toe, not of connect_four"),
        ("--resume --network.width 8", "--network.width was 16, not 8"),
        ("--resume --network.kind mlp", "--network.kind was 'resnet', not 'mlp'"),
        ("--resume --preset paper", "--preset was 'default', not 'paper'"),
        ("--resume --seed 1", "--seed was 0, not 1", "another --run-dir"),
        ("--resume --max-iterations 0", "max_iterations is 0", "use 1 or more"),
    ]
    check_program(
        lambda words: train_in(run_dir, *words), [(r[0].split(), *r[1:]) for r in rows], capfd
    )
    # All 4,520 positions at a time: about a terabyte.
    needs = "trees of 1000000 simulations, 4520 at a time, need"
    arguments = ["--run-dir", str(run_dir), "--simulations", "1000000"]
    check_program(verify.main, [(arguments, needs, ": use at most ")], capfd)
    assert files(run_dir) == before


def test_an_unusable_run_directory_is_refused(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dangling").symlink_to("nothing")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("kept")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "folder" / "notes").mkdir(parents=True)
    before, used, long = (
        files(tmp_path),
        "exists already and is not a run directory",
        "File name too",
    )
    rows = [
        *[("dangling", "is a broken link to nothing: "), ("loop", "is a broken link to loop: ")],
        *((name, used) for name in ("link", "folder", ".", "..", "deep/..", "/")),
        ("dangling/run", "dangling/run cannot be created ("),
        ("file/deep/run", "cannot be created (Not a directory): "),
        *((f"deep/{name}", long) for name in ("deep/" * 800 + "run", 300 * "x", 254 * "x")),
        ("/proc/run", "/proc/run cannot be created ("),
    ]
    calls = [(lambda path=path: runs.check_free(path), path, said) for path, said in rows]
    assert_refused(*calls, error=checkpoint.CheckpointError)

    monkeypatch.setattr(prepare, "_compile", refuse_to_compile)
    check_program(train.main, [("--smoke --run-dir some/deep/run", "refused while com")], capfd)
    assert files(tmp_path) == before


def test_training_refuses_a_proof_that_does_not_fit(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(memory, "device_memory", lambda mesh=None: 10**6)
    monkeypatch.setattr(memory, "check_fits", lambda needs: None)
    assert train.main(["--smoke", "--run-dir", str(tmp_path / "run")]) == 2
    said = capfd.readouterr().err.splitlines()[-1]
    assert re.match("error: trees of 32 simulations, 4520 at a time, need .* 1 MB: use at", said)


@pytest.mark.slow
def test_a_real_process_prints_one_sentence_and_exits_with_2(tmp_path):
    words = [sys.executable, "-m", "azjax", "train", "--game", "chess"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    first, error = done.stderr.splitlines()
    assert first == "azjax train: starting…" and error.startswith("error: unknown game 'chess'")


# Help, and the run that is meant.


def test_help_is_as_wide_as_the_terminal_and_lists_the_settings(monkeypatch, capfd):
    settings = (
        "--learner.batch-size --selfplay.games --replay.shards --max-iterations --network.width"
    )
    listed = {train: settings.split(), verify: ["--simulations"]}
    for program in (train, verify, report, explain, play, arena):
        for columns in (50, 200) if program is verify else (50,):
            monkeypatch.setenv("COLUMNS", str(columns))
            with pytest.raises(SystemExit) as stop:
                program.main(["--help"])
            out, err = capfd.readouterr()
            assert (stop.value.code, err) == (0, "")
            assert max(map(len, out.splitlines())) <= columns
            assert all(option in out for option in listed.get(program, ()))
            said = "Default: the game of the run. A custom game must always be named."
            assert columns == 50 or said in out


def test_without_a_run_the_newest_is_taken(trained, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    for name in ("old", "new"):
        shutil.copytree(trained.run_dir, tmp_path / "runs" / name)
    runs.create_run(tmp_path / "runs" / "untrained", runs.read_config(trained.run_dir))
    (tmp_path / "runs" / "tic_tac_toe-default-1").symlink_to("nothing")
    for age, name in enumerate(["untrained", "new", "old"]):
        os.utime(tmp_path / "runs" / name / "config.json", (10**9 - age, 10**9 - age))
    opened = []
    monkeypatch.setattr(
        custom, "load_player", lambda run_dir, typed: opened.append(run_dir) or 1 / 0
    )
    for program in (verify, report, explain):
        with pytest.raises(ZeroDivisionError):
            program.main([])
        said = "run: runs/new, the newest (--run-dir names another)\n"
        assert capfd.readouterr().err == said
    assert [str(run_dir) for run_dir in opened] == ["runs/new"] * 3
    parsed = options.parse([])  # A dangling link keeps its number.
    prefix = prepare.name_runs(parsed.config, parsed.plan)
    assert str(runs.first_free(prefix)) == "runs/tic_tac_toe-default-2"


# A real terminal.


@pytest.mark.slow
def test_a_closed_terminal_or_pipe_loses_nothing(tmp_path):
    environment = os.environ | process_environment()
    endless = ["-m", "experiments.train", "--game", "hex:6", "--smoke", "--until", "never"]
    endless += ["--max-iterations", "100000", "--checkpoint-every", "100000", "--run-dir"]
    with Terminal([*endless, str(tmp_path / "terminal")], environment) as terminal:
        terminal.wait_for("to iteration 100000")
        os.close(terminal.terminal)
        os.close(terminal.master)
        terminal.terminal = terminal.master = None
        assert terminal.process.wait(timeout=100) == 128 + signal.SIGHUP
    words = [sys.executable, *endless, str(tmp_path / "pipe")]
    pipes = dict.fromkeys(["stdout", "stderr"], subprocess.PIPE)
    with subprocess.Popen(words, env=environment, text=True, **pipes) as process:
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait(timeout=100) == 128 + signal.SIGPIPE
    assert said.endswith(f"interrupted: continue with --resume --run-dir {tmp_path / 'pipe'}\n")
    for name in ("terminal", "pipe"):
        assert runs.iterations(tmp_path / name) == [len(records(tmp_path / name))]


# Trainings of every kind, one after the other. With `_SMALL` 0, a tiny game is treated as a large
# one, which is verified only in some iterations.
AT_A_TERMINAL = """
import sys
from azjax import _interrupts as interrupts
interrupts.listen()
import azjax.games.base
from azjax.proof import certificate
from azjax.cli import train
certificate.search_policy = lambda parts, config, params: certificate.network_policy(parts, params)
small = azjax.games.base._SMALL
def run(name, *arguments):
    print(f"[{name}]")
    folder = f"{sys.argv[1]}/{arguments[0]}"
    status = train.main([*arguments[1:], "--smoke", "--no-report", "--run-dir", folder])
    print(f"[status {status}]")
run("never", "hex", "--game", "hex:6")
run("labelled", "four", "--game", "connect_four")
azjax.games.base._SMALL = 0
run("sometimes", "large", "--preset", "default", "--examine-every", "2", "--max-iterations", "5")
azjax.games.base._SMALL = small
run("always", "small", "--until", "perfect", "--max-iterations", "100000")
"""


@pytest.mark.slow
def test_trainings_of_every_kind_at_a_terminal(tmp_path):
    environment = os.environ | process_environment()
    with Terminal(["-c", AT_A_TERMINAL, str(tmp_path)], environment) as terminal:
        terminal.wait_for("[always]")
        terminal.type(b"\x03", after="until perfect")
        status = terminal.finish()  # Which checks that the terminal is as it was.
        assert status == 0, terminal.screen[-3000:]
    parts = re.split(r"\[(never|labelled|sometimes|always)\]\n", terminal.screen)
    screens = dict(zip(parts[1::2], parts[2::2], strict=True))
    for name, screen in screens.items():
        assert f"[status {130 if name == 'always' else 0}]" in screen
        assert "games/s" in screen and "to iteration" in screen, screen
        assert ("blunders left" in screen) == (name in ("sometimes", "always"))
        assert ("of moves worsen the outcome" in screen) == (name == "labelled")
    for heading in ("compiling", "iteration", "loss", "losing lines"):
        assert heading in screens["always"]
    assert "interrupted: continue with --resume" in screens["always"]
    assert b"\x1b[?25l" in terminal.raw  # The cursor was hidden.
