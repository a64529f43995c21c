"""What a program does before JAX starts: join other processes and set the number of CPU devices."""

import os

import jax


def join() -> None:
    """Makes this process one of several, before JAX creates its devices.

    JAX detects SLURM, Open MPI, Kubernetes and Cloud TPU. Elsewhere, all three environment
    variables that the error names must be set.

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

    A number that the user set with an XLA flag or a JAX variable stays. With GPUs or TPUs, the CPU
    devices are not used.

    Args:
      number: CPU devices; 0 means as many as `share` allows.
      shards: of the replay buffer.
      resume: replace a number that does not fit the number of processes, which may differ from
        that of the run's earlier sessions.
      evenly: for a new run, whose shards may change: see `share`.
    """
    _, processes = _index_and_count()
    if not number or (resume and shards % (number * processes)):
        number = share(shards, cores(), processes, None if resume else evenly)
    flags = os.environ.get("XLA_FLAGS", "")
    if "JAX_NUM_CPU_DEVICES" not in os.environ and "host_platform_device_count" not in flags:
        jax.config.update("jax_num_cpu_devices", number)


def share(
    shards: int, cores: int, processes: int = 1, evenly: tuple[int, ...] | None = None
) -> int:
    """Returns the largest number of CPU devices of a process, one per core, that divides the work.

    The devices of all processes together divide the shards or, where the shards may change (see
    `config.fit_devices`), the numbers of games and samples in `evenly`.

    >>> share(shards=16, cores=6), share(shards=16, cores=6, processes=8)
    (4, 2)
    >>> share(shards=8, cores=64, evenly=(1024, 512)), share(shards=8, cores=6, evenly=(30, 60))
    (64, 6)
    """

    def fits(devices: int) -> bool:
        divides = evenly is not None and not any(number % devices for number in evenly)
        return shards % devices == 0 or divides

    return max((n for n in range(1, cores + 1) if fits(n * processes)), default=1)


def cores() -> int:
    """Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
