"""Games of self-play, as data and as strips of pictures."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple
from xml.etree import ElementTree

import jax
import numpy as np

from azjax.drawing import node, signed
from azjax.games.base import Game, State, Step, init_batch, name_actions, play
from azjax.runs.player import Player
from azjax.search import SearchResult, make_search
from azjax.training.parts import Parts
from azjax.viz.pictures import draw_state

Element = ElementTree.Element
_BATCH = 4  # Positions searched together. A single shape needs a single compilation.


class Move(NamedTuple):
    """One move of a game."""

    state: State  # Before the move, one state of NumPy arrays.
    player: int  # Who moves, 0 or 1.
    action: int
    probabilities: np.ndarray  # `float32 [A]`, the search's policy, which is the network's target.
    value: float  # The search's Q of the move for its player, in [-1, 1].
    reward: int  # To its player.


@functools.lru_cache(maxsize=8)
def _make_search(parts: Parts) -> Callable[..., tuple[SearchResult, Step, jax.Array]]:
    """Builds the search of training, compiled once per batch size, for use with or without noise.

    Returns:
      `(params, key, states, temperature [B], add_noise) -> (result, step, over [B])`. The result
      has no tree, `step` is what the chosen moves return, and `over` is whether they end the game.
    """
    search = make_search(parts.search, parts.game, parts.evaluate)

    def run(params, key, states, temperature, add_noise):
        keys = jax.random.split(key, temperature.shape[0])
        result = search(params, keys, states, temperature, add_noise)
        step = jax.vmap(functools.partial(play, parts.game))(states, result.action)
        return result._replace(tree=None), step, jax.vmap(parts.game.is_over)(step.state)

    return jax.jit(run)


def sample_games(player: Player, key: jax.Array, num_games: int = 3) -> list[list[Move]]:
    """Plays games of a player against itself, with the noise and the temperature of training."""
    if num_games < 1:
        raise ValueError(f"num_games is {num_games}: use 1 or more")
    game, settings = player.game, player.parts.selfplay
    search = functools.partial(_make_search(player.parts), player.params)
    batch = max(num_games, _BATCH)
    states, games = jax.device_get(init_batch(game, batch)), [[] for _ in range(num_games)]
    live = np.ones(batch, bool)
    for ply in range(game.max_plies):
        temperature = settings.temperature if ply < settings.temperature_plies else 0.0
        temperatures = np.full(batch, temperature, np.float32)
        searched = search(jax.random.fold_in(key, ply), states, temperatures, True)
        result, step, over = jax.device_get(searched)
        players = np.asarray(jax.vmap(game.player)(states))
        for i in np.flatnonzero(live[:num_games]):
            state, action = jax.tree.map(lambda leaf, i=i: leaf[i], states), int(result.action[i])
            value, reward = float(result.q_values[i, action]), int(step.reward[i])
            weights = result.action_weights[i]
            games[i].append(Move(state, int(players[i]), action, weights, value, reward))
        states, live = step.state, live & ~over
        if not live[:num_games].any():
            return games
    raise ValueError(f"a game of {game.name} lasts longer than its max_plies, {game.max_plies}")


def games_strips(game: Game, games: Sequence[Sequence[Move]]) -> Element:
    """Shows games as wrapping rows of pictures, one game open at a time, initially the first.

    A position is shaded by the search's policy. Its caption has the move played, the search's
    probability for it, and its value.
    """
    size, strips = 84 if math.prod(game.board_shape) <= 9 else 140, []
    for number, moves in enumerate(games, start=1):
        figures, last = [], None
        for ply, move in enumerate(moves, start=1):
            heat = move.probabilities / max(float(move.probabilities.max()), 1e-9)
            picture = draw_state(game, move.state, size, values=heat, last=last).element
            share, last = move.probabilities[move.action], move.action
            name = name_actions(game, move.state)[move.action]
            text = f"{ply}: {name} ({share:.0%}), {signed(move.value)}"
            figures.append(node("figure", None, picture, node("figcaption", None, text)))
        summary = node("summary", None, f"Game {number}: {_result(moves)}")
        strips.append(node("details", {"name": "game"}, summary, node("div", None, *figures)))
    strips[0].set("open", "open")
    return node("div", {"class": "az-strips"}, *strips)


def _result(moves: Sequence[Move]) -> str:
    outcome = sum(move.reward * (1, -1)[move.player] for move in moves)
    words = {1: "the first player wins", -1: "the second player wins", 0: "drawn"}
    return f"{words[outcome]} after {len(moves)} moves"
