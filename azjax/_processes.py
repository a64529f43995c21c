"""Coordination of several processes: they fail and stop together.

All processes of a run must call these functions in the same order.
"""

import collections
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils

Result = TypeVar("Result")

_MOST_BYTES = 1024  # Maximum length of a text that processes exchange.


class OtherProcessError(Exception):
    """Raised when another process failed; has the message of that process."""


def in_all(action: Callable[[], Result]) -> Result:
    """Calls a function in every process and waits for all; an error in one is raised in all.

    Raises:
      OtherProcessError: if another process failed; has the message of that process.
    """
    if jax.process_count() == 1:
        return action()
    try:
        result = action()
    except Exception as error:
        _share(str(error) or type(error).__name__)
        raise
    if message := _share(""):
        raise OtherProcessError(message)
    return result


def in_first(action: Callable[[], Any]) -> None:
    """Calls a function only in process 0, while the others wait; see `in_all`."""
    in_all(action if jax.process_index() == 0 else lambda: None)


def _share(error: str) -> str:
    """Sends an error message to all processes, and returns the first message that is not empty."""
    return next((text for text in gather(error) if text), "")


def gather(text: str) -> list[str]:
    """Returns the texts of all processes, each truncated to `_MOST_BYTES`."""
    if jax.process_count() == 1:
        return [text]
    sent = np.frombuffer(text.encode()[:_MOST_BYTES].ljust(_MOST_BYTES, b"\0"), np.uint8)
    rows = multihost_utils.process_allgather(sent)
    return [bytes(row).rstrip(b"\0").decode(errors="ignore") for row in rows]


def any_of(*flags: bool) -> tuple[bool, ...]:
    """Returns, for each flag, whether it is set in any process."""
    if jax.process_count() == 1:
        return flags
    raised = np.any(multihost_utils.process_allgather(np.asarray(flags)), axis=0)
    return tuple(bool(flag) for flag in raised)


def check_devices() -> None:
    """Raises a ValueError if the processes have unequal numbers of devices."""
    counts = collections.Counter(device.process_index for device in jax.devices())
    if len(set(counts.values())) > 1:
        numbers = ", ".join(str(counts[index]) for index in sorted(counts))
        raise ValueError(
            f"the processes have {numbers} devices: give each the same number (on CPUs: "
            f"`cpu_devices={min(counts.values())}`)"
        )
