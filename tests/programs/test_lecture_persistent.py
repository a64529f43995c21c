"""The lecture's player with a memory, compared with a slow reference, and its series of games."""

import functools
import importlib
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games.base import init_batch
from azjax.players import Agent, Decision
from contract import ROWS, assert_contract, assert_policies, rows_of, same, some_states
from experiments.lecture.persistent import PersistentConfig, PersistentPlayer, make_persistent
from experiments.lecture.series import play_series
from reference import persistent
from refusals import assert_refused
from tables import bench

CASES = [
    "tic_tac_toe",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("misere_pile", "connect_four")),
]


@pytest.mark.parametrize("name", CASES)
def test_contract_with_an_empty_memory(name):
    player = make_persistent(bench(name).game, PersistentConfig(8, capacity=64))

    def act(params, key, states):
        return player.learn(key, states, player.init_memory(ROWS))[0]

    fields = {"value", "q_values", "visit_counts", "nodes"}
    assert_contract(Agent(player.name, act), name, fields)


LANES = 256


@functools.cache
def learner(name, expansion="random", capacity=1024, exploration=2**0.5, simulations=20):
    config = PersistentConfig(simulations, exploration, expansion, capacity)
    player = make_persistent(bench(name).game, config)
    return player, jax.jit(player.learn)


def after(game, moves, count):
    state = game.init()
    for move in moves:
        state, _ = game.step(state, move)
    return jax.tree.map(lambda leaf: np.repeat(np.asarray(leaf)[None], count, axis=0), state)


@pytest.mark.parametrize(
    ("name", "expansion", "exploration", "moves", "then"),
    [
        pytest.param("tic_tac_toe", "last", 2**0.5, (), (4, 0), marks=pytest.mark.slow),
        ("tic_tac_toe", "last", 0.3, (0, 4, 8, 2), (6,)),
        pytest.param("tic_tac_toe", "random", 2**0.5, (0, 4, 8, 2), (6,), marks=pytest.mark.slow),
        pytest.param(
            "tic_tac_toe", "last", 2**0.5, (0, 4, 8, 2, 6, 3), (5,), marks=pytest.mark.slow
        ),
        pytest.param("misere_pile", "last", 4.0, (), (0,), marks=pytest.mark.slow),
    ],
)
def test_visits_are_distributed_as_in_the_reference(name, expansion, exploration, moves, then):
    """The means of 256 players agree within five standard errors, at one move and a later one."""
    game, rules = bench(name).game, importlib.import_module(f"reference.{name}")
    player, learn = learner(name, expansion, exploration=exploration, simulations=30)
    memory, rng = player.init_memory(LANES), random.Random(0)
    references = [persistent.Memory() for _ in range(LANES)]
    position = rules.start()
    for move in moves:
        position, _ = rules.play(position, move)
    for seed, more in enumerate([(), then]):
        for move in more:
            position, _ = rules.play(position, move)
        states = after(game, moves + more, LANES)
        decision, memory = learn(jax.random.key(seed), states, memory)
        expected = np.zeros((LANES, game.num_actions))
        for lane, reference in enumerate(references):
            args = rules, reference, position, 30, exploration, rng, expansion
            for action, visits in persistent.learn(*args).items():
                expected[lane, action] = visits
        for power in (1, 2):  # Also compare the spread.
            actual, wanted = decision.visit_counts.astype(float) ** power, expected**power
            error = np.sqrt((actual.var(axis=0) + wanted.var(axis=0)) / LANES)
            assert (abs(actual.mean(axis=0) - wanted.mean(axis=0)) <= 5 * error + 1e-9).all()
        sign = 1 if position.player == 0 else -1  # Outcomes are for player 0.
        values = [sign * each.totals[position] / each.visits[position] for each in references]
        error = np.sqrt((np.var(values) + decision.value.var()) / LANES)
        assert abs(np.mean(values) - decision.value.mean()) <= 5 * error + 1e-6
        action = int(expected.sum(axis=0).argmax())
        after_action = [(each, each.children[position].get(action)) for each in references]
        means = [sign * each.totals[to] / each.visits[to] for each, to in after_action if to]
        actual = decision.q_values[np.asarray(decision.visit_counts[:, action]) > 0, action]
        error = np.sqrt(np.var(means) / len(means) + actual.var() / len(actual))
        assert abs(np.mean(means) - actual.mean()) <= 5 * error + 1e-6


@pytest.mark.slow
def test_a_memory_grows_by_the_simulations_of_each_call(tic_tac_toe):
    player, learn = learner("tic_tac_toe")
    states, memory = init_batch(tic_tac_toe, ROWS), player.init_memory(ROWS)
    for calls in (1, 2, 3):
        decision, memory = learn(jax.random.key(calls), states, memory)
        assert (memory.visits.max(axis=1) == 20 * calls).all()  # The root's.
        assert (decision.visit_counts.sum(axis=1) == 20 * calls).all()
        assert (decision.nodes == 20).all()
        stored = (memory.fingerprints != 0).sum(axis=1)
        assert ((stored > 9) & (stored <= 1 + 20 * calls)).all()
    assert abs(memory.totals).max() > 0
    assert not same(rows_of(memory, 0), rows_of(memory, 1))  # Each game has its own.


def test_rows_with_a_memory_are_independent():
    player, learn = learner("tic_tac_toe")
    states, key = some_states("tic_tac_toe", ROWS), jax.random.key(0)
    _, memory = learn(jax.random.key(1), states, player.init_memory(ROWS))
    result = learn(key, states, memory)
    rolled = np.array([0, *np.roll(np.arange(1, ROWS), 3)])
    other = learn(key, rows_of(states, rolled), rows_of(memory, rolled))
    assert same(rows_of(result, 0), rows_of(other, 0))
    assert not same(rows_of(result, 1), rows_of(other, 1))


def test_a_finished_game_adds_nothing_to_a_memory():
    player, learn = learner("tic_tac_toe")
    states = some_states("tic_tac_toe", ROWS, finished=1)
    _, memory = learn(jax.random.key(0), states, player.init_memory(ROWS))
    _, later = learn(jax.random.key(1), states, memory)
    for before in (player.init_memory(ROWS), memory):
        for name in ("visits", "totals", "children"):
            last = getattr(later, name)[-1]
            np.testing.assert_array_equal(last, getattr(before, name)[-1], err_msg=name)
    assert (later.visits[:-1].max(axis=1) == 40).all()


@pytest.mark.slow
def test_a_memory_holds_the_positions_below_the_root(tic_tac_toe):
    """Statistics from the start remain after the most simulated move."""
    player, learn = learner("tic_tac_toe", simulations=200)
    states = init_batch(tic_tac_toe, ROWS)
    first, memory = learn(jax.random.key(0), states, player.init_memory(ROWS))
    moved = jax.vmap(tic_tac_toe.step)(states, first.action)[0]
    before = jnp.take_along_axis(first.visit_counts, first.action[:, None], axis=1)[:, 0]
    player, learn = learner("tic_tac_toe", simulations=1)  # It uses the memory of the other player.
    second, memory = learn(jax.random.key(1), moved, memory)
    # The first visit of the position was a random game and chose no action there.
    np.testing.assert_array_equal(second.visit_counts.sum(axis=1), before)


@pytest.mark.slow
def test_a_full_table_still_plays():
    player, learn = learner("tic_tac_toe", capacity=16, simulations=100)
    game, memory = bench("tic_tac_toe").game, player.init_memory(ROWS)
    _, memory = learn(jax.random.key(0), init_batch(game, ROWS), memory)
    assert (memory.fingerprints != 0).all()
    states = some_states("tic_tac_toe", ROWS)
    decision, later = learn(jax.random.key(1), states, memory)
    legal = np.asarray(jax.vmap(game.legal_actions)(states))
    assert legal[np.arange(ROWS), decision.action].all()
    assert_policies(np.asarray(decision.weights), legal)
    np.testing.assert_array_equal(later.fingerprints, memory.fingerprints)
    missing = np.asarray(decision.nodes) == 0
    assert 0 < missing.sum() < ROWS
    assert not decision.value[missing].any()
    assert same(rows_of(later, missing), rows_of(memory, missing))


def test_rejects_settings_out_of_range():
    bad = {"num_simulations": 0, "exploration": -1.0, "expansion": "first", "capacity": 8}
    assert_refused(
        *((lambda k=k, v=v: PersistentConfig(**{k: v}), f"persistent.{k}") for k, v in bad.items())
    )


# Series of games.


def counting(game):
    """Counts its games; its first move in game n is the nth free cell."""

    def learn(key, states, memory):
        legal = jax.vmap(game.legal_actions)(states)
        begins = jnp.sum(states.board != 0, axis=1) < 2
        turn = jnp.where(begins, memory, 0) % jnp.sum(legal, axis=1)
        action = jnp.argmax(jnp.cumsum(legal, axis=1) > turn[:, None], axis=1)
        return Decision(action.astype(jnp.int32), legal / 1.0), memory + begins

    return PersistentPlayer("counting", lambda batch_size: jnp.zeros(batch_size, jnp.int32), learn)


@pytest.fixture(scope="module")
def lowest(tic_tac_toe):
    """Plays the first legal action."""

    def act(params, key, states):
        legal = jax.vmap(tic_tac_toe.legal_actions)(states)
        return Decision(jnp.argmax(legal, axis=1).astype(jnp.int32), legal / 1.0)

    return Agent("lowest", act, deterministic=True)


def outcome(game, opening):
    """Returns the first player's outcome if both play the first legal move after the opening."""
    state, total = game.init(), 0
    for action in [opening, *[None] * 8]:
        if not game.is_over(state):
            sign = 1 if int(game.player(state)) == 0 else -1
            action = int(np.argmax(game.legal_actions(state))) if action is None else action
            state, reward = game.step(state, action)
            total += sign * int(reward)
    return total


def test_memories_last_from_game_to_game(tic_tac_toe, lowest):
    """The player opens with a different cell in each game; every series has a separate memory."""
    player, key = counting(tic_tac_toe), jax.random.key(0)
    result = play_series(tic_tac_toe, player, lowest, 9, 2, key)
    expected = [outcome(tic_tac_toe, opening) for opening in range(9)]
    assert result.dtype == np.int8 and result.tolist() == [[each] * 2 for each in expected]
    assert len({*expected}) > 1
    some = player._replace(init_memory=lambda batch_size: jnp.arange(batch_size))
    result = play_series(tic_tac_toe, some, lowest, 3, 4, key)
    assert result.tolist() == [expected[game : game + 4] for game in range(3)]


@pytest.mark.slow
def test_statistics_persist_between_games(tic_tac_toe, lowest):
    """The start position gets 5 more simulations in every game."""
    seen = []
    player = make_persistent(tic_tac_toe, PersistentConfig(5, capacity=256))

    def learn(key, states, memory):
        decision, memory = player.learn(key, states, memory)
        starts = ~jnp.any(states.board != 0)
        jax.debug.callback(lambda *values: seen.append(values), starts, memory.visits[0])
        return decision, memory

    play_series(tic_tac_toe, player._replace(learn=learn), lowest, 4, 1, jax.random.key(0))
    jax.effects_barrier()
    visits = [slots for starts, slots in seen if starts]
    start = np.argmax(visits[0])
    assert [slots[start] for slots in visits] == [5, 10, 15, 20]
