"""How long it takes to know the truth about every position of a game."""

import time

import jax
from rich.progress import track

from azjax import games
from azjax.cli import console
from azjax.games import solver
from experiments.benchmark.measuring import show
from experiments.benchmark.options import Options

_RESULTS = {1: "win", 0: "draw", -1: "loss"}


def time_solve(options: Options) -> list[dict]:
    """Solves games, each once; compiling counts."""
    rows = []
    for name in track(options.solve_games, "games", transient=True):
        start = time.perf_counter()
        console.announce_solving(game := games.make(name))
        solution = solver.solve(game)
        seconds = time.perf_counter() - start
        row = {"game": name, "for the first player": _RESULTS[int(solution.values[0])]}
        row |= {"positions": solution.num_states, "s": seconds}
        row["MB"] = sum(leaf.nbytes for leaf in jax.tree.leaves(solution)) / 1e6
        rows.append(row)
    return show("games solved", rows)
