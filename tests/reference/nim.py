"""The rules of the game in `tests/nim.py`; the board is the number of stones left."""

from reference import Position


def start():
    return Position((7,), 0, False)


def legal(position):
    return [action for action in (0, 1, 2) if action < position.board[0]]


def play(position, action):
    if action not in legal(position):
        return position, 0
    left = position.board[0] - action - 1
    return Position((left,), 1 - position.player, left == 0), int(left == 0)
