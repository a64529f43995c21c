"""Exhaustive play of a player in one seat, and repair of its moves until no game is lost."""

import contextlib
import functools
import pathlib
import tempfile
from collections.abc import Callable, Generator, Iterator
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from azjax._files import Path, digest_arrays, remove
from azjax._settings import AnySimulations, Count, checked
from azjax.games.base import Game, State, state_shapes
from azjax.games.rows import in_batches
from azjax.players import Agent, Decision
from azjax.players.overrides import state_lookup, with_overrides
from azjax.proof import exhaustive
from azjax.proof.exhaustive import Exploration
from azjax.proof.repair import (
    TABLE_SUFFIX,
    OverrideTable,
    empty_table,
    load_table,
    make_analyze,
    repair_games,
    save_table,
    table_path,
)
from azjax.proof.replies import Act, Line
from azjax.runs import directory
from azjax.runs.directory import check_links
from azjax.runs.player import Player, changed
from azjax.training import AXIS, make_mesh, memory
from azjax.training.parts import Parts

Seat = Literal["first", "second"]
SEATS: dict[Seat, int] = {"first": 0, "second": 1}
_SHORTEST, _LONGEST = 2**8, 2**15  # Simulations of the search that finds better moves.
_GENERATIONS = 100  # Maximum repairs per round; each repairs games that follow from the last one.
_FEWEST, _POSITIONS = 2**6, 2**12  # Positions in one batch of a device.
_NODES = 2**16  # Tree nodes in one batch; they should fit in a CPU's cache.


class SeatProof(NamedTuple):
    """The result of exhaustive play in one seat."""

    exploration: Exploration
    folder: pathlib.Path  # The files of the exploration, which are deleted if they are temporary.
    symmetric: bool  # Whether symmetric copies of a position were explored once.
    table: OverrideTable  # The moves that override those of the network or its search.

    @property
    def lost(self) -> int:
        """The number of lost ends: moves that end a game with a loss."""
        return int(self.exploration.ends.moves[2])

    @property
    def is_proof(self) -> bool:
        """Whether no game is lost."""
        return not self.lost


def repair(
    player: Player,
    seat: Seat = "first",
    rounds: int = 12,
    run_dir: Path | None = None,
    **settings: Any,
) -> SeatProof:
    """Plays a player against every reply, and overrides moves until no game is lost.

    It stops after at most `rounds` rounds, even if games are still lost. The arguments are those of
    `prove_seat`.
    """
    return prove_seat(player, seat, run_dir, rounds=rounds, **settings)


def prove_seat(
    player: Player,
    seat: Seat,
    run_dir: Path | None = None,
    *,
    simulations: int = 0,
    rounds: int = 0,
) -> SeatProof:
    """Plays a player against every reply; with `rounds`, also repairs moves that lose.

    The network does not change; better moves go into an override table, for which the result holds.
    An interrupted call resumes from the folder. `explore_seat` also yields its progress.

    Args:
      player: the trained player.
      seat: whether the player moves first or second.
      run_dir: the folder for the files; by default the run directory of the player. Without either
        the files are temporary.
      simulations: simulations of its search; 0 for the network alone.
      rounds: maximum number of repair rounds, including those of earlier calls. With 0, nothing is
        repaired, and the override table of earlier calls is not used.
    """
    *_, proof = explore_seat(player, seat, run_dir, simulations=simulations, rounds=rounds)
    return proof


def explore_seat(
    player: Player, seat: Seat, run_dir: Path | None = None, *, simulations: int, rounds: int
) -> Iterator[Any]:
    """Yields the progress of `prove_seat`.

    This is an `Exploration` after each part of the games, and a `SeatProof` after all games of the
    player with an override table. The last one is the result.
    """
    if checked("player", player, Player).game.chance is not None:
        raise ValueError(
            f"{player.game.name} has dice, so every player can lose: verify all positions, if the "
            "game can be enumerated, or play matches"
        )
    seat = checked("seat", seat, Seat)
    simulations = checked("simulations", simulations, AnySimulations)
    rounds = checked("rounds", rounds, Count)
    make_agent(player, simulations or (_SHORTEST if rounds else 0))  # Raises before any game.
    with contextlib.ExitStack() as stack:
        run_dir = player.run_dir if run_dir is None else run_dir
        if run_dir is None:
            run_dir = stack.enter_context(tempfile.TemporaryDirectory())
        path = table_path(pathlib.Path(run_dir), player.iteration, SEATS[seat], simulations)
        check_links(run_dir)
        path.parent.mkdir(parents=True, exist_ok=True)
        games = _Games(player, SEATS[seat], simulations, path)
        lock = path.parent, f"{games.name}.lock", "explores the games of this player"
        stack.enter_context(directory.hold(*lock))
        table = empty_table(player.game)
        if rounds and path.exists():
            table = load_table(path, player.game)
        while True:
            proof = yield from games.explore(table)
            yield proof
            if proof.is_proof or table.rounds >= rounds:
                return
            table, starts = yield from games.improve(proof)
            table = table._replace(rounds=table.rounds + 1)
            save_table(path, table)
            if not starts:
                return  # Every first move is refuted: these games cannot be saved.


def _digest(player: Player, table: OverrideTable) -> str:
    """Returns a digest of what determines the games, for the names of folders.

    These are the rules, the network, the search and all overrides.
    """
    settings = player.game.name, player.parts.network.symmetric, player.parts.search
    moves = player.overrides, table.states, table.actions
    arrays = jax.tree.leaves((player.params, *moves))
    return digest_arrays(repr(settings).encode() + _code(player.parts), arrays)[:16]


@functools.lru_cache(maxsize=8)
def _code(parts: Parts) -> bytes:
    """Returns the program of the rules and the network; another version of JAX may change it."""
    game, network = parts.game, parts.network

    def run(state, action, params):
        rules = game.legal_actions(state), game.is_over(state), game.player(state)
        planes = game.observe(state, network.encoding)
        return game.init(), game.step(state, action), rules, network.infer(params, planes[None])

    params = jax.eval_shape(lambda: network.fold(network.init(jax.random.key(0))))
    action = jax.ShapeDtypeStruct((), np.int32)
    return jax.jit(run).lower(state_shapes(game), action, params).as_text().encode()


class _Games(NamedTuple):
    """The games of a player in one seat, 0 or 1; `path` is that of its override table."""

    player: Player
    seat: int
    simulations: int
    path: pathlib.Path

    @property
    def name(self) -> str:
        """The name of the folders and of the lock."""
        return self.path.name.removesuffix(TABLE_SUFFIX)

    def explore(self, table: OverrideTable) -> Generator[Exploration, None, SeatProof]:
        """Plays the player with an override table against every reply.

        If the network is equivariant, symmetric copies of a position are explored once. This is not
        yet a proof: rounding may break a tie differently in a copy. Therefore, if no game is lost,
        all copies are explored. A network with exact sums does not need this if it plays without a
        search and without a table: its moves are then exactly symmetric.
        """
        game, network = self.player.game, self.player.parts.network
        has_table = len(table.actions) > 0
        name = self.name + "-overrides" * has_table
        prefix = f"{name}-{_digest(self.player, table)}"
        if has_table:
            for folder in self.path.parent.glob(f"{name}-*"):
                if not folder.name.startswith(prefix):
                    remove(folder)  # The exploration of an earlier table.
        act = make_act(game, make_agent(self.player, self.simulations), table)

        def explore(kind: str, symmetric: bool):
            folder = self.path.parent / f"{prefix}{kind}"
            steps = exhaustive.explore(game, act, self.seat, folder, symmetric=symmetric)
            return SeatProof((yield from steps), folder, symmetric, table)

        proof = yield from explore("", symmetric=network.symmetric)
        is_exact = network.exact and not self.simulations and not has_table
        if network.symmetric and not is_exact and not proof.lost:
            proof = yield from explore("-copies", symmetric=False)
        return proof

    def improve(
        self, proof: SeatProof
    ) -> Generator[Exploration, None, tuple[OverrideTable, list[Line]]]:
        """Repairs the lost games of an exploration, and then those that follow from the repair.

        The table is saved after each repair, so its moves survive an interruption.
        """
        game, table = self.player.game, proof.table
        lost = list(exhaustive.lost_games(proof.folder))
        agent, starts = make_agent(self.player, self.simulations), []
        # A longer search finds better moves.
        simulations = max(16 * self.simulations, _SHORTEST) * 2**table.rounds
        decide = make_decide(make_agent(self.player, min(simulations, _LONGEST)))
        analyze = make_analyze(game, decide, table)
        for _ in range(_GENERATIONS):
            table, starts = repair_games(game, table, lost, self.seat, analyze, proof.symmetric)
            save_table(self.path, table)
            if not starts:
                break
            act = make_act(game, agent, table)
            settings = {"symmetric": proof.symmetric, "starts": starts}
            with tempfile.TemporaryDirectory(dir=self.path.parent) as temporary:
                folder = pathlib.Path(temporary, "lines")
                yield from exhaustive.explore(game, act, self.seat, folder, **settings)
                lost = list(exhaustive.lost_games(folder))
            if not lost:
                break
        return table, starts


def make_agent(player: Player, simulations: int) -> Agent:
    """Returns the player with its overrides: with search, or without one for 0 simulations."""
    if simulations:
        search = changed(player.parts.search, num_simulations=simulations)
        if not search.is_deterministic:
            raise ValueError(
                f"{search.algorithm} is a random search, so nothing can be proved about it: use "
                "0 simulations, for the network alone, and no repair"
            )
        memory.check_trees(search, player.game, _batch_size(simulations + 1))
    return player.with_simulations(simulations)


def make_act(game: Game, agent: Agent, table: OverrideTable) -> Act:
    """Builds `states [N, ...] -> actions [N]` of an agent with an override table."""
    if len(table.actions):
        agent = with_overrides(agent, state_lookup(table.states, table.actions))
    decide = make_decide(agent)
    return lambda states: np.asarray(decide(states).action)


def make_decide(agent: Agent) -> Callable[[State], Decision]:
    """Builds `states [N, ...] -> Decision` on the host, which divides batches among all devices.

    Under `jax.jit` without `jax.shard_map` the devices would exchange their trees in every
    simulation.
    """
    mesh = make_mesh()
    replicated, divided = PartitionSpec(), PartitionSpec(AXIS)
    specs = {"in_specs": (replicated, replicated, divided), "out_specs": divided}
    act = jax.jit(jax.shard_map(agent.act, mesh=mesh, check_vma=False, **specs))
    params = jax.device_put(agent.params, NamedSharding(mesh, replicated))
    key = jax.random.key(0)  # Not used: the agent is deterministic.

    def decide(states):
        return act(params, key, jax.device_put(states, NamedSharding(mesh, divided)))

    size = _batch_size(agent.nodes) * mesh.size
    return lambda states: in_batches(decide, (states,), size)


def _batch_size(nodes: int) -> int:
    return min(max(_NODES // nodes, _FEWEST), _POSITIONS)
