"""Measures what the README claims: `python -m experiments.benchmark --help`.

Runs of the training program are whole processes, cold: imports and compilation count, and
each has an empty compilation cache of its own.
"""

import dataclasses
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from unittest import mock

import jax
import mctx
from rich.progress import track
from rich.table import Table

from azjax import agents, games, oracle, presets, train
from azjax import certificate as certificates
from azjax.arena import play_match
from azjax.evaluators import rollout_evaluator
from azjax.game import Game, init_batch
from azjax.search import SearchConfig, make_search
from azjax.verify import verify
from azjax.viz import page
from azjax.viz.searches import Request, Searcher
from experiments import console
from experiments.browser import open_browser


@dataclasses.dataclass(frozen=True)
class Options:
    """Measures how long training takes, what verification costs, and how fast matches are."""

    time_to_perfect: bool = False
    """Train from each seed until the proof holds; print seconds and blunders."""
    stability: bool = False
    """With --time-to-perfect: go on for 100 iterations; print the losing lines on the way."""
    verification: bool = False
    """Time one iteration with and without its verification."""
    arena: bool = False
    """Time matches of random and UCT players, UCT's loop against mctx's, and players with a
    clock."""
    explorer: bool = False
    """Time the steps of the explorer in a browser, in a search of 200 simulations."""
    preset: str = "default"
    """Which preset to measure."""
    seeds: int = 5
    """Seeds 0 to this number less one."""
    max_iterations: int = 500
    """Give up on a seed after this many iterations."""
    out: pathlib.Path | None = None
    """Write the results there as JSON, too."""

    def __post_init__(self):
        presets.get(self.preset)
        if self.seeds < 1:
            raise ValueError(f"--seeds is {self.seeds}: use 1 or more")
        if not (self.time_to_perfect or self.verification or self.arena or self.explorer):
            raise ValueError(
                "nothing to measure: add --time-to-perfect, --verification, --arena or --explorer"
            )
        if self.stability and not self.time_to_perfect:
            raise ValueError("--stability goes on from perfect players: add --time-to-perfect")


@dataclasses.dataclass(frozen=True)
class Run:
    """One training run from one seed.

    Attributes:
      seed: its seed.
      unbeatable: seconds until the raw network had no losing line, or None.
      perfect: seconds until the raw network was optimal everywhere, or None.
      iterations: made until the proof held.
      seconds: the whole process, certificate included.
      search_blunders: of network + search at the end, PUCT and Gumbel together.
      losing_lines_later: largest number in the 100 iterations afterwards; None if not run.
    """

    seed: int
    unbeatable: float | None
    perfect: float | None
    iterations: int
    seconds: float
    search_blunders: int
    losing_lines_later: int | None


def train_once(options: Options, seed: int, folder: pathlib.Path) -> Run:
    """Trains in a process of its own until the proof holds."""
    run_dir = folder / str(seed)
    limit = options.max_iterations
    before = time.perf_counter()
    _train(folder, ["--preset", options.preset, "--seed", seed, "--run-dir", run_dir,
                    "--max-iterations", limit])  # fmt: skip
    seconds = time.perf_counter() - before
    records = _records(run_dir)
    certificate = json.loads((run_dir / "certificate.json").read_text())
    later = None
    if options.stability:
        last = records[-1]["iteration"]
        _train(folder, ["--resume", "--run-dir", run_dir, "--until", "never",
                        "--max-iterations", last + 100])  # fmt: skip
        later = max(_losing_lines(record) for record in _records(run_dir)[last:])
    return Run(
        seed=seed,
        unbeatable=_first(records, lambda record: _losing_lines(record) == 0),
        perfect=_first(records, lambda record: record["blunders"] == 0),
        iterations=records[-1]["iteration"],
        seconds=seconds,
        search_blunders=certificate["puct_blunders"] + certificate["gumbel_blunders"],
        losing_lines_later=later,
    )


def _train(folder: pathlib.Path, arguments: list) -> None:
    """Runs the training program with an empty compilation cache."""
    with tempfile.TemporaryDirectory(dir=folder) as cache:
        environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": cache}
        command = [sys.executable, "-m", "experiments.train", *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode not in (0, 1):  # 1: the goal was not reached, which is a result.
        raise RuntimeError(f"training failed: {done.stderr.strip()}")


def _records(run_dir: pathlib.Path) -> list[dict]:
    return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


def _losing_lines(record: dict) -> int:
    return record["losing_lines_first"] + record["losing_lines_second"]


def _first(records: list[dict], holds) -> float | None:
    return next((record["seconds"] for record in records if holds(record)), None)


def time_to_perfect(options: Options) -> list[Run]:
    """Trains from every seed and prints the table."""
    with tempfile.TemporaryDirectory() as folder:
        seeds = track(range(options.seeds), "training", transient=True)
        runs = [train_once(options, seed, pathlib.Path(folder)) for seed in seeds]
    table = Table(title=f"preset {options.preset}: cold, whole process, seconds")
    for title in ("seed", "unbeatable", "perfect", "process", "iterations", "search blunders"):
        table.add_column(title, justify="right")
    if options.stability:
        table.add_column("losing lines in 100 more", justify="right")
    for run in runs:
        row = [f"{run.seed}", _seconds(run.unbeatable), _seconds(run.perfect)]
        row += [f"{run.seconds:.1f}", f"{run.iterations}", f"{run.search_blunders}"]
        table.add_row(*row, *([f"{run.losing_lines_later}"] if options.stability else []))
    columns = [[getattr(run, name) for run in runs] for name in ("unbeatable", "perfect")]
    medians = [_seconds(_median(column)) for column in columns]
    table.add_section()
    table.add_row("median", *medians, f"{statistics.median(run.seconds for run in runs):.1f}")
    console.print_rich(table)
    within = sum(run.perfect is not None and run.perfect <= 120 for run in runs)
    print(f"perfect within 120 s: {within} of {len(runs)}")
    return runs


def _seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.1f}"


def _median(values: list[float | None]) -> float | None:
    """The median, a run that never got there counting as slower than all others."""
    middle = statistics.median_high([float("inf") if v is None else v for v in values])
    return None if middle == float("inf") else middle


def time_verification(options: Options, repeats: int = 15) -> dict[str, float]:
    """Times iterations and verifications in turn, and prints the medians."""
    config, mesh = presets.get(options.preset), train.make_mesh()
    parts = train.make_parts(config)
    solution = oracle.solve(parts.game)
    iterate = train.make_iteration(config, mesh)
    judge = jax.jit(
        lambda variables: verify(
            solution, certificates.network_policy(parts, parts.network.fold(variables))
        )
    )
    state, times = train.make_state(config, mesh), {"iteration": [], "verification": []}
    for _ in range(repeats + 1):
        start = time.perf_counter()
        state, measured = jax.block_until_ready(iterate(state))
        middle = time.perf_counter()
        jax.block_until_ready(judge(state.learner.average))
        times["iteration"].append(middle - start)
        times["verification"].append(time.perf_counter() - middle)
    medians = {name: statistics.median(values[1:]) for name, values in times.items()}
    share = medians["verification"] / medians["iteration"]
    print(
        f"one iteration {medians['iteration'] * 1e3:.0f} ms, its verification "
        f"{medians['verification'] * 1e3:.1f} ms: {share:.1%}"
    )
    return medians | {"share": share}


def time_arena(repeats: int = 5) -> dict[str, float]:
    """Times matches, searches and players with a clock, and prints the medians."""
    game = games.make("tic_tac_toe")
    random, uct = agents.random_agent(game), _uct(game, 100)
    million, thousands = 1_000_000, 10_000

    def match(one, other, count):
        return lambda key: play_match(game, one, other, count, key)

    found = {
        "random - random, seconds for 1,000,000 games": _median_time(
            match(random, random, million), repeats
        ),
        "UCT(100) - random, games a minute": 60
        * thousands
        / _median_time(match(uct, random, thousands), repeats),
    }
    for simulations, batch in ((32, 1024), (100, 1024), (500, 256)):
        ours, theirs = _time_loops(game, simulations, batch, repeats)
        label = f"UCT, {simulations} simulations, {batch} games"
        found[f"{label}: simulations a second"] = simulations * batch / ours
        found[f"{label}: times as fast as mctx's own loop"] = theirs / ours
    for algorithm in ("uct", "puct", "gumbel"):
        for seconds in (0.1, 0.5):
            found[f"{algorithm} given {seconds} s: seconds taken"] = _time_clock(
                game, algorithm, seconds, repeats
            )
    for name, value in found.items():
        print(f"{value:14,.3f}  {name}")
    return found


def _uct(game: Game, simulations: int) -> agents.Agent:
    config = SearchConfig("uct", num_simulations=simulations)
    return agents.search_agent(game, config, rollout_evaluator(game))


def _median_time(run: Callable[[jax.Array], object], repeats: int) -> float:
    """The median seconds of `run(key)`, after one that compiles."""
    times = []
    for seed in range(repeats + 1):
        start = time.perf_counter()
        jax.block_until_ready(run(jax.random.key(seed)))
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def _time_loops(game: Game, simulations: int, batch: int, repeats: int) -> tuple[float, float]:
    """Seconds of one UCT search with our loop over simulations, and with mctx's, in turn."""
    config = SearchConfig("uct", num_simulations=simulations)
    states = init_batch(game, batch)

    def search(key):
        find = make_search(config, game, rollout_evaluator(game))
        return find(None, jax.random.split(key, batch), states).visit_counts

    key, ours, times = jax.random.key(0), jax.jit(search), ([], [])
    ours(key)
    with mock.patch.object(mctx, "search", _without_our_loop(mctx.search)):
        theirs = jax.jit(lambda key: search(key))
        theirs(key)
    for seed in range(repeats):
        for run, seconds in zip((ours, theirs), times, strict=True):
            seconds.append(_median_time(lambda _: run(jax.random.key(seed)), 1))
    return statistics.median(times[0]), statistics.median(times[1])


def _without_our_loop(mctx_search: Callable) -> Callable:
    return lambda *args, loop_fn, **rest: mctx_search(*args, **rest)


def _time_clock(game: Game, algorithm, seconds: float, repeats: int) -> float:
    """The time that a player with a clock takes for one position; the worst of several."""
    config = SearchConfig(algorithm, num_simulations=50_000)
    agent = agents.anytime_agent(game, config, rollout_evaluator(game), seconds=seconds)
    state, taken = init_batch(game, 1), []
    agent.act(None, jax.random.key(0), state)  # It compiles and measures its speed.
    for seed in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(agent.act(None, jax.random.key(seed), state))
        taken.append(time.perf_counter() - start)
    return max(taken, key=lambda t: abs(t - seconds))


_STEP_THROUGH = """async () => {
  const next = document.querySelector("[data-button=next]");
  const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const times = [];
  while (!next.disabled && next.getAttribute("aria-disabled") !== "true") {
    const before = performance.now();
    next.click();
    await painted();
    times.push(performance.now() - before);
  }
  return times;
}"""


def time_explorer(simulations: int = 200) -> dict[str, float]:
    """Times every step through a search, from the click to the painted picture."""
    recording = Searcher().record(Request(evaluator="rollout", simulations=simulations))
    data = {"recordings": [recording], "evaluators": ["rollout"], "lines": []}
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        section = page.Section("search", kind="explorer", data=data)
        path = page.write_page(pathlib.Path(folder) / "page.html", "benchmark", [section])
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(path.as_uri())
        times = tab.evaluate(_STEP_THROUGH)
    if len(times) != 3 * simulations:
        raise RuntimeError(f"{len(times)} steps were made and {3 * simulations} expected")
    found = {"median": statistics.median(times), "slowest": max(times)}
    print(
        f"a step of the explorer, {simulations} simulations, click to paint: median "
        f"{found['median']:.0f} ms, slowest of {len(times)} {found['slowest']:.0f} ms"
    )
    return found


def main(arguments: list[str] | None = None) -> int:
    """Runs the program; returns its exit status."""
    try:
        options = console.parse(Options, arguments, "experiments.benchmark")
    except ValueError as error:
        return console.fail(error)
    machine = f"{os.cpu_count()} CPU cores, {platform.machine()}, {certificates.device_name()}"
    print(f"{machine}; jax {jax.__version__}, python {platform.python_version()}")
    results: dict = {"machine": machine, "versions": certificates.versions()}
    if options.verification:
        results["verification"] = time_verification(options)
    if options.arena:
        results["arena"] = time_arena()
    if options.explorer:
        results["explorer"] = time_explorer()
    if options.time_to_perfect:
        results["time_to_perfect"] = [dataclasses.asdict(run) for run in time_to_perfect(options)]
    if options.out:
        options.out.write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
