"""What happens before JAX starts: a process joins the others, and gets its CPU devices."""

import os

import jax
from jax._src import distributed  # Nothing public tells the number of processes this early.

from azjax.runs.config import count_devices


def join() -> None:
    """Makes this process one of several, before JAX knows its devices.

    What JAX finds out by itself (from SLURM, Open MPI, Kubernetes or a Cloud TPU) need not
    be set in the environment; elsewhere all three variables must be.

    Raises:
      ValueError: saying what to set, if the processes did not find each other.
    """
    jax.config.update("jax_enable_preemption_service", False)  # It would swallow SIGTERM.
    address = os.environ.get("JAX_COORDINATOR_ADDRESS")
    try:
        number, index = (
            int(os.environ[name]) if name in os.environ else None
            for name in ("JAX_NUM_PROCESSES", "JAX_PROCESS_ID")
        )
        # Whoever leaves in good order leaves with all others; nobody waits for one that failed.
        jax.distributed.initialize(address, number, index, shutdown_timeout_seconds=30)
    except (ValueError, IndexError, RuntimeError) as error:
        reason = str(error).split("\n")[0]
        raise ValueError(
            f"the processes did not find each other ({reason}): outside SLURM, Open MPI, "
            "Kubernetes and Cloud TPU, set JAX_COORDINATOR_ADDRESS to HOST:PORT of process 0, "
            "with a free port, JAX_NUM_PROCESSES to their number, and JAX_PROCESS_ID to 0, 1 and "
            "so on"
        ) from error


def leave() -> None:
    """Leaves the other processes, if there are any, once they all have come this far."""
    jax.distributed.shutdown()


def spread(
    number: int, shards: int, resume: bool = False, evenly: tuple[int, ...] | None = None
) -> None:
    """Sets how many CPU devices this process has, before JAX knows its devices.

    A number that the user gave JAX itself, by a flag or a variable, is left as it is. Where
    there are GPUs or TPUs the CPU devices stay unused.

    Args:
      number: of CPU devices; 0: as many as `count_devices` allows.
      shards: of the replay buffer.
      resume: choose anew where the number does not fit the processes, of which there may have
        been more or fewer in the run's earlier sittings.
      evenly: of a run whose shards may still change, see `count_devices`.
    """
    processes = distributed.global_state.num_processes
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


def is_first() -> bool:
    """Whether this is process 0, the one that writes and prints."""
    return distributed.global_state.process_id == 0
