"""Proves or refutes a checkpoint again, from disk: `azjax verify`."""

import dataclasses
import json
import pathlib
from typing import Annotated, Literal

import jax
import numpy as np

from azjax import _interrupts as interrupts
from azjax import programs
from azjax._settings import MOST_SIMULATIONS, Count, Range, check
from azjax.cli import console, custom, judging, launch
from azjax.cli import lines as following
from azjax.games import solver
from azjax.games.base import Game, State, choose
from azjax.games.positions import ILLEGAL, Positions
from azjax.proof import sampling
from azjax.proof.labelled import in_slices
from azjax.runs.player import Player

_PROVED, _JUDGED = (32,), (32, 600)  # Simulations of the searches.


@dataclasses.dataclass(frozen=True)
class Options:
    """Examines a trained network in every reachable position and lists its blunders.

    A game too large for that is judged by labelled positions, where it has some.
    """

    until: Literal["perfect", "unbeatable"] | None = None
    """What must hold for exit status 0. Left out: perfect, where the game can be enumerated."""
    simulations: tuple[Annotated[int, Range(0, MOST_SIMULATIONS)], ...] = ()
    """Simulations of the searches beside the network alone, which 0 is. Left out: 32, and for
    labelled positions 32 and 600; of the player that --lines follows, 0."""
    lines: Literal["first", "second"] | None = None
    """Follow the player's moves in this seat against every reply instead, in any game."""
    most: Annotated[int, Range(sampling.GROUPS)] | None = None
    """With --lines, positions of one ply that are followed; of more, a sample."""
    mend: Count = 0
    """With --lines, rounds in which lost games are mended by thinking longer, until none is lost.
    The better moves go into a book, and the proof is of the player with it."""
    limit: Count = 5
    """How many blunders to draw."""
    json: bool = False
    """Print the findings as JSON and nothing else."""
    typed: custom.Option = custom.NOTHING

    def __post_init__(self):
        check("--", self)
        if self.lines is not None and len(self.simulations) > 1:
            raise ValueError("--lines follows one player: give --simulations a single number")
        if self.lines is not None and self.until is not None:
            raise ValueError(
                "--until is for all positions, and --lines for those that a player comes to: leave "
                "one of them out"
            )
        for name in ("most", "mend"):
            if self.lines is None and getattr(self, name):
                raise ValueError(
                    f"--{name} is a setting of --lines: add --lines first, or leave it out"
                )
        if self.most is not None and self.mend:
            raise ValueError("--mend follows all games: leave --most out")


def examine(options: Options) -> int:
    """Prints what can be known of the newest checkpoint; returns the exit status."""
    if options.lines is not None:
        launch.spread(launch.cores(), launch.cores())
    run_dir, player = custom.open_run(options.typed)
    if options.lines is not None:
        simulations = options.simulations[0] if options.simulations else 0
        return following.prove(
            run_dir, player, options.lines, simulations, options.most, options.mend, options.json
        )
    if player.game.enumerable or player.game.positions is None:
        return _prove(options, run_dir, player)
    if options.until is not None:
        raise ValueError(
            f"{player.game.name} has too many positions to enumerate, so --until {options.until} "
            "cannot be proved: leave it out, and the player is judged by labelled positions"
        )
    _judge(options, player, player.game.positions())
    return 0


def _prove(options: Options, run_dir: pathlib.Path, player: Player) -> int:
    """Prints the certificate and the blunders; the exit status says whether it holds."""
    console.announce_solving(player.game)
    solution = solver.solve(player.game)
    with console.progress() as bar:
        tasks = {}

        def notify(examined: str, done: int) -> None:
            if examined not in tasks:
                tasks[examined] = bar.add_task(examined, total=len(solution.decisions))
            bar.update(tasks[examined], completed=done)

        certificate = programs.verify(
            player,
            options.simulations or _PROVED,
            solution=solution,
            notify=notify,
            started=interrupts.now.started,
        )
    if options.json:
        print(json.dumps(certificate.as_json(), indent=2))
    else:
        console.show_certificate(certificate)
        scores, _ = in_slices(player.evaluate)(solution.decision_states)
        actions = np.asarray(choose(scores, solution.legal[solution.decisions]))
        outcomes = solution.action_values[solution.decisions]
        _show_blunders(player.game, solution.decision_states, outcomes, actions, options.limit)
    holds = certificate.unbeatable if options.until == "unbeatable" else certificate.perfect
    return 0 if holds else 1


def _judge(options: Options, player: Player, positions: Positions) -> None:
    """Prints how often the player errs in labelled positions, alone and with its search."""
    numbers = dict.fromkeys((0, *(options.simulations or _JUDGED)))
    found = {number: judging.examine(player, positions, number) for number in numbers}
    tallies = {number: tally for number, (tally, _) in found.items()}
    if options.json:
        print(json.dumps(judging.as_json(player, positions, tallies), indent=2))
        return
    judging.show(positions, tallies)
    actions = np.asarray(choose(found[0][1], positions.outcomes != ILLEGAL))
    _show_blunders(player.game, positions.states, positions.outcomes, actions, options.limit)


def _show_blunders(
    game: Game, states: State, outcomes: np.ndarray, actions: np.ndarray, limit: int
) -> None:
    """Prints the positions where the network's move throws away value, with their boards.

    Args:
      game: the rules.
      states: `[S, ...]`.
      outcomes: `[S, A]`, of each action, for the mover; less than -1 where it is illegal.
      actions: `[S]`, the network's.
      limit: how many to print.
    """
    rows, best = np.arange(len(actions)), outcomes.max(axis=1)
    wrong = np.flatnonzero(outcomes[rows, actions] < best)
    names = {1: "win", 0: "draw", -1: "loss"}
    for row in wrong[:limit]:
        state = jax.tree.map(lambda leaf, row=row: leaf[row], states)
        thrown, kept = names[int(outcomes[row, actions[row]])], names[int(best[row])]
        optimal = ", ".join(map(str, np.flatnonzero(outcomes[row] == best[row])))
        print(
            f"\n{game.display.render(state)}\nplayer {int(game.player(state))} to move plays "
            f"{actions[row]}: {thrown} instead of {kept} (optimal: {optimal})"
        )
    if len(wrong) > limit:
        print(f"\n… and {len(wrong) - limit:,} more: add --limit {len(wrong)} to see them all")


main = console.make_main(examine, Options, "azjax verify", "the examination was not finished")
