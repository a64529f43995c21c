"""The cast of the lecture: its players, and the setup of the experiments."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax import games
from azjax.games import Game, check_batch, solver
from azjax.games.hashing import make_index
from azjax.games.solver import Solution
from azjax.players import Agent, Decision, decide, minimax_agent, random_agent
from azjax.players.arena import play_games
from azjax.search import UCT, Roots, SearchResult, make_search, rollout_evaluator, simulate

ROOT_2 = math.sqrt(2)


class Setup(NamedTuple):
    """Tic-tac-toe, its solution, and the settings of one run of the experiments."""

    game: Game
    solution: Solution
    quick: bool  # Whether to use fewer games and searches.
    seed: int  # Seed of all randomness.

    def key(self, experiment: str) -> jax.Array:
        """Returns the key of one experiment; it does not depend on the others."""
        return jax.random.fold_in(jax.random.key(self.seed), sum(map(ord, experiment)))

    def choose(self, full: Any, quick: Any) -> Any:
        """Returns the amount for a full or a quick run."""
        return quick if self.quick else full

    def play(self, first: Agent, second: Agent, num_games: int, key, seat: int = 0) -> np.ndarray:
        """Returns the outcomes of games, `int8 [num_games]`, 1 = won by the first-named player.

        The size of batches is the same for all, so that each pairing is compiled once.
        """
        size = self.choose(1024, 256)
        return play_games(self.game, first, second, num_games, key, seat, batch_size=size).outcomes


def uct_search(room: int) -> Callable[..., SearchResult]:
    """Builds `search(keys, states, count, exploration)` with random games, compiled once for all.

    `count` is the number of simulations, at most `room`. It and `exploration` may be traced.
    """
    game = games.make("tic_tac_toe")

    def search(keys, states, count, exploration):
        counted = _Counted(room, count, exploration)
        return make_search(counted, game, rollout_evaluator(game))(None, keys, states)

    return search


@dataclasses.dataclass(frozen=True)
class _Counted:
    """UCT in a tree with room for more simulations than it makes."""

    num_simulations: int  # The room.
    count: Any
    exploration: Any
    algorithm = "uct"
    is_deterministic = False

    def select(self, roots: Roots) -> SearchResult:
        """Searches with a loop whose length may be traced."""
        uct = UCT(num_simulations=self.num_simulations, exploration=self.exploration)
        selection = uct.select(roots)
        tree = simulate.init(roots, selection, self.num_simulations)
        one = functools.partial(simulate.simulate, roots, selection)
        return selection.finish(jax.lax.fori_loop(0, self.count, one, tree))


_ROOM = 500  # Maximum simulations of an MCTS player; all share one compiled search of this size.


@functools.cache
def _classic() -> Agent:
    """Builds MCTS with `params = (simulations, C)`, so that all such players share one program."""
    game = games.make("tic_tac_toe")
    search = uct_search(_ROOM)

    def act(params, key, states):
        count, exploration = params
        keys = jax.random.split(key, check_batch(game, states))
        return decide(search(keys, states, count, exploration))

    return Agent("MCTS", act, nodes=_ROOM + 1)


def classic(simulations: int, exploration: float = ROOT_2) -> Agent:
    """Makes the lecture's MCTSClassicSolver, which builds a new tree for every move."""
    params = (jnp.int32(simulations), jnp.float32(exploration))
    return _classic()._replace(name=f"MCTS({simulations})", params=params)


@functools.cache
def player(name: str) -> Agent:
    """Makes a player of the lecture: `random`, `minimax`, `alpha-beta` or `MCTS(simulations)`."""
    game = games.make("tic_tac_toe")
    if name.startswith("MCTS"):
        return classic(int(name[5:-1]))
    if name == "random":
        return random_agent(game)
    return tabulated(game, solver.solve(game), minimax_agent(game, prune=name == "alpha-beta"))


def tabulated(game: Game, solution: Solution, agent: Agent) -> Agent:
    """Makes a player that looks up the moves of a deterministic player in a table."""
    index, decide_all = make_index(solution.states), jax.jit(agent.act)
    actions = np.zeros(solution.num_states, np.int32)
    weights = np.zeros(solution.legal.shape, np.float32)
    for rows in _chunks(solution):
        states = jax.tree.map(lambda leaf: leaf[rows], solution.states)
        decision = decide_all(agent.params, jax.random.key(0), states)
        actions[rows], weights[rows] = decision.action, decision.weights

    def act(params, key, states):
        del params, key
        row = index(states)
        return Decision(jnp.asarray(actions)[row], jnp.asarray(weights)[row])

    return Agent(agent.name, act, deterministic=True)


def _chunks(solution: Solution) -> Iterator[np.ndarray]:
    """Yields chunks of decision states in three sizes; the states of a chunk are of one ply.

    Minimax takes about the same time for all states of a ply.
    """
    for start, end in itertools.pairwise(solution.layers):
        rows = np.arange(start, end)[~solution.over[start:end]]
        size = next(size for size in (1, 16, 256) if len(rows) <= size or size == 256)
        for first in range(0, len(rows), size):
            yield rows[np.minimum(np.arange(first, first + size), len(rows) - 1)]
