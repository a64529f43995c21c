"""Plays a game at the terminal: a person or a machine on each side; `azjax play --help`."""

import dataclasses
import functools
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import jax
import numpy as np
from rich.console import Console
from rich.text import Text

from azjax._settings import Range
from azjax.cli import console, custom
from azjax.cli.players import HELP, choose_game, make_agent
from azjax.games.base import Game, State, is_chance, name_actions, play, random_action
from azjax.players import Agent, Decision
from azjax.runs import pretrained
from azjax.runs.player import is_pretrained

HUMAN = "human"
MARKS = "XO"  # The marks of players 0 and 1.
_COMMANDS = """\
a move     plays it; the board shows the names of moves, such as 4 or d3
hint, ?    shows a strong player's estimate of each of your moves
help       shows this list
q, quit    ends the program"""


@dataclasses.dataclass(frozen=True)
class Options:
    """Plays a game at the terminal: you against any player, or two players against each other."""

    x: str | None = None
    """The player of X, who moves first: human or a player. Default: human, or the opponent if --o
    is human. If neither is named, a player that comes with azjax and has overrides plays X."""
    o: str | None = None
    """The player of O: human or a player. Default: the opponent, or human if X is a player. The
    opponent is alphazero of the run, or the player that comes with azjax; if there is none,
    perfect, or uct:100 if the game is large."""
    seed: Annotated[int, Range(0, 2**31 - 1)] = 0
    """Seed of all randomness."""
    typed: custom.OfPlayer = custom.PlayerOptions()


def set_table(options: Options) -> tuple[Game, "Seats", "Machine", jax.Array]:
    """Returns the arguments of `play_game`; an open seat goes to a person or a default player."""
    named = [spec for spec in (options.x, options.o) if spec not in (None, HUMAN)]
    typed, game = choose_game(named, options.typed)
    key = jax.random.key(options.seed)
    keys = iter(jax.random.split(key, 3))

    def seat(spec: str) -> Machine:
        return Machine(make_agent(spec, game, typed), next(keys))

    opponent, is_first = "perfect" if game.is_small else "uct:100", False
    if typed.run_dir is not None:
        is_shipped = is_pretrained(typed.run_dir)
        opponent = str(typed.run_dir) if is_shipped else "alphazero"
        is_first = is_shipped and pretrained.read(opponent).overrides is not None
    moves_first = options.o == HUMAN or (is_first and options.x is options.o is None)
    x = options.x or (opponent if moves_first else HUMAN)
    o = options.o or (opponent if x == HUMAN else HUMAN)
    first, second = (None if spec == HUMAN else seat(spec) for spec in (x, o))
    dice = jax.random.fold_in(key, 3)
    return game, (first, second), second or first or seat(opponent), dice


def start(options: Options) -> int:
    """Plays a game, unless a person leaves it; returns the exit status."""
    try:
        play_game(*set_table(options))
    except Leave as last:
        print(last)
    return 0


# The table.


class Leave(Exception):
    """Raised when the person quits; the message is printed last."""


class Machine:
    """A computer player with its random key."""

    def __init__(self, agent: Agent, key: jax.Array):
        """Compiles the player."""
        self.name, self._key, self._agent = agent.name, key, agent
        self._decide = jax.jit(agent.act)

    def decide(self, state: State) -> Decision:
        """Returns the decision in one position, without a batch axis."""
        self._key, key = jax.random.split(self._key)
        batch = jax.tree.map(lambda leaf: leaf[None], state)
        with console.busy(f"{self.name} is choosing a move"):
            decision = jax.device_get(self._decide(self._agent.params, key, batch))
        return jax.tree.map(lambda leaf: leaf[0], decision)


Seats = tuple[Machine | None, Machine | None]  # Of X and O; None for a person.


def play_game(game: Game, seats: Seats, hint: Machine, dice: jax.Array) -> None:
    """Plays one game, in which `hint` gives hints; raises Leave if a person quits."""
    x, o = (seat.name if seat else "you" for seat in seats)
    print(f"X: {x}, O: {o}")
    advance = jax.jit(functools.partial(play, game))
    state, plies, score = game.init(), 0, 0.0
    while not game.is_over(state):
        seat, plies = int(game.player(state)), plies + 1
        machine = seats[seat]
        if is_chance(game, state):
            action = _throw(game, state, jax.random.fold_in(dice, plies), None in seats)
        else:
            if machine is None or None not in seats:
                show(game, state)
            action = _choose(game, state, machine) if machine else _read_move(game, state, hint)
        state, reward, _ = advance(state, np.int32(action))
        score = float(reward) if seat == 0 else -float(reward)
    show(game, state)
    print(f"X ({x}) wins." if score > 0 else f"O ({o}) wins." if score else "A draw.")


def _choose(game: Game, state: State, machine: Machine) -> int:
    decision, seat = machine.decide(state), int(game.player(state))
    played = name_actions(game, state)[int(decision.action)]
    print(f"{MARKS[seat]} ({machine.name}) plays {played}{expects(decision, seat)}")
    return int(decision.action)


def _throw(game: Game, state: State, key: jax.Array, is_asked: bool) -> int:
    """Throws dice; a person may type what they show instead."""
    names, seat = name_actions(game, state), MARKS[int(game.player(state))]
    free = [names[action] for action in np.flatnonzero(game.legal_actions(state))]
    action = int(random_action(game, key, state))
    while is_asked:
        line = read_line(f"Dice for {seat}: press Enter, or type what they show: ")
        match line.lower():
            case "q" | "quit":
                raise Leave("Goodbye.")
            case shown if shown in free:
                action = names.index(shown)
            case shown if shown:
                print(f"{shown!r} is not a throw: type one of {', '.join(free)}, or press Enter.")
                continue
        break
    print(f"The dice for {seat} show {names[action]}.")
    return action


def _read_move(game: Game, state: State, hint: Machine) -> int:
    """Reads commands of the person to move until a move; returns its action."""
    seat, legal = int(game.player(state)), np.asarray(game.legal_actions(state))
    names = name_actions(game, state)
    free = {names[action]: action for action in np.flatnonzero(legal).tolist()}
    lower = {name.lower(): action for name, action in free.items()}
    while True:
        line = read_line(f"{MARKS[seat]}, your move: ")
        match line.lower():
            case "q" | "quit":
                raise Leave("Goodbye.")
            case "help":
                print(_COMMANDS)
            case "hint" | "?":
                show_hint(seat, hint.name, hint.decide(state), legal, names)
            case move if move in lower:
                return free.get(line, lower[move])
            case _:
                shown = repr(line if len(line) <= 20 else f"{line[:19]}…")
                moves = ", ".join(free)
                print(f"{shown} is not a legal move: type one of {moves}, or help.")


def read_line(prompt: str) -> str:
    """Reads a line, after a prompt on a terminal; raises Leave at the end of the input."""
    try:
        return input(prompt if sys.stdin.isatty() else "").strip()
    except EOFError:
        newline = "\n" if sys.stdin.isatty() else ""
        raise Leave(f"{newline}The input has ended. Goodbye.") from None


# Text.


def show(game: Game, state: State) -> None:
    """Prints a position, in color on a terminal."""
    text = Text(game.display.render(state))
    for pattern, style in (("X", "bold cyan"), ("O", "bold magenta")):
        text.highlight_regex(pattern, style)
    text.highlight_regex(r"\b[a-z]{0,2}\d+", "dim")  # Names of cells and columns.
    print()
    Console(highlight=False).print(text)
    print()


def expects(decision: Decision, seat: int) -> str:
    """Returns the value that a player expects from its move; empty without an estimate."""
    value, action = decision.value, int(decision.action)
    tried = decision.visit_counts is None or decision.visit_counts[action]
    if decision.q_values is not None and tried:
        value = decision.q_values[action]
    return "" if value is None else f", value {_signed(value)} for {MARKS[seat]}"


def _signed(value: Any) -> str:
    return f"{round(float(value), 2) + 0.0:+.2f}"  # No -0.00.


def show_hint(seat: int, name: str, decision: Decision, legal: np.ndarray, names: Sequence[str]):
    """Prints a player's estimates for every legal move and marks its choice."""
    print(f"{name} would play {names[int(decision.action)]}{expects(decision, seat)}")
    free, visits = np.flatnonzero(legal).tolist(), decision.visit_counts
    columns = {"move": [names[action] for action in free]}
    if visits is not None:
        columns["visits"] = [f"{visits[action]:,}" for action in free]
    if (q := decision.q_values) is not None:
        tried = legal if visits is None else visits
        columns["Q"] = [_signed(q[action]) if tried[action] else "" for action in free]
    for title, shares in (("prior", decision.prior), ("policy", decision.weights)):
        if shares is not None:
            columns[title] = [f"{shares[action]:.1%}" for action in free]
    columns[""] = ["best" if action == decision.action else "" for action in free]
    console.print_table(tuple(columns), zip(*columns.values(), strict=True), names=0)


main = console.make_main(start, Options, "azjax play", "the game was not finished", HELP)
