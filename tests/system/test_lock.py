"""The lock of a run directory between processes: released by the system if its holder is killed."""

import os
import subprocess
import sys

import pytest

from azjax.runs import lock
from azjax.runs.directory import CheckpointError

# Holds the lock, prints a line, and waits for input.
HOLDER = """
import sys
from azjax.runs import lock
with lock.hold(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_lock_ends_with_its_process(is_killed, tmp_path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, env=environment, text=True, **pipes) as process:
        assert process.stdout.readline() == "held\n"
        said = f"process {process.pid} on host .* trains in {tmp_path}: wait until it ends"
        with pytest.raises(CheckpointError, match=said), lock.hold(tmp_path):
            pass
        if is_killed:
            process.kill()
            process.wait()
            assert (tmp_path / lock.NAME).exists()
        else:
            process.communicate("go on\n")
            assert process.returncode == 0 and not (tmp_path / lock.NAME).exists()
    with lock.hold(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []
