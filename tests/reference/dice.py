"""The rules of games with dice; `chance` returns the probabilities of the outcomes, or nothing."""

import functools
from fractions import Fraction

from reference import Position, Rules


class EinStein(Rules):
    """A board of stones by number, negative for player 1, and the number shown, or 0."""

    def __init__(self, size):
        self.size = size
        self.count = {3: 3, 5: 6}[size]

    def start(self):
        setup = {3: "120300000", 5: "1230045000600000000000000"}[self.size]
        own = [int(mark) for mark in setup]
        stones = [own[i] - own[-1 - i] for i in range(len(own))]
        return Position((tuple(stones), 0), 0, False)

    def chance(self, position):
        if position.over or position.board[1]:
            return {}
        return dict.fromkeys(range(self.count), Fraction(1, self.count))

    def legal(self, position):
        (stones, die), mark = position.board, 1 - 2 * position.player
        if position.over or die == 0:
            return list(self.chance(position))
        left = [number for number in range(1, self.count + 1) if mark * number in stones]
        near = [[number for number in left if number <= die][-1:]]
        near += [[number for number in left if number >= die][:1]]
        movable = [die] if die in left else sum(near, [])
        actions = [3 * (number - 1) + d for number in movable for d in range(3)]
        return [action for action in actions if self.target(position, action) is not None]

    def target(self, position, action):
        """Returns where an action leads, or None if it leaves the board."""
        mark = 1 - 2 * position.player
        row, column = divmod(position.board[0].index(mark * (action // 3 + 1)), self.size)
        down, right = [(1, 0), (1, 1), (0, 1)][action % 3]
        row, column = row + mark * down, column + mark * right
        inside = 0 <= row < self.size and 0 <= column < self.size
        return self.size * row + column if inside else None

    def move(self, position, action):
        (stones, die), mark = position.board, 1 - 2 * position.player
        if die == 0:
            return position._replace(board=(stones, action + 1)), 0
        number, after = mark * (action // 3 + 1), list(stones)
        after[stones.index(number)] = 0
        after[self.target(position, action)] = number
        corner = after[-1] if position.player == 0 else after[0]
        won = mark * corner > 0 or not any(mark * stone < 0 for stone in after)
        return Position((tuple(after), 0), 1 - position.player, won), int(won)


class Race(Rules):
    """The game in `examples/race.py`: the steps of both players, and the die, or 2 to choose."""

    def start(self):
        return Position((0, 0, 2), 0, False)

    def chance(self, position):
        even, bold = {0: Fraction(1, 2), 1: Fraction(1, 2)}, {0: Fraction(2, 3), 1: Fraction(1, 3)}
        return {} if position.over else [even, bold, {}][position.board[2]]

    def legal(self, position):
        return [] if position.over else [0, 1]

    def move(self, position, action):
        *steps, die = position.board
        if die == 2:
            return position._replace(board=(*steps, action)), 0
        steps[position.player] += [[1, 3], [1, 4]][die][action]
        won = max(steps) >= 8
        return Position((*steps, 2), 1 - position.player, won), int(won)


class Pile(Rules):
    """The game in `tests/dice_pile.py`: the stones left, and the dice, or 0."""

    def start(self):
        return Position((6, 0), 0, False)

    def chance(self, position):
        odds = {0: Fraction(1, 6), 1: Fraction(1, 2), 2: Fraction(1, 3)}
        return {} if position.over or position.board[1] else odds

    def legal(self, position):
        return list(self.chance(position)) or ([] if position.over else [0, 1])

    def move(self, position, action):
        (stones, thrown), player = position.board, position.player
        if not thrown:
            loses = action == 0 and stones < 6
            return Position((stones, 0 if loses else action or 2), player, loses), -int(loses)
        left = max(stones - (thrown if action else 1), 0)
        return Position((left, 0), player ^ action, left == 0), int(left == 0)


THROWS = [(high, low) for high in range(1, 7) for low in range(1, high + 1)]


class Backgammon(Rules):
    """24 points with the checkers of player 0, who moves down, or minus those of player 1.

    Then the bar and the checkers borne off, of both, the dice to play, and the number of plies.
    """

    def start(self):
        points = [0] * 24
        for point, count in ((24, 2), (13, 5), (8, 3), (6, 5)):
            points[point - 1], points[24 - point] = count, -count
        return Position((tuple(points), (0, 0), (0, 0), (), 0), 0, False)

    def chance(self, position):
        *_, dice, plies = position.board
        if position.over or dice:
            return {}
        if plies == 0:
            return {i: Fraction(1, 15) for i, (high, low) in enumerate(THROWS) if high != low}
        return {i: Fraction(1 if high == low else 2, 36) for i, (high, low) in enumerate(THROWS)}

    def legal(self, position):
        *sides, dice, _ = position.board
        if position.over or not dice:
            return list(self.chance(position))
        lengths = {}
        for die in set(dice):
            for point in self.movable(tuple(sides), position.player, die):
                after = self.moved(tuple(sides), position.player, point, die)
                lengths[point, die] = 1 + self.longest(after, position.player, without(dice, die))
        longest = max(lengths.values(), default=0)
        moves = [move for move, length in lengths.items() if length == longest]
        if longest == 1 and len(dice) == 2:
            moves = [move for move in moves if move[1] == max(die for _, die in moves)]
        return sorted(6 * (point - 1) + die - 1 for point, die in moves) or [150]

    @functools.cache  # noqa: B019
    def longest(self, sides, player, dice):
        """Returns how many of the dice can be played."""
        if sides[2][player] == 15:
            return 0
        lengths = [0]
        for die in set(dice):
            for point in self.movable(sides, player, die):
                after = self.moved(sides, player, point, die)
                lengths.append(1 + self.longest(after, player, without(dice, die)))
        return max(lengths)

    def movable(self, sides, player, die):
        """Returns the player's points from which a die can be played, as the player counts."""
        points, bar, _ = sides
        own = [count if player == 0 else -count for count in points[:: 1 - 2 * player]]
        if bar[player]:
            return [25] if own[24 - die] > -2 else []
        found = []
        for point in [point for point in range(1, 25) if own[point - 1] > 0]:
            if point > die:
                legal = own[point - die - 1] > -2
            else:
                behind = [count for count in own[point:] if count > 0]
                legal = all(count <= 0 for count in own[6:]) and (point == die or not behind)
            found += [point] if legal else []
        return found

    def moved(self, sides, player, point, die):
        (points, bar, off), mark = map(list, sides), 1 - 2 * player
        place = {True: lambda p: p - 1, False: lambda p: 24 - p}[player == 0]
        if point == 25:
            bar[player] -= 1
        else:
            points[place(point)] -= mark
        if point - die <= 0:
            off[player] += 1
        elif points[place(point - die)] == -mark:
            points[place(point - die)] = mark
            bar[1 - player] += 1
        else:
            points[place(point - die)] += mark
        return tuple(points), tuple(bar), tuple(off)

    def move(self, position, action):
        *sides, dice, plies = position.board
        sides, player = tuple(sides), position.player
        if not dice:
            high, low = THROWS[action]
            dice = (high,) * 4 if high == low else (low, high)
            return Position((*sides, dice, plies + 1), player, plies + 1 == 2000), 0
        if action < 150:
            point, die = action // 6 + 1, action % 6 + 1
            sides, dice = self.moved(sides, player, point, die), without(dice, die)
        won = sides[2][player] == 15
        if won or action == 150 or self.longest(sides, player, dice) == 0:
            player, dice = 1 - player, ()
        return Position((*sides, dice, plies + 1), player, won or plies + 1 == 2000), int(won)


def without(dice, die):
    """Returns the dice that are left after one is played."""
    place = dice.index(die)
    return dice[:place] + dice[place + 1 :]
