"""Several processes that train together: how they start, exchange texts, fail and stop.

All processes of a run must call the functions that exchange something in the same order.
"""

import collections
import contextlib
import hashlib
import json
import os
import re
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils

from azjax._commands import write_note

Result = TypeVar("Result")

_MOST_BYTES = 1024  # Maximum length of a text that processes exchange.
_HEARTBEAT = 30  # Seconds after which JAX considers a silent process dead.
_LEAVES = 30  # Seconds that a process that succeeds waits for the others to end as well.
_FAILS = 5  # The same for a process that failed: the others may wait for it.
_VARIABLES = (
    "outside SLURM, Open MPI, Kubernetes and Cloud TPU, set JAX_COORDINATOR_ADDRESS to HOST:PORT "
    "of process 0, with a free port, JAX_NUM_PROCESSES to the number of processes, and "
    "JAX_PROCESS_ID to 0, 1 and so on"
)


class OtherProcessError(Exception):
    """Raised when another process failed; has the message of that process."""


class OtherProcessEnded(BaseException):
    """Raised when another process ended before this one.

    It does not derive from Exception: a handler must not take it for damage of a file, for example.
    """


def join() -> None:
    """Makes this process one of several, before JAX creates its devices; see `_VARIABLES`."""
    jax.config.update("jax_enable_preemption_service", False)  # It would swallow SIGTERM.
    address, names = os.environ.get("JAX_COORDINATOR_ADDRESS"), ("NUM_PROCESSES", "PROCESS_ID")
    try:
        numbers = (os.environ.get(f"JAX_{name}") for name in names)
        count, index = (None if number is None else int(number) for number in numbers)
        if address is not None and index == 0:  # JAX's service would end with a C++ error.
            socket.create_server(("", int(address.rpartition(":")[2]))).close()
        # `run` waits less than the timeout, after which JAX would abort the process.
        jax.distributed.initialize(
            address,
            count,
            index,
            heartbeat_timeout_seconds=_HEARTBEAT,
            shutdown_timeout_seconds=2 * _LEAVES,
        )
    except (ValueError, IndexError, OSError, RuntimeError) as error:
        reason = str(error).split("\n")[0]
        raise ValueError(f"the processes cannot connect ({reason}): {_VARIABLES}") from error


def run(program: Callable[[], int]) -> int:
    """Runs a program and returns its exit status; leaves the other processes, if there are any."""
    try:
        status = program()
        failed = status == 2
    except OtherProcessEnded as error:
        write_note(f"error: {error}")
        os._exit(2)  # JAX would wait for the other process.
    except (Exception, SystemExit) as error:
        if not jax.distributed.is_initialized():
            raise
        if isinstance(error, Exception):
            traceback.print_exc()
        status, failed = 1, True
    if jax.distributed.is_initialized():
        thread = threading.Thread(target=_disconnect, daemon=True)
        thread.start()
        thread.join(_FAILS if failed else _LEAVES)
        if thread.is_alive():
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(status)
    return status


def _disconnect() -> None:
    with contextlib.suppress(RuntimeError):  # Another process has failed as well.
        jax.distributed.shutdown()


def is_first() -> bool:
    """Whether this is process 0, which writes and prints; JAX's function would start JAX."""
    if not jax.distributed.is_initialized():
        return True
    from jax._src.distributed import global_state

    return global_state.process_id == 0


def note(sentence: str) -> None:
    """Prints a sentence to standard error in process 0."""
    if jax.process_index() == 0:
        write_note(sentence)


def cores() -> int:
    """Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def set_cpu_devices(number: int) -> None:
    """Sets the number of CPU devices of this process, unless a flag or variable of JAX sets it."""
    flags = os.environ.get("XLA_FLAGS", "")
    if "JAX_NUM_CPU_DEVICES" not in os.environ and "host_platform_device_count" not in flags:
        jax.config.update("jax_num_cpu_devices", number)


@contextlib.contextmanager
def connected() -> Iterator[None]:
    """Raises OtherProcessEnded if the communication of the `with` block fails."""
    try:
        yield
    except Exception as error:
        if jax.process_count() > 1 and re.search("Gloo|NCCL", str(error)):
            raise OtherProcessEnded(
                "another process ended before this one: start all processes again"
            ) from error
        raise


def in_all(action: Callable[[], Result]) -> Result:
    """Calls a function in every process and waits for all; an error in one is raised in all."""
    if jax.process_count() == 1:
        return action()
    try:
        result = action()
    except Exception as error:
        gather(str(error) or type(error).__name__)
        raise
    for message in filter(None, gather("")):
        raise OtherProcessError(message)
    return result


def in_first(action: Callable[[], Any]) -> None:
    """Calls a function only in process 0, while the others wait; see `in_all`."""
    in_all(action if jax.process_index() == 0 else lambda: None)


def gather(text: str) -> list[str]:
    """Returns the texts of all processes, each truncated to `_MOST_BYTES`."""
    if jax.process_count() == 1:
        return [text]
    sent = np.frombuffer(text.encode()[:_MOST_BYTES].ljust(_MOST_BYTES, b"\0"), np.uint8)
    with connected():
        rows = multihost_utils.process_allgather(sent)
    return [bytes(row).rstrip(b"\0").decode(errors="ignore") for row in rows]


def any_of(flag: bool) -> bool:
    """Returns whether a flag is set in any process."""
    if jax.process_count() == 1:
        return flag
    with connected():
        return bool(np.any(multihost_utils.process_allgather(np.asarray(flag))))


def check_same(values: dict[str, Any]) -> None:
    """Raises a ValueError that names the first value that is not equal in all processes."""
    # Digests of 8 characters, because texts that processes exchange are short.
    digests = {name: hashlib.sha256(str(x).encode()).hexdigest()[:8] for name, x in values.items()}
    first, *others = [json.loads(text) for text in gather(json.dumps(digests))]
    for index, other in enumerate(others, start=1):
        for name in [name for name in first if other.get(name) != first[name]][:1]:
            raise ValueError(
                f"{name} of process {index} is not that of process 0: start all processes with the "
                "same options and the same code"
            )


def check_devices() -> None:
    """Raises a ValueError if the processes have unequal numbers of devices."""
    counts = collections.Counter(device.process_index for device in jax.devices())
    if len(set(counts.values())) > 1:
        raise ValueError(
            f"the processes have {sorted(counts.values())} devices: give each the same number"
        )
