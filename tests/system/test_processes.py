"""Several processes train one network: one run directory, the same results, no deadlock."""

import dataclasses
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

from azjax import runs
from azjax.runs import checkpoint, directory
from azjax.runs.config import make_parts
from azjax.training.step import make_mesh
from trained import process_environment, without_progress

# Two processes with two devices each, which share four shards of the buffer.
SHORT = ["--smoke", "--max-iterations", "4", "--checkpoint-every", "1", "--keep-checkpoints", "9"]
SHORT += ["--no-report", "--replay.shards", "4", "--cpu-devices", "2"]
# The same without verification, which compiles the most.
UNVERIFIED = [*SHORT, "--game", "hex:6", "--until", "never"]

PATIENCE = 300  # Seconds after which a test fails because its processes hang.


def start(command, **variables):
    """Starts Python as a separate process, with the compilation cache of the tests."""
    kept = {name: value for name, value in os.environ.items() if "_proxy" not in name.lower()}
    kept["XLA_FLAGS"] = re.sub("--xla_force_host_platform_device_count=8", "", kept["XLA_FLAGS"])
    return subprocess.Popen(
        [sys.executable, *map(str, command)],
        env=kept | process_environment() | variables,
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
        for process in pair:
            process.kill()
    outs, errs = zip(*said, strict=True)
    errs = [err.removeprefix("azjax train: starting…\n") for err in errs]
    errs = [without_progress(err) for err in errs]
    outs, errs = ([without_greetings(text) for text in texts] for texts in (outs, errs))
    return [p.returncode for p in pair], outs, errs


def without_greetings(text):
    """Removes the messages of Gloo, the communication library of JAX on CPUs.

    Its threads may write at the same time, which can put the number at the end on a separate line.
    """
    return re.sub(r"^(.*(Gloo|Rank|peer|connected).*|\d+)?\n", "", text, flags=re.MULTILINE)


def train_two(run_dir, *arguments, lines=""):
    """Starts two trainings, each of which first runs some lines of Python with `index`."""
    program = f"""
import os, signal, sys
from azjax.cli import train
from azjax.training import loop
index = int(os.environ["JAX_PROCESS_ID"])
{lines}
sys.exit(train.main(sys.argv[1:]))
"""
    return start_two(["-c", program, "--distributed", "--run-dir", run_dir, *arguments])


def in_iteration_2(process, action):
    """Lines with which a process does something when iteration 2 ends."""
    return f"""
make_record = loop.make_record
def watched(iteration, *others):
    if index == {process} and iteration == 2:
        {action}
    return make_record(iteration, *others)
loop.make_record = watched
"""


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


# Training.


def test_two_processes_write_one_run(whole):
    run_dir, outs, errs = whole
    assert names(run_dir / "checkpoints") == ["1", "2", "3", "4"]
    assert names(run_dir.parent) == ["run"]
    state = run_dir / "checkpoints" / "4" / "state"
    assert names(state) == ["arrays-1.npz", "arrays.npz"]  # Each process writes its own shards.
    assert names(state.parent / "player") == ["arrays.npz"]
    assert not (run_dir / directory.LOCK).exists()
    assert iterations(run_dir) == [1, 2, 3, 4]
    assert len(names(run_dir / "snapshots")) == 5
    assert json.loads((run_dir / "certificate.json").read_text())["device"].startswith("4 x")
    assert json.loads((run_dir / "plan.json").read_text())["cpu_devices"] == 2
    memory, *lines = outs[0].splitlines()
    assert memory.startswith("memory on each of 4 devices: ")
    assert [line[:14] for line in lines[:4]] == [f"iteration    {n}" for n in range(1, 5)]
    assert f"run directory: {run_dir}\n" in outs[0]
    assert outs[1] == ""
    assert errs == ["verifying the network with its searches, in every position\n", ""]


ENDED = (2, -signal.SIGABRT)  # JAX aborts the process if it notices the end first.


def names_the_other(status, err, number):
    """Whether a process ended because of another one, and named it if it noticed that itself."""
    sentence = f"error: process {number} ended before the others: start all processes again\n"
    return status in ENDED and (status != 2 or err.endswith(sentence))


# Copies checkpoints to new runs: prints which parts of which files it read, and a digest of the
# learner on each device of this process.
COPY = """
import hashlib, os, pathlib, sys, zipfile
import jax, numpy as np
from azjax.cli import launch
launch.join()
launch.spread(2, 4)
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
    state = checkpoint.restore(source, parts)[0]
    for device in range(2):
        digest = hashlib.sha256()
        for leaf in jax.tree.leaves(state.learner):
            digest.update(np.asarray(leaf.addressable_data(device)).tobytes())
        shards = len(state.games.ply.addressable_shards)
        opened.append(f"digest {digest.hexdigest()} {shards}")
    pathlib.Path(f"{target}-{jax.process_index()}").write_text("\\n".join(opened))
    runs.create_run(target, config)
    checkpoint.save(target, state, 0.0)
in_first(lambda: checkpoint.restore_player(sys.argv[1], parts.network))
launch.leave()
"""


def test_killed_processes_resume_and_one_process_and_two_read_each_others_checkpoints(
    whole, tmp_path
):
    """Both skip a checkpoint of which a file of one of them is damaged."""
    run_dir, said = tmp_path / "run", "its file state/arrays-1.npz was changed"
    moment = """
rename = os.rename
def watched(old, new):
    if str(new).endswith("checkpoints/3"):
        os.kill(os.getpid(), signal.SIGKILL)
    rename(old, new)
os.rename = watched
"""
    statuses, _, errs = finish(train_two(run_dir, *SHORT, lines=moment))
    assert statuses[0] == -signal.SIGKILL and names_the_other(statuses[1], errs[1], 0)
    assert names(run_dir / "checkpoints") == ["1", "2", "3.partial"]
    path = run_dir / "checkpoints" / "2" / "state" / "arrays-1.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)
    statuses, _, errs = finish(train_two(run_dir, "--resume"))
    assert statuses == [0, 0], errs
    assert "checkpoint 2" in errs[0] and f"moved to {run_dir}/damaged" in errs[0]
    assert said in errs[0] and errs[1] == "" and names(run_dir / "damaged") == ["2-1"]
    assert names(run_dir / "checkpoints") == ["1", "2", "3", "4"]
    assert iterations(run_dir) == [1, 2, 3, 4]
    assert arrays(run_dir) == arrays(whole[0])

    one, two, again = tmp_path / "one", tmp_path / "two", tmp_path / "again"
    runs.create_run(one, runs.read_config(run_dir))
    checkpoint.save(one, restore(run_dir)[0], 0.0)
    assert names(one / "checkpoints" / "4" / "state") == ["arrays.npz"]
    statuses, _, errs = finish(start_two(["-c", COPY, run_dir, two, one, again]))
    assert statuses == [0, 0], errs
    assert arrays(one) == arrays(two) == arrays(again) == arrays(whole[0])
    digests = []
    for index, own in enumerate(["arrays.npz", "arrays-1.npz"]):
        lines = (tmp_path / f"two-{index}").read_text().splitlines()
        digests += [line for line in lines if line.startswith("digest ")]
        opened = [line.split() for line in lines if not line.startswith("digest ")]
        assert {file for file, name in opened if name.startswith((".replay", ".games"))} == {own}
    assert len(digests) == 4 and len(set(digests)) == 1  # Four devices, and the same on all.
    assert digests[0].endswith(" 2")  # Of four shards of the games.


def test_an_interrupt_of_one_process_stops_both(tmp_path):
    run_dir = tmp_path / "run"
    term = in_iteration_2(1, "os.kill(os.getpid(), signal.SIGTERM)")
    rarely = ["--checkpoint-every", "4"]
    statuses, outs, errs = finish(train_two(run_dir, *UNVERIFIED, *rarely, lines=term))
    assert statuses == [130, 143], errs  # Only the second process received SIGTERM.
    assert errs == [f"interrupted: continue with --resume --run-dir {run_dir}\n", ""]
    memory, *lines = outs[0].splitlines()
    assert memory.startswith("memory") and len(lines) == 2 and outs[1] == ""
    assert names(run_dir / "checkpoints") == ["2"]


# Failures.


def test_the_others_name_a_process_that_ended(tmp_path):
    run_dir = tmp_path / "run"
    lines = in_iteration_2(1, 'raise KeyError("a defect")')
    statuses, _, errs = finish(train_two(run_dir, *UNVERIFIED, lines=lines))
    assert statuses[1] == 1 and errs[1].endswith("KeyError: 'a defect'\n")
    assert names_the_other(statuses[0], errs[0], 1)
    assert names(run_dir / "checkpoints") == ["1"]


def assert_error(err, *fragments):
    assert err.startswith("error: ") and err.count("\n") == 1, err
    for fragment in fragments:
        assert fragment in err


def test_processes_that_cannot_connect_name_the_variables_to_set(tmp_path):
    command = ["-m", "experiments.train", "--distributed", "--smoke", "--run-dir", tmp_path / "run"]
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        places = [{}, {"JAX_PROCESS_ID": "two"}]
        places.append(
            {"JAX_COORDINATOR_ADDRESS": f"localhost:{port}", "JAX_PROCESS_ID": "0"},
        )
        pair = [start(command, JAX_NUM_PROCESSES="2", **given) for given in places]
        statuses, outs, errs = finish(pair)
    assert statuses == [2] * 3 and outs == [""] * 3
    for err in errs:
        assert_error(err, "set JAX_COORDINATOR_ADDRESS to HOST:PORT", "JAX_PROCESS_ID to 0, 1")
    assert f"port {port} cannot be used: Address already in use" in errs[2]
    assert names(tmp_path) == []
