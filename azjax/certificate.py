"""The certificate: what was proved about a trained network, and how it came about."""

import dataclasses
import functools
import importlib.metadata
import platform
import time
from collections.abc import Callable
from typing import Any, Literal

import jax
import numpy as np

import azjax
from azjax.memory import check_trees
from azjax.oracle import Solution
from azjax.search import SearchConfig, make_search
from azjax.train import Config, Parts
from azjax.verify import Policy, Verdict, verify

Goal = Literal["perfect", "unbeatable", "never"]


@dataclasses.dataclass(frozen=True)
class Certificate:
    """The result of a proof over every reachable position; `dataclasses.asdict` is JSON.

    Attributes:
      game: its name.
      decision_states: positions examined.
      blunders: positions where the raw network's move throws away value.
      puct_blunders: the same for the network with PUCT search.
      gumbel_blunders: the same with Gumbel search.
      num_simulations: of those searches.
      losing_lines_first: complete games lost by the raw network moving first, over every
        reply of the opponent.
      losing_lines_second: the same moving second.
      value_sign_errors: won or lost positions whose value has the wrong sign.
      iterations: training iterations made.
      moves: self-play moves made.
      seconds: from the start of the process to the end of the proof, over all its resumes.
      seed: the run's seed.
      versions: of Python and the packages that matter.
      device: what it ran on.
    """

    game: str
    decision_states: int
    blunders: int
    puct_blunders: int
    gumbel_blunders: int
    num_simulations: int
    losing_lines_first: int
    losing_lines_second: int
    value_sign_errors: int
    iterations: int
    moves: int
    seconds: float
    seed: int
    versions: dict[str, str]
    device: str

    @property
    def unbeatable(self) -> bool:
        """Whether the raw network loses no line from either seat."""
        return self.losing_lines_first + self.losing_lines_second == 0

    @property
    def perfect(self) -> bool:
        """Whether the network, alone and with either search, is optimal everywhere."""
        return self.unbeatable and not (self.blunders or self.puct_blunders or self.gumbel_blunders)


def reached(goal: Goal, verdict: Verdict) -> bool:
    """Whether the raw network's verdict reaches a goal."""
    if goal == "perfect":
        return int(verdict.blunders) == 0
    return goal == "unbeatable" and not np.any(verdict.losing_lines)


def network_policy(parts: Parts, params: Any) -> Policy:
    """The raw network as a policy for `verify`; `params` is its inference form."""
    return lambda states: parts.evaluate(params, None, states)


def search_policy(parts: Parts, config: SearchConfig, params: Any) -> Policy:
    """The network with search as a policy: the move that the search, without noise, plays."""
    search = make_search(config, parts.game, parts.evaluate)

    def policy(states):
        result = search(params, jax.random.key(0), states)
        return jax.nn.one_hot(result.action, parts.game.num_actions), result.value

    return policy


@functools.lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Versions of Python and of the packages that the result depends on."""
    packages = ("jax", "jaxlib", "flax", "optax", "mctx")
    found = {name: importlib.metadata.version(name) for name in packages}
    return {"azjax": azjax.__version__, "python": platform.python_version(), **found}


def device_name() -> str:
    """What the computation runs on, such as `1 x NVIDIA H200`."""
    devices = jax.devices()
    return f"{len(devices)} x {devices[0].device_kind}"


def make_certifier(
    config: Config, parts: Parts, solution: Solution, num_simulations: int = 32
) -> Callable[[Any, int, float], Certificate]:
    """Builds `certify(params, iterations, started) -> Certificate`.

    It examines a network in every decision state: alone, with PUCT and with Gumbel. The
    first call compiles.

    Args:
      config: the run's configuration; its search settings are kept, but for the number of
        simulations.
      parts: from `train.make_parts(config)`.
      solution: from `oracle.solve`.
      num_simulations: for the two searches.

    Returns:
      A function of `params`, the network's in its inference form; `iterations`, made so
      far; and `started`, the `time.time()` from which the seconds on record count.

    Raises:
      ValueError: if the searches' trees do not fit in memory.
    """

    def examine(params) -> Verdict:
        return verify(solution, network_policy(parts, params))

    searches = {
        algorithm: dataclasses.replace(
            config.search, algorithm=algorithm, num_simulations=num_simulations
        )
        for algorithm in ("puct", "gumbel")
    }
    for search in searches.values():
        check_trees(search, parts.game, len(solution.decisions))

    def blunders(params, algorithm: str) -> jax.Array:
        return verify(solution, search_policy(parts, searches[algorithm], params)).blunders

    examine, blunders = jax.jit(examine), jax.jit(blunders, static_argnums=1)

    def certify(params: Any, iterations: int, started: float) -> Certificate:
        raw = examine(params)
        return Certificate(
            game=parts.game.name,
            decision_states=int(raw.decision_states),
            blunders=int(raw.blunders),
            puct_blunders=int(blunders(params, "puct")),
            gumbel_blunders=int(blunders(params, "gumbel")),
            num_simulations=num_simulations,
            losing_lines_first=int(raw.losing_lines[0]),
            losing_lines_second=int(raw.losing_lines[1]),
            value_sign_errors=int(raw.value_sign_errors),
            iterations=iterations,
            moves=iterations * config.selfplay.games * config.selfplay.plies,
            seconds=round(time.time() - started, 1),
            seed=config.seed,
            versions=versions(),
            device=device_name(),
        )

    return certify
