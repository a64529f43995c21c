"""Reused subtrees, several leaves a simulation, forced playouts, playout caps, greedy values."""

import dataclasses
import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import games
from azjax.games import hashing
from azjax.games.base import init_batch, play, random_action
from azjax.runs.player import Player
from azjax.search import PUCT, ROOT, Gumbel, make, make_search, puct, reroot
from azjax.training import effort, selfplay
from azjax.training.targets import TargetConfig, greedy_value, make_targets
from guard import sharing
from refusals import assert_refused
from small import playing

GAME = games.make("othello:4")  # Its players pass.
WEIGHTS = np.random.default_rng(0).standard_normal((64, GAME.num_actions + 1)).astype(np.float32)
BATCH = 12


def evaluate(params, key, states):
    """A deterministic evaluator without structure."""
    del params, key
    numbers = hashing.contents(states, axes=1).astype(jnp.float32)
    outputs = jnp.tanh(numbers @ WEIGHTS[: numbers.shape[1]] / 8)
    return 2 * outputs[:, :-1], outputs[:, -1]


@functools.cache
def roots():
    states = init_batch(GAME, BATCH)
    for ply in range(3):
        keys = jax.random.split(jax.random.key(ply), BATCH)
        actions = jax.vmap(functools.partial(random_action, GAME))(keys, states)
        states = jax.vmap(functools.partial(play, GAME))(states, actions).state
    return states


@functools.cache
def compiled(algorithm):
    return jax.jit(make_search(algorithm, GAME, evaluate))


def search(algorithm, states, *, noise=False, tree=None):
    with sharing():
        return compiled(algorithm)(None, jax.random.key(7), states, 0.0, noise, tree)


@functools.cache
def continued(room=40):
    """A search, the positions after its moves, and what is below them."""
    first = search(PUCT(num_simulations=32), roots())
    step = jax.vmap(functools.partial(play, GAME))(roots(), first.action)
    with sharing():
        kept = jax.jit(reroot, static_argnums=2)(first.tree, first.action, room)
    return first, step.state, kept


def test_a_continued_search_equals_one_that_never_stopped():
    first, after, kept = continued()
    visits = np.asarray(first.visit_counts)[np.arange(BATCH), first.action]
    second = search(PUCT(num_simulations=16), after, tree=kept)
    for row, count in list(enumerate(visits))[:3]:
        one = jax.tree.map(lambda leaf, row=row: leaf[row : row + 1], after)
        whole = search(PUCT(num_simulations=int(count) - 1 + 16), one)
        assert whole.visit_counts[0].tolist() == second.visit_counts[row].tolist()
        np.testing.assert_array_equal(whole.q_values[0], second.q_values[row])
        np.testing.assert_array_equal(whole.value[0], second.value[row])


@pytest.mark.compiles(1)
def test_a_player_continues_its_search_after_the_reply():
    _, after, kept = continued()
    reply = jnp.argmax(kept.children_visits[:, ROOT], axis=1)
    states = jax.vmap(functools.partial(play, GAME))(after, reply).state
    parts = playing(GAME, PUCT(num_simulations=16), evaluate, games=4, unroll_length=1)
    tree = reroot(kept, reply, 40)
    second = Player(parts, None).search(jax.random.key(7), states, tree=tree)
    one = jax.tree.map(lambda leaf: leaf[:1], states)
    whole = search(PUCT(num_simulations=int(tree.node_visits[0, ROOT]) - 1 + 16), one)
    assert whole.visit_counts[0].tolist() == second.visit_counts[0].tolist()


def test_nothing_of_other_moves_stays_and_small_room_keeps_the_oldest_nodes():
    first, after, kept = continued()
    visits = np.asarray(first.visit_counts)[np.arange(BATCH), first.action]
    assert kept.node_visits[:, ROOT].tolist() == visits.tolist()
    assert jax.tree.all(
        jax.tree.map(lambda x, y: np.array_equal(x[:, ROOT], y), kept.embeddings, after)
    )
    exists = np.asarray(kept.node_visits > 0)
    above = np.take_along_axis(exists, np.maximum(np.asarray(kept.parents), 0), axis=1)
    assert above[exists].all() and (exists.sum(axis=1) <= visits).all()
    _, _, small = continued(room=4)
    assert small.node_visits.shape[1] == 4
    np.testing.assert_array_equal(small.node_visits[:, :3], kept.node_visits[:, :3])
    assert int(small.children_index.max()) < 4
    dropped = (small.children_index < 0) & (kept.children_index[:, :4] >= 0)
    assert dropped.any() and not small.children_visits[dropped].any()


def test_dropped_visits_do_not_explore(monkeypatch):
    """Nodes that found no room left visits in their root, which exploration must not count."""
    _, _, small = continued(room=4)
    plain = types.SimpleNamespace(_replace=lambda **parts: parts)
    given = {"legal": roots_legal(), "temperature": jnp.zeros(BATCH), "tree": small}
    given["add_noise"] = jnp.ones(BATCH, bool)
    totals = []

    def terms(settings, tree, node, total, visits):
        totals.append(int(total))
        return (jnp.float32(visits),) * 3

    monkeypatch.setattr(puct, "puct_terms", terms)
    parts = puct.explore_root(PUCT(), plain, types.SimpleNamespace(**given), None)
    trees = small.replace(extra_data=parts["extra"])
    for row in range(BATCH):
        parts["at_root"](jax.tree.map(lambda leaf, row=row: leaf[row], trees), ROOT)
    children = jnp.sum(small.children_visits[:, ROOT], axis=1)
    assert totals == [1] * BATCH and (small.node_visits[:, ROOT] > 1 + children).any()


def test_trees_are_empty_after_the_end_of_a_game_and_after_unvisited_moves():
    first, _, _ = continued()
    unvisited = jnp.argmin(first.visit_counts + ~roots_legal() * 100, axis=1)
    over = first.tree.replace(children_discounts=jnp.zeros_like(first.tree.children_discounts))
    last = first.tree.replace(
        children_index=first.tree.children_index.at[:, ROOT, -1].set(1),
        children_discounts=first.tree.children_discounts.at[:, ROOT, -1].set(-1),
    )
    beyond = [(last, jnp.full(BATCH, action)) for action in (-1, GAME.num_actions)]
    for tree, action in ((over, first.action), (first.tree, unvisited), *beyond):
        kept = reroot(tree, action, 8)
        wanted = np.ones(BATCH, bool)
        if action is unvisited:
            visits = np.take_along_axis(np.asarray(first.visit_counts), action[:, None], 1)
            wanted = visits[:, 0] == 0
        assert wanted.any() and (np.asarray(kept.node_visits)[wanted] == 0).all()
    fresh = search(PUCT(num_simulations=16), roots(), tree=reroot(over, first.action, 40))
    plain = search(PUCT(num_simulations=16), roots())
    np.testing.assert_array_equal(fresh.visit_counts, plain.visit_counts)


def roots_legal():
    return np.asarray(jax.vmap(GAME.legal_actions)(roots()))


@pytest.mark.parametrize("algorithm", [PUCT(num_simulations=16), Gumbel(num_simulations=16)])
def test_old_visits_do_not_drown_the_noise(algorithm):
    """With noise, a continued search tries as many moves as a new one."""
    _, after, kept = continued()
    plain = search(algorithm, after, noise=True)
    second = search(algorithm, after, noise=True, tree=kept)
    new = np.asarray(second.visit_counts - kept.children_visits[:, ROOT])
    assert (new.sum(axis=1) == 16).all() and (new >= 0).all()
    tried = (new > 0).sum() / (np.asarray(plain.visit_counts) > 0).sum()
    assert 0.8 < tried < 1.25
    if algorithm.algorithm == "puct":
        np.testing.assert_allclose(second.action_weights, new / 16)
        assert (second.action == new.argmax(axis=1)).all()
    logits = second.tree.children_prior_logits[:, ROOT] == plain.tree.children_prior_logits[:, ROOT]
    assert logits.all()  # The root's prior is made again.


@pytest.mark.parametrize("algorithm", [PUCT, Gumbel])
def test_trees_of_several_leaves_add_up(algorithm):
    result = search(algorithm(num_simulations=32, leaves=4), roots())
    tree, batch = jax.tree.map(np.asarray, result.tree), np.arange(BATCH)
    assert (tree.node_visits[:, ROOT] == 33).all()
    assert (np.asarray(result.visit_counts).sum(axis=1) == 32).all()
    for node in range(33):
        inside = (tree.node_visits[:, node] > 0) & (tree.children_visits[:, node].sum(axis=1) > 0)
        visits = tree.children_visits[:, node]
        own = tree.node_visits[:, node] - visits.sum(axis=1)
        assert (own[inside] >= 1).all()
        q = tree.children_rewards[:, node] + tree.children_discounts[:, node] * np.where(
            visits > 0, tree.children_values[:, node], 0
        )
        total = own * tree.raw_values[:, node] + (visits * q).sum(axis=1)
        mean = total / np.maximum(tree.node_visits[:, node], 1)
        np.testing.assert_allclose(tree.node_values[inside, node], mean[inside], atol=1e-4)
    child = tree.children_index[batch, ROOT, result.action]
    assert (child > 0).all()


@pytest.mark.compiles(1)
def test_a_leaf_that_is_selected_twice_has_one_value():
    """Of a random evaluator, too: the mean of a node is that of what is below it."""

    def draw(params, keys, states):
        values = jax.vmap(lambda key: jax.random.uniform(key, minval=-1.0))(keys)
        return jnp.zeros((len(values), GAME.num_actions)), values

    find = jax.jit(make_search(PUCT(num_simulations=32, leaves=32), GAME, draw))
    result = find(None, jax.random.key(0), roots())
    below = np.sum(result.visit_counts * np.asarray(result.q_values), axis=1)
    expected = (np.asarray(result.tree.raw_values)[:, ROOT] + below) / 33
    np.testing.assert_allclose(result.value, expected, atol=1e-5)


@pytest.mark.compiles(1)
def test_a_round_of_leaves_sees_those_before_it():
    """Four leaves of one round are four different nodes: one that waits counts as a loss.

    As a draw, the move that the prior prefers would be selected again.
    """

    def prefer(params, keys, states):
        first = jnp.argmax(jax.vmap(GAME.legal_actions)(states), axis=1)
        return 1.5 * jax.nn.one_hot(first, GAME.num_actions), jnp.zeros(len(first))

    find = make_search(PUCT(num_simulations=4, leaves=4), GAME, prefer)
    result = jax.jit(find)(None, jax.random.key(0), roots())
    legal = roots_legal().sum(axis=1)
    assert ((np.asarray(result.visit_counts) > 0).sum(axis=1) == np.minimum(legal, 4)).all()


def test_forced_playouts_are_left_out_of_the_target():
    plain = PUCT(num_simulations=32, dirichlet_fraction=0.5)
    result = search(dataclasses.replace(plain, forced_playouts=2.0), roots(), noise=True)
    visits, prior = np.asarray(result.visit_counts), np.asarray(result.prior)
    least = np.sqrt(2.0 * prior * 32)
    assert (visits[visits > 0] >= np.floor(least[visits > 0]) - 1).all()
    weights = np.asarray(result.action_weights)
    assert (weights[visits == 0] == 0).all()
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-5)
    best = visits.argmax(axis=1)
    shares = visits / visits.sum(axis=1, keepdims=True)
    rows = np.arange(BATCH)
    assert (weights[rows, best] >= shares[rows, best] - 1e-6).all()
    assert (weights < shares - 1e-6).any()
    calm = search(dataclasses.replace(plain, forced_playouts=2.0), roots())
    np.testing.assert_array_equal(calm.visit_counts, search(plain, roots()).visit_counts)


def test_pruning_takes_what_a_hand_computation_takes():
    """N = 100, k = 2, prior 1/4: at most floor(sqrt(50)) = 7 visits go, as far as scores allow."""
    result = search(PUCT(num_simulations=32), roots())
    tree = jax.tree.map(lambda leaf: leaf[0], result.tree)
    legal = np.flatnonzero(roots_legal()[0])[:3]
    visits = np.zeros(GAME.num_actions, np.int32)
    visits[legal] = [80, 12, 8]
    logits = np.full(GAME.num_actions, np.finfo(np.float32).min, np.float32)
    logits[legal] = np.log([0.5, 0.25, 0.25])
    q = np.zeros(GAME.num_actions, np.float32)
    q[legal] = [0.5, 0.3, -0.9]
    tree = tree.replace(
        children_visits=tree.children_visits.at[ROOT].set(visits),
        children_prior_logits=tree.children_prior_logits.at[ROOT].set(logits),
        children_rewards=tree.children_rewards.at[ROOT].set(q),
        children_discounts=jnp.zeros_like(tree.children_discounts),
        node_visits=tree.node_visits.at[ROOT].set(101),
    )
    best = 0.5 + 0.5 * np.sqrt(101) / 81
    deserved = int(np.ceil(0.25 * np.sqrt(101) / (best - 0.3) - 1))
    kept = np.array([80, max(deserved, 12 - 7), 0])  # The third is left with 1 visit, then none.
    settings = PUCT(c_puct=1.0, forced_playouts=2.0)
    found = np.asarray(puct.prune_forced(settings, tree, jnp.asarray(visits)))[legal]
    np.testing.assert_allclose(found, kept / kept.sum(), rtol=1e-5)


def test_the_greedy_value_is_that_at_the_end_of_the_most_visited_line():
    result = search(PUCT(num_simulations=32), roots())
    with sharing():
        found = np.asarray(jax.jit(greedy_value)(result))
    tree = jax.tree.map(np.asarray, result.tree)
    for row in range(BATCH):
        node, total, weight = ROOT, 0.0, 1.0
        action = result.action_weights[row].argmax()
        while tree.children_visits[row, node, action] > 0:
            total += weight * tree.children_rewards[row, node, action]
            weight *= tree.children_discounts[row, node, action]
            node = tree.children_index[row, node, action]
            action = tree.children_visits[row, node].argmax()
        assert found[row] == pytest.approx(total + weight * tree.raw_values[row, node])
    assert (found != np.asarray(result.value)).any()


def test_root_values_are_those_of_the_setting():
    result = search(PUCT(num_simulations=32), roots())
    wanted = {"policy": result.policy_value, "mean": result.value}
    for name, value in wanted.items():
        found = make_targets(TargetConfig(root_value=name), GAME).root_value(result)
        np.testing.assert_array_equal(found, value)
    assert make_targets(TargetConfig(root_value="greedy"), GAME).root_value is greedy_value


@pytest.mark.compiles(1)
def test_only_moves_with_a_full_search_are_samples():
    settings = {"games": 4, "unroll_length": 8, "full_share": 0.25, "fast_simulations": 2}
    parts = playing(
        GAME, PUCT(num_simulations=6), evaluate, note=lambda r: r.visit_counts.sum(1), **settings
    )
    keys = jax.random.split(jax.random.key(1), 4)
    with sharing():
        begun = selfplay.start_games(parts.selfplay, GAME, keys)
        schedule = jax.jit(functools.partial(effort.draw_moves, parts.selfplay))(keys[0])
    play = jax.jit(functools.partial(selfplay.self_play, parts))
    _, moves = play(None, keys, begun, schedule=schedule)
    assert schedule.sum() == 2 == parts.selfplay.full_moves and not schedule[:2].all()
    assert (np.asarray(moves.extra) == np.where(schedule, 6, 2)[:, None]).all()
    given = {"visits": moves.extra, "move": moves.action}
    samples = effort.keep_full(parts.selfplay, schedule, given)
    assert samples["visits"].shape == (2, 4) and (samples["visits"] == 6).all()


def test_fast_moves_have_no_noise(monkeypatch):
    noises, make = [], effort.make_search

    def spy(algorithm, *others):
        find = make(algorithm, *others)

        def search(*arguments, add_noise, **named):
            noises.append((algorithm.num_simulations, add_noise))
            return find(*arguments, add_noise=add_noise, **named)

        return search

    monkeypatch.setattr(effort, "make_search", spy)
    settings = {"games": 4, "unroll_length": 4, "full_share": 0.5, "fast_simulations": 2}
    parts = playing(GAME, PUCT(num_simulations=6), evaluate, **settings)
    keys = jax.random.split(jax.random.key(1), 4)
    games = jax.eval_shape(lambda: selfplay.start_games(parts.selfplay, GAME, keys))
    jax.eval_shape(functools.partial(selfplay.self_play, parts), None, keys, games)
    assert {*noises} == {(6, True), (2, False)}


def test_what_cannot_be_combined_is_refused():
    _, after, kept = continued()
    mctx = make_search(PUCT(), GAME, evaluate, engine="mctx")
    several = PUCT(num_simulations=8, leaves=4)
    assert_refused(
        (lambda: mctx(None, jax.random.key(0), after, tree=kept), "cannot continue a tree"),
        (lambda: make_search(several, GAME, evaluate, "mctx"), "leaves are 4", "use 1"),
        (lambda: reroot(kept, after.player, 0), "room is 0: use 1 or more"),
    )


def test_leaves_divide_the_simulations():
    assert make._choose_loop(GAME, "azjax", 10, 4).keywords == {"leaves": 2}
    assert make._choose_loop(GAME, "azjax", 50, 8).keywords == {"leaves": 5}
