"""Persistent MCTS: UCT whose statistics, keyed by position, last from game to game.

The memory is a table of arrays, `Experience`, that goes through every call. Positions reached by
different moves share one entry, so the tree is in truth a graph.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Annotated, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax._settings import NonNegative, Range, Simulations, check
from azjax.games.base import Game, State, check_batch
from azjax.games.hashing import contents, weigh
from azjax.players import Decision
from azjax.search.evaluators import rollout

_PROBES = 16  # Neighbouring slots in which a position may stand.


@dataclasses.dataclass(frozen=True)
class PersistentConfig:
    """How a player with a memory spends its simulations."""

    num_simulations: Simulations = 50
    """Simulations per move, added to all those of the past."""
    exploration: NonNegative = math.sqrt(2)
    """Weight C of the confidence bound."""
    expansion: Literal["random", "last"] = "random"
    """Which action comes first among untried ones, equal ones, and equally visited ones: a
    random one, or the one of highest number."""
    capacity: Annotated[int, Range(_PROBES, 2**30)] = 2**14
    """Positions that the memory has room for, rounded up to a power of two."""

    def __post_init__(self):
        check("persistent", self)

    @property
    def slots(self) -> int:
        """The capacity, rounded up to a power of two."""
        return 2 ** math.ceil(math.log2(self.capacity))


class Experience(NamedTuple):
    """What is known about positions: a hash table of `C` slots; for a batch, `B` in front.

    `numpy.savez(path, **memory._asdict())` keeps it for another day.

    Attributes:
      fingerprints: `uint32 [C]`, which position a slot holds; 0 if none.
      visits: `int32 [C]`, simulations that came through it.
      totals: `float32 [C]`, the sum of their outcomes, for player 0.
      children: `int32 [C, A]`, the slot after each action; -1 where untried.
    """

    fingerprints: jax.Array
    visits: jax.Array
    totals: jax.Array
    children: jax.Array


class PersistentPlayer(NamedTuple):
    """A player with a memory.

    Attributes:
      name: for tables and charts.
      init_memory: `batch_size -> Experience`, empty, every leaf `[B, ...]`.
      learn: `(key, states [B, ...], memory) -> (Decision, memory)`.
    """

    name: str
    init_memory: Callable[[int], Experience]
    learn: Callable[[jax.Array, State, Experience], tuple[Decision, Experience]]


class _Walk(NamedTuple):
    """A simulation on its way down."""

    state: State
    slot: jax.Array  # int32 []
    path: jax.Array  # int32 [max_plies + 1], the slots passed; C where there is none.
    length: jax.Array  # int32 []
    outcome: jax.Array  # float32 [], rewards so far, for player 0.


def make_persistent(game: Game, config: PersistentConfig) -> PersistentPlayer:
    """Makes a UCT player with a memory: its simulations add to those of earlier moves and games.

    At a node with untried actions one of them is tried, followed by a random game; at
    others UCB1 chooses, with the visits and the mean of the *position* that an action
    leads to, however it was reached. The most visited action is played. Where the table is full,
    new positions are not stored, and at one of them the player moves at random.
    """
    slots = config.slots

    def init_memory(batch_size: int) -> Experience:
        size = batch_size, slots
        return Experience(
            fingerprints=jnp.zeros(size, jnp.uint32),
            visits=jnp.zeros(size, jnp.int32),
            totals=jnp.zeros(size, jnp.float32),
            children=jnp.full((*size, game.num_actions), -1, jnp.int32),
        )

    def learn(key, states, memory):
        key_simulate, key_choose = jax.random.split(key)
        batch = check_batch(game, states)
        if memory.visits.shape != (batch, slots):
            raise ValueError(
                f"the memory has shape {memory.visits.shape}, and {batch} games of this player "
                f"need {(batch, slots)}: use its init_memory, or its capacity"
            )
        goes_on = ~jax.vmap(game.is_over)(states)
        roots, memory = jax.vmap(_locate)(memory, states, goes_on)

        def simulate(i, memory):
            keys = jax.random.split(jax.random.fold_in(key_simulate, i), batch)
            return jax.vmap(lambda *xs: _simulate(game, config, *xs))(keys, memory, roots, states)

        memory = jax.lax.fori_loop(0, config.num_simulations, simulate, memory)
        keys = jax.random.split(key_choose, batch)
        choose = jax.vmap(lambda *xs: _choose(game, config, *xs))
        return choose(keys, memory, roots, states), memory

    return PersistentPlayer(f"learner({config.num_simulations})", init_memory, learn)


def _locate(memory: Experience, state: State, wanted: jax.Array) -> tuple[jax.Array, Experience]:
    """Returns the slot of a position, taking a free one if it is new; -1 if there is none.

    Where it is not `wanted`, nothing is stored, and the slot is -1.
    """
    numbers, slots = contents(state), len(memory.visits)
    weights = np.random.default_rng(0).integers(2**32, size=(2, numbers.size), dtype=np.uint32)
    place, fingerprint = (weigh(numbers, some) for some in weights | 1)
    fingerprint |= jnp.uint32(1)  # 0 says that a slot is free.
    start = (place >> (33 - slots.bit_length())).astype(jnp.int32)
    probes = (start + jnp.arange(_PROBES, dtype=jnp.int32)) % slots
    found = memory.fingerprints[probes]
    usable = (found == fingerprint) | (found == 0)
    slot = jnp.where(wanted & jnp.any(usable), probes[jnp.argmax(usable)], -1)
    target = jnp.where(slot < 0, slots, slot)
    stored = memory.fingerprints.at[target].set(fingerprint, mode="drop")
    return slot, memory._replace(fingerprints=stored)


def _simulate(
    game: Game, config: PersistentConfig, key, memory: Experience, root, state
) -> Experience:
    """Makes one simulation: selection, expansion, a random game, backup."""
    key_order, key_rollout = jax.random.split(key)
    order = _order(game, config, key_order)
    nowhere, known = config.slots, root >= 0
    path = (
        jnp.full(game.max_plies + 1, nowhere, jnp.int32)
        .at[0]
        .set(jnp.where(known, root, jnp.int32(nowhere)))
    )
    start = _Walk(state, root, path, jnp.int32(1), jnp.float32(0))

    def goes_on(walk):
        return known & jnp.any(game.legal_actions(walk.state)) & ~jnp.any(_untried(walk))

    def _untried(walk):
        return game.legal_actions(walk.state) & (memory.children[walk.slot] < 0)

    def descend(walk):
        action = _ucb_action(game, config, memory, walk, order)
        slot = memory.children[walk.slot, action]
        moved, outcome = _move(game, walk.state, action, walk.outcome)
        return _Walk(moved, slot, walk.path.at[walk.length].set(slot), walk.length + 1, outcome)

    walk = jax.lax.while_loop(goes_on, descend, start)
    untried = _untried(walk)
    action = jnp.argmax(jnp.where(untried, order, -1.0))
    moved, outcome = _move(game, walk.state, action, walk.outcome)
    slot, memory = _locate(memory, moved, known & jnp.any(untried))
    expands = slot >= 0
    leaf = jnp.where(expands, slot, jnp.int32(nowhere))
    path = walk.path.at[walk.length].set(leaf)
    parent = jnp.where(expands, walk.slot, jnp.int32(nowhere))
    one = jax.tree.map(lambda leaf: leaf[None], moved)
    value = rollout(game, key_rollout[None], one)[0]
    outcome += jnp.where(game.player(moved) == 0, value, -value)
    return Experience(
        fingerprints=memory.fingerprints,
        visits=memory.visits.at[path].add(1, mode="drop"),
        totals=memory.totals.at[path].add(outcome, mode="drop"),
        children=memory.children.at[parent, action].set(slot, mode="drop"),
    )


def _move(game: Game, state: State, action, outcome):
    """Plays an action; returns the state and the rewards so far, for player 0."""
    moved, reward = game.step(state, action)
    return moved, outcome + jnp.where(game.player(state) == 0, reward, -reward)


def _order(game: Game, config: PersistentConfig, key) -> jax.Array:
    """Returns `float32 [A]`: of actions that are otherwise equal, the highest comes first."""
    if config.expansion == "random":
        return jax.random.uniform(key, (game.num_actions,), jnp.float32)
    return jnp.arange(game.num_actions, dtype=jnp.float32)


def _ucb_action(game: Game, config: PersistentConfig, memory: Experience, walk: _Walk, order):
    """`argmax V + C sqrt(ln(N + 1) / n)` over the positions after each action."""
    children = memory.children[walk.slot]
    visits = jnp.maximum(memory.visits[children], 1).astype(jnp.float32)
    mean = memory.totals[children] / visits
    value = jnp.where(game.player(walk.state) == 0, mean, -mean)
    bound = jnp.sqrt(jnp.log1p(memory.visits[walk.slot].astype(jnp.float32)) / visits)
    score = value + config.exploration * bound
    score = jnp.where(game.legal_actions(walk.state), score, -jnp.inf)
    return jnp.argmax(jnp.where(score == jnp.max(score), order, -1.0))


def _choose(game: Game, config, key, memory: Experience, root, state) -> Decision:
    """Plays the most visited of one position's tried actions."""
    legal = game.legal_actions(state)
    children = memory.children[root]
    tried = legal & (children >= 0) & (root >= 0)
    visits = jnp.where(tried, memory.visits[children], 0)
    mean = jnp.where(
        tried, memory.totals[children] / jnp.maximum(visits, 1).astype(jnp.float32), 0.0
    )
    sign = jnp.where(game.player(state) == 0, 1.0, -1.0)
    order = _order(game, config, key)
    most = legal & (visits == jnp.max(jnp.where(legal, visits, -1)))
    weights = jnp.where(jnp.any(tried), visits, legal.astype(jnp.int32)).astype(jnp.float32)
    value = sign * memory.totals[root] / jnp.maximum(memory.visits[root], 1).astype(jnp.float32)
    return Decision(
        action=jnp.argmax(jnp.where(most, order, -1.0)).astype(jnp.int32),
        weights=weights / jnp.maximum(jnp.sum(weights), 1),
        value=jnp.where(root >= 0, value, 0.0),
        q_values=sign * mean,
        visit_counts=visits,
        nodes=jnp.where(root >= 0, jnp.int32(config.num_simulations), 0),
    )
