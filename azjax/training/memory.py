"""How much memory a training needs on each device.

What lasts, network, optimiser, buffer and trees, is known from shapes before anything is compiled.
What the computation needs beside that, XLA says of the compiled program.
"""

import functools
import math
import os
import pathlib
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh

from azjax.games.base import Game, init_batch
from azjax.search import Algorithm, make_resumable
from azjax.search.evaluators import uniform_evaluator
from azjax.training.parts import Parts
from azjax.training.selfplay import group_size
from azjax.training.sharding import abstract_state

_LESS = {  # What makes each part smaller.
    "network": "a smaller network",
    "optimizer": "a smaller network",
    "buffer": "a smaller replay.capacity or selfplay.archive, or fewer selfplay.games",
    "tree": "fewer search.num_simulations, or fewer selfplay.games_at_once",
    "work": "fewer selfplay.games, selfplay.games_at_once, selfplay.unroll_length, "
    "selfplay.opening_plies, learner.steps, a smaller learner.batch_size or network",
}


class Footprint(NamedTuple):
    """Bytes on each device.

    Attributes:
      network: parameters and statistics, and their average.
      optimizer: its state.
      buffer: replayed positions, the games in flight, and the archive.
      tree: the search trees of the games that are played together.
      work: everything else: activations, gradients, copies.
      limit: what the device has.
    """

    network: int
    optimizer: int
    buffer: int
    tree: int
    work: int
    limit: int

    @property
    def total(self) -> int:
        """What is needed at the worst moment."""
        return sum(self[:-1])


def footprint(parts: Parts, mesh: Mesh, *programs: Any) -> Footprint:
    """Adds up what a training needs on each device of a mesh.

    What the largest of its compiled `programs` needs beside what lasts is `work`, 0 without any.
    """
    state = abstract_state(parts, mesh)
    learner = state.learner
    network = _bytes_of((learner.variables, learner.ema_params))
    optimizer = _bytes_of((learner.opt_state, learner.step))
    buffer = _bytes_of((state.replay, state.games)) // mesh.size + _bytes_of(state.archive)
    together = group_size(parts.selfplay, parts.selfplay.games // mesh.size)
    tree = together * tree_bytes(parts.search, parts.game)
    lasting = Footprint(network, optimizer, buffer, tree, 0, device_memory(mesh))
    work = 0
    for said in (program.memory_analysis() for program in programs):
        held = said.argument_size_in_bytes + said.output_size_in_bytes - said.alias_size_in_bytes
        work = max(work, held + said.temp_size_in_bytes - lasting.total)
    return lasting._replace(work=work)


def check_fits(needs: Footprint) -> None:
    """Refuses a training that its devices cannot hold.

    Raises:
      ValueError: naming what needs most, and what would make it less.
    """
    if needs.total <= needs.limit:
        return
    largest = max(_LESS, key=lambda part: getattr(needs, part))
    raise ValueError(
        f"the run needs {describe_bytes(needs.total)} on each device, and it has "
        f"{describe_bytes(needs.limit)}: {largest} takes most of it, so use {_LESS[largest]}"
    )


def check_trees(search: Algorithm, game: Game, positions: int) -> None:
    """Refuses a search of so many positions at once whose trees one device cannot hold.

    Raises:
      ValueError: naming the largest number of simulations that fits.
    """
    needed, limit = positions * tree_bytes(search, game), device_memory()
    if needed > limit:
        most = max(1, search.num_simulations * limit // needed - 2)  # Two for the root and notes.
        raise ValueError(
            f"trees of {search.num_simulations} simulations, {positions} at a time, need "
            f"{describe_bytes(needed)}, and the device has {describe_bytes(limit)}: use at most "
            f"{most} simulations"
        )


@functools.lru_cache(maxsize=64)
def tree_bytes(search: Algorithm, game: Game) -> int:
    """Bytes of the search tree of one game: statistics, states, and what the algorithm notes."""

    def start():
        grow = make_resumable(search, game, uniform_evaluator(game))
        budget = jax.numpy.int32(search.num_simulations)
        return grow.start(None, jax.random.key(0), init_batch(game, 1), budget)

    return _bytes_of(jax.eval_shape(start))


def device_memory(mesh: Mesh | None = None) -> int:
    """Bytes that each device of a mesh has, or one alone; CPU devices share the machine's."""
    devices = jax.local_devices()[:1] if mesh is None else mesh.local_devices
    statistics = devices[0].memory_stats() or {}
    if "bytes_limit" in statistics:
        return statistics["bytes_limit"]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    container = pathlib.Path("/sys/fs/cgroup/memory.max")
    limit = container.read_text().strip() if container.exists() else "max"
    return (memory if limit == "max" else min(memory, int(limit))) // len(devices)


def describe_bytes(count: float) -> str:
    """Such as `1.5 GB`."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.1f} GB"


def describe(needs: Footprint, num_devices: int) -> str:
    """One line for people."""
    where = f"each of {num_devices} devices" if num_devices > 1 else "the device"
    parts = ", ".join(f"{name} {describe_bytes(getattr(needs, name))}" for name in _LESS)
    total, limit = describe_bytes(needs.total), describe_bytes(needs.limit)
    return f"memory on {where}: {total} of {limit} ({parts})"


def _bytes_of(tree: Any) -> int:
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
