"""The API of `import azjax`: games by name, trained players by folder or by name."""

import dataclasses
import functools
import hashlib
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
import guard
from azjax import players, runs, training
from azjax.cli.players import parse
from azjax.games.base import init_batch
from azjax.players.arena import play_match
from azjax.players.overrides import Overrides
from azjax.runs import checkpoint, presets, pretrained
from azjax.runs.config import make_parts
from azjax.search import Gumbel, make_search
from azjax.search.evaluators import uniform_evaluator
from azjax.training.parts import SelfPlayConfig
from azjax.training.selfplay import Games, self_play, start_games
from integers import add_untrained, forget, make_case, observe
from refusals import assert_refused
from small import make_run, playing
from tables import batch
from trained import compiling_once

CONFIG = presets.smoke(presets.get("default"))
GAME = azjax.make("tic_tac_toe")
UNIFORM = uniform_evaluator(GAME)
PLAIN = make_search(Gumbel(num_simulations=2), GAME, UNIFORM)
PLAYING = playing(GAME, Gumbel(num_simulations=2), UNIFORM)
KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def state():
    """A state of training whose parameters differ from their average, which plays."""
    with compiling_once():
        parts, mesh = make_parts(CONFIG), training.make_mesh()
        state = training.make_state(parts, jax.random.key(CONFIG.seed), mesh)
    learner = state.learner
    learner = learner._replace(variables=jax.tree.map(lambda leaf: leaf + 1, learner.variables))
    return dataclasses.replace(state, learner=learner, iteration=state.iteration + 7)


@pytest.fixture(scope="module")
def run_dir(state, tmp_path_factory):
    path = tmp_path_factory.mktemp("api") / "run"
    runs.create_run(path, CONFIG)
    checkpoint.save(path, state, 0.0)
    return path


@pytest.fixture(scope="module")
def player(run_dir):
    return azjax.load(run_dir)


@pytest.fixture(scope="module")
def states():
    """Four positions, `[4, ...]`."""
    return batch([0] * 9, [1, 1, 0, -1, -1] + [0] * 4, [1, -1, 0, 0, 1] + [0] * 4, [1] + [0] * 8)


@pytest.mark.compiles(2)
def test_the_player_is_the_averaged_network(player, states, state):
    parts = make_parts(CONFIG)
    planes = jax.vmap(lambda s: parts.game.observe(s, parts.network.encoding))(states)
    with guard.sharing():
        expected = parts.network.train(state.learner.average, planes, None)[0]
    found = player.evaluate(states)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    assert np.abs(found[1]).max() <= 1
    assert player.search(KEY, states).action.shape == (4,)


def test_calls_without_a_meaning_are_refused(player, states, tmp_path):
    def search(keys=KEY, states=states, **settings):
        return lambda: player.search(keys, states, **settings)

    rows = [
        (search(simulations=8), "unknown setting 'simulations' of gumbel: use one of ", "num_sim"),
        (search(num_simulations=0), "num_simulations is 0: use 1 to 1000000"),
        (search(algorithm="puct"), "search.algorithm is 'puct': use 'gumbel'"),
        (
            lambda: start_games(SelfPlayConfig(), GAME, jax.random.split(KEY, 0)),
            "shape (0,): use one key, or a batch of one or more",
        ),
        (lambda: azjax.load(tmp_path), "is not a run directory"),
    ]
    games = Games(states, jnp.zeros(4, jnp.int32))
    selfplay = functools.partial(self_play, PLAYING, None)
    for key, *said in [
        (jax.random.split(KEY, 3), r"the keys have shape (3,): use one key, or ", " of 1 or 4"),
        (jax.random.key_data(KEY), "the key is of type uint32: use typed keys", "jax.random.key"),
    ]:
        rows.append((search(key), *said))
        rows.append((functools.partial(PLAIN, None, key, states), *said))
        rows.append((functools.partial(selfplay, key, games), *said))
    agent, batch = players.random_agent(GAME), "State(board=int8[B, 9], player=int8[B], over=bool[B"
    for wrong, said in [
        (GAME.init(), "a batch of tic_tac_toe is ...: for one state use"),
        (init_batch(azjax.make("connect_four"), 2), f"a batch of tic_tac_toe is {batch}"),
        (states._replace(over=states.over[:3]), "over=bool[3]): for one state use"),
    ]:
        rows.append((search(states=wrong), said))
        rows.append((functools.partial(player.evaluate, wrong), said))
        rows.append((functools.partial(play_match, GAME, agent, agent, 2, KEY, wrong), said))
    assert_refused(*rows, error=(ValueError, checkpoint.CheckpointError))


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
    player, states = azjax.load(NAME), init_batch(make_case(NAME).game, 2)
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
    load, said = (lambda: azjax.load(NAME)), "is missing or damaged: install azjax again"
    assert_refused((load, f"{path} {said}"))
    with guard.sharing():
        run_dir = str(make_run(tmp_path / "run", CONFIG))
    for content in ("", "{", "[]", '{"tic_tac_toe": 3}', '{"tic_tac_toe": {}}', "[" * 10_000):
        (folder / "index.json").write_text(content)
        forget()
        assert_refused((load, f"index.json {said}"))
    with guard.sharing():
        assert azjax.load(run_dir).iteration == 0
    assert parse(f"network@{run_dir}").name == "network"


def test_all_players_together_are_small_and_match_their_digests():
    files = list(pretrained.FOLDER.glob("*.npz"))
    assert sum(file.stat().st_size for file in files) <= 8_000_000
    assert {name.replace(":", "_") for name in pretrained.names()} == {file.stem for file in files}
    for name in pretrained.names():
        assert pretrained.read(name).about["game"].removeprefix("pgx:") == name


def test_the_shipped_player_of_tic_tac_toe_is_perfect(solution):
    with guard.sharing():
        certificate = azjax.verify(azjax.load("tic_tac_toe"), (), solution=solution)
    assert certificate.perfect and certificate.decision_states == 4520
    assert certificate.moves == pretrained.read("tic_tac_toe").about["training"]["moves"]
