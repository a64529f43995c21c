"""Records of iterations on the host, and their files."""

import dataclasses
import json
import pathlib
import time
from typing import Any, TextIO

import jax
import numpy as np

from azjax._files import write_text

_LARGEST = 1e300  # Metrics are smaller; NaN and infinities are refused.


@dataclasses.dataclass(frozen=True)
class Record:
    """The metrics of one iteration as Python numbers."""

    iteration: int  # Counted from 1.
    seconds: float  # Training time, including earlier sessions of a resumed run.
    games: int  # Finished in this iteration.
    games_per_second: float  # Over this iteration.
    # By name, see `learner.alphazero_loss`; `loss` is the minimized total, and `grad_norm` the norm
    # of its gradient before clipping.
    losses: dict[str, float]
    # That callbacks added, such as `blunders` (`proof.Verdict`) and `error` (`labelled.Rates`).
    extra: dict[str, float] = dataclasses.field(default_factory=dict)

    def add(self, **metrics: Any) -> "Record":
        """Returns a record with these metrics in `extra`, as Python numbers."""
        taken = {*self.as_dict(), *(field.name for field in dataclasses.fields(self))}
        for name in sorted(metrics.keys() & (taken - self.extra.keys())):
            raise ValueError(f"the record has a metric {name} already: add yours by another name")
        extra = {name: np.asarray(value).tolist() for name, value in metrics.items()}
        for name, value in extra.items():
            if not isinstance(value, int | float):
                kind = type(metrics[name]).__name__
                raise ValueError(f"the metric {name} is of type {kind}: add one number")
            extra[name] = +value  # Truth values become 0 or 1.
        return dataclasses.replace(self, extra=self.extra | extra)

    def as_dict(self) -> dict[str, Any]:
        """Returns all metrics by name, in one flat dictionary."""
        flat = {}
        for name, value in dataclasses.asdict(self).items():
            flat |= value if isinstance(value, dict) else {name: value}
        return flat

    def check_finite(self) -> None:
        """Raises a FloatingPointError that names the first NaN or infinite metric, if any."""
        for name, value in self.as_dict().items():
            if not abs(value) < _LARGEST:
                raise FloatingPointError(
                    f"{name} became {value} in iteration {self.iteration}, so training stopped "
                    "without saving that iteration: start a new run with a lower "
                    "learner.learning_rate, or with learner.clip_norm 1"
                )


def make_record(iteration: int, measured: Any, before: float, started: float) -> Record:
    """Waits for the `Metrics` of an iteration; it began at `before`, and the run at `started`."""
    measured = jax.device_get(measured)
    now, losses = time.monotonic(), measured.losses
    # Compiled programs return the losses in alphabetical order.
    first = ["loss", "value_loss", "policy_loss", "policy_kl", "l2", "grad_norm"]
    names = [*(n for n in first if n in losses), *sorted(losses.keys() - set(first))]
    return Record(
        iteration=iteration,
        seconds=now - started,
        games=int(measured.games),
        games_per_second=float(measured.games) / max(now - before, 1e-9),  # A coarse clock.
        losses={name: float(losses[name]) for name in names},
    )


def open_records(path: pathlib.Path, after: int) -> TextIO:
    """Opens a file of records to append to; drops those of iterations beyond `after`."""
    kept = [record for record in read_records(path) if record["iteration"] <= after]
    write_text(path, "".join(json.dumps(record) + "\n" for record in kept))
    return path.open("a")


def read_records(path: pathlib.Path) -> list[dict]:
    """Reads the records in a file, except for an incomplete last line."""
    lines = path.read_text(errors="replace").split("\n")[:-1] if path.exists() else []
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            records.append(json.loads(line))
        except ValueError as error:
            raise ValueError(
                f"{path}, line {number}, is damaged: restore the file, or delete the line"
            ) from error
    return records
