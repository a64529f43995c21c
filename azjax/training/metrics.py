"""Records of iterations on the host, as lines of text and in files."""

import contextlib
import dataclasses
import itertools
import json
import pathlib
import shutil
import sys
import time
from typing import Any, TextIO

import jax

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
    # Results for the network without search, see `verify.Verdict`; None if it was not verified.
    blunders: int | None = None
    losing_lines_first: int | None = None
    losing_lines_second: int | None = None
    value_sign_errors: int | None = None
    value_error: float | None = None
    # Results for the network without search in labelled positions (`proof.verify.Rates`): `error`,
    # the fraction of moves that worsen the outcome, `error/CLASS`, the same for a class, and
    # `sign_error`, the fraction of values with the wrong sign. Empty without this evaluation.
    errors: dict[str, float] = dataclasses.field(default_factory=dict)
    extra: dict[str, float] = dataclasses.field(default_factory=dict)  # That callbacks added.

    def add(self, **metrics: Any) -> "Record":
        """Returns a record with these metrics in `extra`, as Python numbers."""
        taken = {*self.as_dict(), *(field.name for field in dataclasses.fields(self))}
        for name in sorted(metrics.keys() & (taken - self.extra.keys())):
            raise ValueError(f"the record has a metric {name} already: add yours by another name")
        extra = {name: _number(name, value) for name, value in metrics.items()}
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
            if value is None or abs(value) < _LARGEST:
                continue
            advice = (
                "leave this metric out of iterations in which it has no finite value"
                if name in self.extra
                else "start a new run with a lower learner.learning_rate, or with "
                "learner.clip_norm 1"
            )
            raise FloatingPointError(
                f"{name} became {value} in iteration {self.iteration}, so training stopped without "
                f"saving that iteration: {advice}"
            )


def _number(name: str, value: Any) -> float:
    kind = type(value).__name__
    with contextlib.suppress(AttributeError, NotImplementedError, TypeError, ValueError):
        value = value.item()
    if not isinstance(value, int | float):
        raise ValueError(
            f"the metric {name} is of type {kind}: add one number, from Python, NumPy or JAX"
        )
    return +value  # Truth values become 0 or 1.


def rank(record: Record, always_examined: bool = True) -> float:
    """Scores a checkpoint: fewest blunders, if every iteration is verified, then lowest loss."""
    loss = record.losses["loss"]
    if record.blunders is None or not always_examined:
        return -loss
    return -record.blunders - loss / 1e3


def make_record(iteration: int, measured: Any, before: float, started: float) -> Record:
    """Waits for the `Metrics` of an iteration that began at `before`, of a run, at `started`."""
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
    lines = path.read_text(errors="replace").split("\n") if path.exists() else [""]
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            record = json.loads(line)
            follows = record["iteration"] > (records[-1]["iteration"] if records else 0)
            if not (follows and abs(record["seconds"]) < _LARGEST):
                raise ValueError
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            if number == len(lines):  # Empty after the last newline, or cut off by a crash.
                break
            raise ValueError(
                f"{path}, line {number}, is not a record of a later iteration: restore the file, "
                "or delete the line"
            ) from error
        records.append(record)
    return records


def last_seconds(records: list[dict], iteration: int) -> float:
    """Returns the most seconds recorded until an iteration, at least 0."""
    return max([0.0, *(r["seconds"] for r in records if r["iteration"] <= iteration)])


class Lines:
    """Prints records as lines of text; in a terminal, as columns that fit, under a heading."""

    def __init__(self):
        """Starts without columns; each record may add some, or make some wider."""
        self._widths: dict[str, int] = {}
        self._heading, self._below = "", 0

    def print(self, record: Record) -> None:
        """Prints a record, and first the heading if it changed or is out of sight."""
        shown, widths = _cells(record), self._widths
        if not sys.stdout.isatty():
            print("  ".join(f"{name} {text}" for name, text in shown.items()), flush=True)
            return
        for name, text in shown.items():
            widths[name] = max(widths.get(name, len(name)), len(text))
        order = sorted(widths, key=_details(record).__contains__)  # They come last.
        ends = itertools.accumulate(widths[name] + 2 for name in order)
        size = shutil.get_terminal_size()
        fitting = [name for name, end in zip(order, ends, strict=True) if end - 2 <= size.columns]
        heading = "  ".join(name.rjust(widths[name]) for name in fitting)
        self._below += 1
        if heading != self._heading or self._below >= size.lines - 2:
            self._heading, self._below = heading, 0
            print(heading)
        print("  ".join(shown.get(name, "").rjust(widths[name]) for name in fitting), flush=True)


def _cells(record: Record) -> dict[str, str]:
    """Returns what a line shows of a record, by name, the most important first."""
    shown = {
        "iteration": f"{record.iteration:4d}",
        "seconds": f"{record.seconds:6.1f}",
        "loss": f"{record.losses['loss']:.3f}",
    }
    if record.blunders is not None:
        first, second = record.losing_lines_first, record.losing_lines_second
        shown["blunders"] = f"{record.blunders:4d}"
        shown["losing lines"] = f"{first:3d} 1st + {second:3d} 2nd"
    if "error" in record.errors:
        shown["labelled errors"] = f"{record.errors['error']:.1%}"
    return shown | _extra_cells(record) | _details(record)


def _details(record: Record) -> dict[str, str]:
    """Returns the cells that a narrow terminal leaves out first; `l2` only if it is a penalty."""
    left_out = {"loss", "grad_norm"} if record.losses.get("l2") else {"loss", "grad_norm", "l2"}
    losses = {name: f"{x:.3f}" for name, x in record.losses.items() if name not in left_out}
    return {"games/s": f"{record.games_per_second:5.0f}"} | losses


def _extra_cells(record: Record) -> dict[str, str]:
    """Returns the metrics of callbacks by name; shows `NAME_low` and `NAME_high` as an interval."""
    extra = record.extra
    cells = {name: f"{value:.4g}" for name, value in extra.items()}
    for name in extra:
        low, high = cells.get(f"{name}_low"), cells.get(f"{name}_high")
        if low is not None and high is not None:
            cells[name] += f" [{low}, {high}]"
            del cells[f"{name}_low"], cells[f"{name}_high"]
    return cells
