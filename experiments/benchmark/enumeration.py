"""Times of solving games exactly, and of exhaustive play against every reply."""

import itertools
import pathlib
import statistics
import tempfile
import time

import jax

from azjax import games
from azjax.cli import console
from azjax.exact import exhaustive
from azjax.exact.deciding import make_act, make_agent
from azjax.games import solver
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.runs.player import Player
from experiments.benchmark.measuring import new_player, show
from experiments.benchmark.options import Options

_RESULTS = {1: "win", 0: "draw", -1: "loss"}
_PLAYERS = {0: 2_000_000, 32: 20_000}  # Numbers of simulations, and of positions to decide.


def time_solve(options: Options) -> list[dict]:
    """Solves each game once; times include compilation."""
    rows = []
    for name in console.track(options.solve_games, "games"):
        start = time.perf_counter()
        console.announce_solving(game := games.make(name))
        solution = solver.solve(game)
        seconds = time.perf_counter() - start
        row = {"game": name, "for the first player": _RESULTS[int(solution.values[0])]}
        row |= {"positions": solution.num_states, "s": seconds}
        row["MB"] = sum(leaf.nbytes for leaf in jax.tree.leaves(solution)) / 1e6
        rows.append(row)
    return show("games solved", rows)


def time_lines(options: Options) -> list[dict]:
    """Times exhaustive play of an untrained `connect_four` network, up to a number of positions."""
    player = new_player(make_parts(presets.get("connect_four")))
    rows = []
    for simulations, count in _PLAYERS.items():
        act = make_act(make_agent(player, simulations))
        _explore(player, act, 1)  # Compiles.
        runs = [_explore(player, act, count) for _ in range(options.repeats)]
        decided, seconds, acting = (statistics.median(x) for x in zip(*runs, strict=True))
        rows.append(
            {
                "player": f"network + {simulations} simulations" if simulations else "network",
                "positions decided": int(decided),
                "positions/s": decided / seconds,
                "% of time in the player": 100 * acting / seconds,
            }
        )
    title = f"every reply to a player of Connect Four; medians of {options.repeats}"
    return show(title, rows)


def _explore(player: Player, act: exhaustive.Act, count: int) -> tuple[int, float, float]:
    """Decides `count` positions or more; returns their number, all seconds, and those in `act`."""
    acting = 0.0

    def timed(states):
        nonlocal acting
        start = time.perf_counter()
        actions = act(states)
        acting += time.perf_counter() - start
        return actions

    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        steps = exhaustive.explore(player.game, timed, 0, pathlib.Path(folder) / "lines")
        step = next(itertools.dropwhile(lambda step: step.ends.decisions < count, steps))
        return step.ends.decisions, time.perf_counter() - start, acting
