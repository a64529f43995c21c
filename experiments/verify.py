"""Proves or refutes a checkpoint again, from disk: `python -m experiments.verify`."""

import time

from experiments import interrupts

_STARTED = time.time()  # Before the heavy imports: figures count the whole process.
if __name__ == "__main__":
    interrupts.listen()

import dataclasses
import json
import sys
from typing import Literal

import jax
import numpy as np

from azjax import certificate as certificates
from azjax import oracle, runs
from azjax.player import Player
from azjax.settings import MOST_SIMULATIONS, check_range
from azjax.verify import verify
from experiments import console, own


@dataclasses.dataclass(frozen=True)
class Options:
    """Examines a trained network in every reachable position and lists its blunders."""

    until: Literal["perfect", "unbeatable"] = "perfect"
    """What must hold for exit status 0."""
    simulations: int = 32
    """Simulations of the two searches."""
    limit: int = 5
    """How many blunders to draw."""
    json: bool = False
    """Print the certificate as JSON and nothing else."""
    typed: own.Option = own.NOTHING

    def __post_init__(self):
        check_range("--", self, "simulations", 1, MOST_SIMULATIONS)
        check_range("--", self, "limit", 0)


def examine(options: Options) -> int:
    """Prints the certificate and the blunders; the exit status says whether it holds."""
    run_dir, player = own.open_run(options.typed)
    solution = oracle.solve(player.game)
    searches = certificates.searches_to_examine(player.parts.search, options.simulations)
    certify = certificates.make_certifier(player.parts, solution, searches)
    seed = runs.read_config(run_dir).seed
    certificate = certify(player.params, player.iteration, _STARTED, seed)
    if options.json:
        print(json.dumps(certificate.as_json(), indent=2))
    else:
        console.show_certificate(certificate)
        _show_blunders(player, solution, options.limit)
    holds = certificate.perfect if options.until == "perfect" else certificate.unbeatable
    return 0 if holds else 1


def _show_blunders(player: Player, solution: oracle.Solution, limit: int) -> None:
    """Prints the positions where the network's move throws away value, with their boards."""
    answers = player.evaluate(solution.decision_states)
    judge = jax.jit(lambda *answers: verify(solution, lambda _: answers))
    verdict = jax.device_get(judge(*answers))
    wrong = np.flatnonzero(verdict.is_blunder)
    names = {1.0: "win", 0.0: "draw", -1.0: "loss"}
    for row in wrong[:limit]:
        index, action = solution.decisions[row], int(verdict.actions[row])
        thrown = names[float(solution.action_values[index, action])]
        kept = names[float(solution.values[index])]
        best = ", ".join(map(str, np.flatnonzero(solution.optimal[index])))
        state = jax.tree.map(lambda leaf, index=index: leaf[index], solution.states)
        print(
            f"\n{player.game.render(state)}\nplayer {int(solution.player[index])} to move plays "
            f"{action}: {thrown} instead of {kept} (optimal: {best})"
        )
    if len(wrong) > limit:
        print(f"\n… and {len(wrong) - limit:,} more: add --limit {len(wrong)} to see them all")


main = console.make_main(examine, Options, "experiments.verify", "the examination was not finished")

if __name__ == "__main__":
    sys.exit(main())
