"""Plays our games and those of pgx side by side, by the same random moves."""

import jax
import numpy as np

from azjax import games


def play_both(mine, theirs, num_games, seed=0, mirror=None):
    """Plays the same random moves in two games; yields the results of both for each ply.

    With a mirror `[A]`, the second player of the first game sees its actions in it.
    """

    def observer(game):
        def see(state):
            planes = game.observe(state, "relative")
            return game.legal_actions(state), game.is_over(state), game.player(state), planes

        step = jax.jit(jax.vmap(game.step))
        return jax.jit(jax.vmap(see)), step, [game.init()] * num_games

    rng, sides, rewards = np.random.default_rng(seed), [observer(mine), observer(theirs)], [0, 0]
    states = [jax.tree.map(lambda *leaves: np.stack(leaves), *start) for _, _, start in sides]
    while True:
        message = [see(state) for (see, _, _), state in zip(sides, states, strict=True)]
        yield [jax.tree.map(lambda leaf: leaf[0], state) for state in states], *message, *rewards
        legal = np.asarray(message[0][0])
        if not legal.any():
            return
        actions = np.where(legal, rng.random(legal.shape), -1).argmax(axis=1).astype(np.int32)
        lying = actions
        if mirror is not None:
            lying = np.where(message[0][2] == 1, mirror[actions], actions).astype(np.int32)
        made = zip(sides, states, (actions, lying), strict=True)
        moved = [step(state, actions) for (_, step, _), state, actions in made]
        states, rewards = zip(*moved, strict=True)


def assert_same_rules(name, ours):
    plies, both = 0, (games.make(ours), games.make(f"pgx:{name}"))
    mirror = np.append(np.arange(121).reshape(11, 11).T, 121) if name == "hex" else None
    played = play_both(*both, num_games=64, mirror=mirror)
    for firsts, mine, theirs, my_reward, their_reward in played:
        legal = np.asarray(mine[0])
        if mirror is None:
            np.testing.assert_array_equal(mine[3], theirs[3])
        else:  # The actions of pgx are cells of the board, and its planes are turned differently.
            legal = np.where((mine[2] == 1)[:, None], legal[:, mirror], legal)
        for field, expected in zip((legal, *mine[1:3]), theirs, strict=False):
            np.testing.assert_array_equal(field, expected)
        np.testing.assert_array_equal(my_reward, their_reward)
        pictures = [
            str(game.display.draw(state, size=90)) for game, state in zip(both, firsts, strict=True)
        ]
        assert pictures[0] == pictures[1]
        plies += 1
    assert plies > 8
