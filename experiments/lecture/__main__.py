"""`python -m experiments.lecture --out DIR`: all experiments, as tables and charts on one page."""

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
from azjax import runs
from azjax._files import write_json
from azjax._settings import Range, check
from azjax.cli import console
from azjax.proof.certificate import device_name, versions
from experiments.lecture import exploration, integration, learning, matches, network, steps
from experiments.lecture.page import Page
from experiments.lecture.setup import Experiment, make_setup


@dataclasses.dataclass(frozen=True)
class Options:
    """Makes the experiments of a lecture on Monte Carlo tree search again, at scale."""

    out: pathlib.Path
    """Folder for index.html and results.json; made if it is not there."""
    quick: bool = False
    """Fewer games and searches: one minute in place of several."""
    run_dir: pathlib.Path | None = None
    """A trained run for the last experiment. Left out: a network is trained for a moment."""
    seed: Annotated[int, Range(0, 2**32 - 1)] = 0
    """Of all randomness: the same seed gives the same numbers."""

    def __post_init__(self):
        check("--", self)


def _experiments(options: Options) -> tuple[Experiment, ...]:
    """In the order of the page."""
    compute_network = functools.partial(network.compute, run_dir=options.run_dir)
    learn, constant = "Learning from game to game", "The exploration constant"
    walk = "A search, step by step"
    return (
        Experiment(walk, steps.compute, steps.show, counts=False),
        Experiment("All games", matches.count_all, matches.show_all),
        Experiment("The UCB1 bonus", exploration.compute_bound, exploration.show_bound),
        Experiment("Who beats whom", matches.play_all, matches.show_matches, 5),
        Experiment(learn, learning.compute, learning.show, 4),
        Experiment("Where the visits go", exploration.compute_visits, exploration.show_visits, 1),
        Experiment(constant, exploration.compute_constant, exploration.show_constant, 2),
        Experiment("AlphaTicTacToe: priors and values", compute_network, network.show, 3),
        Experiment("Appendix: Monte Carlo integration", integration.compute, integration.show),
    )


def run(options: Options) -> int:
    """Computes everything, two experiments at a time, and writes the page."""
    if options.run_dir is not None:
        runs.read_config(options.run_dir)
    _check_writable(options.out)
    experiments = _experiments(options)
    with console.busy("solving the game…"):
        setup = make_setup(options.quick, options.seed)
    with console.progress() as progress:
        overall = progress.add_task("experiments", total=len(experiments))

        def compute(experiment: Experiment):
            task = progress.add_task(experiment.title, total=None)
            own = dataclasses.replace(setup, advance=lambda n: progress.advance(task, n))
            before = time.time()
            results = experiment.compute(own)
            progress.remove_task(task)
            progress.advance(overall)
            return results, time.time() - before

        with ThreadPoolExecutor(2) as pool:  # XLA computes outside Python's lock.
            order = sorted(experiments, key=lambda e: e.weight, reverse=True)  # The longest first.
            started = {e.title: pool.submit(compute, e) for e in order}
            computed = {title: future.result() for title, future in started.items()}
    interrupts.now.outcome = "perhaps not all was written"
    path = _write(options, experiments, computed)
    for experiment in experiments:
        print(f"{computed[experiment.title][1]:6.1f} s  {experiment.title}")
    print(f"{time.time() - interrupts.now.started:6.1f} s  the whole process\npage: {path}")
    return 0


def _check_writable(folder: pathlib.Path) -> None:
    """Makes the folder, and finds out before the work whether it can be written to."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def _write(options: Options, experiments, computed) -> pathlib.Path:
    page = Page("Monte Carlo tree search, the lecture's experiments at scale")
    page.heading("What this is")
    said = ", ".join(f"{name} {version}" for name, version in versions().items())
    page.text(
        "A lecture's search, shown step by step, and its experiments, made again with batched "
        "functions. Every count of the lecture stands beside ours, with how many games ours is of. "
        + ("This is the quick version. " if options.quick else "")
        + f"Seed {options.seed}; {device_name()}; {said}."
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
        lambda: run(console.parse(Options, arguments, "experiments.lecture")),
        interrupted="nothing was written",
    )
