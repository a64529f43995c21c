"""Long computations in a pipe print lines to stderr; short ones print nothing."""

import time

import pytest

from azjax.cli import console


@pytest.mark.parametrize(("pause", "lines"), [(0.02, True), (3600.0, False)], ids=["long", "short"])
def test_a_pipe_has_lines_about_what_takes_long(pause, lines, monkeypatch, capsys):
    monkeypatch.setattr(console, "_PAUSE", pause)
    with console.busy("compiling…"):
        time.sleep(0.2)
    with console.progress() as bar:
        task = bar.add_task("positions", total=1000)
        bar.update(task, completed=500)
        time.sleep(0.2)
    for _ in console.track(range(2), "seeds"):
        time.sleep(0.2)
    out, err = capsys.readouterr()
    expected = ("compiling…, 0 s\n", "positions: 500 of 1,000, 0 s\n", "seeds: 1 of 2, 0 s\n")
    assert out == "" and [text in err for text in expected] == [lines] * 3
