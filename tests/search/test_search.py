"""PUCT against a reference implementation, and properties of all searches."""

import dataclasses
import functools
import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import misere_pile
from azjax.games.base import init_batch, play, random_action, where
from azjax.games.tic_tac_toe import State
from azjax.networks import MLPConfig, make_network
from azjax.search import ALGORITHMS, PUCT, UCT, Gumbel, make_search
from azjax.search.evaluators import exact_evaluator, network_evaluator, uniform_evaluator
from reference import Position, puct
from tables import BATCH, all_boards, bench, compiled, repeat, run

BOTH = pytest.mark.parametrize("config", [PUCT(), Gumbel()], ids=lambda config: config.algorithm)
CLEAR = 1e-5  # Choices with a smaller margin may differ in float32.


# The reference implementation.


def textbook(name, config, table, states):
    """The reference's visit counts `[B, A]`, values `[B]` and margins `[B]`."""
    rules, a_bench = importlib.import_module(f"reference.{name}"), bench(name)
    logits, values = table.logits.tolist(), table.values.tolist()

    def evaluate(position):
        row = a_bench.number(np.array(position.board), position.player)
        return logits[row], values[row]

    visits = np.zeros((len(states.board), a_bench.game.num_actions), int)
    found = []
    for row, (board, player) in enumerate(
        zip(states.board.tolist(), states.player.tolist(), strict=True)
    ):
        position = Position(tuple(board), player, False)
        settings = config.num_simulations, config.c_puct, config.first_play_urgency
        result = puct.search(rules, evaluate, position, *settings)
        for action, count in result.visit_counts.items():
            visits[row, action] = count
        found.append((result.value, result.margin))
    return visits, *np.array(found).T


def assert_equals_textbook(result, visits, values, margins, tolerance=1e-5):
    clear = margins > CLEAR
    assert clear.mean() > 0.95
    np.testing.assert_array_equal(result.visit_counts[clear], visits[clear])
    np.testing.assert_allclose(result.value[clear], values[clear], atol=tolerance)


@pytest.mark.parametrize(
    ("c_puct", "first_play_urgency"),
    [
        (1.25, "zero"),
        pytest.param(3.0, "parent", marks=pytest.mark.slow),
        pytest.param(0.5, "loss", marks=pytest.mark.slow),
    ],
)
def test_puct_equals_the_textbook_in_tic_tac_toe(some_states, c_puct, first_play_urgency):
    config = PUCT(c_puct=c_puct, first_play_urgency=first_play_urgency)
    table = bench("tic_tac_toe").random_table()
    result = run(config, table, some_states)
    assert_equals_textbook(result, *textbook("tic_tac_toe", config, table, some_states))


@pytest.mark.slow
def test_puct_equals_the_textbook_in_connect_four():
    game = bench("connect_four").game
    config = PUCT(first_play_urgency="parent", num_simulations=48)

    @jax.jit
    @jax.vmap
    def random_position(key):
        key_length, key_moves = jax.random.split(key)
        length = jax.random.randint(key_length, (), 0, 36)

        def move(ply, state):
            action = random_action(game, jax.random.fold_in(key_moves, ply), state)
            return game.step(state, action)[0]

        return jax.lax.fori_loop(0, length, move, game.init())

    states = jax.device_get(random_position(jax.random.split(jax.random.key(0), 80)))
    states = jax.tree.map(lambda leaf: leaf[~states.over][:40], states)
    table = bench("connect_four").random_table()
    result = run(config, table, states, name="connect_four")
    assert_equals_textbook(result, *textbook("connect_four", config, table, states))


def test_puct_equals_the_textbook_where_a_player_moves_twice():
    states = pile_states()
    table = bench("misere_pile").random_table()
    result = run(PUCT(), table, states, name="misere_pile")
    assert_equals_textbook(result, *textbook("misere_pile", PUCT(), table, states))


@pytest.mark.slow
def test_puct_equals_the_textbook_with_an_untrained_network(tic_tac_toe, solution, some_states):
    network = make_network(MLPConfig(hidden=(16,), head_hidden=8), tic_tac_toe)
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    draw = np.random.default_rng(0).normal
    variables = jax.tree.map(lambda leaf: np.float32(draw(size=leaf.shape)) / 2, shapes)
    evaluate = network_evaluator(tic_tac_toe, network)
    params = network.fold(variables)

    table = bench("tic_tac_toe").constant_table(0)
    rows = bench("tic_tac_toe").number(solution.states.board, solution.states.player)
    table.logits[rows], table.values[rows] = jax.jit(evaluate)(params, None, solution.states)
    assert table.values[rows].std() > 0.1 and table.logits[rows].std() > 0.1

    keys = jax.random.split(jax.random.key(0), BATCH)
    result = jax.jit(make_search(PUCT(), tic_tac_toe, evaluate))(params, keys, some_states)
    assert_equals_textbook(result, *textbook("tic_tac_toe", PUCT(), table, some_states), 1e-4)


def test_ties_go_to_the_lowest_action(solution):
    """With equal priors and values, all choices near the start are ties."""
    first = jax.tree.map(lambda leaf: leaf[:10], solution.states)
    table = bench("tic_tac_toe").constant_table(0)
    visits, _, margins = textbook("tic_tac_toe", PUCT(), table, first)
    assert (margins == 0).all()
    states = jax.tree.map(lambda leaf: np.resize(leaf, (BATCH, *leaf.shape[1:])), first)
    np.testing.assert_array_equal(run(PUCT(), table, states).visit_counts[:10], visits)


# Properties of both algorithms.


@BOTH
def test_visits_and_values_add_up(some_states, config):
    """A root's value is the mean of its evaluation and the returns of its actions."""
    table = bench("tic_tac_toe").random_table(1)
    result = run(config, table, some_states)
    _, raw = bench("tic_tac_toe").evaluate(table, None, some_states)
    assert (result.visit_counts.sum(axis=1) == config.num_simulations).all()
    assert (abs(result.q_values) <= 1).all()
    assert (result.q_values[result.visit_counts == 0] == 0).all()
    returned = raw + (result.visit_counts * result.q_values).sum(axis=1)
    np.testing.assert_allclose(result.value, returned / (config.num_simulations + 1), atol=1e-5)


@BOTH
def test_policy_value_is_the_mean_value_of_its_actions(some_states, config):
    """Two visits reach at most two actions; the others are left out."""
    config = dataclasses.replace(config, num_simulations=2)
    result = run(config, bench("tic_tac_toe").random_table(), some_states)
    for row in range(BATCH):
        visited = np.flatnonzero(result.visit_counts[row])
        weights, q_values = result.action_weights[row, visited], result.q_values[row, visited]
        expected = (weights * q_values).sum() / weights.sum()
        np.testing.assert_allclose(result.policy_value[row], expected, atol=1e-6)


def test_policy_value_without_visits_is_the_root_value(some_states):
    found = run(Gumbel(), bench("tic_tac_toe").random_table(), some_states)
    blind = found._replace(visit_counts=np.zeros_like(found.visit_counts))
    np.testing.assert_array_equal(blind.policy_value, found.value)


@BOTH
@pytest.mark.parametrize("explore", [False, True])
def test_weights_are_a_distribution_over_the_legal_actions(some_states, config, explore):
    result = run(config, bench("tic_tac_toe").random_table(), some_states, add_noise=explore)
    legal = (some_states.board == 0) & ~some_states.over[:, None]
    np.testing.assert_allclose(result.action_weights.sum(axis=1), 1, atol=1e-5)
    assert (result.action_weights >= 0).all()
    assert (result.action_weights[~legal] == 0).all()
    assert (result.visit_counts[~legal] == 0).all()
    assert legal[np.arange(BATCH), result.action].all()


@BOTH
@pytest.mark.parametrize("value", [1.0, -1.0, None])
def test_illegal_actions_are_never_visited_at_any_depth(some_states, config, value):
    """Especially where every legal action seems lost (`value` 1, for the opponent)."""
    a_bench = bench("tic_tac_toe")
    table = a_bench.random_table() if value is None else a_bench.constant_table(value)
    tree = run(config, table, some_states).tree
    boards, over = tree.embeddings.board, tree.embeddings.over
    illegal = (boards != 0) & ~over[..., None]
    assert (tree.children_visits[~over].sum(axis=-1) > 0).any()  # There is a tree.
    assert (tree.children_visits[over] == 0).all()  # Nothing grows below a finished game.
    assert (tree.children_visits[illegal] == 0).all()


@BOTH
def test_a_finished_game_in_the_tree_has_the_value_of_its_result(config):
    """An evaluator that returns 0.7 for finished games has no effect."""
    last_move_draws = [1, -1, 1, 1, -1, -1, -1, 1, 0]
    last_move_wins = [1, -1, 1, -1, 1, -1, -1, 1, 0]
    states = repeat(last_move_draws, last_move_wins)
    result = run(config, bench("tic_tac_toe").constant_table(0.7), states)
    n = config.num_simulations
    np.testing.assert_array_equal(result.visit_counts[:, 8], n)
    np.testing.assert_allclose(result.q_values[:2, 8], [0, 1], atol=1e-6)
    np.testing.assert_allclose(result.value[:2], [0.7 / (n + 1), (0.7 + n) / (n + 1)], atol=1e-6)
    finished = result.tree.embeddings.over
    assert (result.tree.node_values[finished] == 0).all()


@BOTH
@pytest.mark.parametrize(
    ("board", "action"),
    [([1, 1, 0, -1, -1, 0, 0, 0, 0], 2), ([1, 1, 0, -1, -1, 0, 1, 0, 0], 5)],
    ids=["X", "O"],
)
def test_a_win_is_found_by_both_players(config, board, action):
    """With the uniform evaluator."""
    result = run(config, bench("tic_tac_toe").constant_table(0), repeat(board))
    assert result.action[0] == action
    assert result.q_values[0, action] == 1
    assert result.value[0] > 0.3


@pytest.mark.parametrize(
    ("board", "action"),
    [([1, 0, 0, -1, -1, 0, 0, 0, 1], 5), ([1, 1, 0, 0, -1, 0, 0, 0, 0], 2)],
    ids=["X", "O"],
)
def test_a_threat_is_blocked_by_both_players(board, action):
    result = run(PUCT(), bench("tic_tac_toe").constant_table(0), repeat(board))
    assert result.action[0] == action
    others = np.flatnonzero((np.array(board) == 0) & (np.arange(9) != action))
    assert (result.q_values[0, others] < result.q_values[0, action]).all()


@BOTH
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


@BOTH
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


@pytest.mark.slow_after(2)
@BOTH
@pytest.mark.parametrize("explore", [False, True])
def test_rows_do_not_mix(some_states, config, explore):
    """Rows have different legal actions; reversing the batch keeps each row's result."""
    table = bench("tic_tac_toe").random_table()
    search, temperature = compiled("tic_tac_toe", config, explore), np.zeros(BATCH, np.float32)
    keys = jax.random.split(jax.random.key(0), BATCH)
    result = search(table, keys, some_states, temperature)
    backwards = jax.tree.map(lambda leaf: leaf[::-1], some_states)
    reverse = search(table, keys[::-1], backwards, temperature)
    for ours, theirs in zip(jax.tree.leaves(result), jax.tree.leaves(reverse), strict=True):
        np.testing.assert_array_equal(ours, theirs[::-1])


@BOTH
def test_only_exploration_is_random(some_states, config):
    """Keys have an effect with `explore`, and none without it at temperature 0."""
    table = bench("tic_tac_toe").random_table()
    for explore in (False, True):
        results = [run(config, table, some_states, seed=s, add_noise=explore) for s in (0, 0, 1)]
        first, again, other = (np.c_[result.visit_counts, result.action] for result in results)
        np.testing.assert_array_equal(first, again)
        assert (first == other).all() != explore


@BOTH
def test_a_finished_root_does_not_affect_other_rows(some_states, config):
    table = bench("tic_tac_toe").random_table()
    over = np.arange(BATCH) % 2 == 0
    finished = repeat([1, 1, 1, -1, -1, 0, 0, 0, 0])
    mixed = jax.device_get(jax.jit(where)(over, finished, some_states))
    result, undisturbed = run(config, table, mixed), run(config, table, some_states)
    np.testing.assert_array_equal(result.visit_counts[~over], undisturbed.visit_counts[~over])
    np.testing.assert_array_equal(result.action[over], 0)
    assert np.isfinite(result.action_weights).all()


@BOTH
def test_a_restarted_game_is_searched_as_unfinished(tic_tac_toe, config):
    """If a restart left `over` set, the search would not expand anything."""
    nearly_over = repeat([1, 1, 0, -1, -1, 0, 0, 0, 0])
    fresh = jax.device_get(init_batch(tic_tac_toe, BATCH))

    @jax.jit
    def win_and_restart(states):
        states = jax.vmap(lambda state: play(tic_tac_toe, state, 2).state)(states)
        return where(jax.vmap(tic_tac_toe.is_over)(states), fresh, states)

    restarted = win_and_restart(nearly_over)
    table = bench("tic_tac_toe").random_table()
    result, expected = run(config, table, restarted), run(config, table, fresh)
    np.testing.assert_array_equal(result.visit_counts, expected.visit_counts)
    np.testing.assert_array_equal(result.tree.embeddings.over[:, 0], False)
    visited = result.tree.children_visits[:, 0] > 0
    assert (result.tree.children_discounts[:, 0][visited] == -1).all()
    assert (result.q_values[0] != 0).sum() > 1


@BOTH
@pytest.mark.slow
def test_with_the_exact_evaluator_every_choice_is_optimal(tic_tac_toe, solution, config):
    """All 4,520 decision states in one call."""
    config = dataclasses.replace(config, num_simulations=16)
    search = make_search(config, tic_tac_toe, exact_evaluator(tic_tac_toe, solution))
    keys = jax.random.split(jax.random.key(0), len(solution.decisions))
    action = jax.jit(lambda keys, states: search(None, keys, states).action)
    action = action(keys, solution.decision_states)
    assert len(action) == 4520
    assert solution.optimal[solution.decisions, action].all()


# Exploration with PUCT.

TWO_LEFT = [1, 1, -1, -1, -1, 1, 1, 0, 0]  # A draw after either move.
SKEWED = np.where(np.arange(9) == 7, np.log(4), 0)  # Of the legal 7 and 8: 0.8 and 0.2.


def searches_with_noise(config):
    """Searches of `TWO_LEFT` with a skewed prior, 4,096 times in all."""
    table = bench("tic_tac_toe").constant_table(0)
    table.logits[:] = SKEWED
    states = repeat(TWO_LEFT)
    return [run(config, table, states, seed=seed, add_noise=True) for seed in range(16)]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("alpha", "fraction"), [(0.3, 0.25), (5.0, 1.0)])
def test_noise_acts_in_full_on_two_legal_actions(alpha, fraction):
    """For two actions the Dirichlet is a Beta: mean 1/2, variance 1 / (4 (2 alpha + 1))."""
    config = dataclasses.replace(PUCT(), dirichlet_alpha=alpha, dirichlet_fraction=fraction)
    results = searches_with_noise(config)
    logits = np.concatenate([result.tree.children_prior_logits[:, 0] for result in results])
    priors = np.asarray(jax.nn.softmax(logits))
    np.testing.assert_allclose(priors[:, [7, 8]].sum(axis=1), 1, atol=1e-5)
    mean, deviation = priors[:, 7].mean(), priors[:, 7].std()
    expected = fraction / np.sqrt(4 * (2 * alpha + 1))
    assert mean == pytest.approx((1 - fraction) * 0.8 + fraction * 0.5, abs=expected / 12)
    assert deviation == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_temperature_draws_by_powers_of_visits(temperature):
    table, start = bench("tic_tac_toe").random_table(), repeat([0] * 9)
    results = [run(PUCT(), table, start, seed=s, temperature=temperature) for s in range(16)]
    counts = np.bincount(np.concatenate([r.action for r in results]), minlength=9)
    visits = results[0].visit_counts[0].astype(float)
    share = visits ** (1 / temperature) / (visits ** (1 / temperature)).sum()
    draws = counts.sum()
    assert (visits > 0).sum() >= 3
    assert (abs(counts - draws * share) <= 5 * np.sqrt(draws * share * (1 - share))).all()


def test_each_row_has_its_temperature(some_states):
    table = bench("tic_tac_toe").random_table()
    cold = np.arange(BATCH) % 2 == 0
    result = run(PUCT(), table, some_states, temperature=np.where(cold, 0.0, 1.0))
    most_visited = result.visit_counts.argmax(axis=1)
    assert (result.action[cold] == most_visited[cold]).all()
    assert (result.action[~cold] != most_visited[~cold]).any()


def test_puct_learns_from_visit_shares(some_states):
    result = run(PUCT(), bench("tic_tac_toe").random_table(), some_states)
    np.testing.assert_allclose(result.action_weights, result.visit_counts / 32, atol=1e-6)


@pytest.mark.slow_after(1)
@BOTH
def test_noise_may_be_added_to_some_positions(some_states, config):
    table = bench("tic_tac_toe").random_table()
    mask = np.arange(BATCH) % 3 == 0
    search = make_search(config, bench("tic_tac_toe").game, bench("tic_tac_toe").evaluate)
    keys, temperature = jax.random.split(jax.random.key(0), BATCH), np.zeros(BATCH, np.float32)
    mixed = jax.jit(search)(table, keys, some_states, temperature, mask)
    with_noise, without = (run(config, table, some_states, add_noise=a) for a in (True, False))
    assert (with_noise.visit_counts != without.visit_counts).any()
    for found, rows, expected in ((mixed, mask, with_noise), (mixed, ~mask, without)):
        np.testing.assert_array_equal(found.visit_counts[rows], expected.visit_counts[rows])
        np.testing.assert_array_equal(found.action[rows], expected.action[rows])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"temperature": -0.5}, "temperature is -0.5: use 0 or more"),
        ({"temperature": float("nan")}, "temperature is nan: use 0 or more"),
        ({"temperature": jnp.array([1.0, jnp.nan])}, r"temperature is .*nan\]: use 0 or more"),
        ({"temperature": np.ones(3)}, r"temperature has shape \(3,\): use one .* batch of 2"),
        ({"add_noise": np.ones(3, bool)}, r"add_noise has shape \(3,\): use one .* batch of 2"),
    ],
)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_wrong_arguments_of_a_search_are_rejected(algorithm, arguments, message, tic_tac_toe):
    search = make_search(ALGORITHMS[algorithm](), tic_tac_toe, uniform_evaluator(tic_tac_toe))
    states, key = init_batch(tic_tac_toe, 2), jax.random.key(0)
    run_search = functools.partial(search, None, key, states, **arguments)
    for call in (run_search, jax.jit(run_search)):
        with pytest.raises(ValueError, match=message):
            call()


# Settings.


@BOTH
def test_settings_may_be_integers(some_states, config):
    """Some arguments of `mctx` fail on integers, a share of noise of 0 among them."""
    numbers = {
        "puct": {"dirichlet_fraction": 0, "dirichlet_alpha": 1, "c_puct": 1},
        "gumbel": {"gumbel_scale": 0, "value_scale": 1, "maxvisit_init": 50},
    }
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), BATCH))
    table = bench("tic_tac_toe").random_table()

    def shapes(config):
        search = make_search(config, bench("tic_tac_toe").game, bench("tic_tac_toe").evaluate)
        search = functools.partial(search, temperature=0, add_noise=True)
        return jax.eval_shape(search, table, keys, some_states)

    assert shapes(dataclasses.replace(config, **numbers[config.algorithm])) == shapes(config)


@pytest.mark.parametrize(
    ("make", "setting"),
    [
        (PUCT, {"num_simulations": 0}),
        (PUCT, {"dirichlet_fraction": 1.5}),
        (PUCT, {"dirichlet_fraction": -0.1}),
        (PUCT, {"dirichlet_alpha": 0.0}),
        (PUCT, {"c_puct": -1.0}),
        (PUCT, {"first_play_urgency": "win"}),
        (PUCT, {"algorithm": "gumbel"}),
        (Gumbel, {"num_simulations": 0}),
        (Gumbel, {"max_considered_actions": 0}),
        (Gumbel, {"gumbel_scale": -1.0}),
        (Gumbel, {"value_scale": -1.0}),
        (Gumbel, {"maxvisit_init": -1.0}),
        (UCT, {"num_simulations": 0}),
        (UCT, {"exploration": -1.0}),
    ],
)
def test_bad_settings_are_rejected(make, setting):
    name, value = next(iter(setting.items()))
    with pytest.raises(ValueError, match=f"search.{name} is {value!r}: use "):
        make(**setting)
