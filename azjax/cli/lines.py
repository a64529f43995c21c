"""The proof without an oracle: a run's player against every reply, as `verify --lines` shows it."""

import hashlib
import json
import pathlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from azjax.cli import console
from azjax.games.base import State
from azjax.games.rows import in_batches
from azjax.players import Agent, Decision, network_agent, search_agent
from azjax.proof import exhaustive
from azjax.proof.lines import Line, replay
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
from azjax.runs.player import Player, changed
from azjax.training import memory
from azjax.training.sharding import AXIS, make_mesh

SEATS = {"first": 0, "second": 1}
_FEWEST, _POSITIONS = 2**6, 2**12  # Positions that a device is asked about at once,
_NODES = 2**16  # and nodes of their trees, which had better stay in a CPU's cache.
_SHORTEST, _LONGEST = 2**8, 2**15  # Simulations of a search that mends,
_GENERATIONS = 100  # and how often it mends what comes of its moves, before all games are followed.


def make_agent(player: Player, simulations: int) -> Agent:
    """The network alone, or with so many simulations of the search that it was trained with.

    Raises:
      ValueError: if the trees do not fit in memory, or the search draws lots.
    """
    parts = player.parts
    if not simulations:
        return network_agent(player.game, parts.evaluate, player.params)
    search = changed(parts.search, num_simulations=simulations)
    if not search.is_deterministic:
        raise ValueError(
            f"{search.algorithm} draws lots, so nothing can be proved of it: use --simulations "
            "0, for the network alone"
        )
    memory.check_trees(search, player.game, _at_once(simulations + 1))
    return search_agent(player.game, search, parts.evaluate, player.params)


def make_decide(agent: Agent) -> Callable[[State], Decision]:
    """Builds `states [N, ...] -> Decision` on the host, batch by batch, divided among all devices.

    Each device searches its part alone: under `jax.jit` without `jax.shard_map` they would exchange
    their trees in every simulation.
    """
    mesh = make_mesh()
    everywhere, divided = PartitionSpec(), PartitionSpec(AXIS)
    specs = {"in_specs": (everywhere, everywhere, divided), "out_specs": divided}
    answer = jax.jit(jax.shard_map(agent.act, mesh=mesh, check_vma=False, **specs))
    params = jax.device_put(agent.params, NamedSharding(mesh, everywhere))
    key = jax.random.key(0)  # Nobody draws anything.

    def ask(states):
        return answer(params, key, jax.device_put(states, NamedSharding(mesh, divided)))

    size = _at_once(agent.nodes) * mesh.size
    return lambda states: in_batches(ask, (states,), size)


def make_act(agent: Agent) -> exhaustive.Act:
    """Builds `states [N, ...] -> actions [N]` in the same way."""
    decide = make_decide(agent)
    return lambda states: np.asarray(decide(states).action)


def _at_once(nodes: int) -> int:
    """How many positions a device is asked about at once, with so many nodes in each tree."""
    return min(max(_NODES // nodes, _FEWEST), _POSITIONS)


class _Walk(NamedTuple):
    """What a walk found.

    Attributes:
      found: in the end.
      folder: where it stands.
      symmetric: whether images of each other were followed once.
      asked: positions that were decided now, and not by an earlier call.
      seconds: that this took.
    """

    found: exhaustive.Exploration
    folder: pathlib.Path
    symmetric: bool
    asked: int
    seconds: float

    @property
    def is_proof(self) -> bool:
        """Whether every game was followed, and none is lost."""
        return not (self.found.sampled or self.found.breaks_symmetry or self.found.ends.moves[2])


def prove(
    run_dir: pathlib.Path,
    player: Player,
    seat: str,
    simulations: int,
    most: int | None = None,
    rounds: int = 0,
    as_json: bool = False,
) -> int:
    """Follows a run's player through all games and prints what became of them.

    What it finds stands in the run's directory, from where an interrupted call goes on.

    Args:
      run_dir: the run's directory.
      player: whose network plays.
      seat: of `SEATS`.
      simulations: of its search; 0: its network alone.
      most: positions of a ply that are followed, see `exhaustive.explore`.
      rounds: how often lost games are mended at most, see `mending`.
      as_json: whether to print JSON.

    Returns:
      0 if no game is lost and none was left out, otherwise 1.

    Raises:
      CheckpointError: if another program follows the same player.
      ValueError: if its book cannot be read.
    """
    path = table_path(run_dir, player.iteration, SEATS[seat], simulations)
    path.parent.mkdir(exist_ok=True)
    name = f"{_name(player, seat, simulations)}.lock"
    with lock.hold(path.parent, name, "follows this player's games"):
        book = empty_table(player.game)
        if rounds and path.exists():
            book = load_table(path, player.game)
        while True:
            is_last = book.rounds >= rounds
            walk = _walk(run_dir, player, seat, simulations, most, book, is_last)
            if is_last or not (walk.found.ends.moves[2] or walk.found.breaks_symmetry):
                break
            better, starts = _improve(path, player, seat, simulations, book, walk)
            better = better._replace(rounds=book.rounds + 1)
            save_table(path, better)
            if not as_json:
                print(
                    f"round {better.rounds}: {walk.found.ends.moves[2]:,} ends lost; "
                    f"{len(better.actions):,} moves in the book now, images counted",
                    flush=True,
                )
            if not starts:
                break  # Every move is refuted, from the first on: the games followed stay lost.
            book = better
    if as_json:
        print(json.dumps(_content(player, seat, simulations, book, walk), indent=2))
    else:
        _show(player, seat, simulations, book, walk)
    return 0 if walk.is_proof else 1


def _name(player: Player, seat: str, simulations: int) -> str:
    """How files of a player in a seat begin, as its book's do, see `table_path`."""
    return f"{player.iteration}-{seat}-{simulations}"


def _digest(player: Player, book: OverrideTable) -> str:
    """Tells players of one name apart, by all numbers of the network, the search and the book."""
    network = player.parts.network
    settings = player.game.name, network.encoding, network.symmetric, player.parts.search
    digest = hashlib.sha256(repr(settings).encode())
    for leaf in jax.tree.leaves((player.params, book.states, book.actions)):
        array = np.asarray(leaf)
        digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()[:16]


def _improve(
    path: pathlib.Path,
    player: Player,
    seat: str,
    simulations: int,
    book: OverrideTable,
    walk: _Walk,
) -> Repaired:
    """Mends what a walk lost, and what is lost in games that go on from there.

    Where it lost nothing, moves that are not made in all images of a position are, from now on. The
    book is saved each time, so that no search is lost if this is interrupted.
    """
    game, base = player.game, make_agent(player, simulations)
    lost = list(exhaustive.lost_games(walk.folder))
    if not lost:
        return make_symmetric(game, book, list(exhaustive.symmetry_violations(walk.folder)))
    number = min(max(16 * simulations, _SHORTEST) * 2**book.rounds, _LONGEST)
    analyze = make_analyze(game, make_decide(make_agent(player, number)), book)
    starts: list[Line] = []
    for _ in range(_GENERATIONS):
        book, starts = repair(game, book, lost, SEATS[seat], analyze, walk.symmetric)
        save_table(path, book)
        if not starts:
            break
        act = make_act(override_agent(game, base, book))
        with tempfile.TemporaryDirectory() as temporary:
            walked = pathlib.Path(temporary, "lines")
            _watch(
                exhaustive.explore(
                    game, act, SEATS[seat], walked, symmetric=walk.symmetric, starts=starts
                )
            )
            lost = list(exhaustive.lost_games(walked))
        if not lost:
            break
    return Repaired(book, starts)


def _walk(
    run_dir: pathlib.Path,
    player: Player,
    seat: str,
    simulations: int,
    most: int | None,
    book: OverrideTable,
    is_last: bool,
) -> _Walk:
    """Follows the player with a book through all games.

    One of the positions that are images of each other stands for all, if its network respects the
    symmetries. That is no proof, as the last bit of a sum may break a tie in an image otherwise:
    where no game is lost so, the player is asked about all images. What it does otherwise in some,
    its book can mend; if this is the last walk, each is followed by itself instead.
    """
    agent = make_agent(player, simulations)
    name = _name(player, seat, simulations) + (f"-{most}" if most else "")
    digest = _digest(player, book)
    own = f"{name}-{digest}"
    if len(book.actions):
        agent = override_agent(player.game, agent, book)
        own = f"{name}-book-{digest}"
        for folder in (run_dir / "lines").glob(f"{name}-book-*"):
            if not folder.name.startswith(own):
                shutil.rmtree(folder)  # Its book is gone.
    decide, started, asked = make_act(agent), time.time(), 0
    symmetric = player.parts.network.symmetric

    def act(states):
        nonlocal asked
        asked += len(jax.tree.leaves(states)[0])
        return decide(states)

    def walk(kind, **settings):
        folder = run_dir / "lines" / f"{own}{kind}"
        return folder, _watch(exhaustive.explore(player.game, act, SEATS[seat], folder, **settings))

    folder, found = walk("", most=most, symmetric=symmetric)
    if symmetric and not found.ends.moves[2] and not found.sampled:
        folder, found = walk("-compared", symmetric=True, compare=True)
        if found.breaks_symmetry and is_last:
            (folder, found), symmetric = walk("-images"), False
    return _Walk(found, folder, symmetric, asked, time.time() - started)


def _watch(steps: Iterator[exhaustive.Exploration]) -> exhaustive.Exploration:
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


def _content(
    player: Player, seat: str, simulations: int, book: OverrideTable, walk: _Walk
) -> dict[str, Any]:
    found, ends = walk.found, walk.found.ends
    games = found.ends.games[0] + found.ends.games[1:].mean(axis=0)
    return {
        "game": player.game.name,
        "iteration": player.iteration,
        "seat": seat,
        "simulations": simulations,
        "moves_by_book": len(book.actions),
        "unbeatable": walk.is_proof,
        "sampled": found.sampled,
        "up_to_symmetry": walk.symmetric,
        "decisions": ends.decisions,
        "ends": dict(zip(("won", "drawn", "lost"), ends.moves.tolist(), strict=True)),
        "games": dict(zip(("won", "drawn", "lost"), games.tolist(), strict=True)),
        "share_of_games_lost": ends.share(2),
        "first_lost_game": found.lost,
    }


def _show(player: Player, seat: str, simulations: int, book: OverrideTable, walk: _Walk) -> None:
    found, ends = walk.found, walk.found.ends
    thinking = f"{player.parts.search.algorithm}({simulations})" if simulations else "alone"
    if len(book.actions):
        thinking += f", {len(book.actions):,} moves by book"
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
    images = ", images of each other counted once" if walk.symmetric else ""
    print(f"{ends.decisions:,} positions decided{images}, {found.ply + 1} plies")
    if found.lost is not None:
        moves = " ".join(map(str, found.lost))
        last = jax.tree.map(lambda leaf: leaf[0], replay(player.game, [found.lost]))
        print(f"\nthe first lost game, {moves}:\n{player.game.display.render(last)}\n")
    elif not walk.is_proof:
        print("NOT PROVED: no game was lost among those followed, and others were left out")
    else:
        print(f"UNBEATABLE moving {seat}: no game is lost, whatever the opponent plays")
    if walk.asked:
        speed = walk.asked / max(walk.seconds, 1e-9)
        print(f"{walk.asked:,} of the positions were decided now, {speed:,.0f} a second")
