"""Games at the terminal between two players, each a person or a machine."""

import functools
import sys
from typing import NamedTuple

import jax
import numpy as np

from azjax.cli import board, console
from azjax.games.base import Game, State, name_actions, play
from azjax.players import Agent, Decision

_COMMANDS = """\
a move     plays it; the board shows the names of moves, such as 4 or d3
hint, ?    shows a strong player's estimate of each of your moves
undo       takes back your last move and the reply to it
help       shows this list
q, quit    ends the program"""


class Leave(Exception):
    """Raised when the person quits; the message is printed last."""


class Machine:
    """A computer player with its random key."""

    def __init__(self, game: Game, agent: Agent, key: jax.Array):
        """Compiles the player if it is traceable."""
        self.name, self._params, self._key = agent.name, agent.params, key
        self._decide = jax.jit(agent.act) if agent.traceable else agent.act

    def decide(self, state: State) -> Decision:
        """Returns the decision in one position, without a batch axis."""
        self._key, key = jax.random.split(self._key)
        batch = jax.tree.map(lambda leaf: leaf[None], state)
        with console.busy(f"{self.name} is choosing a move"):
            decision = jax.device_get(self._decide(self._params, key, batch))
        return jax.tree.map(lambda leaf: leaf[0], decision)


class Position(NamedTuple):
    """A position of a game, and the sum of the rewards so far, for player 0."""

    state: State
    score: float


class Table:
    """A game and its two players: machines, or None for a person."""

    def __init__(
        self,
        game: Game,
        seats: tuple[Machine | None, Machine | None],
        hint: Machine,
    ):
        """Takes the players of X and O, and the machine that gives hints."""
        self.game, self.seats, self._hint = game, seats, hint
        self._play = jax.jit(functools.partial(play, game))

    @property
    def names(self) -> tuple[str, str]:
        """The names of the players of X and O."""
        people = self.seats.count(None)
        person = "a person" if people == 2 else "you"
        x, o = (seat.name if seat else person for seat in self.seats)
        return x, o

    def play_game(self) -> None:
        """Plays one game.

        Raises:
          Leave: if a person quits.
        """
        print(f"X: {self.names[0]}, O: {self.names[1]}")
        state = self.game.init()
        history = [Position(state, 0.0)]
        while not self.game.is_over(history[-1].state):
            machine = self.seats[int(self.game.player(history[-1].state))]
            history = self._machine_moves(machine, history) if machine else self._read_move(history)
        self._show(history)
        print(board.result(history[-1].score, self.names))

    def advance(self, position: Position, action: int, name: str = "you") -> Position:
        """Returns the position after a move.

        Raises:
          ValueError: if the move is not legal.
        """
        legal = np.asarray(self.game.legal_actions(position.state))
        if not (0 <= action < len(legal) and legal[action]):
            names = name_actions(self.game, position.state)
            allowed = ", ".join(names[other] for other in np.flatnonzero(legal))
            raise ValueError(f"{name} cannot play {action} here: the legal moves are {allowed}")
        step = self._play(position.state, np.int32(action))
        sign = 1 if int(self.game.player(position.state)) == 0 else -1
        return Position(step.state, position.score + sign * float(step.reward))

    def _machine_moves(self, machine: Machine, history: list[Position]) -> list[Position]:
        if None not in self.seats:
            self._show(history)
        state = history[-1].state
        decision = machine.decide(state)
        moved = self.advance(history[-1], int(decision.action), machine.name)
        names = name_actions(self.game, state)
        print(board.announce(int(self.game.player(state)), machine.name, decision, names))
        return [*history, moved]

    def _read_move(self, history: list[Position]) -> list[Position]:
        """Reads commands of the person to move until a move is made or taken back."""
        state = history[-1].state
        seat, legal = int(self.game.player(state)), np.asarray(self.game.legal_actions(state))
        names = name_actions(self.game, state)
        self._show(history)
        while True:
            line = read_line(f"{board.MARKS[seat]}, your move: ")
            match line.lower():
                case "q" | "quit":
                    raise Leave("Goodbye.")
                case "help":
                    print(_COMMANDS)
                case "hint" | "?":
                    board.show_hint(seat, self._hint.name, self._hint.decide(state), legal, names)
                case "undo":
                    if earlier := self._take_back(history):
                        return earlier
                    print("You have no move to take back.")
                case _:
                    try:
                        action = board.read_move(line, legal, names)
                    except ValueError as error:
                        print(error)
                        continue
                    return [*history, self.advance(history[-1], action)]

    def _take_back(self, history: list[Position]) -> list[Position] | None:
        """Returns the history up to the previous turn of the player to move, if there is one."""
        players = [int(self.game.player(position.state)) for position in history]
        before = [ply for ply, player in enumerate(players[:-1]) if player == players[-1]]
        return history[: before[-1] + 1] if before else None

    def _show(self, history: list[Position]) -> None:
        before = history[-2].state if len(history) > 1 else None
        board.show(self.game, history[-1].state, before)


def read_line(prompt: str) -> str:
    """Reads a line from the terminal after a prompt, or from a pipe without one.

    Raises:
      Leave: at the end of the input.
    """
    try:
        return input(prompt if at_terminal() else "").strip()
    except EOFError:
        newline = "\n" if at_terminal() else ""
        raise Leave(f"{newline}The input has ended. Goodbye.") from None


def at_terminal() -> bool:
    """Whether the input comes from a terminal."""
    return sys.stdin.isatty()
