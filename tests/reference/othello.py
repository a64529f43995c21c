"""The rules of Othello, on four by four cells; action 16 passes."""

import functools

from reference import Position


def start():
    return Position((0, 0, 0, 0, 0, -1, 1, 0, 0, 1, -1, 0, 0, 0, 0, 0), 0, False)


def turned(board, mark, cell):
    """Returns the cells of the discs that a new disc turns."""
    found = []
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            line, r, c = [], cell // 4 + down, cell % 4 + right
            while 0 <= r < 4 and 0 <= c < 4 and board[4 * r + c] == -mark:
                line.append(4 * r + c)
                r, c = r + down, c + right
            if 0 <= r < 4 and 0 <= c < 4 and board[4 * r + c] == mark:
                found += line
    return found


def moves(board, mark):
    return [cell for cell in range(16) if board[cell] == 0 and turned(board, mark, cell)]


@functools.cache
def legal(position):
    if position.over:
        return []
    return moves(position.board, 1 - 2 * position.player) or [16]


def play(position, action):
    if action not in legal(position):
        return position, 0
    board, mark = list(position.board), 1 - 2 * position.player
    if action < 16:
        for cell in [action, *turned(position.board, mark, action)]:
            board[cell] = mark
    over = not moves(board, mark) and not moves(board, -mark)
    ahead = mark * sum(board)
    reward = (ahead > 0) - (ahead < 0) if over else 0
    return Position(tuple(board), 1 - position.player, over), reward
