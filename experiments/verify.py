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
from azjax import oracle, train
from azjax.player import load
from azjax.settings import MOST_SIMULATIONS, check_range
from azjax.verify import Verdict, verify
from experiments import console


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

    def __post_init__(self):
        check_range("--", self, "simulations", 1, MOST_SIMULATIONS)
        check_range("--", self, "limit", 0)


def examine(options: Options) -> int:
    """Prints the certificate and the blunders; the exit status says whether it holds."""
    player = load(options.run_dir)
    for sentence in player.skipped:
        console.note(f"{sentence}; examining an older one")
    solution = oracle.solve(player.game)
    parts = train.make_parts(player.config)
    certify = certificates.make_certifier(player.config, parts, solution, options.simulations)
    certificate = certify(player.params, player.iteration, _STARTED)
    if options.json:
        print(json.dumps(console.as_json(certificate), indent=2))
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


def main(arguments: list[str] | None = None) -> int:
    """Runs the program; returns its exit status."""
    return console.run(
        lambda: examine(console.parse(Options, arguments, "experiments.verify")),
        interrupted="the examination was not finished",
    )


if __name__ == "__main__":
    sys.exit(main())
