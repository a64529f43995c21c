"""The rules of Hex, on three by three cells; action 9 swaps, instead of the first stone of O."""

from reference import Position, hex
from reference.hex import start  # noqa: F401


def legal(position):
    swap = [9] if position.player == 1 and position.board.count(0) == 8 else []
    return hex.legal(position) + swap


def play(position, action):
    if action != 9 or action not in legal(position):
        return hex.play(position, action)
    cell = position.board.index(1)
    board = [0] * 9
    board[3 * (cell % 3) + cell // 3] = -1
    return Position(tuple(board), 0, False), 0
