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
        "pictures": pack_pictures(game, solution.states),
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


def pack_pictures(game: Game, states: State) -> dict[str, Any]:
    """Draws states `[S, ...]` for a page; each distinct part of the pictures occurs once.

    A game without `draw` has the text of `render` as its pictures.

    Returns:
      A dictionary for JSON. `parts`: lines of text, or SVG elements as `[tag, attributes,
      *children]`. `counts`: `uint16 [S]`, how many parts a picture has; `indices`: `uint32`,
      which ones, picture by picture. Drawn pictures also have `views`, the `[width, height]` of
      every picture or a single one for all, and `alts`, a description of each.
    """
    numbers: dict[str, int] = {}
    counts, indices, views, alts = [], [], [], []
    for state in split_states(states):
        if game.display.draw is None:
            parts = game.display.render(state).splitlines()
        else:
            picture = draw_state(game, state).element
            views.append([float(x) for x in picture.get("viewBox", "").split()[2:]])
            alts.append(picture.get("aria-label", ""))
            parts = [part for child in picture for part in _parts(child)]
        counts.append(len(parts))
        indices += [numbers.setdefault(json.dumps(part), len(numbers)) for part in parts]
    packed = {
        "parts": [json.loads(part) for part in numbers],
        "counts": pack(np.array(counts), "<u2"),
        "indices": pack(np.array(indices), "<u4"),
    }
    if not views:
        return packed
    same = all(view == views[0] for view in views)
    return packed | {"views": views[:1] if same else views, "alts": alts}


def _parts(element: Element) -> list[list[Any]]:
    """Splits groups, so that each part is one shape within the groups around it."""
    if element.tag == "g" and len(element):
        return [["g", dict(element.attrib), part] for child in element for part in _parts(child)]
    text = [element.text] if element.text else []
    children = [part for child in element for part in _parts(child)]
    return [[element.tag, dict(element.attrib), *text, *children]]


def pack_names(game: Game, states: State) -> dict[str, Any]:
    """Lists the names of actions in states `[S, ...]`, as `position_table` describes."""
    lists: dict[tuple[str, ...], int] = {}
    named = [
        lists.setdefault(tuple(name_actions(game, state)), len(lists))
        for state in split_states(states)
    ]
    return {"names": [list(names) for names in lists], "named": pack(np.array(named), "<u2")}
