"""The rules of the game in `tests/misere_pile.py`."""

from reference import Position


def start():
    return Position((0,) * 5, 0, False)


def legal(position):
    return [action for action in (0, 1) if position.board.count(0) > action]


def play(position, action):
    if action not in legal(position):
        return position, 0
    mark = 1 if position.player == 0 else -1
    taken = [cell for cell in position.board if cell != 0] + [mark] * (action + 1)
    board = tuple(taken + [0] * (5 - len(taken)))
    player = position.player if action == 0 else 1 - position.player
    over = 0 not in board
    return Position(board, player, over), -1 if over else 0
