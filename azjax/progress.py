"""What training prints: a line for each iteration."""

import itertools
import shutil
import sys
from typing import Any

from azjax.training.metrics import Record

# The metrics of verifications begin with these; they have their own cells, or none.
_VERIFIED = (
    *("blunders", "losing_lines_", "value_sign_errors", "value_error", "error", "sign_error"),
    *("large_blunders", "largest_loss", "mean_loss"),
)


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
    extra: dict[str, Any] = record.extra
    shown = {
        "iteration": f"{record.iteration:4d}",
        "seconds": f"{record.seconds:6.1f}",
        "loss": f"{record.losses['loss']:.3f}",
    }
    if "blunders" in extra:
        shown["blunders"] = f"{extra['blunders']:4d}"
    if "largest_loss" in extra:
        shown["largest loss"] = f"{extra['largest_loss']:.4f}"
    if "losing_lines_first" in extra:
        first, second = extra["losing_lines_first"], extra["losing_lines_second"]
        shown["losing lines"] = f"{first:3d} 1st + {second:3d} 2nd"
    if "error" in extra:
        shown["labelled errors"] = f"{extra['error']:.1%}"
    others = {name: f"{x:.4g}" for name, x in extra.items() if not name.startswith(_VERIFIED)}
    return shown | others | _details(record)


def _details(record: Record) -> dict[str, str]:
    """Returns the cells that a narrow terminal leaves out first; `l2` only if it is a penalty."""
    left_out = {"loss", "grad_norm"} if record.losses.get("l2") else {"loss", "grad_norm", "l2"}
    losses = {name: f"{x:.3f}" for name, x in record.losses.items() if name not in left_out}
    return {"games/s": f"{record.games_per_second:5.0f}"} | losses
