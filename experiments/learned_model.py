"""Audits a learned model against the rules, in every position: `examples/muzero.py`.

MuZero and AlphaZero train with the same network, self-play and simulations. The learned model then
plays all sequences of legal moves from all positions, and its predictions are compared with the
solution.
"""

from azjax.cli import run_program

if __name__ == "__main__":
    run_program("experiments.learned_model")

import dataclasses
import functools
import pathlib
from typing import Any, Literal

import jax
import numpy as np

import azjax as az
from azjax import training
from azjax._files import write_json
from azjax._settings import Positive
from azjax.cli import console, custom
from azjax.comparison import make_measure
from azjax.games.rows import batches
from azjax.games.solver import Solution
from azjax.training import Parts
from azjax.viz.chart import line_chart
from experiments.ladder import standalone

_EXAMPLE = pathlib.Path(__file__).parents[1] / "examples/muzero.py"
SIMULATIONS = 4, 16, 64  # Of the searches that are examined at the end.


@dataclasses.dataclass(frozen=True)
class Options:
    """Trains MuZero and AlphaZero, and counts errors of the players and of the learned model."""

    seeds: tuple[int, ...] = tuple(range(10))
    """Seeds of the networks."""
    iterations: Positive = 30
    """Iterations of MuZero. AlphaZero stops when its network has as few blunders, or then."""
    out: pathlib.Path = pathlib.Path("learned_model.json")
    """The results; the chart next to it has the same name."""


def audit(
    parts: Parts, variables: Any, solution: Solution, moves: Literal["legal", "optimal"]
) -> dict[str, list[float | None]]:
    """Returns the percentage of right predictions 0, 1, 2, … moves ahead, by what is predicted.

    It is a mean over all starts of means over all sequences of such moves; None if there are
    none. Values and rewards are rounded to -1, 0 or 1; the value after the end of a game is 0. A
    move is the action with the largest logit of all.
    """
    model: Any = parts.search
    encode = jax.vmap(lambda state: parts.game.observe(state, parts.network.encoding))
    look = jax.jit(lambda states: parts.network.infer(variables, encode(states)))
    play = jax.jit(functools.partial(model.model.apply, variables, method="play"))

    def apply(function, *arrays):
        return map(np.concatenate, zip(*batches(function, arrays, 8192), strict=True))

    start = state = solution.decisions
    logits, value, hidden = apply(look, solution.decision_states)
    rewards = predicted = np.full(len(state), np.nan)  # No move was made.
    right: dict[str, list[float | None]] = {}
    while True:
        best, goes_on = logits.argmax(axis=1), ~solution.over[state]
        for name, is_right, counts in (
            ("reward of a win", np.rint(predicted) == 1, rewards == 1),
            ("reward of others", np.rint(predicted) == 0, rewards == 0),
            ("value", np.rint(value) == solution.values[state], goes_on),
            ("value after the end", np.rint(value) == 0, ~goes_on),
            ("legal move", solution.legal[state, best], goes_on),
            ("optimal move", solution.optimal[state, best], goes_on),
        ):
            lines = np.bincount(start[counts])
            share = np.bincount(start[counts], is_right[counts])[lines > 0] / lines[lines > 0]
            right.setdefault(name, []).append(100 * share.mean() if len(share) else None)
        row, action = np.nonzero(getattr(solution, moves)[state])
        if not len(row):
            return right
        rewards = solution.rewards[state[row], action]
        start, state = start[row], solution.children[state[row], action]
        hidden, predicted, logits, value = apply(play, hidden[row], action.astype(np.int32))


def run(options: Options) -> int:
    """Trains, examines and audits all networks; writes the results and a chart; returns 0."""
    muzero: Any = custom.load_code(f"{_EXAMPLE}:make_parts", Parts)
    solution, (measure, decisions) = az.solve(muzero.game), make_measure(muzero.game)
    optimizer = training.make_optimizer(training.LearnerConfig(decay_steps=4_000))  # MuZero's.
    alphazero = muzero._replace(
        search=az.Gumbel(num_simulations=muzero.search.num_simulations),
        targets=training.make_targets(training.TargetConfig(), muzero.game),
        learner=training.make_learner(muzero.network, optimizer),
    )
    both = {"MuZero": muzero, "AlphaZero": alphazero}
    steps = {name: jax.jit(functools.partial(training.iteration, x)) for name, x in both.items()}

    def count(parts, state, search=None, **changes):
        search = dataclasses.replace(search, **changes) if search else None
        return round(measure(parts, state.learner.average, search) * decisions)

    results: dict[str, list[Any]] = {"rows": [], "curves": [], "legal": [], "optimal": []}
    for seed in options.seeds:
        row: dict[str, int] = {}
        for name, parts in both.items():
            state, curve, goal = (
                training.init(parts, jax.random.key(seed)),
                [],
                row.get("MuZero", 0),
            )
            while len(curve) < options.iterations and min(curve, default=decisions) > goal:
                state, _ = steps[name](state)
                curve.append(count(parts, state))
            results["curves"].append(curve)
            row |= {name: curve[-1], f"{name}, evaluations": parts.evaluations * len(curve)}
            for number in SIMULATIONS:
                found = count(parts, state, parts.search, num_simulations=number)
                row[f"{name}, {number} simulations"] = found
            if parts is muzero:
                row["MuZero, searches by the rules"] = count(parts, state, alphazero.search)
                for moves in ("optimal", "legal"):
                    found = audit(parts, state.learner.average, solution, moves)
                    results[moves].append(found)
        print(f"seed {seed}: {row}", flush=True)
        results["rows"].append(row)
        write_json(options.out, results)
    show(results, options.out.with_suffix(".svg"))
    return 0


def show(results: dict[str, list[Any]], picture: pathlib.Path) -> None:
    """Prints medians and ranges of the seeds, and means of the audits; draws a chart."""
    for name in results["rows"][0]:
        low, middle, high = np.quantile([row[name] for row in results["rows"]], (0, 0.5, 1))
        print(f"{name}: {middle:,.0f}, {low:,.0f} to {high:,.0f}")
    for moves in ("optimal", "legal"):
        audits, lines = results[moves], {}
        for name in audits[0]:
            lines[name] = np.mean([np.float64(each[name]) for each in audits], axis=0).tolist()
            print(f"{name}, % after {moves} moves:", *(f"{x:.1f}" for x in lines[name]))
        title, xs = f"Right predictions after {moves} moves", range(len(lines["value"]))
        chart = line_chart(title, xs, lines, unit="%", x_label="moves ahead")
    standalone(chart).save(picture)


main = console.make_main(run, Options, "experiments.learned_model", "finished seeds are written")
