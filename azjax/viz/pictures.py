"""Pictures of states, searches, trees and games of self-play; games without `draw` are text."""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

import jax
import jax.numpy as jnp
import numpy as np

from azjax.drawing import COLOR_O, COLOR_X, Drawing, canvas, gallery, node, signed
from azjax.games.base import Game, State, Step, check_batch, init_batch, name_actions, play, throw
from azjax.runs.player import Player
from azjax.search import SearchResult, make_search
from azjax.training.parts import Parts

_FONT, _MARGIN = 13, 5  # The pages use this font size as well.
_WIDTH, _HEIGHT = 7.9, 17  # Maximum width of a character, and height of a line.
_BOARD, _BOX = 44, (56, 96)  # Pixels of a board in a tree, and of the box around it.
_ACROSS, _DOWN = 64, 122  # Pixels between siblings, and between plies.
_FAINT = "#57606a"


def draw_state(game: Game, state: State, size: float | None = None, **look: Any) -> Drawing:
    """Draws one state.

    Args:
      game: the game. If its display has no `draw`, the picture is the text of `render`.
      state: one state.
      size: width in pixels; by default the game's. Text has the same font size everywhere.
      **look: `values`, `labels` and `last`, as in `Display.draw`; text ignores them.
    """
    if game.display.draw is not None:
        return game.display.draw(state, **look | ({} if size is None else {"size": size}))
    return draw_text(game.display.render(state))


def draw_states(
    game: Game,
    states: State,
    captions: Sequence[str] = (),
    *,
    most: int = 8,
    size: float | None = None,
    **look: Any,
) -> Drawing:
    """Draws the first states of a batch side by side, followed by the number of omitted ones.

    Args:
      game: the game.
      states: the states, every leaf `[B, ...]`.
      captions: `[B]`, text below each state.
      most: maximum number of states to draw.
      size: width of one picture in pixels; by default the game's.
      **look: `values [B, A]`, `labels [B, A]` and `last [B]`, as in `draw_state`.
    """
    count, pictures = check_batch(game, states), []
    batch = jax.device_get(states), {name: np.asarray(array) for name, array in look.items()}
    for i in range(min(count, most)):
        state, shown = jax.tree.map(lambda leaf, i=i: leaf[i], batch)
        pictures.append(draw_state(game, state, size, **shown))
    return gallery(pictures, captions[:most], rest=count - len(pictures))


def draw_text(text: str) -> Drawing:
    """Draws monospaced text."""
    lines = ["".join(c if c.isprintable() else " " for c in line) for line in text.splitlines()]
    width = _WIDTH * max(map(len, lines), default=0) + 2 * _MARGIN
    height = _HEIGHT * len(lines) + 2 * _MARGIN
    paper = {"width": width, "height": height, "fill": "#ffffff", "class": "az-paper"}
    look = {"font-family": "monospace", "font-size": _FONT, "fill": "#24292f", "class": "az-text"}
    rows = [
        node("text", {"x": _MARGIN, "y": _HEIGHT * row, "xml:space": "preserve"} | look, line)
        for row, line in enumerate(lines, start=1)
    ]
    return canvas(width, height, node("rect", paper), *rows, label="\n".join(lines))


def draw_tree(game: Game, result: SearchResult, row: int = 0, *, max_nodes: int = 40) -> Drawing:
    """Draws the tree of a search: boards with their visits N, values Q and priors P.

    Q is the mean outcome for the player who moved there, as used by that player's selection; at
    the root it is the value for the player to move. The border shows the player to move: square
    for X, round for O. UCT has no priors; its P is the order in which it tries actions.

    Args:
      game: the game.
      result: a search result with its tree.
      row: the row of the batch.
      max_nodes: maximum number of nodes; the most visited ones are shown.
    """
    batch = len(result.action)
    if not 0 <= row < batch:
        raise ValueError(f"row {row} is not in this batch of {batch}: use 0 to {batch - 1}")
    tree: Any = jax.device_get(jax.tree.map(lambda leaf: leaf[row], result.tree))
    parents, actions, visits = tree.parents, tree.action_from_parent, tree.node_visits
    total = np.count_nonzero(visits)
    # The most visited nodes are connected: a node has more visits than its children together.
    shown = sorted(np.argsort(-visits, kind="stable")[: min(max_nodes, total)].tolist())
    edge = np.maximum(parents, 0), np.maximum(actions, 0)
    q = tree.children_rewards + tree.children_discounts * tree.children_values
    values = np.where(parents >= 0, q[edge], tree.node_values)
    priors = np.asarray(jax.nn.softmax(tree.children_prior_logits))[edge]
    (wide, high), places, edges, boxes = _BOX, _place(parents, actions, shown), [], []
    for i in shown:
        x, y = places[i]
        if i:
            above, top = places[int(parents[i])]
            line = {"x1": above, "y1": top + high, "x2": x, "y2": y}
            look = {"stroke": "#8c959f", "stroke-width": 1 + 6 * float(visits[i] / visits[0])}
            edges.append(node("line", line | look))
        state = jax.tree.map(lambda leaf, i=i: leaf[i], tree.embeddings)
        picture = draw_state(game, state, _BOARD, last=int(actions[i]) if i else None).element
        picture.attrib |= {"x": "6", "y": "5", "width": f"{_BOARD}", "height": f"{_BOARD}"}
        lines = [f"N {visits[i]}", f"Q {signed(values[i])}"] + [f"P {priors[i]:.2f}"] * (i > 0)
        look = {"x": wide / 2, "font-size": 10, "fill": "#24292f", "text-anchor": "middle"}
        texts = [node("text", look | {"y": 61 + 12 * n}, line) for n, line in enumerate(lines)]
        player, over = int(game.player(state)), bool(game.is_over(state))
        color = {"stroke": _FAINT if over else (COLOR_X, COLOR_O)[player], "stroke-width": 1.5}
        look = {"width": wide, "height": high, "rx": (2, 12)[player], "fill": "#f6f8fa"}
        place = {"transform": f"translate({x - wide / 2} {y})"}
        boxes.append(node("g", place, node("rect", look | color), picture, *texts))
    caption = f"the {len(shown):,} most visited of {total:,} positions"
    width = max(8 * len(caption), *(x + 40 for x, _ in places.values()))
    height = max(y for _, y in places.values()) + high + 44
    note = node("text", {"x": 8, "y": height - 10, "font-size": 13, "fill": _FAINT}, caption)
    paper = node("rect", {"width": width, "height": height, "rx": 6, "fill": "#ffffff"})
    return canvas(width, height, paper, *edges, *boxes, note, label=caption)


def _place(
    parents: np.ndarray, actions: np.ndarray, shown: Sequence[int]
) -> dict[int, tuple[float, float]]:
    """Returns the middle of the top of every node; a parent is above the middle of its children."""
    places, leaves = {}, itertools.count()

    def place(i: int, ply: int) -> float:
        children = sorted((j for j in shown if j and parents[j] == i), key=lambda j: actions[j])
        below = [place(child, ply + 1) for child in children]
        x = (below[0] + below[-1]) / 2 if below else 36.0 + _ACROSS * next(leaves)
        places[i] = x, 8.0 + _DOWN * ply
        return x

    place(0, 0)
    return places


# Games of self-play.


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
    """Compiles `(params, key, states, temperature []) -> (result, step, over [B])`.

    This is the search of training, with its noise; `step` is what the chosen moves and the dice
    return, and `over` is whether they end the game.
    """
    game, search = parts.game, make_search(parts.search, parts.game, parts.evaluate)

    def run(params, key, states, temperature):
        key_search, key_dice = jax.random.split(key)
        count = check_batch(game, states)
        keys = jax.random.split(key_search, count)
        result = search(params, keys, states, temperature, add_noise=True)
        moved = jax.vmap(functools.partial(play, game))(states, result.action)
        dice = jax.random.uniform(key_dice, (count,))
        step = jax.vmap(functools.partial(throw, game))(dice, moved)
        return result, step, jax.vmap(game.is_over)(step.state)

    return jax.jit(run)


def sample_games(player: Player, key: jax.Array, num_games: int = 3) -> list[list[Move]]:
    """Plays games of a player against itself, with the noise and the temperature of training."""
    game, settings = player.game, player.parts.selfplay
    search, live = _make_search(player.parts), np.ones(num_games, bool)
    start = Step(init_batch(game, num_games), jnp.zeros(num_games), jnp.ones(num_games))
    dice = jax.random.uniform(jax.random.fold_in(key, game.max_plies), (num_games,))
    states = jax.device_get(jax.vmap(functools.partial(throw, game))(dice, start).state)
    games = [[] for _ in range(num_games)]
    for ply in range(game.max_plies):
        temperature = settings.temperature if ply < settings.temperature_plies else 0.0
        given = jax.random.fold_in(key, ply), states, np.float32(temperature)
        result, step, over = jax.device_get(search(player.params, *given))
        players = np.asarray(jax.vmap(game.player)(states))
        for i in np.flatnonzero(live):
            state, action = jax.tree.map(lambda leaf, i=i: leaf[i], states), int(result.action[i])
            value, reward = float(result.q_values[i, action]), int(step.reward[i])
            weights = result.action_weights[i]
            games[i].append(Move(state, int(players[i]), action, weights, value, reward))
        states, live = step.state, live & ~over
        if not live.any():
            break
    return games


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
