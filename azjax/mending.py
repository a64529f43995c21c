"""What a beaten player learns from its defeats, until no opponent can beat it.

Where `lines.py` finds a game that a player loses, the player thinks again about every position
of it, longer than in play. The last one in which it now expects more of another move was its
mistake, and the better move goes into a book, by which it plays from then on. The games that go
on from there are followed and mended in turn, and in the end all games once more. Nothing is asked
but the rules and the player's own search; and nothing is believed, as the walk that finds no lost
game any more is the proof.
"""

import pathlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax import rows as packing
from azjax.agents import Agent, Decision
from azjax.files import replacing
from azjax.game import Game, State, init_batch
from azjax.hashing import contents, make_index
from azjax.lines import Line, images_of, replay

_BETTER = 0.25  # More than this must be expected of a move to call another one a mistake.


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


class Mended(NamedTuple):
    """What came of some lost games.

    Attributes:
      book: with better moves.
      starts: what was played up to each position that has one, once, `lines.follow` goes on there.
      helpless: games in which no better move was found.
    """

    book: Book
    starts: list[Line]
    helpless: int


def mend(
    game: Game, book: Book, games: Sequence[Line], seat: int, think: Callable, symmetric: bool
) -> Mended:
    """Puts better moves into a book, one for each of some lost games.

    Args:
      game: the rules.
      book: the moves found so far.
      games: lost games of the player that moves by it, from `lines.lost_games`.
      seat: 0 or 1, the player's.
      think: `states [N, ...] -> Decision`, a search on the host, longer than the player's.
      symmetric: whether the player makes the image of its move in the images of a position, as
        in `lines.follow`.
    """
    lines = sorted({line[:ply] for line in games for ply in range(len(line))})
    states = replay(game, lines)
    own = np.flatnonzero(np.asarray(jax.vmap(game.player)(states)) == seat)
    first, which = packing.distinct(packing.pack(_rows(states, own)))
    decision = think(_rows(states, own[first]))
    place = {lines[row]: int(number) for row, number in zip(own, which, strict=True)}
    found = [(line, _find_mistake(line, place, decision)) for line in games]
    starts = {place[line[:ply]]: line[:ply] for line, ply in found if ply is not None}
    better = {line: int(decision.action[row]) for row, line in starts.items()}
    helpless = sum(ply is None for _, ply in found)
    return Mended(_add(game, book, better, symmetric), list(better), helpless)


def _find_mistake(line: Line, place: dict[Line, int], decision: Decision) -> int | None:
    """Finds the last ply of a game at which another move is better, or where it is most so."""
    visits, values = np.asarray(decision.visit_counts), np.asarray(decision.q_values)
    most, at = 0.0, None
    for ply in reversed(range(len(line))):
        row = place.get(line[:ply])
        if row is None or decision.action[row] == line[ply]:
            continue
        expected = np.where(visits[row] > 0, values[row], -1.0)
        gain = expected[decision.action[row]] - expected[line[ply]]
        if gain > most:
            most, at = gain, ply
        if most > _BETTER:
            break
    return at


def _add(game: Game, book: Book, better: dict[Line, int], symmetric: bool) -> Book:
    """Adds moves in the positions after some lines; the newest move of a position counts."""
    if not better:
        return book
    images = images_of(game, symmetric)
    lines = [tuple(image[[*line]]) for image in images for line in better]
    moves = np.array([image[move] for image in images for move in better.values()], np.int32)
    added = replay(game, lines)
    states = jax.tree.map(lambda *leaves: np.concatenate(leaves), added, book.states)
    actions = np.concatenate([moves, book.actions])
    first, _ = packing.distinct(packing.pack(states))
    return Book(_rows(states, first), actions[first], book.rounds)


def _rows(states: State, which: np.ndarray) -> State:
    return jax.tree.map(lambda leaf: leaf[which], states)
