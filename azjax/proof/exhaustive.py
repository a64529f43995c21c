"""Exhaustive play: a player's moves against all replies, ply by ply.

It needs only the rules. A lost game proves that the player can be beaten. If no game is lost, no
opponent can beat it. A position that is reached in several ways is explored once, and so are
symmetric copies of a position if the player is equivariant. The positions of a ply are spread over
files, which bounds memory and lets an interrupted exploration resume; see `ply_files`.
"""

import contextlib
import functools
import itertools
import pathlib
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from azjax._files import remove
from azjax.games.base import Game
from azjax.games.symmetries import symmetries_of
from azjax.proof import ply_files
from azjax.proof.replies import Act, Line, Moves, choose_moves, make_moves

_PART = 2**16  # Positions of one file.


class Ends(NamedTuple):
    """How games end for the player; the columns are won, drawn and lost."""

    decisions: int  # Positions where the player chose a move.
    moves: np.ndarray  # `int64 [3]`, different moves of either side that end a game.
    games: np.ndarray  # `float64 [3]`, complete games: every sequence of moves is one.


class Exploration(NamedTuple):
    """The progress and the results of exhaustive play."""

    ply: int
    positions: int  # Explored at this ply, of the `total`.
    total: int
    ends: Ends  # Of all games so far.
    lost: Line | None  # The line of the first lost game, if any.


def explore(
    game: Game,
    act: Act,
    seat: int,
    folder: pathlib.Path,
    part_size: int = _PART,
    symmetric: bool = False,
    starts: Sequence[Line] = ((),),
) -> Generator[Exploration, None, Exploration]:
    """Plays a player against all replies; resumes an interrupted exploration.

    Args:
      game: the rules.
      act: the player, `states [N, ...] -> actions [N]`. It must be deterministic.
      seat: the seat of the player, 0 or 1.
      folder: a folder for this player, seat and settings only; it is created.
      part_size: positions in one file; each core holds one file in memory.
      symmetric: explore only one of the symmetric copies of a position, and assume that the player
        is equivariant: in the other copies, it makes the same move, transformed. Decisions and
        moves are then counted up to symmetry; games are counted in full.
      starts: lines to the positions from which games are explored.

    Yields:
      The state of the exploration after each part. The last one covers all games; it is returned
      as well, as the value of `yield from`.
    """
    if seat not in (0, 1):
        raise ValueError(f"seat is {seat}: use 0 for the first player or 1 for the second")
    symmetries = symmetries_of(game, symmetric).actions
    settings = {"seat": int(seat), "symmetric": bool(symmetric)}
    ply_files.begin(game, folder, symmetries, starts, part_size, settings)
    shortest, games = min(map(len, starts)), float(len(starts))
    state = Exploration(0, 0, 0, Ends(0, np.zeros(3, np.int64), np.zeros(3)), None)
    choose = functools.partial(choose_moves, game, act, seat)
    for ply in itertools.count():
        here = ply_files.read_ply(folder, ply)
        with ply_files.readable(here.folder):
            if not np.isclose(here.games, games, rtol=1e-9, atol=0):  # Sums of floats are rounded.
                raise ValueError(f"{here.games:g} games lead there, not {games:g}")
        if not here.bounds[-1]:
            break
        if ply + shortest >= game.max_plies:
            raise ValueError(
                f"{game.name} lasts longer than its max_plies, {game.max_plies}: set max_plies to "
                "the length of its longest game"
            )
        games = 0.0
        with contextlib.closing(_explore_ply(game, choose, symmetries, here)) as paths:
            for path, done in zip(paths, here.bounds[1:].tolist(), strict=True):
                part = ply_files.read(path)
                games += part["onward"]
                state = state._replace(ply=ply, positions=done, total=int(here.bounds[-1]))
                state = _add_part(state, folder, part)
                yield state
        if not ply_files.has_ply(folder, ply + 1):
            ply_files.gather(folder, ply, part_size)
        for path in (*here.folder.glob("children-*"), *here.folder.glob("part-*")):
            remove(path)
    return state


def _add_part(state: Exploration, folder: pathlib.Path, part: dict[str, Any]) -> Exploration:
    lost, (decisions, moves, games) = state.lost, state.ends
    ends = Ends(decisions + part["decisions"], moves + part["moves"], games + part["games"])
    if lost is None and part["lost"]:
        parent, last = part["lost"][0]
        lost = (*ply_files.lines_to(folder, state.ply, np.array([parent]))[0], last)
    return state._replace(ends=ends, lost=lost)


def _explore_ply(
    game: Game,
    choose: Callable[[np.ndarray, Callable[[int], Line]], Moves],
    symmetries: np.ndarray,
    here: ply_files.Ply,
) -> Generator[pathlib.Path, None, None]:
    """Yields the path of `ends-N.json` for each part of a ply, once the file is written.

    The player chooses its moves in this thread, so that it can be interrupted. Other threads
    compute the next positions.
    """
    children, paths = here.paths(ply_files.CHILDREN), here.paths(ply_files.ENDS)

    def choose_all():
        for number, path in enumerate(paths):
            chosen = None
            if not path.exists():
                rows = np.array(here.load(ply_files.PARTS, number))
                chosen = rows, choose(rows, functools.partial(line_to, number))
            yield number, chosen

    def line_to(number, row):
        index = here.bounds[number : number + 1] + row
        return ply_files.lines_to(here.folder.parent, int(here.folder.name), index)[0]

    def make_chosen(task):
        number, chosen = task
        if chosen is not None:
            rows, moves = chosen
            after, ends = make_moves(game, symmetries, rows, moves, int(here.bounds[number]))
            digest = ply_files.save(children[number], after)
            ply_files.write(paths[number], {**ends, "children": digest})
        return paths[number]

    return ply_files.in_threads(make_chosen, choose_all())


def lost_games(folder: pathlib.Path) -> Iterator[Line]:
    """Yields the lines of lost games, at most 1,000 from each part, shortest first."""
    for ply in itertools.count():
        if not ply_files.has_ply(folder, ply):
            return
        ends = map(ply_files.read, ply_files.read_ply(folder, ply).paths(ply_files.ENDS))
        if lost := [pair for part in ends for pair in part["lost"]]:
            parents, last = np.array(lost).T
            before = ply_files.lines_to(folder, ply, parents)
            yield from ((*line, action) for line, action in zip(before, last.tolist(), strict=True))
