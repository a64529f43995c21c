"""Writes the page with all experiments: `python -m experiments.lecture --out DIR`."""

from azjax.cli import run_program

if __name__ == "__main__":
    run_program("experiments.lecture.__main__")

import dataclasses
import pathlib
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, NamedTuple
from xml.etree.ElementTree import Element

from azjax import _interrupts as interrupts
from azjax import games
from azjax._files import write_json
from azjax._settings import Range
from azjax.cli import console
from azjax.drawing import node
from azjax.games import solver
from azjax.proof.certificate import device_name, versions
from azjax.viz.page import Section, write_page
from experiments.lecture import exploration, learning, matches
from experiments.lecture.cast import Setup
from experiments.lecture.page import text


@dataclasses.dataclass(frozen=True)
class Options:
    """Repeats the lecture "Monte Carlo Tree Search" (CSI 4106, Turcotte, 2025) with more games."""

    out: pathlib.Path = pathlib.Path("lecture")
    """Folder for index.html and results.json; created if it does not exist."""
    quick: bool = False
    """Use fewer games and searches; takes one minute instead of several."""
    seed: Annotated[int, Range(0, 2**32 - 1)] = 0
    """Seed of all randomness: the same seed gives the same numbers."""


class Experiment(NamedTuple):
    """An experiment: its heading, its computation, and the elements that show the results."""

    title: str
    compute: Callable[[Setup], Any]
    show: Callable[[Any], list[Element]]


EXPERIMENTS = (
    Experiment("All games", matches.count_all, matches.show_all),
    Experiment("Who beats whom", matches.play_all, matches.show_matches),
    Experiment("Learning from game to game", learning.compute, learning.show),
    Experiment("Where the visits go", exploration.compute_visits, exploration.show_visits),
    Experiment("The exploration constant", exploration.compute_constant, exploration.show_constant),
)


def run(options: Options) -> int:
    """Runs the experiments, two at a time, and writes the page."""
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=options.out):
        pass  # Fail before the work if the folder is not writable.
    game = games.make("tic_tac_toe")
    setup = Setup(game, solver.solve(game), options.quick, options.seed)
    with ThreadPoolExecutor(2) as pool:  # XLA releases Python's lock while it computes.
        started = [pool.submit(experiment.compute, setup) for experiment in EXPERIMENTS]
        results = [future.result() for future in console.track(started, "experiments")]
    interrupts.now.outcome = "perhaps not everything was written"
    packages = ", ".join(f"{name} {version}" for name, version in versions().items())
    quick = "This is the quick version, with fewer games. " if options.quick else ""
    about = (
        "The lecture is: Monte Carlo Tree Search, CSI 4106 Introduction to Artificial "
        "Intelligence, Marcel Turcotte, University of Ottawa, version of November 26, 2025.",
        "This page repeats its experiments with many more games. Every count of the lecture is "
        f"listed next to ours, with our number of games. {quick}Seed {options.seed}; "
        f"{device_name()}; {packages}.",
    )
    parts = {"About this page": list(map(text, about))}
    for experiment, result in zip(EXPERIMENTS, results, strict=True):
        parts[experiment.title] = experiment.show(result)
    path = write_page(
        options.out / "index.html",
        "Monte Carlo tree search: the experiments of a lecture, at scale",
        [Section(title, element=node("div", None, *some)) for title, some in parts.items()],
    )
    titles = [experiment.title for experiment in EXPERIMENTS]
    write_json(options.out / "results.json", dict(zip(titles, results, strict=True)))
    print(f"page: {path}")
    return 0


main = console.make_main(run, Options, "experiments.lecture", "nothing was written")
