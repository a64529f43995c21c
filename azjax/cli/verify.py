"""Verifies a trained player, or evaluates it on labelled positions: `azjax verify`."""

import dataclasses
import functools
import pathlib
from collections.abc import Iterator
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from azjax import _processes as processes
from azjax._commands import write_note
from azjax._settings import AnySimulations, Count
from azjax.cli import console, custom
from azjax.games.base import (
    ILLEGAL,
    Game,
    Positions,
    State,
    choose,
    explain_size,
    name_actions,
)
from azjax.games.rows import in_batches
from azjax.players.statistics import Interval
from azjax.proof import certificate as certificates
from azjax.proof.enumeration import LOSS
from azjax.proof.labelled import BATCH, count_errors, rates
from azjax.proof.seat_proof import SeatProof, explore_seat
from azjax.runs import pretrained
from azjax.runs.player import Player, changed, is_pretrained

_LABELLED = (32, 600)  # Simulations of the searches on labelled positions, by default.


@dataclasses.dataclass(frozen=True)
class Options:
    """Verifies a trained network in every reachable position and lists its blunders.

    In a game too large for that, errors are counted on labelled positions, if the game has them.
    """

    until: Literal["perfect", "unbeatable"] | float | None = None
    """What must hold for exit status 0, if the game can be enumerated. With dice, a number: no move
    loses more than this of the expected outcome. Default: perfect, or 0.01 with dice."""
    simulations: tuple[AnySimulations, ...] = ()
    """Simulations of the searches that are examined in addition to the network alone. Default: 32,
    and a custom search's own number; on labelled positions 32 and 600. With --lines, one number;
    default 0, the network alone."""
    lines: Literal["first", "second"] | None = None
    """Play the player in this seat against every reply, instead of verifying all positions. Works
    for every game. Default for a player that comes with azjax and has overrides: first."""
    repair: Count = 0
    """With --lines, repair lost games by a longer search, in at most this many rounds. The better
    moves go into an override table, and the result is for the player with this table."""
    limit: Count = 5
    """Maximum number of blunders to draw."""
    typed: custom.OfPlayer = custom.PlayerOptions()

    def __post_init__(self):
        if self.lines is not None and len(self.simulations) > 1:
            raise ValueError("--lines examines one player: give --simulations a single number")
        if self.lines is not None and self.until is not None:
            raise ValueError("--until is for all positions: leave it out, or leave --lines out")
        if self.lines is None and self.repair:
            raise ValueError("--repair is a setting of --lines: add --lines first")


def examine(options: Options) -> int:
    """Examines the newest checkpoint and prints the results; returns the exit status."""
    typed = options.typed
    if typed.run_dir is not None and is_pretrained(typed.run_dir):
        named = options.lines or options.simulations or options.until is not None
        overrides = pretrained.read(str(typed.run_dir)).overrides
        if not named and overrides is not None:  # As it was proved.
            options = dataclasses.replace(options, lines="first")
    if options.lines is not None:
        processes.set_cpu_devices(processes.cores())
    run_dir, player = custom.open_player(typed)
    if options.lines is not None:
        return _prove(options, player, folder_of(player.name) if player.name else run_dir)
    game = player.game
    if game.enumerable:
        return _verify(options, player)
    if game.positions is None:
        raise ValueError(f"{explain_size(game)}: add --lines first, or play matches instead")
    if options.until is not None:
        raise ValueError(
            f"{explain_size(game)}, so --until {options.until} cannot be proved: "
            "leave it out to count errors on labelled positions"
        )
    _evaluate(options, player, game.positions())
    return 0


# All positions.


def _verify(options: Options, player: Player) -> int:
    """Prints the certificate and the blunders; returns 0 if the goal holds, and 1 if not."""
    goal = options.until
    if goal is None:
        goal = certificates.default_goal(player.game)
    certificates.check_goal(goal, player.game)
    solution = console.solve(player.game)
    with console.busy(f"verifying every position of {player.game.name}…"):
        certificate = certificates.verify(player, options.simulations or None, solution=solution)
    console.show_certificate(certificate)
    if certificate.blunders:
        actions = np.asarray(certificates.examine(player, solution).actions)
        outcomes = solution.action_values[solution.decisions]
        _show_blunders(player.game, solution.decision_states, outcomes, actions, options.limit)
    return 0 if certificate.reaches(goal) else 1


def _show_blunders(
    game: Game, states: State, outcomes: np.ndarray, actions: np.ndarray, limit: int
) -> None:
    """Draws at most `limit` of the positions where the network's action worsens the outcome.

    `states` are `[S, ...]`, `actions` are `[S]`, and `outcomes` are `[S, A]`, of each action for
    the player to move; less than -1 where it is illegal.
    """
    rows, best = np.arange(len(actions)), outcomes.max(axis=1)
    wrong = np.flatnonzero(best - outcomes[rows, actions] > LOSS)
    for row in wrong[:limit]:
        state = jax.tree.map(lambda leaf, row=row: leaf[row], states)
        played, possible = _word(outcomes[row, actions[row]]), _word(best[row])
        names, is_optimal = name_actions(game, state), best[row] - outcomes[row] <= LOSS
        optimal = ", ".join(names[action] for action in np.flatnonzero(is_optimal))
        print(
            f"\n{game.display.render(state)}\n{'XO'[int(game.player(state))]} plays "
            f"{names[actions[row]]}: {played} instead of {possible} (optimal: {optimal})"
        )
    if len(wrong) > limit:
        print(f"\n… and {len(wrong) - limit:,} more: add --limit {len(wrong)} to see them all")


def _word(outcome: Any) -> str:
    return {1.0: "win", 0.0: "draw", -1.0: "loss"}.get(float(outcome), f"{outcome:+.3f}")


# Labelled positions.


def _evaluate(options: Options, player: Player, positions: Positions) -> None:
    numbers = dict.fromkeys((0, *(options.simulations or _LABELLED)))
    answers = {number: _answer(player, positions, number) for number in numbers}
    counts = {number: count_errors(positions, *given) for number, given in answers.items()}
    shares = {_name(number): rates(positions, errors) for number, errors in counts.items()}
    moves = "% of moves that worsen the outcome (95% interval)"
    values = "% of values of won and lost positions with the wrong sign"
    for title, totals, kind in (
        (moves, counts[0].positions, "errors"),
        (values, counts[0].decided, "sign_errors"),
    ):
        sizes = dict(zip(positions.classes, map("{:,}".format, totals.tolist()), strict=True))
        columns = [getattr(of, kind) for of in shares.values()]
        rows = [
            (name, sizes.get(name, ""), *(_cell(column[name]) for column in columns))
            for name in columns[0]
        ]
        print()
        console.print_table(["positions", "of", *shares], rows, title=title)
    actions = np.asarray(choose(answers[0][0], positions.outcomes != ILLEGAL))
    _show_blunders(player.game, positions.states, positions.outcomes, actions, options.limit)


def _answer(player: Player, positions: Positions, num_simulations: int) -> Any:
    """Returns the scores `[S, A]` and the values `[S]` of a search, or of the network alone."""
    search = None
    if num_simulations:
        search = changed(player.parts.search, num_simulations=num_simulations)
    policy = functools.partial(certificates.policy, player, search)
    with console.busy(_name(num_simulations)):
        return in_batches(policy, (positions.states,), BATCH)


def _name(num_simulations: int) -> str:
    return f"{num_simulations} simulations" if num_simulations else "network alone"


def _cell(share: Interval) -> str:
    return f"{100 * share.estimate:.1f} ({100 * share.low:.1f}–{100 * share.high:.1f})"


# Every reply.


def folder_of(name: str) -> pathlib.Path:
    """Returns the folder with the explored games of a player that comes with azjax."""
    return pathlib.Path("runs", "verified", name.replace(":", "_"))


def _prove(options: Options, player: Player, run_dir: pathlib.Path) -> int:
    assert options.lines is not None
    simulations = options.simulations[0] if options.simulations else 0
    settings = {"simulations": simulations, "rounds": options.repair}
    proof = watch(explore_seat(player, options.lines, run_dir, **settings))
    _show(player, options.lines, simulations, proof)
    return 0 if proof.is_proof else 1


def watch(steps: Iterator[Any]) -> Any:
    """Shows the progress of the current ply, and each round of repair; returns the last step."""
    step = None
    with console.progress() as progress:
        bar = progress.add_task("")
        for step in steps:
            if isinstance(step, SeatProof):
                if step.table.rounds:
                    write_note(
                        f"round {step.table.rounds}: {step.lost:,} lost ends with an override "
                        f"table of {len(step.table.actions):,} moves, symmetric copies included"
                    )
                continue
            lost = f"{step.ends.moves[2]:,} lost ends"
            text = f"ply {step.ply:2}: {step.total:,} positions; {lost}"
            progress.update(bar, completed=step.positions, total=step.total, description=text)
    return step


def _show(player: Player, seat: str, simulations: int, proof: SeatProof) -> None:
    last, ends = proof.exploration, proof.exploration.ends
    name = f"{player.parts.search.algorithm}({simulations})" if simulations else "alone"
    if player.overrides is not None:
        name += f", {len(player.overrides.actions):,} overrides up to symmetry"
    if len(proof.table.actions):
        name += f", {len(proof.table.actions):,} overrides"
    print(f"{player.game.name}, network #{player.iteration} {name}, moving {seat}")
    rows = []
    for column, outcome in enumerate(("won", "drawn", "lost")):
        of_ends, of_games = (100 * x[column] / max(x.sum(), 1) for x in (ends.moves, ends.games))
        rows.append((outcome, f"{ends.moves[column]:,}", f"{of_ends:.4g}", f"{of_games:.4g}"))
    console.print_table(("", "ends", "% of ends", "% of games"), rows)
    copies = ", symmetric copies counted once" if proof.symmetric else ""
    print(f"{ends.decisions:,} positions decided{copies}, {last.ply + 1} plies")
    if last.lost is not None:
        state, names = player.game.init(), []
        for action in last.lost:
            names.append(name_actions(player.game, state)[action])
            state, _ = player.game.step(state, jnp.int32(action))
        print(f"\nthe first lost game, {' '.join(names)}:\n{player.game.display.render(state)}\n")
    elif proof.is_proof:
        print(f"UNBEATABLE moving {seat}: no game is lost, over all replies of the opponent")


main = console.make_main(examine, Options, "azjax verify", "the examination was not finished")
