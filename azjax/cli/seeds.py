"""Trains many players at once, one a seed: `azjax seeds --seeds 16`."""

import dataclasses
import functools
import pathlib
import time
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from azjax._settings import Positive, Range, check
from azjax.cli import console, own
from azjax.games import solver
from azjax.proof import certificate
from azjax.proof.labelled import in_slices
from azjax.proof.verify import verify
from azjax.runs import presets
from azjax.runs.config import is_custom, make_parts
from azjax.training import Parts, TrainState, compiled, init, iteration
from azjax.viz.chart import line_chart, standalone


@dataclasses.dataclass(frozen=True)
class Options:
    """Trains one player a seed, all in one program, and tells how long each takes to be proved."""

    seeds: Annotated[int, Range(1, 65_536)] = 16
    """How many: 0, 1, 2 and so on."""
    game: str = "tic_tac_toe"
    """Which game: tic_tac_toe, hex:3, othello:4, … or your own: FILE.py:FUNCTION; with few enough
    positions to enumerate."""
    preset: Literal["default", "paper", "mlp", "enumerable", "connect_four", "large"] | None = None
    """Settings of every training, as in `azjax train`. Left out: those that suit the game."""
    smoke: bool = False
    """Shrink everything, to see the whole program work in seconds."""
    until: Literal["perfect", "unbeatable"] = "perfect"
    """What each network alone has to reach."""
    max_iterations: Positive = 100
    """Stop after this many iterations at the latest."""
    plot: pathlib.Path | None = None
    """Draw the distribution into this SVG file."""

    def __post_init__(self):
        check("--", self)
        if self.plot:
            console.check_plot(self.plot)


def run(options: Options) -> int:
    """Trains and prints; the exit status says whether every seed got there."""
    parts, started = _make_parts(options), time.time()
    console.announce_solving(parts.game)
    with console.busy("compiling…"):
        states, advance = compile_seeds(parts, options.seeds)
        judge = _compile_judge(parts, states)
    reached = np.zeros(options.seeds, int)  # The iteration in which each was proved; 0: not yet.
    blunders, number = reached, 0
    while number < options.max_iterations and not reached.all():
        number += 1
        states, _ = advance(states)
        verdicts = jax.device_get(judge(states.learner.ema_params))
        blunders = verdicts.blunders
        wrong = blunders if options.until == "perfect" else verdicts.losing_lines.sum(axis=-1)
        reached = np.where((reached == 0) & (wrong == 0), number, reached)
        print(
            f"iteration {number:4d}  {time.time() - started:6.1f} s  {options.until} "
            f"{np.count_nonzero(reached):4d} of {options.seeds}  "
            f"blunders, median {np.median(blunders):6.0f}"
        )
    _show(options, reached, blunders)
    return 0 if reached.all() else 1


def _make_parts(options: Options) -> Parts:
    """Builds what is trained.

    Raises:
      ValueError: if there is no such game, or it has too many positions to enumerate.
    """
    game = own.find_game(options.game)
    if not game.enumerable:
        raise ValueError(
            f"{game.name} has too many positions to enumerate, so no seed can be proved "
            f"{options.until}: use a smaller game, such as --game hex:3 or --game othello:4"
        )
    custom = game if is_custom(options.game) else None
    config = presets.get(options.preset or presets.name_for(options.game, custom))
    if options.smoke:
        config = presets.smoke(config)
    return make_parts(presets.fit(config, game) if custom else config, game)


def compile_seeds(parts: Parts, seeds: int) -> tuple[TrainState, Any]:
    """Compiles many trainings as one program, on one device.

    Args:
      parts: what is trained.
      seeds: `S`, how many: 0 and the following.

    Returns:
      All first states, leaves `[S, ...]`, and an iteration of all, `states -> (states, Metrics)`,
      which are donated.
    """
    start = jax.jit(jax.vmap(lambda seed: init(parts, jax.random.key(seed))))
    numbers = jnp.arange(seeds, dtype=jnp.uint32)
    states = compiled(start, numbers, often=False)(numbers)
    advance: Any = jax.jit(jax.vmap(functools.partial(iteration, parts)), donate_argnums=0)
    return states, compiled(advance, states)


def _compile_judge(parts: Parts, states: TrainState) -> Any:
    """Returns a verdict on all, `variables [S, ...] -> Verdict`, compiled."""
    solution = solver.solve(parts.game)
    if not parts.game.is_small:
        return _judge_in_turn(parts, solution)

    def judge(variables):
        policy = certificate.network_policy(parts, parts.network.fold(variables))
        return verify(solution, policy)

    return compiled(jax.jit(jax.vmap(judge)), states.learner.ema_params)


def _judge_in_turn(parts: Parts, solution: solver.Solution) -> Any:
    """`_compile_judge` where positions are too many for the networks of all seeds at once."""
    verdict_on = certificate.make_verifier(solution)

    @jax.jit
    def answer(variables, states):
        return certificate.network_policy(parts, parts.network.fold(variables))(states)

    def judge(variables):
        verdicts = []
        for seed in range(len(jax.tree.leaves(variables)[0])):
            one = jax.tree.map(lambda leaf, seed=seed: leaf[seed], variables)
            ask = in_slices(functools.partial(answer, one))
            verdicts.append(verdict_on(*ask(solution.decision_states)))
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *verdicts)

    return judge


def _show(options: Options, reached: np.ndarray, blunders: np.ndarray) -> None:
    """Prints a row a seed, and the distribution; draws it if asked for."""
    rows = [
        (f"{seed}", f"{number or 'never'}", f"{wrong}")
        for seed, (number, wrong) in enumerate(zip(reached, blunders, strict=True))
    ]
    console.print_table(("seed", f"iterations to {options.until}", "blunders at the end"), rows)
    found = np.sort(reached[reached > 0])
    said = f"{options.until}: {len(found)} of {options.seeds} seeds"
    if len(found):
        low, middle, high = np.percentile(found, [25, 50, 75])
        said += f"; iterations: quartiles {low:.0f}, {middle:.0f}, {high:.0f}, most {found[-1]}"
    print(said)
    if options.plot:
        _draw(options, options.plot, found)


def _draw(options: Options, path: pathlib.Path, found: np.ndarray) -> None:
    """Draws the share of the seeds that were proved after each number of iterations."""
    iterations = range(max(found, default=0) + 1)
    shares = np.searchsorted(found, iterations, side="right") / options.seeds
    title = f"Share of {options.seeds} seeds: {options.until}"
    chart = line_chart(title, iterations, {options.until: shares.tolist()}, x_label="iterations")
    standalone(chart).save(path)
    print(f"picture: {path}")


main = console.make_main(run, Options, "azjax seeds", "the seeds were not finished")
