"""What the experiments share: the game, its players and how much of everything to do."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax import games
from azjax.games import solver
from azjax.games.base import Game, check_batch
from azjax.games.hashing import make_index
from azjax.games.solver import Solution
from azjax.players import (
    Agent,
    Decision,
    alpha_beta_agent,
    decide,
    minimax_agent,
    random_agent,
)
from azjax.search import PUCT, UCT, SearchResult, make_resumable
from azjax.search.evaluators import Evaluator, rollout_evaluator
from experiments.lecture.persistent import PersistentConfig, PersistentPlayer, make_persistent

ROOT_2 = math.sqrt(2)
Order = Literal["random", "last"]  # In which a learner tries untried moves.


@dataclasses.dataclass(frozen=True, eq=False)
class Setup:
    """One run of the lecture.

    Attributes:
      game: tic-tac-toe.
      solution: its exact solution.
      quick: whether to do little of everything.
      seed: of all randomness.
      advance: called with a number of finished games or searches, for a progress bar.
    """

    game: Game
    solution: Solution
    quick: bool
    seed: int
    advance: Callable[[int], None] = lambda count: None

    def key(self, experiment: str) -> jax.Array:
        """The key of one experiment, whatever the others do."""
        return jax.random.fold_in(jax.random.key(self.seed), sum(map(ord, experiment)))

    @property
    def batch_size(self) -> int:
        """Games played side by side in matches; one size, so one program for each pairing."""
        return self.choose(1024, 256)

    def choose(self, full: Any, quick: Any) -> Any:
        """One of two amounts."""
        return quick if self.quick else full


class Experiment(NamedTuple):
    """One experiment.

    Attributes:
      title: its heading on the page.
      compute: `Setup -> results`; numbers and lists, for JSON.
      show: `(results, page)`, puts tables and pictures on the page.
      weight: how long it takes beside the others; the longest are started first.
      counts: whether its results are numbers, and go into results.json.
    """

    title: str
    compute: Callable[[Setup], Any]
    show: Callable[[Any, Any], None]
    weight: int = 0
    counts: bool = True


def make_setup(quick: bool, seed: int) -> Setup:
    """Prepares a run."""
    game = games.make("tic_tac_toe")
    return Setup(game, solver.solve(game), quick, seed)


def flexible_search(
    game: Game, algorithm: UCT | PUCT, evaluate: Evaluator
) -> Callable[..., SearchResult]:
    """Builds `search(params, keys, states, count, **settings)`, compiled once for all values.

    `count` is the number of simulations, at most `algorithm.num_simulations`, and `settings` are
    other ones of the algorithm, such as `exploration` of UCT; all may be traced.
    """

    def search(params, keys, states, count, **settings):
        steps = make_resumable(dataclasses.replace(algorithm, **settings), game, evaluate)
        tree = steps.start(params, keys, states, count)
        tree = steps.grow(params, keys, states, count, tree, 0, count)
        return steps.finish(params, keys, states, count, tree)

    return search


_ROOM = 500  # The most simulations of any MCTS player; one room for all, so one program.


@functools.cache
def _classic() -> Agent:
    """MCTS whose `params` are its simulations and C, so that all such players share programs."""
    game = games.make("tic_tac_toe")
    search = flexible_search(game, UCT(num_simulations=_ROOM), rollout_evaluator(game))

    def act(params, key, states):
        count, exploration = params
        keys = jax.random.split(key, check_batch(game, states))
        return decide(search(None, keys, states, count, exploration=exploration))

    return Agent("MCTS", act, nodes=_ROOM + 1)


def classic(simulations: int, exploration: float = ROOT_2) -> Agent:
    """The lecture's MCTSClassicSolver: a new tree for every move."""
    params = (jnp.int32(simulations), jnp.float32(exploration))
    return _classic()._replace(name=f"MCTS({simulations})", params=params)


@functools.cache
def random_player() -> Agent:
    """Plays any legal move."""
    return random_agent(games.make("tic_tac_toe"))


@functools.cache
def searcher(name: str) -> Agent:
    """Minimax or alpha-beta: each searched once in every position, then looked up."""
    game = games.make("tic_tac_toe")
    agent = (minimax_agent if name == "minimax" else alpha_beta_agent)(game)
    return tabulated(game, solver.solve(game), agent)


def tabulated(game: Game, solution: Solution, agent: Agent) -> Agent:
    """Makes a table of a deterministic player's moves, and plays them from the table."""
    index, decide_all = make_index(game, solution.states), jax.jit(agent.act)
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
    """Yields chunks of the decision states, of few sizes, each of one ply and so alike in cost."""
    for start, end in itertools.pairwise(solution.layers):
        rows = np.arange(start, end)[~solution.over[start:end]]
        size = next(size for size in (1, 16, 256) if len(rows) <= size or size == 256)
        for first in range(0, len(rows), size):
            yield rows[np.minimum(np.arange(first, first + size), len(rows) - 1)]


@functools.cache
def learner(simulations: int, expansion: Order = "last") -> PersistentPlayer:
    """The lecture's MCTSSolver: one tree for all moves and games."""
    config = PersistentConfig(simulations, expansion=expansion, capacity=2**13)
    return make_persistent(games.make("tic_tac_toe"), config)
