"""The players that come with azjax, and files like theirs."""

import hashlib
import json

import jax
import numpy as np
import pytest

import azjax
import guard
from azjax.cli import players
from azjax.games.base import init_batch
from azjax.players.overrides import Overrides
from azjax.runs import player as loading
from azjax.runs import pretrained
from experiments.quantize import add_player
from integers import make_case, observe
from refusals import assert_refused
from small import make_run

_MOST_BYTES = 8_000_000
NAME = "connect_four:3x4x3"


def forget():
    """Clears the caches of files that were read."""
    for function in (pretrained.names, loading._load_pretrained, pretrained.read):
        function.cache_clear()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for other players, in place of those that come with azjax."""
    monkeypatch.setattr(pretrained, "FOLDER", tmp_path)
    (tmp_path / "index.json").write_text("{}")
    forget()
    yield tmp_path
    forget()


def save():
    """Writes an untrained player with one override, for the empty board."""
    made = make_case(NAME).made
    about = {
        "game": NAME,
        "encoding": "relative",
        "symmetric": True,
        "iteration": 7,
        "search": {"algorithm": "puct", "num_simulations": 5},
        "alone": True,
        "training": {"moves": 12345},
    }
    overrides = Overrides(np.zeros((1, 3), np.uint8), np.array([3], np.uint8))
    path = add_player(NAME, about, made.variables, overrides)
    forget()
    return made, path


def test_a_saved_player_is_loaded_with_equal_bits(folder):
    made, path = save()
    index = json.loads((folder / "index.json").read_text())
    assert index == {NAME: {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}}
    assert path.name == "connect_four_3x4x3.npz"
    player, states = azjax.load(NAME), init_batch(make_case(NAME).game, 2)
    with guard.sharing():
        planes = observe(player.game, states)
        expected = made.network.apply(made.variables, planes)
        jax.tree.map(np.testing.assert_array_equal, player.evaluate(states), expected)
        decision = player.agent.act(player.params, jax.random.key(0), states)
    assert (player.name, player.iteration, player.alone) == (NAME, 7, True)
    assert (player.moves, player.parts.search.num_simulations) == (12345, 5)
    assert player.agent.name == NAME and player.overrides is not None
    assert decision.action.tolist() == [3, 3]  # The override in the empty position.


def test_damaged_files_are_one_sentence_and_no_matter_of_runs(folder, tmp_path):
    _, path = save()
    path.write_bytes(path.read_bytes()[:-1])
    load, said = (lambda: azjax.load(NAME)), "is missing or damaged: install azjax again"
    assert_refused((load, f"{path} {said}"))
    config = azjax.runs.presets.smoke(azjax.Config())
    with guard.sharing():
        run_dir = str(make_run(tmp_path / "run", config))
    for content in ("", "{", "[]", '{"tic_tac_toe": 3}', '{"tic_tac_toe": {}}', "[" * 10_000):
        (folder / "index.json").write_text(content)
        forget()
        assert_refused((load, f"index.json {said}"))
    with guard.sharing():
        assert azjax.load(run_dir).iteration == 0
    assert players.parse(f"network@{run_dir}").name == "network"


def test_all_players_together_are_small_and_match_their_digests():
    files = list(pretrained.FOLDER.glob("*.npz"))
    assert sum(file.stat().st_size for file in files) <= _MOST_BYTES
    assert {name.replace(":", "_") for name in pretrained.names()} == {file.stem for file in files}
    for name in pretrained.names():
        assert pretrained.read(name).about["game"].removeprefix("pgx:") == name


def test_the_shipped_player_of_tic_tac_toe_is_perfect(solution):
    with guard.sharing():
        certificate = azjax.verify(azjax.load("tic_tac_toe"), (), solution=solution)
    assert certificate.perfect and certificate.decision_states == 4520
    assert certificate.moves == pretrained.read("tic_tac_toe").about["training"]["moves"]
