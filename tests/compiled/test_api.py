"""The API of `import azjax`: games by name, trained players by folder."""

import copy
import dataclasses
import functools
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
import guard
from azjax import players, runs, training
from azjax.games import tic_tac_toe as rules
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
from small import playing
from trained import compiling_once
from trainings import compilations

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
    boards = [[0] * 9, [1, 1, 0, -1, -1, 0, 0, 0, 0], [1, -1, 0, 0, 1, 0, 0, 0, 0], [1] + [0] * 8]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(rules.from_board, boards))


@pytest.fixture(scope="module")
def results(run_dir, player, states):
    """What the player computes, by name."""
    nothing = jax.tree.map(lambda leaf: leaf * np.nan, player.params)
    found = {
        "evaluate": player.evaluate(states),
        "search": player.search(KEY, states),
        "puct": player.search(KEY, states, PUCT(), num_simulations=np.int64(32)),
        "nan": dataclasses.replace(player, params=nothing),
    }
    again = azjax.load(run_dir)
    with compilations() as compiled:
        again.evaluate(states)
        again.search(KEY, states)
    return found | {"compiled again": list(compiled)}


def test_the_player_is_the_averaged_network(results, states, state):
    parts = make_parts(CONFIG)
    planes = jax.vmap(lambda s: parts.game.observe(s, parts.network.encoding))(states)
    with guard.sharing():
        expected = jax.jit(parts.network.apply)(state.learner.average, planes)
    for found, of_network in zip(results["evaluate"], expected, strict=True):
        np.testing.assert_allclose(found, of_network, atol=1e-5)
    assert np.abs(results["evaluate"][1]).max() <= 1


def test_calls_without_a_meaning_are_refused(player, results, states, tmp_path):
    def search(keys=KEY, states=states, **settings):
        return lambda: player.search(keys, states, **settings)

    many = jax.tree.map(lambda leaf: jnp.tile(leaf, (2**17, *[1] * (leaf.ndim - 1))), states)
    rows = [
        (
            lambda: results["nan"].search(KEY, states),
            "NaN in the searches of 4 of 4 positions: load a check",
        ),
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
        (lambda: azjax.make("chess"), "unknown game 'chess': use one of tic_tac_toe"),
        (lambda: azjax.load(tmp_path), "is not a run directory"),
    ]
    games = Games(states, jnp.zeros(4, jnp.int32))
    selfplay = functools.partial(self_play, PLAYING, None)
    for key, *said in [
        (jax.random.split(KEY, 3), r"the keys have shape (3,): use one key, or ", " of 1 or 4"),
        (jax.random.split(KEY, (4, 1)), r"the keys have shape (4, 1): use one key"),
        (jax.random.key_data(KEY), "the key is of type uint32: use typed keys", "jax.random.key"),
        (0, "the key is of type int", ": use typed keys, such as jax.random.key"),
    ]:
        rows.append((search(key), *said))
        rows.append((functools.partial(PLAIN, None, key, states), *said))
        rows.append((functools.partial(selfplay, key, games), *said))
    assert_refused(*rows, error=(ValueError, checkpoint.CheckpointError))


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
MOVERS = {
    "random": players.random_agent(GAME),
    "perfect": None,  # Built from the solution, below.
    "network": players.network_agent(GAME, lambda params, key, states: (states.board, None), None),
    "search": players.search_agent(GAME, Gumbel(num_simulations=2), UNIFORM),
    "minimax": players.minimax_agent(GAME, 1),
    "clock": players.anytime_agent(GAME, Gumbel(num_simulations=2), UNIFORM),
}
LEARNER = make_persistent(GAME, PersistentConfig(num_simulations=1))


def entries(player, solution):
    """Every entry point that takes a batch of states."""
    movers = MOVERS | {"perfect": players.perfect_agent(GAME, solution)}
    random = movers["random"]
    selfplay = functools.partial(self_play, PLAYING, None, KEY)
    return [
        *(functools.partial(a.act, a.params, KEY) for a in movers.values()),
        player.evaluate,
        functools.partial(player.search, KEY),
        functools.partial(PLAIN, None, KEY),
        functools.partial(jax.jit(PLAIN), None, KEY),
        lambda states: selfplay(Games(states, jnp.zeros(4, jnp.int32))),
        functools.partial(play_match, GAME, random, random, 2, KEY),
        lambda states: play_games(GAME, random, random, 2, KEY, openings=states),
        lambda states: LEARNER.learn(KEY, states, LEARNER.init_memory(4)),
        functools.partial(UNIFORM, None, KEY),
        functools.partial(rollout_evaluator(GAME), None, KEY),
    ]


def test_states_that_are_not_a_batch_are_refused_everywhere(player, states, solution):
    wrong = [(change(states), said) for change, said in WRONG]
    rows = [
        (functools.partial(entry, given), said)
        for entry in entries(player, solution)
        for given, said in wrong
    ]
    assert_refused(*rows)


def test_records_of_functions_say_what_to_send_instead(tic_tac_toe, player):
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
