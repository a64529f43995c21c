"""Draws positions of Connect Four, each with its exact scores: `python -m experiments.label`.

So the package's `connect_four_positions.npz` is made. The solver is BitBully by Markus Thill,
which is under the AGPL: a tool of this program alone, and nothing that azjax installs.

    python -m pip install bitbully bitbully-databases
    python -m experiments.label
"""

from azjax.cli import run_program

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
from azjax._files import replacing
from azjax._settings import Count, Positive, check
from azjax.cli import console
from azjax.drawing import check_folder
from azjax.games import connect_four
from azjax.games.positions import ILLEGAL

_GAME = connect_four.make()
_PHASES = {"begin": range(0, 15), "middle": range(15, 29), "end": range(29, 42)}  # Plies played.
_LENGTHS = {"easy": 14, "medium": 28, "hard": 42}  # Plies to the end under perfect play, at most.
CLASSES = ("begin-easy", "begin-medium", "begin-hard", "middle-easy", "middle-medium", "end-easy")
DECISIVE = "decisive"  # Exactly one column keeps the outcome.
_RANDOM = (1.0, 0.5, 1.0, 0.5, 1.0, 0.5, 0.2, 0.05)  # Shares of random moves, game by game.
_DRAWN = 3  # Positions of a game for each phase, and for the decisive ones.
_BATCH = 96  # Games between two looks at what is still wanted, however many processes there are.
_CHECKED = 5_000  # Games in which the rules are compared.


@dataclasses.dataclass(frozen=True)
class Options:
    """Draws positions from games of mixed strength and labels them by a perfect solver."""

    out: pathlib.Path = connect_four.POSITIONS
    """The file to write."""
    positions: Positive = 1000
    """How many of each class."""
    seed: Count = 0
    """Seed of the games and of what is drawn from them."""

    def __post_init__(self):
        check("--", self)


class Drawn(NamedTuple):
    """A position with its label.

    Attributes:
      name: the class that it was drawn for.
      identity: the same for its mirror image, and for no other position.
      moves: the columns that led to it.
      outcomes: after each column, for the mover: 1, 0, -1, or `ILLEGAL` where it is full.
      plies: from here to the end of the game, by each column; 0 where it is full.
    """

    name: str
    identity: int
    moves: tuple[int, ...]
    outcomes: list[int]
    plies: list[int]


def label(options: Options) -> int:
    """Compares the rules, draws, labels, and writes the file."""
    if importlib.util.find_spec("bitbully") is None:
        install = command("pip", "install", "bitbully", "bitbully-databases")
        raise ValueError(
            f"the solver is missing: {install}, which are "
            "under the AGPL, and which nothing else of azjax needs"
        )
    check_folder(options.out)
    print(f"the rules agree over {check_rules(options.seed):,} moves of random games")
    found = _draw(options)
    drawn = [position for name in (*CLASSES, DECISIVE) for position in found[name]]
    with replacing(options.out) as beside, beside.open("wb") as file:
        np.savez_compressed(
            file,
            boards=_replay([position.moves for position in drawn]),
            outcomes=np.array([position.outcomes for position in drawn], np.int8),
            plies=np.array([position.plies for position in drawn], np.int8),
            classes=np.array([*CLASSES, DECISIVE]),
            class_of=np.repeat(np.arange(len(found), dtype=np.int8), options.positions),
            source=np.array(_source(options.seed)),
        )
    print(f"{len(drawn):,} positions: {options.out}")
    return 0


def _source(seed: int) -> str:
    packages = ("bitbully", "bitbully-databases")
    solver = " and ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    return f"python -m experiments.label --seed {seed}, with {solver}"


def _draw(options: Options) -> dict[str, list[Drawn]]:
    """Plays games until there are enough positions of every class, no two of them the same."""
    found: dict[str, list[Drawn]] = {name: [] for name in (*CLASSES, DECISIVE)}
    seen: set[int] = set()
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=spawn) as pool, console.progress() as bar:
        task = bar.add_task("positions", total=len(found) * options.positions)
        for first in itertools.count(step=_BATCH):
            wanted = frozenset(n for n, some in found.items() if len(some) < options.positions)
            if not wanted:
                return found
            games = range(first, first + _BATCH)
            draw = functools.partial(_draw_from_game, options.seed, wanted)
            for drawn in itertools.chain.from_iterable(pool.map(draw, games, chunksize=6)):
                room = options.positions - len(found[drawn.name])
                if room and drawn.identity not in seen:
                    seen.add(drawn.identity)
                    found[drawn.name].append(drawn)
            bar.update(task, completed=sum(map(len, found.values())))
    raise AssertionError("there is always another game")


def _draw_from_game(seed: int, wanted: frozenset[str], number: int) -> list[Drawn]:
    """Plays a game, draws positions from it, and labels those that are of a wanted class."""
    rng = np.random.default_rng((seed, number))
    only_begin = all(name.startswith("begin") for name in wanted)
    boards = _play(rng, _RANDOM[number % len(_RANDOM)], 15 if only_begin else 42)
    drawn = []
    for name, plies in {**_PHASES, DECISIVE: range(42)}.items():
        able = [ply for ply in plies if ply < len(boards) and len(boards[ply][0].legal_moves()) > 1]
        for ply in rng.permutation(able)[:_DRAWN]:
            if any(other.startswith(name) for other in wanted):
                board, moves = boards[ply]
                drawn.append(_label(board, moves, name))
    return [position for position in drawn if position.name in wanted]


def _play(rng: np.random.Generator, share: float, most: int) -> list[tuple[Any, tuple[int, ...]]]:
    """Plays a game of perfect and of random moves; returns its boards with the moves until then."""
    board, moves, boards = _empty_board(), (), []
    while not board.is_game_over() and len(boards) < most:
        boards.append((board.copy(), moves))
        able = board.legal_moves()
        if rng.random() >= share:
            scores = _engine().score_all_moves(board)
            able = [column for column in able if scores[column] == max(scores.values())]
        column = int(rng.choice(able))
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
    """The solver with its opening book, once for each process."""
    return importlib.import_module("bitbully").BitBully()


def _empty_board() -> Any:
    return importlib.import_module("bitbully").Board()


def _replay(moves: list[tuple[int, ...]]) -> np.ndarray:
    """Plays moves by this package's rules; returns `int8 [S, 42]`."""
    padded = np.full((len(moves), 42), -1)  # An illegal action changes nothing.
    for row, columns in enumerate(moves):
        padded[row, : len(columns)] = columns

    def play(columns):
        def step(state, column):
            return _GAME.step(state, column)[0], None

        return jax.lax.scan(step, _GAME.init(), columns)[0]

    return np.asarray(jax.jit(jax.vmap(play))(padded).board)


def check_rules(seed: int) -> int:
    """Plays random games by the rules of both, move by move; returns the number of moves.

    Raises:
      AssertionError: if they differ anywhere.
    """
    rng, made = np.random.default_rng(seed), 0
    look = jax.jit(jax.vmap(_GAME.legal_actions))
    step = jax.jit(jax.vmap(_GAME.step))
    states = jax.vmap(lambda _: _GAME.init())(np.arange(_CHECKED))
    boards = [_empty_board() for _ in range(_CHECKED)]
    while (goes_on := np.asarray(look(states)).any(axis=1)).any():
        legal = np.asarray(look(states))
        actions = np.argmax(rng.random(legal.shape) * legal, axis=1)
        states, rewards = step(states, actions)
        rewards, after = jax.device_get((rewards, states))
        for game in np.flatnonzero(goes_on):
            board, action = boards[game], int(actions[game])
            _require([board.is_legal_move(column) for column in range(7)] == legal[game].tolist())
            board.play(action)
            _require(board.has_win() == (rewards[game] == 1))
            _require(board.is_game_over() == after.over[game])
            _require(_cells(board) == after.board[game].tolist())
        made += int(goes_on.sum())
    return made


def _cells(board: Any) -> list[int]:
    """A board of the solver's in this package's order."""
    columns = np.array(board.to_array())[:, ::-1]  # From the top.
    return np.array([0, 1, -1])[columns].T.ravel().tolist()


def _require(same: Any) -> None:
    if not same:
        raise AssertionError("the rules of azjax and of the solver differ")


main = console.make_main(label, Options, "experiments.label", "nothing was written")
