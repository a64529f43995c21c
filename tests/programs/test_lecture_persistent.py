"""The lecture's player with a memory, against a slow reference, and its series of games."""

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

    knows = {"value", "q_values", "visit_counts", "nodes"}
    assert_contract(Agent(player.name, act), name, knows)


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
        ("tic_tac_toe", "last", 2**0.5, (0, 4, 8, 2, 6, 3), (5,)),
        pytest.param("misere_pile", "last", 4.0, (), (0,), marks=pytest.mark.slow),
    ],
)
def test_visits_are_distributed_as_in_the_reference(name, expansion, exploration, moves, then):
    """Means of 256 players within five standard errors, at one move and, after it, another."""
    game, rules = bench(name).game, importlib.import_module(f"reference.{name}")
    player, learn = learner(name, expansion, exploration=exploration, simulations=30)
    memory, rng = player.init_memory(LANES), random.Random(0)
    twins = [persistent.Memory() for _ in range(LANES)]
    position = rules.start()
    for move in moves:
        position, _ = rules.play(position, move)
    for seed, more in enumerate([(), then]):
        for move in more:
            position, _ = rules.play(position, move)
        states = after(game, moves + more, LANES)
        decision, memory = learn(jax.random.key(seed), states, memory)
        expected = np.zeros((LANES, game.num_actions))
        for lane, twin in enumerate(twins):
            args = rules, twin, position, 30, exploration, rng, expansion
            for action, visits in persistent.learn(*args).items():
                expected[lane, action] = visits
        for power in (1, 2):  # The spread, too.
            found, wanted = decision.visit_counts.astype(float) ** power, expected**power
            error = np.sqrt((found.var(axis=0) + wanted.var(axis=0)) / LANES)
            assert (abs(found.mean(axis=0) - wanted.mean(axis=0)) <= 5 * error + 1e-9).all()
        sign = 1 if position.player == 0 else -1  # Of outcomes, to the player to move.
        values = [sign * twin.totals[position] / twin.visits[position] for twin in twins]
        error = np.sqrt((np.var(values) + decision.value.var()) / LANES)
        assert abs(np.mean(values) - decision.value.mean()) <= 5 * error + 1e-6
        action = int(expected.sum(axis=0).argmax())
        likely = [(twin, twin.children[position].get(action)) for twin in twins]
        means = [sign * twin.totals[to] / twin.visits[to] for twin, to in likely if to]
        found = decision.q_values[np.asarray(decision.visit_counts[:, action]) > 0, action]
        error = np.sqrt(np.var(means) / len(means) + found.var() / len(found))
        assert abs(np.mean(means) - found.mean()) <= 5 * error + 1e-6


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


def test_rows_with_a_memory_do_not_mix():
    player, learn = learner("tic_tac_toe")
    states, key = some_states("tic_tac_toe", ROWS), jax.random.key(0)
    _, memory = learn(jax.random.key(1), states, player.init_memory(ROWS))
    found = learn(key, states, memory)
    turned = np.array([0, *np.roll(np.arange(1, ROWS), 3)])
    other = learn(key, rows_of(states, turned), rows_of(memory, turned))
    assert same(rows_of(found, 0), rows_of(other, 0))
    assert not same(rows_of(found, 1), rows_of(other, 1))


def test_a_finished_game_teaches_nothing():
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
def test_more_is_known_below_the_positions_met(tic_tac_toe):
    """What was learnt at the start is there after the move that was simulated most."""
    player, learn = learner("tic_tac_toe", simulations=200)
    states = init_batch(tic_tac_toe, ROWS)
    first, memory = learn(jax.random.key(0), states, player.init_memory(ROWS))
    moved = jax.vmap(tic_tac_toe.step)(states, first.action)[0]
    before = jnp.take_along_axis(first.visit_counts, first.action[:, None], axis=1)[:, 0]
    player, learn = learner("tic_tac_toe", simulations=1)  # It takes the other's memory over.
    second, memory = learn(jax.random.key(1), moved, memory)
    # Its own first visit was a random game from it, and chose no action.
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
    unknown = np.asarray(decision.nodes) == 0
    assert 0 < unknown.sum() < ROWS
    assert not decision.value[unknown].any()
    assert same(rows_of(later, unknown), rows_of(memory, unknown))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"num_simulations": 0}, "persistent.num_simulations"),
        ({"exploration": -1.0}, "persistent.exploration"),
        ({"expansion": "first"}, "persistent.expansion"),
        ({"capacity": 8}, "persistent.capacity"),
    ],
)
def test_refuses_settings_out_of_range(settings, said):
    with pytest.raises(ValueError, match=said):
        PersistentConfig(**settings)


# Series of games.


def counting(game):
    """Counts the games that it began; the first move of its nth is the nth free cell."""

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
    """The first player's, who opens with an action; then both play the first legal one."""
    state, total = game.init(), 0
    for action in [opening, *[None] * 8]:
        if not game.is_over(state):
            sign = 1 if int(game.player(state)) == 0 else -1
            action = int(np.argmax(game.legal_actions(state))) if action is None else action
            state, reward = game.step(state, action)
            total += sign * int(reward)
    return total


def test_memories_last_from_game_to_game(tic_tac_toe, lowest):
    """The player opens with another cell in each game; every series has a separate memory."""
    player, key = counting(tic_tac_toe), jax.random.key(0)
    found = play_series(tic_tac_toe, player, lowest, 9, 2, key)
    expected = [outcome(tic_tac_toe, opening) for opening in range(9)]
    assert found.dtype == np.int8 and found.tolist() == [[each] * 2 for each in expected]
    assert len({*expected}) > 1
    some = player._replace(init_memory=lambda batch_size: jnp.arange(batch_size))
    found = play_series(tic_tac_toe, some, lowest, 3, 4, key)
    assert found.tolist() == [expected[game : game + 4] for game in range(3)]


@pytest.mark.slow
def test_a_player_keeps_what_it_learned(tic_tac_toe, lowest):
    """The start position has been simulated 5 times more in every game."""
    seen = []
    player = make_persistent(tic_tac_toe, PersistentConfig(5, capacity=256))

    def learn(key, states, memory):
        decision, memory = player.learn(key, states, memory)
        starts = ~jnp.any(states.board != 0)
        jax.debug.callback(lambda *found: seen.append(found), starts, memory.visits[0])
        return decision, memory

    play_series(tic_tac_toe, player._replace(learn=learn), lowest, 4, 1, jax.random.key(0))
    jax.effects_barrier()
    visits = [slots for starts, slots in seen if starts]
    start = np.argmax(visits[0])
    assert [slots[start] for slots in visits] == [5, 10, 15, 20]
