"""Repair of a player that loses games, by better moves in single positions.

The last move of a game that exhaustive play finds lost is refuted: the opponent's reply wins. A
position in which every move is refuted is lost, and so the move before it is refuted as well. The
rules prove that much. A search that is longer than the player's own chooses among the other moves,
or an earlier position to change. Its choices go into an override table, which the player uses from
then on. The games that follow are explored and repaired in turn, and in the end all games once
more. The repair uses only the rules and the player's search. An exploration that finds no lost
game proves the result.
"""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import numpy as np

from azjax.games import rows as packing
from azjax.games.base import Game, State
from azjax.players import Decision
from azjax.proof.lines import Line, action_symmetries, replay
from azjax.proof.overrides import OverrideTable

_CLEARLY = 0.5  # A move is a mistake if another move's expected value exceeds its own by more.


@dataclasses.dataclass(eq=False)
class Analysis:
    """What a search found in one position, which lost games correct.

    Attributes:
      legal: `bool [A]`.
      expected: `float [A]`, the value of each move for the player; -1 of those that were not tried.
      refuted: `bool [A]`, the moves that lose against some line of play.
      chosen: the move that a search chose.
    """

    legal: np.ndarray
    expected: np.ndarray
    refuted: np.ndarray
    chosen: int

    @property
    def is_lost(self) -> bool:
        """Whether every move is refuted."""
        return not (self.legal & ~self.refuted).any()

    @property
    def value(self) -> float:
        """The expected value of the best move."""
        return self.expected[self.legal].max()

    @property
    def best(self) -> int:
        """The move to play: the chosen one, unless it is refuted or another is clearly better."""
        left = np.where(self.legal & ~self.refuted, self.expected, -np.inf)
        is_right = not self.refuted[self.chosen] and left.max() <= left[self.chosen] + _CLEARLY
        return self.chosen if is_right or self.is_lost else int(left.argmax())

    def update(self, action: int, value: float, is_lost: bool) -> None:
        """Lowers the value of a move to that of a position that an opponent led to after it."""
        self.expected[action] = min(self.expected[action], value)
        self.refuted[action] |= is_lost


Analyze = Callable[[State], list[Analysis]]


def make_analyze(game: Game, decide: Callable[[State], Decision], table: OverrideTable) -> Analyze:
    """Builds `states [N, ...] -> N analyses`, on the host; a position always has the same one.

    Args:
      game: the rules.
      decide: a search, on the host.
      table: with the moves that are refuted already.
    """
    refuted = dict(zip(_keys(table.states), table.refuted, strict=True))
    nothing = np.zeros(game.num_actions, bool)
    memory: dict[bytes, Analysis] = {}

    def analyze(states):
        keys = _keys(states)
        new = {key: row for row, key in enumerate(keys) if key not in memory}
        if new:
            searched = _rows(states, np.array([*new.values()]))
            decision = decide(searched)
            visits, values = np.asarray(decision.visit_counts), np.asarray(decision.q_values)
            legal = np.asarray(jax.vmap(game.legal_actions)(searched))
            for row, key in enumerate(new):
                losing = refuted.get(key, nothing).copy()
                expected = np.where((visits[row] > 0) & ~losing, values[row], -1.0)
                memory[key] = Analysis(legal[row], expected, losing, int(decision.action[row]))
        return [memory[key] for key in keys]

    return analyze


class Repaired(NamedTuple):
    """The result of a repair.

    Attributes:
      table: with better moves.
      starts: one line to each position that has one, for `exhaustive.explore` to start from.
    """

    table: OverrideTable
    starts: list[Line]


def repair(
    game: Game,
    table: OverrideTable,
    games: Sequence[Line],
    seat: int,
    analyze: Analyze,
    symmetric: bool,
) -> Repaired:
    """Adds other moves to a table, at most one for each of some lost games.

    Args:
      game: the rules.
      table: the moves so far.
      games: lost games of the player that uses the table, from `exhaustive.lost_games`.
      seat: 0 or 1, the player's.
      analyze: from `make_analyze`, of a search that is longer than the player's; it is updated.
      symmetric: whether the player makes the image of its move in the symmetric copies of a
        position, as in `exhaustive.explore`.
    """
    lines = sorted({line[:ply] for line in games for ply in range(len(line))})
    states = replay(game, lines)
    own = np.flatnonzero(np.asarray(jax.vmap(game.player)(states)) == seat)
    lines = [lines[row] for row in own]
    analyses = dict(zip(lines, analyze(_rows(states, own)), strict=True))
    starts: dict[Analysis, Line] = {}
    for line in games:
        played = [(analyses[line[:ply]], ply) for ply in range(len(line)) if line[:ply] in analyses]
        value, is_lost = -1.0, True
        for analysis, ply in reversed(played):
            analysis.update(line[ply], value, is_lost)
            value, is_lost = analysis.value, analysis.is_lost
        played = list(itertools.takewhile(lambda each: not each[0].is_lost, played))
        if played and not any(analysis in starts for analysis, _ in played):
            analysis, ply = _find_mistake(line, played)
            starts[analysis] = line[:ply]
    changed = {
        analysis: line
        for line, analysis in analyses.items()
        if analysis in starts or analysis.refuted.any()
    }
    moves = [analysis.best for analysis in changed]
    refuted = [analysis.refuted for analysis in changed]
    symmetries = action_symmetries(game, symmetric)
    table = _add(game, table, [*changed.values()], moves, refuted, symmetries)
    return Repaired(table, [line for analysis, line in starts.items() if not analysis.is_lost])


def _find_mistake(line: Line, played: list[tuple[Analysis, int]]) -> tuple[Analysis, int]:
    """Finds the last ply of a game at which another move is clearly better, or most so."""
    most, mistake = -1.0, played[-1]
    for analysis, ply in reversed(played):
        gain = analysis.expected[analysis.best] - analysis.expected[line[ply]]
        if analysis.best != line[ply] and gain > most:
            most, mistake = gain, (analysis, ply)
        if most > _CLEARLY:
            break
    return mistake


def make_symmetric(game: Game, table: OverrideTable, games: Sequence[Line]) -> Repaired:
    """Adds the last move of each line to a table, in all symmetric copies.

    Args:
      game: the rules, with symmetries.
      table: the moves so far.
      games: of the player that uses the table, from `exhaustive.symmetry_violations`; at least one.
    """
    lines, moves = [line[:-1] for line in games], [line[-1] for line in games]
    nothing = [np.zeros(game.num_actions, bool)] * len(games)
    table = _add(game, table, lines, moves, nothing, action_symmetries(game, True))
    return Repaired(table, lines)


def _add(
    game: Game,
    table: OverrideTable,
    lines: list[Line],
    moves: list[int],
    refuted: list[np.ndarray],
    symmetries: np.ndarray,
) -> OverrideTable:
    """Adds moves after some lines, and what is refuted there; new moves replace old ones."""
    if not lines:
        return table
    played = [tuple(symmetry[[*line]]) for symmetry in symmetries for line in lines]
    states = [replay(game, played), table.states]
    actions = np.concatenate([*symmetries[:, moves], table.actions]).astype(np.int32)
    losing = [*(np.stack(refuted)[:, np.argsort(each)] for each in symmetries), table.refuted]
    states = jax.tree.map(lambda *leaves: np.concatenate(leaves), *states)
    first, which = packing.distinct(packing.pack(states))
    union = np.zeros((len(first), game.num_actions), bool)
    np.logical_or.at(union, which, np.concatenate(losing))
    return OverrideTable(_rows(states, first), actions[first], union, table.rounds)


def _keys(states: State) -> list[bytes]:
    return [row.tobytes() for row in packing.pack(states)]


def _rows(states: State, which: np.ndarray) -> State:
    return jax.tree.map(lambda leaf: leaf[which], states)
