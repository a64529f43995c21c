"""The `Game` record and the conventions that every other file keeps to.

| thing          | convention                                                                      |
| -------------- | ------------------------------------------------------------------------------- |
| board          | `int8`, row-major: 1 = first player, -1 = second player, 0 = empty              |
| player         | `int8`, 0 or 1: who is to move; player 0 (X) moves first                        |
| value          | expected outcome in [-1, 1] for the player **to move**                          |
| reward         | to the player who **just moved**: +1 win, -1 loss, 0 otherwise                  |
| discount       | -1 if the turn passes, +1 if the same player moves again, 0 if the game is over |
| legal actions  | `bool[A]`, True = allowed                                                       |
| finished game  | `step` is a no-op: same state, reward 0, discount 0, no legal action            |
| illegal action | `step` returns the state unchanged with reward 0                                |
| axes           | `B` games, `T` plies, `A` actions, `N` tree nodes, `S` states, `G` symmetries   |
| axes of planes | `H` rows, `W` columns, `C` channels                                             |
| keys           | typed keys (`jax.random.key`), each used once                                   |

The functions of a game take *one* state; `jax.vmap` makes the batch. With these signs
the value of a state obeys `value(s) = max_a [reward + discount * value(next)]`, in a
game of any turn order.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax._settings import did_you_mean
from azjax.drawing import Drawing

State = Any  # A pytree of arrays, one type per game.
Policy = Callable[[State], tuple[jax.Array, jax.Array]]
ENCODINGS = ("absolute", "relative")  # Those of `observation_planes`.
ILLEGAL = -2  # In the place of an outcome.
_ENUMERABLE = 20_000_000  # Positions that fit in memory.
_SMALL = 20_000  # Positions that a network is asked about in less time than an iteration takes.


@dataclasses.dataclass(frozen=True, eq=False)
class Symmetries:
    """The symmetries of a game as permutations; those of row 0 are the identity.

    Attributes:
      cells: `int32 [G, H * W]`. Cell `i` of the transformed board is cell `cells[g, i]`
        of the original one.
      actions: `int32 [G, A]`, the same for actions.
    """

    cells: np.ndarray
    actions: np.ndarray

    def __repr__(self):
        return f"Symmetries(cells={describe(self.cells)}, actions={describe(self.actions)})"


class Positions(NamedTuple):
    """Positions of a game whose truth is known, in classes; there is a choice in each.

    They are used only for evaluation: nothing but `azjax.proof.labelled` reads their labels.

    Attributes:
      states: every leaf `[S, ...]`.
      outcomes: `int8 [S, A]`, of each action, for the mover, under perfect play after it: 1 for
        a win, 0 for a draw, -1 for a loss, and `ILLEGAL` where it is not allowed.
      classes: the names of the `K` classes.
      class_of: `int [S]`, to which of them a position belongs.
      apart: the classes that a mean over the classes leaves out.
    """

    states: State
    outcomes: np.ndarray
    classes: tuple[str, ...]
    class_of: np.ndarray
    apart: tuple[str, ...] = ()

    def __repr__(self):
        return f"Positions(outcomes={describe(self.outcomes)}, classes={self.classes})"


class Game(NamedTuple):
    """A two-player, zero-sum game of perfect information, as a record of pure functions.

    Anybody can fill one. Its functions take one state, whose fields nobody else knows, and
    `testing.check_game` tells whether they keep the conventions. Records can be hashed: two
    games are the same if all their functions are.

    Attributes:
      name: what it is called in configurations and on pages.
      num_actions: `A`.
      board_shape: `(H, W)` of the observed planes.
      max_plies: the length of the longest game.
      most_positions: an upper bound of the positions that can be reached, where one is known; a
        position counts once for each ply at which it can be reached. `solver.solve` solves games
        with few enough.
      encodings: the names that `observe` knows, at least one.
      init: `() -> state`, the starting position.
      step: `(state, action) -> (state, reward)`; the reward is the mover's.
      legal_actions: `state -> bool [A]`; all False once the game is over.
      is_over: `state -> bool []`.
      player: `state -> int8 []`, who is to move.
      observe: `(state, encoding) -> bool [H, W, C]`, or `float32`, the network's input; every
        encoding has as many planes as it likes. See `observation_planes` for two of them.
      render: `state -> str`, a drawing for a terminal; runs on the host.
      symmetries: the `Symmetries` of the board; None for the identity alone.
      draw: `(state, values=None, labels=None, last=None, size=120) -> drawing.Drawing`, a
        picture; runs on the host. `values [A]` in [0, 1] are shown as a heat map, `labels [A]`
        as text, both where their actions would lead; `last` is the last action, which is
        marked, and `size` the width in pixels. If None, pictures show the text of `render`.
      name_actions: `state -> [A]`, what players call the actions in a position, such as `d3`;
        runs on the host. If None, they go by their numbers.
      positions: `() -> Positions`, to judge players by where the game cannot be enumerated;
        runs on the host. None if there are none.
    """

    name: str
    num_actions: int
    board_shape: tuple[int, int]
    max_plies: int
    most_positions: int | None
    encodings: tuple[str, ...]
    init: Callable[[], State]
    step: Callable[[State, jax.Array], tuple[State, jax.Array]]
    legal_actions: Callable[[State], jax.Array]
    is_over: Callable[[State], jax.Array]
    player: Callable[[State], jax.Array]
    observe: Callable[[State, str], jax.Array]
    render: Callable[[State], str]
    symmetries: Symmetries | None = None
    draw: Callable[..., Drawing] | None = None
    name_actions: Callable[[State], Sequence[str]] | None = None
    positions: Callable[[], Positions] | None = None

    def __repr__(self):
        name, actions, shape = self.name, self.num_actions, self.board_shape
        return f"Game(name={name!r}, num_actions={actions}, board_shape={shape})"

    @property
    def enumerable(self) -> bool:
        """Whether all positions that can be reached fit in memory, so that it can be solved."""
        return self.most_positions is not None and self.most_positions <= _ENUMERABLE

    @property
    def is_small(self) -> bool:
        """Whether that holds for a page, too, and every iteration of a training."""
        return self.most_positions is not None and self.most_positions <= _SMALL

    @property
    def num_symmetries(self) -> int:
        """`G`, the order of the symmetry group."""
        return 1 if self.symmetries is None else len(self.symmetries.actions)


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
    """Plays an action in one state, and derives the discount from who moves before and after."""
    next_state, reward = game.step(state, action)
    same_player = game.player(next_state) == game.player(state)
    discount = jnp.where(same_player, jnp.float32(1), jnp.float32(-1))
    discount = jnp.where(game.is_over(next_state), 0.0, discount)
    return Step(next_state, jnp.asarray(reward, jnp.float32), discount)


def init_batch(game: Game, batch_size: int) -> State:
    """Returns `batch_size` copies of the starting position; every leaf is `[B, ...]`."""
    return jax.vmap(lambda _: game.init())(jnp.arange(batch_size))


@functools.lru_cache(maxsize=64)
def state_shapes(game: Game) -> State:
    """Returns one state with shapes and types in the place of arrays, without computing it."""
    shapes = jax.eval_shape(game.init)  # They carry the mesh under which they are first traced.
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), shapes)


def check_batch(game: Game, states: State) -> int:
    """Returns `B` of a batch of states `[B, ...]`; works while tracing.

    Raises:
      ValueError: if they are a single state, none at all, or no states of this game.
    """
    one = state_shapes(game)
    wanted, given = describe(one, "B"), describe(states)
    if given == describe(one):
        raise ValueError(
            "states must be a batch, with one axis in front: give a single state one by "
            "jax.tree.map(lambda leaf: leaf[None], state)"
        )
    size = next((jnp.shape(leaf)[0] for leaf in jax.tree.leaves(states) if jnp.ndim(leaf)), None)
    if given != describe(one, size):
        raise ValueError(
            f"a batch of {game.name} is {wanted}, and this is {given}: use states of that game"
        )
    if not size:
        raise ValueError("the batch of states is empty: give 1 state or more")
    return size


def describe(states: Any, *axes: int | str | None) -> str:
    """Writes out structure, types and shapes of states, after further axes in front."""

    def write(leaf):
        shape = ", ".join(map(str, (*axes, *jnp.shape(leaf))))
        return f"{getattr(leaf, 'dtype', type(leaf).__name__)}[{shape}]"

    return str(jax.tree.map(write, states)).replace("'", "")


def batch_keys(keys: jax.Array, size: int | None = None) -> jax.Array:
    """Returns keys `[B]`, one for each position of a batch; works while tracing.

    Args:
      keys: one key, to be split, or `[B]`, used as they are.
      size: `B`; as many as there are keys if None.

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
    """Chooses between two states, or any two pytrees of the same structure.

    Args:
      condition: `bool []`, or `bool [B]` for batched states.
      on_true: the state where it holds.
      on_false: the state elsewhere.
    """

    def choose(x, y):
        mask = jnp.reshape(condition, condition.shape + (1,) * (x.ndim - condition.ndim))
        return jnp.where(mask, x, y)

    return jax.tree.map(choose, on_true, on_false)


def random_action(game: Game, key: jax.Array, state: State) -> jax.Array:
    """Draws a legal action uniformly; 0 where there is none. Returns `int32 []`."""
    return legal_action_at(game.legal_actions(state), jax.random.uniform(key, (), jnp.float32))


def legal_action_at(legal: jax.Array, uniform: jax.Array) -> jax.Array:
    """Turns uniform numbers into uniformly drawn legal actions `int32 [...]`; 0 if there is none.

    Args:
      legal: `bool [..., A]`.
      uniform: `float32 [...]`, in [0, 1).
    """
    count = jnp.cumsum(legal, axis=-1, dtype=jnp.int32)
    chosen = jnp.floor(uniform * count[..., -1].astype(uniform.dtype)).astype(count.dtype)
    return jnp.argmax(count > chosen[..., None], axis=-1).astype(jnp.int32)


def choose(scores: jax.Array, legal: jax.Array | np.ndarray) -> jax.Array:
    """Returns the actions `int32 [S]` that a policy plays.

    The legal action of highest score (logits, visit counts, probabilities) is the one played,
    the lowest of equals, and the lowest legal one where the scores are NaN.

    Args:
      scores: `[S, A]`.
      legal: `bool [S, A]`.
    """
    best = jnp.max(jnp.where(legal, scores, -jnp.inf), axis=1, keepdims=True)
    chosen = legal & (scores == best)
    chosen = jnp.where(jnp.any(chosen, axis=1, keepdims=True), chosen, legal)
    return jnp.argmax(chosen, axis=1).astype(jnp.int32)


def observation_planes(
    board: jax.Array, player: jax.Array, board_shape: tuple[int, int], encoding: str
) -> jax.Array:
    """Encodes a board of stones as planes `bool [H, W, C]`, in one of the `ENCODINGS`.

    Args:
      board: `int8 [H * W]`, 1 and -1 for the stones of players 0 and 1.
      player: `int8 []`, who is to move.
      board_shape: `(H, W)`.
      encoding: `"absolute"`: first player's stones, second player's stones, and whether the
        first player is to move. `"relative"`: the mover's stones, the opponent's.

    Raises:
      ValueError: if the encoding has another name.
    """
    if encoding not in ENCODINGS:
        known = " or ".join(map(repr, ENCODINGS))
        meant = did_you_mean(encoding, ENCODINGS)
        raise ValueError(f"unknown encoding {encoding!r}: use {known}{meant}")
    mover = 1 - 2 * player if encoding == "relative" else 1
    planes = [board == mover, board == -mover]
    if encoding == "absolute":
        planes.append(jnp.full(board.shape, player == 0))
    return jnp.stack(planes, axis=-1).reshape(*board_shape, len(planes))
