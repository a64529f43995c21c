"""The games of pgx have the rules of the same games in azjax."""

import sys

import jax
import numpy as np
import pytest

import guard
from azjax import games
from azjax.games import from_pgx
from refusals import assert_refused


@pytest.fixture(autouse=True)
def _shared():
    """The games of pgx are jitted functions of their own."""
    with guard.sharing():
        yield


def test_tic_tac_toe_has_the_same_rules():
    """And the same planes, along random moves."""
    game, other = games.make("tic_tac_toe"), games.make("pgx:tic_tac_toe")
    rng, plies = np.random.default_rng(0), 0

    def observer(game):
        def see(state):
            planes = game.observe(state, "relative")
            return game.is_over(state), game.player(state), game.legal_actions(state), planes

        return jax.jit(jax.vmap(see)), jax.jit(jax.vmap(game.step))

    (see, step), (see_other, step_other) = map(observer, (game, other))
    states, others = (
        jax.tree.map(lambda leaf: np.stack([leaf] * 64), each.init()) for each in (game, other)
    )
    while True:
        seen = over, _, legal, _ = see(states)
        jax.tree.map(np.testing.assert_array_equal, seen, see_other(others))
        if over.all():
            break
        actions = np.where(legal, rng.random(legal.shape), -1).argmax(axis=1).astype(np.int32)
        (states, reward), (others, same) = step(states, actions), step_other(others, actions)
        np.testing.assert_array_equal(reward, same)
        plies += 1
    assert plies > 8


def test_go_has_its_own_coordinates():
    """The lower left is a1, and the letter i is skipped."""
    state = np.zeros((9, 9, 2), bool)  # In place of a state, its planes.
    state[8, 8, 0] = True
    display = from_pgx._go_display(9, lambda state: state, lambda state: 0)
    names = display.name_actions(state)
    assert (names[0], names[8], *names[-2:]) == ("a9", "j9", "j1", "pass")
    first, *_, last = display.render(state).splitlines()
    assert (first, last) == ("  a b c d e f g h j", "1 . . . . . . . . X")


def test_refusals(monkeypatch):
    """Also, pgx is imported only when one of its games is named."""
    assert_refused(
        (
            lambda: games.make("pgx:backgammon"),
            "not one of the games of pgx for two players without",
        ),
        (lambda: games.make("pgx:go_5x6"), "pgx:go_5x6"),
    )
    monkeypatch.setitem(sys.modules, "pgx", None)
    with pytest.raises(ValueError, match=r"needs the package pgx: .*pip install pgx"):
        from_pgx.make.__wrapped__("tic_tac_toe")
