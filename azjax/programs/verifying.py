"""`azjax.verify` and `azjax.repair`: proofs of a trained player from Python."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from azjax import runs
from azjax._files import Path
from azjax.games import solver
from azjax.proof import certificate as certificates
from azjax.proof.overrides import OverrideTable
from azjax.proof.seat import Seat, SeatProof, Steps, finish, prove_seat
from azjax.runs.player import Player


def verify(
    player: Player,
    simulations: Sequence[int] = (32,),
    *,
    solution: solver.Solution | None = None,
    notify: Callable[[str, int], None] = lambda examined, done: None,
    started: float | None = None,
) -> certificates.Certificate:
    """Verifies a player in every position of its game: the network alone, and with searches.

    Args:
      player: a trained player, from `azjax.load`.
      simulations: of the searches; none: the network alone.
      solution: of the game; solved if None.
      notify: is given what is examined, and how many positions are done.
      started: the `time.time()` from which the seconds of the certificate count; now, by default.

    Raises:
      ValueError: if the game has too many positions to enumerate, or trees do not fit in memory.
    """
    if not player.game.enumerable:
        raise ValueError(
            f"{player.game.name} has too many positions to enumerate: play a seat against every "
            "reply instead, with prove_seat"
        )
    searches = [
        search
        for number in simulations
        if number
        for search in certificates.searches_to_verify(player.parts.search, number)
    ]
    solution = solver.solve(player.game) if solution is None else solution
    seed = 0 if player.run_dir is None else runs.read_config(player.run_dir).seed
    certify = certificates.make_certifier(player.parts, solution, searches, notify)
    return certify(player.params, player.iteration, started or time.time(), seed)


def repair(
    player: Player,
    seat: Seat = "first",
    rounds: int = 12,
    run_dir: Path | None = None,
    *,
    simulations: int = 0,
    watch: Callable[[Steps], Any] = finish,
    notify: Callable[[SeatProof, OverrideTable], None] = lambda proof, table: None,
) -> SeatProof:
    """Plays a seat against every reply, and overrides moves until no game is lost.

    The network does not change. The result has the override table; `is_proof` says whether the
    player with it loses no game. See `prove_seat`, which has the same arguments.
    """
    return prove_seat(
        player,
        seat,
        run_dir,
        simulations=simulations,
        rounds=rounds,
        watch=watch,
        notify=notify,
    )
