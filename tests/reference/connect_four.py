"""The rules of Connect Four, on four rows of five cells."""

from reference import Position


def start():
    return Position((0,) * 20, 0, False)


def legal(position):
    return [] if position.over else [i for i in range(5) if position.board[i] == 0]


def play(position, action):
    if action not in legal(position):
        return position, 0
    mark = 1 if position.player == 0 else -1
    rows = [list(position.board[5 * r : 5 * r + 5]) for r in range(4)]
    row = max(r for r in range(4) if rows[r][action] == 0)  # Row 3 is the lowest.
    rows[row][action] = mark
    won = longest_line(rows, row, action) >= 4
    board = tuple(cell for row in rows for cell in row)
    return Position(board, 1 - position.player, won or 0 not in board), int(won)


def longest_line(rows, row, column):
    """Returns the length of the longest line of equal stones through a cell."""
    return max(
        1 + run(rows, row, column, down, right) + run(rows, row, column, -down, -right)
        for down, right in [(0, 1), (1, 0), (1, 1), (1, -1)]
    )


def run(rows, row, column, down, right):
    """Counts the equal stones that follow a cell in a direction."""
    r, c = row + down, column + right
    if not (0 <= r < 4 and 0 <= c < 5) or rows[r][c] != rows[row][column]:
        return 0
    return 1 + run(rows, r, c, down, right)
