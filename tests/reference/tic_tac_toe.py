"""The rules of tic-tac-toe."""

from reference import Position


def start():
    return Position((0,) * 9, 0, False)


def legal(position):
    return [] if position.over else [i for i in range(9) if position.board[i] == 0]


def play(position, action):
    if action not in legal(position):
        return position, 0
    mark = 1 if position.player == 0 else -1
    board = list(position.board)
    board[action] = mark
    won = has_line(board, mark)
    return Position(tuple(board), 1 - position.player, won or 0 not in board), int(won)


def has_line(board, mark):
    rows, columns = [board[i : i + 3] for i in (0, 3, 6)], [board[i::3] for i in range(3)]
    return [mark] * 3 in [*rows, *columns, board[0::4], board[2:7:2]]


def image(position, cells):
    """Returns the symmetric copy with the cells of a position in another order."""
    return position._replace(board=tuple(position.board[cell] for cell in cells))


def symmetries():
    """Returns the orders of the cells of all symmetric copies."""
    rows, found = [[0, 1, 2], [3, 4, 5], [6, 7, 8]], []
    for _ in range(4):
        found += [rows[0] + rows[1] + rows[2], rows[2] + rows[1] + rows[0]]
        rows = [list(column) for column in zip(*rows[::-1], strict=True)]  # Turned by 90 degrees.
    return found


def least_image(position):
    """Returns the canonical one of the symmetric copies of a position."""
    return min(image(position, cells) for cells in symmetries())
