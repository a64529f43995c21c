"""PUCT against a reference implementation, and properties of all searches."""

import dataclasses
import functools
import importlib
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import misere_pile
from azjax.games.base import init_batch
from azjax.games.tic_tac_toe import State
from azjax.search import ALGORITHMS, PUCT, UCT, Gumbel, make_resumable, make_search
from azjax.search.evaluators import uniform_evaluator
from azjax.search.puct import puct_terms
from reference import Position, puct
from refusals import assert_refused
from tables import BATCH, FAULTS, all_boards, bench, repeat, run

CONFIGS = {"puct": PUCT(), "gumbel": Gumbel(), "uct": UCT()}
EACH = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
BOTH = pytest.mark.parametrize("config", [PUCT(), Gumbel()], ids=["puct", "gumbel"])
ON_PILE = [PUCT(first_play_urgency="parent"), Gumbel()]
CLEAR = 1e-5  # Choices with a smaller margin may differ in float32.


# The reference implementation.


def textbook(name, config, table, states, count=24):
    """The reference's visit counts, values and margins for the first positions."""
    rules, a_bench = importlib.import_module(f"reference.{name}"), bench(name)
    logits, values = table.logits.tolist(), table.values.tolist()

    def evaluate(position):
        row = a_bench.number(np.array(position.board), position.player)
        return logits[row], values[row]

    players, boards = states.player[:count].tolist(), states.board[:count].tolist()
    visits = np.zeros((len(boards), a_bench.game.num_actions), int)
    found = []
    for row, (board, player) in enumerate(zip(boards, players, strict=True)):
        settings = config.num_simulations, config.c_puct, config.first_play_urgency
        position = Position(tuple(board), player, False)
        result = puct.search(rules, evaluate, position, *settings)
        visits[row, [*result.visit_counts]] = [*result.visit_counts.values()]
        found.append((result.value, result.margin))
    return visits, *np.array(found).T


def assert_equals_textbook(name, config, states):
    table = bench(name).random_table()
    visits, values, margins = textbook(name, config, table, states)
    result, clear = run(config, table, states, name=name), margins > CLEAR
    assert clear.mean() > 0.9
    ours = jax.tree.map(lambda leaf: leaf[: len(clear)][clear], result)
    np.testing.assert_array_equal(ours.visit_counts, visits[clear])
    np.testing.assert_allclose(ours.value, values[clear], atol=1e-5)


def test_puct_equals_the_textbook(some_states):
    """Also where a player moves twice."""
    for c_puct in (1.25, 3.0, 0.5):
        assert_equals_textbook("tic_tac_toe", PUCT(c_puct=c_puct), some_states)
    assert_equals_textbook("misere_pile", ON_PILE[0], pile_states())


def test_ties_go_to_the_lowest_action(solution):
    """With equal priors and values, all choices near the start are ties."""
    first = jax.tree.map(lambda leaf: leaf[:10], solution.states)
    table = bench("tic_tac_toe").constant_table(0)
    visits, _, margins = textbook("tic_tac_toe", PUCT(), table, first)
    assert (margins == 0).all()
    states = jax.tree.map(lambda leaf: np.resize(leaf, (BATCH, *leaf.shape[1:])), first)
    np.testing.assert_array_equal(run(PUCT(), table, states).visit_counts[:10], visits)


def test_unvisited_actions_have_the_first_play_urgency(some_states):
    tree = run(PUCT(), bench("tic_tac_toe").random_table(), some_states).tree
    unvisited = (tree.children_visits == 0) & (tree.node_visits > 0)[..., None]
    values = np.broadcast_to(tree.node_values[..., None], unvisited.shape)

    @jax.jit
    def assumed(tree):
        rules = [PUCT(first_play_urgency=urgency) for urgency in ("zero", "parent", "loss")]
        at_node = [functools.partial(puct_terms, rule) for rule in rules]
        at_nodes = [jax.vmap(jax.vmap(each, (None, 0)), (0, None)) for each in at_node]
        return [each(tree, np.arange(33)).q for each in at_nodes]

    for q, expected in zip(assumed(tree), (0 * values, values, 0 * values - 1), strict=True):
        np.testing.assert_array_equal(q[unvisited], expected[unvisited])


# Properties of all algorithms.


@EACH
def test_visits_and_values_add_up(some_states, config):
    """A root's value is the mean of its evaluation and the returns of its actions."""
    table = bench("tic_tac_toe").random_table(1)
    result, count = run(config, table, some_states), config.num_simulations
    _, raw = bench("tic_tac_toe").evaluate(table, None, some_states)
    assert (result.visit_counts.sum(axis=1) == count).all()
    assert (abs(result.q_values) <= 1).all()
    assert (result.q_values[result.visit_counts == 0] == 0).all()
    returned = (result.visit_counts * result.q_values).sum(axis=1)
    is_uct = config.algorithm == "uct"  # Its roots have no evaluation.
    mean = returned / count if is_uct else (raw + returned) / (count + 1)
    np.testing.assert_allclose(result.value, mean, atol=1e-5)
    if config.algorithm != "gumbel":
        np.testing.assert_allclose(result.action_weights, result.visit_counts / count, atol=1e-6)


def test_policy_value_is_the_mean_value_of_visited_actions(some_states):
    result = run(Gumbel(), bench("tic_tac_toe").random_table(), some_states)
    few = result._replace(visit_counts=np.where(np.arange(9) < 5, result.visit_counts, 0))
    for row, value in enumerate(few.policy_value):
        visited = np.flatnonzero(few.visit_counts[row])
        weights, q_values = few.action_weights[row, visited], few.q_values[row, visited]
        expected = (weights * q_values).sum() / weights.sum() if len(visited) else few.value[row]
        np.testing.assert_allclose(value, expected, atol=1e-6)
    blind = result._replace(visit_counts=0 * result.visit_counts)
    np.testing.assert_array_equal(blind.policy_value, result.value)


@EACH
def test_no_evaluator_makes_a_search_play_an_illegal_action(some_states, config):
    """This holds at any depth; the other positions of the batch are not affected."""
    a_bench, hurt = bench("tic_tac_toe"), np.arange(BATCH) % 4 == 3
    legal, table = some_states.board == 0, a_bench.random_table()
    search = functools.partial(run, config, states=some_states, add_noise=True)
    sound = search(table)
    cases = [(table, fault) for fault in FAULTS]
    cases += [(a_bench.constant_table(value), "none") for value in (1, -1)]  # All actions lose.
    for outputs, fault in cases:
        result = search(outputs, fault=fault, is_hurt=hurt)
        tree, over = result.tree, result.tree.embeddings.over
        illegal = (tree.embeddings.board != 0) | over[..., None]
        assert (tree.children_visits[illegal] == 0).all(), fault
        assert (result.visit_counts.sum(axis=1) == config.num_simulations).all(), fault
        assert legal[np.arange(BATCH), result.action].all(), fault
        assert not (result.action_weights > 0)[~legal].any(), fault
        sums = result.action_weights.sum(axis=1)
        assert np.isnan(sums[hurt & ~np.isclose(sums, 1, atol=1e-5)]).all(), fault
        if outputs is table:
            for ours, theirs in zip(*map(jax.tree.leaves, (result, sound)), strict=True):
                np.testing.assert_array_equal(ours[~hurt], theirs[~hurt], err_msg=fault)
            is_nan = np.isnan(result.value[hurt])
            assert is_nan.any() == ("values" in fault), fault
            assert fault != "values NaN" or is_nan.mean() > 0.8


@BOTH
def test_a_logit_of_minus_infinity_is_a_prior_of_almost_zero(config):
    table, start = bench("tic_tac_toe").constant_table(0), repeat([0] * 9)
    even = run(config, table, start).prior
    table.logits[:, [0, 5]] = -np.inf
    prior = run(config, table, start).prior[0]
    np.testing.assert_allclose(prior, (table.logits[0] == 0) / 7, atol=1e-6)
    table.logits[:] = -np.inf
    np.testing.assert_array_equal(run(config, table, start).prior, even)


@EACH
def test_a_finished_game_in_the_tree_has_the_value_of_its_result(config):
    """An evaluator that returns 0.7 for finished games has no effect."""
    last_move_draws = [1, -1, 1, 1, -1, -1, -1, 1, 0]
    last_move_wins = [1, -1, 1, -1, 1, -1, -1, 1, 0]
    states = repeat(last_move_draws, last_move_wins)
    result = run(config, bench("tic_tac_toe").constant_table(0.7), states)
    n, root = config.num_simulations, 0 if config.algorithm == "uct" else 1
    np.testing.assert_array_equal(result.visit_counts[:, 8], n)
    np.testing.assert_allclose(result.q_values[:2, 8], [0, 1], atol=1e-6)
    expected = np.array([0.7 * root, 0.7 * root + n]) / (n + root)
    np.testing.assert_allclose(result.value[:2], expected, atol=1e-6)
    finished = result.tree.embeddings.over
    assert (result.tree.node_values[finished] == 0).all()


@EACH
def test_wins_are_found_and_threats_blocked_by_both_players(config):
    """The evaluator knows nothing; UCT needs more simulations to block."""
    wins = [([1, 1, 0, -1, -1, 0, 0, 0, 0], 2), ([1, 1, 0, -1, -1, 0, 1, 0, 0], 5)]
    threats = [([1, 0, 0, -1, -1, 0, 0, 0, 1], 5), ([1, 1, 0, 0, -1, 0, 0, 0, 0], 2)]
    boards, actions = zip(*wins, *threats, strict=True)
    result = run(config, bench("tic_tac_toe").constant_table(0), repeat(*boards))
    assert result.action[:2].tolist() == [*actions[:2]] and (result.value[:2] > 0.3).all()
    assert (result.q_values[[0, 1], actions[:2]] == 1).all()
    if config.algorithm == "puct":
        assert result.action[2:4].tolist() == [*actions[2:]]
        for row in (2, 3):
            others = (np.array(boards[row]) == 0) & (np.arange(9) != actions[row])
            assert (result.q_values[row, others] < result.q_values[row, actions[row]]).all()


@BOTH
def test_with_exact_values_every_choice_is_optimal(some_states, solution, config):
    table = bench("tic_tac_toe").constant_table(0)
    rows = bench("tic_tac_toe").number(solution.states.board, solution.states.player)
    table.values[rows] = solution.values
    table.logits[rows] = np.where(solution.optimal, 0, -10)
    result = run(config, table, some_states)
    optimal = table.logits[bench("tic_tac_toe").number(some_states.board, some_states.player)] == 0
    assert optimal[np.arange(BATCH), result.action].all() and not optimal.all()


@EACH
def test_values_are_the_same_with_colors_exchanged(some_states, config):
    """Values are for the mover, independent of whether the mover is X or O."""
    swapped = State(-some_states.board, 1 - some_states.player, some_states.over)
    a_bench = bench("tic_tac_toe")
    table, mirrored = a_bench.random_table(), a_bench.constant_table(0)
    boards = all_boards(9)
    for player in (0, 1):
        rows, mirrored_rows = a_bench.number(boards, player), a_bench.number(-boards, 1 - player)
        mirrored.logits[mirrored_rows] = table.logits[rows]
        mirrored.values[mirrored_rows] = table.values[rows]
    result, exchanged = run(config, table, some_states), run(config, mirrored, swapped)
    np.testing.assert_array_equal(result.visit_counts, exchanged.visit_counts)
    np.testing.assert_array_equal(result.value, exchanged.value)


def pile_states():
    """The unfinished positions of the pile, with each player to move."""
    boards = np.tril(np.ones((5, 5), np.int8), -1)
    boards = np.concatenate([boards, boards])
    return misere_pile.State(boards, np.repeat(np.int8([0, 1]), 5), np.zeros(10, bool))


@pytest.mark.parametrize("config", ON_PILE, ids=["puct", "gumbel"])
def test_backup_keeps_the_sign_where_a_player_moves_twice(config):
    """With two stones left both actions lose; a constant discount would make one of them a win."""
    a_bench, states = bench("misere_pile"), pile_states()
    exact = np.array([0, -1, -1, 1, 1, 1], np.float32)  # By the number of stones left.
    table, boards = a_bench.constant_table(0), all_boards(5)
    for player in (0, 1):
        table.values[a_bench.number(boards, player)] = exact[(boards == 0).sum(axis=1)]
    result = run(config, table, states, name="misere_pile")
    left = (states.board == 0).sum(axis=1)
    np.testing.assert_array_equal(result.value[left <= 2], -1)
    np.testing.assert_array_equal(result.q_values[left == 2], -1)
    np.testing.assert_array_equal(result.action[(left == 3) | (left == 5)], [0, 1, 0, 1])
    tree = result.tree
    first, second = tree.embeddings.player[:, 0], tree.children_index[:, 0]
    row, action = np.nonzero(second >= 0)
    after = tree.embeddings.player[row, second[row, action]]
    over = tree.embeddings.over[row, second[row, action]]
    expected = np.where(over, 0, np.where(after == first[row], 1, -1))
    np.testing.assert_array_equal(tree.children_discounts[:, 0][row, action], expected)


@EACH
def test_a_result_does_not_depend_on_the_batch_around_it(some_states, config):
    """Therefore it does not depend on the number of devices that share a batch.

    The first half is replaced by finished games with other keys, and the batch is reversed.
    """
    table, half = bench("tic_tac_toe").random_table(), BATCH // 2
    over = repeat([1, 1, 1, -1, -1, 0, 0, 0, 0])
    others = jax.tree.map(lambda a, b: np.r_[a[:half], b[half:]][::-1], over, some_states)
    keys = jax.random.split(jax.random.key(0), BATCH)
    new = jax.random.split(jax.random.key(1), BATCH)
    search = functools.partial(run, config, table, luck=0.5, temperature=1.0)
    noise = np.arange(BATCH) % 2 == 0
    result = search(states=some_states, seed=keys, add_noise=noise)
    mixed = jnp.concatenate([new[:half], keys[half:]])[::-1]
    found = search(states=others, seed=mixed, add_noise=noise[::-1])
    for ours, theirs in zip(*map(jax.tree.leaves, (result, found)), strict=True):
        np.testing.assert_array_equal(ours[half:], theirs[::-1][half:])
    np.testing.assert_array_equal(found.action[half:], 0)


@BOTH
def test_only_exploration_is_random(some_states, config):
    """Keys have an effect with noise, and none without it at temperature 0."""
    table, noise = bench("tic_tac_toe").random_table(), np.arange(BATCH) % 3 == 0
    results = [run(config, table, some_states, seed=s, add_noise=noise) for s in (0, 0, 1)]
    first, again, other = (np.c_[result.visit_counts, result.action] for result in results)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first[~noise], other[~noise])
    assert (first[noise] != other[noise]).any()


@BOTH
def test_noise_may_be_added_to_some_positions(some_states, config):
    table, mask = bench("tic_tac_toe").random_table(), np.arange(BATCH) % 3 == 0
    mixed, noisy, plain = (
        run(config, table, some_states, add_noise=a) for a in (mask, True, False)
    )
    assert (noisy.visit_counts != plain.visit_counts).any()
    for rows, expected in ((mask, noisy), (~mask, plain)):
        np.testing.assert_array_equal(mixed.visit_counts[rows], expected.visit_counts[rows])
        np.testing.assert_array_equal(mixed.action[rows], expected.action[rows])


# Exploration with PUCT.


def test_noise_acts_in_full_on_two_legal_actions():
    """For two actions the Dirichlet is a Beta: mean 1/2, variance 1 / (4 (2 alpha + 1))."""
    table = bench("tic_tac_toe").constant_table(0)
    table.logits[:, 7] = np.log(4)  # Of the legal 7 and 8: 0.8 and 0.2.
    states = repeat([1, 1, -1, -1, -1, 1, 1, 0, 0])  # A draw after either move.
    for alpha, fraction in ((0.3, 0.25), (5.0, 1.0)):
        config = PUCT(dirichlet_alpha=alpha, dirichlet_fraction=fraction)
        results = [run(config, table, states, seed=seed, add_noise=True) for seed in range(6)]
        priors = np.concatenate([result.prior for result in results])
        np.testing.assert_allclose(priors[:, [7, 8]].sum(axis=1), 1, atol=1e-5)
        mean, deviation = priors[:, 7].mean(), priors[:, 7].std()
        expected = fraction / np.sqrt(4 * (2 * alpha + 1))
        assert mean == pytest.approx((1 - fraction) * 0.8 + fraction * 0.5, abs=expected / 5)
        assert deviation == pytest.approx(expected, rel=0.1)


def test_temperature_draws_by_powers_of_visits():
    table, start = bench("tic_tac_toe").random_table(), repeat([0] * 9)
    temperature = np.resize(np.float32([0, 0.5, 1, 2]), BATCH)
    results = [run(PUCT(), table, start, seed=s, temperature=temperature) for s in range(10)]
    actions, visits = np.stack([r.action for r in results]), results[0].visit_counts[0]
    assert (actions[:, temperature == 0] == visits.argmax()).all() and (visits > 0).sum() >= 3
    for each in (0.5, 1, 2):
        counts = np.bincount(actions[:, temperature == each].ravel(), minlength=9)
        share = visits ** (1 / each) / (visits ** (1 / each)).sum()
        error = np.sqrt(counts.sum() * share * (1 - share))
        assert (abs(counts - counts.sum() * share) <= 5 * error).all()


# What a search depends on, and what it refuses.


@EACH
def test_a_search_does_not_rely_on_the_length_of_the_longest_game(tic_tac_toe, config):
    """A record whose `max_plies` is too small gives the same program."""
    states, key = init_batch(tic_tac_toe, 2), jax.random.key(0)
    evaluate = uniform_evaluator(tic_tac_toe)

    def program(game):
        search = make_search(dataclasses.replace(config, num_simulations=2), game, evaluate)
        return str(jax.make_jaxpr(search)(None, key, states))

    assert program(tic_tac_toe._replace(max_plies=1)) == program(tic_tac_toe)


def wrong_arguments(game):
    states, key = init_batch(game, 2), jax.random.key(0)
    for algorithm in ALGORITHMS.values():
        search = make_search(algorithm(), game, uniform_evaluator(game))
        for arguments, fragment in (
            ({"temperature": -0.5}, "temperature is -0.5: use 0 or more"),
            ({"temperature": float("nan")}, "temperature is nan: use 0 or more"),
            ({"temperature": jnp.array([1.0, jnp.nan])}, "nan]: use 0 or more"),
            ({"temperature": np.ones(3)}, "temperature has shape (3,): use one for all"),
            ({"add_noise": np.ones(3, bool)}, "add_noise has shape (3,): use one for all"),
        ):
            call = functools.partial(search, None, key, states, **arguments)
            yield from ((call, fragment), (jax.jit(call), fragment))


def wrong_settings():
    for make, name, value in [
        *((make, "num_simulations", 0) for make in (PUCT, Gumbel, UCT)),
        *((make, "engine", "mcts") for make in (PUCT, Gumbel, UCT)),
        *((PUCT, "dirichlet_fraction", share) for share in (1.5, -0.1)),
        *((PUCT, "dirichlet_alpha", 0.0), (PUCT, "c_puct", -1.0)),
        *((PUCT, "first_play_urgency", "win"), (PUCT, "algorithm", "gumbel")),
        *((Gumbel, "max_considered_actions", 0), (Gumbel, "gumbel_scale", -1.0)),
        *((Gumbel, "value_scale", -1.0), (Gumbel, "maxvisit_init", -1.0)),
        (UCT, "exploration", -1.0),
    ]:
        yield functools.partial(make, **{name: value}), f"search.{name} is {value!r}: use "


def wrong_engines(game):
    evaluate, known = uniform_evaluator(game), "use 'azjax' or 'mctx'"
    members = {"algorithm": "custom", "num_simulations": 1, "is_deterministic": True}
    custom = types.SimpleNamespace(**members, select=PUCT().select, engine="mcts")
    for build in (make_search, make_resumable):
        fast = functools.partial(build, PUCT(), game, evaluate, "fast")
        yield fast, f"the search's engine is 'fast': {known}"
        yield (
            functools.partial(build, custom, game, evaluate),
            f"the search's engine is 'mcts': {known}",
        )


def test_refusals(tic_tac_toe):
    assert UCT(exploration=0).exploration == 0
    assert_refused(*wrong_arguments(tic_tac_toe), *wrong_settings(), *wrong_engines(tic_tac_toe))
