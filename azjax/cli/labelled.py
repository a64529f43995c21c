"""Evaluation of a player on labelled positions: its counts, and tables of them."""

import functools
from typing import Any

import jax

from azjax.cli import console
from azjax.games.base import State
from azjax.games.positions import Positions
from azjax.players.statistics import Interval
from azjax.proof.labelled import MEAN, ErrorCounts, count_errors, in_slices, random_errors, rates
from azjax.runs.player import Player


def evaluate(player: Player, positions: Positions, num_simulations: int) -> tuple[ErrorCounts, Any]:
    """Counts the errors of a player with its search, or of its network alone for 0 simulations.

    Returns:
      The counts, and the scores `[S, A]` of the moves that it plays.
    """
    with console.progress() as bar:
        task = bar.add_task(_name(num_simulations), total=len(positions.outcomes))
        policy = in_slices(
            functools.partial(_policy, player, num_simulations),
            lambda done: bar.update(task, completed=done),
        )
        scores, values = policy(positions.states)
    return count_errors(positions, lambda _: (scores, values)), scores


def _policy(player: Player, num_simulations: int, states: State) -> tuple[jax.Array, jax.Array]:
    """Returns scores of moves and values; the value of a search is that of the move it plays.

    The value of the root is a mean over all visits, including visits to moves that Gumbel rejects.
    """
    if not num_simulations:
        return player.evaluate(states)
    result = player.search(jax.random.key(0), states, num_simulations=num_simulations)
    played = jax.nn.one_hot(result.action, player.game.num_actions)
    return played, (played * result.q_values).sum(axis=1)


def _name(num_simulations: int) -> str:
    return f"{num_simulations} simulations" if num_simulations else "network alone"


def as_json(player: Player, positions: Positions, counts: dict[int, ErrorCounts]) -> dict[str, Any]:
    """Returns the errors as a JSON object; `counts` are by the number of simulations."""
    players = []
    for number, errors in counts.items():
        shares = {
            kind: {name: share._asdict() for name, share in by_class.items()}
            for kind, by_class in rates(positions, errors)._asdict().items()
        }
        totals = {
            kind: dict(zip(positions.classes, count.tolist(), strict=True))
            for kind, count in errors._asdict().items()
        }
        players.append({"simulations": number, "counts": totals, "rates": shares})
    return {"game": player.game.name, "iteration": player.iteration, "players": players}


def show(positions: Positions, counts: dict[int, ErrorCounts]) -> None:
    """Prints tables of the errors by class, with 95% intervals."""
    first = next(iter(counts.values()))
    shares = {_name(number): rates(positions, errors) for number, errors in counts.items()}
    random = {"random": random_errors(positions)}
    for title, totals, columns in (
        (
            "% of moves that worsen the outcome (95% interval)",
            first.positions,
            random | {name: share.errors for name, share in shares.items()},
        ),
        (
            "The same where exactly one move keeps the outcome",
            first.decisive,
            {name: share.decisive_errors for name, share in shares.items()},
        ),
        (
            "% of won and lost positions whose value has the wrong sign",
            first.decided,
            {name: share.sign_errors for name, share in shares.items()},
        ),
    ):
        _print(positions, title, totals, columns)


def _print(positions: Positions, title: str, counts: jax.Array, columns: dict[str, Any]) -> None:
    """Prints a table: the classes that the mean includes, the mean, and the other classes."""
    totals = dict(zip(positions.classes, map("{:,}".format, counts.tolist()), strict=True))
    names = [*(name for name in totals if name not in positions.apart), MEAN, *positions.apart]
    rows = [
        (name, totals.get(name, ""), *(_cell(shares.get(name)) for shares in columns.values()))
        for name in names
    ]
    print()
    console.print_table(["positions", "of", *columns], rows, title=title)


def _cell(share: Interval | float | None) -> str:
    if not isinstance(share, Interval):
        return "" if share is None else f"{100 * share:.1f}"
    return f"{100 * share.estimate:.1f} ({100 * share.low:.1f}–{100 * share.high:.1f})"
