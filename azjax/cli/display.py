"""A live table of the iterations of a training, on a terminal."""

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from azjax.training.metrics import WORDS, Record, extra_cells, terms


class Display:
    """A live table of the last iterations; below it, the newest values of custom metrics."""

    def __init__(self, console: Console, max_iterations: int, target: str, rows: int = 8):
        """Opens a display of the last `rows` iterations and the remaining time."""
        self._rows, self._console = rows, console
        self._records: list[Record] = []
        self._max_iterations, self._target = max_iterations, target
        self._live, self._widest = Live(console=console, auto_refresh=False), 0

    def __call__(self, record: Record) -> None:
        """Shows one more record."""
        self._records.append(record)
        self._draw()

    def _draw(self) -> None:
        if self._console.width < self._widest:
            # The terminal has wrapped or cut the rows, so rich would move up by a wrong number.
            self._live.stop()
            self._console.clear()
            self._live = Live(console=self._console, auto_refresh=False)
        content = self._render()
        self._widest = self._console.measure(content).maximum
        self._live.start()
        self._live.update(content, refresh=True)

    def close(self) -> None:
        """Leaves the last state of the table on the screen."""
        if self._records:
            self._draw()  # In the size that the terminal has now.
        self._live.stop()

    def _render(self) -> Group:
        # The columns of the verification stay, even if no displayed iteration has them.
        titles = dict.fromkeys(title for record in self._records for title in _cells(record))
        rows = [_cells(record) for record in self._records[-self._rows :]]
        table = Table(box=None, padding=(0, 1, 0, 0))
        for title in titles:
            widest = max(
                len(text) for text in [*title.split(), *(row.get(title, "") for row in rows)]
            )
            table.add_column(title, justify="right", min_width=widest)
        for row in rows:
            table.add_row(*(row.get(title, "") for title in titles))
        return Group(table, Text("\n".join(self._footer()), style="dim"))

    def _footer(self) -> list[str]:
        first, last = self._records[0], self._records[-1]
        done = max(last.iteration - first.iteration, 1)
        left = (last.seconds - first.seconds) / done * (self._max_iterations - last.iteration)
        lines = [
            f"until {self._target}: {last.seconds:.0f} s elapsed, at most {left:.0f} s to "
            f"iteration {self._max_iterations}"
        ]
        if evaluated := [record for record in self._records if "error" in record.errors]:
            error, iteration = evaluated[-1].errors["error"], evaluated[-1].iteration
            lines.append(f"iteration {iteration}: {error:.1%} of moves worsen the outcome")
        words, custom = {*WORDS.values()}, {}
        for record in self._records:
            losses = {n: f"{value:.3f}" for n, value in terms(record).items() if n not in words}
            custom |= losses | extra_cells(record)
        if custom:
            lines.append("latest " + ", ".join(f"{name} {cell}" for name, cell in custom.items()))
        return lines


def _cells(record: Record) -> dict[str, str]:
    """Returns the cells of a row, by the titles of their columns."""
    losses = terms(record)
    cells = {
        "iteration": f"{record.iteration}",
        "seconds": f"{record.seconds:.1f}",
        "games/s": f"{record.games_per_second:,.0f}",
        "loss": f"{record.losses['loss']:.3f}",
        **{word: f"{losses[word]:.3f}" for word in WORDS.values() if word in losses},
    }
    if record.blunders is not None:  # The iteration was verified.
        cells |= {
            "blunders left": f"{record.blunders:,}",
            "losing lines": f"{record.losing_lines_first} + {record.losing_lines_second}",
            "wrong signs": f"{record.value_sign_errors:,}",
        }
    return cells
