"""The API of `import azjax`: games by name, trained players by folder."""

import copy
import dataclasses
import functools
import logging
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
from azjax import players, runs, training
from azjax.games import tic_tac_toe
from azjax.games.base import init_batch
from azjax.players.arena import play_games, play_match
from azjax.runs import checkpoint, presets
from azjax.runs.config import make_parts
from azjax.search import PUCT, Gumbel, make_search
from azjax.search.evaluators import rollout_evaluator, uniform_evaluator
from azjax.training.parts import SelfPlayConfig
from azjax.training.selfplay import Games, self_play, start_games
from experiments.lecture.persistent import PersistentConfig, make_persistent
from refusals import assert_refused
from run_directories import make_run
from small import playing

CONFIG = presets.smoke(presets.get("default"))


@pytest.fixture(scope="module")
def state():
    """A state of training whose parameters differ from their average, which plays."""
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
    boards = [[0] * 9, [1, 1, 0, -1, -1, 0, 0, 0, 0], [1, -1, 0, 0, 1, 0, 0, 0, 0], [1] + [0] * 8]
    positions = [tic_tac_toe.from_board(board) for board in boards]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *positions)


@pytest.fixture
def compilations(caplog):
    """Counts the programs that JAX compiles or reads from its cache."""
    with jax.log_compiles(), caplog.at_level(logging.WARNING):
        yield lambda: sum(
            "Compiling" in r.message or "Finished" in r.message for r in caplog.records
        )


def test_the_repr_of_a_player_is_one_line(player, run_dir):
    assert repr(player) == (
        "Player(game='tic_tac_toe', network=Network(encoding='relative', made_for=(3, 3, 2, 9)), "
        f"iteration=7, run_dir='{run_dir}')"
    )


def test_reprs_are_one_line(player, states, solution):
    game, parts = player.game, player.parts
    printed = {
        "agent": player.agent,
        "game": game,
        "parts": parts,
        "evaluator": parts.evaluate,
        "learner": parts.learner,
        "targets": parts.targets,
        "replay": parts.replay,
        "search": player.search(jax.random.key(0), states),
        "solution": solution,
        "state": jax.eval_shape(lambda: training.init(parts, jax.random.key(0))),
        "symmetries": game.symmetries,
        "positions": azjax.make("connect_four").positions(),
    }
    found = {name: repr(value) for name, value in printed.items()}
    assert {n: text for n, text in found.items() if len(text) > 320 or "\n" in text} == {}
    assert found["search"] == "SearchResult(action=int32[4], visit_counts=int32[4, 9])"
    assert found["solution"] == "Solution(num_states=5478, decisions=int32[4520])"
    traced = jax.eval_shape(player.search, jax.random.key(0), states)
    assert repr(traced) == found["search"]


def test_makes_every_game_by_name():
    for name in azjax.games.available():
        assert azjax.make(name).name == name


def test_loads_a_player(run_dir):
    for player in (azjax.load(str(run_dir)), azjax.load(run_dir)):
        assert player.parts == make_parts(CONFIG) and player.game.name == "tic_tac_toe"
        assert player.iteration == 7


def test_the_player_is_the_averaged_network(player, states, state):
    parts = make_parts(CONFIG)
    planes = jax.vmap(lambda s: parts.game.observe(s, parts.network.encoding))(states)
    logits, value = parts.network.apply(state.learner.average, planes)
    np.testing.assert_allclose(player.evaluate(states)[0], logits, atol=1e-5)
    np.testing.assert_allclose(player.evaluate(states)[1], value, atol=1e-5)


def test_evaluates_a_batch_of_positions(player, states):
    logits, value = player.evaluate(states)
    assert logits.shape == (4, 9) and value.shape == (4,)
    assert np.abs(value).max() <= 1
    alone = player.evaluate(jax.tree.map(lambda leaf: leaf[1:2], states))
    np.testing.assert_allclose(alone[0][0], logits[1], atol=1e-5)
    np.testing.assert_allclose(alone[1][0], value[1], atol=1e-5)


def test_searches_a_batch_of_positions(player, states):
    """With another search than that of training, and its number of simulations."""
    found = player.search(jax.random.key(0), states, PUCT(), num_simulations=32)
    np.testing.assert_array_equal(found.visit_counts.sum(axis=1), 32)
    assert found.action[1] == 2  # An immediate win.
    legal = jax.vmap(player.game.legal_actions)(states)
    assert not np.any(np.where(legal, 0, found.visit_counts))


def test_a_search_has_the_settings_of_its_run(player, states):
    found = player.search(jax.random.key(0), states)
    expected = CONFIG.search.num_simulations
    np.testing.assert_array_equal(found.visit_counts.sum(axis=1), expected)


def test_a_network_that_returns_nan_is_named(player, states):
    broken = dataclasses.replace(player, params=jax.tree.map(lambda x: x * np.nan, player.params))
    said = "NaN in the searches of 4 of 4 positions: load a check"
    assert_refused((lambda: broken.search(jax.random.key(0), states), said))


def test_calls_without_a_meaning_are_refused(player, states, tmp_path):
    def search(keys=KEY, states=states, **settings):
        return lambda: player.search(keys, states, **settings)

    many = jax.tree.map(lambda leaf: jnp.tile(leaf, (2**17, *[1] * (leaf.ndim - 1))), states)
    rows = [
        (search(simulations=8), "unknown setting 'simulations' of gumbel: use one of ", "num_sim"),
        (search(num_simulations=0), "num_simulations is 0: use 1 to 1000000"),
        (search(num_simulations="8"), "num_simulations is '8', which is not of type int"),
        (search(c_puct=1.0), "unknown setting 'c_puct' of gumbel: use one of "),
        (search(algorithm="puct"), "search.algorithm is 'puct': use 'gumbel'"),
        (
            search(states=many, num_simulations=10**6),
            "trees of 1000000 simulations, 524288 at a time, ",
            ": use at most",
        ),
        (
            lambda: start_games(SelfPlayConfig(), GAME, jax.random.split(KEY, 0)),
            "shape (0,): use one key, or a batch of one or more",
        ),
        (
            lambda: start_games(SelfPlayConfig(), GAME, jax.random.key_data(KEY)),
            "the key is of type uint32: use typed keys",
        ),
        (lambda: azjax.make("chess"), "unknown game 'chess': use one of tic_tac_toe"),
        (lambda: azjax.load(tmp_path), "is not a run directory"),
    ]
    games = Games(states, jnp.zeros(4, jnp.int32))
    keys = [
        (jax.random.split(KEY, 3), r"the keys have shape (3,): use one key, or ", " of 1 or 4"),
        (jax.random.split(KEY, (4, 1)), r"the keys have shape (4, 1): use one key"),
        (jax.random.key_data(KEY), "the key is of type uint32: use typed keys", "jax.random.key"),
        (jax.random.key_data(jax.random.split(KEY, 4)), "the key is of type uint32: use typed"),
        (0, "the key is of type int", ": use typed keys, such as jax.random.key"),
    ]
    selfplay = functools.partial(self_play, PLAYING, None)
    for key, *said in keys:
        rows.append((search(key), *said))
        rows.append((functools.partial(PLAIN, None, key, states), *said))
        rows.append((functools.partial(selfplay, key, games), *said))
    assert_refused(*rows, error=(ValueError, checkpoint.CheckpointError))
    assert start_games(SelfPlayConfig(), GAME, KEY).ply.shape == (1,)


STATE = "State(board=int8[B, 9], player=int8[B], over=bool[B])"
WRONG = [
    (lambda s: jax.tree.map(lambda x: x[0], s), "states must be a batch"),
    (lambda s: jax.tree.map(lambda x: x[:0], s), "the batch of states is empty: give 1"),
    (
        lambda s: init_batch(azjax.make("connect_four"), 2),
        f"a batch of tic_tac_toe is {STATE}, but these states are State(board=int8[2, 42], ",
    ),
    (lambda s: s._replace(board=jnp.float32(s.board)), "board=float32[4, 9]"),
    (tuple, "these states are (int8[4, 9], int8[4], bool[4]): use"),
    (lambda s: s._replace(over=s.over[:3]), "over=bool[3]): use states of"),
    (lambda s: jax.tree.map(lambda x: x[None], s), "int8[1, 4, 9]"),
]
GAME = azjax.make("tic_tac_toe")
UNIFORM = uniform_evaluator(GAME)
PLAIN = make_search(Gumbel(num_simulations=2), GAME, UNIFORM)
PLAYING = playing(GAME, Gumbel(num_simulations=2), UNIFORM)
MOVERS = {
    "random": players.random_agent(GAME),
    "perfect": None,  # Built from the solution, below.
    "network": players.network_agent(GAME, lambda params, key, states: (states.board, None), None),
    "search": players.search_agent(GAME, Gumbel(num_simulations=2), UNIFORM),
    "minimax": players.minimax_agent(GAME, 1),
    "clock": players.anytime_agent(GAME, Gumbel(num_simulations=2), UNIFORM),
}
KEY = jax.random.key(0)
LEARNER = make_persistent(GAME, PersistentConfig(num_simulations=1))


def entries(player, solution):
    """Every entry point that takes a batch of states, by name."""
    movers = MOVERS | {"perfect": players.perfect_agent(GAME, solution)}
    acts = {name: functools.partial(a.act, a.params, KEY) for name, a in movers.items()}
    selfplay = functools.partial(self_play, PLAYING, None, KEY)
    match = functools.partial(play_match, GAME, movers["random"], movers["random"], 2, KEY)
    return acts | {
        "Player.evaluate": player.evaluate,
        "Player.search": functools.partial(player.search, KEY),
        "make_search": functools.partial(PLAIN, None, KEY),
        "make_search, jitted": functools.partial(jax.jit(PLAIN), None, KEY),
        "self_play": lambda states: selfplay(Games(states, jnp.zeros(4, jnp.int32))),
        "play_match": match,
        "play_games": lambda s: play_games(GAME, *[movers["random"]] * 2, 2, KEY, openings=s),
        "lecture": lambda states: LEARNER.learn(KEY, states, LEARNER.init_memory(4)),
        "uniform evaluator": functools.partial(UNIFORM, None, KEY),
        "rollout evaluator": functools.partial(rollout_evaluator(GAME), None, KEY),
    }


def test_states_that_are_not_a_batch_are_refused_everywhere(player, states, solution):
    wrong = [(change(states), said) for change, said in WRONG]
    for entry in entries(player, solution).values():
        assert_refused(*((functools.partial(entry, given), said) for given, said in wrong))


@pytest.mark.slow
def test_one_key_is_split_for_the_batch_and_many_are_used(player, states):
    keys = jax.random.split(KEY, 4)
    for search in (player.search, functools.partial(jax.jit(PLAIN), None)):
        one, many = search(KEY, states), search(keys, states)
        jax.tree.map(np.testing.assert_array_equal, one, many)


@pytest.mark.slow
def test_numpy_settings_are_accepted(player, states):
    found = player.search(KEY, states, num_simulations=np.int64(3), value_scale=np.float32(1))
    np.testing.assert_array_equal(found.visit_counts.sum(axis=1), 3)


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_player_of_connect_four(tmp_path):
    config = dataclasses.replace(CONFIG, game="connect_four")
    player = azjax.load(make_run(tmp_path / "run", config))
    states = init_batch(player.game, 2)
    assert player.evaluate(states)[0].shape == (2, 7)
    assert player.search(jax.random.key(0), states, num_simulations=4).action.shape == (2,)


def test_loads_runs_that_this_number_of_devices_could_not_train(state, tmp_path):
    config = dataclasses.replace(CONFIG, replay=dataclasses.replace(CONFIG.replay, shards=1))
    with pytest.raises(ValueError, match="replay.shards is 1"):
        training.check_parts(make_parts(config), jax.device_count())
    runs.create_run(tmp_path / "run", config)
    checkpoint.save(tmp_path / "run", state, 0.0)
    assert azjax.load(tmp_path / "run").iteration == 7


def test_records_of_functions_say_what_to_send_instead(tic_tac_toe):
    player = azjax.load("tic_tac_toe")
    rows = [
        (tic_tac_toe, "send its name, and call azjax.make or your own function there"),
        (player.parts.network, "send its settings and variables"),
        (player.parts, "send a Config, and call azjax.make_parts there"),
        (player, "send its run directory or its name, and call azjax.load there"),
        (players.random_agent(tic_tac_toe), "send what it is made from, such as a run directory"),
    ]
    assert_refused(
        *(
            (lambda record=record: pickle.dumps(record), f"{type(record).__name__} has ...", advice)
            for record, advice in rows
        ),
        error=TypeError,
    )
    for record, _ in rows:
        assert copy.deepcopy(record) is copy.copy(record) is record
