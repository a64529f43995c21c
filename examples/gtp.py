"""Games with other programs by the Go Text Protocol, version 2 (Farneback 2002): Go, Hex, Othello.

    python examples/gtp.py go_5x5             # an engine for GoGui, Sabaki or HexGui
    python examples/gtp.py go_5x5 "COMMAND"   # a match of Go or Hex against a program

The command of GNU Go is `gnugo --mode gtp --level 10 --seed 1 --chinese-rules --play-out-aftermath
--capture-all-dead`. pgx counts every stone on the board as alive: without the last two options, GNU
Go would pass before it captures dead stones.

As an engine, it answers the commands on stdin; `a1` is the lower left of Go, and the upper left of
Othello and Hex. In a match, the program is an `Agent` that leaves the compiled match by
`jax.pure_callback`.
"""

import shlex
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np

import azjax
from azjax import players, runs
from azjax.games import Game, name_actions
from azjax.players import arena

KOMI = 7.5  # Of pgx's Go.
COLORS = {"b": 0, "black": 0, "w": 1, "white": 1}  # The first player is black.
COMMANDS = (
    *("boardsize", "clear_board", "genmove", "known_command", "komi", "list_commands", "name"),
    *("play", "protocol_version", "quit", "showboard", "undo", "version"),
)


class Engine:
    """A game in progress, and the player that answers `genmove`."""

    def __init__(self, player: runs.Player):
        """Starts a game."""
        self.game, self.history = player.game, [player.game.init()]
        act = jax.jit(player.agent.act)
        self.act = lambda batch: act(player.agent.params, jax.random.key(0), batch).action

    def answer(self, line: str) -> str:
        """Returns the reply to a line, with the empty line after it; nothing for an empty line."""
        words = line.partition("#")[0].split()
        number = words.pop(0) if words and words[0].isdigit() else ""
        try:
            return f"={number} {self.reply(*words)}\n" if words else ""
        except ValueError as error:
            return f"?{number} {error}\n"

    def reply(self, *words: str) -> str:
        """Obeys a command; raises a ValueError if it cannot."""
        game, state = self.game, self.history[-1]
        match words:
            case ("protocol_version",):
                return "2"
            case ("name",):
                return "azjax"
            case ("version",):
                return azjax.__version__
            case ("list_commands",):
                return "\n".join(COMMANDS)
            case ("known_command", name):
                return str(name in COMMANDS).lower()
            case ("showboard",):
                return f"\n{game.display.render(state)}"
            case ("boardsize", size):
                if size != str(game.board_shape[0]):
                    raise ValueError("unacceptable size")
                self.history = self.history[:1]
            case ("komi", number):
                if number.rstrip("0") != str(KOMI):
                    raise ValueError(f"unacceptable komi: the game is played with {KOMI}")
            case ("clear_board",):
                self.history = self.history[:1]
            case ("undo",):
                if len(self.history) == 1:
                    raise ValueError("cannot undo")
                self.history.pop()
            case ("play" | "genmove", color, *_) if color.lower() not in COLORS:
                raise ValueError("invalid color or coordinate")
            case ("play", color, vertex):
                if vertex.lower() != "pass" or not game.is_over(state):  # Others pass at the end.
                    self.play(color, vertex.lower())
            case ("genmove", _) if game.is_over(state):
                return "resign" if game.name.startswith("hex") else "pass"
            case ("genmove", color):
                batch = jax.tree.map(lambda leaf: leaf[None], state)
                vertex = name_actions(game, state)[int(self.act(batch)[0])]
                self.play(color, vertex)
                return vertex
            case _ if words[0] not in COMMANDS:
                raise ValueError("unknown command")
            case _ if words != ("quit",):
                raise ValueError("syntax error")
        return ""

    def play(self, color: str, vertex: str) -> None:
        """Makes a move."""
        game, state = self.game, self.history[-1]
        names = name_actions(game, state)
        action = names.index(vertex) if vertex in names else -1
        is_turn = int(game.player(state)) == COLORS[color.lower()]
        if action < 0 or not is_turn or not game.legal_actions(state)[action]:
            raise ValueError("illegal move")
        self.history.append(game.step(state, jnp.int32(action))[0])


def start(command: str) -> subprocess.Popen:
    """Starts a program such as `gnugo --mode gtp`, which ends with the `with` block."""
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(shlex.split(command), stdin=pipe, stdout=pipe, stderr=null, text=True)


def ask(program: subprocess.Popen, line: str) -> str:
    """Returns the answer of a program to a command."""
    print(line, file=program.stdin, flush=True)
    answer = ""
    for received in program.stdout or ():
        answer += received
        if answer.strip() and not received.strip():
            break
    if not answer.startswith("="):
        raise RuntimeError(f"the program does not answer {line!r} ({answer.strip()})")
    return answer[1:].strip()


def program_agent(game: Game, program: subprocess.Popen, name: str = "program") -> players.Agent:
    """Makes a player from a running program.

    Before each move, the stones of the position are put on the program's board, without the moves
    that led there: it may therefore retake a ko. If it resigns or makes a move that is illegal
    here, the last legal action is played, which is a pass in Go.
    """
    first = game.init()  # In Hex, the names of moves depend on the player.
    names = [name_actions(game, state) for state in (first, game.step(first, jnp.int32(0))[0])]

    def move(player: int, legal: np.ndarray, planes: np.ndarray) -> int:
        if not legal.any():  # The game is over.
            return 0
        ask(program, "clear_board")
        stones = [[names[0][cell] for cell in np.flatnonzero(planes[..., i])] for i in (0, 1)]
        turn = 0
        while any(stones) or turn != player:  # Colors take turns, so that every program agrees.
            ask(program, f"play {'bw'[turn]} {stones[turn].pop() if stones[turn] else 'pass'}")
            turn = 1 - turn
        reply = ask(program, f"genmove {'bw'[player]}").lower()
        action = names[player].index(reply) if reply in names[player] else -1
        return action if action >= 0 and legal[action] else int(np.flatnonzero(legal)[-1])

    def choose(*batch: jax.Array) -> np.ndarray:
        rows = zip(*map(np.asarray, batch), strict=True)
        return np.array([move(int(player), *row) for player, *row in rows], np.int32)

    def act(params, key, states):
        del params, key
        player, legal = (jax.vmap(find)(states) for find in (game.player, game.legal_actions))
        encoding = "absolute" if "absolute" in game.encodings else "relative"
        stones = jax.vmap(lambda state: game.observe(state, encoding))(states)[..., :2]
        if encoding == "relative":  # The stones of the player to move come first.
            stones = jnp.where(player[:, None, None, None] == 0, stones, stones[..., ::-1])
        shape = jax.ShapeDtypeStruct(player.shape, jnp.int32)
        action = jax.pure_callback(choose, shape, player, legal, stones)
        return players.Decision(action, jax.nn.one_hot(action, game.num_actions))

    ask(program, f"boardsize {game.board_shape[0]}")
    if "go_" in game.name:
        ask(program, f"komi {KOMI}")
    return players.Agent(name, act)


if __name__ == "__main__":
    match sys.argv[1:]:
        case [name]:
            engine = Engine(azjax.load(name))
            for line in sys.stdin:
                if reply := engine.answer(line):
                    print(reply, flush=True)
                if line.split()[-1:] == ["quit"]:
                    break
        case [name, command]:
            player, key = azjax.load(name), jax.random.key(1)
            openings = arena.draw_openings(player.game, jax.random.key(0), 40, 2)
            with start(command) as program:
                opponent = program_agent(player.game, program)
                result = arena.play_match(player.game, player, opponent, 80, key, openings)
            print(f"moving first: {result.moving_first}\nmoving second: {result.moving_second}")
        case _:
            print(__doc__)
