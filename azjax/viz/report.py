"""The report of a training run: one page with its curves, its certificate and its games."""

import json
import math
import pathlib
from collections.abc import Iterable
from typing import Any
from xml.etree.ElementTree import Element

import jax

from azjax import runs
from azjax._files import Path, check_folder
from azjax._settings import flatten
from azjax.drawing import node
from azjax.games import solver
from azjax.games.base import Game
from azjax.games.solver import Solution
from azjax.proof.certificate import certificate_table
from azjax.runs.player import Player, load
from azjax.runs.pretrained import read
from azjax.training import metrics
from azjax.viz.animation import draw_run
from azjax.viz.chart import line_chart, side_by_side
from azjax.viz.live import game_title
from azjax.viz.page import Section, table, write_page
from azjax.viz.pictures import games_strips, sample_games

_BLUNDERS = (
    "The network alone plays its most likely move. A blunder is a position where this move gives "
    "up a win or a draw; with dice, more than 0.001 of the expected outcome. A losing line is a "
    "game that the network, as first or as second player, loses to some replies, although perfect "
    "play could have avoided the loss. Every position and every reply is checked."
)
_LABELLED = (
    "A wrong move is a move of the network alone that worsens the outcome in a position labelled "
    "by a solver; “wrong moves, mean” is the mean over the classes of positions. A value sign is "
    "wrong if the network's value for a won or lost position does not have the sign of the "
    "outcome. Training never uses these labels."
)
_CURVES = [  # Title, unit, fields of the records by label, and sentences that define them.
    ("Training loss", "mean over an iteration",
     {"total": "loss", "policy": "policy_loss", "value": "value_loss"}, ""),
    ("Errors of the network alone, all positions", "count, log scale", {
        "blunders": "blunders",
        "losing lines as first": "losing_lines_first",
        "losing lines as second": "losing_lines_second",
    }, _BLUNDERS),
    ("Loss of expected outcome, network alone", "",
     {"largest": "largest_loss", "mean": "mean_loss"}, ""),
    ("Mean absolute error of the value, all positions", "", {"network alone": "value_error"}, ""),
    ("Self-play speed", "games/s", {"games/s": "games_per_second"}, ""),
]  # fmt: skip


def write_report(
    run_dir: Path,
    player: Player | None = None,
    solution: Solution | None = None,
) -> pathlib.Path:
    """Writes `report.html` into a run directory, a single file without external resources.

    Args:
      run_dir: the run directory.
      player: the player to show; the newest checkpoint's by default.
      solution: the solution of its game; computed if it is None and the game can be enumerated.

    Returns:
      The path of the page.
    """
    run_dir = pathlib.Path(run_dir)
    check_folder(run_dir / "report.html")
    player, config = player or load(run_dir), runs.read_config(run_dir)
    known = config.as_dict()  # Without those that custom parts replace.
    chosen = [(name, value) for name, value in flatten(config) if name.partition(".")[0] in known]
    settings = _facts([("iteration", player.iteration), *chosen])
    sections = [
        *_curves(metrics.read_records(run_dir / "metrics.jsonl"), player.game),
        *_certificate(run_dir / "certificate.json"),
        *_animation(run_dir, player, solution),
        games(player, config.seed),
        Section("Configuration", element=node("div", {"class": "az-facts-columns"}, settings)),
    ]
    title = f"Training report of {run_dir.resolve().name}: {game_title(player.game.name)}"
    return write_page(run_dir / "report.html", title, sections)


def _facts(rows: Iterable[tuple[str, Any]]) -> Element:
    def write(value):
        if isinstance(value, list | tuple):
            return ", ".join(map(write, value))
        return f"{value:,}" if type(value) is int else str(value)

    return table((name, write(value)) for name, value in rows)


def _curves(records: list[dict], game: Game) -> list[Section]:
    charts, intros = [], []
    for title, unit, names, intro in [*_labelled_curves(game), *_CURVES]:
        rows = [r for r in records if any(r.get(name) is not None for name in names.values())]
        if not rows:
            continue
        scale = 100 if unit.startswith("%") else 1
        lines = {
            label: [None if r.get(name) is None else scale * r[name] for r in rows]
            for label, name in names.items()
        }
        xs, log = [row["iteration"] for row in rows], unit.endswith("log scale")
        charts.append(line_chart(title, xs, lines, log=log, unit=unit))
        intros += [intro] if intro else []
    intro = " ".join([*intros, "Point at a line to see its numbers."])
    return [Section("Training", intro, element=side_by_side(charts))] if charts else []


def _labelled_curves(game: Game) -> list[tuple[str, str, dict[str, str], str]]:
    """Returns the curves of errors in labelled positions, as in `_CURVES`."""
    if game.positions is None:
        return []
    positions = game.positions()
    classes = {name: f"error/{name}" for name in positions.classes}
    apart = {f"wrong moves, {name}": classes.pop(name) for name in positions.apart}
    overall = {"wrong moves, mean": "error", **apart, "wrong value signs": "sign_error"}
    return [
        ("Errors of the network alone", "% of labelled positions", overall, _LABELLED),
        ("Wrong moves by class", "% of the class", classes, ""),
    ]


def _certificate(path: pathlib.Path) -> list[Section]:
    heading, rows, iterations = read_certificate(path)
    if iterations is None:
        return []
    intro = (
        "This certificate is the result of checking every decision state: every reachable position "
        "in which the game is not over."
    )
    return [Section(heading, intro, element=_facts(rows))]


def read_certificate(path: pathlib.Path) -> tuple[str, list[tuple[str, Any]], int | None]:
    """Reads `certificate.json` of a run.

    Returns:
      What it proves, its rows, and the iterations of its player; None if there is no certificate.
    """
    if not path.exists():
        return "", [], None
    try:
        content = json.loads(path.read_text())
        return *certificate_table(content), int(content["iterations"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is damaged: delete it, or verify the run again") from error


def _animation(run_dir: pathlib.Path, player: Player, solution: Solution | None) -> list[Section]:
    if not player.game.is_small or not any((run_dir / "snapshots").glob("*.bits")):
        return []
    picture = draw_run(run_dir, player.game, solution or solver.solve(player.game))
    intro = (
        "The start is at the top, and each block is one ply later; a ply is one move of one "
        "player. Within a block, the player to move wins at the left, draws in the middle and "
        "loses at the right, with perfect play; finished games come last."
    )
    return [Section("The whole game, iteration by iteration", intro, element=picture.element)]


def games(player: Player, seed: int) -> Section:
    """Shows games that the network plays against itself."""
    played = sample_games(player, jax.random.key(seed), 3)
    intro = (
        "The network plays against itself from the start, with the exploration of training. The "
        "caption of a position gives the move, its probability in the search's policy (the shade "
        "of the cells), and Q, the search's mean value of the move for the player to move: "
        "+1 won, −1 lost."
    )
    return Section("Games of self-play", intro, element=games_strips(player.game, played))


# The page of `azjax explain`.

INTRODUCTION = Section(
    "What this page is about",
    "AlphaZero learns to play a board game from its rules alone. A neural network suggests moves "
    "and estimates who will win. A search looks ahead with these estimates and finds better moves. "
    "The network then learns from games that the search plays against itself. All searches of this "
    "page run in your browser. The search follows the proof, if there is one. The address keeps "
    "the position of the search: opened again, the page offers to play from there.",
)


def about(player: Player, run_dir: Path) -> Section:
    """Lists what is known about a player: one of a run, or one that comes with azjax.

    Args:
      player: the player.
      run_dir: the directory of its run, if it is of a run.
    """
    search, network = player.parts.search, player.parts.network
    shapes = jax.eval_shape(network.init, jax.random.key(0))["params"]
    searches = f"{type(search).__name__} with {search.num_simulations} simulations"
    rows: list[tuple[str, Any]] = [
        ("game", game_title(player.game.name)),
        ("iterations", player.iteration),
        ("search", "none: the network alone" if player.alone else searches),
        ("parameters of the network", sum(math.prod(x.shape) for x in jax.tree.leaves(shapes))),
        ("encoding of its input", network.encoding),
    ]
    if player.name is None:
        run_dir = pathlib.Path(run_dir)
        records = metrics.read_records(run_dir / "metrics.jsonl")
        games = (r.get("games", 0) for r in records if r["iteration"] <= player.iteration)
        heading, _, proved = read_certificate(run_dir / "certificate.json")
        unproved = f"Nothing was proved about this {'player' if proved is None else 'iteration'}"
        rows += [
            ("games of self-play", sum(games)),
            ("proof", heading if proved == player.iteration else unproved),
            ("run directory", run_dir.resolve().name),
        ]
    else:
        rows += [("name", player.name), *read(player.name).about["training"].items()]
    if player.overrides is not None:
        entries = f"{len(player.overrides.actions):,} positions; this page shows the network alone"
        rows.append(("override table", entries))
    return Section("About this player", element=_facts(rows), label="About")
