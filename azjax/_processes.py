"""Coordination of several processes: they fail and stop together.

All processes of a run must call these functions in the same order.
"""

import collections
import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils

Result = TypeVar("Result")

_MOST_BYTES = 1024  # Maximum length of a text that processes exchange.


class OtherProcessError(Exception):
    """Raised when another process failed; has the message of that process."""


class OtherProcessEnded(BaseException):
    """Raised when another process ended before this one.

    It does not derive from Exception: a handler must not take it for damage of a file, for example.
    """

    def __init__(self):  # noqa: D107
        others = {*range(jax.process_count())} - {jax.process_index()}
        who = f"process {others.pop()}" if len(others) == 1 else "another process"
        super().__init__(f"{who} ended before the others: start all processes again")


@contextlib.contextmanager
def connected() -> Iterator[None]:
    """Raises OtherProcessEnded if the communication of the `with` block fails."""
    try:
        yield
    except Exception as error:
        if jax.process_count() > 1 and re.search("Gloo|NCCL", str(error)):
            raise OtherProcessEnded from error
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
        numbers = ", ".join(str(counts[index]) for index in sorted(counts))
        raise ValueError(
            f"the processes have {numbers} devices: give each the same number (on CPUs: "
            f"`cpu_devices={min(counts.values())}`)"
        )
