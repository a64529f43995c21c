"""All positions of a small game as JSON: moves, values under perfect play, and pictures."""

import json
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from azjax import games
from azjax.games.base import Game, State, name_actions
from azjax.games.solver import Solution
from azjax.viz.page import pack
from azjax.viz.pictures import draw_state, split_states

GAMES = ("tic_tac_toe", "connect_four", "mnk")  # `js/games.js` has their rules, for any size.


def has_rules(game: Game) -> bool:
    """Returns whether pages use the rules, pictures and names of `js/games.js` for a game.

    They do not if the game is small and has a custom display, which Python's tables can show.
    """
    base, _, _ = game.name.partition(":")
    if base not in GAMES:
        return False
    made = games.make(game.name)
    return game.step is made.step and (game.display is made.display or not game.is_small)


def position_table(game: Game, solution: Solution) -> dict[str, Any]:
    """Lists every reachable position, so that a page can look positions up without Python.

    Args:
      game: a game with few enough positions.
      solution: its solution.

    Returns:
      A dictionary for JSON, with `S` positions in the order of the solution and `M` legal moves,
      position by position. Arrays are little-endian, in base64.

      - `truth`: `int8 [S]`, the value under perfect play for the player to move; in finished games
        the outcome.
      - `counts`: `uint16 [S]`, the number of legal moves.
      - `actions`: `uint16 [M]`; `optimal`: `uint8 [M]`, 1 if the move keeps the value.

      If the page has the rules of the game, `boards` holds the cells as `.XO`. If not, the table
      contains the rules:

      - `player`: `uint8 [S]`; `children`: `uint32 [M]`; `rewards`: `int8 [M]`, to the mover.
      - `names`: the lists of action names that occur; `named`: `uint16 [S]`, which list applies.
      - `pictures`: from `pack_pictures`.
    """
    rows, actions = np.nonzero(solution.legal)
    table = {
        "truth": pack(true_values(solution), "i1"),
        "counts": pack(solution.legal.sum(axis=1), "<u2"),
        "actions": pack(actions, "<u2"),
        "optimal": pack(solution.optimal[rows, actions], "u1"),
    }
    if has_rules(game):
        return table | {"boards": board_text(solution.states)}
    return table | {
        "player": pack(solution.player, "u1"),
        "children": pack(solution.children[rows, actions], "<u4"),
        "rewards": pack(solution.rewards[rows, actions], "i1"),
        **pack_names(game, solution.states),
        "pictures": pack_pictures(game, solution.states, solution.legal),
    }


def board_text(states: State) -> str:
    """Writes the `board` of each state, 1, -1 or 0 per cell, as characters of `.XO`."""
    return "".join(".XO"[mark] for mark in np.ravel(states.board))


def true_values(solution: Solution) -> np.ndarray:
    """Returns `Solution.values`, with the outcome in place of 0 where the game is over."""
    truth = solution.values.copy()
    parents, actions = np.nonzero(solution.legal)
    children = solution.children[parents, actions]
    same = solution.player[children] == solution.player[parents]
    outcome = solution.rewards[parents, actions] * np.where(same, 1, -1)
    ends = solution.over[children]
    truth[children[ends]] = outcome[ends]
    return truth


def pack_pictures(game: Game, states: State, legal: np.ndarray) -> dict[str, Any]:
    """Draws states for a page, in which each distinct part of the pictures occurs once.

    Args:
      game: its display draws the pictures; without `draw`, a picture is the text of `render`.
      states: every leaf is `[S, ...]`.
      legal: `bool [S, A]`.

    Returns:
      A dictionary for JSON. `parts`: lines of text, or SVG elements as `[tag, attributes,
      *children]`. `counts`: `uint16 [S]`, how many parts a picture has; `indices`: `uint32`,
      which ones, picture by picture. Drawn pictures also have `views`, the `[width, height]` of
      every picture or a single one for all; `alts`, a description of each; and `anchors`:
      `uint32 [M]`, for each legal move 1 + the index of the part that shows the text "@" at the
      place of the move, or 0 if the picture has no such place.
    """
    numbers: dict[str, int] = {}
    counts: list[int] = []
    indices: list[int] = []

    def number(part: Any) -> int:
        return numbers.setdefault(json.dumps(part), len(numbers))

    def finish(**more: Any) -> dict[str, Any]:
        arrays = {
            "counts": pack(np.array(counts), "<u2"),
            "indices": pack(np.array(indices), "<u4"),
        }
        return {"parts": [json.loads(part) for part in numbers], **arrays, **more}

    if game.display.draw is None:
        for state in split_states(states):
            lines = game.display.render(state).splitlines()
            counts.append(len(lines))
            indices += map(number, lines)
        return finish()
    views, alts, anchors = [], [], []
    for state, row in zip(split_states(states), legal, strict=True):
        marks = [f"@{action}@" if allowed else "" for action, allowed in enumerate(row)]
        picture = draw_state(game, state, labels=marks).element
        views.append([float(x) for x in picture.get("viewBox", "").split()[2:]])
        alts.append(picture.get("aria-label", ""))
        parts = [part for child in picture for part in _parts(child)]
        places = {_innermost(part): part for part in parts}
        found = [places.get(marks[action]) for action in np.flatnonzero(row)]
        anchors += [0 if part is None else 1 + number(_with_text(part, "@")) for part in found]
        parts = [part for part in parts if _innermost(part) not in set(marks) - {""}]
        counts.append(len(parts))
        indices += map(number, parts)
    same = all(view == views[0] for view in views)
    views = views[:1] if same else views
    return finish(views=views, alts=alts, anchors=pack(np.array(anchors), "<u4"))


def _parts(element: Element) -> list[list[Any]]:
    """Splits groups, so that each part is one shape within the groups around it."""
    if element.tag == "g" and len(element):
        return [["g", dict(element.attrib), part] for child in element for part in _parts(child)]
    text = [element.text] if element.text else []
    children = [part for child in element for part in _parts(child)]
    return [[element.tag, dict(element.attrib), *text, *children]]


def _innermost(part: list[Any]) -> str:
    """Returns the text of a part; empty if it is not a text element."""
    last = part[-1]
    return _innermost(last) if isinstance(last, list) else last if isinstance(last, str) else ""


def _with_text(part: list[Any], text: str) -> list[Any]:
    last = part[-1]
    return [*part[:-1], _with_text(last, text) if isinstance(last, list) else text]


def pack_names(game: Game, states: State) -> dict[str, Any]:
    """Lists the names of actions in states `[S, ...]`, as `position_table` describes."""
    lists: dict[tuple[str, ...], int] = {}
    named = [
        lists.setdefault(tuple(name_actions(game, state)), len(lists))
        for state in split_states(states)
    ]
    return {"names": [list(names) for names in lists], "named": pack(np.array(named), "<u2")}
