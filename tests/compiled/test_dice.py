"""Games with dice against references in plain Python, and against published rules."""

import functools
import pathlib
import runpy

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import guard
from azjax import games
from azjax.games import backgammon, solver
from azjax.games.base import init_batch, play, random_action, where
from azjax.games.check import check_game
from reference import Position, dice, sign

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples/race.py"
PLIES, COUNT = 320, 6


@functools.cache
def race():
    return runpy.run_path(str(EXAMPLE))["make"]()


def read_einstein(stones, player, die, over):
    return Position((tuple(stones.tolist()), int(die)), int(player), bool(over))


def read_race(steps, player, die):
    return Position((*steps.tolist(), int(die)), int(player), bool(max(steps) >= 8))


def read_backgammon(checkers, player, left, plies):
    first, second = checkers.tolist()
    points = tuple(a - b for a, b in zip(first[1:25], second[24:0:-1], strict=True))
    thrown = tuple(int(die) for die in np.repeat(np.arange(1, 7), left))
    off = first[0], second[0]
    board = points, (first[25], second[25]), off, thrown, int(plies)
    return Position(board, int(player), 15 in off or plies == 2000)


GAMES = {
    "einstein:3": (lambda: games.make("einstein:3"), dice.EinStein(3), read_einstein),
    "einstein": (lambda: games.make("einstein"), dice.EinStein(5), read_einstein),
    "race": (race, dice.Race(), read_race),
    "backgammon": (lambda: games.make("backgammon"), dice.Backgammon(), read_backgammon),
}


@functools.cache
def walk(name, plies=PLIES, count=COUNT):
    """Random games: states `[S, ...]`, and for each the legal moves, chances and all steps."""
    game = GAMES[name][0]()

    def move(states, key):
        keys = jax.random.split(key, count)
        actions = jax.vmap(functools.partial(random_action, game))(keys, states)
        after = jax.vmap(game.step)(states, actions)[0]
        return where(jax.vmap(game.is_over)(states), init_batch(game, count), after), states

    def examine(state):
        steps = jax.vmap(lambda action: play(game, state, action))(jnp.arange(game.num_actions))
        return game.legal_actions(state), game.chance(state), steps

    @jax.jit
    def run(key):
        states = jax.lax.scan(move, init_batch(game, count), jax.random.split(key, plies))[1]
        states = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), states)
        return states, *jax.lax.map(examine, states)

    return jax.device_get(run(jax.random.key(0)))


@pytest.mark.compiles(1)
@pytest.mark.parametrize("name", GAMES)
def test_the_rules_equal_those_in_plain_python(name):
    states, legal, chance, steps = walk(name)
    _, rules, read = GAMES[name]
    for s in range(len(legal)):
        before = read(*(leaf[s] for leaf in states))
        actions = np.flatnonzero(legal[s])
        assert actions.tolist() == rules.legal(before)
        odds = rules.chance(before)
        assert {a: pytest.approx(float(p)) for a, p in odds.items()} == {
            a: chance[s, a] for a in np.flatnonzero(chance[s])
        }
        for action in actions:
            after, reward = rules.play(before, action)
            assert read(*(leaf[s, action] for leaf in steps.state)) == after
            assert steps.reward[s, action] == reward
            assert steps.discount[s, action] == (0 if after.over else sign(before, after))
    start = read(*(leaf[0] for leaf in states))
    assert start == rules.start() and steps.reward.any()


@pytest.mark.compiles(1)
def test_backgammon_plays_as_many_dice_as_possible():
    """Random positions with few checkers, where the rule excludes moves more often."""
    random, size, (_, rules, read) = np.random.default_rng(0), 3000, GAMES["backgammon"]
    checkers = np.zeros((size, 2, 26), np.int8)
    for row in checkers:
        points = random.permutation(24)[:12] + 1
        row[0, points[:3]], row[1, 25 - points[3:]] = 1, random.integers(1, 4, 9)
        row[0, 0], row[1, 0] = 12, 15 - row[1].sum()
        row[0, 25], row[0, 0] = (2, 10) if random.random() < 0.1 else (0, 12)
    left = np.zeros((size, 6), np.int8)
    left[np.arange(size), random.integers(0, 6, size)] += 1
    left[np.arange(size), random.integers(0, 6, size)] += 1
    left[left == 2] = 4
    states = backgammon.State(checkers, np.zeros(size, np.int8), left, np.ones(size, np.int16))
    legal = np.asarray(jax.jit(jax.vmap(backgammon.make().legal_actions))(states))
    excluded = {1: 0, 2: 0}  # Positions with excluded moves, by the number of dice to play.
    for row, actions in zip(zip(*states, strict=True), legal, strict=True):
        position = read(*row)
        *sides, thrown, _ = position.board
        assert np.flatnonzero(actions).tolist() == rules.legal(position)
        movable = sum(len(rules.movable(tuple(sides), 0, die)) for die in set(thrown))
        if actions.sum() < movable:
            excluded[rules.longest(tuple(sides), 0, thrown)] += 1
    assert min(excluded.values()) > 20


@pytest.mark.parametrize(
    ("name", "positions", "decisions", "value"),
    [("einstein:3", 145_597, 92_892, 0.39917695), ("race", 486, 125, 4865 / 23328)],
)
def test_small_games_have_the_values_of_a_plain_recursion(name, positions, decisions, value):
    game, rules, read = GAMES[name][0](), *GAMES[name][1:]
    with guard.sharing():
        check_game(game, 8)
        solution = solver.solve(game)
    assert (solution.num_states, len(solution.decisions)) == (positions, decisions)
    assert positions <= game.most_positions and len(solution.layers) - 2 <= game.max_plies
    assert solution.values[0] == pytest.approx(value)
    rows = np.arange(0, positions, 1 + positions // 3000)
    listed = zip(*(leaf[rows] for leaf in solution.states), strict=True)
    expected = [float(dice.expectation(rules, read(*leaves))) for leaves in listed]
    np.testing.assert_allclose(solution.values[rows], expected, atol=1e-6)
