"""Exhaustive play of one seat: every line is played from the start, without merging."""

from typing import NamedTuple


class Ends(NamedTuple):
    """The results of all lines. Triples are won, drawn and lost by the player."""

    decisions: int  # Positions in which the player moves, distinct within each ply.
    moves: list[int]  # Moves that end a game, distinct within each ply.
    games: list[int]
    lost: set[tuple[int, ...]]  # The lines of all lost games.
    positions: list[int]  # Unfinished positions of each ply.


def position_after(rules, line):
    position = rules.start()
    for action in line:
        assert action in rules.legal(position)
        position, _ = rules.play(position, action)
    return position


def explore(rules, policy, seat, starts=((),), same=lambda position: position):
    """Plays `policy(position) -> action` in one seat; `same` is the key of equal positions."""
    decisions, moves, games, lost, positions = 0, [0, 0, 0], [0, 0, 0], set(), []
    lines = [tuple(start) for start in starts]
    while lines:
        seen, longer = set(), []
        for line in lines:
            position = position_after(rules, line)
            is_own, is_new = position.player == seat, same(position) not in seen
            seen.add(same(position))
            decisions += is_own and is_new
            for action in [policy(position)] if is_own else rules.legal(position):
                after, reward = rules.play(position, action)
                if not after.over:
                    longer.append((*line, action))
                    continue
                column = 1 - (reward if is_own else -reward)
                moves[column] += is_new
                games[column] += 1
                if column == 2:
                    lost.add((*line, action))
        positions.append(len(seen))
        lines = longer
    return Ends(decisions, moves, games, lost, positions)
