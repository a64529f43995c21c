"""Plays games at the terminal: a person or a machine on each side; `azjax play --help`."""

import dataclasses
import io
import sys
from typing import Annotated

import jax

from azjax._settings import Range
from azjax.cli import console, custom
from azjax.cli.parsing import Place
from azjax.cli.players import choose_game, make_agent
from azjax.cli.specs import HELP
from azjax.cli.table import Leave, Machine, Table, at_terminal, read_line
from azjax.runs.loading import is_pretrained
from azjax.runs.pretrained import has_overrides

HUMAN = "human"


@dataclasses.dataclass(frozen=True)
class Options:
    """Plays games at the terminal: you against any player, or two players against each other."""

    player: Annotated[str | None, Place.POSITIONAL] = None
    """A player that comes with azjax, such as connect_four. For a run, use --run-dir instead."""
    x: str | None = None
    """The player of X, who moves first: human or a player. Default: human, or the opponent if --o
    is human. If neither is named, a player that comes with azjax and has overrides plays X."""
    o: str | None = None
    """The player of O: human or a player. Default: the opponent, or human if X is a player. The
    opponent is alphazero of the run, or the player that comes with azjax; if there is none,
    perfect, or uct:100 if the game is large."""
    seed: Annotated[int, Range(0, 2**31 - 1)] = 0
    """Seed of all randomness."""
    typed: custom.Option = custom.NOTHING


def choose_seats(options: Options, opponent: str, is_first: bool = False) -> tuple[str, str]:
    """Returns the players of X and O.

    A seat that is not named goes to a person, or to `opponent` if the other seat has a person. If
    neither seat is named, `is_first` makes the opponent move first.
    """
    if is_first and options.x is None and options.o is None:
        return opponent, HUMAN
    x = options.x or (opponent if options.o == HUMAN else HUMAN)
    return x, options.o or (opponent if x == HUMAN else HUMAN)


def set_table(options: Options) -> Table:
    """Makes the players.

    Raises:
      ValueError: if an option is not possible.
      CheckpointError: if there is no such run.
    """
    named = [spec for spec in (options.x, options.o) if spec not in (None, HUMAN)]
    typed, game = choose_game(named, custom.name_player(options.typed, options.player))
    keys = iter(jax.random.split(jax.random.key(options.seed), 3))

    def seat(spec: str) -> Machine:
        return Machine(game, make_agent(spec, game, typed), next(keys))

    opponent, is_first = "perfect" if game.is_small else "uct:100", False
    if typed.run_dir is not None:
        is_shipped = is_pretrained(typed.run_dir)
        opponent = str(typed.run_dir) if is_shipped else "alphazero"
        is_first = is_shipped and has_overrides(opponent)
    seats = choose_seats(options, opponent, is_first)
    x, o = (None if spec == HUMAN else seat(spec) for spec in seats)
    return Table(game, (x, o), o or x or seat(opponent))


def run(table: Table) -> None:
    """Plays games until the person stops; the seats are exchanged after each."""
    while True:
        table.play_game()
        if None not in table.seats or not at_terminal() or not _wants_another():
            return
        x, o = table.seats
        table.seats = o, x


def _wants_another() -> bool:
    while True:
        match read_line("Play again, with the seats exchanged? (y/n): ").lower():
            case "y" | "yes":
                return True
            case "n" | "no" | "q" | "quit":
                return False
        print("Type y to play again, or n to leave.")


def play(options: Options) -> int:
    """Plays until the person leaves; returns the exit status."""
    if isinstance(sys.stdin, io.TextIOWrapper):  # Input that is not UTF-8 must not raise.
        sys.stdin.reconfigure(errors="replace")
    try:
        run(set_table(options))
    except Leave as last:
        print(last)
    return 0


main = console.make_main(play, Options, "azjax play", "the game was not finished", HELP)
