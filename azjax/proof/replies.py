"""Lines, and the moves that exhaustive play makes after them.

A line is a sequence of moves from the start of a game. After it, exhaustive play makes the move of
the player, or every reply.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from azjax.games import rows as packing
from azjax.games.base import Game, State, check_rewards, init_batch, is_reward

Line = tuple[int, ...]  # Actions, from the start of a game.
Act = Callable[[State], np.ndarray]

_BATCH = 2**13  # Moves made per compiled call.
_LOST = 1000  # Lost games that are stored for each part.


def replay(game: Game, lines: Sequence[Line]) -> State:
    """Returns the positions `[N, ...]` after lines of legal actions, on the host."""
    longest = max(map(len, lines), default=0)
    if longest > game.max_plies:
        raise ValueError(f"a line of {game.name} has {longest} moves: use {game.max_plies} at most")
    first = jax.device_get(init_batch(game, 1))
    states = jax.tree.map(lambda leaf: np.repeat(leaf, len(lines), axis=0), first)
    for ply in range(longest):
        rows = [row for row, line in enumerate(lines) if len(line) > ply]
        before = jax.tree.map(lambda leaf, rows=rows: leaf[rows], states)
        actions = np.array([lines[row][ply] for row in rows], np.int32)
        _, legal = players_and_legal(game, before)
        is_legal = (legal & (np.arange(game.num_actions) == actions[:, None])).any(axis=1)
        if not is_legal.all():
            line = [*map(int, lines[rows[int(is_legal.argmin())]])]
            raise ValueError(
                f"the action {line[ply]} is illegal in {game.name} after the actions "
                f"{line[:ply]}: use lines of legal actions"
            )
        after, *_ = packing.in_batches(_step(game), (before, actions), _BATCH)
        for leaf, moved in zip(*map(jax.tree.leaves, (states, after)), strict=True):
            leaf[rows] = moved
    return states


def draw_within(
    game: Game, lines: Sequence[Line], count: int, rng: np.random.Generator
) -> tuple[State, Any]:
    """Draws positions on lines `[count, ...]`, before their last moves, and the plies `[count]`."""
    drawn = [lines[number] for number in rng.integers(len(lines), size=count)]
    plies = rng.integers(0, [len(moves) for moves in drawn]).astype(np.int32)
    return replay(game, [line[:ply] for line, ply in zip(drawn, plies, strict=True)]), plies


class Moves(NamedTuple):
    """The moves to make in `N` positions."""

    is_player: np.ndarray  # `bool [N]`, whether the player is to move.
    played: np.ndarray  # `bool [N, A]`, the move of the player, or every reply.
    breaks_symmetry: bool = False  # Whether a compared copy of a position has another move.


def players_and_legal(game: Game, states: State) -> tuple[np.ndarray, np.ndarray]:
    """Returns the players to move, `int8 [N]`, and the legal actions, `bool [N, A]`."""
    return packing.in_batches(_inspect(game), (states,), _BATCH)


def choose_moves(
    game: Game,
    act: Act,
    seat: int,
    symmetries: np.ndarray,
    compare: bool,
    rows: np.ndarray,
    line_to: Callable[[int], Line],
) -> Moves:
    """Calls the player on the positions where it is to move; finds every reply in the others.

    `line_to` returns the line to one of the rows, for error messages.
    """
    states = packing.unpack(game, rows["images"][:, 0])
    player, played = players_and_legal(game, states)
    has_move = played.any(axis=1)
    if not has_move.all():
        line = list(line_to(int(has_move.argmin())))
        raise ValueError(
            f"{game.name} has no legal move after the actions {line}, and is not over there: "
            "correct its legal_actions or is_over"
        )
    is_player = player == seat
    places = np.flatnonzero(is_player)
    if not len(places):
        return Moves(is_player, played)
    copies = rows["images"][places, : None if compare else 1]
    chosen = np.asarray(act(packing.unpack(game, copies.reshape(-1, copies.shape[2]))))
    if chosen.shape != (copies.shape[0] * copies.shape[1],):
        raise ValueError(
            f"the player returns actions of shape {chosen.shape} for "
            f"{copies.shape[0] * copies.shape[1]} positions: return one action for each"
        )
    chosen = chosen.reshape(copies.shape[:2])
    _check_legal(played[places], chosen, symmetries, lambda row: line_to(places[row]))
    played[places] = np.arange(game.num_actions) == chosen[:, :1]
    return Moves(is_player, played, not _is_symmetric(copies, chosen, symmetries))


def _check_legal(
    legal: np.ndarray, chosen: np.ndarray, symmetries: np.ndarray, line_to: Callable[[int], Line]
) -> None:
    """Checks the actions `chosen [N, E]` in `E` symmetric copies of each position."""
    for symmetry, actions in zip(symmetries[: chosen.shape[1]], chosen.T, strict=True):
        legal_in_copy = legal[:, np.argsort(symmetry)]
        is_legal = (legal_in_copy & (np.arange(len(symmetry)) == actions[:, None])).any(axis=1)
        if not is_legal.all():
            row = is_legal.argmin()
            raise ValueError(
                f"the player's action {actions[row]} is illegal after the actions "
                f"{symmetry[list(line_to(row))].tolist()}: "
                f"{np.flatnonzero(legal_in_copy[row]).tolist()} are legal there"
            )


def _is_symmetric(copies: np.ndarray, actions: np.ndarray, symmetries: np.ndarray) -> bool:
    """Returns whether `actions [N, E]` are the same move in all `copies [N, E, R]` of a position.

    If several copies of a position are equal, each of their expected actions is accepted.
    """
    expected, is_same_move = symmetries[:, actions[:, 0]].T, np.zeros(actions.shape, bool)
    for one, other in itertools.product(range(actions.shape[1]), repeat=2):
        is_same = (copies[:, one] == copies[:, other]).all(axis=1)
        is_same_move[:, one] |= is_same & (actions[:, one] == expected[:, other])
    return bool(is_same_move.all())


def make_moves(
    game: Game, symmetries: np.ndarray, rows: np.ndarray, moves: Moves, offset: int
) -> tuple[np.ndarray, dict[str, Any]]:
    """Returns the rows of the next positions, and the content of `ends-N.json`; see `ply_files`."""
    parents, actions = np.nonzero(moves.played)
    before = rows["images"][parents]
    transformed = symmetries[:, actions].T.ravel().astype(np.int32)
    made = packing.unpack(game, before.reshape(len(transformed), -1)), transformed
    after, rewards, over = packing.in_batches(_step(game), made, _BATCH)
    check_rewards(game, is_reward(rewards, over))
    rewards, over = rewards[:: len(symmetries)], over[:: len(symmetries)]
    signs = np.where(moves.is_player[parents], 1, -1)
    columns = (1 - rewards * signs).astype(int)[over]  # 0 won, 1 drawn, 2 lost, as in `Ends`.
    ended, last = parents[over], actions[over]
    games = np.zeros(3)
    np.add.at(games, columns, rows["games"][ended])
    lost = np.stack([ended + offset, last], axis=1)[columns == 2][:_LOST]
    counts = np.bincount(columns, minlength=3)
    children = rows[parents[~over]]
    children["images"] = packing.pack(after).reshape(before.shape)[~over]
    children["parent"], children["action"] = parents[~over] + offset, actions[~over]
    arrays = {"decisions": moves.is_player.sum(), "moves": counts, "games": games, "lost": lost}
    ends: dict[str, Any] = {name: array.tolist() for name, array in arrays.items()}
    ends |= {"onward": float(children["games"].sum()), "breaks_symmetry": moves.breaks_symmetry}
    return merge(children), ends


def merge(rows: np.ndarray) -> np.ndarray:
    """Merges equal positions, adds up the games that lead to them, and sorts by hash.

    The key of a position is its symmetric copy with the smallest hash.
    """
    copies = rows["images"]
    hashed = packing.hashes(copies.reshape(-1, copies.shape[2])).reshape(copies.shape[:2])
    keys = copies[np.arange(len(copies)), hashed.argmin(axis=1)]
    order, first, hashes = packing.group_equal(keys)
    merged = rows[order[first]]
    merged["hash"] = hashes
    if len(rows):
        merged["games"] = np.add.reduceat(rows["games"][order], first)
    return merged


@functools.lru_cache(maxsize=8)
def _inspect(game: Game) -> Callable:
    return jax.jit(jax.vmap(lambda state: (game.player(state), game.legal_actions(state))))


@functools.lru_cache(maxsize=8)
def _step(game: Game) -> Callable:
    def step(state, action):
        after, reward = game.step(state, action)
        return after, reward, game.is_over(after)

    return jax.jit(jax.vmap(step))
