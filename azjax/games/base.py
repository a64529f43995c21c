"""The `Game` record and the conventions of the whole package.

| thing          | convention                                                                      |
| -------------- | ------------------------------------------------------------------------------- |
| board          | `int8`, row-major: 1 = first player, -1 = second player, 0 = empty              |
| player         | `int8`, 0 or 1: who is to move; player 0 (X) moves first                        |
| value          | expected outcome in [-1, 1] for the player **to move**                          |
| reward         | to the player who **just moved**: +1 win, -1 loss, 0 in all other cases         |
| discount       | -1 if the turn passes, +1 if the same player moves again, 0 if the game is over |
| legal actions  | `bool[A]`, True = allowed                                                       |
| finished game  | `step` is a no-op: same state, reward 0, discount 0, no legal action            |
| illegal action | `step` returns the state unchanged with reward 0                                |
| axes           | `B` games, `T` plies, `A` actions, `N` tree nodes, `S` states, `G` symmetries   |
| axes of planes | `H` rows, `W` columns, `C` channels                                             |
| keys           | typed keys (`jax.random.key`), each used once                                   |

The functions of a game take *one* state; `jax.vmap` makes the batch. With these signs, the value of
a state obeys `value(s) = max_a [reward + discount * value(next)]` for any order of turns.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax._settings import checked

State = Any  # A pytree of arrays, one type per game.
_ENUMERABLE = 20_000_000  # This many positions are assumed to fit in memory,
_VALUES = 2**28  # and this many values of actions.
_SMALL = 20_000  # This many positions can be evaluated in every training iteration.
ILLEGAL = -2  # Marks illegal actions among the outcomes of `Positions`.


@dataclasses.dataclass(frozen=True, eq=False)
class Symmetries:
    """The symmetries of a game as permutations; row 0 is the identity. None changes the start.

    Attributes:
      cells: `int32 [G, H * W]`. Cell `i` of the transformed board is cell `cells[g, i]`
        of the original one.
      actions: `int32 [G, A]`, the same for actions.
    """

    cells: np.ndarray
    actions: np.ndarray


class Positions(NamedTuple):
    """Labelled positions of a game too large for `solver.solve`, used only for evaluation.

    Each has two or more legal actions.

    Attributes:
      states: every leaf `[S, ...]`.
      outcomes: `int8 [S, A]`, the outcome of each action for the mover, under perfect play after
        it: 1 for a win, 0 for a draw, -1 for a loss, and `ILLEGAL` for illegal actions.
      classes: the names of the `K` classes.
      class_of: `int [S]`, the class of each position.
      apart: names of the classes that are excluded from means over classes.
    """

    states: Any
    outcomes: np.ndarray
    classes: tuple[str, ...]
    class_of: np.ndarray
    apart: tuple[str, ...] = ()


def write_state(state: State) -> str:
    """Formats the arrays of a state, one per line, such as `player 0`."""
    leaves = jax.tree_util.tree_leaves_with_path(state)
    named = [(jax.tree_util.keystr(k, simple=True, separator="."), leaf) for k, leaf in leaves]
    return "\n".join(f"{name} {leaf}".strip() for name, leaf in named)


class Display(NamedTuple):
    """Text, pictures and names of actions. Every function is optional and runs on the host.

    Attributes:
      render: `state -> str`, the position as text for a terminal.
      draw: `(state, values=None, labels=None, last=None, size=120) -> drawing.Drawing`, a picture.
        `values [A]` in [0, 1] are a heat map and `labels [A]` are text, both drawn where their
        actions lead; `last` is the last action, which is marked; `size` is the width in pixels.
        If None, pictures show the text of `render`.
      name_actions: `state -> [A]`, names of the actions in a position, such as `d3`. If None, the
        names are the numbers of the actions.
    """

    render: Callable[[State], str] = write_state
    draw: Callable[..., Any] | None = None
    name_actions: Callable[[State], Sequence[str]] | None = None


class Game(NamedTuple):
    """A two-player, zero-sum game without hidden information, as a record of pure functions.

    The first ten fields are the rules, which suffice to train and to play. The functions take one
    state, which other code treats as an opaque pytree. `check.check_game` tests a record against
    the conventions. Records can be hashed: two games are equal if all their fields are.

    Attributes:
      name: the name in configurations and reports.
      num_actions: `A`.
      max_plies: an upper bound on the length of a game.
      encodings: the names that `observe` accepts; at least one.
      init: `() -> state`, the starting position.
      step: `(state, action) -> (state, reward)`; the reward is for the mover. It depends on what
        both players see: states have no random key, as a search would see the dice. Games with
        dice have `chance`.
      legal_actions: `state -> bool [A]`; all False once the game is over.
      is_over: `state -> bool []`.
      player: `state -> int8 []`, who is to move.
      observe: `(state, encoding) -> bool [H, W, C]`, or `float32`, the network's input. The number
        of planes may depend on the encoding. See `square.observation_planes` for two encodings.
      symmetries: the `Symmetries` of the board; None if there is only the identity.
      most_positions: an upper bound on the number of reachable positions, or None if unknown. A
        position counts once for each ply at which it can be reached. `solver.solve` needs this
        bound.
      positions: `() -> Positions`, labelled positions for games that cannot be enumerated; runs on
        the host. Optional.
      display: text, pictures and names of actions.
      chance: `state -> float32 [A]`, the probabilities of the outcomes where nature is to move,
        such as a throw of dice, and zeros elsewhere; None for games without chance. An outcome is
        a legal action like any other, and `step` plays it. There, `player` says whose value
        and reward are meant. After an outcome, a player is to move, or the game is over.
    """

    name: str
    num_actions: int
    max_plies: int
    encodings: tuple[str, ...]
    init: Callable[[], State]
    step: Callable[[State, jax.Array], tuple[State, jax.Array]]
    legal_actions: Callable[[State], jax.Array]
    is_over: Callable[[State], jax.Array]
    player: Callable[[State], jax.Array]
    observe: Callable[[State, str], jax.Array]
    symmetries: Symmetries | None = None
    most_positions: int | None = None
    positions: Callable[[], Positions] | None = None
    display: Display = Display()
    chance: Callable[[State], jax.Array] | None = None

    def __repr__(self):
        return f"Game(name={self.name!r}, num_actions={self.num_actions})"

    @property
    def board_shape(self) -> tuple[int, int]:
        """`(H, W)` of the observed planes."""
        return _board_shape(self)

    @property
    def enumerable(self) -> bool:
        """Whether all reachable positions fit in memory, as `solver.solve` requires."""
        most = self.most_positions
        return most is not None and most <= min(_ENUMERABLE, _VALUES // self.num_actions)

    @property
    def is_small(self) -> bool:
        """Whether the positions are few enough to examine in every training iteration."""
        return self.most_positions is not None and self.most_positions <= _SMALL

    @property
    def num_symmetries(self) -> int:
        """`G`, the order of the symmetry group."""
        return 1 if self.symmetries is None else len(self.symmetries.actions)


@functools.lru_cache(maxsize=64)
def _board_shape(game: Game) -> tuple[int, int]:
    planes = jax.eval_shape(lambda: game.observe(game.init(), game.encodings[0]))
    return planes.shape[:2]


class Step(NamedTuple):
    """The result of a move. `discount` turns the value of `state` into a value for the mover."""

    state: State
    reward: jax.Array  # float32 []
    discount: jax.Array  # float32 []


def play(game: Game, state: State, action: jax.Array) -> Step:
    """Plays an action in one state and computes the discount."""
    next_state, reward = game.step(state, action)
    same_player = game.player(next_state) == game.player(state)
    discount = jnp.where(same_player, jnp.float32(1), jnp.float32(-1))
    discount = jnp.where(game.is_over(next_state), 0.0, discount)
    return Step(next_state, jnp.asarray(reward, jnp.float32), discount)


def is_chance(game: Game, state: State) -> jax.Array:
    """Whether nature is to move, `bool []`."""
    return jnp.bool(False) if game.chance is None else jnp.any(game.chance(state) > 0)


def throw(game: Game, uniform: jax.Array, step: Step) -> Step:
    """Adds the outcome to a step after which nature is to move; `uniform []` in [0, 1) draws it."""
    if game.chance is None:
        return step
    after = play(game, step.state, _draw_outcome(game.chance, uniform, step.state))
    reward = step.reward + step.discount * after.reward
    thrown = Step(after.state, reward, step.discount * after.discount)
    return where(is_chance(game, step.state), thrown, step)


def is_reward(rewards: Any, over: Any) -> Any:
    """Whether rewards of moves follow the conventions; `over` is whether the moves end the game."""
    return (rewards == 0) | over & (abs(rewards) == 1)


def check_rewards(game: Game, are_right: np.ndarray) -> None:
    """Raises a ValueError unless all rewards are right, as results could not be counted."""
    if not np.all(are_right):
        raise ValueError(
            f"{game.name} gives a reward before the end of a game, or one other than -1, 0 and 1, "
            "so its results cannot be counted: correct its step, with the help of azjax.check_game"
        )


def explain_size(game: Game) -> str:
    """Returns why a game is not `enumerable`, as the beginning of a message."""
    if game.most_positions is None:
        return f"{game.name} has no bound on its number of positions (most_positions)"
    return f"{game.name} has too many positions to enumerate"


def name_actions(game: Game, state: State) -> list[str]:
    """Returns the names of all actions `[A]` in a position; numbers if the game has no names."""
    names = game.display.name_actions
    return [str(name) for name in (range(game.num_actions) if names is None else names(state))]


def one_per_size(make: Callable[..., Game]) -> Callable[..., Game]:
    """Decorates a function that makes a game: equal sizes, given or not, return one object."""
    signature, cached = inspect.signature(make), functools.cache(make)

    @functools.wraps(make)
    def make_once(*sizes, **named):
        given = signature.bind(*sizes, **named)
        given.apply_defaults()
        hints = (parameter.annotation for parameter in signature.parameters.values())
        return cached(*map(checked, given.arguments, given.arguments.values(), hints))

    return make_once


def guard_step(
    num_actions: int,
    legal_actions: Callable[[State], jax.Array],
    move: Callable[[State, jax.Array], tuple[State, jax.Array]],
) -> Callable[[State, jax.Array], tuple[State, jax.Array]]:
    """Makes `Game.step` from a function for legal actions; others change nothing and earn 0."""

    def step(state, action):
        state = jax.tree.map(jnp.asarray, state)  # NumPy's arrays have no `at`.
        is_legal = legal_actions(state)[action] & (action >= 0) & (action < num_actions)
        after, reward = move(state, action)
        return where(is_legal, after, state), jnp.where(is_legal, reward, jnp.float32(0))

    return step


def init_batch(game: Game, batch_size: int) -> State:
    """Returns `batch_size` copies of the starting position; every leaf is `[B, ...]`."""
    return jax.vmap(lambda _: game.init())(jnp.arange(batch_size))


@functools.lru_cache(maxsize=64)
def state_shapes(game: Game) -> State:
    """Returns one state as `jax.ShapeDtypeStruct`, without computing it."""
    # The shapes refer to the mesh of the current trace, which must not be cached: copy without it.
    shapes = jax.eval_shape(game.init)
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), shapes)


def check_batch(game: Game, states: State) -> int:
    """Returns `B` of a batch of states `[B, ...]`; can be traced.

    Raises:
      ValueError: if `states` is a single state, an empty batch, or from another game.
    """
    one, given = state_shapes(game), write_types(states)
    size = next((jnp.shape(leaf)[0] for leaf in jax.tree.leaves(states) if jnp.ndim(leaf)), 0)
    if not size or given != write_types(one, size):
        raise ValueError(
            f"a batch of {game.name} is {write_types(one, 'B')}, with B from 1 on, but these "
            f"states are {given}: for one state use jax.tree.map(lambda leaf: leaf[None], state)"
        )
    return size


def write_types(states: Any, *axes: int | str | None) -> str:
    """Formats the structure, types and shapes of states, with additional leading axes."""

    def write(leaf):
        shape = ", ".join(map(str, (*axes, *jnp.shape(leaf))))
        return f"{getattr(leaf, 'dtype', type(leaf).__name__)}[{shape}]"

    return str(jax.tree.map(write, states)).replace("'", "")


def batch_keys(keys: jax.Array, size: int | None = None) -> jax.Array:
    """Returns keys `[B]`, one per position of a batch; can be traced.

    One key is split. `size` is `B`; None means the number of keys.
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

    The condition is `bool []`, or `bool [B]` for batched states.
    """

    def select(x, y):
        mask = jnp.reshape(condition, condition.shape + (1,) * (x.ndim - condition.ndim))
        return jnp.where(mask, x, y)

    return jax.tree.map(select, on_true, on_false)


def random_action(game: Game, key: jax.Array, state: State) -> jax.Array:
    """Draws a legal action `int32 []`, uniformly or as nature does; 0 if there is none."""
    return draw_action(game, jax.random.uniform(key, (), jnp.float32), state)


def draw_action(game: Game, uniform: jax.Array, state: State) -> jax.Array:
    """Maps `uniform []` in [0, 1) to an action as `random_action` draws it."""
    action = legal_action_at(game.legal_actions(state), uniform)
    if game.chance is None:
        return action
    return jnp.where(is_chance(game, state), _draw_outcome(game.chance, uniform, state), action)


def _draw_outcome(chance: Callable, uniform: jax.Array, state: State) -> jax.Array:
    total = jnp.cumsum(chance(state))
    return jnp.argmax(total > uniform * total[-1]).astype(jnp.int32)


def random_step(game: Game, key: jax.Array, state: State) -> Step:
    """Plays a random action, and the outcome if nature is to move after it."""
    if game.chance is None:
        return play(game, state, random_action(game, key, state))
    key, key_chance = jax.random.split(key)
    step = play(game, state, random_action(game, key, state))
    return throw(game, jax.random.uniform(key_chance, (), jnp.float32), step)


def legal_action_at(legal: jax.Array, uniform: jax.Array) -> jax.Array:
    """Maps `uniform [...]` in [0, 1) to legal actions `int32 [...]`; 0 if there is none."""
    count = jnp.cumsum(legal, axis=-1, dtype=jnp.int32)
    chosen = jnp.floor(uniform * count[..., -1].astype(uniform.dtype)).astype(count.dtype)
    return jnp.argmax(count > chosen[..., None], axis=-1).astype(jnp.int32)


def choose(scores: jax.Array, legal: jax.Array | np.ndarray) -> jax.Array:
    """Returns the legal actions `int32 [S]` with the highest scores `[S, A]`.

    Ties go to the lowest action. If the score of any legal action is NaN, the result is the lowest
    legal action.
    """
    best = jnp.max(jnp.where(legal, scores, -jnp.inf), axis=1, keepdims=True)
    chosen = legal & (scores == best)
    chosen = jnp.where(jnp.any(chosen, axis=1, keepdims=True), chosen, legal)
    return jnp.argmax(chosen, axis=1).astype(jnp.int32)
