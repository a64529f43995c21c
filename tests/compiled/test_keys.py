"""No random key is used twice, neither in training nor in matches.

The programs are traced with a ledger, so no other test can share them.
"""

import jax
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
from ledger import Ledger

CONFIG = Config(
    search=PUCT(num_simulations=3),
    network=MLPConfig(hidden=(4,), head_hidden=4),
    selfplay=SelfPlayConfig(games=4, unroll_length=5, opening_plies=4, archive=8),
    replay=ReplayConfig(capacity=32, shards=2),
    learner=LearnerConfig(batch_size=4, steps=2),
)


@pytest.fixture
def ledger(monkeypatch):
    return Ledger(monkeypatch)


@pytest.mark.compiles(2)
def test_training_uses_every_key_once(ledger):
    """Over two iterations, from the seed: network, games, searches, restarts, learning."""
    parts = make_parts(CONFIG)
    state = jax.jit(lambda: training.init(parts, jax.random.key(0)))()
    iterate, restarts = jax.jit(lambda state: training.iteration(parts, state)), 0
    for _ in range(2):
        state, metrics = iterate(state)
        restarts += int(metrics.games)
    assert ledger.misused() == {}
    counts = ledger.counts()
    moves, batches = 2 * 4 * 5, 2 * 2 * 2  # Two iterations of games and plies, shards and steps.
    assert restarts > 0
    # Games: opening, and for restarts a position in the buffer. A random move from each position.
    assert counts["uniform"] == 4 + 2 * restarts + moves
    assert counts["loggamma"] == counts["categorical"] == moves
    assert counts["bits"] == batches  # The symmetries.
    assert counts["randint"] == batches  # Samples from the buffer.


@pytest.mark.compiles(2)
def test_a_match_uses_every_key_once(ledger, tic_tac_toe):
    """Over both seats, and over two batches of games from each."""
    evaluate = rollout_evaluator(tic_tac_toe)
    first = players.search_agent(tic_tac_toe, PUCT(num_simulations=3), evaluate)
    second = players.random_agent(tic_tac_toe)
    key = jax.random.key(0)
    for seat in (0, 1):
        arena.play_games(
            tic_tac_toe, first, second, 4, jax.random.fold_in(key, 2 + seat), seat, batch_size=2
        )
    arena.play_match(tic_tac_toe, first, second, 4, key)
    assert ledger.misused() == {}
    assert ledger.counts()["uniform"] > 20
