"""Digests distinguish all games of tic-tac-toe."""

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import tic_tac_toe as ttt
from azjax.games.hashing import mix


def test_digests_distinguish_all_games_of_tic_tac_toe():
    boards, moves = np.zeros((1, 9), np.int8), np.full((1, 9), -1)
    finished = []
    for ply in range(9):
        parents, cells = np.nonzero(boards == 0)
        boards, moves = boards[parents], moves[parents]
        mark = 1 if ply % 2 == 0 else -1
        boards[np.arange(len(cells)), cells] = mark
        moves[:, ply] = cells
        over = (boards[:, ttt.LINES] == mark).all(axis=2).any(axis=1) | (ply == 8)
        finished.append(moves[over])
        boards, moves = boards[~over], moves[~over]
    games = np.concatenate(finished)
    assert len(games) == 255_168
    digest = jax.jit(mix)
    digests = digest(jnp.zeros((len(games), 2), jnp.uint32), np.zeros(len(games), int))
    for made in games.T:
        digests = jnp.where(made[:, None] >= 0, digest(digests, made), digests)
    assert len(np.unique(np.asarray(digests), axis=0)) == 255_168
