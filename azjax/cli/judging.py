"""How often a player errs in a game with labelled positions: its counts, and tables of them."""

import functools
from typing import Any

import jax

from azjax.cli import console
from azjax.games.base import State
from azjax.games.positions import Positions
from azjax.players.ratings import Interval
from azjax.proof.labelled import MEAN, ErrorCounts, count_errors, in_slices, random_errors, rates
from azjax.runs.player import Player


def examine(player: Player, positions: Positions, num_simulations: int) -> tuple[ErrorCounts, Any]:
    """Judges a player with its search, or without if that is of 0 simulations.

    Returns:
      The counts, and the scores `[S, A]` of what it plays.
    """
    with console.progress() as bar:
        task = bar.add_task(_name(num_simulations), total=len(positions.outcomes))
        ask = in_slices(
            functools.partial(_answer, player, num_simulations),
            lambda done: bar.update(task, completed=done),
        )
        answers = ask(positions.states)
    return count_errors(positions, lambda _: answers), answers[0]


def _answer(player: Player, num_simulations: int, states: State) -> tuple[jax.Array, jax.Array]:
    """Returns what it plays and expects; of a search that is the value of the move it plays.

    The value of the root is the mean of all visits, among them Gumbel's to moves that it rejects.
    """
    if not num_simulations:
        return player.evaluate(states)
    found = player.search(jax.random.key(0), states, num_simulations=num_simulations)
    played = jax.nn.one_hot(found.action, player.game.num_actions)
    return played, (played * found.q_values).sum(axis=1)


def _name(num_simulations: int) -> str:
    return f"{num_simulations} simulations" if num_simulations else "network alone"


def as_json(
    player: Player, positions: Positions, tallies: dict[int, ErrorCounts]
) -> dict[str, Any]:
    """Returns what was found as a JSON object; `tallies` are by the number of simulations."""
    found = []
    for number, tally in tallies.items():
        shares = rates(positions, tally)._asdict()
        shares = {
            what: {name: share._asdict() for name, share in by_class.items()}
            for what, by_class in shares.items()
        }
        counts = {
            what: dict(zip(positions.classes, count.tolist(), strict=True))
            for what, count in tally._asdict().items()
        }
        found.append({"simulations": number, "counts": counts, "rates": shares})
    return {"game": player.game.name, "iteration": player.iteration, "players": found}


def show(positions: Positions, tallies: dict[int, ErrorCounts]) -> None:
    """Prints tables of what was found, by class, with 95% intervals."""
    found, first = [rates(positions, tally) for tally in tallies.values()], [*tallies.values()][0]
    names = [_name(number) for number in tallies]
    _print(
        positions,
        "% of moves that worsen the outcome (95% interval)",
        first.positions,
        {"random": random_errors(positions)}
        | {name: shares.errors for name, shares in zip(names, found, strict=True)},
    )
    _print(
        positions,
        "The same where exactly one move keeps the outcome",
        first.decisive,
        {name: shares.decisive_errors for name, shares in zip(names, found, strict=True)},
    )
    _print(
        positions,
        "% of won and lost positions whose value has the wrong sign",
        first.decided,
        {name: shares.sign_errors for name, shares in zip(names, found, strict=True)},
    )


def _print(positions: Positions, title: str, counts: jax.Array, columns: dict[str, Any]) -> None:
    """Prints a table; the mean is between the classes that it is of and the others."""
    totals = dict(zip(positions.classes, map("{:,}".format, counts.tolist()), strict=True))
    rows = []
    for name in [*(n for n in totals if n not in positions.apart), MEAN, *positions.apart]:
        rows.append((name, totals.get(name, ""), *(_cell(c.get(name)) for c in columns.values())))
    print()
    console.print_table(["positions", "of", *columns], rows, title=title)


def _cell(share: Interval | float | None) -> str:
    if not isinstance(share, Interval):
        return "" if share is None else f"{100 * share:.1f}"
    return f"{100 * share.estimate:.1f} ({100 * share.low:.1f}–{100 * share.high:.1f})"
