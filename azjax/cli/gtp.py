"""Plays Go, Hex or Othello for a graphical program such as GoGui or Sabaki: `azjax gtp go_9x9`.

The programs talk by the Go Text Protocol, version 2 (Farneback 2002), on stdin and stdout. Vertices
are the names of the moves elsewhere: `a1` is the lower left of Go, where the letter i is skipped,
and the upper left of Othello and Hex.
"""

import dataclasses
import sys
from collections.abc import Callable
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

import azjax
from azjax._settings import Range
from azjax.cli import console, custom, players
from azjax.cli.parsing import Place
from azjax.cli.play import Machine
from azjax.games.base import Game, State, name_actions
from azjax.players.gtp import KOMI, kind_of

_COLORS = {"b": 0, "black": 0, "w": 1, "white": 1}


@dataclasses.dataclass(frozen=True)
class Options:
    """Answers the commands of a graphical program (GTP), for games on a square board of stones."""

    player: Annotated[str | None, Place.POSITIONAL] = None
    """The player, such as go_5x5, hex:6, uct:1000 or puct:200@runs/NAME."""
    seed: Annotated[int, Range(0, 2**32 - 1)] = 0
    """Seed of all randomness."""
    typed: custom.OfRun = custom.RunOptions()


def run(options: Options) -> int:
    """Answers until `quit` or the end of the input."""
    if options.player is None:
        raise ValueError("no player is named: write, for example, azjax gtp hex:6")
    typed, game = players.choose_game([options.player], options.typed)
    agent = players.make_agent(options.player, game, typed)
    engine = Engine(game, Machine(agent, jax.random.key(options.seed)))
    for line in sys.stdin:
        if reply := engine.answer(line):
            print(reply, flush=True)
        if engine.is_over:
            break
    return 0


class Engine:
    """A game in progress and the player that answers `genmove`; the first player is black."""

    def __init__(self, game: Game, machine: Machine):
        """Raises a ValueError for a game without stones on a square board."""
        self._kind, self.is_over = kind_of(game), False
        self._game, self._machine, self._size = game, machine, game.board_shape[0]
        self._step, self._legal = jax.jit(game.step), jax.jit(game.legal_actions)
        self._history: list[State] = [game.init()]
        self._commands: dict[str, Callable[..., str]] = {
            "protocol_version": lambda: "2",
            "name": lambda: "azjax",
            "version": lambda: azjax.__version__,
            "list_commands": lambda: "\n".join(self._commands),
            "known_command": lambda name: str(name in self._commands).lower(),
            "boardsize": self._set_size,
            "clear_board": self._clear,
            "play": self._play,
            "genmove": self._generate,
            "undo": self._undo,
            "showboard": lambda: f"\n{game.display.render(self._state)}",
            "quit": self._quit,
        }
        if self._kind == "go":
            self._commands["komi"] = self._check_komi

    @property
    def _state(self) -> State:
        return self._history[-1]

    def answer(self, line: str) -> str:
        """Returns the reply to a line, with the empty line after it; nothing for an empty line."""
        words = line.partition("#")[0].split()
        number = words.pop(0) if words and words[0].isdigit() else ""
        if not words:
            return ""
        try:
            if words[0] not in self._commands:
                raise ValueError("unknown command")
            return f"={number} {self._commands[words[0]](*words[1:])}\n"
        except (ValueError, TypeError) as error:
            text = "syntax error" if isinstance(error, TypeError) else str(error)
            return f"?{number} {text}\n"

    def _set_size(self, size: str) -> str:
        if size != str(self._size):
            raise ValueError("unacceptable size")
        return self._clear()

    def _check_komi(self, number: str) -> str:
        if number.rstrip("0") != str(KOMI):
            raise ValueError(f"unacceptable komi: the game is played with {KOMI}")
        return ""

    def _clear(self) -> str:
        self._history = [self._game.init()]
        return ""

    def _undo(self) -> str:
        if len(self._history) == 1:
            raise ValueError("cannot undo")
        self._history.pop()
        return ""

    def _quit(self) -> str:
        self.is_over = True
        return ""

    def _check_turn(self, color: str) -> None:
        if color.lower() not in _COLORS:
            raise ValueError("invalid color or coordinate")
        if int(self._game.player(self._state)) != _COLORS[color.lower()]:
            raise ValueError("illegal move: it is the other color's turn")

    def _play(self, color: str, vertex: str) -> str:
        if vertex.lower() == self._last_answer() == "pass":
            return ""  # Other programs pass at the end of a game as well.
        self._check_turn(color)
        legal = np.flatnonzero(self._legal(self._state)).tolist()
        names = name_actions(self._game, self._state)
        named = {name: action for action, name in enumerate(names)}
        if named.get(vertex.lower()) not in legal:
            raise ValueError("illegal move")
        self._advance(named[vertex.lower()])
        return ""

    def _last_answer(self) -> str:
        """Returns the answer to `genmove` in a finished game; empty before its end."""
        if not bool(self._game.is_over(self._state)):
            return ""
        return "resign" if self._kind == "hex" else "pass"

    def _generate(self, color: str) -> str:
        if answer := self._last_answer():
            return answer
        self._check_turn(color)
        action = int(self._machine.decide(self._state).action)
        vertex = name_actions(self._game, self._state)[action]
        self._advance(action)
        return vertex

    def _advance(self, action: int) -> None:
        self._history.append(self._step(self._state, jnp.int32(action))[0])


main = console.make_main(run, Options, "azjax gtp", "the game was not finished", players.HELP)
