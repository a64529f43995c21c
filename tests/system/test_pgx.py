"""Many moves of the games of pgx: the contract, and the rules and pictures of our games."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import games
from azjax.games.check import check_game
from side_by_side import assert_same_rules

pytest.importorskip("pgx")

SAME = {"connect_four": "connect_four", "othello": "othello", "hex": "hex_swap"}
LARGE = ["animal_shogi", "gardner_chess"]
OPTIMISED = {"xla_backend_optimization_level": 2, "xla_llvm_disable_expensive_passes": False}


def test_every_game_satisfies_the_contract():
    for name in ("tic_tac_toe", "go_3x3", "connect_four"):
        check_game(games.make(f"pgx:{name}"), num_games=16)


@pytest.mark.parametrize("name", SAME)
def test_games_of_both_libraries_have_the_same_rules(name):
    assert_same_rules(name, SAME[name])


@pytest.mark.parametrize("name", LARGE)
def test_games_of_many_moves_satisfy_the_contract(name):
    """`check_game` would take hours for all actions; here every eighth ply has an illegal one."""
    game, num_games = games.make(f"pgx:{name}"), 32
    start = jax.tree.map(lambda leaf: jnp.stack([leaf] * num_games), game.init())

    @jax.vmap
    def observer(key, state):
        legal, over = game.legal_actions(state), game.is_over(state)
        action = jnp.argmax(jnp.where(legal, jax.random.uniform(key, legal.shape), -1))
        after, reward = game.step(state, action)
        holds = {
            "a legal action until the end": jnp.any(legal) ^ over,
            "rewarded": jnp.isin(reward, jnp.array([-1.0, 0.0, 1.0])),
            "only at the end": game.is_over(after) | (reward == 0),
            "in turn": over | (game.player(after) == 1 - game.player(state)),
        }
        return after, over, reward, holds

    @jax.vmap
    def refuses(key, state):
        legal = game.legal_actions(state)
        action = jnp.argmax(jnp.where(legal, -1, jax.random.uniform(key, legal.shape)))
        after, reward = game.step(state, action)
        same = jax.tree.map(lambda new, old: jnp.all(new == old), after, state)
        unchanged = jnp.all(jnp.stack(jax.tree.leaves(same))) & (reward == 0)
        return unchanged | jnp.all(legal)

    @functools.partial(jax.jit, compiler_options=OPTIMISED)  # Compilation is faster than the games.
    def play(key):
        def go_on(carry):
            return (carry[0] <= game.max_plies) & ~jnp.all(carry[2])

        def move(carry):
            ply, states, _, rewards, held = carry
            keys = jax.random.split(jax.random.fold_in(key, ply), num_games)
            tried = jax.lax.cond(
                ply % 8 == 0,
                lambda: jnp.all(refuses(keys, states)),
                lambda: jnp.bool_(True),
            )
            states, over, reward, holds = observer(keys, states)
            holds["illegal"] = tried
            held = jax.tree.map(lambda before, now: before & jnp.all(now), held, holds)
            return ply + 1, states, over, rewards + abs(reward), held

        rules = jax.eval_shape(observer, keys, start)[3] | {"illegal": True}
        held = jax.tree.map(lambda _: jnp.bool_(True), rules)
        zeros = jnp.zeros(num_games)
        return jax.lax.while_loop(go_on, move, (0, start, zeros.astype(bool), zeros, held))

    keys = jax.random.split(jax.random.key(0), num_games)
    ply, _, over, rewards, held = play(jax.random.key(1))
    assert all(held.values()), held
    assert over.all() and ply > 10 and rewards.sum() > 0 and rewards.max() == 1


@pytest.mark.parametrize(("name", "size"), [("chess", 8), ("gardner_chess", 5)])
def test_moves_of_chess_are_named_by_their_squares(name, size):
    """The name of a move is its origin and its target."""
    game, rng = games.make(f"pgx:{name}"), np.random.default_rng(0)
    step, state, seen = jax.jit(game.step), game.init(), 0

    def squares(state):
        lines = [line.split()[1:] for line in game.display.render(state).splitlines()[:-1]]
        return {f"{'abcdefgh'[f]}{size - r}": lines[r][f] for r in range(size) for f in range(size)}

    for ply in range(40):
        if game.is_over(state):
            break
        action = int(rng.choice(np.flatnonzero(game.legal_actions(state))))
        name, before = game.display.name_actions(state)[action], squares(state)
        state, _ = step(state, action)
        after = squares(state)
        assert before[name[:2]].isupper() == (ply % 2 == 0)
        assert after[name[:2]] == "." and after[name[2:4]].isupper() == (ply % 2 == 0)
        if len(name) == 4:
            seen += after[name[2:4]] == before[name[:2]]
    assert seen > 5
