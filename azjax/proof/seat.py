"""Exhaustive play of a player's seat: against every reply, repaired until no game is lost."""

import collections
import hashlib
import pathlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import jax
import numpy as np

from azjax._files import Path
from azjax.proof import exhaustive
from azjax.proof.deciding import make_act, make_agent, make_decide
from azjax.proof.lines import Line
from azjax.proof.overrides import (
    OverrideTable,
    empty_table,
    load_table,
    override_agent,
    save_table,
    table_path,
)
from azjax.proof.repair import Repaired, make_analyze, make_symmetric, repair
from azjax.runs import lock
from azjax.runs.player import Player

Seat = Literal["first", "second"]
SEATS = {"first": 0, "second": 1}
_SHORTEST, _LONGEST = 2**8, 2**15  # Simulations of a search that repairs,
_GENERATIONS = 100  # and how often it repairs what follows from its moves in one round.


class SeatProof(NamedTuple):
    """What exhaustive play of a seat found.

    Attributes:
      exploration: the positions and the ends of the games.
      folder: its files.
      symmetric: whether one of the symmetric copies of a position stood for all of them.
      decided: positions that were decided now, and not by an earlier call.
      seconds: that this took.
      table: the moves that override those of the network or its search.
    """

    exploration: exhaustive.Exploration
    folder: pathlib.Path
    symmetric: bool
    decided: int
    seconds: float
    table: OverrideTable

    @property
    def lost(self) -> int:
        """Ends of games that are lost."""
        return int(self.exploration.ends.moves[2])

    @property
    def is_proof(self) -> bool:
        """Whether every game was played to its end, and none is lost."""
        found = self.exploration
        return not (found.sampled or found.breaks_symmetry or self.lost)


Steps = Iterator[exhaustive.Exploration]


def finish(steps: Steps) -> exhaustive.Exploration:
    """Returns the last of the steps of an exploration."""
    return collections.deque(steps, maxlen=1)[0]


def prove_seat(
    player: Player,
    seat: Seat,
    run_dir: Path | None = None,
    *,
    simulations: int = 0,
    most: int | None = None,
    rounds: int = 0,
    watch: Callable[[Steps], exhaustive.Exploration] = finish,
    notify: Callable[[SeatProof, OverrideTable], None] = lambda proof, table: None,
) -> SeatProof:
    """Plays a player against every reply, and repairs it where it loses a game.

    The network does not change: an override table has the better moves. What is found stands in
    the run directory, so that an interrupted call goes on where it was.

    Args:
      player: whose network plays.
      seat: the player's: it moves first or second.
      run_dir: the folder for the files; None: the run directory that the player is from.
      simulations: of its search; 0: its network alone.
      most: positions of a ply that are explored, see `exhaustive.explore`; None: all.
      rounds: how often lost games are repaired at most, those of earlier calls included.
      watch: takes the steps of each exploration, and returns the last one.
      notify: is given what a round found, and the table that repairs it.

    Raises:
      CheckpointError: if another program explores the same player.
      ValueError: if the override table cannot be read, the player's search is not deterministic, or
        there is no folder.
    """
    run_dir = player.run_dir if run_dir is None else run_dir
    if run_dir is None:
        raise ValueError("run_dir is None, and the player is from no run: name a folder")
    folder = pathlib.Path(run_dir)
    path = table_path(folder, player.iteration, SEATS[seat], simulations)
    path.parent.mkdir(exist_ok=True)
    name = f"{_name(player, seat, simulations)}.lock"
    with lock.hold(path.parent, name, "follows this player's games"):
        table = empty_table(player.game)
        if rounds and path.exists():
            table = load_table(path, player.game)
        while True:
            is_last = table.rounds >= rounds
            proof = _explore(folder, player, seat, simulations, most, table, is_last, watch)
            if is_last or not (proof.lost or proof.exploration.breaks_symmetry):
                return proof
            better, starts = _improve(path, player, seat, simulations, proof, watch)
            better = better._replace(rounds=table.rounds + 1)
            save_table(path, better)
            notify(proof, better)
            if not starts:
                return proof  # Every move is refuted, from the first on: these games stay lost.
            table = better


def _name(player: Player, seat: str, simulations: int) -> str:
    """Returns how the names of a player's files in a seat begin; see `table_path`."""
    return f"{player.iteration}-{seat}-{simulations}"


def _digest(player: Player, table: OverrideTable) -> str:
    """Returns a digest of the network, the search and the table, for the names of folders."""
    network = player.parts.network
    settings = player.game.name, network.encoding, network.symmetric, player.parts.search
    digest = hashlib.sha256(repr(settings).encode())
    for leaf in jax.tree.leaves((player.params, table.states, table.actions)):
        array = np.asarray(leaf)
        digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()[:16]


def _improve(
    path: pathlib.Path,
    player: Player,
    seat: str,
    simulations: int,
    proof: SeatProof,
    watch: Callable[[Steps], exhaustive.Exploration],
) -> Repaired:
    """Repairs the lost games of an exploration, and those lost after the repair.

    Where no game is lost, the moves become the same in all symmetric copies of a position. The
    table is saved each time, so that an interruption loses no search.
    """
    game, base, table = player.game, make_agent(player, simulations), proof.table
    lost = list(exhaustive.lost_games(proof.folder))
    if not lost:
        return make_symmetric(game, table, list(exhaustive.symmetry_violations(proof.folder)))
    number = min(max(16 * simulations, _SHORTEST) * 2**table.rounds, _LONGEST)
    analyze = make_analyze(game, make_decide(make_agent(player, number)), table)
    starts: list[Line] = []
    for _ in range(_GENERATIONS):
        table, starts = repair(game, table, lost, SEATS[seat], analyze, proof.symmetric)
        save_table(path, table)
        if not starts:
            break
        act = make_act(override_agent(game, base, table))
        with tempfile.TemporaryDirectory() as temporary:
            walked = pathlib.Path(temporary, "lines")
            watch(
                exhaustive.explore(
                    game, act, SEATS[seat], walked, symmetric=proof.symmetric, starts=starts
                )
            )
            lost = list(exhaustive.lost_games(walked))
        if not lost:
            break
    return Repaired(table, starts)


def _explore(
    run_dir: pathlib.Path,
    player: Player,
    seat: str,
    simulations: int,
    most: int | None,
    table: OverrideTable,
    is_last: bool,
    watch: Callable[[Steps], exhaustive.Exploration],
) -> SeatProof:
    """Plays the player with a table against every reply.

    If the network is equivariant, one of the symmetric copies of a position stands for all. That
    is not yet a proof, since the last bit of a sum may break a tie differently in a copy. So where
    no game is lost, all copies are compared. The next table repairs the differences; in the last
    exploration each copy is explored by itself instead.
    """
    agent = make_agent(player, simulations)
    name = _name(player, seat, simulations) + (f"-{most}" if most else "")
    digest = _digest(player, table)
    own = f"{name}-{digest}"
    if len(table.actions):
        agent = override_agent(player.game, agent, table)
        own = f"{name}-book-{digest}"
        for folder in (run_dir / "lines").glob(f"{name}-book-*"):
            if not folder.name.startswith(own):
                shutil.rmtree(folder)  # Its table is gone.
    decide, started, decided = make_act(agent), time.time(), 0
    symmetric = player.parts.network.symmetric

    def act(states):
        nonlocal decided
        decided += len(jax.tree.leaves(states)[0])
        return decide(states)

    def explore(kind, **settings):
        folder = run_dir / "lines" / f"{own}{kind}"
        return folder, watch(exhaustive.explore(player.game, act, SEATS[seat], folder, **settings))

    folder, found = explore("", most=most, symmetric=symmetric)
    if symmetric and not found.ends.moves[2] and not found.sampled:
        folder, found = explore("-compared", symmetric=True, compare=True)
        if found.breaks_symmetry and is_last:
            (folder, found), symmetric = explore("-images"), False
    return SeatProof(found, folder, symmetric, decided, time.time() - started, table)
