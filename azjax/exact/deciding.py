"""Players that choose moves in many positions, called on the host and run on all devices."""

from collections.abc import Callable

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from azjax.exact.exhaustive import Act
from azjax.games.base import State
from azjax.games.rows import in_batches
from azjax.players import Agent, Decision, network_agent, search_agent
from azjax.runs.player import Player, changed
from azjax.training import memory
from azjax.training.sharding import AXIS, make_mesh

_FEWEST, _POSITIONS = 2**6, 2**12  # Positions in one batch of a device.
_NODES = 2**16  # Tree nodes in one batch; they should fit in a CPU's cache.


def make_agent(player: Player, simulations: int) -> Agent:
    """Returns the player with its overrides: with search, or without one for 0 simulations."""
    parts = player.parts
    if not simulations:
        return player.override(network_agent(player.game, parts.evaluate, player.params))
    search = changed(parts.search, num_simulations=simulations)
    if not search.is_deterministic:
        raise ValueError(
            f"{search.algorithm} is a random search, so nothing can be proved about it: use "
            "`simulations=0`, for the network alone"
        )
    memory.check_trees(search, player.game, _batch_size(simulations + 1))
    return player.override(search_agent(player.game, search, parts.evaluate, player.params))


def make_decide(agent: Agent) -> Callable[[State], Decision]:
    """Builds `states [N, ...] -> Decision`, which divides batches among all devices.

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


def make_act(agent: Agent) -> Act:
    """Builds `states [N, ...] -> actions [N]` with `make_decide`."""
    decide = make_decide(agent)
    return lambda states: np.asarray(decide(states).action)


def _batch_size(nodes: int) -> int:
    return min(max(_NODES // nodes, _FEWEST), _POSITIONS)
