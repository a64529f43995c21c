"""Steps before JAX starts: joining other processes and setting the number of CPU devices."""

import contextlib
import os
import socket
import sys
import threading
import traceback
from collections.abc import Callable

import jax

from azjax import _processes as processes
from azjax._commands import write_note
from azjax.runs.config import count_devices

_HEARTBEAT = 30  # Seconds after which JAX considers a silent process dead.
_WAITS = 10  # Seconds without the other processes until a note is printed.
_LEAVES = 30  # Seconds that a process that succeeds waits for the others to end as well.
_FAILS = 5  # The same for a process that failed: the others may wait for it.
_VARIABLES = (
    "outside SLURM, Open MPI, Kubernetes and Cloud TPU, set JAX_COORDINATOR_ADDRESS to HOST:PORT "
    "of process 0, with a free port, JAX_NUM_PROCESSES to the number of processes, and "
    "JAX_PROCESS_ID to 0, 1 and so on"
)


def join() -> None:
    """Makes this process one of several, before JAX creates its devices; see `_VARIABLES`."""
    jax.config.update("jax_enable_preemption_service", False)  # It would swallow SIGTERM.
    address = os.environ.get("JAX_COORDINATOR_ADDRESS")
    waiting = threading.Timer(_WAITS, write_note, ["waiting for the other processes to start"])
    try:
        number, index = (
            int(os.environ[name]) if name in os.environ else None
            for name in ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID")
        )
        if address is not None and index == 0:
            _check_port(address)
        waiting.daemon = True
        waiting.start()  # JAX waits for minutes.
        # `leave` waits less than the timeout, after which JAX would abort the process.
        jax.distributed.initialize(
            address,
            number,
            index,
            heartbeat_timeout_seconds=_HEARTBEAT,
            shutdown_timeout_seconds=2 * _LEAVES,
        )
    except (ValueError, IndexError, RuntimeError) as error:
        reason = str(error).split("\n")[0]
        raise ValueError(f"the processes cannot connect ({reason}): {_VARIABLES}") from error
    finally:
        waiting.cancel()


def _check_port(address: str) -> None:
    """Raises a ValueError if the port is taken; JAX's service would end with a C++ error."""
    port, dual = address.rpartition(":")[2], socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual else socket.AF_INET
    try:
        socket.create_server(("", int(port)), family=family, dualstack_ipv6=dual).close()
    except OSError as error:
        raise ValueError(f"port {port} cannot be used: {error.strerror}") from error


def run(program: Callable[[], int]) -> int:
    """Runs a program and returns its exit status; leaves the other processes, if there are any."""
    try:
        status = program()
        failed = status == 2
    except processes.OtherProcessEnded as error:
        write_note(f"error: {error}")
        os._exit(2)  # JAX would wait for the other process.
    except (Exception, SystemExit) as error:
        if not jax.distributed.is_initialized():
            raise
        if isinstance(error, Exception):
            traceback.print_exc()
        status, failed = 1, True
    leave(status, _FAILS if failed else _LEAVES)
    return status


def leave(status: int = 0, patience: float = _LEAVES) -> None:
    """Waits for the other processes, if any, and disconnects; ends this one after `patience` s."""
    if not jax.distributed.is_initialized():
        return

    def shut_down():
        with contextlib.suppress(RuntimeError):  # Another process has failed as well.
            jax.distributed.shutdown()

    thread = threading.Thread(target=shut_down, daemon=True)
    thread.start()
    thread.join(patience)
    if thread.is_alive():
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(status)


def is_first() -> bool:
    """Returns whether this is process 0, which writes and prints."""
    return _index_and_count()[0] == 0


def _index_and_count() -> tuple[int, int]:
    """Returns the index of this process and their number; JAX's public functions would start it."""
    if not jax.distributed.is_initialized():
        return 0, 1
    from jax._src.distributed import global_state

    return global_state.process_id, global_state.num_processes


def spread(
    number: int, shards: int, resume: bool = False, evenly: tuple[int, ...] | None = None
) -> None:
    """Sets the number of CPU devices of this process, unless a flag or variable of JAX sets it.

    Args:
      number: CPU devices; 0 means as many as `count_devices` allows.
      shards: shards of the replay buffer.
      resume: replace a number that does not fit the number of processes, which may have changed.
      evenly: numbers that the devices of a new run may divide instead; see `count_devices`.
    """
    _, processes = _index_and_count()
    if not number or (resume and shards % (number * processes)):
        number = count_devices(shards, cores(), processes, None if resume else evenly)
    flags = os.environ.get("XLA_FLAGS", "")
    if "JAX_NUM_CPU_DEVICES" not in os.environ and "host_platform_device_count" not in flags:
        jax.config.update("jax_num_cpu_devices", number)


def cores() -> int:
    """Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
