"""A program that plays Go or Hex by the Go Text Protocol, version 2 (Farneback 2002), as a player.

Before each move, the stones of the position are put on the program's board, without the moves that
led there. It may therefore try to retake a ko.
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
from azjax.players.agent import Agent, Decision, ProgramError

KOMI = 7.5  # Of pgx's Go.


def kind_of(game: Game) -> str:
    """Returns `go`, `hex` or `othello`; raises a ValueError for any other game."""
    rows, columns = game.board_shape
    kinds = ("go_", "othello", "hex")
    name = game.name.removeprefix("pgx:").partition(":")[0]
    kind = next((kind for kind in kinds if name.startswith(kind)), None)
    if rows != columns or kind is None or game.name == "pgx:hex":  # Its moves have no names.
        raise ValueError(
            f"the Go Text Protocol has no {game.name}: use one such as pgx:go_9x9, hex or othello"
        )
    return kind.strip("_")


def gtp_agent(game: Game, command: str) -> Agent:
    """Makes a player from a program such as `gnugo --mode gtp`, which is started at once.

    Where the program resigns or makes a move that is illegal here, the last legal action is played,
    which is a pass in Go. If it stops answering, its games stand still.
    """
    program = _Program(game, command)
    is_absolute = "absolute" in game.encodings

    def act(params: Any, key: jax.Array, states: State) -> Decision:
        del params, key
        shape = jax.ShapeDtypeStruct((check_batch(game, states),), jnp.int32)
        player, legal = (jax.vmap(find)(states) for find in (game.player, game.legal_actions))
        encoding = "absolute" if is_absolute else "relative"
        stones = jax.vmap(lambda state: game.observe(state, encoding))(states)[..., :2]
        if not is_absolute:  # The stones of the player to move come first.
            stones = jnp.where(player[:, None, None, None] == 0, stones, stones[..., ::-1])
        action = jax.pure_callback(program.choose, shape, player, legal, stones)
        return Decision(action, jax.nn.one_hot(action, game.num_actions))

    return Agent(f"gtp:{command}", act, check=program.check)


class _Program:
    """A running program; it gets NumPy arrays, since JAX is busy during a callback."""

    def __init__(self, game: Game, command: str):
        if kind_of(game) == "othello" or game.name.startswith("hex_swap"):
            raise ValueError(f"programs for {game.name} cannot be given a position: use Go or Hex")
        self._command, self._lock = command, threading.Lock()
        self._error: ProgramError | None = None
        try:
            if not (words := shlex.split(command)):
                raise ValueError("it names no program")
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        except (OSError, ValueError) as error:
            raise ValueError(
                f"gtp:{command} cannot be started ({error}): write a command, such as "
                "'gtp:gnugo --mode gtp'"
            ) from None
        weakref.finalize(self, _end, self._process)
        self._ask(f"boardsize {game.board_shape[0]}")
        if kind_of(game) == "go":
            self._ask(f"komi {KOMI}")
        start = game.init()
        both = start, game.step(start, jnp.int32(0))[0]  # In Hex, names depend on the player.
        self._names = [name_actions(game, state) for state in both]

    def choose(self, player: np.ndarray, legal: np.ndarray, stones: np.ndarray) -> np.ndarray:
        """Returns the program's actions `[B]` for legal actions `[B, A]` and `[B, H, W, 2]` stones.

        Black's stones come first. If the program stops answering, all actions are -1, which changes
        no state: an error that is raised in a callback would be printed with its traceback.
        """
        rows = zip(map(int, player), np.asarray(legal), np.asarray(stones), strict=True)
        with self._lock:  # Several devices may call at once.
            try:
                self.check()
                return np.array([self._choose(*row) for row in rows], np.int32)
            except ProgramError as error:
                self._error = error
                return np.full(len(player), -1, np.int32)

    def check(self) -> None:
        """Raises the ProgramError of a program that has stopped."""
        if self._error:
            raise self._error

    def _choose(self, player: int, is_legal: np.ndarray, planes: np.ndarray) -> int:
        legal = np.flatnonzero(is_legal)
        if not len(legal):
            return 0
        self._ask("clear_board")
        stones = [[self._names[0][cell] for cell in np.flatnonzero(planes[..., i])] for i in (0, 1)]
        turn = 0
        while any(stones) or turn != player:  # Colors take turns, so that every program agrees.
            vertex = stones[turn].pop() if stones[turn] else "pass"
            self._ask(f"play {'bw'[turn]} {vertex}")
            turn = 1 - turn
        reply = self._ask(f"genmove {'bw'[player]}").lower()
        named = {name: action for action, name in enumerate(self._names[player])}
        action = named.get(reply, -1)
        return int(action if action in legal else legal[-1])

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # There will be no answer.
            print(line, file=self._process.stdin, flush=True)
        answer = ""
        for received in self._process.stdout:
            if not received.strip() and answer:
                break
            answer += received
        if not answer.startswith("="):
            reason = answer.strip() or "it ended"
            raise ProgramError(
                f"gtp:{self._command} does not answer {line!r} ({reason}): run it alone to see why"
            )
        return answer[1:].strip()


def _end(process: subprocess.Popen) -> None:
    process.kill()
    process.communicate()
