"""Plays our games and those of pgx side by side, by the same random moves."""

import jax
import numpy as np

from azjax import games


def assert_same_rules(name, ours, num_games=64):
    """Also, the same planes. In Hex, actions of pgx are cells."""
    both, rng, plies = (games.make(ours), games.make(f"pgx:{name}")), np.random.default_rng(0), 0
    mirror = np.append(np.arange(121).reshape(11, 11).T, 121) if name == "hex" else None

    def observer(game):
        def see(state):
            planes = game.observe(state, "relative")
            return game.is_over(state), game.player(state), game.legal_actions(state), planes

        return jax.jit(jax.vmap(see)), jax.jit(jax.vmap(game.step))

    (see, step), (see_other, step_other) = map(observer, both)
    states, others = (
        jax.tree.map(lambda leaf: np.stack([leaf] * num_games), game.init()) for game in both
    )
    while True:
        (over, player, legal, planes), found = see(states), see_other(others)
        turned, expected = np.asarray(player == 1)[:, None], np.asarray(legal)
        if mirror is None:
            np.testing.assert_array_equal(planes, found[3])
        else:
            expected = np.where(turned, expected[:, mirror], expected)
        for one, other in zip(found, (over, player, expected), strict=False):
            np.testing.assert_array_equal(one, other)
        if over.all():
            break
        actions = np.where(legal, rng.random(legal.shape), -1).argmax(axis=1).astype(np.int32)
        theirs = actions if mirror is None else np.where(turned[:, 0], mirror[actions], actions)
        (states, reward), (others, other) = step(states, actions), step_other(others, theirs)
        np.testing.assert_array_equal(reward, other)
        plies += 1
    assert plies > 8
