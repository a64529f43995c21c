"""The live table of a training on a terminal, by the screen of a terminal emulator."""

import io
from types import SimpleNamespace

from rich.console import Console

from azjax.callbacks import Printer
from azjax.cli.display import Display
from azjax.training.loop import Callback, Loop
from small import ERRORS, NO_PROOF, record
from terminal import Emulator


class FakeTerminal(io.StringIO):
    """A terminal for rich; `str` is its screen."""

    def __init__(self, columns=140):
        super().__init__()
        self.emulator = Emulator(columns, 40)
        self.console = Console(
            file=self, force_terminal=True, width=columns, height=40, color_system=None
        )

    def write(self, text):
        self.emulator.feed(text.replace("\n", "\r\n").encode())
        return len(text)

    def __str__(self):
        return str(self.emulator)


def show(records, width=140):
    """Returns the final screen of a terminal after displaying some records."""
    terminal = FakeTerminal(width)
    display = Display(terminal.console, 100, "perfect", rows=3)
    for shown in records:
        display(shown)
    display.close()
    assert not terminal.emulator.hides_cursor
    return str(terminal)


SCREEN = """\
                                                       blunders   losing wrong
iteration seconds games/s  loss value policy        KL     left    lines signs
        3     4.5   1,234 2.000 0.500  1.500     0.250    5,003 87 + 553    99
        4     6.0   1,234 2.000 0.500  1.500     0.250
        5     7.5   1,234 2.000 0.500  1.500     0.250    5,005 87 + 553    99
until perfect: 8 s elapsed, at most 142 s to iteration 100
iteration 5: 12.3% of moves worsen the outcome
latest reply_loss 0.621, elo 12.35 [-5, 30]
"""


def test_the_table_fits_and_custom_metrics_are_below_it():
    proofs = [{} if i % 2 else NO_PROOF for i in range(6)]
    records = [record(i, **({"blunders": 5000 + i} | proofs[i])) for i in range(1, 5)]
    losses = record(1).losses | {"reply_loss": 0.621}
    extra = {"elo": 12.3456, "elo_low": -5.0, "elo_high": 30.0}
    records.append(record(5, blunders=5005, losses=losses, extra=extra, errors=ERRORS))
    for width in (80, 100, 140):
        screen = show(records, width)
        assert sorted(screen.split()) == sorted(SCREEN.split())
        assert "5,005 87 + 553" in " ".join(screen.split())
    screen = show([record(i, **NO_PROOF) for i in range(1, 9)], width=80)
    assert "games/s" in screen and not any(word in screen for word in ("blunders", "None", "worse"))
    assert "iteration" not in show([])


def test_a_narrower_terminal_shows_one_table():
    for before_close in (False, True):
        terminal = FakeTerminal(columns=100)
        display = Display(terminal.console, 100, "perfect")
        for i in (1, 2, 3):
            display(record(i))
        terminal.emulator.resize(80, 40)
        terminal.console.width = 80
        terminal.write("\n" * 3)  # As many more rows as a terminal that wraps makes of the table.
        if not before_close:
            display(record(4))
        display.close()
        screen = str(terminal)
        assert [screen.count(text) for text in ("iteration seconds", "until perfect")] == [1, 1]
        assert screen.count("87 + 553") == (3 if before_close else 4)


def test_the_table_is_closed_before_callbacks_print_results():
    order = []

    class Table(list):
        __call__ = list.append

        def close(self):
            order.append(f"closed after {len(self)}")

    class Result(Callback):
        def on_end(self, loop):
            order.append("printed")

    def step(state):
        metrics = SimpleNamespace(games=1, losses=record(1).losses)
        return SimpleNamespace(iteration=state.iteration + 1), metrics

    callbacks = [Printer(lambda loop: Table()), Result()]
    Loop(None, SimpleNamespace(iteration=0), step, 3, 0.0, callbacks=callbacks).run()
    assert order == ["closed after 3", "printed"]
