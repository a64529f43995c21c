"""Measures how the cost of training grows with the size of a game, for networks of several widths.

    python -m experiments.ladder --out ladder

Each network has a separate run directory. After an interruption, the same command continues.
"""

from azjax.cli import run_program

if __name__ == "__main__":
    run_program("experiments.ladder")

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element

import numpy as np

from azjax import games, runs
from azjax._settings import NonNegative, Positive
from azjax.cli import console
from azjax.drawing import Drawing, node
from azjax.training.metrics import read_records
from azjax.viz.chart import line_chart

_EXAMINE = "5"  # Maximum number of iterations between two points of a curve.
_LADDER = ("tic_tac_toe", "othello:4", "connect_four:4x4", "connect_four:5x4")
# The colors of lines in a dark theme.
_DARK = ("#56B4E9", "#F0883E", "#2CC295", "#D98AC4", "#d4b13f", "#b39ddb")


@dataclasses.dataclass(frozen=True)
class Options:
    """Trains networks of several widths on solved games, and draws blunders against moves."""

    out: pathlib.Path = pathlib.Path("ladder")
    """Folder for the run directories, the plots and ladder.json. It is created."""
    games: tuple[str, ...] = _LADDER
    """The games, each with few enough positions to solve."""
    widths: tuple[int, ...] = (64, 128, 256)
    """Units in each of the four layers of the networks."""
    moves: Positive = 3_000_000
    """Maximum number of self-play moves per network; training ends earlier if it is perfect."""
    goal: NonNegative = 1.0
    """Networks are compared by the moves after which the percentage of positions with a blunder is
    at most this."""
    smoke: bool = False
    """Use tiny settings, to see the whole program work in a minute."""

    def __post_init__(self):
        for name in self.games:
            if not games.make(name).enumerable:
                raise ValueError(f"{name} cannot be solved: use smaller games in --games")
        if not self.games or not self.widths:
            raise ValueError("a ladder needs a game and a width: name some in --games and --widths")


class Rung(NamedTuple):
    """The training of one network.

    Attributes:
      game: the name of the game.
      width: width of the network's layers.
      decisions: number of positions in which the game is not over.
      moves: number of self-play moves before each verification of the network.
      errors: percentage of blunders among the decisions, at each verification.
      seconds: duration of the training.
    """

    game: str
    width: int
    decisions: int
    moves: list[int]
    errors: list[float]
    seconds: float

    def cost(self, goal: float) -> float | None:
        """Returns the moves until at most `goal` percent are blunders; None: never."""
        return next((m for m, e in zip(self.moves, self.errors, strict=True) if e <= goal), None)


def run(options: Options) -> int:
    """Trains every rung, prints a table and draws the curves; returns 0."""
    options.out.mkdir(parents=True, exist_ok=True)
    rungs = []
    for game in options.games:
        for width in options.widths:
            run_dir = options.out / f"{game.replace(':', '-')}-{width}"
            _train(options, game, width, run_dir)
            rungs.append(_read(game, width, run_dir))
    content = {"goal": options.goal, "slopes": find_slopes(rungs, options.goal)}
    content["rungs"] = [rung._asdict() for rung in rungs]
    (options.out / "ladder.json").write_text(json.dumps(content, indent=2) + "\n")
    _show(options, rungs)
    for game in options.games:
        _draw(options.out, game, [rung for rung in rungs if rung.game == game])
    return 0


def _train(options: Options, game: str, width: int, run_dir: pathlib.Path) -> None:
    """Runs `experiments.train` for a rung, or continues it."""
    if (run_dir / "certificate.json").exists():
        return
    print(f"\n{game}, residual blocks of {width}")
    command = [sys.executable, "-m", "experiments.train", "--run-dir", str(run_dir)]
    if run_dir.exists():
        command.append("--resume")
    else:
        command += ["--game", game, "--preset", "enumerable", "--until", "perfect", "--no-report"]
        command += ["--network.width", str(width)]
        iterations = 2 if options.smoke else -(-options.moves // (1024 * 16))
        command += ["--max-iterations", str(iterations), "--examine-every", _EXAMINE]
        command += ["--smoke"] if options.smoke else []
    alone = os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "0"}  # The times include compilation.
    status = subprocess.run(command, env=alone).returncode
    if not (run_dir / "certificate.json").exists():
        raise RuntimeError(f"the training in {run_dir} ended with status {status}: see above")


def _read(game: str, width: int, run_dir: pathlib.Path) -> Rung:
    """Reads the results of a training."""
    certificate = json.loads((run_dir / "certificate.json").read_text())
    selfplay = runs.read_config(run_dir).selfplay
    examined = [r for r in read_records(run_dir / "metrics.jsonl") if "blunders" in r]
    decisions = certificate["decision_states"]
    each = selfplay.games * selfplay.unroll_length
    moves = [each * record["iteration"] for record in examined]
    errors = [100 * record["blunders"] / decisions for record in examined]
    if not moves or moves[-1] < certificate["moves"]:
        moves.append(certificate["moves"])
        errors.append(100 * certificate["blunders"] / decisions)
    return Rung(game, width, decisions, moves, errors, certificate["seconds"])


def find_slopes(rungs: Sequence[Rung], goal: float) -> dict[str, float]:
    """Fits, for each width, how moves to the goal grow with positions: `moves ~ positions^slope`.

    Widths that reached the goal in fewer than two games are left out.
    """
    slopes = {}
    for width in dict.fromkeys(rung.width for rung in rungs):
        reached = [(rung.decisions, rung.cost(goal)) for rung in rungs if rung.width == width]
        places = np.log([(size, cost) for size, cost in reached if cost is not None])
        if len(places) > 1:
            slopes[str(width)] = float(np.polyfit(places[:, 0], places[:, 1], deg=1)[0])
    return slopes


def _show(options: Options, rungs: Sequence[Rung]) -> None:
    rows = []
    for rung in rungs:
        cost = rung.cost(options.goal)
        size, moves = f"{rung.decisions:,}", f"{rung.moves[-1]:,}"
        reached, end = "never" if cost is None else f"{cost:,}", f"{rung.errors[-1]:.3g}"
        rows.append((rung.game, f"{rung.width}", size, moves, end, reached, f"{rung.seconds:.0f}"))
    goal = f"moves to {options.goal:g}%"
    titles = ("game", "width", "decisions", "moves", "blunders, %", goal, "seconds")
    print()
    console.print_table(titles, rows)
    for width, slope in find_slopes(rungs, options.goal).items():
        print(
            f"width {width}: moves to {options.goal:g}% grow as positions to the power {slope:.2f}"
        )


def _draw(out: pathlib.Path, game: str, rungs: Sequence[Rung]) -> None:
    """Draws blunders against moves, with a line for each width."""
    xs = sorted({moves for rung in rungs for moves in rung.moves})
    series = {}
    for rung in rungs:
        blunders = [round(error * rung.decisions / 100) for error in rung.errors]
        by_moves = dict(zip(rung.moves, blunders, strict=True))
        series[str(rung.width)] = [by_moves.get(x) for x in xs]
    title = f"{game}: blunders in {rungs[0].decisions:,} positions, by width"
    chart = line_chart(title, xs, series, log=True, log_x=True, x_label="moves")
    path = out / f"{game.replace(':', '-')}.svg"
    standalone(chart).save(path)
    print(f"plot: {path}")


def standalone(chart: Element) -> Drawing:
    """Makes a chart a separate SVG file, with the colors of the viewer's theme."""
    dark = "; ".join(f"--az-series-{i + 1}: {color}" for i, color in enumerate(_DARK))
    style = (
        ".az-chart:root { color: #24292f } @media (prefers-color-scheme: dark) "
        f"{{ .az-chart:root {{ color: #e6e8eb; {dark} }} }}"
    )
    chart.set("style", f"max-width: {chart.get('width')}px; height: auto")
    chart.insert(0, node("style", None, style))
    return Drawing(chart)


main = console.make_main(run, Options, "experiments.ladder", "call it again to continue")
