"""A player against every reply: each line is played from the start, and none is merged."""

from typing import NamedTuple


class Ends(NamedTuple):
    """What all lines come to. Won, drawn and lost by the player, where there are three."""

    decisions: int  # Different positions of a ply in which the player moves, all plies together.
    moves: list[int]  # Different moves that end a game, each ply by itself.
    games: list[int]
    lost: set[tuple[int, ...]]  # The lines of all lost games.
    positions: list[int]  # Different ones of each ply that are not over.


def position_after(rules, line):
    position = rules.start()
    for action in line:
        assert action in rules.legal(position)
        position, _ = rules.play(position, action)
    return position


def explore(rules, policy, seat, starts=((),), same=lambda position: position):
    """Plays `policy(position) -> action` in one seat; `same` names what counts as one position."""
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
