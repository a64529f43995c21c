"""Several processes train one network: one run directory, the same results, no deadlock."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import types

import jax
import numpy as np
import pytest

from azjax import _processes as processes
from azjax import runs
from azjax.cli import launch, options, relay, train
from azjax.programs import prepare
from azjax.runs import checkpoint, lock, presets
from azjax.runs.config import Config, count_devices, fit_devices, make_parts
from azjax.training.sharding import make_mesh
from test_imports import ROOT

# Two processes with two devices each, which share four shards of the buffer.
SHORT = ["--smoke", "--max-iterations", "5", "--checkpoint-every", "1", "--keep-checkpoints", "9"]
SHORT += ["--no-report", "--replay.shards", "4", "--cpu-devices", "2"]

PATIENCE = 300  # Seconds after which a test fails because its processes hang.


def environment(**variables):
    """Returns the environment of a separate process, with the compilation cache of the tests."""
    kept = {name: value for name, value in os.environ.items() if "_proxy" not in name.lower()}
    kept["XLA_FLAGS"] = re.sub("--xla_force_host_platform_device_count=8", "", kept["XLA_FLAGS"])
    return kept | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "JAX_COMPILATION_CACHE_DIR": jax.config.jax_compilation_cache_dir,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2",
        **variables,
    }


def start(command, **variables):
    return subprocess.Popen(
        [sys.executable, *map(str, command)],
        env=environment(**variables),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def start_two(command):
    """Starts the same command twice, as processes 0 and 1 on this host."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    shared = {"JAX_COORDINATOR_ADDRESS": address, "JAX_NUM_PROCESSES": "2"}
    return [start(command, JAX_PROCESS_ID=str(index), **shared) for index in range(2)]


def finish(pair):
    """Waits for both; returns their exit statuses, stdout and stderr."""
    deadline = time.monotonic() + PATIENCE
    try:
        said = [p.communicate(timeout=max(deadline - time.monotonic(), 1)) for p in pair]
    finally:
        kill(pair)
    outs, errs = zip(*said, strict=True)
    errs = [err.removeprefix("azjax train: starting…\n") for err in errs]
    return [p.returncode for p in pair], [without_greetings(out) for out in outs], errs


def without_greetings(out):
    """Removes the messages of Gloo, the communication library of JAX on CPUs.

    Its threads may write at the same time, which can put the number at the end on a separate line.
    """
    return re.sub(r"^(.*(Gloo|Rank|peer|connected).*|\d+)?\n", "", out, flags=re.MULTILINE)


def kill(pair):
    for process in pair:
        process.kill()


def train_two(run_dir, *arguments, program=("-m", "experiments.train")):
    return start_two([*program, "--distributed", "--run-dir", run_dir, *arguments])


def patched(lines):
    """Returns a training program that first runs some lines of Python with `index`."""
    program = f"""
import os, resource, signal, sys
from azjax.runs import checkpoint
from azjax.training import metrics
from azjax.cli import train
index = int(os.environ["JAX_PROCESS_ID"])
{lines}
sys.exit(train.main(sys.argv[1:]))
"""
    return ("-c", program)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An uninterrupted run of two processes, and their output."""
    run_dir = tmp_path_factory.mktemp("whole") / "run"
    statuses, outs, errs = finish(train_two(run_dir, *SHORT))
    assert statuses == [0, 0], errs
    return run_dir, outs, errs


def iterations(run_dir):
    lines = (run_dir / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line)["iteration"] for line in lines]


def restore(run_dir):
    mesh = make_mesh(jax.devices()[:2])
    return checkpoint.restore(run_dir, make_parts(runs.read_config(run_dir)), mesh)


def with_key_data(state):
    return dataclasses.replace(state, key=jax.random.key_data(state.key))


def arrays(run_dir):
    state, skipped = restore(run_dir)
    assert not skipped
    leaves = jax.tree_util.tree_leaves_with_path(with_key_data(state))
    return {jax.tree_util.keystr(path): np.asarray(leaf).tobytes() for path, leaf in leaves}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


TOGETHER = """
import os
from azjax import _processes as processes
from azjax.cli import launch
launch.join()
index = int(os.environ["JAX_PROCESS_ID"])
def fail_in(process, error):
    def fail():
        if index == process:
            raise error
    return fail
def try_to(do, action):
    try:
        print(do(action))
    except (KeyError, ValueError, processes.OtherProcessError) as error:
        print(type(error).__name__, len(str(error)), str(error)[:9])
try_to(processes.in_all, fail_in(1, KeyError("a defect")))
try_to(processes.in_all, fail_in(1, ValueError()))
try_to(processes.in_all, fail_in(0, ValueError("i" + "\u00e4" * 2000)))
try_to(processes.in_all, lambda: f"process {index}")
try_to(processes.in_first, lambda: print("first"))
try_to(processes.in_first, fail_in(0, ValueError("no room")))
print(processes.any_of(index == 1, False))
processes.check_same({"seed": 3, "selfplay": "the same"})
try_to(processes.check_same, {"seed": 3, "selfplay": index})
launch.leave()
"""


HEARD = ["(True, False)", "ValueError 107 selfplay "]


def test_requests_and_errors_reach_all_processes():
    statuses, outs, errs = finish(start_two(["-c", TOGETHER]))
    assert statuses == [0, 0], errs
    long = "i" + "ä" * 8
    assert [out.splitlines() for out in outs] == [
        ["OtherProcessError 10 'a defect", "OtherProcessError 10 ValueErro"]
        + [f"ValueError 2001 {long}", "process 0", "first", "None", "ValueError 7 no room", *HEARD],
        ["KeyError 10 'a defect", "ValueError 0 ", f"OtherProcessError 512 {long}", "process 1"]
        + ["None", "OtherProcessError 7 no room", *HEARD],
    ]


@pytest.mark.parametrize(
    ("numbers", "said"), [([2, 2], None), ([2, 1], "2, 1 devices: .*`cpu_devices=1`")]
)
def test_processes_with_unequal_numbers_of_devices_are_rejected(numbers, said, monkeypatch):
    indices = np.repeat(np.arange(len(numbers)), numbers)
    devices = [types.SimpleNamespace(process_index=index) for index in indices]
    monkeypatch.setattr(jax, "devices", lambda: devices)
    refused = pytest.raises(ValueError, match=said) if said else contextlib.nullcontext()
    with refused:
        processes.check_devices()


# Training.


@pytest.mark.slow
def test_two_processes_write_one_run(whole):
    run_dir, outs, errs = whole
    assert names(run_dir / "checkpoints") == ["1", "2", "3", "4", "5"]
    assert names(run_dir.parent) == ["run"]
    assert not (run_dir / lock.NAME).exists()
    assert iterations(run_dir) == [1, 2, 3, 4, 5]
    assert len(names(run_dir / "snapshots")) == len(names(run_dir / "answers")) == 6
    assert json.loads((run_dir / "certificate.json").read_text())["device"].startswith("4 x")
    assert json.loads((run_dir / "plan.json").read_text())["cpu_devices"] == 2
    memory, *lines = outs[0].splitlines()
    assert memory.startswith("memory on each of 4 devices: ")
    assert [line[:14] for line in lines[:5]] == [f"iteration    {n}" for n in range(1, 6)]
    assert f"run directory: {run_dir}\n" in outs[0]
    assert outs[1] == ""
    assert errs == ["verifying the network with its searches, in every position\n", ""]


# Restores, and prints a digest of the learner on each device of this process.
DIGEST = """
import hashlib, pathlib, sys
import jax, numpy as np
from azjax.runs import checkpoint
from azjax import runs
from azjax.programs import prepare
from azjax.runs.config import Config, fit_devices, make_parts
from azjax.cli import launch
launch.join()
launch.spread(2, 4)
state = checkpoint.restore(sys.argv[1], make_parts(runs.read_config(sys.argv[1]))).state
lines = []
for device in range(2):
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(state.learner):
        digest.update(np.asarray(leaf.addressable_data(device)).tobytes())
    lines.append(f"{digest.hexdigest()} {len(state.games.ply.addressable_shards)}")
pathlib.Path(f"{sys.argv[1]}-{jax.process_index()}").write_text("\\n".join(lines))
launch.leave()
"""


ENDED = (2, -signal.SIGABRT)  # JAX aborts the process if it notices the end first.


def said_of(who):
    return (
        f"error: {who} ended before the others (its output has the reason, unless it was killed): "
        "start all processes again"
    )


@pytest.mark.slow
def test_killed_processes_resume_without_a_difference(whole, tmp_path):
    run_dir = tmp_path / "run"
    moment = """
rename = os.rename
def watched(old, new):
    if str(new).endswith("checkpoints/3"):
        os.kill(os.getpid(), signal.SIGKILL)
    rename(old, new)
os.rename = watched
"""
    statuses, _, errs = finish(train_two(run_dir, *SHORT, program=patched(moment)))
    assert statuses[0] == -signal.SIGKILL and statuses[1] in ENDED
    assert errs == ["", f"{said_of('process 0')} with --resume --run-dir {run_dir}\n"]
    assert names(run_dir / "checkpoints") == ["1", "2", "3.partial"]
    statuses, _, errs = finish(train_two(run_dir, "--resume"))
    assert statuses == [0, 0], errs
    assert names(run_dir / "checkpoints") == ["1", "2", "3", "4", "5"]
    assert iterations(run_dir) == [1, 2, 3, 4, 5]
    assert arrays(run_dir) == arrays(whole[0])
    statuses, _, errs = finish(start_two(["-c", DIGEST, run_dir]))
    assert statuses == [0, 0], errs
    lines = [line for i in range(2) for line in (tmp_path / f"run-{i}").read_text().split("\n")]
    assert len(lines) == 4 and len(set(lines)) == 1  # Four devices, and the same on all.
    assert lines[0].endswith(" 2")  # Of four shards of the games.


@pytest.mark.slow
def test_each_process_writes_its_own_shards(whole):
    """And NumPy can read them."""
    folder = whole[0] / "checkpoints" / "5"
    assert names(folder / "player") == ["arrays.npz"]
    assert names(folder / "state") == ["arrays-1.npz", "arrays.npz"]
    state = restore(whole[0]).state
    rest = state.replace(learner=state.learner._replace(average=()))
    expected = [{}, {}]
    for path, leaf in jax.tree_util.tree_leaves_with_path(with_key_data(rest)):
        name, quarter = jax.tree_util.keystr(path), len(leaf) // 4 if leaf.ndim else 0
        if not name.startswith((".replay", ".games")):
            expected[0][name] = np.asarray(leaf)
            continue
        for device in range(4):
            first, last = device * quarter, (device + 1) * quarter
            expected[device // 2][f"{name}[{first}:{last}]"] = np.asarray(leaf[first:last])
    for name, parts in zip(("arrays.npz", "arrays-1.npz"), expected, strict=True):
        with np.load(folder / "state" / name, allow_pickle=False) as file:
            assert {*file.files} == parts.keys()
            for part in parts:
                np.testing.assert_array_equal(file[part], parts[part], strict=True)


# Copies checkpoints to new runs; prints which parts of which files it read.
COPY = """
import os, pathlib, sys, zipfile
import jax
index = int(os.environ["JAX_PROCESS_ID"])
jax.config.update("jax_num_cpu_devices", 2)
jax.distributed.initialize(os.environ["JAX_COORDINATOR_ADDRESS"], 2, index)
from azjax import runs
from azjax._processes import in_first
from azjax.runs import checkpoint
from azjax.runs.config import make_parts
opened, original = [], zipfile.ZipFile.open
def watched(file, name, *args, **kwargs):
    opened.append(f"{pathlib.Path(file.filename).name} {name}")
    return original(file, name, *args, **kwargs)
zipfile.ZipFile.open = watched
config = runs.read_config(sys.argv[1])
parts = make_parts(config)
for source, target in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
    del opened[:]
    state = checkpoint.restore(source, parts).state
    pathlib.Path(f"{target}-{index}").write_text("\\n".join(opened))
    runs.create_run(target, config)
    checkpoint.save(target, state, 0.0)
in_first(lambda: checkpoint.restore_player(sys.argv[1], parts.network))
jax.distributed.shutdown()
"""


@pytest.mark.slow
def test_one_process_and_two_read_each_others_checkpoints(whole, tmp_path):
    one, two, again = tmp_path / "one", tmp_path / "two", tmp_path / "again"
    runs.create_run(one, runs.read_config(whole[0]))
    checkpoint.save(one, restore(whole[0]).state, 0.0)
    assert names(one / "checkpoints" / "5" / "state") == ["arrays.npz"]
    statuses, _, errs = finish(start_two(["-c", COPY, whole[0], two, one, again]))
    assert statuses == [0, 0], errs
    assert arrays(one) == arrays(two) == arrays(again) == arrays(whole[0])
    for index, own in enumerate(["arrays.npz", "arrays-1.npz"]):
        opened = [line.split() for line in (tmp_path / f"two-{index}").read_text().split("\n")]
        assert {file for file, name in opened if name.startswith((".replay", ".games"))} == {own}


@pytest.mark.slow
def test_an_interrupt_of_one_process_stops_both(tmp_path):
    run_dir = tmp_path / "run"
    moment = """
from azjax.training import loop
make_record = loop.make_record
def watched(iteration, *others):
    if index == 1 and iteration == 2:
        os.kill(os.getpid(), signal.SIGTERM)
    return make_record(iteration, *others)
loop.make_record = watched
"""
    rarely = ["--checkpoint-every", "4"]
    statuses, outs, errs = finish(train_two(run_dir, *SHORT, *rarely, program=patched(moment)))
    assert statuses == [130, 143], errs  # Only the second process received SIGTERM.
    assert errs == [f"interrupted: continue with --resume --run-dir {run_dir}\n", ""]
    memory, *lines = outs[0].splitlines()
    assert memory.startswith("memory") and len(lines) == 2 and outs[1] == ""
    assert names(run_dir / "checkpoints") == ["2"]


# Failures.


DIES = "os.kill(os.getpid(), signal.SIGKILL)"
FAILS = 'raise KeyError("a defect")'


@pytest.mark.slow
@pytest.mark.parametrize(("process", "action"), [(1, DIES), (0, FAILS), (1, FAILS)])
def test_the_others_name_a_process_that_ended(process, action, tmp_path):
    run_dir = tmp_path / "run"
    moment = f"""
from azjax.training import loop
make_record = loop.make_record
def broken(iteration, *others):
    if index == {process} and iteration == 2:
        {action}
    return make_record(iteration, *others)
loop.make_record = broken
"""
    statuses, _, errs = finish(train_two(run_dir, *SHORT, program=patched(moment)))
    assert statuses[process] == (1 if action == FAILS else -signal.SIGKILL)
    assert errs[process].endswith("KeyError: 'a defect'\n" if action == FAILS else "")
    assert statuses[1 - process] in ENDED
    resume = f" with --resume --run-dir {run_dir}\n"
    assert errs[1 - process] == said_of(f"process {process}") + resume
    assert names(run_dir / "checkpoints") == ["1"]


NATIVE = """
import os, sys
from azjax.cli import relay
print("first", file=sys.stderr)
relay.start(sys.argv[1], "--run-dir mine")
print("from Python")
os.write(1, b"[Gloo] Rank 0 is connected to 1 peer ranks. Expected number of peers is : \\n1\\n")
os.write(2, b"a native warning\\n")
os.write(2, sys.argv[2].encode())
"""
ABORT = """E1127 04:34:44.858921   16063 coordination_service_agent.cc:289] Polled an error.
F1127 04:34:44.858978   16063 client.h:80] Terminating process because the JAX distributed service \
detected fatal errors. {} [type.googleapis.com/tensorflow.CoordinationServiceError='']
*** Check failure stack trace: ***
    @     0x7f1dcce40634  absl::lts_20260107::log_internal::LogMessage::SendToLog()
"""
HEARTBEATS = "The following tasks are unhealthy (stopped sending heartbeats):\n{}\nThe tasks have"
RELAYED = [
    ("", ""),
    ("E1127 coordination_service.cc:1] Alone.\n", "E1127 coordination_service.cc:1] Alone.\n"),
    (ABORT.format(HEARTBEATS.format("1")), said_of("process 1") + "\n"),
    (
        ABORT.format(HEARTBEATS.format("/job:worker/task:3\n/job:worker/task:12")),
        said_of("processes 3 and 12") + "\n",
    ),
    (ABORT.format("Either the leader task was preempted or"), said_of("process 0") + "\n"),
    (ABORT.format("Something else"), said_of("another process") + "\n"),
    (
        ABORT.format("RPC: /xla.coordination.CoordinationService/RegisterTask"),
        f"error: the processes did not connect in time: {relay.VARIABLES}\n",
    ),
]


def test_native_output_is_relayed_and_an_abort_becomes_a_sentence(tmp_path):
    programs = [start(["-c", NATIVE, tmp_path, text]) for text, _ in RELAYED]
    statuses, outs, errs = finish(programs)
    assert statuses == [0] * len(RELAYED)
    assert set(outs) == {"from Python\n"}
    assert errs == [f"first\na native warning\n{sentence}" for _, sentence in RELAYED]


def test_a_taken_port_is_named(tmp_path):
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        command = ["-m", "experiments.train", "--distributed", "--smoke", "--run-dir", tmp_path]
        where = {"JAX_COORDINATOR_ADDRESS": f"localhost:{port}"}
        process = start(command, **where, JAX_NUM_PROCESSES="2", JAX_PROCESS_ID="0")
        [status], _, [err] = finish([process])
    assert status == 2
    assert_error(err, f"port {port} cannot be used: Address already in use", "with a free port")


def assert_error(err, *fragments):
    assert err.startswith("error: ") and err.count("\n") == 1, err
    for fragment in fragments:
        assert fragment in err


@pytest.mark.slow
@pytest.mark.parametrize("process", [0, 1])
def test_a_full_disk_of_one_process_stops_both(process, tmp_path):
    run_dir = tmp_path / "run"
    limit = f"""
run = train.train
def limited(*arguments):
    if index == {process}:
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
    return run(*arguments)
train.train = limited
"""
    statuses, _, errs = finish(train_two(run_dir, *SHORT, program=patched(limit)))
    assert statuses == [2, 2], errs
    for err in errs:
        assert re.search("^error: checkpoint 1 could not be written .*: make room", err, re.M)
    assert runs.iterations(run_dir) == []


def flip_a_byte(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "damage", "said"),
    [
        ("arrays.npz", pathlib.Path.unlink, "its file state/arrays.npz is missing"),
        ("arrays-1.npz", pathlib.Path.unlink, "its file state/arrays-1.npz is missing"),
        ("arrays-1.npz", flip_a_byte, "its file state/arrays-1.npz was changed"),
    ],
)
def test_both_skip_a_damaged_checkpoint(name, damage, said, whole, tmp_path):
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    for path in whole[0].rglob("*"):
        target = run_dir / path.relative_to(whole[0])
        target.mkdir(exist_ok=True) if path.is_dir() else target.write_bytes(path.read_bytes())
    damage(run_dir / "checkpoints" / "5" / "state" / name)
    state, [skipped] = restore(run_dir)
    assert int(state.iteration) == 4 and said in skipped
    statuses, _, errs = finish(train_two(run_dir, "--resume"))
    assert statuses == [0, 0], errs
    assert "checkpoint 5" in errs[0] and f"moved to {run_dir}/damaged" in errs[0]
    assert said in errs[0]
    assert errs[1] == ""
    assert names(run_dir / "damaged") == ["5-1"]
    assert arrays(run_dir) == arrays(whole[0])


@pytest.mark.slow
def test_a_directory_that_exists_stops_both(whole):
    before = (whole[0] / "plan.json").read_bytes()
    statuses, outs, errs = finish(train_two(whole[0], *SHORT))
    assert statuses == [2, 2]
    assert outs == ["", ""]
    for err in errs:
        assert_error(err, f"{whole[0]} exists already", "with --resume", "another --run-dir")
    assert (whole[0] / "plan.json").read_bytes() == before


@pytest.mark.slow
def test_a_run_with_another_trainer_stops_both(whole):
    with lock.hold(whole[0]):
        statuses, outs, errs = finish(train_two(whole[0], "--resume"))
    assert statuses == [2, 2]
    assert outs == ["", ""]
    for err in errs:
        assert_error(err, f"process {os.getpid()} on host", f" trains in {whole[0]}: wait")


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"JAX_PROCESS_ID": "two"},
        {"JAX_COORDINATOR_ADDRESS": "host", "JAX_PROCESS_ID": "0"},
    ],
    ids=str,
)
def test_names_the_variables_to_set(given, tmp_path):
    command = ["-m", "experiments.train", "--distributed", "--smoke", "--run-dir", tmp_path / "run"]
    process = start(command, JAX_NUM_PROCESSES="2", **given)
    [status], [out], [err] = finish([process])
    assert (status, out) == (2, "")
    assert_error(err, "set JAX_COORDINATOR_ADDRESS to HOST:PORT", "JAX_PROCESS_ID to 0, 1")
    assert names(tmp_path) == []


def test_several_processes_need_a_folder_that_they_share(capfd):
    assert train.main(["--smoke", "--distributed"]) == 2
    assert_error(capfd.readouterr().err, "--distributed needs a folder", "add --run-dir")


def test_jax_has_the_index_and_the_number_of_processes_in_its_private_state():
    """No public function returns them before JAX starts; see `launch._index_and_count`."""
    from jax._src.distributed import global_state

    assert (global_state.process_id, global_state.num_processes) == (0, 1)


# CPU devices.


@pytest.mark.parametrize(
    ("shards", "cores", "count", "number"),
    [
        (16, 1, 1, 1),
        (16, 2, 1, 2),
        (16, 3, 1, 2),
        (16, 15, 1, 8),
        (16, 64, 1, 16),
        (12, 5, 1, 4),
        (7, 6, 1, 1),
        (16, 8, 4, 4),
        (16, 8, 3, 1),  # 3 processes never divide 16 shards.
        (2, 8, 2, 1),
    ],
)
def test_gives_each_core_a_device(shards, cores, count, number):
    assert count_devices(shards, cores, count) == number


@pytest.mark.parametrize(
    ("evenly", "cores", "count", "number"),
    [
        ((1024, 512), 64, 1, 64),
        ((1024, 512), 48, 1, 32),
        ((1024, 512), 6, 1, 4),
        ((1024, 512), 64, 4, 64),
        ((1024, 520), 64, 1, 8),
        ((1026, 516), 6, 1, 6),
        ((1001, 512), 8, 1, 8),  # They divide the shards.
    ],
)
def test_cores_that_divide_games_and_batch_are_devices_of_a_new_run(evenly, cores, count, number):
    assert count_devices(8, cores, count, evenly) == number


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ([], 64),
        (["--replay.shards", "16"], 16),
        (["--selfplay.games", "1040"], 16),
        (["--cpu-devices", "6"], 6),
    ],
)
def test_a_program_chooses_its_cpu_devices(arguments, wanted, monkeypatch):
    monkeypatch.setattr(launch, "cores", lambda: 64)
    monkeypatch.delenv("XLA_FLAGS")  # From conftest.
    found = {}
    monkeypatch.setattr(jax.config, "update", found.__setitem__)
    launch.start(options.parse(arguments), True)
    assert found == {"jax_num_cpu_devices": wanted}


def use_devices(number, monkeypatch):
    devices = jax.local_devices()[:number]
    monkeypatch.setattr(jax, "devices", lambda: devices)


@pytest.mark.slow
def test_any_number_of_devices_trains_and_resumes(tmp_path, monkeypatch, capfd):
    """Three, then two, of which one is used."""
    run_dir = tmp_path / "run"
    use_devices(3, monkeypatch)
    short = ["--game", "hex:3", "--smoke", "--no-report", "--max-iterations"]
    assert train.main([*short, "1", "--run-dir", str(run_dir)]) == 0
    said = "3 devices: selfplay.games 18 instead of 16, replay.shards 3 instead of 8, "
    assert capfd.readouterr().err.startswith(f"{said}learner.batch_size 33 instead of 32\n")
    config = runs.read_config(run_dir)
    assert (config.selfplay.games, config.learner.batch_size) == (18, 33)
    assert (config.replay.shards, config.replay.capacity) == (3, 1024)
    use_devices(2, monkeypatch)
    assert train.main(["--resume", "--run-dir", str(run_dir), "--max-iterations", "2"]) == 0
    printed = capfd.readouterr()
    assert "1 of 2 devices are used: no larger number of devices divides the 3" in printed.err
    assert printed.out.startswith("memory on the device: ")
    assert runs.read_config(run_dir) == config
    assert iterations(run_dir) == [1, 2]


def test_a_resumed_run_keeps_its_settings(monkeypatch):
    """It uses as many devices as divide its shards; the preset `mlp` has two shards."""
    config, said = presets.get("mlp"), []
    use_devices(3, monkeypatch)
    assert prepare._make_mesh(config.replay.shards, True, said.append).size == 2
    assert said[0].startswith("2 of 3 devices are used") and len(said) == 1
    assert prepare._make_mesh(config.replay.shards, False, said.append).size == 3
    assert prepare._fit_devices(config, 3, (), fixed=True) == (config, "")
    assert prepare._fit_devices(config, 3, (), fixed=False) != (config, "")


def test_the_guide_has_the_numbers_of_the_default():
    text = (ROOT / "docs" / "how_to" / "devices.md").read_text()
    rows = [row for row in text.splitlines() if re.match(r"\| [0-9]", row)]
    assert len(rows) == 6
    for row in rows:
        devices, *said = (cell.replace(",", " ").split() for cell in row.strip("| ").split("|"))
        for number in map(int, devices):
            config = fit_devices(Config(), number)
            found = config.selfplay.games, config.learner.batch_size, config.replay.shards
            assert [int("".join(cell)) for cell in said] == list(found)


def test_given_settings_are_not_rounded(tmp_path, monkeypatch, capfd):
    use_devices(3, monkeypatch)
    short = ["--smoke", "--run-dir", str(tmp_path / "run"), "--selfplay.games=16"]
    assert train.main(short) == 2
    assert_error(capfd.readouterr().err, "selfplay.games is 16", "such as 18")
    assert names(tmp_path) == []


@pytest.mark.slow
def test_a_program_keeps_using_all_cores_when_resumed(tmp_path):
    run_dir = tmp_path / "run"
    short = ["-m", "experiments.train", "--run-dir", run_dir]
    short += ["--max-iterations", "1", "--until", "never", "--no-report"]
    [status], _, [err] = finish([start([*short, "--smoke", "--game", "connect_four"])])
    assert status == 0, err
    plan = json.loads((run_dir / "plan.json").read_text())
    shards = runs.read_config(run_dir).replay.shards
    assert plan["cpu_devices"] == count_devices(shards, launch.cores())


def resumed_plan(run_dir, content, *arguments):
    config = dataclasses.replace(options.parse(["--smoke"]).config, game="connect_four")
    runs.create_run(run_dir, config, content)
    return options.parse(["--resume", "--run-dir", str(run_dir), *arguments]).plan


def test_a_resumed_run_keeps_its_cpu_devices(tmp_path):
    assert resumed_plan(tmp_path / "new", {"cpu_devices": 3}).cpu_devices == 3
    with pytest.raises(ValueError, match="--cpu-devices was 3, not 2: leave it out"):
        resumed_plan(tmp_path / "other", {"cpu_devices": 3}, "--cpu-devices", "2")
    with pytest.raises(ValueError, match="cpu_devices is -1: use 0 to 256"):
        options.parse(["--cpu-devices", "-1"])
