"""The players that come with azjax."""

import json

import jax
import numpy as np
import pytest

import azjax
from azjax._commands import command
from azjax.cli import specs, verify
from azjax.exact.overrides import OverrideTable, load_table, save_table
from azjax.games.base import init_batch
from azjax.networks import MLPConfig, make_network
from azjax.networks.rounding import quantize
from azjax.players.overrides import Overrides
from azjax.runs import pretrained
from azjax.runs.loading import is_pretrained
from experiments import add_overrides
from run_directories import make_run

_MOST_BYTES = 8_000_000


def forget():
    """Clears the caches of files that were read."""
    for function in (pretrained.names, pretrained.load_pretrained, pretrained.read):
        function.cache_clear()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for other players, in place of those that come with azjax."""
    monkeypatch.setattr(pretrained, "FOLDER", tmp_path)
    forget()
    yield tmp_path
    forget()


def save(folder, name="connect_four:4x4"):
    """Writes an untrained player with one override, and the index."""
    game = azjax.make(name)
    network = make_network(MLPConfig(hidden=(16,), head_hidden=8, symmetric=True), game)
    made = quantize(game, network, network.init(jax.random.key(0)), init_batch(game, 4))
    planes = np.zeros((1, -(-2 * np.prod(game.board_shape) // 8)), np.uint8)
    about = {
        "game": name,
        "encoding": "relative",
        "symmetric": True,
        "iteration": 7,
        "search": {"algorithm": "puct", "num_simulations": 5},
        "alone": True,
        "training": {"moves": 12345},
    }
    path = folder / f"{name.replace(':', '_')}.npz"
    overrides = Overrides(planes, np.array([3], np.uint8))
    digest = pretrained.save_pretrained(path, about, made.variables, overrides)
    (folder / "index.json").write_text(json.dumps({name: {"sha256": digest}}))
    return made, path


def test_a_saved_player_is_loaded_with_equal_bits(folder):
    made, _ = save(folder)
    player = azjax.load("connect_four:4x4")
    states = init_batch(player.game, 2)
    planes = jax.vmap(lambda state: player.game.observe(state, "relative"))(states)
    for one, other in zip(
        player.evaluate(states), made.network.apply(made.variables, planes), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    assert (player.name, player.iteration, player.alone) == ("connect_four:4x4", 7, True)
    assert player.parts.search.num_simulations == 5
    decision = player.agent.act(player.params, jax.random.key(0), states)
    assert player.agent.name == "connect_four:4x4"
    assert decision.action.tolist() == [3, 3]  # The override in the empty position.


def test_a_damaged_file_is_refused(folder):
    _, path = save(folder)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="missing or damaged: install azjax again"):
        azjax.load("connect_four:4x4")


def test_a_damaged_index_is_one_sentence_and_no_matter_of_runs(folder, tmp_path):
    config = azjax.runs.presets.smoke(azjax.Config())
    run_dir = str(make_run(tmp_path / "run", config))
    for content in ("", "{", "[]", '{"tic_tac_toe": 3}', '{"tic_tac_toe": {}}', "[" * 10_000):
        (folder / "index.json").write_text(content)
        forget()
        with pytest.raises(
            ValueError, match="index.json is missing or damaged: install azjax again"
        ):
            azjax.load("tic_tac_toe")
        assert azjax.load(run_dir).iteration == 0
        assert specs.parse(f"network@{run_dir}").name == "network"


def test_a_folder_of_the_same_name_is_preferred(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert is_pretrained("connect_four")
    (tmp_path / "connect_four").mkdir()
    assert not is_pretrained("connect_four")
    with pytest.raises(azjax.runs.CheckpointError):
        azjax.load("connect_four")


def test_needed_overrides_are_added_once_no_game_is_lost(folder, tmp_path, monkeypatch, capsys):
    name = "tic_tac_toe"
    _, path = save(folder, name)
    before = path.read_bytes()
    monkeypatch.chdir(tmp_path)
    assert add_overrides.main([name]) == 2
    said = capsys.readouterr().err
    make = command("azjax", "verify", name, "--lines", "first", "--repair", "12")
    assert said.endswith(f"make it with {make}\n")
    assert verify.main([name, "--lines", "first", "--repair", "12"]) == 0

    [found] = tmp_path.glob("runs/verified/tic_tac_toe/lines/*.overrides.npz")
    table = load_table(found, azjax.make(name))
    one = OverrideTable(*jax.tree.map(lambda leaf: leaf[:1], table[:3]), table.rounds)
    save_table(tmp_path / "one.npz", one)
    assert add_overrides.main([name, "--table", str(tmp_path / "one.npz")]) == 1
    assert path.read_bytes() == before

    capsys.readouterr()
    assert add_overrides.main([name]) == 0
    assert " 0 lost\n" in capsys.readouterr().out
    forget()
    player = azjax.load(name)
    assert player.overrides is not None
    proof = azjax.prove_seat(player, "first", tmp_path / "proof")
    assert proof.is_proof
    assert 0 < len(player.overrides.actions) <= len(table.actions) + 1


def test_an_unknown_name_lists_those_that_exist():
    with pytest.raises(ValueError, match="use .*connect_four.*; did you mean connect_four?"):
        pretrained.load_pretrained("conect_four")


def test_all_players_together_are_small_and_match_their_digests():
    files = list(pretrained.FOLDER.glob("*.npz"))
    assert sum(file.stat().st_size for file in files) <= _MOST_BYTES
    assert {name.replace(":", "_") for name in pretrained.names()} == {file.stem for file in files}
    for name in pretrained.names():
        assert pretrained.read_about(name)["game"].removeprefix("pgx:") == name


@pytest.mark.parametrize("name", ["tic_tac_toe", "othello:4"])
def test_the_certificate_of_a_shipped_player_is_perfect(name):
    certificate = azjax.verify(azjax.load(name), ())
    assert certificate.perfect and not certificate.blunders
    assert certificate.moves == pretrained.read_about(name)["training"]["moves"]


def test_the_shipped_player_wins_connect_four_against_random_moves():
    player = azjax.load("connect_four")
    match = azjax.play_match(
        player.game,
        player.agent,
        azjax.players.random_agent(player.game),
        16,
        jax.random.key(0),
    )
    assert match.moving_first.wins == 8
