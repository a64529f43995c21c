"""Repair of a player that loses games: better moves in single positions.

The last move of the player in a lost game is refuted: the opponent's reply wins. If every move in a
position is refuted, the position is lost, and the player's move before it is refuted as well. All
this follows from the rules. A search, usually longer than the player's, then selects a position in
the game and another move in it. These moves go into an override table. The games that follow from
them are explored and repaired in turn, and finally all games are explored again. Only that
exploration proves the result; the search may be wrong.
"""

import dataclasses
import io
import itertools
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from azjax._files import digest_arrays, replacing
from azjax.games import rows as packing
from azjax.games.base import Game, State, init_batch
from azjax.games.symmetries import symmetries_of
from azjax.players import Decision
from azjax.proof.replies import Line, replay

TABLE_SUFFIX = ".overrides.npz"
_CLEARLY = 0.5  # Another move is clearly better if its expected value is higher by more than this.


class OverrideTable(NamedTuple):
    """Moves to play in certain positions."""

    states: State  # The positions `[K, ...]`, on the host.
    actions: np.ndarray  # `int32 [K]`, the move in each position.
    refuted: np.ndarray  # `bool [K, A]`, the moves that lose there against some line of play.
    rounds: int = 0  # The number of repair rounds that made the table.


def empty_table(game: Game) -> OverrideTable:
    """Returns a table without moves."""
    states = jax.tree.map(lambda leaf: leaf[:0], jax.device_get(init_batch(game, 1)))
    return OverrideTable(states, np.zeros(0, np.int32), np.zeros((0, game.num_actions), bool))


def table_path(run_dir: pathlib.Path, iteration: int, seat: int, simulations: int) -> pathlib.Path:
    """Returns the path of a checkpoint's table for a seat; 0 simulations: the network alone."""
    seat_name = ("first", "second")[seat]
    return run_dir / "lines" / f"{iteration}-{seat_name}-{simulations}{TABLE_SUFFIX}"


def save_table(path: pathlib.Path, table: OverrideTable) -> None:
    """Writes a table atomically."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        arrays = table._replace(states=packing.pack(table.states))._asdict()
        np.savez(file, **arrays, sha256=_digest(path, arrays))


def _digest(path: pathlib.Path, arrays: dict[str, Any]) -> str:
    """Returns a digest with the name of the file: that of another seat is no table of this one."""
    return digest_arrays(path.name.encode(), (arrays[name] for name in OverrideTable._fields))


def load_table(path: pathlib.Path, game: Game) -> OverrideTable:
    """Reads a table; it must be unchanged, and its moves legal."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            arrays = dict(file)
        if arrays.pop("sha256").item() != _digest(path, arrays):
            raise ValueError("it was changed")
        states = packing.unpack(game, arrays["states"])
        table = OverrideTable(states, arrays["actions"], arrays["refuted"], arrays["rounds"].item())
        legal = np.asarray(jax.vmap(game.legal_actions)(states))
        moves = np.arange(game.num_actions) == table.actions[:, None]
        fits = table.refuted.shape == moves.shape == legal.shape
        if not fits or not (legal & moves).any(axis=1).all():
            raise ValueError("the moves are not those of the positions")
        return table
    except Exception as error:  # Damaged files fail in many ways.
        raise ValueError(
            f"{path} is damaged or not an override table of {game.name}: delete it and repair again"
        ) from error


@dataclasses.dataclass(eq=False)
class Analysis:
    """The result of a search in one position, corrected by lost games."""

    legal: np.ndarray  # `bool [A]`
    expected: np.ndarray  # `float [A]`, values of moves for the player; -1 if not searched.
    refuted: np.ndarray  # `bool [A]`, the moves that lose against some line of play.
    chosen: int  # The move that the search chose.

    @property
    def is_lost(self) -> bool:
        """Whether every move is refuted."""
        return not (self.legal & ~self.refuted).any()

    @property
    def best(self) -> int:
        """The move to play: the chosen one, unless it is refuted or another is clearly better."""
        left = np.where(self.legal & ~self.refuted, self.expected, -np.inf)
        is_right = not self.refuted[self.chosen] and left.max() <= left[self.chosen] + _CLEARLY
        return self.chosen if is_right or self.is_lost else int(left.argmax())

    def update(self, action: int, value: float, is_lost: bool) -> None:
        """Lowers the value of a move to that of a position which an opponent can reach after it."""
        self.expected[action] = min(self.expected[action], value)
        self.refuted[action] |= is_lost


Analyze = Callable[[State], list[Analysis]]


def make_analyze(game: Game, decide: Callable[[State], Decision], table: OverrideTable) -> Analyze:
    """Builds `states [N, ...] -> N analyses` on the host, with one analysis for each position.

    They come from the search `decide` and from the refuted moves of the table.
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


def repair_games(
    game: Game,
    table: OverrideTable,
    games: Sequence[Line],
    seat: int,
    analyze: Analyze,
    symmetric: bool,
) -> tuple[OverrideTable, list[Line]]:
    """Adds moves to a table, at most one for each lost game of the player with this table.

    The analyses of `analyze`, which come from a longer search, are updated. Returns the table, and
    a line to each position with a new move, to explore from.
    """
    lines = sorted({line[:ply] for line in games for ply in range(len(line))})
    states = replay(game, lines)
    rows = np.flatnonzero(np.asarray(jax.vmap(game.player)(states)) == seat)
    lines = [lines[row] for row in rows]
    analyses = dict(zip(lines, analyze(_rows(states, rows)), strict=True))
    starts: dict[Analysis, Line] = {}
    for line in games:
        played = [(analyses[line[:ply]], ply) for ply in range(len(line)) if line[:ply] in analyses]
        value, is_lost = -1.0, True
        for analysis, ply in reversed(played):
            analysis.update(line[ply], value, is_lost)
            value, is_lost = analysis.expected[analysis.legal].max(), analysis.is_lost
        played = list(itertools.takewhile(lambda each: not each[0].is_lost, played))
        if played and not any(analysis in starts for analysis, _ in played):
            analysis, ply = _find_mistake(line, played)
            starts[analysis] = line[:ply]
    changed = {
        analysis: line
        for line, analysis in analyses.items()
        if analysis in starts or analysis.refuted.any()
    }
    table = _add(game, table, changed, symmetries_of(game, symmetric).actions)
    return table, [line for analysis, line in starts.items() if not analysis.is_lost]


def _find_mistake(line: Line, played: list[tuple[Analysis, int]]) -> tuple[Analysis, int]:
    """Finds the last ply where another move is clearly better, or the one with the largest gain."""
    most, mistake = -1.0, played[-1]
    for analysis, ply in reversed(played):
        gain = analysis.expected[analysis.best] - analysis.expected[line[ply]]
        if gain > most:
            most, mistake = gain, (analysis, ply)
        if most > _CLEARLY:
            break
    return mistake


def _add(
    game: Game, table: OverrideTable, analyses: dict[Analysis, Line], symmetries: np.ndarray
) -> OverrideTable:
    """Adds the best and refuted moves after lines to a table; new moves replace old ones."""
    if not analyses:
        return table
    moves = [analysis.best for analysis in analyses]
    refuted = np.stack([analysis.refuted for analysis in analyses])
    played = [tuple(symmetry[[*line]]) for symmetry in symmetries for line in analyses.values()]
    states = [replay(game, played), table.states]
    actions = np.concatenate([*symmetries[:, moves], table.actions]).astype(np.int32)
    losing = [*(refuted[:, np.argsort(each)] for each in symmetries), table.refuted]
    states = jax.tree.map(lambda *leaves: np.concatenate(leaves), *states)
    first, which = packing.distinct(packing.pack(states))
    union = np.zeros((len(first), game.num_actions), bool)
    np.logical_or.at(union, which, np.concatenate(losing))
    return OverrideTable(_rows(states, first), actions[first], union, table.rounds)


def _keys(states: State) -> list[bytes]:
    return [row.tobytes() for row in packing.pack(states)]


def _rows(states: State, which: np.ndarray) -> State:
    return jax.tree.map(lambda leaf: leaf[which], states)
