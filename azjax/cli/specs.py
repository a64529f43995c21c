"""How players are written on the command line: `uct:100`, `puct:50@runs/NAME#20`."""

import pathlib
import re
from typing import Literal, NamedTuple

from azjax._settings import MOST_SIMULATIONS, did_you_mean
from azjax.runs import pretrained

HELP = """\
A player is written NAME, NAME:NUMBER or NAME:TIME.

- random: a random legal move
- perfect: from the exact solution, for games that can be enumerated
- minimax:4: looks 4 moves ahead; without a number, to the end of the game
- alphabeta:4: the same result, with alpha-beta pruning
- uct:100: classic Monte Carlo tree search, with 100 random games per move
- network: the network of a training run, without search
- alphazero: the network, with the search of its training
- repaired:32: alphazero:32 with the override table from azjax verify with --repair
- puct:50: the network, with AlphaZero's search
- gumbel:32: the network, with Gumbel AlphaZero's search

- a player that comes with azjax, such as connect_four or hex:6

- a time, as in uct:0.5s: for uct, alphazero, puct and gumbel
- @RUN_DIR: the run whose network plays, as in network@runs/NAME
- #ITERATION: the checkpoint of the run, as in network@runs/NAME#20
- @NAME: the network of a player that comes with azjax, as in puct:200@connect_four
- #all: in a tournament, one player for each checkpoint"""
SHIPPED = "shipped"  # The `Spec.name` of every player that comes with azjax.


class Kind(NamedTuple):
    """What may follow a player's name.

    Attributes:
      counts: the unit of the number, or None if the player takes no number.
      default: the number if none is given; None leaves the choice to the player.
      timed: whether a time may replace the number.
      trained: whether the player uses the network of a run.
    """

    counts: Literal["moves ahead", "simulations"] | None = None
    default: int | None = None
    timed: bool = False
    trained: bool = False


KINDS = {
    "random": Kind(),
    "perfect": Kind(),
    "minimax": Kind("moves ahead"),
    "alphabeta": Kind("moves ahead"),
    "uct": Kind("simulations", 100, timed=True),
    "network": Kind(trained=True),
    "alphazero": Kind("simulations", timed=True, trained=True),
    "repaired": Kind("simulations", trained=True),
    "puct": Kind("simulations", 50, timed=True, trained=True),
    "gumbel": Kind("simulations", 32, timed=True, trained=True),
    SHIPPED: Kind(trained=True),
}
_SPEC = re.compile(
    r"(?P<name>[^:@#]*)(:(?P<amount>[^@#]*))?(@(?P<run>.*?))?(#(?P<checkpoint>[^#]*))?"
)


class Spec(NamedTuple):
    """A parsed description of a player.

    Attributes:
      text: the description.
      name: one of `KINDS`.
      number: simulations or moves ahead, depending on the kind.
      seconds: a time in place of the number.
      run_dir: the run that is named.
      checkpoint: the iteration of one of its checkpoints, or all of them.
    """

    text: str
    name: str
    number: int | None = None
    seconds: float | None = None
    run_dir: pathlib.Path | None = None
    checkpoint: int | Literal["all"] | None = None


def parse(text: str) -> Spec:
    """Parses a description.

    Raises:
      ValueError: if there is no such player, or it does not take what follows its name.
    """
    match = _SPEC.fullmatch(text)
    if not match or match["name"] not in KINDS or match["name"] == SHIPPED:
        if text in pretrained.names():
            return Spec(text, SHIPPED, run_dir=pathlib.Path(text))
        name = match["name"] if match else text
        known = [*KINDS][:-1] + [*pretrained.names()]
        names = ", ".join(known) + did_you_mean(name, known)
        raise ValueError(f"unknown player {name!r}: use one of {names}")
    name, kind = match["name"], KINDS[match["name"]]
    number, seconds = _read_amount(text, name, match["amount"])
    if not kind.trained and (match["run"], match["checkpoint"]) != (None, None):
        raise ValueError(f"{text!r} names a run, and {name} plays without one: leave it out")
    if match["run"] == "":
        raise ValueError(f"{text!r} has no run after the @: add one, as in {name}@runs/NAME")
    step = match["checkpoint"]
    if step not in (None, "all"):
        if not re.fullmatch("[0-9]{1,9}", step):
            raise ValueError(f"{text!r} has no checkpoint after the #: use a number, as in #20")
        step = int(step)
    run_dir = pathlib.Path(match["run"]) if match["run"] else None
    return Spec(text, name, number, seconds, run_dir, step)


def _read_amount(text: str, name: str, amount: str | None) -> tuple[int | None, float | None]:
    """Parses what follows the colon: a number, or seconds."""
    kind = KINDS[name]
    if amount is None:
        return kind.default, None
    if kind.counts is None:
        raise ValueError(f"{text!r} has something after the colon, and {name} takes nothing there")
    if re.fullmatch("[0-9]{1,9}", amount) and 1 <= int(amount) <= MOST_SIMULATIONS:
        return int(amount), None
    if kind.timed and re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?s", amount):
        seconds = float(amount.removesuffix("s"))
        if 0 < seconds <= 3600:
            return None, seconds
    or_time = ", or a time up to 3600s such as 0.5s" if kind.timed else ""
    raise ValueError(
        f"{text!r} needs a number of {kind.counts} after the colon: use 1 to "
        f"{MOST_SIMULATIONS}{or_time}"
    )
