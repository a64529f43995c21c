"""Writes the page with all experiments: `python -m experiments.lecture --out DIR`."""

from azjax.cli import run_program

if __name__ == "__main__":
    run_program("experiments.lecture.__main__")

import dataclasses
import functools
import pathlib
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated

from azjax import _interrupts as interrupts
from azjax import games, runs
from azjax._files import write_json
from azjax._settings import Range
from azjax.cli import console, parsing
from azjax.games import solver
from azjax.proof.certificate import device_name, versions
from experiments.lecture import LECTURE, exploration, learning, matches, network, steps
from experiments.lecture.page import Page
from experiments.lecture.setup import Experiment, Setup


@dataclasses.dataclass(frozen=True)
class Options:
    """Repeats the lecture "Monte Carlo Tree Search" (CSI 4106, Turcotte, 2025) with more games."""

    out: pathlib.Path
    """Folder for index.html and results.json; created if it does not exist."""
    quick: bool = False
    """Use fewer games and searches; takes one minute instead of several."""
    run_dir: pathlib.Path | None = None
    """A trained run for the experiment with a network. Default: train one for two iterations."""
    seed: Annotated[int, Range(0, 2**32 - 1)] = 0
    """Seed of all randomness: the same seed gives the same numbers."""


def _experiments(options: Options) -> tuple[Experiment, ...]:
    """Returns the experiments in the order of the page."""
    compute_network = functools.partial(network.compute, run_dir=options.run_dir)
    learn, constant = "Learning from game to game", "The exploration constant"
    return (
        Experiment("A search, step by step", steps.compute, steps.show, counts=False),
        Experiment("All games", matches.count_all, matches.show_all),
        Experiment("The UCB1 bonus", exploration.compute_bound, exploration.show_bound),
        Experiment("Who beats whom", matches.play_all, matches.show_matches, 5),
        Experiment(learn, learning.compute, learning.show, 4),
        Experiment("Where the visits go", exploration.compute_visits, exploration.show_visits, 1),
        Experiment(constant, exploration.compute_constant, exploration.show_constant, 2),
        Experiment("AlphaTicTacToe: priors and values", compute_network, network.show, 3),
    )


def run(options: Options) -> int:
    """Runs the experiments, two at a time, and writes the page."""
    if options.run_dir is not None:
        runs.read_config(options.run_dir)
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=options.out):
        pass  # Fail before the work if the folder is not writable.
    experiments = _experiments(options)
    with console.busy("solving the game…"):
        game = games.make("tic_tac_toe")
        setup = Setup(game, solver.solve(game), options.quick, options.seed)
    with console.progress() as progress:
        overall = progress.add_task("experiments", total=len(experiments))

        def compute(experiment: Experiment):
            task = progress.add_task(experiment.title, total=None)
            advance = lambda count: progress.advance(task, count)  # noqa: E731
            before = time.monotonic()
            results = experiment.compute(dataclasses.replace(setup, advance=advance))
            progress.remove_task(task)
            progress.advance(overall)
            return results, time.monotonic() - before

        with ThreadPoolExecutor(2) as pool:  # XLA releases Python's lock while it computes.
            order = sorted(experiments, key=lambda e: e.weight, reverse=True)
            started = {e.title: pool.submit(compute, e) for e in order}
            computed = {title: future.result() for title, future in started.items()}
    interrupts.now.outcome = "perhaps not everything was written"
    path = _write(options, experiments, computed)
    for experiment in experiments:
        print(f"{computed[experiment.title][1]:6.1f} s  {experiment.title}")
    print(f"{time.monotonic() - interrupts.now.started:6.1f} s  total\npage: {path}")
    return 0


def _write(options: Options, experiments, computed) -> pathlib.Path:
    page = Page("Monte Carlo tree search: the experiments of a lecture, at scale")
    page.heading("About this page")
    packages = ", ".join(f"{name} {version}" for name, version in versions().items())
    page.text(
        f"The lecture is: {LECTURE}.",
        "This page shows its search step by step and repeats its experiments with many more games. "
        "Every count of the lecture is listed next to ours, with our number of games. "
        + ("This is the quick version, with fewer games. " if options.quick else "")
        + f"Seed {options.seed}; {device_name()}; {packages}.",
    )
    for experiment in experiments:
        page.heading(experiment.title)
        experiment.show(computed[experiment.title][0], page)
    path = page.write(options.out)
    results = {e.title: computed[e.title][0] for e in experiments if e.counts}
    write_json(options.out / "results.json", results)
    return path


def main(arguments: list[str] | None = None) -> int:
    """Runs the program; returns its exit status."""
    return console.run(
        lambda: run(parsing.parse(Options, arguments, "experiments.lecture")),
        interrupted="nothing was written",
    )
