"""A program that plays Go or Hex by the Go Text Protocol, version 2 (Farneback 2002), as a player.

The program is asked about positions, not games: before each move, the stones are put on its board.
It does not know which moves came before, so a ko that it may not retake is one that it may try.
"""

import contextlib
import shlex
import subprocess
import threading
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import Game, State, check_batch, name_actions
from azjax.players.agent import Agent, Decision

LETTERS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"


def kind_of(game: Game) -> str:
    """Returns `go`, `hex` or `othello`; raises a ValueError for any other game."""
    rows, columns = game.board_shape
    kinds = ("go_", "othello", "hex")
    name = game.name.removeprefix("pgx:").partition(":")[0]
    kind = next((kind for kind in kinds if name.startswith(kind)), None)
    if rows != columns or kind is None or name == "hex_swap":
        raise ValueError(f"{game.name} has no protocol: use Go, Hex or Othello")
    return kind.strip("_")


def vertices(game: Game, state: State) -> list[str]:
    """Returns the names of all actions: `A1` is the lower left of Go, and `a1` the upper of Hex."""
    if kind_of(game) == "hex":
        return name_actions(game, state)
    size = game.board_shape[0]
    cells = [divmod(cell, size) for cell in range(size**2)]
    return [f"{LETTERS[column]}{size - row}" for row, column in cells] + ["PASS"]


def gtp_agent(game: Game, command: str) -> Agent:
    """Makes a player from a program such as `gnugo --mode gtp`, which is started at once.

    Where the program resigns or makes a move that is illegal here, the last legal action is played,
    which is a pass in Go.
    """
    program = _Program(game, command)

    def act(params: Any, key: jax.Array, states: State) -> Decision:
        del params, key
        shape = jax.ShapeDtypeStruct((check_batch(game, states),), jnp.int32)
        action = jax.pure_callback(program.choose, shape, states)
        return Decision(action, jax.nn.one_hot(action, game.num_actions))

    return Agent(f"gtp:{command}", act)


class _Program:
    """A running program, and the rules that tell it positions."""

    def __init__(self, game: Game, command: str):
        if kind_of(game) == "othello":
            raise ValueError("programs for Othello cannot be given a position: use Go or Hex")
        self._game, self._command, self._lock = game, command, threading.Lock()
        try:
            self._process = subprocess.Popen(
                shlex.split(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        except (OSError, ValueError, IndexError) as error:
            raise ValueError(f"gtp:{command} cannot be started ({error}): name a program") from None
        weakref.finalize(self, _end, self._process)
        self._ask(f"boardsize {game.board_shape[0]}")

    def choose(self, states: State) -> np.ndarray:
        """Returns the actions of the program in positions `[B, ...]`."""
        with self._lock:  # Devices ask at the same time.
            rows = range(len(jax.tree.leaves(states)[0]))
            return np.array(
                [self._choose(jax.tree.map(lambda leaf, i=i: leaf[i], states)) for i in rows],
                np.int32,
            )

    def _choose(self, state: State) -> int:
        game, player = self._game, int(self._game.player(state))
        legal = np.flatnonzero(game.legal_actions(state))
        if not len(legal):
            return 0
        is_absolute = "absolute" in game.encodings
        planes = np.asarray(game.observe(state, "absolute" if is_absolute else "relative"))
        names, cells = vertices(game, state), vertices(game, game.init())
        self._ask("clear_board")
        order = (0, 1) if is_absolute or player == 0 else (1, 0)
        stones = [[cells[cell] for cell in np.flatnonzero(planes[..., i])] for i in order]
        turn = 0
        while any(stones) or turn != player:  # Colors take turns, so that every program agrees.
            vertex = stones[turn].pop() if stones[turn] else "PASS"
            self._ask(f"play {'bw'[turn]} {vertex}")
            turn = 1 - turn
        reply = self._ask(f"genmove {'bw'[player]}").lower()
        named = {name.lower(): action for action, name in enumerate(names)}
        action = named.get(reply, -1)
        return int(action if action in legal else legal[-1])

    def _ask(self, line: str) -> str:
        """Returns the answer to a command."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # There will be no answer.
            print(line, file=self._process.stdin, flush=True)
        answer = ""
        for received in self._process.stdout:
            if not received.strip() and answer:
                break
            answer += received
        if not answer.startswith("="):
            said = answer.strip() or "it ended"
            raise ValueError(f"gtp:{self._command} does not answer {line!r} ({said}): check it")
        return answer[1:].strip()


def _end(process: subprocess.Popen) -> None:
    process.kill()
    process.communicate()
