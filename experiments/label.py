"""Samples positions of Connect Four and labels them: `python -m experiments.label`.

The program writes the package's `connect_four_positions.npz`. The solver is BitBully by Markus
Thill, which is under the AGPL. Only this program uses it, and azjax does not install it.

    python -m pip install bitbully bitbully-databases
    python -m experiments.label
"""

from azjax.cli import run_program
from azjax.games.base import ILLEGAL

if __name__ == "__main__":
    run_program("experiments.label")

import dataclasses
import functools
import importlib
import importlib.metadata
import importlib.util
import itertools
import multiprocessing
import os
import pathlib
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import jax
import numpy as np

from azjax._commands import command
from azjax._files import check_folder, replacing
from azjax._settings import Count, Positive
from azjax.cli import console
from azjax.games import connect_four

_GAME = connect_four.make()
_PHASES = {"begin": range(0, 15), "middle": range(15, 29), "end": range(29, 42)}  # Plies played.
_LENGTHS = {"easy": 14, "medium": 28, "hard": 42}  # Maximum plies to the end under perfect play.
CLASSES = ("begin-easy", "begin-medium", "begin-hard", "middle-easy", "middle-medium", "end-easy")
DECISIVE = "decisive"  # Exactly one column keeps the outcome.
_RANDOM = (1.0, 0.5, 1.0, 0.5, 1.0, 0.5, 0.2, 0.05)  # Shares of random moves, game by game.
_DRAWN = 3  # Maximum positions per game for each phase, and for the decisive class.
_BATCH = 96  # Games between two updates of the classes that still need positions.
_CHECKED = 5_000  # Games in which the rules are compared.


@dataclasses.dataclass(frozen=True)
class Options:
    """Draws positions from games of mixed strength and labels them with a perfect solver."""

    out: pathlib.Path = connect_four.POSITIONS
    """The file to write."""
    positions: Positive = 1000
    """Number of positions in each class."""
    seed: Count = 0
    """Seed of the games and of the drawn positions."""


class Drawn(NamedTuple):
    """A position with its label.

    Attributes:
      name: its class.
      identity: a number that only the position and its mirror image have.
      moves: the columns from the start to the position.
      outcomes: after each column, for the player to move: 1, 0, -1, or `ILLEGAL` if it is full.
      plies: from here to the end of the game, after each column; 0 if it is full.
    """

    name: str
    identity: int
    moves: tuple[int, ...]
    outcomes: list[int]
    plies: list[int]


def label(options: Options) -> int:
    """Checks that azjax and the solver have the same rules, then writes labelled positions."""
    packages = ("bitbully", "bitbully-databases")
    if importlib.util.find_spec("bitbully") is None:
        raise ValueError(
            f"the solver is missing: install it with {command('pip', 'install', *packages)}; only "
            "this program needs these packages, which are under the AGPL"
        )
    check_folder(options.out)
    print(f"the rules agree over {check_rules(options.seed):,} moves of random games")
    by_class = _draw(options)
    drawn = [position for name in (*CLASSES, DECISIVE) for position in by_class[name]]
    seed, versions = options.seed, [f"{n} {importlib.metadata.version(n)}" for n in packages]
    source = f"python -m experiments.label --seed {seed}, with {' and '.join(versions)}"
    with replacing(options.out) as temporary, temporary.open("wb") as file:
        np.savez_compressed(
            file,
            boards=_replay([position.moves for position in drawn]),
            outcomes=np.array([position.outcomes for position in drawn], np.int8),
            plies=np.array([position.plies for position in drawn], np.int8),
            classes=np.array([*CLASSES, DECISIVE]),
            class_of=np.repeat(np.arange(len(by_class), dtype=np.int8), options.positions),
            source=np.array(source),
        )
    print(f"{len(drawn):,} positions: {options.out}")
    return 0


def _draw(options: Options) -> dict[str, list[Drawn]]:
    """Plays games until every class has enough positions, all of them different."""
    by_class: dict[str, list[Drawn]] = {name: [] for name in (*CLASSES, DECISIVE)}
    seen: set[int] = set()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=spawn) as pool, console.progress() as bar:
        task = bar.add_task("positions", total=len(by_class) * options.positions)
        for first in itertools.count(step=_BATCH):
            wanted = frozenset(n for n, some in by_class.items() if len(some) < options.positions)
            if not wanted:
                return by_class
            games = range(first, first + _BATCH)
            draw = functools.partial(_draw_from_game, options.seed, wanted)
            for drawn in itertools.chain.from_iterable(pool.map(draw, games, chunksize=6)):
                room = options.positions - len(by_class[drawn.name])
                if room and drawn.identity not in seen:
                    seen.add(drawn.identity)
                    by_class[drawn.name].append(drawn)
            bar.update(task, completed=sum(map(len, by_class.values())))
    raise AssertionError("unreachable")


def _draw_from_game(seed: int, wanted: frozenset[str], number: int) -> list[Drawn]:
    """Plays a game, and draws and labels positions of the wanted classes."""
    rng = np.random.default_rng((seed, number))
    only_begin = all(name.startswith("begin") for name in wanted)
    boards = _play(rng, _RANDOM[number % len(_RANDOM)], 15 if only_begin else 42)
    drawn = []
    for name, plies in {**_PHASES, DECISIVE: range(42)}.items():
        open_plies = [p for p in plies if p < len(boards) and len(boards[p][0].legal_moves()) > 1]
        for ply in rng.permutation(open_plies)[:_DRAWN]:
            if any(other.startswith(name) for other in wanted):
                board, moves = boards[ply]
                drawn.append(_label(board, moves, name))
    return [position for position in drawn if position.name in wanted]


def _play(rng: np.random.Generator, share: float, most: int) -> list[tuple[Any, tuple[int, ...]]]:
    """Plays a game of perfect and random moves; returns each board with the moves to it."""
    board, moves, boards = _empty_board(), (), []
    while not board.is_game_over() and len(boards) < most:
        boards.append((board.copy(), moves))
        columns = board.legal_moves()
        if rng.random() >= share:
            scores = _engine().score_all_moves(board)
            columns = [column for column in columns if scores[column] == max(scores.values())]
        column = int(rng.choice(columns))
        board.play(column)
        moves = (*moves, column)
    return boards


def _label(board: Any, moves: tuple[int, ...], phase: str) -> Drawn:
    """Labels a position and finds its class."""
    scores, find_plies = _engine().score_all_moves(board), _engine().score_to_moves_left
    outcomes, plies = [ILLEGAL] * 7, [0] * 7
    for column, score in scores.items():
        outcomes[column] = (score > 0) - (score < 0)
        plies[column] = find_plies(score, board)
    left = find_plies(max(scores.values()), board)
    name = f"{phase}-{next(length for length, most in _LENGTHS.items() if left <= most)}"
    if phase == DECISIVE:
        name = DECISIVE if outcomes.count(max(outcomes)) == 1 else ""
    return Drawn(name, min(board.uid(), board.mirror().uid()), moves, outcomes, plies)


@functools.cache
def _engine() -> Any:
    """Returns the solver with its opening book, once per process."""
    return importlib.import_module("bitbully").BitBully()


def _empty_board() -> Any:
    return importlib.import_module("bitbully").Board()


def _replay(moves: list[tuple[int, ...]]) -> np.ndarray:
    """Plays moves by the rules of azjax; returns the boards, `int8 [S, 42]`."""
    padded = np.full((len(moves), 42), -1)  # An illegal action changes nothing.
    for row, columns in enumerate(moves):
        padded[row, : len(columns)] = columns

    def play(columns):
        def step(state, column):
            return _GAME.step(state, column)[0], None

        return jax.lax.scan(step, _GAME.init(), columns)[0]

    return np.asarray(jax.jit(jax.vmap(play))(padded).board)


def check_rules(seed: int) -> int:
    """Plays random games by the rules of azjax and the solver; returns the number of moves.

    Raises:
      AssertionError: if the rules differ.
    """
    rng, count = np.random.default_rng(seed), 0
    legal_actions = jax.jit(jax.vmap(_GAME.legal_actions))
    step = jax.jit(jax.vmap(_GAME.step))
    states = jax.vmap(lambda _: _GAME.init())(np.arange(_CHECKED))
    boards = [_empty_board() for _ in range(_CHECKED)]
    while (legal := np.asarray(legal_actions(states))).any():
        running = legal.any(axis=1)
        actions = np.argmax(rng.random(legal.shape) * legal, axis=1)
        states, rewards = step(states, actions)
        rewards, after = jax.device_get((rewards, states))
        for game in np.flatnonzero(running):
            board, action = boards[game], int(actions[game])
            _require([board.is_legal_move(column) for column in range(7)] == legal[game].tolist())
            board.play(action)
            _require(board.has_win() == (rewards[game] == 1))
            _require(board.is_game_over() == after.over[game])
            columns = np.array(board.to_array())[:, ::-1]  # Each from the top.
            cells = np.array([0, 1, -1])[columns].T.ravel().tolist()
            _require(cells == after.board[game].tolist())
        count += int(running.sum())
    return count


def _require(same: Any) -> None:
    if not same:
        raise AssertionError("the rules of azjax and of the solver differ")


main = console.make_main(label, Options, "experiments.label", "nothing was written")
