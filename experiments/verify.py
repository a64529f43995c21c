"""Proves or refutes a checkpoint again, from disk: `python -m experiments.verify RUN_DIR`."""

import time

from experiments import interrupts

_STARTED = time.time()  # Before the heavy imports: figures count the whole process.
if __name__ == "__main__":
    interrupts.listen()

import dataclasses
import json
import pathlib
import sys
from typing import Any, Literal

import jax
import tyro

from azjax import certificate as certificates
from azjax import oracle, runs, train
from azjax.settings import MOST_SIMULATIONS, check_range
from azjax.verify import Verdict, verify
from experiments import console, own


@dataclasses.dataclass(frozen=True)
class Options:
    """Examines a trained network in every reachable position and lists its blunders."""

    run_dir: tyro.conf.Positional[pathlib.Path]
    """The folder of a training run."""
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
    player = own.load_player(options.run_dir, options.typed)
    solution = oracle.solve(player.game)
    parts = player.parts
    searches = certificates.searches_to_examine(parts.search, options.simulations)
    certify = certificates.make_certifier(parts, solution, searches)
    seed = runs.read_config(options.run_dir).seed
    certificate = certify(player.params, player.iteration, _STARTED, seed)
    if options.json:
        print(json.dumps(certificate.as_json(), indent=2))
    else:
        console.show_certificate(certificate)
        verdict = _judge(parts, solution, player.params)
        console.show_blunders(player.game, solution, verdict, options.limit)
    holds = certificate.perfect if options.until == "perfect" else certificate.unbeatable
    return 0 if holds else 1


def _judge(parts: train.Parts, solution: oracle.Solution, params: Any) -> Verdict:
    """Examines the raw network; `params` is an argument, so that XLA folds no constants."""
    judge = jax.jit(lambda p: verify(solution, certificates.network_policy(parts, p)))
    return jax.device_get(judge(params))


main = console.make_main(examine, Options, "experiments.verify", "the examination was not finished")

if __name__ == "__main__":
    sys.exit(main())
