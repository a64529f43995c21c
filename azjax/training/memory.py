"""The memory that training and searches need on each device, compared with what it has."""

import functools
import math
import os
import pathlib
from typing import Any

import jax
from jax.sharding import Mesh

from azjax.games.base import Game, init_batch
from azjax.search import Algorithm, make_search, uniform_evaluator
from azjax.training.mesh import abstract_state
from azjax.training.parts import Parts


def check_fits(parts: Parts, mesh: Mesh, program: Any = None) -> str:
    """Returns a line on the memory of each device; raises a ValueError if training needs more.

    The line is that of the compiled `program`; without it, only the training state counts.
    """
    if program is None:
        needed = sum(
            math.prod(leaf.sharding.shard_shape(leaf.shape)) * leaf.dtype.itemsize
            for leaf in jax.tree.leaves(abstract_state(parts, mesh))
        )
    else:
        used = program.memory_analysis()
        held = used.argument_size_in_bytes + used.output_size_in_bytes - used.alias_size_in_bytes
        needed = held + used.temp_size_in_bytes
    limit = device_memory(mesh)
    if needed > limit:
        raise ValueError(
            f"the run needs {needed / 1e9:.2f} GB on each device, which has {limit / 1e9:.2f} GB: "
            "use fewer search.num_simulations, selfplay.games or selfplay.games_at_once, or a "
            "smaller selfplay.unroll_length, replay.capacity, learner.batch_size or network"
        )
    where = f"each of {mesh.size} devices" if mesh.size > 1 else "the device"
    return f"memory on {where}: {needed / 1e9:.2f} of {limit / 1e9:.2f} GB"


def check_trees(search: Algorithm, game: Game, positions: int) -> None:
    """Raises a ValueError if the trees of a batched search exceed the memory of one device."""
    needed, limit = positions * tree_bytes(search, game), device_memory()
    if needed > limit:
        most = max(1, search.num_simulations * limit // needed - 2)  # 2: the root and rounding.
        raise ValueError(
            f"trees of {search.num_simulations} simulations, {positions} at a time, need "
            f"{needed / 1e9:.2f} GB, and the device has {limit / 1e9:.2f} GB: use at most "
            f"{most} simulations"
        )


@functools.lru_cache(maxsize=64)  # Tracing takes longer than a search of one position.
def tree_bytes(search: Algorithm, game: Game) -> int:
    """Returns the bytes of one search tree, with its states and the arrays of the algorithm."""

    def one_tree():
        find = make_search(search, game, uniform_evaluator(game))
        return find(None, jax.random.key(0), init_batch(game, 1)).tree

    leaves = jax.tree.leaves(jax.eval_shape(one_tree))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in leaves)


def device_memory(mesh: Mesh | None = None) -> int:
    """Returns the bytes of memory per device; CPU devices share the memory of the machine."""
    devices = jax.local_devices()[:1] if mesh is None else mesh.local_devices
    statistics = devices[0].memory_stats() or {}
    if "bytes_limit" in statistics:
        return statistics["bytes_limit"]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    container = pathlib.Path("/sys/fs/cgroup/memory.max")
    limit = container.read_text().strip() if container.exists() else "max"
    return (memory if limit == "max" else min(memory, int(limit))) // len(devices)
