"""Steps before JAX starts: joining other processes and setting the number of CPU devices."""

import contextlib
import os

import jax

from azjax import _interrupts as interrupts
from azjax.cli.options import Options
from azjax.runs.config import count_devices


def start(options: Options, alone: bool, context: contextlib.ExitStack) -> None:
    """Joins the other processes and sets the number of CPU devices, before JAX starts.

    Args:
      options: from the command line.
      alone: whether the process runs only this program, so that JAX has not started yet.
      context: leaves the other processes when it is closed.
    """
    if options.distributed:
        context.callback(leave)
        join()
        if not is_first():
            interrupts.now.outcome = None
    if alone or options.distributed:
        config, evenly = options.config, None
        if "replay.shards" not in options.given:
            evenly = (config.selfplay.games, config.learner.batch_size)
        spread(options.plan.cpu_devices, config.replay.shards, options.resume, evenly)


def join() -> None:
    """Makes this process one of several, before JAX creates its devices.

    JAX detects SLURM, Open MPI, Kubernetes and Cloud TPU. Elsewhere, the environment variables
    JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID must be set.

    Raises:
      ValueError: if the processes cannot connect; names the variables to set.
    """
    jax.config.update("jax_enable_preemption_service", False)  # It would swallow SIGTERM.
    address = os.environ.get("JAX_COORDINATOR_ADDRESS")
    try:
        number, index = (
            int(os.environ[name]) if name in os.environ else None
            for name in ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID")
        )
        # A process that succeeds leaves together with the others, but waits 30 s at most for one
        # that failed.
        jax.distributed.initialize(address, number, index, shutdown_timeout_seconds=30)
    except (ValueError, IndexError, RuntimeError) as error:
        reason = str(error).split("\n")[0]
        raise ValueError(
            f"the processes cannot connect ({reason}): outside SLURM, Open MPI, Kubernetes and "
            "Cloud TPU, set JAX_COORDINATOR_ADDRESS to HOST:PORT of process 0, with a free port, "
            "JAX_NUM_PROCESSES to the number of processes, and JAX_PROCESS_ID to 0, 1 and so on"
        ) from error


def leave() -> None:
    """Waits for the other processes, if there are any, and disconnects from them."""
    jax.distributed.shutdown()


def is_first() -> bool:
    """Returns whether this is process 0, which writes and prints."""
    return _index_and_count()[0] == 0


def _index_and_count() -> tuple[int, int]:
    """Returns the index of this process and the number of processes, before JAX starts.

    `jax.process_index()` and `jax.process_count()` would start JAX, and then the number of CPU
    devices could not be set. With several processes, only a private module has the numbers.
    """
    if not jax.distributed.is_initialized():
        return 0, 1
    from jax._src.distributed import global_state

    return global_state.process_id, global_state.num_processes


def spread(
    number: int, shards: int, resume: bool = False, evenly: tuple[int, ...] | None = None
) -> None:
    """Sets the number of CPU devices of this process, before JAX creates its devices.

    A number that the user set with an XLA flag or a JAX variable is kept. With GPUs or TPUs, the
    CPU devices are not used.

    Args:
      number: CPU devices; 0 means as many as `count_devices` allows.
      shards: shards of the replay buffer.
      resume: replace a number that does not fit the number of processes, which may differ from
        that of the run's earlier sessions.
      evenly: numbers that the devices may divide instead of `shards`; given for a new run, whose
        number of shards may change. See `count_devices`.
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
