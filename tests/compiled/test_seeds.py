"""Many seeds in one program: a row for each, and their distribution."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from azjax.cli import seeds


def rows(said):
    """The seed, the iterations and the blunders of each row."""
    return re.findall(
        r"^[^0-9a-z]*([01])[^0-9a-z]+(never|[0-9]+)[^0-9a-z]+([0-9]+)\W*$", said, re.M
    )


@pytest.mark.parametrize("until", ["perfect", "unbeatable"])
def test_the_first_time_counts(until, capsys, monkeypatch):
    """The first seed reaches the goal in iteration 3; the second one in 1 and again in 2."""
    wrong = iter([5, 0, 4, 0, 0, 3])

    def verify_one(parts, solution, variables, seed):
        found = next(wrong)
        lines, blunders = np.array([0, found]), found if until == "perfect" else 7 + seed
        return SimpleNamespace(blunders=blunders, losing_lines=lines)

    states = SimpleNamespace(learner=SimpleNamespace(average=None))
    monkeypatch.setattr(seeds, "compile_seeds", lambda *_: (states, lambda s: (s, None)))
    monkeypatch.setattr(seeds, "verify_one", verify_one)
    monkeypatch.setattr(seeds.console, "solve", lambda game: None)
    assert seeds.main(["--seeds", "2", "--until", until]) == 0
    said = capsys.readouterr().out
    blunders = ["0", "3"] if until == "perfect" else ["7", "8"]
    assert rows(said) == [("0", "3", blunders[0]), ("1", "1", blunders[1])]
    assert len(
        re.findall(rf"^iteration +[123] .* {until} +[12] of 2  blunders, median", said, re.M)
    )
    assert f"{until}: 2 of 2 seeds; iterations: quartiles 2, 2, 2, most 3\n" in said
    wrong = iter([5, 0])
    assert seeds.main(["--seeds", "2", "--until", until, "--max-iterations", "1"]) == 1
    assert rows(capsys.readouterr().out)[0][1] == "never"
