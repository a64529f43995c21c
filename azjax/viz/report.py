"""The report of a training run: one page with its proof, its curves and its games."""

import json
import math
import os
import pathlib
from collections.abc import Iterable
from typing import Any
from xml.etree.ElementTree import Element

import jax
import numpy as np

from azjax import runs
from azjax._settings import flatten
from azjax.drawing import node, signed
from azjax.games import solver
from azjax.games.base import Game, State, init_batch
from azjax.games.solver import Solution
from azjax.proof.certificate import certificate_table
from azjax.runs.config import Config
from azjax.runs.player import Player, load
from azjax.training import metrics
from azjax.viz import atlas as atlases
from azjax.viz.about import certificate_command
from azjax.viz.chart import line_chart, side_by_side
from azjax.viz.games import analyse, games_strips, sample_games
from azjax.viz.matches import Notify, matches
from azjax.viz.page import Section, write_page
from azjax.viz.pictures import draw_state

_CURVES = [  # Title, unit, whether logarithmic, and the lines by their names in the records.
    ("Loss", "", False, {"total": "loss", "policy": "policy_loss", "value": "value_loss"}),
    ("What the proof finds", "count, logarithmic", True, {
        "blunders": "blunders",
        "losing lines, first": "losing_lines_first",
        "losing lines, second": "losing_lines_second",
    }),
    ("Mean error of the value", "", False, {"value error": "value_error"}),
    ("Self-play", "games/s", False, {"games/s": "games_per_second"}),
]  # fmt: skip


def write_report(
    run_dir: str | os.PathLike[str],
    player: Player | None = None,
    solution: Solution | None = None,
    *,
    match_games: int = 64,
    match_seconds: float = 60.0,
    notify: Notify | None = None,
) -> pathlib.Path:
    """Writes `report.html` into a run directory: one file that needs only a browser.

    Args:
      run_dir: the run directory.
      player: its player; the newest checkpoint's if None.
      solution: of its game; solved anew if None, where the game can be enumerated.
      match_games: the most games against each opponent, where there is no ground truth.
      match_seconds: after which these matches end; see `matches.matches`.
      notify: told of their progress: the opponent, the games played, and how many there are.

    Returns:
      The path of the page.

    Raises:
      ValueError: if what is in the run directory is damaged.
      checkpoint.CheckpointError: if there is no run, or no sound checkpoint.
    """
    run_dir = pathlib.Path(run_dir)
    player, config = player or load(run_dir), runs.read_config(run_dir)
    sections = [
        *_certificate(run_dir / "certificate.json", player.game.name, config),
        *_curves(metrics.read_records(run_dir / "metrics.jsonl"), player.game),
        *_atlas(run_dir, player, solution),
        *matches(run_dir, player, match_games, match_seconds, notify),
        first_moves(player),
        games(player, config.seed),
        _configuration(player, config),
    ]
    title = f"{run_dir.resolve().name}: {player.game.name.replace('_', ' ')}"
    return write_page(run_dir / "report.html", title, sections)


def facts(rows: Iterable[tuple[str, Any]]) -> Element:
    """Makes a table of names and what they stand for."""
    lines = [
        node("tr", None, node("th", {"scope": "row"}, name), node("td", None, _words(value)))
        for name, value in rows
    ]
    return node("table", {"class": "az-facts"}, node("tbody", None, *lines))


def _words(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_words, value))
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def _certificate(path: pathlib.Path, game: str, config: Config) -> list[Section]:
    if not path.exists():
        return []
    try:
        content = json.loads(path.read_text())
        title, rows = certificate_table(content)
        if (content["game"], content["seed"]) != (game, config.seed):
            raise ValueError("it is another run's")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{path} is damaged, or of another run: delete it, or make it again with "
            f"{certificate_command(path, config)}"
        ) from error
    intro = "Found by enumeration of every position in which there is something to decide."
    return [Section(title, intro, element=facts(rows))]


def _curves(records: list[dict], game: Game) -> list[Section]:
    if not records:
        return []
    judged = [record for record in records if "error" in record]
    charts = []
    for title, unit, log, names in _CURVES:
        told = [r for r in records if any(r.get(name) is not None for name in names.values())]
        lines = {words: [r.get(name) for r in told] for words, name in names.items()}
        if told:
            xs = [record["iteration"] for record in told]
            charts.append(line_chart(title, xs, lines, log=log, unit=unit))
    charts[1:1] = _errors(judged, game)
    said = []
    if any(record.get("blunders") is not None for record in records):
        said.append(
            "Blunders are positions where the raw network's move throws away value; losing lines "
            "are complete games that it loses to some opponent: every reply is tried."
        )
    if judged:
        said.append(
            "Errors are moves of the raw network that worsen the outcome, in positions whose "
            "truth a solver told; learning never sees them."
        )
    intro = " ".join([*said, "Point at a line for its numbers."])
    return [Section("Training", intro, element=side_by_side(charts))]


def _errors(judged: list[dict], game: Game) -> list[Element]:
    """Draws what labelled positions told, over the iterations that were judged."""
    if not judged or game.positions is None:
        return []
    positions, xs = game.positions(), [record["iteration"] for record in judged]

    def draw(title: str, names: dict[str, str]) -> Element:
        lines = {
            words: [None if r.get(name) is None else 100 * r[name] for r in judged]
            for words, name in names.items()
        }
        return line_chart(title, xs, lines, unit="%")

    classes = {name: f"error/{name}" for name in positions.classes}
    apart = {name: classes.pop(name) for name in positions.apart}
    everywhere = {"mean error": "error", **apart, "wrong signs": "sign_error"}
    return [draw("Errors", everywhere), draw("Errors by class", classes)]


def _atlas(run_dir: pathlib.Path, player: Player, solution: Solution | None) -> list[Section]:
    if not player.game.enumerable or not (run_dir / "snapshots").is_dir():
        return []
    solution = solution or solver.solve(player.game)
    places = atlases.make_atlas(player.game, solution)
    iterations, snapshots = atlases.load_snapshots(run_dir)
    data = atlases.atlas_data(player.game, solution, places, iterations, snapshots)
    intro = (
        "Every dot is one class of positions that rotations and reflections turn into each "
        "other, from the empty board at the top to the end of the game; in each block the "
        "player to move wins at the left, draws in the middle, loses at the right, and finished "
        "games come last."
    )
    if data["total"] > len(places.ply):
        intro += (
            f" The game has {data['total']:,} of them, and {len(places.ply):,} are shown, drawn by "
            "lot, of each ply equally many."
        )
    return [Section("The whole game, iteration by iteration", intro, "atlas", data)]


def first_moves(player: Player) -> Section:
    """What the network and its search say of the start, and on a small board of what follows."""
    names, states = _openings(player)
    logits, values = player.evaluate(states)
    found = analyse(player, states)
    legal = np.asarray(jax.jit(jax.vmap(player.game.legal_actions))(states))
    policies = np.asarray(jax.nn.softmax(logits, where=legal))
    visits = np.asarray(found.visit_counts)
    rows = []
    for i, name in enumerate(names):
        state = jax.tree.map(lambda leaf, i=i: np.asarray(leaf)[i], states)
        shares, counts = (
            [text.format(x) if allowed else "" for x, allowed in zip(row, legal[i], strict=True)]
            for text, row in (("{:.0%}", policies[i]), ("{}", visits[i]))
        )
        pictures = [
            _heat(player.game, state, policies[i], shares, "network's policy"),
            _heat(player.game, state, visits[i], counts, "visits of the search"),
        ]
        action, value = int(found.action[i]), signed(float(values[i]))
        expected = signed(float(found.q_values[i, action]))
        caption = (
            f"{name}: the network values it at {value} for the player to move; its search plays "
            f"{action} and expects {expected}"
        )
        rows.append(node("figure", None, node("figcaption", None, caption), *pictures))
    intro = (
        f"Left what the raw network would play, right what its search of "
        f"{player.parts.search.num_simulations} simulations visits, without noise."
    )
    if player.parts.search.algorithm == "gumbel":
        intro += " Gumbel's search visits every move that it considers, bad ones too."
    return Section("First moves", intro, element=node("div", {"class": "az-openings"}, *rows))


def _heat(game: Game, state: State, shares: np.ndarray, labels: list[str], what: str) -> Element:
    heat = shares / max(float(shares.max()), 1e-9)
    size = 150 if math.prod(game.board_shape) <= 9 else 280
    picture = draw_state(game, state, size, values=heat, labels=labels).element
    picture.set("aria-label", f"{what}: {' '.join(labels)}")
    return picture


def _openings(player: Player) -> tuple[list[str], State]:
    """The starting position, and on a small board the first moves that differ by symmetry."""
    start = jax.device_get(init_batch(player.game, 1))
    if player.game.name != "tic_tac_toe":
        return ["The start"], start
    step = jax.jit(jax.vmap(lambda action: player.game.step(player.game.init(), action)[0]))
    after = jax.device_get(step(np.array([0, 1, 4])))
    names = ["Empty board", "After a corner", "After an edge", "After the centre"]
    return names, jax.tree.map(lambda *leaves: np.concatenate(leaves), start, after)


def games(player: Player, seed: int) -> Section:
    """Some games that the network plays against itself."""
    played = sample_games(player, jax.random.key(seed), 3)
    intro = (
        "Played by the final network as in training, with exploration, but from the start. Under "
        "each position stand the move, the search's probability of it, which shades its cell, and "
        "the search's value for the player to move: +1 won, −1 lost."
    )
    return Section("Games of self-play", intro, element=games_strips(player.game, played))


def _configuration(player: Player, config: Config) -> Section:
    settings = [("iteration", player.iteration), *flatten(config)]
    return Section("Configuration", "", element=facts(settings))
