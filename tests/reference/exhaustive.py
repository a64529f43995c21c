"""Every game that a player can be led into, one after the other."""

from typing import NamedTuple


class Count(NamedTuple):
    """What became of all games.

    Attributes:
      decisions: different positions in which the player chose a move.
      ends: different moves, of either side, that end a game: won, drawn and lost by the player.
      games: complete games that are won, drawn and lost.
      lost: the actions of each lost game.
    """

    decisions: int
    ends: list[int]
    games: list[int]
    lost: set[tuple[int, ...]]


def play_all(rules, policy, seat, starts=((),), representative=lambda position: position):
    """Counts the games of a player who follows `position -> action` against every reply.

    Args:
      rules: of the game.
      policy: the player's move in a position.
      seat: 0 or 1, the player's.
      starts: what was played before, once for each position that games go on from.
      representative: of a position, the same for all positions that count once.
    """
    decisions, ends, games, lost = set(), [set(), set(), set()], [0, 0, 0], set()
    first_seen = {}

    def go_on(position, line):
        mine = position.player == seat
        name = representative(position)
        is_first = first_seen.setdefault(name, position) == position
        if mine:
            decisions.add(name)
        for action in [policy(position)] if mine else rules.legal(position):
            assert action in rules.legal(position)
            after, reward = rules.play(position, action)
            if not after.over:
                go_on(after, (*line, action))
                continue
            column = 1 - (reward if mine else -reward)
            games[column] += 1
            if is_first:
                ends[column].add((name, action))
            if column == 2:
                lost.add((*line, action))

    for start in starts:
        position = rules.start()
        for action in start:
            position, _ = rules.play(position, action)
        go_on(position, tuple(start))
    return Count(len(decisions), [len(column) for column in ends], games, lost)
