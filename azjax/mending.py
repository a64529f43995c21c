"""What a beaten player learns from its defeats, until no opponent can beat it.

Where `lines.py` finds a game that a player loses, the player thinks again about every position
of it, longer than in play. The last one in which it now expects more of another move was its
mistake, and the better move goes into a book, by which it plays from then on. That leads to new
positions, so all games are followed once more. Nothing is asked but the rules and the player's
own search; and nothing is believed, as the walk that finds no lost game any more is the proof.
"""

import functools
import pathlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax import rows as packing
from azjax.agents import Agent, Decision
from azjax.files import replacing
from azjax.game import Game, State, init_batch, where
from azjax.hashing import contents, make_index

_BETTER = 0.25  # More than this must be expected of a move to call another one a mistake.
_BATCH = 2**10  # Games replayed per compiled call.

Line = tuple[int, ...]  # The actions of a game, from its start.


class Book(NamedTuple):
    """Moves to be played in certain positions.

    Attributes:
      states: the positions, leaves `[K, ...]`, on the host.
      actions: `int32 [K]`.
      rounds: how often lost games were mended.
    """

    states: State
    actions: np.ndarray
    rounds: int = 0


def empty_book(game: Game) -> Book:
    """Returns a book without any move."""
    none = np.zeros(0, np.int32)
    return Book(_rows(jax.device_get(init_batch(game, 1)), none), none)


def book_path(run_dir: pathlib.Path, iteration: int, seat: int, simulations: int) -> pathlib.Path:
    """Where a run keeps the book of a checkpoint's player in one seat; 0: its network alone."""
    seat_name = ("first", "second")[seat]
    return run_dir / "lines" / f"{iteration}-{seat_name}-{simulations}.book.npz"


def save_book(path: pathlib.Path, book: Book) -> None:
    """Writes a book, whole or not at all."""
    with replacing(path) as beside, beside.open("wb") as file:
        states = packing.pack(book.states)
        np.savez(file, states=states, actions=book.actions, rounds=book.rounds)


def load_book(path: pathlib.Path, game: Game) -> Book:
    """Reads a book of a game."""
    with np.load(path, allow_pickle=False) as file:
        states = packing.unpack(game, file["states"])
        return Book(states, file["actions"], int(file["rounds"]))


def book_agent(game: Game, agent: Agent, book: Book, name: str | None = None) -> Agent:
    """Plays the book's moves in its positions, and as another player does in all others.

    What that one expects of the position is told in both.

    Raises:
      ValueError: if the book has no positions, or they cannot be looked up, see `make_index`.
    """
    if not len(book.actions):
        raise ValueError("the book has no positions: play without it")
    index, known = make_index(game, book.states), contents(book.states, axes=1)
    by_book = jnp.asarray(book.actions)

    def act(params, key, states):
        decision = agent.act(params, key, states)
        row = index(states)
        is_known = jnp.all(contents(states, axes=1) == known[row], axis=1)
        action = jnp.where(is_known, by_book[row], decision.action)
        return decision._replace(
            action=action,
            weights=jnp.where(
                is_known[:, None], jax.nn.one_hot(action, game.num_actions), decision.weights
            ),
        )

    return agent._replace(name=name or f"{agent.name} with {len(known)} moves by book", act=act)


def mend(
    game: Game, book: Book, games: Sequence[Line], seat: int, think: Callable, symmetric: bool
) -> tuple[Book, int]:
    """Puts better moves into a book, one for each of some lost games.

    Args:
      game: the rules.
      book: the moves found so far.
      games: lost games of the player that moves by it, from `lines.lost_games`.
      seat: 0 or 1, the player's.
      think: `states [N, ...] -> Decision`, a search on the host, longer than the player's.
      symmetric: whether the player makes the image of its move in the images of a position, as
        in `lines.follow`.

    Returns:
      The book, and in how many of the games no better move was found.
    """
    lines = sorted({line[:ply] for line in games for ply in range(len(line))})
    states = _replay(game, lines)
    own = np.flatnonzero(np.asarray(jax.vmap(game.player)(states)) == seat)
    first, which = packing.distinct(packing.pack(_rows(states, own)))
    decision = think(_rows(states, own[first]))
    place = {lines[row]: int(number) for row, number in zip(own, which, strict=True)}
    better, helpless = {}, 0
    for line in games:
        mistake = _find_mistake(line, place, decision)
        if mistake is None:
            helpless += 1
        else:
            better[line[:mistake]] = int(decision.action[place[line[:mistake]]])
    return _add(game, book, better, symmetric), helpless


def _find_mistake(line: Line, place: dict[Line, int], decision: Decision) -> int | None:
    """Finds the last ply of a game at which another move is better, or where it is most so."""
    most, at = 0.0, None
    for ply in reversed(range(len(line))):
        row = place.get(line[:ply])
        if row is None or decision.action[row] == line[ply]:
            continue
        expected = np.where(decision.visit_counts[row] > 0, decision.q_values[row], -1.0)
        gain = expected[decision.action[row]] - expected[line[ply]]
        if gain > most:
            most, at = gain, ply
        if most > _BETTER:
            break
    return at


def _add(game: Game, book: Book, better: dict[Line, int], symmetric: bool) -> Book:
    """Adds moves in the positions after some lines; the newest move of a position counts."""
    if not better:
        return book._replace(rounds=book.rounds + 1)
    images = np.arange(game.num_actions)[None]
    if symmetric and game.symmetries is not None:
        images = game.symmetries.actions
    lines = [tuple(image[[*line]]) for image in images for line in better]
    moves = np.array([image[move] for image in images for move in better.values()], np.int32)
    added = _replay(game, lines)
    states = jax.tree.map(lambda *leaves: np.concatenate(leaves), added, book.states)
    actions = np.concatenate([moves, book.actions])
    first, _ = packing.distinct(packing.pack(states))
    return Book(_rows(states, first), actions[first], book.rounds + 1)


def _replay(game: Game, lines: Sequence[Line]) -> State:
    """Returns the positions after some lines, leaves `[N, ...]`, on the host."""
    counts = np.array([len(line) for line in lines], np.int32)
    actions = np.zeros((len(lines), game.max_plies), np.int32)
    for row, line in enumerate(lines):
        actions[row, : len(line)] = line
    return packing.in_batches(_player(game), (actions, counts), _BATCH)


@functools.lru_cache(maxsize=8)
def _player(game: Game) -> Callable:
    """Builds `(actions [N, T], counts [N]) -> states [N, ...]`, which plays so many of them."""

    def play_line(actions, count):
        def move(state, step):
            ply, action = step
            return where(ply < count, game.step(state, action)[0], state), None

        return jax.lax.scan(move, game.init(), (jnp.arange(len(actions)), actions))[0]

    return jax.jit(jax.vmap(play_line))


def _rows(states: State, which: np.ndarray) -> State:
    return jax.tree.map(lambda leaf: leaf[which], states)
