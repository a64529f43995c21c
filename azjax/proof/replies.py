"""Lines, and the moves that exhaustive play makes after them.

A line is a sequence of moves from the start of a game. After it, exhaustive play makes the move of
the player, or every reply.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from azjax.games import rows as packing
from azjax.games.base import Game, State, check_rewards, init_batch, is_reward

Line = tuple[int, ...]  # Actions, from the start of a game.
Act = Callable[[State], np.ndarray]
# `bool [N]`, whether the player is to move, and `bool [N, A]`, its move or every reply.
Moves = tuple[np.ndarray, np.ndarray]

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


def players_and_legal(game: Game, states: State) -> tuple[np.ndarray, np.ndarray]:
    """Returns the players to move, `int8 [N]`, and the legal actions, `bool [N, A]`."""
    return packing.in_batches(_inspect(game), (states,), _BATCH)


def choose_moves(
    game: Game, act: Act, seat: int, rows: np.ndarray, line_to: Callable[[int], Line]
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
            f"{game.name} has no legal move after the actions {line}: if it is over there, leave "
            "this start out, and otherwise correct its legal_actions or is_over"
        )
    is_player = player == seat
    places = np.flatnonzero(is_player)
    if not len(places):
        return is_player, played
    chosen = np.asarray(act(packing.unpack(game, rows["images"][places, 0])))
    if chosen.shape != places.shape:
        raise ValueError(
            f"the player returns actions of shape {chosen.shape} for {len(places)} positions: "
            "return one action for each"
        )
    is_chosen = np.arange(game.num_actions) == chosen[:, None]
    is_legal = (played[places] & is_chosen).any(axis=1)
    if not is_legal.all():
        wrong = is_legal.argmin()
        row = int(places[wrong])
        raise ValueError(
            f"the player's action {chosen[wrong]} is illegal after the actions "
            f"{list(line_to(row))}: {np.flatnonzero(played[row]).tolist()} are legal there"
        )
    played[places] = is_chosen
    return is_player, played


def make_moves(
    game: Game, symmetries: np.ndarray, rows: np.ndarray, moves: Moves, offset: int
) -> tuple[np.ndarray, dict[str, Any]]:
    """Returns the rows of the next positions, and the content of `ends-N.json`; see `ply_files`."""
    is_player, played = moves
    parents, actions = np.nonzero(played)
    before = rows["images"][parents]
    transformed = symmetries[:, actions].T.ravel().astype(np.int32)
    made = packing.unpack(game, before.reshape(len(transformed), -1)), transformed
    after, rewards, over = packing.in_batches(_step(game), made, _BATCH)
    check_rewards(game, is_reward(rewards, over))
    rewards, over = rewards[:: len(symmetries)], over[:: len(symmetries)]
    signs = np.where(is_player[parents], 1, -1)
    columns = (1 - rewards * signs).astype(int)[over]  # 0 won, 1 drawn, 2 lost, as in `Ends`.
    ended, last = parents[over], actions[over]
    games = np.zeros(3)
    np.add.at(games, columns, rows["games"][ended])
    lost = np.stack([ended + offset, last], axis=1)[columns == 2][:_LOST]
    counts = np.bincount(columns, minlength=3)
    children = rows[parents[~over]]
    children["images"] = packing.pack(after).reshape(before.shape)[~over]
    children["parent"], children["action"] = parents[~over] + offset, actions[~over]
    arrays = {"decisions": is_player.sum(), "moves": counts, "games": games, "lost": lost}
    ends: dict[str, Any] = {name: array.tolist() for name, array in arrays.items()}
    return merge(children), ends | {"onward": float(children["games"].sum())}


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
