"""Slow, obvious reference implementations in plain Python.

A file of rules has `start() -> Position`, `legal(position) -> [action]` and
`play(position, action) -> (Position, reward)`, with the signs of `azjax.games.base`.
"""

from typing import NamedTuple


class Position(NamedTuple):
    """A board of 1 (player 0), -1 (player 1) and 0 (empty), the player to move, and the end."""

    board: tuple[int, ...]
    player: int
    over: bool


def sign(before: Position, after: Position) -> int:
    """The factor from an outcome for the player of `after` to one for the player of `before`."""
    return 1 if before.player == after.player else -1
