"""The rules of Connect Four, on six rows of seven cells or on four rows of five."""

from reference import Position

COLUMNS = {42: 7, 20: 5}  # By the number of cells.


def start():
    return Position((0,) * 20, 0, False)


def legal(position):
    top = position.board[: COLUMNS[len(position.board)]]
    return [] if position.over else [i for i, cell in enumerate(top) if cell == 0]


def play(position, action):
    if action not in legal(position):
        return position, 0
    mark = 1 if position.player == 0 else -1
    columns = COLUMNS[len(position.board)]
    rows = [list(position.board[i : i + columns]) for i in range(0, len(position.board), columns)]
    row = max(r for r in range(len(rows)) if rows[r][action] == 0)  # The last row is the lowest.
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
    if not (0 <= r < len(rows) and 0 <= c < len(rows[0])) or rows[r][c] != rows[row][column]:
        return 0
    return 1 + run(rows, r, c, down, right)
