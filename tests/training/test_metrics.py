"""Records on the host, the JSON lines file, and the display on a terminal."""

import dataclasses
import functools
import io
import json
import math
import re
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.panel import Panel

from azjax.callbacks import Sink
from azjax.training import metrics
from azjax.training.loop import Callback, Loop
from azjax.training.metrics import Display, JsonLines, Plain, Record
from refusals import assert_refused
from terminal import Emulator

LOSSES = {
    "loss": 2.0,
    "value_loss": 0.5,
    "policy_loss": 1.5,
    "policy_kl": 0.25,
    "l2": 0.0,
    "grad_norm": 1.0,
}


def record(iteration, **changes):
    plain = Record(
        iteration=iteration,
        seconds=1.5 * iteration,
        games=100,
        games_per_second=1234.5,
        losses=LOSSES,
        blunders=4321,
        losing_lines_first=87,
        losing_lines_second=553,
        value_sign_errors=99,
        value_error=0.5,
    )
    return dataclasses.replace(plain, **changes)


NO_PROOF = dict.fromkeys(
    ["blunders", "losing_lines_first", "losing_lines_second", "value_sign_errors", "value_error"]
)


ERRORS = {"error": 0.1234, "error/few": 0.2, "sign_error": 0.3}


def write(path, iterations, after=0):
    sink = JsonLines(path, after)
    for iteration in iterations:
        sink(record(iteration))
    sink.close()


def iterations(path):
    return [json.loads(line)["iteration"] for line in path.read_text().splitlines()]


def test_names_the_metric_that_is_not_finite():
    cases = []
    for name in ("loss", "grad_norm", "value_error"):
        for bad in (math.nan, math.inf, -math.inf):
            changes = {"losses": LOSSES | {name: bad}} if name in LOSSES else {name: bad}
            call = record(1, **changes).check_finite
            cases.append((call, f"{name} became {bad} in iteration 1, "))
    assert_refused(*cases, error=FloatingPointError)


def test_shows_what_callbacks_added():
    """The ends of an interval follow its estimate, on a line and in the table."""
    made = record(1, extra={"elo": 12.3456, "elo_low": -5.0, "elo_high": 30.0, "patience": 2.0})
    assert metrics.format_line(made).endswith("  elo 12.35 [-5, 30]  patience 2")
    assert metrics._cells(made)["elo"] == "12.35 [-5, 30]"


def test_accepts_finite_numbers():
    record(1).check_finite()
    record(1, **NO_PROOF).check_finite()


def test_writes_each_record_immediately(tmp_path):
    path = tmp_path / "metrics.jsonl"
    sink = JsonLines(path)
    for iteration in (1, 2):
        sink(record(iteration))
        lines = path.read_text().splitlines()
        assert json.loads(lines[-1]) == record(iteration).as_dict()
        assert len(lines) == iteration
    sink.close()


def test_drops_records_after_the_checkpoint(tmp_path):
    path = tmp_path / "metrics.jsonl"
    for after, expected in [(0, [9]), (2, [1, 2, 9]), (3, [1, 2, 3, 9]), (7, [1, 2, 3, 9])]:
        write(path, [1, 2, 3])
        first = path.read_text().splitlines()[0]
        write(path, [9], after)
        assert iterations(path) == expected
        assert after == 0 or path.read_text().splitlines()[0] == first
        assert [file.name for file in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_ignores_an_incomplete_last_line(tmp_path):
    path = tmp_path / "metrics.jsonl"
    for rest in ('{"iteration": 3, "seco', "{", "\x00\x00\x00", '"text"', "[3]"):
        write(path, [1, 2])
        with path.open("a") as file:
            file.write(rest)
        assert [r["iteration"] for r in metrics.read_records(path)] == [1, 2]
        write(path, [3], after=2)
        assert iterations(path) == [1, 2, 3]


def test_keeps_a_complete_last_line_without_newline(tmp_path):
    path = tmp_path / "metrics.jsonl"
    write(path, [1, 2])
    path.write_text(path.read_text().rstrip())
    assert [r["iteration"] for r in metrics.read_records(path)] == [1, 2]


def test_rejects_a_line_that_is_not_a_record(tmp_path):
    path, long = tmp_path / "metrics.jsonl", "1" + "0" * 400
    write(path, [1, 2, 9])
    lines = path.read_text().splitlines(keepends=True)
    for line in [
        *["", "{", "[3]", "\x00", "[" * 10_000, '{"iteration": "3", "seconds": 1}'],
        *['{"iteration": 3}', '{"iteration": true, "seconds": 1}'],
        *['{"iteration": 3, "seconds": null}', '{"iteration": 3, "seconds": "1"}'],
        *['{"iteration": 3, "seconds": 1, "loss": "low"}'],
        *['{"iteration": 3, "seconds": 1, "loss": NaN}'],
        f'{{"iteration": 3, "seconds": 1, "loss": {long}}}',
    ]:
        path.write_text("".join([*lines[:2], line + "\n", *lines[2:]]))
        before, expected = path.read_bytes(), "line 3, is not a record of an iteration: restore"
        assert_refused((functools.partial(JsonLines, path, after=2), expected))
        assert path.read_bytes() == before


def test_rejects_a_line_of_an_earlier_iteration(tmp_path):
    path = tmp_path / "metrics.jsonl"
    for iteration in (-1, 0, 1, 2):
        write(path, [1, 2])
        with path.open("a") as file:
            file.write(json.dumps({"iteration": iteration, "seconds": 1.0}) + "\n")
        read = functools.partial(metrics.read_records, path)
        assert_refused((read, "line 3, is not after iteration 2: restore the file"))
        path.unlink()


def test_returns_the_seconds_of_an_earlier_session(tmp_path):
    path = tmp_path / "metrics.jsonl"
    assert metrics.read_records(path) == []
    write(path, [1, 2])
    records = metrics.read_records(path)
    assert metrics.last_seconds(records, 1) == 1.5
    assert metrics.last_seconds(records, 7) == 3.0  # The record of 7 is lost, but not the time.
    assert metrics.last_seconds(records, 0) == 0.0
    assert metrics.last_seconds([{"iteration": 1, "seconds": -5.0}], 1) == 0.0


def test_one_plain_line_per_record():
    stream = io.StringIO()
    sink = Plain(stream)
    sink(record(7))
    sink(record(8, **NO_PROOF))
    sink.close()
    first, second = stream.getvalue().splitlines()
    expected = ["iteration    7", "10.5 s", "loss 2.000", "value 0.500", "policy 1.500", "KL 0.250"]
    for text in [*expected, "blunders 4321", "losing lines  87 1st + 553 2nd"]:
        assert text in first
    assert "iteration    8" in second and "blunders" not in second
    assert "error" not in first + second


def test_an_evaluated_iteration_prints_its_error():
    stream = io.StringIO()
    Plain(stream)(record(7, errors=ERRORS, **NO_PROOF))
    assert stream.getvalue().endswith("  errors on 12.3% of labelled positions\n")


def test_errors_are_written_to_the_file(tmp_path):
    sink = JsonLines(tmp_path / "metrics.jsonl")
    sink(record(1, errors=ERRORS))
    sink(record(2))
    sink.close()
    first, second = metrics.read_records(tmp_path / "metrics.jsonl")
    assert first.items() >= ERRORS.items() and not second.keys() & ERRORS.keys()
    with pytest.raises(FloatingPointError, match="^error/few became nan"):
        record(1, errors=ERRORS | {"error/few": math.nan}).check_finite()


class FakeTerminal(io.StringIO):
    """A terminal for rich; `str` is its screen."""

    def __init__(self, columns=140, rows=40):
        super().__init__()
        self.emulator = Emulator(columns, rows)
        self.console = self.open_console(columns)

    def open_console(self, columns):
        return Console(file=self, force_terminal=True, width=columns, height=40, color_system=None)

    def write(self, text):
        self.emulator.feed(text.replace("\n", "\r\n").encode())
        return len(text)

    def resize(self, columns):
        self.emulator.resize(columns, 40)
        self.console.width = columns

    def __str__(self):
        return str(self.emulator)


def show(records, max_iterations=100, width=140):
    """Returns the final screen of a terminal after displaying some records."""
    terminal = FakeTerminal(width)
    display = Display(terminal.console, max_iterations, "perfect", rows=3)
    for shown in records:
        display(shown)
    display.close()
    assert not terminal.emulator.hides_cursor
    return str(terminal)


def test_the_display_shows_the_last_records():
    screen = show([record(i, blunders=5000 + i) for i in range(1, 6)])
    for text in ("5,003", "5,004", "5,005", "87 + 553", "99"):
        assert screen.count(text) == (3 if "5,00" not in text else 1)
    assert "5,002" not in screen
    assert "until perfect: 8 s elapsed, at most 142 s to iteration 100" in screen


def test_words_are_not_split_on_80_columns():
    screen = show([record(1000, seconds=12345.6, blunders=4321)], width=80)
    words = ["iteration", "seconds", "games/s", "policy", "blunders", "losing", "lines", "wrong"]
    for word in [*words, "signs", "1000", "12345.6", "4,321", "87 + 553"]:
        assert word in screen


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_terms_and_metrics_that_do_not_fit_are_below_the_table(width):
    """They would have narrow columns, such as `entro…`, and break `87 + 553`."""
    losses = record(1).losses | {"reply_loss": 0.621, "entropy_bonus": 0.254, "l2": 0.126}
    extra = {"elo_uct": 20.0, "elo_uct_low": 10.0, "elo_uct_high": 30.0}
    screen = show([record(i, losses=losses, extra=extra) for i in (1, 2)], width=width)
    assert "…" not in screen and screen.count("87 + 553") == (1 if width == 60 else 2)
    for text in ("reply_loss", "entropy_bonus", "elo_uct", "l2"):
        assert screen.count(text) == 1
    for text in ("0.621", "0.254", "0.126", "20 [10, 30]"):
        assert screen.count(text) in (1, 2)  # Below the table, or in both rows.
    assert ("latest" in screen) == (width < 120)


def test_the_display_has_no_columns_for_a_missing_proof():
    screen = show([record(1, **NO_PROOF)])
    assert "games/s" in screen and "blunders" not in screen and "None" not in screen


def test_the_display_shows_the_last_evaluation():
    judged = record(1, errors=ERRORS, **NO_PROOF)
    screen = show([judged, *(record(i, **NO_PROOF) for i in range(2, 9))], width=80)
    assert "iteration 1: 12.3% of moves worsen the outcome" in screen
    assert "worsen" not in show([record(1, **NO_PROOF)])


@pytest.mark.parametrize("before_close", [False, True])
def test_a_narrower_terminal_shows_one_table(before_close):
    terminal = FakeTerminal(columns=100)
    display = Display(terminal.console, 100, "perfect")
    for i in (1, 2, 3):
        display(record(i))
    terminal.resize(80)
    terminal.write("\n" * 3)  # As many more rows as a terminal that wraps makes of the table.
    if not before_close:
        display(record(4))
    display.close()
    screen = str(terminal)
    assert [screen.count(text) for text in ("iteration seconds", "until perfect")] == [1, 1]
    assert screen.count("87 + 553") == (3 if before_close else 4)


def test_what_callbacks_print_at_the_end_is_below_the_table():
    """They print through consoles of their own, so the table must be closed before."""
    terminal = FakeTerminal(columns=80)

    class Result(Callback):
        def on_end(self, loop):
            terminal.open_console(80).print(Panel("perfect\nin every position", expand=False))

    def step(state):
        metrics = SimpleNamespace(games=1, losses=record(1).losses)
        return SimpleNamespace(iteration=state.iteration + 1), metrics

    sink = Sink(lambda loop: Display(terminal.console, 3, "perfect"))
    loop = Loop(None, SimpleNamespace(iteration=0), step, 3, 0.0, callbacks=[sink, Result()])
    loop.run()
    *table, until, top, first, second, bottom = str(terminal).splitlines()
    assert len(table) == 4 and table[0].startswith("iteration ") and until.startswith("until")
    assert [top[0], first, second, bottom[0]] == [
        *("╭", "│ perfect           │", "│ in every position │", "╰")
    ]


REPLIES = {"loss": 1.0, "reply_loss": 0.625, "grad_norm": 1.0}  # Of a custom head.
KINDS = [
    record(1),
    record(2, **NO_PROOF),
    record(3, errors=ERRORS, **NO_PROOF),
    record(4, losses=REPLIES),
    record(5, losses=REPLIES, **NO_PROOF),
]


def cells(shown):
    """Returns the cells of each row of the last displayed table, by column title."""
    titles, *lines = show(shown).splitlines()[: 1 + len(shown)]
    found = [*re.finditer(r"\S+( left| lines| signs)?", titles)]
    starts = [0, *(title.end() for title in found[:-1])]
    return [
        {
            title[0]: line[start : title.end()].strip()
            for title, start in zip(found, starts, strict=True)
        }
        for line in lines
    ]


@pytest.mark.parametrize(
    "kinds", [(0, 1, 2), (1, 2, 0), (0, 3, 1), (4, 0, 2), (2, 4, 3), (3, 4, 0)]
)
def test_the_display_shows_records_of_every_kind_together(kinds):
    """Each number is below its title, and cells without a number are blank."""
    shown = [KINDS[kind] for kind in kinds]
    for one, row in zip(shown, cells(shown), strict=True):
        expected = {"iteration": f"{one.iteration}", "loss": f"{one.losses['loss']:.3f}"}
        for name, title in {"value_loss": "value", "reply_loss": "reply_loss"}.items():
            if any(name in other.losses for other in shown):
                expected[title] = f"{one.losses[name]:.3f}" if name in one.losses else ""
        if any(other.blunders is not None for other in shown):
            known = one.blunders is not None
            titles = ("blunders left", "losing lines", "wrong signs")
            found = ("4,321", "87 + 553", "99") if known else ("", "", "")
            expected |= zip(titles, found, strict=True)
        assert row.items() >= expected.items()
    assert "None" not in show(shown)


def test_an_empty_display_closes():
    assert "iteration" not in show([])
