"""Searches made for looking at: one position, any evaluator, with its whole history."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax import games, oracle
from azjax.evaluators import exact_evaluator, rollout_evaluator, uniform_evaluator
from azjax.games.tic_tac_toe import from_board
from azjax.player import Player
from azjax.search import PUCT, make_search
from azjax.viz.positions import check_game
from azjax.viz.recording import record

MAX_SIMULATIONS = 500


@dataclasses.dataclass(frozen=True)
class Request:
    """A search that somebody wants to see.

    Attributes:
      board: nine numbers, row-major: 1 = X, -1 = O, 0 = empty.
      evaluator: `"network"`, `"uniform"`, `"rollout"` or `"exact"`.
      c_puct: weight of the exploration bonus.
      noise: share of Dirichlet noise in the root's prior.
      simulations: how many.
      seed: of noise and random games.
    """

    board: Sequence[int] = (0,) * 9
    evaluator: str = "uniform"
    c_puct: float = 1.25
    noise: float = 0.0
    simulations: int = 60
    seed: int = 0

    def __post_init__(self):
        if not 1 <= _number("simulations", self.simulations) <= MAX_SIMULATIONS:
            raise ValueError(
                f"simulations is {self.simulations}: use 1 to {MAX_SIMULATIONS}, so that the "
                "tree can be drawn"
            )
        if not 0 <= _number("c_puct", self.c_puct) <= 100:
            raise ValueError(f"c_puct is {self.c_puct}: use 0 to 100")
        if not 0 <= _number("noise", self.noise) <= 1:
            raise ValueError(f"noise is {self.noise}: use a share from 0 to 1")
        if not 0 <= _number("seed", self.seed) < 2**31:
            raise ValueError(f"seed is {self.seed}: use 0 to {2**31 - 1}")


def _number(name: str, value: Any) -> float:
    """Refuses what a browser may send in the place of a number."""
    whole = name in ("simulations", "seed")
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        raise ValueError(f"{name} is {value!r}: use a {'whole ' if whole else ''}number")
    return value


class Searcher:
    """Makes PUCT searches of tic-tac-toe on request, and records them.

    Attributes:
      evaluators: the names that it knows.
      solution: of the game.
    """

    def __init__(self, player: Player | None = None):
        """Prepares the evaluators.

        Args:
          player: a trained player of tic-tac-toe, for the evaluator `"network"`.

        Raises:
          ValueError: if the player plays another game.
        """
        game = games.make("tic_tac_toe")
        if player:
            check_game(player)
        self._game = game
        self._params = player.params if player else None
        self._evaluators = {"uniform": uniform_evaluator(game), "rollout": rollout_evaluator(game)}
        self.solution = oracle.solve(game)
        self._evaluators["exact"] = exact_evaluator(game, self.solution)
        if player:
            network = player.parts.evaluate
            self._evaluators = {"network": network, **self._evaluators}
        self.evaluators = tuple(self._evaluators)
        self._compiled = functools.lru_cache(maxsize=32)(self._compile)

    def record(self, request: Request, title: str = "") -> dict[str, Any]:
        """Searches, and returns the recording; see `recording.record`.

        Raises:
          ValueError: if the position cannot occur or is finished, or the evaluator is unknown.
        """
        if request.evaluator not in self._evaluators:
            known = ", ".join(self.evaluators)
            hint = "" if "network" in self._evaluators else "; a network needs a trained run"
            raise ValueError(f"evaluator {request.evaluator!r} is unknown: use {known}{hint}")
        state = from_board(request.board)
        if state.over:
            raise ValueError("the game is over in this position: there is nothing to search")
        search = self._compiled(request.evaluator, request.simulations, request.noise > 0)
        tree = search(
            self._params,
            jax.random.split(jax.random.key(request.seed), 1),
            jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], state),
            jnp.float32(request.c_puct),
            jnp.float32(request.noise),
        )
        settings = _settings(request.simulations, request.c_puct, request.noise)
        about = dataclasses.asdict(request) | {"title": title, "board": np.asarray(state.board)}
        return record(
            settings, tree, **{k: about[k] for k in ("title", "evaluator", "noise", "seed")}
        )

    def _compile(self, evaluator: str, simulations: int, add_noise: bool):
        """One program for all values of c_puct and noise."""

        def search(params, keys, states, c_puct, noise):
            settings = _settings(simulations, c_puct, noise)
            search = make_search(settings, self._game, self._evaluators[evaluator])
            return search(params, keys, states, add_noise=add_noise).tree

        return jax.jit(search)


def _settings(simulations, c_puct, noise) -> PUCT:
    return PUCT(num_simulations=simulations, c_puct=c_puct, dirichlet_fraction=noise)
