"""Players that decide many positions at once on the host, spread over all devices."""

from collections.abc import Callable

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from azjax.games.base import State
from azjax.games.rows import in_batches
from azjax.players import Agent, Decision, network_agent, search_agent
from azjax.proof.exhaustive import Act
from azjax.runs.player import Player, changed
from azjax.training import memory
from azjax.training.sharding import AXIS, make_mesh

_FEWEST, _POSITIONS = 2**6, 2**12  # Positions that a device decides at once,
_NODES = 2**16  # and nodes of their trees, which should stay in a CPU's cache.


def make_agent(player: Player, simulations: int) -> Agent:
    """Returns the network, alone or with simulations of the search that it was trained with.

    Raises:
      ValueError: if the trees do not fit in memory, or the search is not deterministic.
    """
    parts = player.parts
    if not simulations:
        return network_agent(player.game, parts.evaluate, player.params)
    search = changed(parts.search, num_simulations=simulations)
    if not search.is_deterministic:
        raise ValueError(
            f"{search.algorithm} draws lots, so nothing can be proved of it: use "
            "`simulations=0`, for the network alone"
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
    key = jax.random.key(0)  # Not used: the agent is deterministic.

    def decide(states):
        return answer(params, key, jax.device_put(states, NamedSharding(mesh, divided)))

    size = _at_once(agent.nodes) * mesh.size
    return lambda states: in_batches(decide, (states,), size)


def make_act(agent: Agent) -> Act:
    """Builds `states [N, ...] -> actions [N]` in the same way."""
    decide = make_decide(agent)
    return lambda states: np.asarray(decide(states).action)


def _at_once(nodes: int) -> int:
    """The number of positions that a device decides at once, by the nodes of each tree."""
    return min(max(_NODES // nodes, _FEWEST), _POSITIONS)
