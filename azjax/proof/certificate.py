"""The certificate: what is proved about a trained network, and which run trained it.

A network is *perfect* if it chooses a move that keeps the outcome in every reachable position,
alone and with each verified search; with dice, a move that loses at most 0.001 of the expected
outcome. This is a property of its moves: wrong signs of its values are reported, but a perfect
network may have some. A network is *unbeatable* if it has no losing line without search. In games
with chance, every player can lose: the certificate says how much of the expected outcome the moves
lose.
"""

import dataclasses
import functools
import importlib.metadata
import platform
import time
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import jax
import numpy as np

from azjax import runs
from azjax._settings import Count, checked
from azjax._version import __version__
from azjax.games import solver
from azjax.games.base import Game, State, explain_size
from azjax.games.rows import in_batches
from azjax.games.solver import Solution
from azjax.proof.enumeration import LARGE_LOSS, Verdict, verify_outputs
from azjax.runs.player import Player, changed
from azjax.search import ALGORITHMS, PUCT, Algorithm, Gumbel

# A number is a bound on the largest loss of expected outcome in a game with chance.
Goal = Literal["perfect", "unbeatable", "never"] | float

SLICE = 8192  # Positions in one call of a network or a search.


@dataclasses.dataclass(frozen=True)
class VerifiedSearch:
    """A search that was verified with the network."""

    algorithm: str
    num_simulations: int
    blunders: int  # Positions where the move of the search worsens the outcome.
    largest_loss: float | None = None  # Of expected outcome, in games with chance.


@dataclasses.dataclass(frozen=True)
class Certificate:
    """The result of verifying a network in every reachable position."""

    game: str
    decision_states: int  # Verified positions, those in which a player is to move.
    blunders: int  # Of the network alone; see `enumeration.Verdict`, also for the other results.
    searches: tuple[VerifiedSearch, ...]  # The network with each search.
    iterations: int
    moves: int  # Of self-play.
    seconds: float  # Until this result: of all sessions of a training, or of `verify`.
    seed: int | None  # None: unknown.
    versions: dict[str, str]
    device: str
    losing_lines_first: int | None = None  # None in games with chance.
    losing_lines_second: int | None = None
    value_sign_errors: int | None = None
    large_blunders: int | None = None  # None in games without chance; these lose more than 0.01.
    largest_loss: float | None = None
    mean_loss: float | None = None

    @property
    def unbeatable(self) -> bool:
        """Whether the network alone has no losing line, moving first or second."""
        return self.losing_lines_first == 0 == self.losing_lines_second

    @property
    def perfect(self) -> bool:
        """Whether the network, alone and with each search, has no blunder in any position."""
        blunders = self.blunders + sum(search.blunders for search in self.searches)
        return not blunders and (self.unbeatable or self.largest_loss is not None)

    def reaches(self, goal: Goal) -> bool:
        """Whether a goal is proved."""
        if isinstance(goal, float):
            return self.largest_loss is not None and self.largest_loss <= goal
        return goal != "never" and (self.perfect if goal == "perfect" else self.unbeatable)

    def as_json(self) -> dict[str, Any]:
        """Returns a JSON object: `perfect`, `unbeatable` and the fields, without those of None."""
        fields = {name: x for name, x in dataclasses.asdict(self).items() if x is not None}
        return {"perfect": self.perfect, "unbeatable": self.unbeatable, "seed": None} | fields


_ROWS = {  # Names of the fields; rows for the searches follow `blunders`.
    "game": "game",
    "decision_states": "decision states checked",
    "blunders": "blunders, network alone",
    "losing_lines_first": "losing lines as first player, network alone",
    "losing_lines_second": "losing lines as second player, network alone",
    "value_sign_errors": "wrong value signs (not required)",
    "large_blunders": "blunders that lose more than 0.01",
    "largest_loss": "largest loss of expected outcome",
    "mean_loss": "mean loss of expected outcome",
    "iterations": "training iterations",
    "moves": "self-play moves",
    "seconds": "seconds until this result",
    "seed": "seed",
    "device": "device",
}


def certificate_table(content: dict[str, Any]) -> tuple[str, list[tuple[str, str]]]:
    """Returns the title and the rows that show a certificate, which is given as JSON."""
    title = "Not proved: this player can be beaten"
    if "largest_loss" in content:
        loss = f"{content['largest_loss']:.4f}"
        title = f"Verified: no move loses more than {loss} of the expected outcome"
    elif content["perfect"]:
        title = "Perfect: every move keeps the outcome, in every reachable position"
    elif content["unbeatable"]:
        title = "Unbeatable: no losing line as first or second player"
    rows = [(label, _write(content[name])) for name, label in _ROWS.items() if name in content]
    rows[3:3] = [
        (f"blunders, network + {s['algorithm']}({s['num_simulations']})", _write(s["blunders"]))
        for s in content["searches"]
    ]
    versions = ", ".join(f"{name} {version}" for name, version in content["versions"].items())
    return title, [*rows, ("versions", versions)]


def _write(value: Any) -> str:
    is_number = isinstance(value, int | float)
    return f"{round(value, 6):,}" if is_number else value or "unknown"


def reached(goal: Goal, verdict: Verdict) -> bool:
    """Whether the verdict on the network alone reaches a goal."""
    if isinstance(goal, float):
        return verdict.losses is not None and float(verdict.losses.max()) <= goal
    if goal == "perfect":
        return int(verdict.blunders) == 0
    return goal == "unbeatable" and not np.any(verdict.losing_lines)


def default_goal(game: Game) -> Goal:
    """Returns what can be proved about a player of a game that can be enumerated."""
    return "perfect" if game.chance is None else LARGE_LOSS


def check_goal(goal: Goal, game: Game) -> None:
    """Raises a ValueError if nothing can be proved about this goal in a game that can be solved."""
    use, fits = "'perfect' or 'unbeatable', as it has no dice", not isinstance(goal, float)
    if game.chance is not None:  # Every player can lose.
        use = "'perfect' or a bound on the loss of expected outcome, from 0 to 2, such as 0.01"
        fits = 0 <= goal <= 2 if isinstance(goal, float) else goal != "unbeatable"
    if not fits:
        raise ValueError(f"until is {goal!r}: in {game.name}, use {use}")


def versions() -> dict[str, str]:
    """Returns the versions of azjax, Python and the packages that results depend on."""
    version, packages = importlib.metadata.version, ("jax", "jaxlib", "flax", "optax", "mctx")
    installed = {name: version(name) for name in packages}
    return {"azjax": __version__, "python": platform.python_version(), **installed}


def device_name(devices: Iterable[Any] | None = None) -> str:
    """Returns the number and kind of devices, by default all, such as `1 x NVIDIA H200`."""
    kinds = [device.device_kind for device in devices or jax.devices()]
    return f"{len(kinds)} x {kinds[0]}"


def searches_to_verify(
    search: Algorithm, num_simulations: int | None = None
) -> tuple[Algorithm, ...]:
    """Returns the searches to verify: PUCT, Gumbel, and the search of training with its settings.

    Random searches are left out, since nothing can be proved about them. By default PUCT and Gumbel
    have 32 simulations, and another search its own number.
    """
    kinds = {kind.algorithm: kind for kind in (PUCT(), Gumbel(), search)}
    return tuple(
        kind
        if num_simulations is None and kind.algorithm not in ALGORITHMS
        else changed(kind, num_simulations=num_simulations or 32)
        for kind in kinds.values()
        if kind.is_deterministic
    )


def policy(player: Player, search: Algorithm | None, states: State) -> tuple[jax.Array, jax.Array]:
    """Returns scores of moves and values, of the network alone or with a search, without noise.

    The value of a search is that of the move it plays. The value of its root is a mean over all
    visits, including visits to moves that Gumbel rejects.
    """
    if search is None:
        return player.evaluate(states)
    result = player.search(jax.random.key(0), states, search)
    played = jax.nn.one_hot(result.action, player.game.num_actions)
    return played, (played * result.q_values).sum(axis=1)


def examine(player: Player, solution: Solution, search: Algorithm | None = None) -> Verdict:
    """Verifies a network, alone or with a search."""
    evaluate = functools.partial(policy, player, search)
    size = min(len(solution.decisions), SLICE)
    return verify_outputs(solution, *in_batches(evaluate, (solution.decision_states,), size))


def verify(
    player: Player, simulations: Sequence[int] | None = None, *, solution: Solution | None = None
) -> Certificate:
    """Verifies a player in every position of its game: its network alone, and with searches.

    The overrides of a player are not used. `azjax.proof.verify_outputs` verifies any other policy,
    such as an evaluator.

    Args:
      player: a trained player, from `azjax.load`.
      simulations: simulations of the searches; empty for the network alone; by default those of
        `searches_to_verify`.
      solution: the solution of the game; by default it is computed.
    """
    started = time.monotonic()
    game, parts = checked("player", player, Player).game, player.parts
    simulations = checked("simulations", simulations, tuple[Count, ...] | None)
    if not game.enumerable:
        raise ValueError(
            f"{explain_size(game)}: play matches instead, with azjax.players.arena, or in a game "
            "without dice a seat against every reply, with prove_seat"
        )
    numbers = [None] if simulations is None else [number for number in simulations if number]
    searches = [search for number in numbers for search in searches_to_verify(parts.search, number)]
    solution = solver.solve(game) if solution is None else solution
    alone, *searched = (examine(player, solution, search) for search in (None, *searches))
    moves = player.moves
    if moves is None:
        moves = player.iteration * parts.selfplay.games * parts.selfplay.unroll_length
    return Certificate(
        game=game.name,
        decision_states=len(solution.decisions),
        searches=tuple(
            VerifiedSearch(
                search.algorithm,
                int(search.num_simulations),
                int(verdict.blunders),
                verdict.counts().get("largest_loss"),
            )
            for search, verdict in zip(searches, searched, strict=True)
        ),
        **alone.counts(),
        iterations=player.iteration,
        moves=moves,
        seconds=round(time.monotonic() - started, 1),
        seed=None if player.run_dir is None else runs.read_config(player.run_dir).seed,
        versions=versions(),
        device=device_name(jax.devices()[:1]),
    )
