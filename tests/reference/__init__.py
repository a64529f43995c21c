"""Slow, obvious reference implementations in plain Python; rewards as in `azjax.games.base`.

Here are the rules of games, at the sizes that tests compare with those of `azjax.games`.
"""

from fractions import Fraction
from typing import NamedTuple


class Position(NamedTuple):
    """A board of 1 (player 0), -1 (player 1) and 0 (empty), the player to move, and the end.

    Games with dice have other boards.
    """

    board: tuple
    player: int
    over: bool


def sign(before: Position, after: Position) -> int:
    """The factor from an outcome for the player of `after` to one for the player of `before`."""
    return 1 if before.player == after.player else -1


class Rules:
    """A game: its first board, its legal actions, and what a legal action does."""

    board: tuple[int, ...]

    def start(self):
        return Position(self.board, 0, False)

    def legal(self, position) -> list[int]:
        raise NotImplementedError

    def chance(self, position) -> dict[int, Fraction]:
        """Returns the probabilities of the actions of nature, or nothing."""
        return {}

    def play(self, position, action):
        """Returns the position after an action, and the reward; illegal actions change nothing."""
        return self.move(position, action) if action in self.legal(position) else (position, 0)

    def move(self, position, action) -> tuple[Position, int]:
        raise NotImplementedError


class TicTacToe(Rules):
    board = (0,) * 9

    def legal(self, position):
        return [] if position.over else [i for i in range(9) if position.board[i] == 0]

    def move(self, position, action):
        board, mark = list(position.board), 1 - 2 * position.player
        board[action] = mark
        rows, columns = [board[i : i + 3] for i in (0, 3, 6)], [board[i::3] for i in range(3)]
        won = [mark] * 3 in [*rows, *columns, board[0::4], board[2:7:2]]
        return Position(tuple(board), 1 - position.player, won or 0 not in board), int(won)

    def symmetries(self):
        """Returns the orders of the cells of all symmetric copies."""
        rows, found = [[0, 1, 2], [3, 4, 5], [6, 7, 8]], []
        for _ in range(4):
            found += [rows[0] + rows[1] + rows[2], rows[2] + rows[1] + rows[0]]
            rows = [list(column) for column in zip(*rows[::-1], strict=True)]  # Turned by 90°.
        return found

    def image(self, position, cells):
        """Returns the symmetric copy with the cells of a position in another order."""
        return position._replace(board=tuple(position.board[cell] for cell in cells))

    def least_image(self, position):
        """Returns the canonical one of the symmetric copies of a position."""
        return min(self.image(position, cells) for cells in self.symmetries())


class ConnectFour(Rules):
    """Four rows of five cells; also plays on positions with six rows of seven."""

    board = (0,) * 20
    columns = {20: 5, 42: 7}  # By the number of cells.

    def legal(self, position):
        top = position.board[: self.columns[len(position.board)]]
        return [] if position.over else [i for i, cell in enumerate(top) if cell == 0]

    def move(self, position, action):
        board, mark = list(position.board), 1 - 2 * position.player
        size = self.columns[len(board)]
        board[max(cell for cell in range(action, len(board), size) if board[cell] == 0)] = mark
        own = {divmod(cell, size) for cell, stone in enumerate(board) if stone == mark}
        won = any(
            own.issuperset((r + i * down, c + i * right) for i in range(4))
            for r, c in own
            for down, right in [(0, 1), (1, 0), (1, 1), (1, -1)]
        )
        return Position(tuple(board), 1 - position.player, won or 0 not in board), int(won)


class Othello(Rules):
    """Four by four cells; action 16 passes."""

    board = (0, 0, 0, 0, 0, -1, 1, 0, 0, 1, -1, 0, 0, 0, 0, 0)

    def turned(self, board, mark, cell):
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

    def moves(self, board, mark):
        return [cell for cell in range(16) if board[cell] == 0 and self.turned(board, mark, cell)]

    def legal(self, position):
        if position.over:
            return []
        return self.moves(position.board, 1 - 2 * position.player) or [16]

    def move(self, position, action):
        board, mark = list(position.board), 1 - 2 * position.player
        if action < 16:
            for cell in [action, *self.turned(position.board, mark, action)]:
                board[cell] = mark
        over = not self.moves(board, mark) and not self.moves(board, -mark)
        ahead = mark * sum(board)
        reward = (ahead > 0) - (ahead < 0) if over else 0
        return Position(tuple(board), 1 - position.player, over), reward


class Breakthrough(Rules):
    """Five rows of three cells."""

    board = (-1,) * 6 + (0,) * 3 + (1,) * 6

    def target(self, position, action):
        """Returns the origin and the target of an action, or None if it leaves the board."""
        cell, turn = action // 3, action % 3 - 1
        if not 0 <= cell < 15 or cell < 3 or not 0 <= cell % 3 + turn < 3:
            return None
        to = cell - 3 + turn
        return (cell, to) if position.player == 0 else (14 - cell, 14 - to)

    def legal(self, position):
        found, mark = [], 1 - 2 * position.player
        for action in range(45):
            move = self.target(position, action)
            if position.over or not move or position.board[move[0]] != mark:
                continue
            there = position.board[move[1]]
            if there == 0 or (there == -mark and action % 3 != 1):
                found.append(action)
        return found

    def move(self, position, action):
        board, mark = list(position.board), 1 - 2 * position.player
        origin, to = self.target(position, action)
        board[origin], board[to] = 0, mark
        won = to // 3 == (0 if position.player == 0 else 4) or -mark not in board
        return Position(tuple(board), 1 - position.player, won), int(won)


class Hex(Rules):
    """Three by three cells, without swap; O's moves are on a mirrored board."""

    board = (0,) * 9

    def legal(self, position):
        cells = [] if position.over else range(9)
        return [x for x in cells if position.board[self.cell(position, x)] == 0]

    def cell(self, position, action):
        return action if position.player == 0 else 3 * (action % 3) + action // 3

    def move(self, position, action):
        board, mark = list(position.board), 1 - 2 * position.player
        board[self.cell(position, action)] = mark
        won = self.joins(board, mark)
        return Position(tuple(board), 1 - position.player, won), int(won)

    def joins(self, board, mark):
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


class HexSwap(Hex):
    """Action 9 swaps, instead of the first stone of O."""

    def legal(self, position):
        swap = [9] if position.player == 1 and position.board.count(0) == 8 else []
        return super().legal(position) + swap

    def move(self, position, action):
        if action != 9:
            return super().move(position, action)
        cell, board = position.board.index(1), [0] * 9
        board[3 * (cell % 3) + cell // 3] = -1
        return Position(tuple(board), 0, False), 0


class MiserePile(Rules):
    """The game in `tests/misere_pile.py`."""

    board = (0,) * 5

    def legal(self, position):
        return [action for action in (0, 1) if position.board.count(0) > action]

    def move(self, position, action):
        taken = [cell for cell in position.board if cell != 0]
        taken += [1 - 2 * position.player] * (action + 1)
        over, player = len(taken) == 5, position.player if action == 0 else 1 - position.player
        return Position((*taken, *[0] * (5 - len(taken))), player, over), -1 if over else 0


class Nim(Rules):
    """The game in `tests/misere_pile.py`; the board is the number of stones left."""

    board = (7,)

    def legal(self, position):
        return [action for action in (0, 1, 2) if action < position.board[0]]

    def move(self, position, action):
        left = position.board[0] - action - 1
        return Position((left,), 1 - position.player, left == 0), int(left == 0)


tic_tac_toe, connect_four, othello = TicTacToe(), ConnectFour(), Othello()
breakthrough, hex, hex_swap = Breakthrough(), Hex(), HexSwap()
misere_pile, nim = MiserePile(), Nim()
