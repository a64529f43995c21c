"""The API of `import azjax`: games by name, trained players, and their export."""

import dataclasses
import functools
import hashlib
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax as az
import guard
from azjax import players
from azjax.cli.players import parse
from azjax.games.base import init_batch
from azjax.players.arena import play_match
from azjax.players.overrides import Overrides, oriented_overrides
from azjax.runs import export as exports
from azjax.runs import presets, pretrained
from azjax.runs.export import name_leaves
from azjax.search import UCT, Gumbel
from azjax.search.evaluators import uniform_evaluator
from azjax.training.parts import SelfPlayConfig
from azjax.training.selfplay import Games, self_play, start_games
from integers import add_untrained, forget, make_case, observe
from refusals import assert_refused
from small import make_run, playing, take
from tables import batch

CONFIG = presets.smoke(presets.get("default"))
GAME = az.make("tic_tac_toe")
UNIFORM = uniform_evaluator(GAME)
PLAYING = playing(GAME, Gumbel(num_simulations=2), UNIFORM)
KEY = jax.random.key(0)


def test_calls_without_a_meaning_are_refused():
    player, states = make_player(), batch(*[[0] * 9] * 4)

    def search(keys=KEY, states=states, **settings):
        return lambda: player.search(keys, states, **settings)

    none = jax.random.split(KEY, 0)
    rows = [
        (lambda: start_games(SelfPlayConfig(), GAME, none), "shape (0,): use one key, or a batch"),
        (search(simulations=8), "UCT(", "cannot be changed (", "argument 'simulations'"),
        (search(num_simulations=0), "num_simulations is 0: use 1 to 1000000"),
        (search(algorithm="puct"), "search.algorithm is 'puct': use 'uct'"),
        (lambda: az.export(player, "player.pt"), "player.pt has no known extension: use a name"),
    ]
    games = Games(states, jnp.zeros(4, jnp.int32))
    for key, *said in [
        (jax.random.split(KEY, 3), r"the keys have shape (3,): use one key, or ", " of 1 or 4"),
        (jax.random.key_data(KEY), "the key is of type uint32: use typed keys", "jax.random.key"),
    ]:
        rows.append((search(key), *said))
        rows.append((functools.partial(self_play, PLAYING, None, key, games), *said))
    agent, four = players.random_agent(GAME), init_batch(az.make("connect_four"), 2)
    for wrong, said in [
        (GAME.init(), "a batch of tic_tac_toe is ...: for one state use"),
        (four, "is State(board=int8[B, 9], player=int8[B], over=bool[B"),
        (states._replace(over=states.over[:3]), "over=bool[3]): for one state use"),
    ]:
        rows.append((search(states=wrong), said))
        rows.append((functools.partial(player.evaluate, wrong), said))
        rows.append((functools.partial(play_match, GAME, agent, agent, 2, KEY, wrong), said))
    assert_refused(*rows)


# Players that come with azjax, and files like theirs.

NAME = "connect_four:3x4x3"


def save():
    """Writes an untrained player with one override, for the empty board."""
    overrides = Overrides(np.zeros((1, 3), np.uint8), np.array([3], np.uint8))
    return make_case(NAME).made, add_untrained(NAME, overrides)


def test_a_saved_player_is_loaded_with_equal_bits(folder):
    made, path = save()
    index = json.loads((folder / "index.json").read_text())
    assert index == {NAME: {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}}
    assert path.name == "connect_four_3x4x3.npz"
    player, states = az.load(NAME), init_batch(make_case(NAME).game, 2)
    with guard.sharing():
        planes = observe(player.game, states)
        expected = made.network.infer(made.network.fold(made.variables), planes)
        jax.tree.map(np.testing.assert_array_equal, player.evaluate(states), expected)
        decision = player.agent.act(player.params, jax.random.key(0), states)
    assert (player.name, player.iteration, player.alone) == (NAME, 7, True)
    assert (player.moves, player.parts.search.num_simulations) == (12345, 5)
    assert player.agent.name == NAME and player.overrides is not None
    assert decision.action.tolist() == [3, 3]  # The override in the empty position.


def test_damaged_files_are_one_sentence_and_no_matter_of_runs(folder, tmp_path):
    _, path = save()
    path.write_bytes(path.read_bytes()[:-1])
    load, said = (lambda: az.load(NAME)), "is missing or damaged: install azjax again"
    assert_refused((load, f"{path} {said}"))
    with guard.sharing():
        run_dir = str(make_run(tmp_path / "run", CONFIG))
    for content in ("", "{", "[]", '{"tic_tac_toe": 3}', '{"tic_tac_toe": {}}', "[" * 10_000):
        (folder / "index.json").write_text(content)
        forget()
        assert_refused((load, f"index.json {said}"))
    with guard.sharing():
        assert az.load(run_dir).iteration == 0
    assert parse(f"network@{run_dir}").name == "network"


def test_all_players_together_are_small_and_match_their_digests():
    files = list(pretrained.FOLDER.glob("*.npz"))
    assert sum(file.stat().st_size for file in files) <= 8_000_000
    assert {name.replace(":", "_") for name in pretrained.names()} == {file.stem for file in files}
    for name in pretrained.names():
        assert pretrained.read(name).about["game"].removeprefix("pgx:") == name


def test_the_shipped_player_of_tic_tac_toe_is_perfect(solution):
    with guard.sharing():
        certificate = az.verify(az.load("tic_tac_toe"), (), solution=solution)
    assert certificate.perfect and certificate.decision_states == 4520
    assert certificate.moves == pretrained.read("tic_tac_toe").about["training"]["moves"]


# Exported files compute what the players compute.


@functools.cache
def make_player():
    case = make_case("tic_tac_toe")
    parts = az.make_parts(az.Config(search=UCT()), case.game, case.made.network)
    with guard.sharing():
        return az.Player(parts, case.made.network.fold(case.made.variables))


def export(player, folder, number):
    """Returns the function of an exported file: `(states, seed) -> (action, weights, value)`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exports, "PLATFORMS", ("cpu",))  # For this machine.
        path = az.export(player, folder / "player.stablehlo", num_simulations=number)
    called = jax.export.deserialize(path.read_bytes()).call
    return lambda states, seed: called(name_leaves(states), seed)


def assert_equal(found, expected, value):
    np.testing.assert_array_equal(found[0], expected.action)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-4)
    np.testing.assert_allclose(found[2], value, atol=1e-4)


@pytest.mark.compiles(2)  # The player's search, and the file's.
def test_a_file_searches_as_its_seed_says(some_states, tmp_path):
    player, states, weights = make_player(), take(some_states, slice(5)), []
    search = export(player, tmp_path, 2)
    for seed in (7, 8):
        found = search(states, seed)
        result = player.search(jax.random.key(seed), states, num_simulations=2)
        assert_equal(found, result, result.value)
        weights.append(found[1].tolist())
    assert weights[0] != weights[1]


@pytest.mark.compiles(2)  # The player's agent, and the file.
def test_a_file_plays_the_overrides(some_states, tmp_path):
    player = make_player()
    center = batch([0, 0, 0, 0, 1, 0, 0, 0, 0])
    states = jax.tree.map(lambda *x: np.concatenate(x), take(some_states, slice(5)), center)
    overrides = oriented_overrides(player.game, "relative", center, np.array([2]))
    player = dataclasses.replace(player, alone=True, overrides=overrides)
    found = export(player, tmp_path, 0)(states, 0)
    decision = jax.jit(player.agent.act)(player.params, jax.random.key(0), states)
    assert_equal(found, decision, decision.value)
    assert found[1][-1].max() == 1 > found[1][:-1].max()
