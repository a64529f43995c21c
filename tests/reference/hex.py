"""The rules of Hex on three by three cells, without swap; O's moves are on a mirrored board."""

from reference import Position


def start():
    return Position((0,) * 9, 0, False)


def legal(position):
    return [] if position.over else [x for x in range(9) if position.board[to(position, x)] == 0]


def play(position, action):
    if action not in legal(position):
        return position, 0
    board, mark = list(position.board), 1 - 2 * position.player
    board[to(position, action)] = mark
    won = joins(board, mark)
    return Position(tuple(board), 1 - position.player, won), int(won)


def to(position, action):
    """Returns the cell of a move."""
    return action if position.player == 0 else 3 * (action % 3) + action // 3


def joins(board, mark):
    """Whether stones of X (1) connect top and bottom, or stones of O (-1) left and right."""
    own = {(cell // 3, cell % 3) for cell in range(9) if board[cell] == mark}
    along = 0 if mark == 1 else 1
    paths = [cell for cell in own if cell[along] == 0]
    seen = set(paths)
    while paths:
        r, c = paths.pop()
        near = {(r - 1, c), (r - 1, c + 1), (r, c - 1), (r, c + 1), (r + 1, c - 1), (r + 1, c)}
        paths += (near & own) - seen
        seen |= near & own
    return any(cell[along] == 2 for cell in seen)
