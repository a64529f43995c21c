"""The `Game` record and the conventions that every other file keeps to.

| thing          | convention                                                            |
| -------------- | --------------------------------------------------------------------- |
| board          | `int8`, row-major, 1 = first player, -1 = second player, 0 = empty    |
| player         | `int8`, 0 or 1: who is to move; player 0 (X) moves first              |
| value          | expected outcome in [-1, 1] for the player **to move**                |
| reward         | to the player who **just moved**: +1 win, -1 loss, 0 otherwise        |
| discount       | -1 when the turn passes, +1 when the same player moves again, 0 once  |
|                | the game is over                                                      |
| legal actions  | `bool[A]`, True = allowed                                             |
| finished game  | `step` is a no-op: same state, reward 0, discount 0, no legal action  |
| illegal action | `step` returns the state unchanged with reward 0                      |
| axes           | `B` games, `T` plies, `A` actions, `N` tree nodes, `S` states,        |
|                | `G` symmetries, `H`, `W`, `C` planes                                  |
| keys           | typed keys (`jax.random.key`), each used once                         |

The functions of a game take *one* state; `jax.vmap` makes the batch. With these signs
the value of a state obeys `value(s) = max_a [reward + discount * value(next)]`, in a
game of any turn order.
"""

import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

State = Any  # A pytree of arrays, one type per game.
Encoding = Literal["absolute", "relative"]
ENCODINGS: tuple[Encoding, ...] = ("absolute", "relative")


class Symmetries(NamedTuple):
    """The symmetries of a game as permutations of its cells and of its actions.

    Attributes:
      cells: `int32 [G, H * W]`. Cell `i` of the transformed board is cell `cells[g, i]`
        of the original one. Row 0 is the identity.
      actions: `int32 [G, A]`, the same for actions.
    """

    cells: np.ndarray
    actions: np.ndarray


class Game(NamedTuple):
    """A two-player, zero-sum game of perfect information, as a record of pure functions.

    Attributes:
      name: the name in the registry.
      num_actions: `A`.
      board_shape: `(H, W)` of the observed planes.
      max_plies: the length of the longest game.
      enumerable: whether all reachable states fit in memory, so that `oracle.solve` works.
      init: `() -> state`, the starting position.
      step: `(state, action) -> (state, reward)`; the reward is the mover's.
      legal_actions: `state -> bool [A]`; all False once the game is over.
      is_over: `state -> bool []`.
      player: `state -> int8 []`, who is to move.
      observe: `(state, encoding) -> bool [H, W, C]`, the network's input. `"absolute"`
        has three planes: first player's stones, second player's stones, and whether the
        first player is to move. `"relative"` has two: the mover's, the opponent's.
      symmetries: the `Symmetries` of the board.
      render: `state -> str`, a drawing for a terminal; runs on the host.
    """

    name: str
    num_actions: int
    board_shape: tuple[int, int]
    max_plies: int
    enumerable: bool
    init: Callable[[], State]
    step: Callable[[State, jax.Array], tuple[State, jax.Array]]
    legal_actions: Callable[[State], jax.Array]
    is_over: Callable[[State], jax.Array]
    player: Callable[[State], jax.Array]
    observe: Callable[[State, Encoding], jax.Array]
    symmetries: Symmetries
    render: Callable[[State], str]

    @property
    def num_symmetries(self) -> int:
        """`G`, the order of the symmetry group."""
        return len(self.symmetries.actions)


class Step(NamedTuple):
    """One move and what it led to.

    Attributes:
      state: the state after the move.
      reward: `float32 []`, to the player who moved.
      discount: `float32 []`, what turns the value of `state` into the mover's.
    """

    state: State
    reward: jax.Array
    discount: jax.Array


def play(game: Game, state: State, action: jax.Array) -> Step:
    """Plays `action` and derives the discount from who moves before and after it.

    Args:
      game: the rules.
      state: one state.
      action: `int32 []`.

    Returns:
      A `Step`; its discount is 0 if the game is over, +1 if the same player is to move
      again, -1 otherwise.
    """
    next_state, reward = game.step(state, action)
    same_player = game.player(next_state) == game.player(state)
    discount = jnp.where(same_player, 1.0, -1.0)
    return Step(next_state, reward, jnp.where(game.is_over(next_state), 0.0, discount))


def init_batch(game: Game, batch_size: int) -> State:
    """Returns `batch_size` copies of the starting position; every leaf is `[B, ...]`."""
    return jax.vmap(lambda _: game.init())(jnp.arange(batch_size))


def state_shapes(game: Game) -> State:
    """Returns one state with shapes and types in the place of arrays, without computing it."""
    return _shapes(game.init)


@functools.lru_cache(maxsize=64)
def _shapes(init: Callable[[], State]) -> State:
    return jax.eval_shape(init)


def check_batch(game: Game, states: State) -> int:
    """Returns `B` of a batch of states; works while tracing.

    Args:
      game: whose states they should be.
      states: `[B, ...]`.

    Raises:
      ValueError: if they are a single state, none at all, or no states of this game.
    """
    one = state_shapes(game)
    wanted, given = _describe(one, "B"), _describe(states)
    if given == _describe(one):
        raise ValueError(
            "states must be a batch, with one axis in front: give a single state one by "
            "jax.tree.map(lambda leaf: leaf[None], state)"
        )
    size = next((jnp.shape(leaf)[0] for leaf in jax.tree.leaves(states) if jnp.ndim(leaf)), None)
    if given != _describe(one, size):
        raise ValueError(
            f"a batch of {game.name} is {wanted}, and this is {given}: use states of that game"
        )
    if not size:
        raise ValueError("the batch of states is empty: give 1 state or more")
    return size


def _describe(states: State, *axes: int | str | None) -> str:
    """Structure, types and shapes of states, after further axes in front."""

    def describe(leaf):
        shape = ", ".join(map(str, (*axes, *jnp.shape(leaf))))
        return f"{getattr(leaf, 'dtype', type(leaf).__name__)}[{shape}]"

    return str(jax.tree.map(describe, states)).replace("'", "")


def batch_keys(keys: jax.Array, size: int | None = None) -> jax.Array:
    """Returns one key for each position of a batch; works while tracing.

    Args:
      keys: one key, to be split, or `[B]`, used as they are.
      size: `B`; as many as there are keys if None.

    Returns:
      `[B]`.

    Raises:
      ValueError: if there is another number of keys, or none, or they are not typed keys.
    """
    dtype = getattr(keys, "dtype", None)
    if dtype is None or not jnp.issubdtype(dtype, jax.dtypes.prng_key):
        raise ValueError(
            f"the key is of type {dtype or type(keys).__name__}: use typed keys, such as "
            "jax.random.key(0)"
        )
    if keys.shape == ():
        return jax.random.split(keys, 1 if size is None else size)
    if keys.ndim > 1 or not len(keys) or size not in (None, len(keys)):
        many = "one or more" if size is None else f"1 or {size}"
        raise ValueError(f"the keys have shape {keys.shape}: use one key, or a batch of {many}")
    return keys


def where(condition: jax.Array, on_true: State, on_false: State) -> State:
    """Chooses between two states (or any two pytrees) of the same structure.

    Args:
      condition: `bool []`, or `bool [B]` for batched states.
      on_true: the state where `condition` holds.
      on_false: the state elsewhere.

    Returns:
      A state of the same structure.
    """

    def choose(x, y):
        mask = jnp.reshape(condition, condition.shape + (1,) * (x.ndim - condition.ndim))
        return jnp.where(mask, x, y)

    return jax.tree.map(choose, on_true, on_false)


def random_action(game: Game, key: jax.Array, state: State) -> jax.Array:
    """Draws a legal action uniformly; 0 where there is none. Returns `int32 []`."""
    return legal_action_at(game.legal_actions(state), jax.random.uniform(key))


def legal_action_at(legal: jax.Array, uniform: jax.Array) -> jax.Array:
    """Turns a uniform number into a uniformly drawn legal action.

    Args:
      legal: `bool [..., A]`.
      uniform: `float32 [...]`, in [0, 1).

    Returns:
      `int32 [...]`; 0 where nothing is legal.
    """
    count = jnp.cumsum(legal, axis=-1)
    chosen = jnp.floor(uniform * count[..., -1])
    return jnp.argmax(count > chosen[..., None], axis=-1).astype(jnp.int32)


def observation_planes(
    board: jax.Array, player: jax.Array, board_shape: tuple[int, int], encoding: Encoding
) -> jax.Array:
    """Encodes a board of stones as binary planes.

    Args:
      board: `int8 [H * W]`, 1 and -1 for the stones of players 0 and 1.
      player: `int8 []`, who is to move.
      board_shape: `(H, W)`.
      encoding: `"absolute"` (three planes) or `"relative"` (two planes).

    Returns:
      `bool [H, W, C]`.

    Raises:
      ValueError: if the encoding has another name.
    """
    if encoding == "absolute":
        planes = (board == 1, board == -1, jnp.full(board.shape, player == 0))
    elif encoding == "relative":
        mover = 1 - 2 * player
        planes = (board == mover, board == -mover)
    else:
        known = " or ".join(repr(name) for name in ENCODINGS)
        raise ValueError(f"unknown encoding {encoding!r}: use {known}")
    return jnp.stack(planes, axis=-1).reshape(*board_shape, len(planes))
