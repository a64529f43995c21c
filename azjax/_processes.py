"""Several processes as one: they fail together, decide together, and one of them writes.

All processes of a run must call these functions alike. Where there is one process they do what
an ordinary call would.
"""

import collections
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils

Result = TypeVar("Result")

_ERROR_BYTES = 1024  # Of an error's message that other processes hear.


class OtherProcessError(Exception):
    """Another process failed; the message is its own."""


def in_all(action: Callable[[], Result]) -> Result:
    """Does something in every process; what fails in one fails in all.

    Each waits until all have finished.

    Raises:
      OtherProcessError: with the message of the process that failed, in those that did not.
    """
    if jax.process_count() == 1:
        return action()
    try:
        result = action()
    except Exception as error:
        _tell(str(error) or type(error).__name__)
        raise
    if said := _tell(""):
        raise OtherProcessError(said)
    return result


def in_first(action: Callable[[], Any]) -> None:
    """Does something in process 0 alone, while the others wait; see `in_all`."""
    in_all(action if jax.process_index() == 0 else lambda: None)


def _tell(error: str) -> str:
    """Tells all processes of an error here; returns the first that any of them told of."""
    said = error.encode()[:_ERROR_BYTES]
    message = np.frombuffer(said.ljust(_ERROR_BYTES, b"\0"), np.uint8)
    heard = multihost_utils.process_allgather(message)
    texts = (bytes(row).rstrip(b"\0").decode(errors="ignore") for row in heard)
    return next((text for text in texts if text), "")


def any_of(*flags: bool) -> tuple[bool, ...]:
    """Returns, the same in every process, whether any process raised each flag."""
    if jax.process_count() == 1:
        return flags
    raised = np.any(multihost_utils.process_allgather(np.asarray(flags)), axis=0)
    return tuple(bool(flag) for flag in raised)


def check_devices() -> None:
    """Refuses processes that have unequal numbers of devices.

    Raises:
      ValueError: naming the numbers.
    """
    found = collections.Counter(device.process_index for device in jax.devices())
    if len(set(found.values())) > 1:
        numbers = ", ".join(str(found[index]) for index in sorted(found))
        raise ValueError(
            f"the processes have {numbers} devices: give each the same number, which on CPUs "
            f"--cpu-devices {min(found.values())} does"
        )
