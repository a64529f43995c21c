"""Verifies a trained player, or evaluates it on labelled positions: `azjax verify`."""

import dataclasses
import json
import pathlib
from typing import Annotated, Literal

import jax
import numpy as np

from azjax import _interrupts as interrupts
from azjax._settings import MOST_SIMULATIONS, Count, Range
from azjax.cli import console, custom, labelled, launch, lines
from azjax.cli.parsing import Place
from azjax.exact import sampling
from azjax.games.base import Game, State, choose, name_actions
from azjax.games.positions import ILLEGAL, Positions
from azjax.proof import certificate as certificates
from azjax.proof.labelled import in_slices
from azjax.runs.loading import is_pretrained
from azjax.runs.player import Player
from azjax.runs.pretrained import has_overrides

_LABELLED = (32, 600)  # Simulations of the searches on labelled positions, by default.


@dataclasses.dataclass(frozen=True)
class Options:
    """Verifies a trained network in every reachable position and lists its blunders.

    In a game too large for that, errors are counted on labelled positions, if the game has them.
    """

    player: Annotated[str | None, Place.POSITIONAL] = None
    """A player that comes with azjax, such as connect_four. If it has overrides, it is played
    against every reply, as with --lines first. For a run, use --run-dir instead."""
    until: Literal["perfect", "unbeatable"] | None = None
    """What must hold for exit status 0; by default perfect, if the game can be enumerated."""
    simulations: tuple[Annotated[int, Range(0, MOST_SIMULATIONS)], ...] = ()
    """Simulations of the searches that are examined in addition to the network alone. Default: 32,
    and a custom search's own number; on labelled positions 32 and 600. With --lines, one number;
    default 0, the network alone."""
    lines: Literal["first", "second"] | None = None
    """Play the player in this seat against every reply, instead of verifying all positions. Works
    for every game."""
    most: Annotated[int, Range(sampling.GROUPS)] | None = None
    """With --lines, explore at most this many positions per ply; a sample if there are more."""
    repair: Count = 0
    """With --lines, repair lost games by a longer search, in at most this many rounds. The better
    moves go into an override table, and the result is for the player with this table."""
    limit: Count = 5
    """Maximum number of blunders to draw."""
    json: bool = False
    """Print the results as JSON and nothing else."""
    typed: custom.Option = custom.NOTHING

    def __post_init__(self):
        if self.lines is not None and len(self.simulations) > 1:
            raise ValueError("--lines examines one player: give --simulations a single number")
        if self.lines is not None and self.until is not None:
            raise ValueError(
                "--until is for all positions, and --lines for those that a player reaches: leave "
                "one of them out"
            )
        for name in ("most", "repair"):
            if self.lines is None and getattr(self, name):
                raise ValueError(
                    f"--{name} is a setting of --lines: add --lines first, or leave it out"
                )
        if self.most is not None and self.repair:
            raise ValueError("--repair explores all games: leave --most out")


def examine(options: Options) -> int:
    """Examines the newest checkpoint and prints the results; returns the exit status."""
    typed = custom.name_player(options.typed, options.player)
    if typed.run_dir is not None and is_pretrained(typed.run_dir):
        options = _for_shipped(options, typed.run_dir)
    if options.lines is not None:
        launch.spread(launch.cores(), launch.cores())
    run_dir, player = custom.open_run(typed)
    if player.name is not None:
        run_dir = lines.folder_of(player.name)
    if options.lines is not None:
        return lines.prove(
            player,
            options.lines,
            options.simulations[0] if options.simulations else 0,
            options.json,
            run_dir=run_dir,
            most=options.most,
            rounds=options.repair,
        )
    if player.game.enumerable or player.game.positions is None:
        return _verify(options, player)
    if options.until is not None:
        raise ValueError(
            f"{player.game.name} has too many positions to enumerate, so --until {options.until} "
            "cannot be proved: leave it out to count errors on labelled positions"
        )
    _evaluate(options, player, player.game.positions())
    return 0


def _for_shipped(options: Options, name: pathlib.Path) -> Options:
    """Returns the options for a player that comes with azjax.

    By default, a player with overrides moves first, against every reply, as it was proved.
    """
    if options.lines or options.simulations or options.until or not has_overrides(str(name)):
        return options
    return dataclasses.replace(options, lines="first")


def _verify(options: Options, player: Player) -> int:
    """Prints the certificate and the blunders; returns 0 if the goal holds, and 1 if not."""
    solution = console.solve(player.game)
    with console.progress() as bar:
        tasks = {}

        def notify(name: str, done: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=len(solution.decisions))
            bar.update(tasks[name], completed=done)

        certificate = certificates.verify(
            player,
            options.simulations or None,
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


def _evaluate(options: Options, player: Player, positions: Positions) -> None:
    """Prints the errors of the network alone and with its search on labelled positions."""
    numbers = dict.fromkeys((0, *(options.simulations or _LABELLED)))
    results = {number: labelled.evaluate(player, positions, number) for number in numbers}
    counts = {number: errors for number, (errors, _) in results.items()}
    if options.json:
        print(json.dumps(labelled.as_json(player, positions, counts), indent=2))
        return
    labelled.show(positions, counts)
    actions = np.asarray(choose(results[0][1], positions.outcomes != ILLEGAL))
    _show_blunders(player.game, positions.states, positions.outcomes, actions, options.limit)


def _show_blunders(
    game: Game, states: State, outcomes: np.ndarray, actions: np.ndarray, limit: int
) -> None:
    """Draws at most `limit` of the positions where the network's action worsens the outcome.

    Args:
      game: the rules.
      states: `[S, ...]`.
      outcomes: `[S, A]`, of each action, for the player to move; less than -1 where it is illegal.
      actions: `[S]`, those of the network.
      limit: the maximum number of positions to draw.
    """
    rows, best = np.arange(len(actions)), outcomes.max(axis=1)
    wrong = np.flatnonzero(outcomes[rows, actions] < best)
    words = {1: "win", 0: "draw", -1: "loss"}
    for row in wrong[:limit]:
        state = jax.tree.map(lambda leaf, row=row: leaf[row], states)
        played, possible = words[int(outcomes[row, actions[row]])], words[int(best[row])]
        names = name_actions(game, state)
        optimal = ", ".join(names[action] for action in np.flatnonzero(outcomes[row] == best[row]))
        print(
            f"\n{game.display.render(state)}\n{'XO'[int(game.player(state))]} plays "
            f"{names[actions[row]]}: {played} instead of {possible} (optimal: {optimal})"
        )
    if len(wrong) > limit:
        print(f"\n… and {len(wrong) - limit:,} more: add --limit {len(wrong)} to see them all")


main = console.make_main(examine, Options, "azjax verify", "the examination was not finished")
