"""A game as an animated picture: the first thing that visitors of the playground see."""

from collections.abc import Callable
from typing import NamedTuple
from xml.etree.ElementTree import Element

import jax
import jax.numpy as jnp
import numpy as np

from azjax import drawing
from azjax.drawing import node
from azjax.games.base import Game, State
from azjax.games.mnk import find_lines
from azjax.runs.player import Player

_SIZE = 336  # Pixels.
_SECONDS = 0.9  # Between two moves.
_HOLD = 5  # Moves for which the final position stays.
_SEED = 0  # Of the opponent.


class Exhibition(NamedTuple):
    """A game.

    Attributes:
      cells: the cell of each move.
      board: `int8 [H * W]`, the final position.
    """

    cells: list[int]
    board: np.ndarray


def draw_exhibition(player: Player, sentence: str) -> Element:
    """Draws a game that a player of Connect Four wins, with a sentence, a button and a pause.

    With reduced motion, the picture is the final position.
    """
    game = play_exhibition(player)
    link = {"class": "az-button az-primary", "href": "#section-1"}
    button = node("a", link, "Play against it")
    pause = node(
        "label", {"class": "az-pause"}, node("input", {"type": "checkbox"}), " pause the animation"
    )
    words = node("div", None, node("p", None, sentence), button, pause)
    return node("div", {"class": "az-hero"}, _draw(player.game, game), words)


def play_exhibition(player: Player) -> Exhibition:
    """Plays a game against an opponent who completes lines, and blocks those of the player."""
    game, rng = player.game, np.random.default_rng(_SEED)
    act, score, step = jax.jit(player.agent.act), jax.jit(_scores(game)), jax.jit(game.step)
    state, cells = game.init(), []
    while not game.is_over(state):
        if int(game.player(state)) == 0:
            batch = jax.tree.map(lambda leaf: leaf[None], state)
            action = act(player.agent.params, jax.random.key(0), batch).action[0]
        else:
            action = np.argmax(score(state) + rng.random(game.num_actions))
        after, _ = step(state, int(action))
        cells.append(int(np.flatnonzero(np.asarray(state.board != after.board))[0]))
        state = after
    return Exhibition(cells, np.asarray(state.board))


def _scores(game: Game) -> Callable[[State], jax.Array]:
    """Makes `state -> int [A]`: 2 if the move wins plus 1 if no reply wins; -2 if illegal."""
    moves = jnp.arange(game.num_actions)

    def wins(state):
        rewards = jax.vmap(lambda action: game.step(state, action)[1])(moves)
        return jnp.any(game.legal_actions(state) & (rewards > 0))

    def scores(state):
        after, rewards = jax.vmap(lambda action: game.step(state, action))(moves)
        safe = ~jax.vmap(wins)(after)
        return jnp.where(game.legal_actions(state), 2 * (rewards > 0) + safe, -2)

    return scores


def _draw(game: Game, exhibition: Exhibition) -> Element:
    """Draws the final position; CSS shows the stones one after another."""
    cells, board = exhibition
    lines = find_lines(*game.board_shape, 4)
    picture = drawing.board(board, game.board_shape, lines, size=_SIZE, discs=True).element
    (group,) = picture
    stones = list(group)[2:]  # After the paper and the grid; row by row, then the winning line.
    slots = len(cells) + _HOLD
    rules = []
    for stone, cell in zip(stones, np.flatnonzero(board).tolist(), strict=False):
        rules.append(_appear(stone, cells.index(cell), slots, "drop"))
    for line in stones[len(cells) :]:
        rules.append(_appear(line, len(cells), slots, "appear"))
    style = "@media (prefers-reduced-motion: no-preference) {\n" + "\n".join(rules) + "\n}"
    picture.insert(0, node("style", None, style))
    picture.set("class", "az-board")
    picture.set(
        "aria-label", f"a game of Connect Four that the network, X, wins in {len(cells)} moves"
    )
    return picture


def _appear(part: Element, turn: int, slots: int, look: str) -> str:
    """Makes a part of the picture appear at its turn; returns the CSS rules."""
    name = f"az-hero-{turn}"
    part.set("class", f"{part.get('class')} {name}")
    before, after = 100 * turn / slots, 100 * (turn + 0.4) / slots
    start = "opacity: 0; transform: translateY(-90px)" if look == "drop" else "opacity: 0"
    return (
        f".{name} {{ animation: {name} {slots * _SECONDS:g}s ease-in infinite }}\n"
        f"@keyframes {name} {{ 0%, {before:.2f}% {{ {start} }} "
        f"{after:.2f}%, 100% {{ opacity: 1; transform: none }} }}"
    )
