"""What a user reaches from `import azjax`: a game by name, a trained player by its folder."""

import dataclasses
import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
from azjax import checkpoint, presets, train
from azjax.game import init_batch
from azjax.games import tic_tac_toe

CONFIG = presets.smoke(presets.get("default"))


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    """A run whose parameters differ from their average, which is what plays."""
    path = tmp_path_factory.mktemp("api") / "run"
    state = train.make_state(CONFIG, train.make_mesh())
    learner = state.learner
    learner = learner._replace(variables=jax.tree.map(lambda leaf: leaf + 1, learner.variables))
    state = dataclasses.replace(state, learner=learner, iteration=state.iteration + 7)
    checkpoint.create_run(path, CONFIG)
    with checkpoint.Checkpointer(path) as checkpointer:
        checkpointer.save(state, 0.0)
    return path


@pytest.fixture(scope="module")
def player(run_dir):
    return azjax.load(run_dir)


@pytest.fixture(scope="module")
def states():
    """Four positions, `[4, ...]`."""
    boards = [[0] * 9, [1, 1, 0, -1, -1, 0, 0, 0, 0], [1, -1, 0, 0, 1, 0, 0, 0, 0], [1] + [0] * 8]
    positions = [tic_tac_toe.from_board(board) for board in boards]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *positions)


@pytest.fixture
def compilations(caplog):
    """Counts the programs that JAX compiles, or takes from its cache."""
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        yield lambda: sum(
            "Compiling" in r.message or "Finished" in r.message for r in caplog.records
        )


def test_makes_every_game_by_name():
    for name in azjax.games.available():
        assert azjax.make(name).name == name
    with pytest.raises(ValueError, match="unknown game 'chess': use one of tic_tac_toe"):
        azjax.make("chess")


@pytest.mark.parametrize("as_type", [str, lambda path: path])
def test_loads_a_player(as_type, run_dir):
    player = azjax.load(as_type(run_dir))
    assert player.game.name == "tic_tac_toe"
    assert player.config == CONFIG
    assert player.iteration == 7
    assert player.skipped == ()


def test_the_player_is_the_averaged_network(player, states):
    state = train.make_state(CONFIG, train.make_mesh())
    parts = train.make_parts(CONFIG)
    planes = jax.vmap(lambda s: parts.game.observe(s, CONFIG.network.encoding))(states)
    logits, value, _ = parts.network.apply(state.learner.average, planes, False)
    np.testing.assert_allclose(player.evaluate(states)[0], logits, atol=1e-5)
    np.testing.assert_allclose(player.evaluate(states)[1], value, atol=1e-5)


def test_evaluates_a_batch_of_positions(player, states):
    logits, value = player.evaluate(states)
    assert logits.shape == (4, 9) and value.shape == (4,)
    assert np.abs(value).max() <= 1
    alone = player.evaluate(jax.tree.map(lambda leaf: leaf[1:2], states))
    np.testing.assert_allclose(alone[0][0], logits[1], atol=1e-5)
    np.testing.assert_allclose(alone[1][0], value[1], atol=1e-5)


@pytest.mark.parametrize("algorithm", ["puct", "gumbel"])
def test_searches_a_batch_of_positions(algorithm, player, states):
    found = player.search(jax.random.key(0), states, algorithm=algorithm, num_simulations=32)
    np.testing.assert_array_equal(found.visit_counts.sum(axis=1), 32)
    assert found.action[1] == 2  # It wins at once.
    legal = jax.vmap(player.game.legal_actions)(states)
    assert not np.any(np.where(legal, 0, found.visit_counts))


def test_a_search_has_the_settings_of_its_run(player, states):
    found = player.search(jax.random.key(0), states)
    expected = CONFIG.search.num_simulations
    np.testing.assert_array_equal(found.visit_counts.sum(axis=1), expected)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"simulations": 8}, "unknown setting 'simulations': use one of .*num_simulations"),
        ({"num_simulations": 0}, "num_simulations is 0: use 1 or more"),
        ({"num_simulations": "8"}, "num_simulations is '8', which is not of type int"),
        ({"algorithm": "alphabeta"}, "algorithm is 'alphabeta': use 'gumbel' or 'puct'"),
    ],
)
def test_refuses_settings_that_no_search_has(settings, said, player, states):
    with pytest.raises(ValueError, match=said):
        player.search(jax.random.key(0), states, **settings)


@pytest.mark.parametrize("method", ["evaluate", "search"])
def test_refuses_a_single_position(method, player):
    state = player.game.init()
    arguments = [state] if method == "evaluate" else [jax.random.key(0), state]
    with pytest.raises(ValueError, match="states must be a batch"):
        getattr(player, method)(*arguments)


def test_a_second_call_compiles_nothing(run_dir, states, compilations):
    def play(player):
        player.evaluate(states)
        player.search(key, states, num_simulations=3)

    key = jax.random.key(0)
    play(azjax.load(run_dir))
    again = azjax.load(run_dir)
    before = compilations()
    play(again)
    assert compilations() == before
    again.search(key, states, num_simulations=5)
    assert compilations() > before


def test_a_player_of_connect_four(tmp_path):
    config = dataclasses.replace(CONFIG, game="connect_four")
    checkpoint.create_run(tmp_path / "run", config)
    player = azjax.load(tmp_path / "run")
    states = init_batch(player.game, 2)
    assert player.evaluate(states)[0].shape == (2, 7)
    assert player.search(jax.random.key(0), states, num_simulations=4).action.shape == (2,)


def test_loads_what_this_number_of_devices_could_not_train(tmp_path):
    replay = dataclasses.replace(CONFIG.replay, shards=1)
    config = dataclasses.replace(CONFIG, replay=replay)
    with pytest.raises(ValueError, match="replay.shards is 1"):
        train.check(config, jax.device_count())
    checkpoint.create_run(tmp_path / "run", config)
    with checkpoint.Checkpointer(tmp_path / "run") as checkpointer:
        mesh = train.make_mesh(jax.devices()[:1])
        checkpointer.save(train.make_state(config, mesh), 0.0)
    assert azjax.load(tmp_path / "run").skipped == ()


def test_says_what_is_wrong_with_a_folder(tmp_path):
    with pytest.raises(checkpoint.CheckpointError, match="is not a run directory"):
        azjax.load(tmp_path)
