"""The rules of Breakthrough, on five rows of three cells."""

import functools

from reference import Position


def start():
    return Position((-1,) * 6 + (0,) * 3 + (1,) * 6, 0, False)


def target(position, action):
    """Returns the origin and the target of an action, or None if it leaves the board."""
    cell, turn = action // 3, action % 3 - 1
    if not 0 <= cell < 15 or cell < 3 or not 0 <= cell % 3 + turn < 3:
        return None
    to = cell - 3 + turn
    return (cell, to) if position.player == 0 else (14 - cell, 14 - to)


@functools.cache
def legal(position):
    found, mark = [], 1 - 2 * position.player
    for action in range(45):
        move = target(position, action)
        if position.over or not move or position.board[move[0]] != mark:
            continue
        there = position.board[move[1]]
        if there == 0 or (there == -mark and action % 3 != 1):
            found.append(action)
    return found


def play(position, action):
    if action not in legal(position):
        return position, 0
    board, mark = list(position.board), 1 - 2 * position.player
    origin, to = target(position, action)
    board[origin], board[to] = 0, mark
    won = to // 3 == (0 if position.player == 0 else 4) or -mark not in board
    return Position(tuple(board), 1 - position.player, won), int(won)
