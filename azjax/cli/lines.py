"""Exhaustive play of a run's player, as `azjax verify --lines` prints it."""

import json
import pathlib
from typing import Any

import jax
import numpy as np

from azjax.cli import console
from azjax.exact import exhaustive
from azjax.exact.moves import replay
from azjax.exact.overrides import OverrideTable
from azjax.exact.seat import Seat, SeatProof, prove_seat
from azjax.players.game_files import name_moves
from azjax.runs.player import Player

_OUTCOMES = ("won", "drawn", "lost")


def folder_of(name: str) -> pathlib.Path:
    """Returns the folder with the explored games of a player that comes with azjax."""
    return pathlib.Path("runs", "verified", name.replace(":", "_"))


def prove(player: Player, seat: Seat, simulations: int, as_json: bool, **settings: Any) -> int:
    """Plays a player against every reply and prints how the games end.

    Args:
      player: the player, in `seat`.
      seat: whether the player moves first or second.
      simulations: simulations of its search; 0 for the network alone.
      as_json: whether to print JSON.
      **settings: the other arguments of `prove_seat`.

    Returns:
      0 if no game is lost and none was left out, otherwise 1.

    Raises:
      CheckpointError, ValueError: as `prove_seat` does.
    """

    def show_round(proof: SeatProof, table: OverrideTable) -> None:
        if not as_json:
            print(
                f"round {table.rounds}: {proof.lost:,} lost ends; the override table has "
                f"{len(table.actions):,} moves now, symmetric copies included",
                flush=True,
            )

    proof = prove_seat(
        player, seat, simulations=simulations, watch=watch, notify=show_round, **settings
    )
    if as_json:
        print(json.dumps(_content(player, seat, simulations, proof), indent=2))
    else:
        _show(player, seat, simulations, proof)
    return 0 if proof.is_proof else 1


def watch(steps: exhaustive.Steps) -> exhaustive.Exploration:
    """Shows a progress bar for each ply; returns the last step."""
    with console.progress() as progress:
        bars: dict[int, Any] = {}
        step = None
        for step in steps:
            if step.ply not in bars:
                bars[step.ply] = progress.add_task("")
            lost = f"{step.ends.moves[2]:,} lost ends"
            text = f"ply {step.ply:2}: {step.total:,} positions; {lost}"
            progress.update(
                bars[step.ply], completed=step.positions, total=step.total, description=text
            )
    assert step is not None  # Every exploration has a start.
    return step


def _content(player: Player, seat: str, simulations: int, proof: SeatProof) -> dict[str, Any]:
    last, ends = proof.exploration, proof.exploration.ends
    games = ends.games[0] + ends.games[1:].mean(axis=0)
    return {
        "game": player.game.name,
        "iteration": player.iteration,
        "seat": seat,
        "simulations": simulations,
        "overrides": len(proof.table.actions),
        "unbeatable": proof.is_proof,
        "sampled": last.sampled,
        "up_to_symmetry": proof.symmetric,
        "decisions": ends.decisions,
        "ends": dict(zip(_OUTCOMES, ends.moves.tolist(), strict=True)),
        "games": dict(zip(_OUTCOMES, games.tolist(), strict=True)),
        "share_of_games_lost": ends.share(2),
        "first_lost_game": last.lost,
    }


def _show(player: Player, seat: str, simulations: int, proof: SeatProof) -> None:
    last, ends = proof.exploration, proof.exploration.ends
    name = f"{player.parts.search.algorithm}({simulations})" if simulations else "alone"
    if player.overrides is not None:
        name += f", {len(player.overrides.actions):,} overrides up to symmetry"
    if len(proof.table.actions):
        name += f", {len(proof.table.actions):,} overrides"
    print(f"{player.game.name}, network #{player.iteration} {name}, moving {seat}")
    rows = []
    for column, outcome in enumerate(_OUTCOMES):
        share, low, high = ends.share(column)
        percent = f"{100 * share:.4g}"
        if last.sampled:
            percent += f" [{100 * low:.3g}, {100 * high:.3g}]"
        of_ends = 100 * ends.moves[column] / max(ends.moves.sum(), 1)
        rows.append((outcome, f"{ends.moves[column]:,}", f"{of_ends:.4g}", percent))
    console.print_table(("", "ends", "% of ends", "% of games"), rows)
    copies = ", symmetric copies counted once" if proof.symmetric else ""
    print(f"{ends.decisions:,} positions decided{copies}, {last.ply + 1} plies")
    if last.lost is not None:
        [names] = name_moves(player.game, np.array([last.lost]))
        state = jax.tree.map(lambda leaf: leaf[0], replay(player.game, [last.lost]))
        print(f"\nthe first lost game, {' '.join(names)}:\n{player.game.display.render(state)}\n")
    elif not proof.is_proof:
        print("NOT PROVED: no explored game is lost, but positions were left out")
    else:
        print(f"UNBEATABLE moving {seat}: no game is lost, over all replies of the opponent")
    if proof.decided:
        speed = proof.decided / max(proof.seconds, 1e-9)
        print(f"{proof.decided:,} positions decided in this call, {speed:,.0f} per second")
