"""Trains many players at the same time, one for each seed: `azjax seeds --seeds 16`."""

import dataclasses
import functools
import time
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from azjax._settings import Positive, Range
from azjax.cli import console, custom
from azjax.games.solver import Solution
from azjax.proof import certificate
from azjax.runs import presets
from azjax.runs.config import is_custom, make_parts
from azjax.runs.player import Player
from azjax.training import Parts, TrainState, compiled, init, iteration


@dataclasses.dataclass(frozen=True)
class Options:
    """Trains one player per seed on one device, and prints how many iterations each proof takes."""

    seeds: Annotated[int, Range(1, 65_536)] = 16
    """Number of players; their seeds are 0, 1, 2 and so on."""
    game: str = "tic_tac_toe"
    """The game: tic_tac_toe, hex:3, othello:4, … or a custom one: FILE.py:FUNCTION. It must have
    few enough positions to enumerate."""
    preset: Literal["default", "paper", "mlp", "enumerable", "connect_four", "large"] | None = None
    """Settings of all players, as in `azjax train`. Default: the preset for the game."""
    smoke: bool = False
    """Use tiny settings, to see the whole program work in seconds."""
    until: Literal["perfect", "unbeatable"] = "perfect"
    """Goal of each network, without search: perfect or unbeatable."""
    max_iterations: Positive = 100
    """Stop after this many iterations, even if some seeds have not reached the goal."""


def run(options: Options) -> int:
    """Trains all seeds; returns 0 if every seed reached the goal, and 1 if not."""
    parts, started = _make_parts(options), time.monotonic()
    solution = console.solve(parts.game)
    with console.busy("compiling…"):
        states, advance = compile_seeds(parts, options.seeds)
    reached = np.zeros(options.seeds, int)  # The first iteration with a proof; 0: none yet.
    blunders, number = reached, 0
    while number < options.max_iterations and not reached.all():
        number += 1
        states, _ = advance(states)
        verdicts = [
            verify_one(parts, solution, states.learner.average, seed)
            for seed in range(options.seeds)
        ]
        blunders = np.array([verdict.blunders for verdict in verdicts])
        losing = np.array([verdict.losing_lines.sum() for verdict in verdicts])
        wrong = blunders if options.until == "perfect" else losing
        reached = np.where((reached == 0) & (wrong == 0), number, reached)
        print(
            f"iteration {number:4d}  {time.monotonic() - started:6.1f} s  {options.until} "
            f"{np.count_nonzero(reached):4d} of {options.seeds}  "
            f"blunders, median {np.median(blunders):6.0f}"
        )
    _show(options, reached, blunders)
    return 0 if reached.all() else 1


def _make_parts(options: Options) -> Parts:
    game = custom.find_game(options.game)
    if not game.enumerable:
        raise ValueError(
            f"{game.name} has too many positions to enumerate, so no seed can be proved "
            f"{options.until}: use a smaller game, such as --game hex:3 or --game othello:4"
        )
    given = game if is_custom(options.game) else None
    config, _ = presets.choose(options.game, given, preset=options.preset, is_smoke=options.smoke)
    return make_parts(config, game)


def compile_seeds(parts: Parts, seeds: int) -> tuple[TrainState, Any]:
    """Compiles the training of seeds 0 to `S - 1` as one program, on one device.

    Returns the initial states, with leaves `[S, ...]`, and one iteration of all seeds,
    `states -> (states, Metrics)`, which donates the states.
    """
    start = jax.jit(jax.vmap(lambda seed: init(parts, jax.random.key(seed))))
    numbers = jnp.arange(seeds, dtype=jnp.uint32)
    states = compiled(start, numbers, often=False)(numbers)
    advance: Any = jax.jit(jax.vmap(functools.partial(iteration, parts)), donate_argnums=0)
    return states, compiled(advance, states)


def verify_one(parts: Parts, solution: Solution, variables: Any, seed: int) -> Any:
    """Returns the verdict on the network of one seed; the leaves of `variables` are `[S, ...]`."""
    network = parts.network.fold(jax.tree.map(lambda leaf: leaf[seed], variables))
    return jax.device_get(certificate.examine(Player(parts, network), solution)[0])


def _show(options: Options, reached: np.ndarray, blunders: np.ndarray) -> None:
    """Prints a row for each seed and the distribution."""
    rows = [
        (f"{seed}", f"{number or 'never'}", f"{wrong}")
        for seed, (number, wrong) in enumerate(zip(reached, blunders, strict=True))
    ]
    console.print_table(("seed", f"iterations to {options.until}", "blunders at the end"), rows)
    numbers = np.sort(reached[reached > 0])
    summary = f"{options.until}: {len(numbers)} of {options.seeds} seeds"
    if len(numbers):
        quartiles = ", ".join(f"{q:.0f}" for q in np.percentile(numbers, [25, 50, 75]))
        summary += f"; iterations: quartiles {quartiles}, most {numbers[-1]}"
    print(summary)


main = console.make_main(run, Options, "azjax seeds", "the seeds were not finished")
