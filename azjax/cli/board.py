"""Text for games at the terminal: boards, moves, evaluations and results."""

from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.text import Text

from azjax.cli import console
from azjax.games.base import Game, State
from azjax.players import Decision

MARKS = "XO"  # The marks of players 0 and 1.
_STYLES = {"X": "bold cyan", "O": "bold magenta"} | dict.fromkeys("0123456789", "dim")


def show(game: Game, state: State, before: State | None = None) -> None:
    """Prints a position, in color on a terminal, and highlights the changes since `before`."""
    drawing = game.display.render(state)
    old = drawing if before is None else game.display.render(before)
    text = Text()
    for new_mark, old_mark in zip(drawing, old.ljust(len(drawing)), strict=False):
        style = _STYLES.get(new_mark, "")
        text.append(new_mark, f"{style} reverse" if new_mark != old_mark else style)
    print()
    Console(highlight=False).print(text)
    print()


def read_move(text: str, legal: np.ndarray, names: Sequence[str]) -> int:
    """Parses the name of a legal move.

    Args:
      text: the input.
      legal: `bool [A]`.
      names: `[A]`, the names of the moves.

    Raises:
      ValueError: if it is not a legal move.
    """
    free = {names[action]: action for action in np.flatnonzero(legal).tolist()}
    if text.lower() in free:
        return free[text.lower()]
    shown = repr(text if len(text) <= 20 else f"{text[:19]}…")
    raise ValueError(f"{shown} is not a legal move: type one of {', '.join(free)}, or help.")


def announce(seat: int, name: str, decision: Decision, names: Sequence[str]) -> str:
    """Returns a line with the move that a machine plays and the outcome it expects."""
    played = names[int(decision.action)]
    return f"{MARKS[seat]} ({name}) plays {played}{_expects(decision, seat)}"


def _expects(decision: Decision, seat: int) -> str:
    """Returns the outcome that a player expects from its move; empty without an estimate."""
    value, action = decision.value, int(decision.action)
    tried = decision.visit_counts is None or decision.visit_counts[action]
    if decision.q_values is not None and tried:
        value = decision.q_values[action]
    return "" if value is None else f", expects {in_words(value, seat)}"


def in_words(value, seat: int) -> str:
    """Describes in words what an expected outcome in [-1, 1] means for a player."""
    value = round(float(value), 2) + 0.0  # No -0.00.
    bounds = {0.9: "a win", 0.3: "an advantage", -0.3: "an even game", -0.9: "a disadvantage"}
    meaning = next((words for bound, words in bounds.items() if value > bound), "a loss")
    return f"{meaning} for {MARKS[seat]} ({value:+.2f})"


def show_hint(
    seat: int, name: str, decision: Decision, legal: np.ndarray, names: Sequence[str]
) -> None:
    """Prints a player's estimates for every legal move and marks its choice."""
    print(f"{name} would play {names[int(decision.action)]}{_expects(decision, seat)}")
    columns = {
        "visits": (decision.visit_counts, "{:,}"),
        "Q": (decision.q_values, "{:+.2f}"),
        "prior": (decision.prior, "{:.1%}"),
        "policy": (decision.weights, "{:.1%}"),
    }
    columns = {title: column for title, column in columns.items() if column[0] is not None}
    rows = []
    for action in np.flatnonzero(legal).tolist():
        unvisited = decision.visit_counts is not None and not decision.visit_counts[action]
        cells = [
            "" if title == "Q" and unvisited else style.format(values[action] + 0)
            for title, (values, style) in columns.items()
        ]
        rows.append((names[action], *cells, "best" if action == decision.action else ""))
    console.print_table(("move", *columns, ""), rows, names=0)


def result(score: float, names: tuple[str, str]) -> str:
    """Describes how a game ended.

    Args:
      score: the sum of all rewards, for player 0.
      names: the names of player 0 and player 1.
    """
    if not score:
        return "A draw."
    winner = 0 if score > 0 else 1
    return f"{MARKS[winner]} ({names[winner]}) wins."
