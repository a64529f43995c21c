"""What happens before JAX starts: a process joins the others, and gets its CPU devices."""

import os
import re
from collections.abc import Mapping

import jax
from jax._src import distributed  # Nothing public tells the number of processes this early.

# Variables of the environment, and what they hold if they tell JAX a number of CPU devices.
_TELL = {"XLA_FLAGS": "xla_force_host_platform_device_count", "JAX_NUM_CPU_DEVICES": ""}
MOST_DEVICES = 256  # CPU devices of a process.
_FORMS = {
    "JAX_COORDINATOR_ADDRESS": (".+:[0-9]+", "HOST:PORT of process 0"),
    "JAX_NUM_PROCESSES": ("[1-9][0-9]*", "a whole number from 1 on"),
    "JAX_PROCESS_ID": ("[0-9]+", "a whole number from 0 on"),
}
VARIABLES = tuple(_FORMS)


def join(environment: Mapping[str, str] = os.environ) -> None:
    """Makes this process one of several, before JAX knows its devices.

    What JAX finds out by itself (from SLURM, Open MPI, Kubernetes or a Cloud TPU) need not
    be set; elsewhere all of `VARIABLES` must be.

    Raises:
      ValueError: naming the variable that is missing or wrong, or why the processes did not
        find each other.
    """
    jax.config.update("jax_enable_preemption_service", False)  # It would swallow SIGTERM.
    given = _read(environment)
    try:
        # Whoever leaves in good order leaves with all others; nobody waits for one that failed.
        jax.distributed.initialize(**given, shutdown_timeout_seconds=30)
    except ValueError as error:
        missing = [name for name in VARIABLES if name not in environment] or VARIABLES
        raise ValueError(
            f"--distributed needs {' and '.join(missing)}: outside SLURM, Open MPI, Kubernetes "
            "and Cloud TPU, set JAX_COORDINATOR_ADDRESS to HOST:PORT of process 0, "
            "JAX_NUM_PROCESSES to their number, and JAX_PROCESS_ID to 0, 1 and so on"
        ) from error
    except RuntimeError as error:
        reason = str(error).split("\n")[0]
        raise ValueError(
            f"the processes did not find each other ({reason}): start all of them, with the "
            "same JAX_COORDINATOR_ADDRESS, a free port of the host of process 0"
        ) from error


def _read(environment: Mapping[str, str]) -> dict:
    """Reads what the variables say; None for what they leave open."""
    for name, (form, wanted) in _FORMS.items():
        if name in environment and not re.fullmatch(form, environment[name]):
            raise ValueError(f"{name} is {environment[name]!r}: use {wanted}")
    address, *numbers = map(environment.get, VARIABLES)
    number, index = (None if text is None else int(text) for text in numbers)
    if number is not None and index is not None and index >= number:
        raise ValueError(
            f"JAX_PROCESS_ID is {index}, but JAX_NUM_PROCESSES is {number}: use 0 to {number - 1}"
        )
    return {"coordinator_address": address, "num_processes": number, "process_id": index}


def leave() -> None:
    """Leaves the other processes, if there are any, once they all have come this far."""
    jax.distributed.shutdown()


def spread(number: int, shards: int, resume: bool = False) -> int:
    """Sets how many CPU devices this process has, before JAX knows its devices.

    A number that the user gave JAX itself, by a flag or a variable, is left as it is. Where
    there are GPUs or TPUs the CPU devices stay unused.

    Args:
      number: of CPU devices; 0: as many as `share` allows.
      shards: of the replay buffer.
      resume: choose anew where the number does not fit the processes, of which there may have
        been more or fewer in the run's earlier sittings.

    Returns:
      The number.
    """
    processes = distributed.global_state.num_processes
    if not number or (resume and shards % (number * processes)):
        number = share(shards, cores(), processes)
    if told() is None:
        jax.config.update("jax_num_cpu_devices", number)
    return number


def told() -> str | None:
    """Returns the variable by which the user gave JAX a number of CPU devices, if one does."""
    set_here = ((name, part) for name, part in _TELL.items() if name in os.environ)
    return next((name for name, part in set_here if part in os.environ[name]), None)


def share(shards: int, cores: int, processes: int = 1) -> int:
    """Returns how many CPU devices a process has at most, one a core, to divide the shards.

    >>> share(shards=16, cores=6), share(shards=16, cores=6, processes=8)
    (4, 2)
    """
    fitting = [n for n in range(1, cores + 1) if shards % (n * processes) == 0]
    return max(fitting, default=1)


def cores() -> int:
    """Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def is_first() -> bool:
    """Whether this is process 0, the one that writes and prints."""
    return distributed.global_state.process_id == 0
