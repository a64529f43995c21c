"""Several processes train one network: one run directory, the same results, no deadlock."""

import dataclasses
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import jax
import numpy as np

from azjax import runs
from azjax.runs import checkpoint, make_parts
from azjax.training import make_mesh
from trained import process_environment, read, records, without_progress

# Two processes with two devices each, which share four shards of the buffer.
SHORT = ["--smoke", "--network.kind", "mlp", "--max-iterations", "4", "--checkpoint-every", "2"]
SHORT += ["--keep-checkpoints", "9", "--no-report", "--replay.shards", "4", "--cpu-devices", "2"]

PATIENCE = 300  # Seconds after which a test fails because its processes hang.
ENDED = (2, -signal.SIGABRT)  # JAX aborts the process if it notices the end first.


def start(command, **variables):
    kept = {name: value for name, value in os.environ.items() if "_proxy" not in name.lower()}
    kept["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"  # They run the same programs.
    kept["XLA_FLAGS"] = re.sub("--xla_force_host_platform_device_count=8", "", kept["XLA_FLAGS"])
    given = {"env": kept | process_environment() | variables, "text": True}
    given |= dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen([sys.executable, *map(str, command)], **given)


def finish(processes):
    """Waits for all; returns their exit statuses, stdout and stderr."""
    deadline = time.monotonic() + PATIENCE
    try:
        said = [p.communicate(timeout=max(deadline - time.monotonic(), 1)) for p in processes]
    finally:
        for process in processes:
            process.kill()
    outs, errs = zip(*said, strict=True)
    outs, errs = ([without_greetings(without_progress(x)) for x in texts] for texts in (outs, errs))
    return [p.returncode for p in processes], outs, errs


def without_greetings(text):
    """Removes the messages of Gloo, the communication library of JAX on CPUs.

    Its threads may write at the same time, which can put the number at the end on a separate line.
    """
    return re.sub(r"^(.*(Gloo|Rank|peer|connected).*|\d+)?\n", "", text, flags=re.MULTILINE)


def train_two(run_dir, *arguments, lines=""):
    """Runs two trainings, each of which first executes some lines of Python with `index`.

    Certificates are of the network alone, because searches compile slowly.
    """
    text = f"""
import os, signal, sys
from azjax import _processes, program
from azjax.cli import train
from azjax.proof import certificate
from azjax.training import loop
certificate.policy = lambda player, search, states: player.evaluate(states)
index = int(os.environ["JAX_PROCESS_ID"])
{lines}
sys.exit(train.main(sys.argv[1:]))
"""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        shared = {"JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{free.getsockname()[1]}"}
    shared["JAX_NUM_PROCESSES"] = "2"
    command = ["-c", text, "--distributed", "--run-dir", run_dir, *arguments]
    return finish([start(command, JAX_PROCESS_ID=str(index), **shared) for index in range(2)])


def arrays(run_dir):
    """The newest state, read by one process."""
    parts = make_parts(runs.read_config(run_dir))
    state, _ = checkpoint.restore(run_dir, parts, make_mesh(jax.devices()[:2]))
    state = dataclasses.replace(state, key=jax.random.key_data(state.key))
    return [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(state)]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_two_processes_are_interrupted_and_resume_exactly(tmp_path):
    run_dir, interrupted = tmp_path / "run", tmp_path / "interrupted"
    # Only the second process receives SIGTERM; both save and stop.
    term = """
make_record = loop.make_record
def watched(iteration, *others):
    if index == 1 and iteration == 3:
        os.kill(os.getpid(), signal.SIGTERM)
    return make_record(iteration, *others)
loop.make_record = watched
"""
    statuses, outs, errs = train_two(run_dir, *SHORT, lines=term)
    assert statuses == [130, 143], errs
    assert errs == [f"interrupted: continue with --resume --run-dir {run_dir}\n", ""]
    *_, third = outs[0].splitlines()
    assert third.startswith("iteration    3") and outs[1] == ""
    shutil.copytree(run_dir, interrupted)

    # Both read an older checkpoint, because the newest one is damaged.
    (run_dir / "checkpoints" / "3" / "state" / "arrays.npz").write_bytes(b"")
    statuses, outs, errs = train_two(run_dir, "--resume", "--max-iterations", "3")
    assert statuses == [0, 0], errs
    assert "checkpoint 3" in errs[0] and f"moved to {run_dir}/damaged" in errs[0]
    assert errs[1] == outs[1] == ""
    assert arrays(run_dir) == arrays(interrupted)
    assert [record["iteration"] for record in records(run_dir)] == [1, 2, 3]
    assert len(names(run_dir / "snapshots")) == 4
    assert read(run_dir)["device"].startswith("4 x")
    assert read(run_dir, "plan.json")["cpu_devices"] == 2


def test_a_process_names_one_that_was_killed(tmp_path):
    lines = """
def end(*arguments):
    if index == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    _processes.gather("")
program._compile = end
"""
    statuses, _, errs = train_two(tmp_path / "run", *SHORT, lines=lines)
    assert statuses[1] == -signal.SIGKILL and statuses[0] in ENDED
    if statuses[0] == 2:  # JAX has its own message.
        sentence = "error: another process ended before this one: start all processes again\n"
        assert errs[0].endswith(sentence)
    assert names(tmp_path) == []


def test_processes_that_cannot_connect_name_the_variables_to_set(tmp_path):
    command = ["-m", "experiments.train", "--distributed", "--smoke", "--run-dir", tmp_path / "run"]
    with socket.create_server(("", 0)) as taken:
        address = f"localhost:{taken.getsockname()[1]}"
        given = {"JAX_COORDINATOR_ADDRESS": address, "JAX_PROCESS_ID": "0"}
        statuses, _, (err,) = finish([start(command, JAX_NUM_PROCESSES="2", **given)])
    assert statuses == [2] and err.startswith("error: ") and err.count("\n") == 1, err
    assert "set JAX_COORDINATOR_ADDRESS to HOST:PORT" in err and "JAX_PROCESS_ID to 0, 1" in err
    assert "Address already in use" in err and names(tmp_path) == []
