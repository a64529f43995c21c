"""Games of self-play as data, and as a table to read."""

import copy
import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple
from xml.etree import ElementTree

import jax
import numpy as np

from azjax.drawing import as_image, node, signed
from azjax.games.base import Game, State, Step, init_batch, play
from azjax.runs.player import Player
from azjax.search import SearchResult, make_search
from azjax.training.parts import Parts
from azjax.viz.pictures import draw_state

Element = ElementTree.Element


class Move(NamedTuple):
    """One move of a game; everything is seen by the player who makes it.

    Attributes:
      state: the position before the move, one state of NumPy arrays.
      action: the move.
      probabilities: `float32 [A]`, the search's policy, which the network learns.
      value: what the search expects of the move, its Q in [-1, 1].
      outcome: how the game ends for the player who moves here: 1 won, 0 drawn, -1 lost.
    """

    state: State
    action: int
    probabilities: np.ndarray
    value: float
    outcome: int


_BATCH = 4  # Positions searched at once: one shape, so one compilation.


class Searched(NamedTuple):
    """A search of `B` positions, and the moves it chose.

    Attributes:
      found: its result, without the tree.
      step: the moves and what they lead to.
      over: `bool [B]`, whether that ends the game.
    """

    found: SearchResult
    step: Step
    over: jax.Array


def make_searcher(player: Player) -> Callable[[jax.Array, State, np.ndarray, float], Searched]:
    """Builds `search(key, states [B, ...], temperature [B], add_noise) -> Searched`.

    It is the search of the player's training, and compiles once for every batch size, with noise
    as in self-play and without.
    """
    return functools.partial(_compiled(player.parts), player.params)


@functools.lru_cache(maxsize=8)
def _compiled(parts: Parts) -> Callable[..., Searched]:
    look = make_search(parts.search, parts.game, parts.evaluate)

    def search(params, key, states, temperature, add_noise) -> Searched:
        keys = jax.random.split(key, temperature.shape[0])
        found = look(params, keys, states, temperature, add_noise)
        step = jax.vmap(functools.partial(play, parts.game))(states, found.action)
        over = jax.vmap(parts.game.is_over)(step.state)
        return Searched(found._replace(tree=None), step, over)

    return jax.jit(search)


def analyse(player: Player, states: State) -> SearchResult:
    """Searches up to 4 positions without noise, with the function that `sample_games` uses."""
    size = len(jax.tree.leaves(states)[0])
    rows = np.minimum(np.arange(_BATCH), size - 1)
    padded = jax.tree.map(lambda leaf: np.asarray(leaf)[rows], states)
    search = make_searcher(player)
    found = search(jax.random.key(0), padded, np.zeros(_BATCH, np.float32), False).found
    return jax.tree.map(lambda leaf: np.asarray(leaf)[:size], found)


def sample_games(player: Player, key: jax.Array, num_games: int = 3) -> list[list[Move]]:
    """Plays games from the starting position as training does, with noise and temperature.

    All games are searched together, with one compiled function.

    Args:
      player: who plays both sides.
      key: for the noise.
      num_games: how many.

    Returns:
      The moves of each game.

    Raises:
      ValueError: if `num_games` is below 1, or a game lasts longer than `game.max_plies`.
    """
    if num_games < 1:
        raise ValueError(f"num_games is {num_games}: use 1 or more")
    game, settings, search = player.game, player.parts.selfplay, make_searcher(player)
    batch = max(num_games, _BATCH)
    states, games = jax.device_get(init_batch(game, batch)), [[] for _ in range(batch)]
    goes_on = np.arange(batch) < num_games
    for ply in range(game.max_plies):
        temperature = settings.temperature if ply < settings.temperature_plies else 0.0
        temperatures = np.full(batch, temperature, np.float32)
        searched = search(jax.random.fold_in(key, ply), states, temperatures, True)
        found, step, over = jax.device_get(searched)
        expected = found.q_values[np.arange(batch), found.action]
        rows = (states, found.action, found.action_weights, expected, step.reward)
        _record(games, goes_on, rows, np.asarray(jax.vmap(game.player)(states)))
        states, goes_on = step.state, goes_on & ~over
        if not goes_on.any():
            break
    else:
        raise ValueError(f"a game of {game.name} lasts longer than its max_plies, {game.max_plies}")
    return [finish_game(moves) for moves in games[:num_games]]


def _record(games, goes_on, rows, players) -> None:
    """Appends one ply to those games that go on; `outcome` holds the reward until the end."""
    for i in np.flatnonzero(goes_on):
        state, action, weights, value, reward = jax.tree.map(lambda leaf: leaf[i], rows)
        move = Move(state, int(action), weights, float(value), int(reward))
        games[i].append((int(players[i]), move))


def finish_game(moves: Sequence[tuple[int, Move]]) -> list[Move]:
    """Turns the rewards of a complete game into outcomes.

    Args:
      moves: who moves, and the move; its `outcome` is the mover's reward for it.

    Returns:
      The moves, each with the sum of all rewards from there on, seen by its mover.
    """
    finished, totals = [], [0, 0]
    for player, move in reversed(moves):
        totals[player] += move.outcome
        totals[1 - player] -= move.outcome
        finished.append(move._replace(outcome=totals[player]))
    return finished[::-1]


@dataclasses.dataclass(frozen=True)
class GamesTable:
    """Games as a table; notebooks show it.

    Attributes:
      element: the `<table>`.
    """

    element: Element

    def _repr_html_(self) -> str:
        """Writes the table with images in the place of SVG, for which see `Drawing`."""
        table = copy.deepcopy(self.element)
        for cell in table.iter("td"):
            cell[:] = [as_image(child) if child.tag == "svg" else child for child in cell]
        return ElementTree.tostring(table, encoding="unicode", method="html")


_HEADINGS = ("move", "position", "search probabilities", "value", "plays", "outcome")
_CAPTION = (
    "Value is what the search expects of the move that it plays. It and the outcome are those of "
    "the player to move in that row, so that they change sign from move to move: +1 won, 0 drawn, "
    "−1 lost."
)


def games_table(game: Game, games: Sequence[Sequence[Move]]) -> GamesTable:
    """Shows games move by move: the position, what the search found, and how it ended."""
    bodies = [_body(game, number, moves) for number, moves in enumerate(games, start=1)]
    heads = [node("th", {"scope": "col"}, text) for text in _HEADINGS]
    head = node("thead", None, node("tr", None, *heads))
    caption = node("caption", None, _CAPTION)
    return GamesTable(node("table", {"class": "az-games"}, caption, head, *bodies))


def games_strips(game: Game, games: Sequence[Sequence[Move]]) -> Element:
    """Shows games as pictures that wrap like words, one game open at a time, the first at once.

    Under each position stand the move played, the search's share for it, and its value.
    """
    strips = [_strip(game, number, moves) for number, moves in enumerate(games, start=1)]
    strips[0].set("open", "open")
    return node("div", {"class": "az-strips"}, *strips)


def _strip(game: Game, number: int, moves: Sequence[Move]) -> Element:
    last, frames = None, []
    for ply, move in enumerate(moves, start=1):
        said = f"{ply}: {move.action} ({move.probabilities[move.action]:.0%}), {signed(move.value)}"
        caption = node("figcaption", None, said)
        frames.append(node("figure", None, _picture(game, move, last), caption))
        last = move.action
    summary = node("summary", None, f"Game {number}: {_result(moves)}")
    return node("details", {"name": "game"}, summary, node("div", None, *frames))


def _picture(game: Game, move: Move, last: int | None) -> Element:
    """The position before a move, shaded by what the search found."""
    heat = move.probabilities / max(float(move.probabilities.max()), 1e-9)
    size = 84 if math.prod(game.board_shape) <= 9 else 140
    return draw_state(game, move.state, size, values=heat, last=last).element


def _body(game: Game, number: int, moves: Sequence[Move]) -> Element:
    title = f"Game {number}: {_result(moves)}"
    span = {"colspan": len(_HEADINGS), "scope": "rowgroup"}
    rows = [node("tr", None, node("th", span, title))]
    last = None
    for ply, move in enumerate(moves):
        rows.append(_row(game, ply, move, last))
        last = move.action
    return node("tbody", None, *rows)


def _row(game: Game, ply: int, move: Move, last: int | None) -> Element:
    numbers = ", ".join(f"{p:.2f}" for p in move.probabilities)
    cells = [
        node("td", None, str(ply + 1)),
        node("td", None, _picture(game, move, last)),
        node("td", {"class": "az-numbers"}, f"[{numbers}]"),
        node("td", {"class": "az-numbers"}, signed(move.value)),
        node("td", {"class": "az-numbers"}, str(move.action)),
        node("td", {"class": "az-numbers"}, signed(move.outcome, 0)),
    ]
    return node("tr", None, *cells)


def _result(moves: Sequence[Move]) -> str:
    """How a game ended, in words, by the outcome of its first mover."""
    outcome = moves[0].outcome if moves else 0
    words = {1: "the first player wins", -1: "the second player wins", 0: "drawn"}
    return f"{words[outcome]} after {len(moves)} moves"
