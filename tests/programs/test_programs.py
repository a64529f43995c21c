"""The programs: runs that are killed, interrupted or damaged, that diverge, and bad input."""

import dataclasses
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

import azjax
from azjax import runs
from azjax._commands import command
from azjax.cli import (
    arena,
    custom,
    explain,
    options,
    parsing,
    play,
    report,
    train,
    verify,
)
from azjax.cli.players import make_agent
from azjax.programs import prepare
from azjax.proof import callbacks
from azjax.proof import certificate as certificates
from azjax.proof.certificate import Certificate, VerifiedSearch
from azjax.proof.overrides import load_table, table_path
from azjax.runs import checkpoint, lock
from azjax.runs.config import make_parts
from azjax.training import memory
from terminal import Terminal

# The tests and their processes share one compilation cache.

# The report has other tests, and would take as long as the training.
SHORT = ["--smoke", "--until", "never", "--max-iterations", "6", "--checkpoint-every", "2"]
SHORT += ["--no-report"]


def train_in(run_dir, *arguments):
    return train.main([*map(str, arguments), "--run-dir", str(run_dir)])


def resume(run_dir, *arguments):
    return train_in(run_dir, "--resume", *arguments)


def start(*command, **options):
    """Starts a real Python process."""
    command = [sys.executable, *map(str, command)]
    return subprocess.Popen(command, env=environment(), text=True, **options)


def environment():
    """Returns the variables with which a process shares the compilation cache of the tests."""
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "JAX_COMPILATION_CACHE_DIR": jax.config.jax_compilation_cache_dir,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2",
        "COLUMNS": "120",
        "TERM": "xterm-256color",
    }


def finish(process):
    """Waits for a process; returns its exit status and its output."""
    try:
        stdout, stderr = process.communicate(timeout=300)
    finally:
        process.kill()
    return process.returncode, stdout, stderr


def pipes():
    return {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


@pytest.fixture(scope="module", autouse=True)
def traced_once():
    """Traces an iteration once for each configuration."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            prepare.training, "make_iteration", functools.cache(prepare.training.make_iteration)
        )
        yield


def leave_searches_out(patch):
    def search_policy(parts, config, params):
        return certificates.network_policy(parts, params)

    patch.setattr(certificates, "search_policy", search_policy)


@pytest.fixture
def raw_only(monkeypatch):
    """Replaces the two searches of certificates, which take most of the time."""
    leave_searches_out(monkeypatch)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run without interruption; its certificate leaves out the two searches."""
    run_dir = tmp_path_factory.mktemp("whole") / "run"
    with pytest.MonkeyPatch.context() as patch:
        leave_searches_out(patch)
        assert train_in(run_dir, *SHORT) == 0
    return run_dir


@pytest.fixture
def finished(whole, tmp_path):
    """A copy of that run, for tests that change it."""
    return shutil.copytree(whole, tmp_path / "finished")


def arrays(run_dir):
    """Returns the arrays of a run's newest checkpoint, from the parameters to the key."""
    state, skipped = checkpoint.restore(run_dir, make_parts(runs.read_config(run_dir)))
    assert not skipped
    state = dataclasses.replace(state, key=jax.random.key_data(state.key))
    leaves = jax.tree_util.tree_leaves_with_path(state)
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def assert_same_end(run_dir, whole):
    """Checks that two runs have the same final state, bit for bit, and one record per iteration."""
    left, right = arrays(run_dir), arrays(whole)
    assert left.keys() == right.keys()
    for name in left:
        assert left[name].dtype == right[name].dtype, name
        assert left[name].tobytes() == right[name].tobytes(), name
    assert records(run_dir, without_time=True) == records(whole, without_time=True)


def records(run_dir, without_time=False):
    lines = (run_dir / "metrics.jsonl").read_text().splitlines()
    times = ("seconds", "games_per_second") if without_time else ()
    return [{k: v for k, v in json.loads(line).items() if k not in times} for line in lines]


def steps(run_dir):
    names = [path.name for path in (run_dir / "checkpoints").iterdir()]
    return sorted(int(name) for name in names if name.isdigit())


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


# Killed runs.

# Trains, and sends itself a signal before or after one call.
SIGNALLED = """
import os, signal, sys
from azjax.runs import checkpoint
from azjax.training import metrics
from azjax.cli import train
from azjax.programs import prepare

def watch(owner, name, is_due, after=False, number=signal.SIGKILL):
    original = getattr(owner, name)
    def watched(*args, **kwargs):
        due = is_due(*args)
        if due and not after:
            os.kill(os.getpid(), number)
        result = original(*args, **kwargs)
        if due and after:
            os.kill(os.getpid(), number)
        return result
    setattr(owner, name, watched)

def iteration(number):
    return lambda sink, record: record.iteration == number

def goes_to(suffix):
    return lambda old, new: str(new).endswith(suffix)

watch(MOMENT)
sys.exit(train.main(sys.argv[1:]))
"""

MOMENTS = {
    "inside a save": "os, 'rename', goes_to('checkpoints/4')",
    "before the first checkpoint": "metrics.JsonLines, '__call__', iteration(1), True",
    "between two checkpoints": "metrics.JsonLines, '__call__', iteration(3), True",
    "right after a save": "os, 'rename', goes_to('checkpoints/4'), True",
    "while arrays are written": (
        "checkpoint.storage, 'write_arrays', lambda f, _: f.match('4.*/state')"
    ),
    "while an old checkpoint is deleted": "os, 'rename', goes_to('.deleted'), True",
    "while metrics are rewritten": "os, 'replace', goes_to('metrics.jsonl')",
    "before the certificate": "os, 'replace', goes_to('certificate.json')",
}


def start_signalled(moment, run_dir, *arguments):
    program = SIGNALLED.replace("MOMENT", moment)
    return start("-c", program, *arguments, "--run-dir", run_dir, **pipes())


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_run_resumes_to_the_same_end(moment, whole, tmp_path, raw_only):
    run_dir = tmp_path / "run"
    every = ["--checkpoint-every", "1"] if "deleted" in moment else []
    process = start_signalled(MOMENTS[moment], run_dir, *SHORT, *every)
    status, _, stderr = finish(process)
    assert status == -signal.SIGKILL, stderr
    assert not (run_dir / "certificate.json").exists()
    assert (run_dir / lock.NAME).exists()
    assert resume(run_dir) == 0
    assert_same_end(run_dir, whole)
    assert not (run_dir / lock.NAME).exists()
    assert (run_dir / "certificate.json").exists()
    assert all(path.name.isdigit() for path in (run_dir / "checkpoints").iterdir())
    assert not (run_dir / "damaged").exists()


def test_a_resumed_run_keeps_its_prng_implementation(tmp_path, raw_only):
    few = [*SHORT, "--checkpoint-every", "1", "--max-iterations"]
    with jax.default_prng_impl("rbg"):
        assert train_in(tmp_path / "whole", *few, "2") == 0
        shutil.copytree(tmp_path / "whole", tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "2")
    assert resume(tmp_path / "run") == 0
    assert_same_end(tmp_path / "run", tmp_path / "whole")


@pytest.mark.slow
def test_a_run_killed_repeatedly_ends_the_same(whole, tmp_path, raw_only):
    run_dir = tmp_path / "run"
    for delay in (0.0, 0.02, 0.05, 0.1, 0.2):
        known = ["--resume"] if run_dir.exists() else [*SHORT, "--checkpoint-every", "1"]
        process = start("-m", "experiments.train", *known, "--run-dir", run_dir, **pipes())
        process.stdout.readline()  # The line of the next iteration.
        time.sleep(delay)
        process.kill()
        status, _, stderr = finish(process)
        assert status in (0, -signal.SIGKILL), stderr
    assert resume(run_dir) == 0
    assert_same_end(run_dir, whole)


@pytest.mark.slow
@pytest.mark.parametrize(
    "moment", ["os, 'rename', goes_to('/run')", "prepare, 'Verification', lambda *_: True"]
)
def test_a_run_killed_before_its_directory_is_complete_leaves_none(
    moment, tmp_path, capfd, raw_only
):
    run_dir = tmp_path / "run"
    process = start_signalled(moment, run_dir, *SHORT)
    assert finish(process)[0] == -signal.SIGKILL
    assert not run_dir.exists()
    assert resume(run_dir) == 2
    assert f"{run_dir} is not a run directory" in capfd.readouterr().err
    assert train_in(run_dir, "--smoke", "--max-iterations", "1") == 0


# Two programs at the same time.

# Trains, but waits for a line of input after the first iteration.
WAITING = """
import sys
from azjax.cli import train
from azjax.training import loop
make_record = loop.make_record
def waiting(iteration, *others):
    if iteration == 2:
        print("waiting", flush=True)
        sys.stdin.readline()
    return make_record(iteration, *others)
loop.make_record = waiting
sys.exit(train.main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_only_one_program_at_a_time_trains_in_a_run(whole, tmp_path, capfd, raw_only):
    run_dir = tmp_path / "run"
    program = ["-c", WAITING, *SHORT, "--checkpoint-every", 1, "--run-dir", run_dir]
    with start(*program, stdin=subprocess.PIPE, **pipes()) as process:
        try:
            assert "waiting\n" in iter(process.stdout.readline, "")
            before = files(run_dir)
            assert resume(run_dir) == 2
            assert_error(capfd, f"process {process.pid} on host ", f"trains in {run_dir}: wait")
            assert files(run_dir) == before
            assert azjax.load(run_dir).iteration == 1  # Readers need no lock.
            process.stdin.write("go on\n")
        finally:
            status, _, stderr = finish(process)
    assert (status, stderr) == (0, "")
    assert_same_end(run_dir, whole)
    assert not (run_dir / lock.NAME).exists()


@pytest.mark.slow
def test_a_defect_leaves_no_lock(tmp_path, monkeypatch):
    def fail(*arguments):
        assert (tmp_path / "run" / lock.NAME).exists()
        raise KeyError("a defect")

    monkeypatch.setattr(memory, "describe", fail)
    with pytest.raises(KeyError, match="a defect") as error:
        train_in(tmp_path / "run", "--smoke")
    assert not (tmp_path / "run" / lock.NAME).exists(), error


# Interrupted runs.


@pytest.mark.slow
def test_ctrl_c_finishes_the_iteration_and_saves(whole, tmp_path, raw_only):
    run_dir = tmp_path / "run"
    moment = "metrics.JsonLines, '__call__', iteration(3), False, signal.SIGINT"
    status, stdout, stderr = finish(start_signalled(moment, run_dir, *SHORT))
    assert status == 130
    assert stderr == f"interrupted: continue with --resume --run-dir {run_dir}\n"
    memory, *iterations = stdout.splitlines()
    assert memory.startswith("memory on each of 8 devices: ") and len(iterations) == 3
    assert steps(run_dir) == [2, 3]
    assert resume(run_dir) == 0
    assert_same_end(run_dir, whole)


@pytest.mark.slow
def test_a_closed_terminal_or_pipe_loses_nothing(tmp_path):
    endless = ["-m", "experiments.train", "--game", "hex:6", "--smoke", "--until", "never"]
    endless += ["--max-iterations", "100000", "--checkpoint-every", "100000", "--run-dir"]
    with Terminal([*endless, str(tmp_path / "terminal")], environment()) as terminal:
        terminal.wait_for("to iteration 100000")
        os.close(terminal.terminal)
        os.close(terminal.master)
        terminal.terminal = terminal.master = None
        assert terminal.process.wait(timeout=100) == 128 + signal.SIGHUP
    process = start(*endless, tmp_path / "pipe", **pipes())
    with process:
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait(timeout=100) == 128 + signal.SIGPIPE
    assert said.endswith(f"interrupted: continue with --resume --run-dir {tmp_path / 'pipe'}\n")
    for name in ("terminal", "pipe"):
        assert steps(tmp_path / name) == [len(records(tmp_path / name))]


# Trainings of every kind, one after the other in a terminal. With `_SMALL` 0, a tiny game is
# treated as a large one, which is verified only in some iterations.
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
run("resumed", "large", "--resume", "--examine-every", "3", "--max-iterations", "7")
azjax.games.base._SMALL = small
run("always", "small", "--until", "perfect", "--max-iterations", "100000")
"""


def test_trainings_of_every_kind_at_a_terminal(tmp_path):
    with Terminal(["-c", AT_A_TERMINAL, str(tmp_path)], environment()) as terminal:
        terminal.wait_for("[always]")
        terminal.type(b"\x03", after="until perfect")
        status = terminal.finish()
        assert status == 0, terminal.screen[-3000:]
    parts = re.split(r"\[(never|labelled|sometimes|resumed|always)\]\n", terminal.screen)
    screens = dict(zip(parts[1::2], parts[2::2], strict=True))
    for name, screen in screens.items():
        assert f"[status {130 if name == 'always' else 0}]" in screen
        assert "games/s" in screen and "to iteration" in screen, screen
        assert ("blunders left" in screen) == (name in ("sometimes", "resumed", "always"))
        assert ("of moves worsen the outcome" in screen) == (name == "labelled")
    examined = {
        path.name: [r["iteration"] for r in records(path) if r["blunders"] is not None]
        for path in tmp_path.iterdir()
    }
    assert len(examined.pop("small")) == len(records(tmp_path / "small"))
    assert examined == {"hex": [], "four": [], "large": [2, 4, 5, 6, 7]}
    assert "interrupted: continue with --resume" in screens["always"]


# Finished runs.


@pytest.mark.slow
def test_plain_lines_when_piped(tmp_path, capfd, raw_only):
    assert train_in(tmp_path / "run", "--smoke") == 0
    out, err = capfd.readouterr()
    memory, *lines = out.splitlines()
    assert re.fullmatch(r"memory on each of 8 devices: .* of .* \(network .*, work .*\)", memory)
    for number, line in enumerate(lines[:3], start=1):
        assert re.match(rf"iteration +{number} .* s .* games/s  loss .*blunders \d+ ", line)
    assert "\x1b" not in out and "iteration" not in lines[3]
    options = f"--run-dir {tmp_path / 'run'}"
    assert lines[-3:] == [
        f"run directory: {tmp_path / 'run'}",
        f"play against it: {command('azjax', 'play')} {options}",
        f"see how it searches: {command('azjax', 'explain')} {options}",
    ]
    first, second = err.splitlines()
    assert first.startswith("verifying the network") and second.startswith("writing the report")


@pytest.mark.slow
def test_more_checkpoints_are_kept_on_request(tmp_path, raw_only):
    every = ["--checkpoint-every", "1", "--keep-checkpoints", "5"]
    assert train_in(tmp_path / "run", *SHORT, *every) == 0
    kept = runs.iterations(tmp_path / "run")
    assert kept[-5:] == [2, 3, 4, 5, 6] and len(kept) <= 6
    players = [azjax.load(tmp_path / "run", iteration) for iteration in (2, 6)]
    assert [player.iteration for player in players] == [2, 6]


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["--preset", "paper"], marks=pytest.mark.slow),
        pytest.param(["--preset", "mlp"], marks=pytest.mark.slow),
        pytest.param(["--game", "connect_four"], marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_smoke_runs_finish(arguments, tmp_path, raw_only):
    run_dir = tmp_path / "run"
    assert train_in(run_dir, "--smoke", *arguments) == 0
    assert [record["iteration"] for record in records(run_dir)] == [1, 2, 3]
    judged = [record["iteration"] for record in records(run_dir) if "error" in record]
    assert judged == ([1, 3] if "connect_four" in arguments else [])
    assert steps(run_dir) == [3]
    assert (run_dir / "certificate.json").exists() == ("connect_four" not in arguments)
    assert azjax.load(run_dir).iteration == 3


def test_verification_finds_the_certificate(whole, capfd, raw_only):
    said = json.loads((whole / "certificate.json").read_text())
    fields = [field.name for field in dataclasses.fields(Certificate)]
    assert set(said) == {*fields, "perfect", "unbeatable"}
    assert_verification_finds(said, whole, capfd)
    last = records(whole)[-1]
    for name in ("blunders", "losing_lines_first", "losing_lines_second", "value_sign_errors"):
        assert said[name] == last[name]
    assert said["decision_states"] == 4520
    assert (said["iterations"], said["moves"]) == (6, 6 * 16 * 4)
    assert said["seconds"] >= last["seconds"]
    assert not said["perfect"] and not said["unbeatable"]


def assert_verification_finds(said, run_dir, capfd):
    assert verify.main(["--run-dir", str(run_dir), "--json"]) == 1  # The player is not perfect yet.
    assert json.loads(capfd.readouterr().out) | {"seconds": 0} == said | {"seconds": 0}


@pytest.mark.parametrize("seat", ["first", "second"])
def test_exhaustive_play_counts_the_losing_lines_of_the_certificate(finished, seat, capfd):
    losing = json.loads((finished / "certificate.json").read_text())[f"losing_lines_{seat}"]
    arguments = ["--run-dir", str(finished), "--lines", seat]
    status = verify.main([*arguments, "--json"])
    found = json.loads(capfd.readouterr().out)
    assert found["games"]["lost"] == losing and status == (losing > 0)
    assert (found["seat"], found["simulations"], found["sampled"]) == (seat, 0, False)
    assert verify.main(arguments) == status
    out = capfd.readouterr().out
    said = "the first lost game, " if losing else f"UNBEATABLE moving {seat}: no game is lost"
    assert said in out and f"{found['ends']['lost']:,} " in out


@pytest.mark.slow
def test_lost_games_are_repaired(finished, capfd):
    """One round of repair; a second call with one round repairs nothing more."""
    arguments = ["--run-dir", str(finished), "--lines", "first"]
    assert verify.main([*arguments, "--json"]) == 1
    lost = json.loads(capfd.readouterr().out)["ends"]["lost"]
    status = verify.main([*arguments, "--repair", "1"])
    out = capfd.readouterr().out
    game = azjax.make("tic_tac_toe")
    book = load_table(table_path(finished, 6, 0, 0), game)
    moves = len(book.actions)
    said = f"round 1: {lost:,} lost ends; the override table has {moves:,} moves now, symmetric"
    assert out.startswith(said) and f" alone, {moves:,} overrides, " in out
    assert verify.main([*arguments, "--repair", "1", "--json"]) == status
    found = json.loads(capfd.readouterr().out)
    assert found["overrides"] == moves > 0 and (found["ends"]["lost"] > 0) == status
    decide = jax.jit(make_agent("repaired", game, custom.Typed(finished)).act)
    np.testing.assert_array_equal(
        decide(azjax.load(finished).params, jax.random.key(0), book.states).action, book.actions
    )


def test_only_one_program_at_a_time_explores_a_player(finished, capfd):
    folder, arguments = finished / "lines", ["--run-dir", str(finished), "--lines", "first"]
    folder.mkdir(exist_ok=True)
    with lock.hold(folder, "6-first-0.lock", "explores the games of this player"):
        assert verify.main(arguments) == 2
    said = f" explores the games of this player in {folder}: wait until it ends"
    assert said in capfd.readouterr().err


@pytest.mark.slow
def test_verification_finds_the_searches_of_the_certificate(tmp_path, capfd):
    run_dir = tmp_path / "run"
    assert train_in(run_dir, *SHORT, "--max-iterations", "1") == 0
    said = json.loads((run_dir / "certificate.json").read_text())
    assert len({search["blunders"] for search in said["searches"]} | {said["blunders"]}) == 3
    capfd.readouterr()
    assert_verification_finds(said, run_dir, capfd)


@pytest.mark.slow
def test_verification_draws_blunders_and_leaves_searches_out(whole, capfd):
    assert verify.main(["--run-dir", str(whole), "--limit", "2", "--simulations", "0"]) == 1
    out, err = capfd.readouterr()
    assert "NOT PROVED" in out and "network +" not in out and "\x1b" not in out and err == ""
    assert out.count("instead of") == 2
    blunders = json.loads((whole / "certificate.json").read_text())["blunders"]
    assert f"and {blunders - 2:,} more: add --limit {blunders} to see them all" in out


@pytest.mark.slow
def test_exit_status_1_when_the_iterations_ran_out(tmp_path, capfd, raw_only):
    run_dir = tmp_path / "run"
    assert train_in(run_dir, "--smoke", "--until", "perfect", "--max-iterations", "2") == 1
    assert capfd.readouterr().err == (
        f"not perfect after 2 iterations: continue with --resume --run-dir {run_dir} "
        "--max-iterations 4\n"
    )


def test_the_last_network_of_a_larger_game_is_examined(tmp_path, monkeypatch, raw_only):
    monkeypatch.setattr(azjax.games.base, "_SMALL", 0)
    run_dir = tmp_path / "run"
    train_in(run_dir, "--smoke", "--preset", "default", "--no-report")
    assert [record["blunders"] is not None for record in records(run_dir)] == [False, False, True]


@pytest.mark.parametrize("goal", ["perfect", "unbeatable"])
def test_stops_as_soon_as_the_goal_is_reached(goal, tmp_path, capfd, monkeypatch):
    verdicts = iter([False, True, True])
    monkeypatch.setattr(certificates, "reached", lambda goal, verdict: next(verdicts))
    monkeypatch.setattr(callbacks.Verification, "certify", lambda *_: proved(goal))
    run_dir = tmp_path / "run"
    assert train_in(run_dir, "--smoke", "--until", goal, "--max-iterations", "9") == 0
    assert steps(run_dir) == [2] and len(records(run_dir)) == 2
    before = files(run_dir)
    capfd.readouterr()
    assert resume(run_dir) == 0
    assert files(run_dir) == before
    assert f"{run_dir} was finished already, after 2 iterations" in capfd.readouterr().err


def proved(goal):
    """Returns a certificate without losing lines, and without blunders if the goal is perfect."""
    zeros = {field.name: 0 for field in dataclasses.fields(Certificate)}
    blunders = 0 if goal == "perfect" else 3
    words = {"versions": {}, "device": "", "game": "", "searches": ()}
    return Certificate(**zeros | words | {"blunders": blunders})


def test_a_raw_network_without_blunders_may_still_fail_with_search(tmp_path, monkeypatch):
    almost = dataclasses.replace(proved("perfect"), searches=(VerifiedSearch("puct", 32, 1),))
    found = iter([almost, proved("perfect")])
    monkeypatch.setattr(certificates, "reached", lambda goal, verdict: True)
    monkeypatch.setattr(callbacks.Verification, "certify", lambda *_: next(found))
    assert train_in(tmp_path / "run", "--smoke", "--until", "perfect") == 0
    assert steps(tmp_path / "run") == [2]


def test_resuming_a_finished_run_changes_nothing(finished, capfd):
    before = files(finished)
    assert resume(finished) == 0
    assert files(finished) == before
    out, err = capfd.readouterr()
    for program in ("play", "explain"):
        assert f": {command('azjax', program, '--run-dir', finished)}\n" in out
    assert err == (
        f"{finished} was finished already, after 6 iterations: to continue training, add "
        "--until never --max-iterations 12\n"
    )


def test_resuming_with_more_iterations_continues_training(finished, monkeypatch, raw_only):
    monkeypatch.setattr(train.interrupts.now, "started", time.monotonic())
    assert resume(finished, "--max-iterations", "8") == 0
    seconds = [record["seconds"] for record in records(finished)]
    assert len(seconds) == 8 and seconds == sorted(seconds)  # The records of both sessions.
    certificate = json.loads((finished / "certificate.json").read_text())
    assert certificate["iterations"] == 8
    assert certificate["seconds"] >= seconds[-1]
    assert steps(finished)[-3:] == [4, 6, 8]
    assert json.loads((finished / "plan.json").read_text())["max_iterations"] == 8


@pytest.mark.slow
def test_the_checkpoint_with_the_fewest_blunders_is_kept(tmp_path, monkeypatch, raw_only):
    blunders = iter([9, 3, 5, 4, 8, 7])
    as_metrics = callbacks._as_metrics

    def pretend(verdict):
        return as_metrics(verdict) | {"blunders": next(blunders)}

    monkeypatch.setattr(callbacks, "_as_metrics", pretend)
    assert train_in(tmp_path / "run", *SHORT, "--checkpoint-every", "1") == 0
    assert steps(tmp_path / "run") == [2, 4, 5, 6]


# Damage and divergence.


def damage(run_dir, step):
    (run_dir / "checkpoints" / str(step) / "player" / "arrays.npz").unlink()


@pytest.mark.slow
def test_a_damaged_run_continues_from_an_older_checkpoint(finished, whole, capfd, raw_only):
    damage(finished, 6)
    assert verify.main(["--run-dir", str(finished), "--json"]) == 2
    assert_error(capfd, f"checkpoint 6 in {finished} is damaged", "use one of 2, 4, or move its")
    assert resume(finished) == 0
    moved, repeated = capfd.readouterr().err.splitlines()
    assert f"checkpoint 6 in {finished} is damaged" in moved and f"{finished}/damaged" in moved
    assert f"iterations 5 to 6 of {finished} were not saved" in repeated
    assert (finished / "damaged" / "6-1").is_dir()
    assert_same_end(finished, whole)


def test_an_error_names_a_run_whose_checkpoints_are_all_damaged(finished, capfd):
    for step in steps(finished):
        damage(finished, step)
    before = files(finished)
    assert resume(finished) == 2
    assert_error(capfd, f"no checkpoint in {finished} is sound", "start a new run")
    assert verify.main(["--run-dir", str(finished)]) == 2
    assert_error(capfd, f"checkpoint 6 in {finished} is damaged", "use one of 2, 4")
    assert files(finished) == before


@pytest.mark.slow
def test_training_stops_at_nan(tmp_path, capfd):
    run_dir = tmp_path / "run"
    wild = ["--learner.learning-rate", "1e9", "--learner.clip-norm", "0", "--learner.steps", "1"]
    wild += ["--learner.optimizer", "sgd", "--max-iterations", "9"]
    assert train_in(run_dir, "--smoke", *wild, "--checkpoint-every", "1") == 2
    err = capfd.readouterr().err
    assert_one_sentence(err, "error: ", "lower learner.learning_rate")
    name, iteration = re.search(r"(\w+) became nan in iteration (\d+)", err).groups()
    assert name in records(run_dir)[-1]
    assert [record["iteration"] for record in records(run_dir)] == list(range(1, int(iteration)))
    player = azjax.load(run_dir)
    assert player.iteration == int(iteration) - 1
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(player.params))


@pytest.mark.slow
def test_an_error_names_a_full_disk(tmp_path):
    program = """
import resource, sys
from azjax.cli import train
run = train.train
def limited(*arguments):
    resource.setrlimit(resource.RLIMIT_FSIZE, (90_000, 90_000))  # Enough for the other files.
    return run(*arguments)
train.train = limited
sys.exit(train.main(sys.argv[1:]))
"""
    run_dir = tmp_path / "run"
    status, _, stderr = finish(start("-c", program, *SHORT, "--run-dir", run_dir, **pipes()))
    assert status == 2
    assert_one_sentence(stderr, "error: checkpoint 2 could not be written", "make room")


# Bad input.


def assert_one_sentence(err, *fragments):
    assert err.count("\n") == 1 and err.endswith("\n"), err
    for fragment in fragments:
        assert fragment in err


def assert_error(capfd, *fragments):
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert_one_sentence(err, *fragments)


SIZES = [
    *["learner.batch-size", "learner.steps", "selfplay.games", "selfplay.unroll-length"],
    *["replay.capacity", "replay.shards", "search.num-simulations"],
    *["search.max-considered-actions", "network.head-hidden", "network.width"],
    *["max-iterations", "checkpoint-every"],
]
MLP = ["network.hidden"]


@pytest.mark.parametrize("size", ["0", "-1"])
@pytest.mark.parametrize("setting", [*SIZES, *MLP])
def test_refuses_sizes_below_one(setting, size, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    kind = ["--network.kind", "mlp"] if setting in MLP else []
    assert train.main([*kind, f"--{setting}", size]) == 2
    assert_error(capfd, setting.replace("-", "_"), size, ": use ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        ("--game chess", ["unknown game 'chess'", "tic_tac_toe, connect_four"]),
        ("--preset tiny", ["unknown preset 'tiny'", "default, paper, mlp, connect_four"]),
        ("--until maybe", ["--until is 'maybe': use 'auto' or 'never' or"]),
        ("--network.kind cnn", ["'cnn'", "--network.kind", "'resnet'", "'mlp'"]),
        ("--network.hidden 8", ["a setting of mlp", "choose --network.kind mlp"]),
        ("--network.encoding colour", ["network.encoding is 'colour': use 'absolute' or"]),
        ("--frobnicate 3", ["--frobnicate", "--help"]),
        ("--learner.batchsize 3", ["--learner.batchsize", "meant --learner.batch-size"]),
        ("train", ["train", "--help"]),
        ("--learner.batch-size many", ["--learner.batch-size is 'many': use an integer"]),
        ("--learner.l2 much", ["--learner.l2 is 'much': use a number"]),
        ("--learner.l2 -1", ["learner.l2 is -1.0", "use 0 or more"]),
        ("--smoke=3", ["--smoke takes no value: leave '3' out"]),
        ("--run-dir", ["--run-dir has no value: add one"]),
        ("--learner.batch-size", ["--learner.batch-size has no value: add one"]),
        ("--learner.batch-size 1001", ["learner.batch_size is 1001", "such as 1008"]),
        ("--selfplay.games 1001", ["selfplay.games is 1001", "such as 1008"]),
        ("--seed -1", ["seed is -1", "use 0 to 2147483647"]),
        (f"--seed {2**40}", [f"seed is {2**40}", "use 0 to 2147483647"]),
        (
            "--replay.shards 3",
            ["replay.shards is 3", "the number of devices, 8", "use 8 or a multiple"],
        ),
        ("--replay.capacity 100", ["replay.capacity is 100", "use at least 512"]),
        ("--replay.capacity 1000", ["replay.capacity is 1000", "use at least 8192"]),
        ("--game connect_four --until perfect", ["connect_four", "--until never"]),
        ("--game connect_four --until unbeatable", ["--until unbeatable", "--until never"]),
        ("--resume", ["--resume", "add --run-dir"]),
        ("--resume --run-dir nothing", ["nothing is not a run directory", "config.json"]),
        ("--resume --run-dir=", [". is not a run directory"]),
        ("--resume --run_dir nothing", ["nothing is not a run directory", "config.json"]),
        ("--run-dir /dev/null/run", ["/dev/null/run cannot be created", "choose another"]),
        ("--run-dir /proc/azjax/run", ["/proc/azjax/run cannot be created", "choose another"]),
    ],
)
def test_refuses_bad_input_in_one_sentence(arguments, fragments, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert train.main(arguments.split()) == 2
    assert_error(capfd, *fragments)
    assert list(tmp_path.iterdir()) == []


def make_dangling(folder):
    (folder / "run").symlink_to("nothing")
    return "run", "run is a broken link to nothing: "


def make_link_to_a_file(folder):
    (folder / "file").write_text("kept")
    (folder / "run").symlink_to("file")
    return "run", "run exists already and is not a run directory: "


def make_loop(folder):
    (folder / "run").symlink_to("run")
    return "run", "run is a broken link to run: "


def make_dangling_parent(folder):
    (folder / "runs").symlink_to("nothing")
    return "runs/run", "runs/run cannot be created ("


def make_file_above(folder):
    (folder / "file").write_text("kept")
    return "file/deep/run", "file/deep/run cannot be created (Not a directory): "


def make_folder(folder):
    (folder / "run" / "notes").mkdir(parents=True)
    return "run", "run exists already and is not a run directory: "


def make_nothing(run_dir, said):
    return lambda folder: (run_dir, said)


PLACES = {
    "a dangling link": make_dangling,
    "a link to a file": make_link_to_a_file,
    "a link to itself": make_loop,
    "below a dangling link": make_dangling_parent,
    "below a file": make_file_above,
    "a folder": make_folder,
    "the current folder": make_nothing(".", ". exists already and is not a run directory: "),
    "the folder above": make_nothing("..", ".. exists already and is not a run directory: "),
    "a detour": make_nothing("deep/..", "deep/.. exists already and is not a run directory: "),
    "the root": make_nothing("/", "/ exists already and is not a run directory: "),
    "no room below": make_nothing(
        "deep/" * 800 + "run", "cannot be created (File name too long): "
    ),
    "a long name": make_nothing("deep/" + 300 * "x", "cannot be created (File name too long): "),
    "a name without room": make_nothing(
        "deep/" + 254 * "x", "cannot be created (File name too long"
    ),
    "a read-only disk": make_nothing("/proc/run", "/proc/run cannot be created ("),
}


@pytest.mark.parametrize("make_place", PLACES.values(), ids=PLACES)
def test_an_unusable_run_directory_is_refused_before_compiling(
    make_place, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(prepare, "_compile", None)
    run_dir, said = make_place(tmp_path)
    before = files(tmp_path)
    assert train.main(["--smoke", "--run-dir", run_dir]) == 2
    assert_error(capfd, said, "choose another --run-dir")
    assert files(tmp_path) == before


def test_a_refused_run_creates_no_folders(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(prepare, "_compile", refuse)
    assert train.main(["--smoke", "--run-dir", "some/deep/run"]) == 2
    assert_error(capfd, "refused while compiling")
    assert list(tmp_path.iterdir()) == []


def refuse(*arguments):
    raise ValueError("refused while compiling")


def test_a_dangling_link_keeps_its_number_among_new_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "tic_tac_toe-default-1").symlink_to("nothing")
    parsed = options.parse([])
    prefix = prepare.name_runs(parsed.config, parsed.plan)
    assert str(runs.first_free(prefix)) == "runs/tic_tac_toe-default-2"


@pytest.mark.parametrize("name", ["metrics.jsonl", "checkpoints"])
def test_a_damaged_run_is_refused_before_compiling(name, finished, monkeypatch, capfd):
    if name == "checkpoints":
        for step in steps(finished):
            damage(finished, step)
    else:
        (finished / name).write_text("no record\n" * 2)
    monkeypatch.setattr(prepare, "_compile", None)
    before = files(finished)
    assert resume(finished) == 2
    assert_error(capfd, "restore the file" if name == "metrics.jsonl" else "start a new run")
    assert files(finished) == before


def remove(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def put_folder(path):
    remove(path)
    path.mkdir()


def put_link(path):
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to("../elsewhere")


# What happens to one path of a run, and what a resumed training then says before it compiles.
DAMAGE = [
    (remove, "checkpoints", "error: ", "checkpoints is missing: restore it"),
    (put_link, "checkpoints", "error: ", "checkpoints is a link to ../elsewhere, and azjax"),
    (put_link, "metrics.jsonl", "error: ", "metrics.jsonl is a link to ../elsewhere, and azjax"),
    (put_folder, "metrics.jsonl", "error: ", "metrics.jsonl: Is a directory"),
    (put_folder, "config.json", "error: ", "config.json cannot be used"),
    (put_folder, "plan.json", "error: ", "plan.json cannot be used"),
    (remove, "plan.json", "error: ", "plan.json cannot be used"),
    (remove, "metrics.jsonl", "", "metrics.jsonl ends at iteration 0, before checkpoint 6\n"),
    (put_folder, "checkpoints/6", "checkpoint 6 in ", "saved after iteration 4, but"),
    (put_folder, "checkpoints", "saved after iteration 0, but recorded up to 6", "trained again"),
    (lambda path: path.mkdir(), "train.lock", "error: ", "train.lock: Is a directory"),
    (lambda path: path.mkdir(), "checkpoints/99", "checkpoint 99 in ", "it was moved to "),
]


def test_damage_is_named_before_a_resumed_run_compiles(whole, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(prepare, "_compile", refuse)
    for number, (change, name, *fragments) in enumerate(DAMAGE):
        run_dir = shutil.copytree(whole, tmp_path / str(number) / "run")
        change(run_dir / name)
        before = files(run_dir.parent)
        assert resume(run_dir) == 2
        out, err = capfd.readouterr()
        assert out == "" and all(fragment in err for fragment in fragments), (name, err)
        assert ("refused while compiling" in err) == (fragments[0] != "error: "), (name, err)
        if "moved" not in err:
            assert files(run_dir.parent) == before, name


@pytest.mark.parametrize("columns", ["40", "200"])
def test_the_sentence_is_the_same_in_a_narrow_terminal(columns, monkeypatch, capfd):
    monkeypatch.setenv("COLUMNS", columns)
    assert train.main(["--learner.batchsize", "3"]) == 2
    assert capfd.readouterr().err == (
        "error: Unrecognized options: --learner.batchsize, 3, perhaps you meant "
        f"--learner.batch-size: {command('azjax', 'train', '--help')} lists what is allowed\n"
    )


def test_reads_the_boxes_of_a_terminal_without_line_drawing():
    box = " Value error   \n -----------\n  Error parsing --a: not a\n  number.\n  ----\n  More.\n"
    assert parsing._unbox(box, "program") == (
        f"Error parsing --a: not a number: {command('program', '--help')} lists what is allowed"
    )


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        ("", ["finished exists already", "with --resume", "another --run-dir"]),
        ("--resume --game connect_four", ["is a run of tic_tac_toe, not of connect_four"]),
        ("--resume --network.width 8", ["--network.width was 16, not 8"]),
        ("--resume --network.kind mlp", ["--network.kind was 'resnet', not 'mlp'"]),
        ("--resume --learner.batch-size 64", ["--learner.batch-size was 32, not 64"]),
        ("--resume --preset paper", ["--preset was 'default', not 'paper'"]),
        ("--resume --seed 1", ["--seed was 0, not 1", "another --run-dir"]),
        ("--resume --max-iterations 0", ["max_iterations is 0", "use 1 or more"]),
    ],
)
def test_refuses_to_change_a_run(arguments, fragments, finished, capfd):
    before = files(finished)
    assert train_in(finished, *arguments.split()) == 2
    assert_error(capfd, *fragments)
    assert files(finished) == before


SPOILT = [
    f'{{"format": {runs.FORMAT}, {entry}}}' for entry in ('"colour": 3', '"seed": "x", "preset": 1')
]
SPOILT += ["", "[]", "[" * 10_000]


@pytest.mark.parametrize("name", ["config.json", "plan.json"])
@pytest.mark.parametrize("content", SPOILT, ids=lambda content: content[-10:])
def test_refuses_a_spoiled_run(name, content, finished, capfd):
    (finished / name).write_text(content)
    before = files(finished)
    assert resume(finished) == 2
    assert_error(capfd, f"{finished / name} cannot be used")
    assert files(finished) == before


def test_every_program_refuses_an_edited_configuration(finished, capfd):
    path = finished / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"seed": 1}))
    damage(finished, 6)
    before = files(finished)
    programs = [
        resume,
        lambda run_dir: verify.main(["--run-dir", str(run_dir)]),
        lambda run_dir: report.main(["--run-dir", str(run_dir)]),
        lambda run_dir: play.main(["--run-dir", str(run_dir)]),
        lambda run_dir: arena.main([f"network@{run_dir}#all", "random"]),
    ]
    for program in programs:
        assert program(finished) == 2
        said = f"seed is 1 in {path}, and checkpoint 6 was written with 0: restore the file"
        assert_error(capfd, said)
    assert files(finished) == before


def test_invalid_metrics_are_refused_before_anything_moves(finished, capfd):
    path = finished / "metrics.jsonl"
    path.write_text("garbage\n" + path.read_text())
    damage(finished, 6)
    before = files(finished)
    assert resume(finished) == 2
    assert_one_sentence(capfd.readouterr().err, f"error: {path}, line 1, is not a record of an")
    assert files(finished) == before


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        ("--run-dir nothing", ["nothing is not a run directory", "use the folder"]),
        ("--run-dir file", ["file is not a run directory"]),
        ("one", ["no player 'one' comes with azjax", "use connect_four", "--run-dir"]),
        ("--simulations -1", ["--simulations is -1", "use 0 to 1000000"]),
        ("--simulations 32 -1", ["--simulations is -1", "use 0 to 1000000"]),
        ("--simulations 100000000", ["--simulations is 100000000", "use 0 to 1000000"]),
        ("--limit -1", ["--limit is -1", "use 0 or more"]),
        ("--lines both", ["--lines is 'both': use 'first' or 'second'"]),
        (
            "--simulations many",
            ["--simulations cannot be 'many': ", "--help lists what is allowed"],
        ),
        ("--lines first --until perfect", ["leave one of them out\n"]),
        ("--lines first --most 3", ["--most is 3", "use 16 or more"]),
        ("--most 999", ["--most is a setting of --lines: add --lines first"]),
        ("--repair 9", ["--repair is a setting of --lines: add --lines first"]),
        ("--lines first --repair -1", ["--repair is -1", "use 0 or more"]),
        ("--lines first --repair 9 --most 99", ["--repair explores all games: leave --most out"]),
        ("--until never", ["'never'", "'perfect'", "'unbeatable'"]),
    ],
)
def test_verification_refuses_bad_input(arguments, fragments, tmp_path, monkeypatch, capfd):
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    assert verify.main(arguments.split()) == 2
    assert_error(capfd, *fragments)


def test_verification_refuses_searches_that_do_not_fit(finished, capfd):
    # All 4,520 positions at a time: about a terabyte.
    assert verify.main(["--run-dir", str(finished), "--simulations", "1000000"]) == 2
    assert_error(capfd, "trees of 1000000 simulations, 4520 at a time, need", ": use at most ")


def test_training_refuses_a_proof_that_does_not_fit(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(memory, "device_memory", lambda mesh=None: 10**6)
    monkeypatch.setattr(memory, "check_fits", lambda needs: None)
    assert train.main(["--smoke", "--run-dir", str(tmp_path / "run")]) == 2
    said = capfd.readouterr().err.splitlines()[-1]
    assert re.match("error: trees of 32 simulations, 4520 at a time, need .* 1 MB: use at", said)


def test_a_real_process_prints_one_sentence_and_exits_with_2(tmp_path):
    process = start("-m", "experiments.train", "--game", "chess", cwd=tmp_path, **pipes())
    status, stdout, stderr = finish(process)
    assert (status, stdout) == (2, "")
    first, error = stderr.splitlines(keepends=True)
    assert first == "azjax train: starting…\n"
    assert_one_sentence(error, "error: unknown game 'chess'")


@pytest.mark.parametrize("columns", [50, 200])
@pytest.mark.parametrize("program", [train, verify, report, explain, play, arena])
def test_help_is_as_wide_as_the_terminal(program, columns, monkeypatch, capfd):
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit):
        program.main(["--help"])
    out = capfd.readouterr().out
    assert max(map(len, out.splitlines())) <= columns
    if columns == 200 and program is not train:  # Its text has two lines in the code.
        assert "Default: the game of the run. A custom game must always be named." in out


@pytest.mark.parametrize("program", [verify, report, explain])
def test_without_a_run_the_newest_is_taken(program, whole, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    for game in ([], ["--game", "connect_four"]):
        assert program.main(game) == 2
        assert_error(capfd, "runs/ has no trained player", ": train one", "with --run-dir")
    shutil.copytree(whole, tmp_path / "runs" / "old")
    shutil.copytree(whole, tmp_path / "runs" / "new")
    runs.create_run(tmp_path / "runs" / "untrained", runs.read_config(whole))
    for age, name in enumerate(["untrained", "new", "old"]):
        os.utime(tmp_path / "runs" / name / "config.json", (10**9 - age, 10**9 - age))
    opened = []
    monkeypatch.setattr(
        custom, "load_player", lambda run_dir, typed: opened.append(run_dir) or 1 / 0
    )
    with pytest.raises(ZeroDivisionError):
        program.main([])
    assert [str(run_dir) for run_dir in opened] == ["runs/new"]
    said = "run: runs/new, the newest (--run-dir names another)\n"
    assert capfd.readouterr().err == said


@pytest.mark.parametrize("program", [train, verify])
def test_help_lists_every_setting(program, capfd):
    with pytest.raises(SystemExit) as stop:
        program.main(["--help"])
    assert stop.value.code == 0
    out, err = capfd.readouterr()
    assert err == ""
    for option in [f"--{size}" for size in SIZES] if program is train else ["--simulations"]:
        assert option in out
