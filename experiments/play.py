"""Plays against any player at the terminal, or shows two: `python -m experiments.play --help`."""

from experiments import interrupts

if __name__ == "__main__":
    interrupts.listen()

import dataclasses
import io
import pathlib
import sys

import jax

from azjax import runs
from azjax.game import Game
from azjax.settings import check_range
from experiments import console, own
from experiments.players import make_agent
from experiments.specs import HELP
from experiments.table import Leave, Machine, Table, at_terminal, read_line

HUMAN = "human"


@dataclasses.dataclass(frozen=True)
class Options:
    """Play at the terminal against any player, or watch two of them."""

    agent: str | None = None
    """Your opponent, who plays O. Left out: alphazero of the newest run, else perfect."""
    x: str | None = None
    """Who plays X and moves first: human or a player."""
    o: str | None = None
    """Who plays O: human or a player."""
    hint: str | None = None
    """Who gives hints. Left out: your opponent."""
    run_dir: pathlib.Path | None = None
    """The run whose network plays, where no other is named."""
    seed: int = 0
    """Seed of every random draw."""
    pause: float = 0.0
    """Seconds between the moves of two machines."""
    typed: own.Option = own.NOTHING

    def __post_init__(self):
        check_range("--", self, "seed", 0, 2**31 - 1)
        if not 0 <= self.pause <= 60:
            raise ValueError(f"--pause is {self.pause}: use 0 to 60 seconds")


def find_opponent(game: Game, typed: own.Typed, run_dir: pathlib.Path | None) -> tuple[str, str]:
    """Chooses the opponent of a person who named none; returns its description, and why."""
    if run_dir is not None:
        return "alphazero", "with the network of --run-dir"
    found = pathlib.Path("runs").glob("*/config.json")
    for path in sorted(found, key=lambda path: path.stat().st_mtime, reverse=True):
        try:
            own.check_run(path.parent, typed)
        except (ValueError, runs.CheckpointError):  # Not a run that could be used.
            continue
        if runs.iterations(path.parent):
            return f"alphazero@{path.parent}", "the newest run"
    return "perfect" if game.enumerable else "uct:100", f"no run of {game.name} in runs/"


def choose_seats(options: Options, game: Game, typed: own.Typed) -> tuple[str, str]:
    """Says who plays X and O; announces an opponent that was not named."""
    x = options.x or (options.agent if options.o == HUMAN else HUMAN)
    o = options.o or (HUMAN if x not in (None, HUMAN) and not options.agent else options.agent)
    if x and o:
        return x, o
    found, why = find_opponent(game, typed, options.run_dir)
    print(f"opponent: {found} ({why}; --agent PLAYER names another)")
    return x or found, o or found


def set_table(options: Options) -> Table:
    """Makes the players.

    Raises:
      ValueError: if an option is not possible.
      CheckpointError: if `run_dir` is no run.
    """
    typed, game = own.choose_game(options.typed, options.run_dir)
    keys = iter(jax.random.split(jax.random.key(options.seed), 3))

    def seat(spec: str) -> Machine:
        return Machine(game, make_agent(spec, game, options.run_dir, typed), next(keys))

    x, o = (None if spec == HUMAN else seat(spec) for spec in choose_seats(options, game, typed))
    hint = o or x
    if options.hint or hint is None:
        hint = seat(options.hint or ("perfect" if game.enumerable else "uct:100"))
    return Table(game, (x, o), hint, options.pause)


def run(table: Table) -> None:
    """Plays games, with the seats exchanged after each, until somebody has had enough."""
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
            case "n" | "no" | "quit":
                return False
        print("Type y to play again, or n to leave.")


def play(options: Options) -> int:
    """Plays until somebody leaves; returns the exit status."""
    if isinstance(sys.stdin, io.TextIOWrapper):  # Typing any bytes is allowed.
        sys.stdin.reconfigure(errors="replace")
    try:
        run(set_table(options))
    except Leave as last:
        print(last)
    return 0


main = console.make_main(play, Options, "experiments.play", "the game was not finished", HELP)

if __name__ == "__main__":
    sys.exit(main())
