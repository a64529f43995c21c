"""How fast a player is followed against every reply, and how much of that its network takes."""

import itertools
import pathlib
import statistics
import tempfile
import time

import jax

from azjax.proof import exhaustive
from azjax.proof.deciding import make_act, make_agent
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.runs.player import Player
from experiments.benchmark.measuring import show

_PLAYERS = {0: 2_000_000, 32: 20_000}  # Simulations, and positions to decide.


def time_lines(repeats: int) -> list[dict]:
    """Follows the preset `connect_four`, as it is before it learns, moving first."""
    parts = make_parts(presets.get("connect_four"))
    init = jax.jit(lambda key: parts.network.fold(parts.network.init(key)))
    player = Player(parts, init(jax.random.key(0)))
    rows = []
    for simulations, count in _PLAYERS.items():
        act = make_act(make_agent(player, simulations))
        _follow(player, act, 1)  # Compiles.
        found = [_follow(player, act, count) for _ in range(repeats)]
        decided, seconds, asking = (statistics.median(x) for x in zip(*found, strict=True))
        rows.append(
            {
                "player": f"network + {simulations} simulations" if simulations else "network",
                "positions decided": int(decided),
                "positions/s": decided / seconds,
                "% of it in the player": 100 * asking / seconds,
            }
        )
    return show(f"every reply to a player of Connect Four; medians of {repeats}", rows)


def _follow(player: Player, act: exhaustive.Act, count: int) -> tuple[int, float, float]:
    """Decides at least so many positions; returns how many, the seconds, and those of `act`."""
    asking = 0.0

    def timed(states):
        nonlocal asking
        before = time.perf_counter()
        actions = act(states)
        asking += time.perf_counter() - before
        return actions

    with tempfile.TemporaryDirectory() as folder:
        before = time.perf_counter()
        steps = exhaustive.explore(player.game, timed, 0, pathlib.Path(folder) / "lines")
        found = next(itertools.dropwhile(lambda found: found.ends.decisions < count, steps))
        return found.ends.decisions, time.perf_counter() - before, asking
