"""Many seeds in one program: a row for each, their distribution, and its plot."""

import re
from types import SimpleNamespace
from xml.etree import ElementTree

import jax
import numpy as np
import pytest

import misere_pile
from azjax.cli import seeds
from azjax.games import solver
from azjax.proof import certificate
from azjax.proof.verify import verify
from azjax.runs import presets
from azjax.runs.config import make_parts
from refusals import check_program

TINY = ["--smoke", "--seeds", "2", "--max-iterations", "2"]


def rows(said):
    """The seed, the iterations and the blunders of each row."""
    return re.findall(
        r"^[^0-9a-z]*([01])[^0-9a-z]+(never|[0-9]+)[^0-9a-z]+([0-9]+)\W*$", said, re.M
    )


@pytest.mark.slow
def test_every_seed_has_a_row(tmp_path, capsys):
    assert seeds.main([*TINY, "--plot", str(tmp_path / "plot.svg")]) == 1
    said = capsys.readouterr().out
    assert (
        len(re.findall(r"^iteration +[12] .* perfect +0 of 2  blunders, median", said, re.M)) == 2
    )
    found = rows(said)
    assert [row[:2] for row in found] == [("0", "never"), ("1", "never")]
    assert found[0][2] != found[1][2]  # Each seed has its own key.
    assert "perfect: 0 of 2 seeds\n" in said
    picture = ElementTree.parse(tmp_path / "plot.svg").getroot()
    assert picture.get("aria-label") == "Share of 2 seeds: perfect"


def test_seeds_train_the_named_game(monkeypatch, capsys):
    rows = [
        ([], "tic_tac_toe", "default"),
        (["--game", "hex:3"], "hex:3", "default"),
        (["--game", "othello:4"], "othello:4", "enumerable"),
        (["--game", "othello:4", "--preset", "paper"], "othello:4", "paper"),
        (["--game", f"{misere_pile.__file__}:make"], "misere_pile", "default"),
    ]

    def stop(parts, number):
        raise ValueError(f"{parts.game.name} {parts.selfplay}")

    monkeypatch.setattr(seeds, "compile_seeds", stop)
    for arguments, name, like in rows:
        assert seeds.main(arguments) == 2
        selfplay = make_parts(presets.get(like)).selfplay
        assert f"error: {name} {selfplay}\n" in capsys.readouterr().err


def test_verification_in_turn_has_the_verdicts_of_all_seeds_together():
    game = misere_pile.make()
    parts = make_parts(presets.smoke(presets.get("default")), game)
    keys = jax.random.split(jax.random.key(0), 3)
    variables = jax.jit(jax.vmap(parts.network.init))(keys)
    solution = solver.solve(game)

    def verify_one(variables):
        policy = certificate.network_policy(parts, parts.network.fold(variables))
        return verify(solution, policy)

    together = jax.jit(jax.vmap(verify_one))(variables)
    in_turn = seeds._make_verification(parts)(variables)
    assert max(in_turn.blunders) > 0
    assert len(in_turn.blunders) == 3
    for one, other in zip(jax.tree.leaves(together), jax.tree.leaves(in_turn), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


@pytest.mark.parametrize("until", ["perfect", "unbeatable"])
def test_the_first_time_counts(until, capsys, monkeypatch):
    """The first seed reaches the goal in iteration 3; the second one in 1 and again in 2."""
    wrong = iter(np.array([[5, 0], [4, 0], [0, 3]]))

    def verify_all(params):
        found = next(wrong)
        lines, blunders = np.stack([0 * found, found], axis=1), np.array([7, 7])
        return SimpleNamespace(
            blunders=found if until == "perfect" else blunders, losing_lines=lines
        )

    states = SimpleNamespace(learner=SimpleNamespace(average=None))
    monkeypatch.setattr(seeds, "compile_seeds", lambda *_: (states, lambda s: (s, None)))
    monkeypatch.setattr(seeds, "_make_verification", lambda parts: verify_all)
    assert seeds.main(["--seeds", "2", "--until", until]) == 0
    said = capsys.readouterr().out
    assert [row[1] for row in rows(said)] == ["3", "1"]
    assert f"{until}: 2 of 2 seeds; iterations: quartiles 2, 2, 2, most 3\n" in said


def test_bad_input_is_refused_in_one_sentence(capfd):
    rows = [
        (["--seeds", "0"], "--seeds is 0: use 1 to 65536"),
        (["--max-iterations", "0"], "--max-iterations is 0: use 1 or more"),
        (["--plot", "/nowhere/x.svg"], "there is no folder /nowhere"),
        (["--plot", "x.png"], "--plot is x.png: use a name that ends in .svg"),
        (["--game", "chess"], "unknown game 'chess': use one of "),
        (
            ["--game", "hex:6"],
            "hex:6 has too many positions to enumerate, so no seed can",
        ),
        (["--game", "connect_four", "--until", "unbeatable"], "no seed can be proved unbeatable: "),
        (["--game", "nothing.py:make"], "nothing.py does not exist"),
    ]
    check_program(seeds.main, rows, capfd)
