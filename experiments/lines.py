"""The proof without an oracle: a run's player against every reply, as `verify --lines` shows it."""

import json
import pathlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

from azjax import certificate as certificates
from azjax import footprint, lines
from azjax.player import Player, changed
from azjax.rows import in_batches
from azjax.train import AXIS, make_mesh
from azjax.verify import choose
from experiments import console

SEATS = {"first": 0, "second": 1}
_POSITIONS = 2**13  # Asked about at once, by the network alone.
_NODES = 2**18  # Of all trees searched at once.


def make_act(player: Player, simulations: int) -> lines.Act:
    """Builds `states [N, ...] -> actions [N]`, batch by batch on all devices.

    Args:
      player: whose network plays.
      simulations: of the search that it was trained with, without noise; 0: its network alone.

    Raises:
      ValueError: if the trees do not fit in memory, or the search draws lots.
    """
    mesh = make_mesh()
    batch = max(_NODES // simulations, 1) if simulations else _POSITIONS
    batch = -(-batch // mesh.size) * mesh.size
    answer = jax.jit(_choose_with(player, simulations, batch // mesh.size))
    spread = NamedSharding(mesh, PartitionSpec(AXIS))
    params = jax.device_put(player.params, NamedSharding(mesh, PartitionSpec()))

    def ask(states):
        return answer(params, jax.device_put(states, spread))

    return lambda states: in_batches(ask, (states,), batch)


def _choose_with(player: Player, simulations: int, batch: int) -> Callable:
    """`(params, states) -> actions`, of the network alone or of a search, so many at a time."""
    parts, search = player.parts, None
    if simulations:
        search = changed(parts.search, num_simulations=simulations)
        if not search.is_deterministic:
            raise ValueError(
                f"{search.algorithm} draws lots, so nothing can be proved of it: use --simulations "
                "0, for the network alone"
            )
        footprint.check_trees(search, player.game, batch)

    def answer(params, states):
        if search is None:
            policy = certificates.network_policy(parts, params)
        else:
            policy = certificates.search_policy(parts, search, params)
        scores, _ = policy(states)
        return choose(scores, jax.vmap(player.game.legal_actions)(states))

    return answer


def prove(
    run_dir: pathlib.Path,
    player: Player,
    seat: str,
    simulations: int,
    most: int | None = None,
    as_json: bool = False,
) -> int:
    """Follows a run's player through all games and prints what became of them.

    What it finds stands in the run's directory, from where an interrupted call goes on.

    Returns:
      0 if no game is lost and none was left out, otherwise 1.
    """
    name = f"{player.iteration}-{seat}-{simulations}" + (f"-{most}" if most else "")
    folder = run_dir / "lines" / name
    choose_all, started, asked = make_act(player, simulations), time.time(), 0

    def act(states):
        nonlocal asked
        actions = choose_all(states)
        asked += len(actions)
        return actions

    symmetric = player.parts.network.symmetric
    found = _watch(lines.follow(player.game, act, SEATS[seat], folder, most, symmetric=symmetric))
    if as_json:
        print(json.dumps(_content(player, seat, simulations, found), indent=2))
    else:
        _show(player, seat, simulations, found)
        if asked:
            speed = asked / max(time.time() - started, 1e-9)
            print(f"{asked:,} of the positions were decided now, {speed:,.0f} a second")
    return 1 if found.sampled or found.ends.moves[2] else 0


def _watch(steps: Iterator[lines.Found]) -> lines.Found:
    """Shows how far each ply is, and the rest of its time; returns what was found in the end."""
    with console.progress() as progress:
        bars: dict[int, Any] = {}
        found = None
        for found in steps:
            if found.ply not in bars:
                bars[found.ply] = progress.add_task("")
            lost = f"{found.ends.moves[2]:,} ends lost"
            what = f"ply {found.ply:2}: {found.of:,} positions; {lost}"
            progress.update(
                bars[found.ply], completed=found.positions, total=found.of, description=what
            )
    assert found is not None  # The start alone is a position.
    return found


def _content(player: Player, seat: str, simulations: int, found: lines.Found) -> dict[str, Any]:
    ends, games = found.ends, found.ends.games[0] + found.ends.games[1:].mean(axis=0)
    return {
        "game": player.game.name,
        "iteration": player.iteration,
        "seat": seat,
        "simulations": simulations,
        "sampled": found.sampled,
        "up_to_symmetry": player.parts.network.symmetric,
        "decisions": ends.decisions,
        "ends": dict(zip(("won", "drawn", "lost"), ends.moves.tolist(), strict=True)),
        "games": dict(zip(("won", "drawn", "lost"), games.tolist(), strict=True)),
        "share_of_games_lost": ends.share(2),
        "first_lost_game": found.lost,
    }


def _show(player: Player, seat: str, simulations: int, found: lines.Found) -> None:
    ends = found.ends
    searching = f"{player.parts.search.algorithm}({simulations})" if simulations else "alone"
    print(f"{player.game.name}, network #{player.iteration} {searching}, moving {seat}")
    rows = []
    for column, outcome in enumerate(("won", "drawn", "lost")):
        share, low, high = ends.share(column)
        percent = f"{100 * share:.4g}"
        if found.sampled:
            percent += f" [{100 * low:.3g}, {100 * high:.3g}]"
        of_ends = 100 * ends.moves[column] / max(ends.moves.sum(), 1)
        rows.append((outcome, f"{ends.moves[column]:,}", f"{of_ends:.4g}", percent))
    console.print_table(("", "ends", "% of ends", "% of games"), rows)
    images = ", images of each other counted once" if player.parts.network.symmetric else ""
    print(f"{ends.decisions:,} positions decided{images}, {found.ply + 1} plies")
    if found.lost is not None:
        moves = " ".join(map(str, found.lost))
        print(
            f"\nthe first lost game, {moves}:\n{player.game.render(_replay(player, found.lost))}\n"
        )
    elif found.sampled:
        print("NOT PROVED: no game was lost among those followed, and others were left out")
    else:
        print(f"UNBEATABLE moving {seat}: no game is lost, whatever the opponent plays")


def _replay(player: Player, actions: Iterable[int]) -> Any:
    state = player.game.init()
    for action in actions:
        state, _ = player.game.step(state, jnp.int32(action))
    return state
