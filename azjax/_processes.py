"""Several processes as one: they fail together and decide together.

All processes of a run must call these functions alike. In a single process they do what an
ordinary call does.
"""

import collections
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils

Result = TypeVar("Result")

_MOST_BYTES = 1024  # Of a text that processes send to each other.


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
    return next((text for text in gather(error) if text), "")


def gather(text: str) -> list[str]:
    """Returns the text of every process, the same in all; each is cut to `_MOST_BYTES`."""
    if jax.process_count() == 1:
        return [text]
    sent = np.frombuffer(text.encode()[:_MOST_BYTES].ljust(_MOST_BYTES, b"\0"), np.uint8)
    rows = multihost_utils.process_allgather(sent)
    return [bytes(row).rstrip(b"\0").decode(errors="ignore") for row in rows]


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
            f"the processes have {numbers} devices: give each the same number, on CPUs with "
            f"`cpu_devices={min(found.values())}`"
        )
