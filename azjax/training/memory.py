"""Estimate of the memory that training needs on each device.

The network, the optimizer state and the buffer follow from shapes, before anything is compiled. The
memory of the computation comes from XLA's analysis of the compiled program.
"""

import functools
import math
import os
import pathlib
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh

from azjax.games.base import Game, init_batch
from azjax.search import Algorithm, make_search, simulate, uniform_evaluator
from azjax.search.make import default_grow
from azjax.training.mesh import abstract_state
from azjax.training.parts import Parts

_LESS = {  # How to reduce each part.
    "network": "a smaller network",
    "optimizer": "a smaller network",
    "buffer": "a smaller replay.capacity or selfplay.archive, or fewer selfplay.games",
    "work": "fewer search.num_simulations, selfplay.games, selfplay.games_at_once, "
    "selfplay.unroll_length, selfplay.opening_plies, learner.steps, a smaller learner.batch_size "
    "or network",
}


class Estimate(NamedTuple):
    """Estimated bytes on each device."""

    network: int  # Variables and their running average.
    optimizer: int  # The optimizer state.
    buffer: int  # The replay buffer, the games in flight and the archive.
    work: int  # Everything else, such as search trees, activations, gradients and copies.
    limit: int  # The memory of the device.

    @property
    def total(self) -> int:
        """The peak memory."""
        return sum(self[:-1])


def estimate(parts: Parts, mesh: Mesh, program: Any = None) -> Estimate:
    """Estimates the memory that training needs on each device of a mesh.

    `work` is the additional memory of the compiled `program`; 0 without it.
    """
    state = abstract_state(parts, mesh)
    learner = state.learner
    network = _bytes_of((learner.variables, learner.average))
    optimizer = _bytes_of((learner.opt_state, learner.step))
    buffer = _bytes_of((state.replay, state.games)) // mesh.size + _bytes_of(state.archive)
    lasting = Estimate(network, optimizer, buffer, 0, device_memory(mesh))
    if program is None:
        return lasting
    used = program.memory_analysis()
    held = used.argument_size_in_bytes + used.output_size_in_bytes - used.alias_size_in_bytes
    return lasting._replace(work=max(0, held + used.temp_size_in_bytes - lasting.total))


def check_fits(needs: Estimate) -> None:
    """Raises a ValueError if training exceeds a device; names the largest part and the advice."""
    if needs.total <= needs.limit:
        return
    largest = max(_LESS, key=lambda part: getattr(needs, part))
    raise ValueError(
        f"the run needs {describe_bytes(needs.total)} on each device, which has "
        f"{describe_bytes(needs.limit)}: {largest} takes most of it, so use {_LESS[largest]}"
    )


def check_trees(search: Algorithm, game: Game, positions: int) -> None:
    """Raises a ValueError if the trees of a batched search exceed the memory of one device."""
    needed, limit = positions * tree_bytes(search, game), device_memory()
    if needed > limit:
        most = max(1, search.num_simulations * limit // needed - 2)  # 2: the root and rounding.
        raise ValueError(
            f"trees of {search.num_simulations} simulations, {positions} at a time, need "
            f"{describe_bytes(needed)}, and the device has {describe_bytes(limit)}: use at most "
            f"{most} simulations"
        )


@functools.lru_cache(maxsize=64)  # Tracing takes longer than a search of one position.
def tree_bytes(search: Algorithm, game: Game) -> int:
    """Returns the bytes of one search tree, with its states and the arrays of the algorithm."""

    def one_tree():
        find = make_search(search, game, uniform_evaluator(game))
        return find(None, jax.random.key(0), init_batch(game, 1)).tree

    nodes = search.num_simulations + 1
    is_loop = default_grow(jax.default_backend()) is simulate.grow
    paths = 0 if is_loop else 4 * nodes * (3 + min(nodes, game.max_plies + 1))  # Of `paths.Paths`.
    return _bytes_of(jax.eval_shape(one_tree)) + paths


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


def describe_bytes(count: float) -> str:
    """Formats a number of bytes, for example as `1.5 GB`."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.1f} GB"


def describe(needs: Estimate, num_devices: int) -> str:
    """Formats an estimate as two lines, short enough for a terminal."""
    where = f"each of {num_devices} devices" if num_devices > 1 else "the device"
    parts = ", ".join(f"{name} {describe_bytes(getattr(needs, name))}" for name in _LESS)
    total, limit = describe_bytes(needs.total), describe_bytes(needs.limit)
    return f"memory on {where}: {total} of {limit}\n{parts}"


def _bytes_of(tree: Any) -> int:
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
