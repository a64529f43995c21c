"""What a beaten player learns from its defeats, until no opponent can beat it.

Where `lines.py` finds a game that a player loses, its last move was refuted: the opponent's reply
wins. A position in which every move is refuted is lost, and so the move before it is refuted as
well. That much the rules prove. Which of the other moves to try, and whether to try one earlier in
the game, the player tells by thinking again, longer than in play. What it finds goes into a book,
by which it plays from then on. The games that go on from there are followed and mended in turn, and
in the end all games once more. Nothing is asked but the rules and the player's own search; and
nothing is believed, as the walk that finds no lost game any more is the proof.
"""

import dataclasses
import itertools
import pathlib
import zipfile
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax._files import replacing
from azjax.games import rows as packing
from azjax.games.base import Game, State, init_batch
from azjax.games.hashing import contents, make_index
from azjax.players import Agent, Decision
from azjax.proof.lines import Line, images_of, replay

_CLEARLY = 0.5  # So much more must be expected of a move to call another one a mistake.


class Book(NamedTuple):
    """Moves to be played in certain positions.

    Attributes:
      states: the positions, leaves `[K, ...]`, on the host.
      actions: `int32 [K]`.
      refuted: `bool [K, A]`, the moves that lose there, whatever follows.
      rounds: how often lost games were mended.
    """

    states: State
    actions: np.ndarray
    refuted: np.ndarray
    rounds: int = 0


def empty_book(game: Game) -> Book:
    """Returns a book without any move."""
    none = np.zeros(0, np.int32)
    states = _rows(jax.device_get(init_batch(game, 1)), none)
    return Book(states, none, np.zeros((0, game.num_actions), bool))


def book_path(run_dir: pathlib.Path, iteration: int, seat: int, simulations: int) -> pathlib.Path:
    """Where a run keeps the book of a checkpoint's player in one seat; 0: its network alone."""
    seat_name = ("first", "second")[seat]
    return run_dir / "lines" / f"{iteration}-{seat_name}-{simulations}.book.npz"


def save_book(path: pathlib.Path, book: Book) -> None:
    """Writes a book, whole or not at all."""
    with replacing(path) as beside, beside.open("wb") as file:
        states = packing.pack(book.states)
        np.savez(file, **book._replace(states=states)._asdict())


def load_book(path: pathlib.Path, game: Game) -> Book:
    """Reads a book of a game.

    Raises:
      ValueError: if the file is none, or damaged, or has a move that is not legal.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            states = packing.unpack(game, file["states"])
            book = Book(states, file["actions"], file["refuted"], file["rounds"].item())
        legal = np.asarray(jax.vmap(game.legal_actions)(states))
        moves = np.arange(game.num_actions) == book.actions[:, None]
        fits = book.refuted.shape == moves.shape == legal.shape
        if not fits or not (legal & moves).any(axis=1).all():
            raise ValueError("the moves are not those of the positions")
        return book
    except (EOFError, KeyError, NotImplementedError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} is damaged, or no book of {game.name}: delete it, and mend again"
        ) from error


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


@dataclasses.dataclass(eq=False)
class Thought:
    """What a player thinks of one position, which experience corrects.

    Attributes:
      legal: `bool [A]`.
      expected: `float [A]`, of each move, for the player; -1 of those that were not tried.
      refuted: `bool [A]`, the moves that lose, whatever follows.
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
    def worth(self) -> float:
        """What is expected of the best move."""
        return self.expected[self.legal].max()

    @property
    def best(self) -> int:
        """The move to play: the chosen one, unless it is refuted or clearly more is expected."""
        left = np.where(self.legal & ~self.refuted, self.expected, -np.inf)
        is_right = not self.refuted[self.chosen] and left.max() <= left[self.chosen] + _CLEARLY
        return self.chosen if is_right or self.is_lost else int(left.argmax())

    def learn(self, action: int, worth: float, is_lost: bool) -> None:
        """Takes into account what the position is worth that an opponent led to after a move."""
        self.expected[action] = min(self.expected[action], worth)
        self.refuted[action] |= is_lost


Think = Callable[[State], list[Thought]]


def make_think(game: Game, decide: Callable[[State], Decision], book: Book) -> Think:
    """Builds `states [N, ...] -> N thoughts`, on the host; of a position it is always the same one.

    Args:
      game: the rules.
      decide: a search, on the host.
      book: with the moves that are known to be refuted.
    """
    refuted = dict(zip(_keys(book.states), book.refuted, strict=True))
    nothing = np.zeros(game.num_actions, bool)
    memory: dict[bytes, Thought] = {}

    def think(states):
        keys = _keys(states)
        new = {key: row for row, key in enumerate(keys) if key not in memory}
        if new:
            asked = _rows(states, np.array([*new.values()]))
            decision = decide(asked)
            visits, values = np.asarray(decision.visit_counts), np.asarray(decision.q_values)
            legal = np.asarray(jax.vmap(game.legal_actions)(asked))
            for row, key in enumerate(new):
                losing = refuted.get(key, nothing).copy()
                expected = np.where((visits[row] > 0) & ~losing, values[row], -1.0)
                memory[key] = Thought(legal[row], expected, losing, int(decision.action[row]))
        return [memory[key] for key in keys]

    return think


class Mended(NamedTuple):
    """What came of some lost games.

    Attributes:
      book: with better moves.
      starts: what was played up to each position that has one, once, `lines.follow` goes on there.
    """

    book: Book
    starts: list[Line]


def mend(
    game: Game, book: Book, games: Sequence[Line], seat: int, think: Think, symmetric: bool
) -> Mended:
    """Puts other moves into a book, at most one for each of some lost games.

    Args:
      game: the rules.
      book: what was found so far.
      games: lost games of the player that moves by it, from `lines.lost_games`.
      seat: 0 or 1, the player's.
      think: from `make_think`, of a search that is longer than the player's. It learns.
      symmetric: whether the player makes the image of its move in the images of a position, as
        in `lines.follow`.
    """
    lines = sorted({line[:ply] for line in games for ply in range(len(line))})
    states = replay(game, lines)
    own = np.flatnonzero(np.asarray(jax.vmap(game.player)(states)) == seat)
    lines = [lines[row] for row in own]
    thoughts = dict(zip(lines, think(_rows(states, own)), strict=True))
    starts: dict[Thought, Line] = {}
    for line in games:
        played = [(thoughts[line[:ply]], ply) for ply in range(len(line)) if line[:ply] in thoughts]
        worth, is_lost = -1.0, True
        for thought, ply in reversed(played):
            thought.learn(line[ply], worth, is_lost)
            worth, is_lost = thought.worth, thought.is_lost
        played = list(itertools.takewhile(lambda each: not each[0].is_lost, played))
        if played and not any(thought in starts for thought, _ in played):
            thought, ply = _find_mistake(line, played)
            starts[thought] = line[:ply]
    known = {
        thought: line
        for line, thought in thoughts.items()
        if thought in starts or thought.refuted.any()
    }
    moves = [thought.best for thought in known]
    refuted = [thought.refuted for thought in known]
    book = _add(game, book, [*known.values()], moves, refuted, images_of(game, symmetric))
    return Mended(book, [line for thought, line in starts.items() if not thought.is_lost])


def _find_mistake(line: Line, played: list[tuple[Thought, int]]) -> tuple[Thought, int]:
    """Finds the last ply of a game at which another move is clearly better, or most so."""
    most, mistake = -1.0, played[-1]
    for thought, ply in reversed(played):
        gain = thought.expected[thought.best] - thought.expected[line[ply]]
        if thought.best != line[ply] and gain > most:
            most, mistake = gain, (thought, ply)
        if most > _CLEARLY:
            break
    return mistake


def make_alike(game: Game, book: Book, games: Sequence[Line]) -> Mended:
    """Puts into a book that the last move of each game is made in all images, too.

    Args:
      game: the rules, with symmetries.
      book: what was found so far.
      games: of the player that moves by it, from `lines.unlike_games`; one at least.
    """
    lines, moves = [line[:-1] for line in games], [line[-1] for line in games]
    nothing = [np.zeros(game.num_actions, bool)] * len(games)
    return Mended(_add(game, book, lines, moves, nothing, images_of(game, True)), lines)


def _add(
    game: Game,
    book: Book,
    lines: list[Line],
    moves: list[int],
    refuted: list[np.ndarray],
    images: np.ndarray,
) -> Book:
    """Adds moves after some lines, and what is refuted there; a position's newest move counts."""
    if not lines:
        return book
    played = [tuple(image[[*line]]) for image in images for line in lines]
    states = [replay(game, played), book.states]
    actions = np.concatenate([*images[:, moves], book.actions]).astype(np.int32)
    losing = [*(np.stack(refuted)[:, np.argsort(image)] for image in images), book.refuted]
    states = jax.tree.map(lambda *leaves: np.concatenate(leaves), *states)
    first, which = packing.distinct(packing.pack(states))
    union = np.zeros((len(first), game.num_actions), bool)
    np.logical_or.at(union, which, np.concatenate(losing))
    return Book(_rows(states, first), actions[first], union, book.rounds)


def _keys(states: State) -> list[bytes]:
    return [row.tobytes() for row in packing.pack(states)]


def _rows(states: State, which: np.ndarray) -> State:
    return jax.tree.map(lambda leaf: leaf[which], states)
