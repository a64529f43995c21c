"""Every violation of the contract of games is refused in one sentence."""

import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
import guard
from azjax import games
from azjax.games import base, from_pgx, solver
from azjax.games.check import check_game
from azjax.games.square import with_pass
from azjax.players import random_agent
from azjax.players.arena import play_match
from azjax.proof.exhaustive import explore
from misere_pile import NIM
from pairs import pair
from refusals import assert_refused

SQUARE = games.make("tic_tac_toe")
CELLS = SQUARE.symmetries.cells
PAIR, OTHELLO = games.make("mnk:1x3x2"), games.make("othello:4")
SWAP = np.array([range(9), [1, 0, *range(2, 9)]])  # Exchanges two cells.
GRID = np.arange(16).reshape(4, 4)
QUARTERS = np.stack([np.rot90(GRID, k).ravel() for k in range(4)])
dice = jax.jit(lambda seed: jax.random.bernoulli(jax.random.PRNGKey(seed)))


def step_of(game, change):
    """Wraps `step` and changes its result by `change(state, action, after, reward)`."""

    def step(state, action):
        return change(state, action, *game.step(state, action))

    return step


def nim_step(change):
    return {"step": step_of(NIM, change)}


REWARDS = {  # Outside the contract.
    "half": nim_step(lambda s, a, t, r: (t, r / 2)),
    "double": nim_step(lambda s, a, t, r: (t, 2 * r)),
    "early": nim_step(lambda s, a, t, r: (t, jnp.where((t != s).any(), 1.0, 0.0))),
}


def square(cells, actions):
    return {"symmetries": base.Symmetries(cells, actions)}


def without_the_corner(state, action, after, reward):
    return base.where(action != 0, after, state), jnp.where(action != 0, reward, 0.0)


def punishes_the_first_cell(state, action, after, reward):
    return after, jnp.where(after.board[0] == 1, -reward, reward)


def labelled(outcomes=((-1, 1, -2), (-1, -1, -1)), class_of=(0, 1), apart=(), left=(2, 4)):
    """Two positions of Nim: with two stones left, and with four."""
    states = np.array([[stones, 0] for stones in left], np.int8)
    classes = ("few", "many"), np.array(class_of), apart
    return {"positions": lambda: base.Positions(states, np.array(outcomes), *classes)}


def no_move_at_four(state):
    return (jnp.arange(3) < state[0]) & (state[0] != 4)


WEAK = {"init": lambda: jnp.int32(7), "step": lambda s, a: (jnp.where(a > 0, 6, 7), 0.0)}
NARROW = {"observe": lambda s, encoding: jnp.zeros((1, 7 if encoding == "unary" else 3, 2), bool)}
STUCK = nim_step(lambda s, a, t, r: (jnp.where(s[0] == 4, s, t), r))
BACKWARD = nim_step(lambda s, a, t, r: (jnp.where(a < 0, s - 1, t), r))
NO_CORNER = {"legal_actions": lambda s: SQUARE.legal_actions(s).at[0].set(False)}
NO_CORNER |= {"step": step_of(SQUARE, without_the_corner)}
UNCHANGED = (
    "on action -2, violates the contract: an illegal action, or one in a finished game, changes"
)
BROKEN_NIM = [  # A change of its record, and the rule that the change violates.
    ({"encodings": ()}, "encodings is a tuple of one name or more"),
    ({"max_plies": None}, "max_plies is an integer above 0"),
    ({"init": lambda key: None}, "init raises TypeError: ... missing 1 required positional"),
    ({"init": lambda: jax.random.key(0)}, "a state has no random key"),
    (nim_step(lambda s, a, t, r: (t, r * dice(a))), "step draws no random numbers"),
    ({"step": lambda s, a: NIM.step(s, a)[0]}, "the next state and the reward, not int8[2]"),
    (nim_step(lambda s, a, t, r: (t + jnp.int32(0), r)), "step returns a state like that of"),
    (WEAK, "is int32[], not int32[] (weak: [True])"),
    ({"num_actions": 4}, "legal_actions is bool[4], not bool[3]"),
    (NARROW, "'binary' is [1, 7, C] as in the first one, not bool[1, 3, 2]"),
    ({"observe": lambda s, encoding: s}, "'unary' is bool or float32[H, W, C], not int8[2]"),
    ({"init": lambda: jnp.array([7, 1], jnp.int8)}, "player 0 is to move at the start"),
    (STUCK | {"legal_actions": no_move_at_four}, "an unfinished game has a legal action"),
    (BACKWARD, f"nim at the start, {UNCHANGED}"),
    (nim_step(lambda s, a, t, r: (t, jnp.where(a < 0, 1.0, r))), UNCHANGED),
    (REWARDS["half"], "rewards are -1, 0 or 1"),
    (REWARDS["early"], "on action 0, violates the contract: only the move that ends a"),
    ({"player": lambda s: s[1] % 3}, "the player to move is 0 or 1"),
    ({"display": base.Display(lambda s: 1 / 0)}, "render raises ZeroDivisionError"),
    ({"display": base.Display(name_actions=lambda s: ["1"])}, "name_actions names every action"),
    ({"display": base.Display(draw=lambda s, **look: "nim")}, "draw returns a drawing.Drawing"),
    ({"positions": lambda: None}, "positions returns Positions"),
    (labelled(apart=("few", "many")), "class_of and apart name classes, some are not apart"),
    (labelled(left=(1, 4)), "each of its positions has two or more legal actions"),
    (labelled(outcomes=[(-1, 1, 0), (1, 1, 1)]), "are -2 where illegal, and -1, 0 or 1"),
    (labelled(outcomes=[(-1, 0, -2), (1, 1, 1)]), "that ends the game is its reward"),
]
BROKEN_BOARDS = [
    (SQUARE, square(CELLS[:, :4], CELLS), "the cells of the symmetries are integers [G, 9], not "),
    (SQUARE, square(CELLS.tolist(), CELLS), "the cells and actions of the symmetries are arrays"),
    (SQUARE, square(CELLS[::-1], CELLS), "the first of the symmetries is the identity"),
    (SQUARE, square(CELLS[[0, 0]], CELLS[[0, 0]]), "no two symmetries are the same"),
    (SQUARE, square(CELLS[:2], CELLS[:2]), "the composition of two symmetries is a symmetry"),
    (OTHELLO, {"symmetries": with_pass(QUARTERS)}, "symmetry 1 keeps the planes 'ab"),
    (SQUARE, square(CELLS, CELLS[[0] * 8]), "permute the planes of 'absolute' like their cells"),
    (SQUARE, square(SWAP, SWAP), "symmetries keep the turn, the end and the reward"),
    (PAIR, {"step": step_of(PAIR, punishes_the_first_cell)}, "keep the turn, the end and the rew"),
    (SQUARE, NO_CORNER, "the contract: symmetries take legal actions to legal actions"),
    (games.make("mnk:1x3x3"), {"max_plies": 2}, "a game lasts at most max_plies, ... is 2"),
]


def throws_twice(state, action, after, reward):
    again = (state.dice == 0) & (action == 2)
    return after._replace(dice=jnp.where(again, 0, after.dice).astype(jnp.int8)), reward


DICE = pair("dice_pile").game
FIVE = DICE.init()._replace(stones=jnp.int8(5))
BROKEN_DICE = [
    ({"chance": lambda s: DICE.chance(s) * 0.9}, "sum to 1"),
    (
        {"chance": lambda s: (DICE.chance(s) > 0) * jnp.eye(3)[1]},
        "outcomes of chance are the legal",
    ),
    ({"init": lambda: FIVE}, "first throw does not end"),
    ({"step": step_of(DICE, throws_twice)}, "at most once in a row"),
    ({"chance": lambda s: DICE.chance(s)[:2]}, "chance is float32[3]"),
]


def test_sound_games_satisfy_the_contract():
    """With Breakthrough, whose symmetries are not those of cells."""
    sound = [DICE, *(pair(name).game for name in ("einstein:3", "race"))]
    sound += [games.make("breakthrough:4x2"), NIM._replace(**labelled())]
    with guard.sharing():
        for game in sound:
            check_game(game, 8)


def test_every_violation_is_detected():
    broken = [(NIM, *row) for row in BROKEN_NIM] + BROKEN_BOARDS
    broken += [(DICE, *row) for row in BROKEN_DICE]
    calls = [functools.partial(check_game, g._replace(**change), 8) for g, change, _ in broken]
    with guard.sharing():
        rules = [rule for *_, rule in broken]
        assert_refused(*zip(calls, rules, strict=True), error=AssertionError)


def test_who_counts_results_refuses_rewards_outside_the_contract(tmp_path):
    """`azjax.train` checks the whole contract first; nothing is left behind."""
    key, rows = jax.random.key(0), []
    for number, change in enumerate(REWARDS.values()):
        game = NIM._replace(name="odd", encodings=("unary",), **change)
        agent = random_agent(game)
        explored = explore(game, lambda s: np.zeros(len(s), int), 0, tmp_path / f"{number}")
        said = "odd gives a reward before the end of a game, or one other than -1, 0 and 1"
        rows += [
            (functools.partial(play_match, game, agent, agent, 32, key), said),
            (functools.partial(solver.solve, game), said),
            (functools.partial(list, explored), said),
            (functools.partial(azjax.train, game, tmp_path / "run"), "violates the contract: "),
        ]
    with guard.sharing():
        assert_refused(*rows)
    assert not (tmp_path / "run").exists()


def test_games_that_pgx_lacks_are_refused(monkeypatch):
    """Also, pgx is imported only when one of its games is named."""
    assert_refused(
        (lambda: games.make("pgx:backgammon"), "not one of the games of pgx for two players"),
        (lambda: games.make("pgx:go_5x6"), "pgx:go_5x6"),
    )
    monkeypatch.setitem(sys.modules, "pgx", None)
    with pytest.raises(ValueError, match=r"needs the package pgx: .*pip install pgx"):
        from_pgx.make.__wrapped__("tic_tac_toe")
