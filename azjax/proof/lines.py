"""Lines: sequences of moves from the start of a game, and the positions after them."""

import functools
from collections.abc import Callable, Sequence

import jax
import numpy as np

from azjax.games import rows as packing
from azjax.games.base import Game, State, where

Line = tuple[int, ...]  # Actions, from the start of a game.

_REPLAYED = 2**10  # Lines replayed per compiled call.


def action_symmetries(game: Game, symmetric: bool) -> np.ndarray:
    """Returns `int [G, A]`, the actions under each symmetry, or under the identity only."""
    if symmetric and game.symmetries is not None:
        return game.symmetries.actions
    return np.arange(game.num_actions)[None]


def replay(game: Game, lines: Sequence[Line]) -> State:
    """Returns the positions `[N, ...]` after lines, on the host.

    Raises:
      ValueError: if a move is illegal, or a line has more moves than the game's `max_plies`.
    """
    counts = np.array([len(line) for line in lines], np.int32)
    actions = np.zeros((len(lines), game.max_plies), np.int32)
    for row, line in enumerate(lines):
        if len(line) > game.max_plies:
            raise ValueError(
                f"a line of {game.name} has {len(line)} moves: use {game.max_plies} at most"
            )
        actions[row, : len(line)] = line
    states, is_legal = packing.in_batches(_play(game), (actions, counts), _REPLAYED)
    if not is_legal.all():
        row, ply = np.argwhere(~is_legal)[0]
        raise ValueError(
            f"the action {actions[row, ply]} is illegal in {game.name} after the actions "
            f"{actions[row, :ply].tolist()}: use lines of legal actions"
        )
    return states


@functools.lru_cache(maxsize=8)
def _play(game: Game) -> Callable:
    """Builds `(actions [N, T], counts [N]) -> (states [N, ...], is_legal [N, T])`.

    The first `counts` actions are played; the others are ignored and count as legal.
    """

    def play(actions, count):
        def move(state, step):
            ply, action = step
            is_legal = (game.legal_actions(state) & (np.arange(game.num_actions) == action)).any()
            after = where(ply < count, game.step(state, action)[0], state)
            return after, (ply >= count) | is_legal

        return jax.lax.scan(move, game.init(), (np.arange(game.max_plies), actions))

    return jax.jit(jax.vmap(play))
