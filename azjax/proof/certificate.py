"""The certificate: what is proved about a trained network, and which run trained it.

A network is *perfect* if it chooses a move that keeps the outcome in every reachable position,
alone and with each verified search. This is a property of its moves: wrong signs of its values are
reported, but a perfect network may have some. A network is *unbeatable* if it has no losing line
without search.
"""

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
from azjax import runs
from azjax._settings import Count, checked
from azjax.games import solver
from azjax.games.base import Policy
from azjax.games.rows import in_batches
from azjax.games.solver import Solution
from azjax.proof.verify import Verdict, verify_outputs
from azjax.runs.player import Player, changed
from azjax.search import ALGORITHMS, PUCT, Algorithm, Gumbel, make_search
from azjax.training.memory import check_trees
from azjax.training.parts import Parts

Goal = Literal["perfect", "unbeatable", "never"]

SLICE = 8192  # Positions in one call of a network or a search.


@dataclasses.dataclass(frozen=True)
class VerifiedSearch:
    """A search that was verified with the network."""

    algorithm: str
    num_simulations: int
    blunders: int  # Positions where the move of the search worsens the outcome.


@dataclasses.dataclass(frozen=True)
class Certificate:
    """The result of verifying a network in every reachable position."""

    game: str
    decision_states: int  # Verified positions, those in which the game is not over.
    blunders: int  # Positions where the move of the network alone worsens the outcome.
    searches: tuple[VerifiedSearch, ...]  # The network with each search.
    losing_lines_first: int  # Of the network alone; see `verify.count_losing_lines`.
    losing_lines_second: int
    value_sign_errors: int  # Won or lost positions whose value has the wrong sign, or is 0 or NaN.
    iterations: int
    moves: int  # Of self-play.
    seconds: float  # Until the proof, including all sessions of a run.
    seed: int
    versions: dict[str, str]
    device: str

    @property
    def unbeatable(self) -> bool:
        """Whether the network alone has no losing line, moving first or second."""
        return self.losing_lines_first + self.losing_lines_second == 0

    @property
    def perfect(self) -> bool:
        """Whether the network, alone and with each search, keeps the outcome in every position."""
        blunders = self.blunders + sum(search.blunders for search in self.searches)
        return self.unbeatable and not blunders

    def as_json(self) -> dict[str, Any]:
        """Returns a JSON object: `perfect`, `unbeatable` and the fields."""
        return {"perfect": self.perfect, "unbeatable": self.unbeatable} | dataclasses.asdict(self)


_ROWS = {  # Names of the fields; rows for the searches follow `blunders`.
    "game": "game",
    "decision_states": "decision states checked",
    "blunders": "blunders, network alone",
    "losing_lines_first": "losing lines as first player, network alone",
    "losing_lines_second": "losing lines as second player, network alone",
    "value_sign_errors": "wrong value signs (not required)",
    "iterations": "training iterations",
    "moves": "self-play moves",
    "seconds": "seconds until the proof",
    "seed": "seed",
    "device": "device",
}


def certificate_table(content: dict[str, Any]) -> tuple[str, list[tuple[str, str]]]:
    """Returns the title and the rows that show a certificate, which is given as JSON."""
    title = "Not proved: this player can be beaten"
    if content["unbeatable"]:
        title = "Unbeatable: no losing line as first or second player"
    if content["perfect"]:
        title = "Perfect: every move keeps the outcome, in every reachable position"
    values = ((label, content[name]) for name, label in _ROWS.items())
    rows = [(label, f"{x:,}" if isinstance(x, int) else str(x)) for label, x in values]
    rows[3:3] = [
        (f"blunders, network + {s['algorithm']}({s['num_simulations']})", f"{s['blunders']:,}")
        for s in content["searches"]
    ]
    versions = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    return title, [*rows, ("versions", versions)]


def reached(goal: Goal, verdict: Verdict) -> bool:
    """Whether the verdict on the network alone reaches a goal."""
    if goal == "perfect":
        return int(verdict.blunders) == 0
    return goal == "unbeatable" and not np.any(verdict.losing_lines)


def network_policy(parts: Parts, params: Any) -> Policy:
    """Returns the network alone as a policy; `params` is its inference form."""
    return lambda states: parts.evaluate(params, None, states)


def search_policy(parts: Parts, search: Algorithm, params: Any) -> Policy:
    """Returns the network with a search, without noise, as a policy."""
    find = make_search(search, parts.game, parts.evaluate)

    def policy(states):
        result = find(params, jax.random.key(0), states)
        return jax.nn.one_hot(result.action, parts.game.num_actions), result.value

    return policy


def versions() -> dict[str, str]:
    """Returns the versions of azjax, Python and the packages that results depend on."""
    packages = ("jax", "jaxlib", "flax", "optax", "mctx")
    installed = {name: importlib.metadata.version(name) for name in packages}
    return {"azjax": azjax.__version__, "python": platform.python_version(), **installed}


def device_name() -> str:
    """Returns the number and kind of the devices, such as `1 x NVIDIA H200`."""
    devices = jax.devices()
    return f"{len(devices)} x {devices[0].device_kind}"


def searches_to_verify(
    search: Algorithm, num_simulations: int | None = None
) -> tuple[Algorithm, ...]:
    """Returns the searches to verify: PUCT, Gumbel, and the search of training with its settings.

    Random searches are left out, since nothing can be proved about them. By default PUCT and Gumbel
    have 32 simulations, and another search its own number.
    """
    kinds = {kind.algorithm: kind for kind in (PUCT(), Gumbel(), search)}

    def sized(kind: Algorithm) -> Algorithm:
        if num_simulations is None and kind.algorithm not in ALGORITHMS:
            return kind
        return changed(kind, num_simulations=num_simulations or 32)

    return tuple(sized(kind) for kind in kinds.values() if kind.is_deterministic)


def make_verifier(solution: Solution) -> Callable[[Any, Any], Verdict]:
    """Builds a compiled `(scores [D, A], values [D]) -> Verdict` without a copy of the solution."""
    needed = ("player", "legal", "children", "rewards", "values", "optimal", "decisions")
    arrays = {name: jnp.asarray(getattr(solution, name)) for name in needed}

    @jax.jit  # The arrays are arguments: constants would be copied into the program.
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

    It verifies a network, given in its inference form, in every decision state, alone and with each
    search; by default those of `searches_to_verify`. The first call compiles. `started` is the
    `time.monotonic()` from which seconds count. `notify` is called with the name of a player, such
    as `network alone`, and its number of verified states.
    """
    searches = searches_to_verify(parts.search) if searches is None else tuple(searches)
    size = min(len(solution.decisions), SLICE)
    verdict_on = make_verifier(solution)
    for search in searches:
        check_trees(search, parts.game, size)

    @functools.partial(jax.jit, static_argnums=1)
    def evaluate(params, search: Algorithm | None, states) -> tuple[jax.Array, jax.Array]:
        if search is None:
            return network_policy(parts, params)(states)
        return search_policy(parts, search, params)(states)

    def verify_one(params, search: Algorithm | None) -> Verdict:
        name = f"{search.algorithm}({search.num_simulations})" if search else "network alone"
        one = functools.partial(evaluate, params, search)
        states, advance = solution.decision_states, functools.partial(notify, name)
        return verdict_on(*in_batches(one, (states,), size, advance))

    def certify(params: Any, iterations: int, started: float, seed: int) -> Certificate:
        raw = verify_one(params, None)
        verified = [
            VerifiedSearch(s.algorithm, int(s.num_simulations), int(verify_one(params, s).blunders))
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
    """Returns the certificate of a verdict; seconds count from `started`, a `time.monotonic()`."""
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
        seconds=round(time.monotonic() - started, 1),
        seed=seed,
        versions=versions(),
        device=device_name(),
    )


def verify(
    player: Player,
    simulations: Sequence[int] | None = None,
    *,
    solution: Solution | None = None,
    notify: Callable[[str, int], None] = lambda name, done: None,
    started: float | None = None,
) -> Certificate:
    """Verifies a player in every position of its game: its network alone, and with searches.

    The overrides of a player are not used.

    Args:
      player: a trained player, from `azjax.load`.
      simulations: simulations of the searches; empty for the network alone; by default those of
        `searches_to_verify`.
      solution: the solution of the game; by default it is computed.
      notify: called with the name of a player, such as `network alone`, and its number of verified
        states.
      started: the `time.monotonic()` from which seconds count; now, by default.
    """
    checked("player", player, Player)
    simulations = checked("simulations", simulations, tuple[Count, ...] | None)
    if not player.game.enumerable:
        raise ValueError(
            f"{player.game.name} has too many positions to enumerate: play a seat against every "
            "reply instead, with prove_seat"
        )
    numbers = [None] if simulations is None else [number for number in simulations if number]
    searches = [
        search for number in numbers for search in searches_to_verify(player.parts.search, number)
    ]
    solution = solver.solve(player.game) if solution is None else solution
    seed = 0 if player.run_dir is None else runs.read_config(player.run_dir).seed
    certify = make_certifier(player.parts, solution, searches, notify)
    started = time.monotonic() if started is None else started
    certificate = certify(player.params, player.iteration, started, seed)
    moves = certificate.moves if player.moves is None else player.moves
    return dataclasses.replace(certificate, moves=moves)
