"""Many moves of the games of pgx: the contract, and the rules and pictures of our games."""

import jax
import numpy as np
import pytest

from azjax import games
from azjax.games.check import check_game
from side_by_side import assert_same_rules

pytest.importorskip("pgx")

SAME = {"connect_four": "connect_four", "othello": "othello", "hex": "hex_swap"}


def test_every_game_satisfies_the_contract():
    for name in ("tic_tac_toe", "go_3x3", "connect_four"):
        check_game(games.make(f"pgx:{name}"), num_games=16)


@pytest.mark.parametrize("name", SAME)
def test_games_of_both_libraries_have_the_same_rules(name):
    assert_same_rules(name, SAME[name])


@pytest.mark.parametrize("name", ["animal_shogi", "gardner_chess"])
def test_games_of_many_moves_satisfy_the_contract(name):
    """`check_game` would take hours for all actions; here every position has an illegal one."""
    game, count, rng = games.make(f"pgx:{name}"), 16, np.random.default_rng(0)
    states = jax.tree.map(lambda leaf: np.stack([leaf] * count), game.init())
    see = jax.jit(jax.vmap(lambda s: (game.is_over(s), game.player(s), game.legal_actions(s))))
    step = jax.jit(jax.vmap(game.step))
    over, player, legal = map(np.asarray, see(states))
    for _ in range(game.max_plies):
        assert (legal.any(axis=1) ^ over).all()
        good, bad = (
            np.where(mask, rng.random(legal.shape), -1).argmax(axis=1) for mask in (legal, ~legal)
        )
        same, nothing = step(states, bad)
        jax.tree.map(np.testing.assert_array_equal, same, states)
        states, reward = step(states, good)
        before, mover = over, player
        over, player, legal = map(np.asarray, see(states))
        assert not np.any(nothing) and np.isin(reward, (-1, 0, 1)).all()
        assert (over | (np.asarray(reward) == 0)).all() and (before | (player == 1 - mover)).all()
    assert over.all()


def test_moves_of_chess_are_named_by_their_squares():
    """The name of a move is its origin and its target."""
    game, rng = games.make("pgx:gardner_chess"), np.random.default_rng(0)
    step, state = jax.jit(game.step), game.init()

    def squares(state):
        lines = [line.split()[1:] for line in game.display.render(state).splitlines()[:-1]]
        return {f"{'abcde'[f]}{5 - r}": lines[r][f] for r in range(5) for f in range(5)}

    for ply in range(40):
        if game.is_over(state):
            break
        action = int(rng.choice(np.flatnonzero(game.legal_actions(state))))
        name, before = game.display.name_actions(state)[action], squares(state)
        state, _ = step(state, action)
        after = squares(state)
        assert before[name[:2]].isupper() == (ply % 2 == 0) == after[name[2:4]].isupper()
        assert after[name[:2]] == "."
        assert len(name) > 4 or after[name[2:4]] == before[name[:2]]
    assert ply > 5
