"""The certificate: what was proved about a trained network, and the run that trained it."""

import dataclasses
import functools
import importlib.metadata
import platform
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

import azjax
from azjax.games.base import Policy
from azjax.games.rows import in_batches
from azjax.games.solver import Solution
from azjax.proof.verify import Verdict, verify_outputs
from azjax.search import PUCT, Algorithm, Gumbel, make_search
from azjax.training.memory import check_trees
from azjax.training.parts import Parts

Goal = Literal["perfect", "unbeatable", "never"]

_SLICE = 8192  # Positions in one call of a network or a search.


@dataclasses.dataclass(frozen=True)
class VerifiedSearch:
    """A search that was verified with the network.

    Attributes:
      algorithm: its name.
      num_simulations: of each of its searches.
      blunders: positions where its move throws away value.
    """

    algorithm: str
    num_simulations: int
    blunders: int


@dataclasses.dataclass(frozen=True)
class Certificate:
    """The result of a proof over every reachable position; `dataclasses.asdict` is JSON.

    Attributes:
      game: its name.
      decision_states: positions verified.
      blunders: positions where the raw network's move throws away value.
      searches: the same for the network with each search.
      losing_lines_first: games lost by the raw network moving first, over all replies, from
        positions that perfect play would not lose.
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
    searches: tuple[VerifiedSearch, ...]
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
        """Whether the raw network has no losing line, from either seat."""
        return self.losing_lines_first + self.losing_lines_second == 0

    @property
    def perfect(self) -> bool:
        """Whether the network, alone and with every search, is optimal everywhere."""
        blunders = self.blunders + sum(search.blunders for search in self.searches)
        return self.unbeatable and not blunders

    def as_json(self) -> dict[str, Any]:
        """Returns it as a JSON object, with its verdict."""
        return {"perfect": self.perfect, "unbeatable": self.unbeatable} | dataclasses.asdict(self)


_ROWS = {  # Of `Certificate`, in words; those of the searches come after the raw network's.
    "game": "game",
    "decision_states": "decision states checked",
    "blunders": "blunders, raw network",
    "losing_lines_first": "losing lines, raw network as first player",
    "losing_lines_second": "losing lines, raw network as second player",
    "value_sign_errors": "wrong value signs",
    "iterations": "iterations",
    "moves": "self-play moves",
    "seconds": "seconds, whole process",
    "seed": "seed",
    "device": "device",
}


def certificate_table(content: dict[str, Any]) -> tuple[str, list[tuple[str, str]]]:
    """Returns a certificate, given as JSON, in words: a title that says what it proves, and rows.

    Raises:
      KeyError, TypeError: if it is not a certificate.
    """
    title = "Not proved: this player can be beaten"
    if content["unbeatable"]:
        title = "Unbeatable: no losing line from either seat"
    if content["perfect"]:
        title = "Perfect: optimal in every reachable position"
    values = ((words, content[name]) for name, words in _ROWS.items())
    rows = [(words, f"{x:,}" if isinstance(x, int) else str(x)) for words, x in values]
    rows[3:3] = [
        (f"blunders, network + {s['algorithm']}({s['num_simulations']})", f"{s['blunders']:,}")
        for s in content["searches"]
    ]
    versions = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    return title, [*rows, ("versions", versions)]


def reached(goal: Goal, verdict: Verdict) -> bool:
    """Whether the raw network's verdict reaches a goal."""
    if goal == "perfect":
        return int(verdict.blunders) == 0
    return goal == "unbeatable" and not np.any(verdict.losing_lines)


def network_policy(parts: Parts, params: Any) -> Policy:
    """The raw network as a policy for `verify`; `params` is its inference form."""
    return lambda states: parts.evaluate(params, None, states)


def search_policy(parts: Parts, search: Algorithm, params: Any) -> Policy:
    """The network with search as a policy: the move that the search, without noise, plays."""
    find = make_search(search, parts.game, parts.evaluate)

    def policy(states):
        result = find(params, jax.random.key(0), states)
        return jax.nn.one_hot(result.action, parts.game.num_actions), result.value

    return policy


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that the result depends on."""
    packages = ("jax", "jaxlib", "flax", "optax", "mctx")
    installed = {name: importlib.metadata.version(name) for name in packages}
    return {"azjax": azjax.__version__, "python": platform.python_version(), **installed}


def device_name() -> str:
    """What the computation runs on, such as `1 x NVIDIA H200`."""
    devices = jax.devices()
    return f"{len(devices)} x {devices[0].device_kind}"


def searches_to_verify(search: Any, num_simulations: int = 32) -> tuple[Algorithm, ...]:
    """PUCT, Gumbel, and the search that a run trained with in its own settings.

    Nothing can be proved about random searches, so they are left out.
    """
    kinds: dict[str, Any] = {"puct": PUCT(), "gumbel": Gumbel(), search.algorithm: search}
    return tuple(
        dataclasses.replace(kind, num_simulations=num_simulations)
        for kind in kinds.values()
        if kind.is_deterministic
    )


def make_verifier(solution: Solution) -> Callable[[Any, Any], Verdict]:
    """Builds `(scores [D, A], values [D]) -> Verdict`, compiled.

    The solution is an argument of the program, so that the program does not hold a copy of it.
    """
    needed = ("player", "legal", "children", "rewards", "values", "optimal", "decisions")
    arrays = {name: jnp.asarray(getattr(solution, name)) for name in needed}

    @jax.jit
    def verify_with(arrays, scores, values) -> Verdict:
        return verify_outputs(solution._replace(**arrays), scores, values)

    return functools.partial(verify_with, arrays)


def make_certifier(
    parts: Parts,
    solution: Solution,
    searches: Sequence[Algorithm] | None = None,
    notify: Callable[[str, int], None] = lambda name, done: None,
) -> Callable[[Any, int, float, int], Certificate]:
    """Builds `certify(params, iterations, started, seed) -> Certificate`.

    It verifies a network in every decision state: alone, and with each of the searches. The first
    call compiles. Many states are evaluated in slices.

    Args:
      parts: what was trained.
      solution: of its game.
      searches: to be verified with the network; those of `searches_to_verify` if None.
      notify: is called with the name of what is verified and the number of states done.

    Returns:
      A function of `params`, the network's in its inference form; `iterations`, made so
      far; `started`, the `time.time()` from which the seconds on record count; and the run's
      `seed`.

    Raises:
      ValueError: if the searches' trees do not fit in memory.
    """
    searches = searches_to_verify(parts.search) if searches is None else tuple(searches)
    size = min(len(solution.decisions), _SLICE)
    verify = make_verifier(solution)
    for search in searches:
        check_trees(search, parts.game, size)

    @functools.partial(jax.jit, static_argnums=1)
    def ask(params, search: Algorithm | None, states) -> tuple[jax.Array, jax.Array]:
        if search is None:
            return network_policy(parts, params)(states)
        return search_policy(parts, search, params)(states)

    def verify_one(params, search: Algorithm | None) -> Verdict:
        name = f"{search.algorithm}({search.num_simulations})" if search else "network alone"
        one = functools.partial(ask, params, search)
        states, advance = solution.decision_states, functools.partial(notify, name)
        return verify(*in_batches(one, (states,), size, advance))

    def certify(params: Any, iterations: int, started: float, seed: int) -> Certificate:
        raw = verify_one(params, None)
        verified = [
            VerifiedSearch(s.algorithm, s.num_simulations, int(verify_one(params, s).blunders))
            for s in searches
        ]
        return issue(parts, raw, verified, iterations, started, seed)

    return certify


def issue(
    parts: Parts,
    raw: Verdict,
    searches: Sequence[VerifiedSearch],
    iterations: int,
    started: float,
    seed: int,
) -> Certificate:
    """Returns the certificate of a verdict; `started` is the run's, in `time.time()`."""
    selfplay = parts.selfplay
    return Certificate(
        game=parts.game.name,
        decision_states=int(raw.decision_states),
        blunders=int(raw.blunders),
        searches=tuple(searches),
        losing_lines_first=int(raw.losing_lines[0]),
        losing_lines_second=int(raw.losing_lines[1]),
        value_sign_errors=int(raw.value_sign_errors),
        iterations=iterations,
        moves=iterations * selfplay.games * selfplay.unroll_length,
        seconds=round(time.time() - started, 1),
        seed=seed,
        versions=versions(),
        device=device_name(),
    )
