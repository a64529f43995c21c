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
from azjax.drawing import Drawing, node
from azjax.games import solver
from azjax.games.base import Game, Positions
from azjax.games.solver import Solution
from azjax.proof.certificate import certificate_table
from azjax.runs.config import Config
from azjax.runs.player import Player, load
from azjax.runs.pretrained import read
from azjax.training import metrics
from azjax.viz.animation import draw_run
from azjax.viz.chart import line_chart, side_by_side
from azjax.viz.live import game_title
from azjax.viz.page import Section, scrolling, table, write_page
from azjax.viz.pictures import games_strips, sample_games

_CURVES = [  # Title, unit, whether the scale is logarithmic, and fields of the records by label.
    ("Training loss", "mean over an iteration", False,
     {"total": "loss", "policy": "policy_loss", "value": "value_loss"}),
    ("Errors of the network alone, all positions", "count, log scale", True, {
        "blunders": "blunders",
        "losing lines as first": "losing_lines_first",
        "losing lines as second": "losing_lines_second",
    }),
    ("Loss of expected outcome, network alone", "", False,
     {"largest": "largest_loss", "mean": "mean_loss"}),
    ("Mean absolute error of the value, all positions", "", False,
     {"network alone": "value_error"}),
    ("Strength: Elo differences, 95% intervals", "Elo", False,
     {"against UCT": "elo_uct", "against the best older network": "elo_best"}),
    ("Self-play speed", "games/s", False, {"games/s": "games_per_second"}),
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
        *_certificate(run_dir / "certificate.json", player.game.name, config),
        *_animation(run_dir, player, solution),
        games(player, config.seed),
        Section("Configuration", element=node("div", {"class": "az-facts-columns"}, settings)),
    ]
    name, title = run_dir.resolve().name, game_title(player.game.name)
    subject = title if game_title(name) == title else f"{name}: {title}"
    return write_page(run_dir / "report.html", f"Training report of {subject}", sections)


def _facts(rows: Iterable[tuple[str, Any]]) -> Element:
    def write(value):
        if isinstance(value, list | tuple):
            return ", ".join(map(write, value))
        return f"{value:,}" if type(value) is int else str(value)

    return table((name, write(value)) for name, value in rows)


def _curves(records: list[dict], game: Game) -> list[Section]:
    if not records:
        return []
    curves, charts, intro = [*_CURVES], [], []
    if any("largest_loss" in record for record in records):
        intro.append(
            "The network alone plays its most likely move. In every position, the solver knows the "
            "expected outcome after each move, with all throws of the dice. A blunder is a "
            "position where the move loses more than 0.001 of it."
        )
    elif any("blunders" in record for record in records):
        intro.append(
            "The network alone plays its most likely move. A blunder is a position where this move "
            "gives up a win or a draw. A losing line is a game that the network, as first or as "
            "second player, loses to some replies, although perfect play could have avoided the "
            "loss. Every position and every reply is checked."
        )
    if game.positions is not None and any("error" in record for record in records):
        curves[1:1] = _labelled_curves(game.positions())
        intro.append(
            "A wrong move is a move of the network alone that worsens the outcome in a position "
            "labelled by a solver; “wrong moves, mean” is the mean over the classes of positions. "
            "A value sign is wrong if the network's value for a won or lost position does not have "
            "the sign of the outcome. Training never uses these labels."
        )
    for heading, unit, log, names in curves:
        rows = [r for r in records if any(r.get(name) is not None for name in names.values())]
        scale = 100 if unit.startswith("%") else 1
        lines = {
            label: [None if row.get(name) is None else scale * row[name] for row in rows]
            for label, name in names.items()
        }
        if rows:
            xs = [row["iteration"] for row in rows]
            bands: Any = {
                label: tuple([row.get(f"{name}_{end}") for row in rows] for end in ("low", "high"))
                for label, name in names.items()
            }
            charts.append(line_chart(heading, xs, lines, log=log, unit=unit, bands=bands))
    intro.append("Point at a line to see its numbers.")
    return [Section("Training", " ".join(intro), element=side_by_side(charts))]


def _labelled_curves(positions: Positions) -> list[tuple[str, str, bool, dict[str, str]]]:
    """Returns the curves of errors in labelled positions, as in `_CURVES`."""
    classes = {name: f"error/{name}" for name in positions.classes}
    apart = {f"wrong moves, {name}": classes.pop(name) for name in positions.apart}
    overall = {"wrong moves, mean": "error", **apart, "wrong value signs": "sign_error"}
    return [
        ("Errors of the network alone", "% of labelled positions", False, overall),
        ("Wrong moves by class", "% of the class", False, classes),
    ]


def _certificate(path: pathlib.Path, game: str, config: Config) -> list[Section]:
    heading, rows, iterations = read_certificate(path, game, config.seed)
    if iterations is None:
        return []
    intro = (
        "This certificate is the result of checking every decision state: every reachable position "
        "in which the game is not over."
    )
    return [Section(heading, intro, element=_facts(rows))]


def read_certificate(
    path: pathlib.Path, game: str, seed: int
) -> tuple[str, list[tuple[str, Any]], int | None]:
    """Reads `certificate.json` of a run.

    Returns:
      What it proves, its rows, and the iterations of its player; None if there is no certificate.
    """
    if not path.exists():
        return "", [], None
    try:
        content = json.loads(path.read_text())
        heading, rows = certificate_table(content)
        if (content["game"], content["seed"]) != (game, seed):
            raise ValueError("it is of another run")
        return heading, rows, int(content["iterations"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{path} is damaged, or of another run: delete it, or make it again by verifying the "
            "run"
        ) from error


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

_LEAD = (
    "AlphaZero learns to play a board game from its rules alone. A neural network suggests moves "
    "and estimates who will win. A search looks ahead with these estimates and finds better moves. "
    "The network then learns from games that the search plays against itself."
)
_LIVE = (
    "This page is about one player that was trained in this way. All searches run in your browser. "
    "The search follows the proof, if there is one. The address keeps the position of the search: "
    "opened again, the page offers to play from there."
)


def introduce(is_live: bool) -> Section:
    """Returns the first section of a page; `is_live`: whether searches run in the page."""
    texts = [node("p", {"class": "az-about"}, text) for text in (_LEAD, _LIVE)[: 1 + is_live]]
    return Section("What this page is about", element=node("div", None, *texts))


def about(player: Player, run_dir: Path, picture: Drawing | None = None) -> Section:
    """Lists what is known about a player: one of a run, or one that comes with azjax.

    Args:
      player: the player.
      run_dir: the directory of its run, if it is of a run.
      picture: shown below, such as an animation of the training.
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
    is_run = player.name is None
    rows += _about_run(player, pathlib.Path(run_dir)) if is_run else _about_shipped(player)
    shown = [scrolling(picture.element)] if picture else []
    content = node("div", None, _facts(rows), *shown)
    return Section("About this player", element=content, label="About")


def _about_run(player: Player, run_dir: pathlib.Path) -> list[tuple[str, Any]]:
    config, iterations = runs.read_config(run_dir), player.iteration
    path = run_dir / "certificate.json"
    heading, _, proved = read_certificate(path, player.game.name, config.seed)
    unproved = f"Nothing was proved about this {'player' if proved is None else 'iteration'}"
    records = metrics.read_records(run_dir / "metrics.jsonl")
    played = sum(record.get("games", 0) for record in records if record["iteration"] <= iterations)
    return [
        ("games of self-play", played),
        ("proof", heading if proved == iterations else unproved),
        ("run directory", run_dir.resolve().name),
    ]


def _about_shipped(player: Player) -> list[tuple[str, Any]]:
    assert player.name is not None
    rows = [("name", player.name), *read(player.name).about["training"].items()]
    if player.overrides is None:
        return rows
    entries = f"{len(player.overrides.actions):,} positions; this page shows the network without it"
    return [*rows, ("override table", entries)]
