"""Exhaustive play of a run's player as `azjax verify --lines` shows it."""

import json
import pathlib
from typing import Any

import jax

from azjax.cli import console
from azjax.proof import exhaustive
from azjax.proof.lines import replay
from azjax.proof.overrides import OverrideTable
from azjax.proof.seat import Seat, SeatProof, Steps, prove_seat
from azjax.runs.player import Player


def prove(
    run_dir: pathlib.Path,
    player: Player,
    seat: Seat,
    simulations: int,
    most: int | None = None,
    rounds: int = 0,
    as_json: bool = False,
) -> int:
    """Plays a run's player against every reply and prints what became of the games.

    Args:
      run_dir: the run directory.
      player: whose network plays.
      seat: the player's.
      simulations: of its search; 0: its network alone.
      most: positions of a ply that are explored; None: all.
      rounds: how often lost games are repaired at most.
      as_json: whether to print JSON.

    Returns:
      0 if no game is lost and none was left out, otherwise 1.

    Raises:
      CheckpointError, ValueError: as `prove_seat` does.
    """

    def show_round(proof: SeatProof, table: OverrideTable) -> None:
        if not as_json:
            print(
                f"round {table.rounds}: {proof.lost:,} ends lost; "
                f"{len(table.actions):,} moves in the book now, images counted",
                flush=True,
            )

    proof = prove_seat(
        player,
        seat,
        run_dir,
        simulations=simulations,
        most=most,
        rounds=rounds,
        watch=_watch,
        notify=show_round,
    )
    if as_json:
        print(json.dumps(_content(player, seat, simulations, proof), indent=2))
    else:
        _show(player, seat, simulations, proof)
    return 0 if proof.is_proof else 1


def _watch(steps: Steps) -> exhaustive.Exploration:
    """Shows how far each ply is, and the rest of its time; returns what was found in the end."""
    with console.progress() as progress:
        bars: dict[int, Any] = {}
        found = None
        for found in steps:
            if found.ply not in bars:
                bars[found.ply] = progress.add_task("")
            lost = f"{found.ends.moves[2]:,} ends lost"
            what = f"ply {found.ply:2}: {found.total:,} positions; {lost}"
            progress.update(
                bars[found.ply], completed=found.positions, total=found.total, description=what
            )
    assert found is not None  # The start alone is a position.
    return found


def _content(player: Player, seat: str, simulations: int, proof: SeatProof) -> dict[str, Any]:
    found, ends = proof.exploration, proof.exploration.ends
    games = found.ends.games[0] + found.ends.games[1:].mean(axis=0)
    return {
        "game": player.game.name,
        "iteration": player.iteration,
        "seat": seat,
        "simulations": simulations,
        "moves_by_book": len(proof.table.actions),
        "unbeatable": proof.is_proof,
        "sampled": found.sampled,
        "up_to_symmetry": proof.symmetric,
        "decisions": ends.decisions,
        "ends": dict(zip(("won", "drawn", "lost"), ends.moves.tolist(), strict=True)),
        "games": dict(zip(("won", "drawn", "lost"), games.tolist(), strict=True)),
        "share_of_games_lost": ends.share(2),
        "first_lost_game": found.lost,
    }


def _show(player: Player, seat: str, simulations: int, proof: SeatProof) -> None:
    found, ends = proof.exploration, proof.exploration.ends
    thinking = f"{player.parts.search.algorithm}({simulations})" if simulations else "alone"
    if len(proof.table.actions):
        thinking += f", {len(proof.table.actions):,} moves by book"
    print(f"{player.game.name}, network #{player.iteration} {thinking}, moving {seat}")
    rows = []
    for column, outcome in enumerate(("won", "drawn", "lost")):
        share, low, high = ends.share(column)
        percent = f"{100 * share:.4g}"
        if found.sampled:
            percent += f" [{100 * low:.3g}, {100 * high:.3g}]"
        of_ends = 100 * ends.moves[column] / max(ends.moves.sum(), 1)
        rows.append((outcome, f"{ends.moves[column]:,}", f"{of_ends:.4g}", percent))
    console.print_table(("", "ends", "% of ends", "% of games"), rows)
    images = ", images of each other counted once" if proof.symmetric else ""
    print(f"{ends.decisions:,} positions decided{images}, {found.ply + 1} plies")
    if found.lost is not None:
        moves = " ".join(map(str, found.lost))
        last = jax.tree.map(lambda leaf: leaf[0], replay(player.game, [found.lost]))
        print(f"\nthe first lost game, {moves}:\n{player.game.display.render(last)}\n")
    elif not proof.is_proof:
        print("NOT PROVED: no game was lost among those followed, and others were left out")
    else:
        print(f"UNBEATABLE moving {seat}: no game is lost, whatever the opponent plays")
    if proof.decided:
        speed = proof.decided / max(proof.seconds, 1e-9)
        print(f"{proof.decided:,} of the positions were decided now, {speed:,.0f} a second")
