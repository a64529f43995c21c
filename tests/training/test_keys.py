"""No random key is used twice, neither in training nor in matches."""

import jax
import pytest

from azjax import players, training
from azjax.games.base import init_batch
from azjax.networks import MLPConfig
from azjax.players import arena
from azjax.runs.config import Config, make_parts
from azjax.search import ALGORITHMS, PUCT, UCT, make_search
from azjax.search.evaluators import rollout_evaluator
from azjax.training.learner import LearnerConfig
from azjax.training.parts import SelfPlayConfig
from azjax.training.replay import ReplayConfig
from experiments.lecture.persistent import PersistentConfig, make_persistent
from experiments.lecture.series import play_series
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


def test_training_uses_every_key_once(ledger):
    """Over two iterations, from the seed: network, games, searches, restarts, learning."""
    mesh = training.make_mesh(jax.devices()[:1])
    state = training.make_state(make_parts(CONFIG), jax.random.key(CONFIG.seed), mesh)
    iterate = training.compiled(
        training.make_iteration(make_parts(CONFIG), mesh), state, often=False
    )
    restarts = 0
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
    assert counts["randint"] >= batches  # Samples from the buffer.


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["gumbel", "uct"])
def test_a_search_uses_every_key_once(ledger, tic_tac_toe, algorithm):
    config = ALGORITHMS[algorithm](num_simulations=3)
    search = make_search(config, tic_tac_toe, rollout_evaluator(tic_tac_toe))
    keys, states = jax.random.split(jax.random.key(0), 2), init_batch(tic_tac_toe, 2)
    jax.jit(lambda: search(None, keys, states, temperature=1.0, add_noise=True).action)()
    assert ledger.misused() == {}
    assert ledger.counts()["uniform"] >= 2 * 4  # Rollouts from roots and leaves.


PLAYERS = {
    "uct": lambda game: players.search_agent(game, UCT(num_simulations=3), rollout_evaluator(game)),
    "puct, sampled": lambda game: players.sampled(
        players.search_agent(game, PUCT(num_simulations=3), rollout_evaluator(game))
    ),
}


@pytest.mark.parametrize(
    "player",
    ["puct, sampled", pytest.param("uct", marks=pytest.mark.slow)],
)
def test_a_match_uses_every_key_once(ledger, tic_tac_toe, player):
    """Over both seats, and over two batches of games from each."""
    first, second = PLAYERS[player](tic_tac_toe), players.random_agent(tic_tac_toe)
    key = jax.random.key(0)
    for seat in (0, 1):
        arena.play_games(
            tic_tac_toe, first, second, 4, jax.random.fold_in(key, 2 + seat), seat, batch_size=2
        )
    arena.play_match(tic_tac_toe, first, second, 4, key)
    assert ledger.misused() == {}
    assert ledger.counts()["uniform"] > 20


@pytest.mark.slow
def test_a_series_with_a_memory_uses_every_key_once(ledger, tic_tac_toe):
    player = make_persistent(tic_tac_toe, PersistentConfig(num_simulations=3, capacity=64))
    opponent = players.random_agent(tic_tac_toe)
    play_series(tic_tac_toe, player, opponent, 2, 2, jax.random.key(0))
    assert ledger.misused() == {}
    assert ledger.counts()["uniform"] > 20


def test_pairings_of_a_tournament_share_no_key(ledger, tic_tac_toe):
    entrants = [players.random_agent(tic_tac_toe)._replace(name=name) for name in "abc"]
    matches = arena.round_robin(tic_tac_toe, entrants, 2, jax.random.key(0))
    assert len(matches) == 3
    assert ledger.misused() == {}


def test_the_ledger_finds_keys_that_are_used_twice(ledger):
    """Also inside loops, branches and batches of compiled programs."""

    def body(key, split_again):
        key, other = jax.random.split(key)
        if split_again:
            key = other
        return key, jax.random.uniform(other)

    def run(split_again):
        keys = jax.random.split(jax.random.key(split_again), 3)
        scan = jax.vmap(lambda key: jax.lax.scan(lambda k, _: body(k, split_again), key, length=2))
        return jax.block_until_ready(jax.jit(scan)(keys))

    run(False)
    assert ledger.misused() == {}
    run(True)
    assert sorted(map(sorted, ledger.misused().values())) == [["split", "uniform"]] * 3


def test_the_ledger_accepts_correct_use(monkeypatch):
    for uses, is_sound in [
        (["fold_in", "fold_in again"], True),
        (["fold_in", "fold_in"], False),
        (["fold_in", "split"], False),
        (["split", "split"], False),
        (["normal", "normal"], False),
        (["normal", "split"], False),
        (["normal"], True),
    ]:
        with monkeypatch.context() as patch:
            ledger, key = Ledger(patch), jax.random.key(0)
            for use in uses:
                name, *again = use.split()
                getattr(jax.random, name)(key, *([len(again)] if name == "fold_in" else []))
        assert (ledger.misused() == {}) == is_sound, uses
