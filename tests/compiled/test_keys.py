"""No random key is used twice, neither in training nor in matches.

The programs record the use of every key, so no other test can share them.
"""

import collections
import functools
import inspect

import jax
import numpy as np
import pytest

from azjax import players, training
from azjax.networks import MLPConfig
from azjax.players import arena
from azjax.runs.config import Config, make_parts
from azjax.search import PUCT
from azjax.search.evaluators import rollout_evaluator
from azjax.training.learner import LearnerConfig
from azjax.training.parts import SelfPlayConfig
from azjax.training.replay import ReplayConfig

CONFIG = Config(
    search=PUCT(num_simulations=3),
    network=MLPConfig(hidden=(4,), head_hidden=4),
    selfplay=SelfPlayConfig(games=4, unroll_length=5, opening_plies=4, archive=8),
    replay=ReplayConfig(capacity=32, shards=2),
    learner=LearnerConfig(batch_size=4, steps=2),
)


_FREE = {"key", "key_data", "wrap_key_data", "key_impl", "PRNGKey"}  # They do not draw.


@pytest.fixture
def uses(monkeypatch):
    """Counts every use of every key, by its value, in the programs that are traced later."""
    uses = collections.defaultdict(collections.Counter)

    def note(name, data, number):
        use = f"{name} {int(number)}" if name == "fold_in" else name
        uses[tuple(np.asarray(data).tolist())][use] += 1

    def wrap(name, function):
        @functools.wraps(function)
        def wrapped(key, *args, **kwargs):
            number = args[0] if name == "fold_in" else -1
            jax.debug.callback(functools.partial(note, name), jax.random.key_data(key), number)
            return function(key, *args, **kwargs)

        return wrapped

    for name, function in inspect.getmembers(jax.random, inspect.isfunction):
        if name not in _FREE and [*inspect.signature(function).parameters][:1] == ["key"]:
            monkeypatch.setattr(jax.random, name, wrap(name, function))
    return uses


def count_sound(uses):
    """Checks that every key is used for one draw, one split, or folds with different numbers.

    Returns the number of keys for each function.
    """
    jax.effects_barrier()
    for key, found in uses.items():
        folded = all(use.startswith("fold_in") for use in found)
        assert max(found.values()) == 1 and (folded or len(found) == 1), (key, found)
    return collections.Counter(use.split()[0] for found in uses.values() for use in found)


@pytest.mark.compiles(2)
def test_training_uses_every_key_once(uses):
    """Over two iterations, from the seed: network, games, searches, restarts, learning."""
    parts = make_parts(CONFIG)
    state = jax.jit(lambda: training.init(parts, jax.random.key(0)))()
    iterate, restarts = jax.jit(lambda state: training.iteration(parts, state)), 0
    for _ in range(2):
        state, metrics = iterate(state)
        restarts += int(metrics.games)
    counts = count_sound(uses)
    moves, batches = 2 * 4 * 5, 2 * 2 * 2  # Two iterations of games and plies, shards and steps.
    assert restarts > 0
    # Games: opening, and for restarts a position in the buffer. A random move from each position.
    assert counts["uniform"] == 4 + 2 * restarts + moves
    assert counts["loggamma"] == counts["categorical"] == moves
    assert counts["bits"] == batches  # The symmetries.
    assert counts["randint"] == batches  # Samples from the buffer.


@pytest.mark.compiles(2)
def test_a_match_uses_every_key_once(uses, tic_tac_toe):
    """Over both seats, and over two batches of games from each."""
    evaluate = rollout_evaluator(tic_tac_toe)
    first = players.search_agent(tic_tac_toe, PUCT(num_simulations=3), evaluate)
    second = players.random_agent(tic_tac_toe)
    key = jax.random.key(0)
    for seat in (0, 1):
        arena.play_games(
            tic_tac_toe, first, second, 4, jax.random.fold_in(key, 10 + seat), seat, batch_size=2
        )
    arena.play_match(tic_tac_toe, first, second, 4, key)
    assert count_sound(uses)["uniform"] > 20
