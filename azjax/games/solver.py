"""The exact solution of an enumerable game, as arrays.

The solver is used only for evaluation; an import test enforces that training never depends on it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import Game, State, check_rewards, explain_size, is_reward, play, write_types
from azjax.games.rows import batches, distinct, pack, unpack
from azjax.games.symmetries import symmetries_of

_EQUAL = 1e-6  # Expectations over dice that differ by rounding only.
_CHUNK, _LARGE_CHUNK = 512, 16_384  # States per compiled call; each shape compiles once.


class Solution(NamedTuple):
    """Every reachable state of a game with its exact value, sorted by ply.

    A position that is reachable at two different plies is listed once for each.

    Attributes:
      states: the states; every leaf is `[S, ...]`. State 0 is the starting position.
      layers: `int [T + 2]`, where `T` is the length of the longest game; the states of ply `t`
        are `layers[t]:layers[t + 1]`.
      player: `int8 [S]`, who is to move.
      over: `bool [S]`, whether the game has ended.
      legal: `bool [S, A]`.
      children: `int32 [S, A]`, the state after each legal action; 0 where illegal.
      rewards: `float32 [S, A]`, to the mover; 0 where illegal.
      values: `float32 [S]`, the game's value under perfect play, for the player to move;
        0 where the game is over.
      action_values: `float32 [S, A]`, the value after each action, for the mover; -inf where
        illegal.
      optimal: `bool [S, A]`, the legal actions that keep the value.
      decisions: `int32 [D]`, the indices of the states where a player is to move. Elsewhere the
        game is over, or nature is to move; values are then the mean over its outcomes.
    """

    states: State
    layers: np.ndarray
    player: np.ndarray
    over: np.ndarray
    legal: np.ndarray
    children: np.ndarray
    rewards: np.ndarray
    values: np.ndarray
    action_values: np.ndarray
    optimal: np.ndarray
    decisions: np.ndarray

    def __repr__(self):
        return f"Solution(num_states={self.num_states}, decisions={write_types(self.decisions)})"

    @property
    def num_states(self) -> int:
        """`S`."""
        return len(self.values)

    @property
    def has_chance(self) -> bool:
        """Whether nature is to move in some state."""
        return len(self.decisions) + np.sum(self.over).item() < self.num_states

    @property
    def decision_states(self) -> State:
        """The states at `decisions`; every leaf is `[D, ...]`."""
        return jax.tree.map(lambda leaf: leaf[self.decisions], self.states)


def solve(game: Game) -> Solution:
    """Enumerates every reachable state and solves the game by backward induction.

    Raises:
      ValueError: if `most_positions` is unknown or too large, or the game exceeds its limits.
    """
    if not game.enumerable:
        raise ValueError(
            f"{explain_size(game)}, so it cannot be solved: use a game such as tic_tac_toe"
        )
    layers, discounts, (children, rewards, legal) = _enumerate(game, game.most_positions or 0)
    states = jax.tree.map(lambda *leaves: np.concatenate(leaves), *layers)
    sizes = [len(jax.tree.leaves(layer)[0]) for layer in layers]
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    chance, kind = None, np.float32  # Without chance, values are whole numbers.
    if game.chance is not None:
        chance, kind = np.asarray(jax.jit(jax.vmap(game.chance))(states), np.float64), np.float64
        chance /= np.maximum(chance.sum(axis=1, keepdims=True), 1.0)  # Exactly 1, as in theory.
    values, action_values = np.zeros(bounds[-1], kind), np.full(legal.shape, -np.inf, kind)
    for t in reversed(range(len(sizes))):
        rows = slice(bounds[t], bounds[t + 1])
        backed_up = rewards[rows] + discounts[t] * values[children[rows]]
        action_values[rows] = np.where(legal[rows], backed_up, -np.inf)
        values[rows] = np.where(legal[rows].any(1), action_values[rows].max(1), 0.0)
        if chance is not None:
            expected = (chance[rows] * np.where(legal[rows], backed_up, 0.0)).sum(1)
            values[rows] = np.where(chance[rows].any(1), expected, values[rows])
    over = np.logical_not(legal.any(axis=1))
    decides = ~over if chance is None else ~over & ~chance.any(1)
    return Solution(
        states=states,
        layers=bounds,
        player=np.asarray(jax.vmap(game.player)(states)),
        over=over,
        legal=legal,
        children=children,
        rewards=rewards,
        values=values.astype(np.float32),
        action_values=action_values.astype(np.float32),
        optimal=legal & (action_values >= values[:, None] - _EQUAL),
        decisions=np.flatnonzero(decides).astype(np.int32),
    )


def _enumerate(game: Game, most: int):
    """Finds the layers of distinct states, breadth first, and the edges between them."""
    frontier = jax.tree.map(lambda leaf: np.asarray(leaf)[None], game.init())

    @jax.jit
    @jax.vmap
    def play_all(state):
        step = jax.vmap(lambda action: play(game, state, action))(jnp.arange(game.num_actions))
        return (*step, game.legal_actions(state))

    layers, discounts, edges, offset = [], [], [], 0
    while size := len(jax.tree.leaves(frontier)[0]):
        if len(layers) > game.max_plies:
            raise ValueError(
                f"{game.name} lasts longer than its max_plies, {game.max_plies}: set max_plies to "
                "the length of its longest game"
            )
        layers.append(frontier)
        offset += size
        if offset > most:
            raise ValueError(
                f"{game.name} has more positions than its most_positions, {most}, each counted "
                "once for every ply: set most_positions to an upper bound"
            )
        chunk = _CHUNK if size < _LARGE_CHUNK else _LARGE_CHUNK
        parts = [
            (pack(jax.tree.map(lambda leaf, legal=legal: leaf[legal], after)), *edge, legal)
            for after, *edge, legal in batches(play_all, (frontier,), chunk)
        ]
        candidates, reward, discount, legal = map(np.concatenate, zip(*parts, strict=True))
        check_rewards(game, is_reward(reward, discount == 0)[legal])
        first, which = distinct(candidates)
        children = np.zeros(legal.shape, np.int32)
        children[legal] = offset + which
        discounts.append(discount)
        edges.append((children, reward, legal))
        frontier = unpack(game, candidates[first])
    return layers, discounts, map(np.concatenate, zip(*edges, strict=True))


def count_games(solution: Solution) -> np.ndarray:
    """Counts the complete games that continue from each state.

    Returns:
      Python integers `[S, 3]`: games won by player 0, drawn, won by player 1. Row 0 counts all
      games.
    """
    counts = np.zeros((solution.num_states, 3), object)
    for t in reversed(range(len(solution.layers) - 1)):
        rows = slice(solution.layers[t], solution.layers[t + 1])
        children, legal = solution.children[rows], solution.legal[rows]
        sign = np.where(solution.player[rows] == 0, 1, -1)[:, None]
        outcome = 1 - (solution.rewards[rows] * sign).astype(int)  # The column: 0, 1 or 2.
        ends = np.eye(3, dtype=int)[outcome] * solution.over[children][..., None]
        counts[rows] = ((counts[children] + ends) * legal[..., None]).sum(axis=1)
    return counts


def symmetry_classes(game: Game, solution: Solution) -> np.ndarray:
    """Returns `int64 [S]`, the class of each state; positions equal up to symmetry share a class.

    A symmetry maps the start to itself, and the position after a move to the position after the
    transformed move.
    """
    _, numbers = distinct(pack(solution.states))
    actions = symmetries_of(game).actions
    copies = np.zeros((len(actions), solution.num_states), np.int64)  # Rows of the solution.
    for rows in map(slice, solution.layers[:-1], solution.layers[1:]):
        parents, moves = np.nonzero(solution.legal[rows])
        parents += rows.start
        moved = solution.children[copies[:, parents], np.argsort(actions)[:, moves]]
        copies[:, solution.children[parents, moves]] = moved
    least = numbers[copies].min(axis=0)
    is_number = np.zeros(len(numbers), bool)
    is_number[least] = True
    return (np.cumsum(is_number) - 1)[least]
