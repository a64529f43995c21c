"""Diagrams of a run: its network, its training loop and its encoding."""

import textwrap
from collections.abc import Sequence
from typing import Any
from xml.etree.ElementTree import Element

import jax
import numpy as np

from azjax.drawing import Drawing, canvas, node
from azjax.games.base import Game, State
from azjax.games.square import ENCODINGS
from azjax.runs.config import Config
from azjax.training.parts import Parts
from azjax.viz.architecture import Layer, layers
from azjax.viz.pictures import draw_state

_WIDTH = 344  # Drawing units, which are pixels even on a phone.
_LETTER = 6.4  # Maximum width of a character.
_LINE, _GAP = 17, 22
_MOST = 8  # Maximum number of planes shown.
_STROKE = {"fill": "none", "stroke": "#59616b", "stroke-width": 1.5, "class": "az-arrow"}


def network_picture(parts: Parts, config: Any) -> Drawing:
    """Draws a network from its planes to its heads, with shapes and parameter counts."""
    trunk, heads = layers(parts, config)
    trunk = [layer._replace(lines=_wrap(layer.lines, _WIDTH - 44)) for layer in trunk]
    boxes, bottom = [], 2.0
    for layer in trunk:
        boxes += _box(layer, 22, bottom, _WIDTH - 44)
        bottom += _height(layer) + _GAP
        boxes.append(_arrow((_WIDTH / 2, bottom - _GAP), (_WIDTH / 2, bottom)))
    half = _WIDTH / 2 - 6
    heads = [head._replace(lines=_wrap(head.lines, half)) for head in heads]
    boxes[-1] = _fork(bottom - _GAP, bottom)
    for head, x in zip(heads, (2, half + 10), strict=True):
        boxes += _box(head, x, bottom, half - 2)
    label = "; ".join(f"{x.title}, {', '.join(x.lines)}" for x in (*trunk, *heads))
    return canvas(_WIDTH, bottom + max(map(_height, heads)) + 2, *boxes, label=label)


def loop_picture(config: Config) -> Drawing:
    """Draws the cycle of an iteration: self-play, buffer, learner, average."""
    play, learner, search = config.selfplay, config.learner, config.search
    average = f"decay {learner.ema_decay} per step; plays the games"
    half = (_WIDTH - 48) / 2
    made = f"{play.unroll_length} moves each: {play.games * play.unroll_length:,} per iteration"
    learned = f"{learner.steps:,} steps per iteration, {learner.batch_size:,} positions each"
    rate = f"{learner.optimizer}, rate up to {learner.learning_rate:g}"
    searched = f"{type(search).__name__}, {search.num_simulations} simulations per move"
    boxes = [
        Layer("Self-play", (f"{play.games:,} games in parallel, {made}", searched)),
        Layer("Buffer", (f"the newest {config.replay.capacity:,} positions, with π and z",)),
        Layer("Average of θ", (average if learner.ema_decay else "none: θ itself plays",)),
        Layer("Learner", (learned, rate)),
    ]
    boxes = [box._replace(lines=_wrap(box.lines, half)) for box in boxes]
    height = max(map(_height, boxes))
    left, right, below, middle = half / 2 + 2, _WIDTH - half / 2 - 2, height + 48, _WIDTH / 2
    parts: list[Element] = []
    for i, box in enumerate(boxes):
        x, y = (2, _WIDTH - half - 2)[i % 2], (2, below)[i // 2]
        parts += _box(box, x, y, half, height)
    arrows = [
        ((half + 4, height / 2), (_WIDTH - half - 4, height / 2), "π, z", (middle, height / 2 - 8)),
        ((right, height + 4), (right, below - 2), "batches", (right + 10, height + 29)),
        ((_WIDTH - half - 4, below + height / 2), (half + 4, below + height / 2), "θ",
         (middle, below + height / 2 - 8)),
        ((left, below - 2), (left, height + 4), "p, v", (left + 10, height + 29)),
    ]  # fmt: skip
    for start, end, words, (x, y) in arrows:
        anchor = "middle" if x == middle else "start"
        parts += [_arrow(start, end), _text(x, y, words, anchor=anchor, faint=True)]
    label = "; ".join(f"{box.title}: {' '.join(box.lines)}" for box in boxes)
    return canvas(_WIDTH, below + height + 2, *parts, label=label)


def encoding_picture(game: Game, encoding: str, state: State) -> Drawing:
    """Draws a position and its planes, the network input with this encoding.

    A position without a drawing is left out: its text would be too small to read.
    """
    planes = np.asarray(game.observe(state, encoding))
    shown, captions = planes[..., :_MOST], _captions(game, state, encoding, planes.shape[-1])
    size, step = 104, (_WIDTH - 104) / 2
    drawn = [] if game.display.draw is None else [draw_state(game, state, size).element]
    pictures = [*drawn, *(_plane(shown[..., i], size) for i in range(shown.shape[-1]))]
    titles = [*["the position"] * len(drawn), *captions[: shown.shape[-1]]]
    tall = size * max(1.0 if drawn else 0.0, planes.shape[0] / planes.shape[1])
    row = tall + 3 * _LINE + 4
    parts: list[Element] = []
    for i, (caption, picture) in enumerate(zip(titles, pictures, strict=True)):
        x, y = i % 3 * step, i // 3 * row
        parts.append(node("g", {"transform": f"translate({x:g} {y:g})"}, picture))
        for j, line in enumerate(textwrap.wrap(caption, int((step - 8) / _LETTER))):
            parts.append(_text(x, y + tall + _LINE * (j + 1), line, faint=True))
    height = row * -(-len(pictures) // 3)
    if planes.shape[-1] > _MOST:
        more = f"and {planes.shape[-1] - _MOST} more planes"
        parts.append(_text(0, height + _LINE, more, faint=True))
        height += _LINE + 4
    return canvas(_WIDTH, height, *parts, label=f"{encoding} planes: {', '.join(captions)}")


def sample_state(game: Game, plies: int = 4) -> State:
    """Returns a position after up to `plies` random moves, before the end of the game."""
    state, random = game.init(), np.random.default_rng(0)
    for _ in range(plies):
        action = random.choice(np.flatnonzero(game.legal_actions(state)))
        after, _ = game.step(state, action)
        if bool(game.is_over(after)):
            break
        state = after
    return jax.device_get(state)


def _captions(game: Game, state: State, encoding: str, count: int) -> list[str]:
    """Describes the planes, if the encoding is one of `observation_planes`."""
    mover, other = "XO" if int(game.player(state)) == 0 else "OX"
    captions = {
        "relative": [f"stones of {mover}, who is to move", f"stones of {other}, the opponent"],
        "absolute": ["stones of X", "stones of O", "1: X to move, 0: O to move"],
    }.get(encoding, [])
    standard = game.encodings == ENCODINGS and len(captions) == count
    return captions if standard else [f"plane {i}" for i in range(count)]


def _plane(values: np.ndarray, size: float) -> Element:
    rows, columns = values.shape
    cell = size / columns
    parts = []
    for (row, column), value in np.ndenumerate(values):
        place = {"x": column * cell, "y": row * cell, "width": cell, "height": cell}
        parts.append(
            node("rect", place | {"fill": "#ffffff", "stroke": "#c4c9d1", "class": "az-paper"})
        )
        if value:
            look = {"fill": "#117A65", "fill-opacity": 0.35, "class": "az-heat"}
            parts.append(node("rect", place | look))
        if cell >= 14:
            middle = (place["x"] + cell / 2, place["y"] + cell / 2 + 4)
            parts.append(_text(*middle, str(int(value)), anchor="middle", faint=not value))
    return node("g", None, *parts)


def _wrap(lines: Sequence[str], width: float) -> tuple[str, ...]:
    columns = int((width - 22) / _LETTER)
    return tuple(part for line in lines for part in textwrap.wrap(line, columns))


def _height(layer: Layer) -> float:
    return 28 + _LINE * len(layer.lines)


def _box(layer: Layer, x: float, y: float, width: float, height=None) -> list[Element]:
    height = height or _height(layer)
    look = {"fill": "#f6f7f9", "stroke": "#8a929c", "rx": 7, "class": "az-box"}
    place = {"x": x, "y": y, "width": width, "height": height}
    parts = [node("rect", place | look), _text(x + 12, y + 20, layer.title, weight=600)]
    for i, line in enumerate(layer.lines, 1):
        parts.append(_text(x + 12, y + 20 + _LINE * i, line))
    if layer.size is not None:
        parts.append(_text(x + width - 12, y + 20, f"{layer.size:,}", anchor="end", faint=True))
    if layer.skips:
        middle, right, bottom = x + width / 2, x + width + 12, y + height + 9
        path = f"M{middle:g} {y - 13:g}H{right:g}V{bottom:g}H{middle + 4:g}"
        parts.append(node("path", {"d": path, "stroke-dasharray": "4 3"} | _STROKE))
    return parts


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> Element:
    """Draws a vertical or horizontal line with a head at its end."""
    (x1, y1), (x2, y2) = start, end
    back = np.sign([x1 - x2, y1 - y2]) * 6
    side = np.sign([y1 - y2, x1 - x2]) * 4
    wings = [(x2 + back[0] + k * side[0], y2 + back[1] + k * side[1]) for k in (1, -1)]
    tip = f"M{wings[0][0]:g} {wings[0][1]:g}L{x2:g} {y2:g}L{wings[1][0]:g} {wings[1][1]:g}"
    return node("path", {"d": f"M{x1:g} {y1:g}L{x2:g} {y2:g}{tip}"} | _STROKE)


def _fork(top: float, bottom: float) -> Element:
    """Draws arrows from the trunk to both heads."""
    group = node("g", None, node("path", {"d": f"M{_WIDTH / 2:g} {top:g}V{top + 9:g}"} | _STROKE))
    for x in (_WIDTH / 4, _WIDTH * 3 / 4):
        group.append(node("path", {"d": f"M{_WIDTH / 2:g} {top + 9:g}H{x:g}"} | _STROKE))
        group.append(_arrow((x, top + 9), (x, bottom)))
    return group


def _text(x, y, words, anchor=None, weight=None, faint=False) -> Element:
    look = {"x": x, "y": y, "font-size": 12, "text-anchor": anchor, "font-weight": weight}
    fill, kind = ("#6e7781", "az-note") if faint else ("#24292f", "az-text")
    return node("text", look | {"fill": fill, "class": kind}, words)
