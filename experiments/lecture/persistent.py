"""UCT with a memory: its statistics, keyed by position, persist from game to game.

The memory is a hash table of arrays, `Experience`, that every call takes and returns. Positions
reached by different moves share one entry, so the search tree is a graph.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Annotated, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax._settings import NonNegative, Range, Simulations, check
from azjax.games import Game, State, check_batch
from azjax.games.hashing import contents, weigh
from azjax.players import Decision
from azjax.search import rollout_evaluator

_PROBES = 16  # Neighboring slots that may hold a position.
Order = Literal["random", "last"]  # The order in which untried actions are tried.


@dataclasses.dataclass(frozen=True)
class PersistentConfig:
    """Settings of a player with a memory."""

    num_simulations: Simulations = 50
    """Simulations per move, in addition to all earlier ones."""
    exploration: NonNegative = math.sqrt(2)
    """Weight C of the confidence bound."""
    expansion: Order = "random"
    """Which action is first among untried ones, among equal scores, and among equal visits:
    a random one, or the one with the highest number."""
    capacity: Annotated[int, Range(_PROBES, 2**30)] = 2**14
    """Positions that the memory can hold, rounded up to a power of two."""

    def __post_init__(self):
        check("persistent", self)

    @property
    def slots(self) -> int:
        """The capacity, rounded up to a power of two."""
        return 2 ** math.ceil(math.log2(self.capacity))


class Experience(NamedTuple):
    """Statistics of positions: a hash table of `C` slots. A batch has a leading axis `B`.

    Attributes:
      fingerprints: `uint32 [C]`, identifies the position of a slot; 0 if the slot is free.
      visits: `int32 [C]`, simulations that passed through the position.
      totals: `float32 [C]`, the sum of their outcomes for player 0.
      children: `int32 [C, A]`, the slot after each action; -1 for untried actions.
    """

    fingerprints: jax.Array
    visits: jax.Array
    totals: jax.Array
    children: jax.Array


class PersistentPlayer(NamedTuple):
    """A player with a memory.

    Attributes:
      name: name for tables and charts.
      init_memory: `batch_size -> Experience`, empty, every leaf `[B, ...]`.
      learn: `(key, states [B, ...], memory) -> (Decision, memory)`.
    """

    name: str
    init_memory: Callable[[int], Experience]
    learn: Callable[[jax.Array, State, Experience], tuple[Decision, Experience]]


class _Path(NamedTuple):
    """The selection phase of a simulation."""

    state: State
    slot: jax.Array  # int32 []
    slots: jax.Array  # int32 [max_plies + 1], the slots passed; C for unused entries.
    length: jax.Array  # int32 []
    outcome: jax.Array  # float32 [], sum of rewards for player 0.


def make_persistent(game: Game, config: PersistentConfig) -> PersistentPlayer:
    """Makes a UCT player whose simulations add to those of earlier moves and games.

    At a node with untried actions, one of them is tried, followed by a random game. At other
    nodes UCB1 chooses, with the visits and mean outcome of the *position* after each action,
    including those from other paths. The most visited action is played. If the table is full, new
    positions are not stored, and in such a position the player moves at random.
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
                f"need {(batch, slots)}: make it with this player's init_memory({batch})"
            )
        live = ~jax.vmap(game.is_over)(states)
        roots, memory = jax.vmap(_locate)(memory, states, live)

        def simulate(i, memory):
            keys = jax.random.split(jax.random.fold_in(key_simulate, i), batch)
            return jax.vmap(lambda *xs: _simulate(game, config, *xs))(keys, memory, roots, states)

        memory = jax.lax.fori_loop(0, config.num_simulations, simulate, memory)
        keys = jax.random.split(key_choose, batch)
        choose = jax.vmap(lambda *xs: _choose(game, config, *xs))
        return choose(keys, memory, roots, states), memory

    return PersistentPlayer(f"learner({config.num_simulations})", init_memory, learn)


def _locate(memory: Experience, state: State, store: jax.Array) -> tuple[jax.Array, Experience]:
    """Returns the slot of a position, taking a free one if it is new.

    The slot is -1 if there is no free one, or if `store` is false; then nothing is stored.
    """
    numbers, slots = contents(state), len(memory.visits)
    weights = np.random.default_rng(0).integers(2**32, size=(2, numbers.size), dtype=np.uint32)
    place, fingerprint = (weigh(numbers, some) for some in weights | 1)
    fingerprint |= jnp.uint32(1)  # A fingerprint of 0 marks a free slot.
    start = (place >> (33 - slots.bit_length())).astype(jnp.int32)
    probes = (start + jnp.arange(_PROBES, dtype=jnp.int32)) % slots
    present = memory.fingerprints[probes]
    usable = (present == fingerprint) | (present == 0)
    slot = jnp.where(store & jnp.any(usable), probes[jnp.argmax(usable)], -1)
    target = jnp.where(slot < 0, slots, slot)
    stored = memory.fingerprints.at[target].set(fingerprint, mode="drop")
    return slot, memory._replace(fingerprints=stored)


def _simulate(
    game: Game, config: PersistentConfig, key, memory: Experience, root, state
) -> Experience:
    """Makes one simulation: selection, expansion, a random game, backup."""
    key_order, key_rollout = jax.random.split(key)
    order = _order(game, config, key_order)
    unused, is_stored = jnp.int32(config.slots), root >= 0
    passed = jnp.full(game.max_plies + 1, unused).at[0].set(jnp.where(is_stored, root, unused))
    start = _Path(state, root, passed, jnp.int32(1), jnp.float32(0))

    def untried(path):
        return game.legal_actions(path.state) & (memory.children[path.slot] < 0)

    def is_inside(path):
        return is_stored & jnp.any(game.legal_actions(path.state)) & ~jnp.any(untried(path))

    def descend(path):
        action = _ucb_action(game, config, memory, path, order)
        slot = memory.children[path.slot, action]
        moved, outcome = _move(game, path.state, action, path.outcome)
        slots = path.slots.at[path.length].set(slot)
        return _Path(moved, slot, slots, path.length + 1, outcome)

    path = jax.lax.while_loop(is_inside, descend, start)
    action = jnp.argmax(jnp.where(untried(path), order, -1.0))
    moved, outcome = _move(game, path.state, action, path.outcome)
    slot, memory = _locate(memory, moved, is_stored & jnp.any(untried(path)))
    expands = slot >= 0
    slots = path.slots.at[path.length].set(jnp.where(expands, slot, unused))
    parent = jnp.where(expands, path.slot, unused)
    one = jax.tree.map(lambda leaf: leaf[None], moved)
    _, (value,) = rollout_evaluator(game)(None, key_rollout[None], one)
    outcome += jnp.where(game.player(moved) == 0, value, -value)
    return Experience(
        fingerprints=memory.fingerprints,
        visits=memory.visits.at[slots].add(1, mode="drop"),
        totals=memory.totals.at[slots].add(outcome, mode="drop"),
        children=memory.children.at[parent, action].set(slot, mode="drop"),
    )


def _move(game: Game, state: State, action, outcome):
    """Plays an action; returns the state and the sum of rewards for player 0."""
    moved, reward = game.step(state, action)
    return moved, outcome + jnp.where(game.player(state) == 0, reward, -reward)


def _order(game: Game, config: PersistentConfig, key) -> jax.Array:
    """Returns `float32 [A]`, by which ties between actions are broken: the highest is first."""
    if config.expansion == "random":
        return jax.random.uniform(key, (game.num_actions,), jnp.float32)
    return jnp.arange(game.num_actions, dtype=jnp.float32)


def _ucb_action(game: Game, config: PersistentConfig, memory: Experience, path: _Path, order):
    """Returns `argmax V + C sqrt(ln(N + 1) / n)` over the positions after each action."""
    children = memory.children[path.slot]
    visits = jnp.maximum(memory.visits[children], 1).astype(jnp.float32)
    mean = memory.totals[children] / visits
    value = jnp.where(game.player(path.state) == 0, mean, -mean)
    bound = jnp.sqrt(jnp.log1p(memory.visits[path.slot].astype(jnp.float32)) / visits)
    score = value + config.exploration * bound
    score = jnp.where(game.legal_actions(path.state), score, -jnp.inf)
    return jnp.argmax(jnp.where(score == jnp.max(score), order, -1.0))


def _choose(game: Game, config, key, memory: Experience, root, state) -> Decision:
    """Plays the most visited of the tried actions."""
    legal, is_stored = game.legal_actions(state), root >= 0
    children = memory.children[root]
    tried = legal & (children >= 0) & is_stored
    visits = jnp.where(tried, memory.visits[children], 0)
    mean = memory.totals[children] / jnp.maximum(visits, 1).astype(jnp.float32)
    sign = jnp.where(game.player(state) == 0, 1.0, -1.0)
    most = legal & (visits == jnp.max(jnp.where(legal, visits, -1)))
    weights = jnp.where(jnp.any(tried), visits, legal.astype(jnp.int32)).astype(jnp.float32)
    value = sign * memory.totals[root] / jnp.maximum(memory.visits[root], 1).astype(jnp.float32)
    mean = jnp.where(tried, mean, 0.0)
    return Decision(
        action=jnp.argmax(jnp.where(most, _order(game, config, key), -1.0)).astype(jnp.int32),
        weights=weights / jnp.maximum(jnp.sum(weights), 1),
        value=jnp.where(is_stored, value, 0.0),
        q_values=sign * mean,
        visit_counts=visits,
        nodes=jnp.where(is_stored, jnp.int32(config.num_simulations), 0),
    )
