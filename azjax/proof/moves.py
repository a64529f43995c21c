"""The moves that exhaustive play makes in some positions: the player's, or every reply."""

import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from azjax.games import rows as packing
from azjax.games.base import Game, State
from azjax.proof.lines import Line
from azjax.proof.sampling import GROUPS, merge

Act = Callable[[State], np.ndarray]

_BATCH = 2**13  # Moves made per compiled call.
_LOST = 1000  # Lost games that each part keeps.


class Moves(NamedTuple):
    """What is played in `N` positions.

    Attributes:
      own: `bool [N]`, where the player moves.
      played: `bool [N, A]`, the player's move, or every reply.
      violations: `int [U, 2]`, symmetry violations: numbers of positions, and the player's moves
        there that it does not make in all symmetric copies.
    """

    own: np.ndarray
    played: np.ndarray
    violations: np.ndarray


def players_and_legal(game: Game, states: State) -> tuple[np.ndarray, np.ndarray]:
    """Returns who moves, `int8 [N]`, and the legal actions, `bool [N, A]`."""
    return packing.in_batches(_look(game), (states,), _BATCH)


def choose_moves(
    game: Game,
    act: Act,
    seat: int,
    symmetries: np.ndarray,
    compare: bool,
    rows: np.ndarray,
    line_to: Callable[[int], Line],
) -> Moves:
    """Calls the player in its own positions, and finds every reply in the others.

    `line_to` returns the line to one of the rows, for error messages.
    """
    states = packing.unpack(game, rows["images"][:, 0])
    player, played = players_and_legal(game, states)
    has_move = played.any(axis=1)
    if not has_move.all():
        line = list(line_to(int(has_move.argmin())))
        raise ValueError(
            f"{game.name} has no legal move after the moves {line}, and is not over there: correct "
            "its legal_actions or is_over"
        )
    own = player == seat
    if not own.any():
        return Moves(own, played, np.zeros((0, 2), np.int64))
    copies = rows["images"][own, : None if compare else 1]
    chosen = np.asarray(act(packing.unpack(game, copies.reshape(-1, copies.shape[2]))))
    if chosen.shape != (copies.shape[0] * copies.shape[1],):
        raise ValueError(
            f"the player answers {copies.shape[0] * copies.shape[1]} positions with actions of "
            f"shape {chosen.shape}: give one action for each"
        )
    chosen = chosen.reshape(copies.shape[:2])
    _check_legal(played[own], chosen, symmetries, lambda row: line_to(np.flatnonzero(own)[row]))
    played[own] = np.arange(game.num_actions) == chosen[:, :1]
    numbered = np.stack([np.flatnonzero(own), chosen[:, 0]], axis=1)
    return Moves(own, played, numbered[~_is_symmetric(copies, chosen, symmetries)])


def _check_legal(
    legal: np.ndarray, chosen: np.ndarray, symmetries: np.ndarray, line_to: Callable[[int], Line]
) -> None:
    """Raises a `ValueError` if an action `[N, E]` is illegal in its symmetric copy of a position.

    `legal [N, A]` are the legal actions of the positions themselves.
    """
    for symmetry, actions in zip(symmetries[: chosen.shape[1]], chosen.T, strict=True):
        legal_in_copy = legal[:, np.argsort(symmetry)]
        is_legal = (legal_in_copy & (np.arange(len(symmetry)) == actions[:, None])).any(axis=1)
        if not is_legal.all():
            row = is_legal.argmin()
            raise ValueError(
                f"the player's action {actions[row]} is illegal after the moves "
                f"{symmetry[list(line_to(row))].tolist()}: "
                f"{np.flatnonzero(legal_in_copy[row]).tolist()} are legal there"
            )


def _is_symmetric(copies: np.ndarray, actions: np.ndarray, symmetries: np.ndarray) -> np.ndarray:
    """Returns, `bool [N]`, whether the same move is made in all symmetric copies of a position.

    Copies that are the same position have one action only, so that each may match any of them.

    Args:
      copies: `uint8 [N, E, R]`, the first `E` symmetric copies of each position.
      actions: `int [N, E]`, the action in each.
      symmetries: `int [G, A]`, from `action_symmetries`.
    """
    expected, is_same_move = symmetries[:, actions[:, 0]].T, np.zeros(actions.shape, bool)
    for one, other in itertools.product(range(actions.shape[1]), repeat=2):
        is_same = (copies[:, one] == copies[:, other]).all(axis=1)
        is_same_move[:, one] |= is_same & (actions[:, one] == expected[:, other])
    return np.all(is_same_move, axis=1)


def make_moves(
    game: Game, symmetries: np.ndarray, rows: np.ndarray, moves: Moves, offset: int
) -> tuple[np.ndarray, dict[str, Any]]:
    """Makes moves in some positions, and their images in the symmetric copies of these.

    Returns:
      The positions after them, and arrays about the games that end and about the moves.
    """
    parents, actions = np.nonzero(moves.played)
    before = rows["images"][parents]
    transformed = symmetries[:, actions].T.ravel().astype(np.int32)
    made = packing.unpack(game, before.reshape(len(transformed), -1)), transformed
    after, rewards, over = packing.in_batches(_step(game), made, _BATCH)
    rewards, over = rewards[:: len(symmetries)], over[:: len(symmetries)]
    signs = np.where(moves.own[parents], 1, -1)
    columns = (1 - rewards * signs).astype(int)[over]  # Of `Ends`.
    ended, last = parents[over], actions[over]
    games = np.zeros((1 + GROUPS, 3))
    np.add.at(games, (rows["group"][ended], columns), rows["games"][ended])
    lost = np.stack([ended + offset, last], axis=1)[columns == 2][:_LOST]
    counts = np.bincount(columns, minlength=3)
    children = rows[parents[~over]]
    children["images"] = packing.pack(after).reshape(before.shape)[~over]
    children["parent"], children["action"] = parents[~over] + offset, actions[~over]
    ends = {"decisions": moves.own.sum(), "moves": counts, "games": games, "lost": lost}
    return merge(children), {**ends, "unlike": moves.violations + (offset, 0)}


@functools.lru_cache(maxsize=8)
def _look(game: Game) -> Callable:
    return jax.jit(jax.vmap(lambda state: (game.player(state), game.legal_actions(state))))


@functools.lru_cache(maxsize=8)
def _step(game: Game) -> Callable:
    def step(state, action):
        after, reward = game.step(state, action)
        return after, reward, game.is_over(after)

    return jax.jit(jax.vmap(step))
