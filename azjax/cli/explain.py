"""Writes one page that explains a trained player: `azjax explain`."""

import dataclasses
import pathlib
from typing import Any

import numpy as np

from azjax import runs
from azjax.cli import console, custom
from azjax.drawing import check_folder, node
from azjax.runs import checkpoint
from azjax.runs.player import Player
from azjax.viz import about, animation, atlas, loop, networks, page, report
from azjax.viz.live import GAMES, has_table, knows, live_data, pack_player, quiet, solve

_POSITIONS = {  # Starting positions for searches of tic-tac-toe.
    "Empty board": "... ... ...",
    "O answers a corner": "X.. ... ...",
    "O must block": "XX. .O. ...",
    "X can win at once": "XX. OO. ...",
    "O between two corners": "X.. .O. ..X",
}
_MOST_NETWORKS = 8
_MOST_BYTES = 3_500_000  # Maximum size of all weights in a page.
_ROUNDED = 3  # Bytes per weight, for networks that exceed this size with exact weights.


@dataclasses.dataclass(frozen=True)
class Options:
    """Writes a page with a search phase by phase, what the network sees, and a game against it."""

    out: pathlib.Path = pathlib.Path("explain.html")
    """The page."""
    typed: custom.Option = custom.NOTHING


def explain(options: Options) -> int:
    """Writes the page; returns the exit status."""
    check_folder(options.out)
    run_dir, player = custom.open_run(options.typed)
    seen = _portraits(run_dir, player) if player.game.enumerable else None
    sections = [
        about.about(run_dir, player, seen and animation.draw_animation(*seen)),
        *(
            _live(run_dir, options.typed, player)
            if knows(player.game)
            else _recorded(run_dir, player)
        ),
        *([_atlas(player, *seen)] if seen else []),
        about.pictures(run_dir, player),
        *_loop(run_dir, player),
    ]
    title = f"How AlphaZero learned {about.title(player.game.name)}"
    path = page.write_page(options.out, title, sections)
    print(f"{path}: {path.stat().st_size / 1e6:.2f} MB")
    return 0


def _live(run_dir: pathlib.Path, typed: custom.Typed, player: Player) -> list[page.Section]:
    """Returns the sections whose searches run in the page itself."""
    packed = _pack_networks(run_dir, typed, player)
    data = live_data(player.game, quiet(player.parts.search), packed)
    data |= {"starts": [], "encoding": player.parts.network.encoding}
    if player.game.name == "tic_tac_toe":
        data["starts"] = [{"title": k, "board": _cells(v)} for k, v in _POSITIONS.items()]
    return [
        *_tour(player, data),
        page.Section(
            "A search, phase by phase",
            "What AlphaZero does before a move. The search runs in this page, from any position.",
            kind="explorer",
            data=data,
        ),
        page.Section(
            "Two searches, side by side",
            "Both search the same position, with separate settings. A frame marks the move played"
            + (", and dots mark the optimal moves." if has_table(player.game) else "."),
            kind="compare",
            data=data,
        ),
        page.Section(
            "What the network sees and predicts",
            "Click cells to set up a position.",
            kind="encoding",
            data=data,
        ),
        *(_of_networks(player, data) if packed else []),
    ]


def _of_networks(player: Player, data: dict[str, Any]) -> list[page.Section]:
    """Returns the sections that need a network which the page can evaluate."""
    return [
        page.Section(
            "This position during training",
            "The policy and value of each network, for the position chosen above or on any other "
            "board of this page.",
            kind="training",
            data=data,
        ),
        page.Section(
            "Play against the network",
            "It plays its most probable move, or the move of a search: you choose.",
            kind="play",
            data=data,
        ),
        *_proof(player, data),
    ]


def _recorded(run_dir: pathlib.Path, player: Player) -> list[page.Section]:
    """Returns the sections computed in Python, for a game whose rules the page does not have."""
    left_out = (
        f"A page has only the rules of {', '.join(map(about.title, GAMES))}. So this page about "
        f"{about.title(player.game.name)} has no searches to step through, no positions to set up "
        "and no games to play. Its searches and games were made when it was written."
    )
    console.note(left_out)
    said = page.Section("Not included", element=node("p", {"class": "az-about"}, left_out))
    return [said, report.first_moves(player), report.games(player, runs.read_config(run_dir).seed)]


def _tour(player: Player, data: dict[str, Any]) -> list[page.Section]:
    """Returns a tour from random games to AlphaZero's search, in one position of tic-tac-toe."""
    if player.game.name != "tic_tac_toe":
        return []
    intro = "From random games to AlphaZero, in ten steps; the search below shows each of them."
    return [page.Section("A tour", intro, kind="tour", data=data)]


def _proof(player: Player, data: dict[str, Any]) -> list[page.Section]:
    """Returns a section with all games against the network, if the page has all positions."""
    if not has_table(player.game):
        return []
    intro = "Choose every reply yourself: all games that can follow are counted."
    return [page.Section("The proof, step by step", intro, kind="proof", data=data)]


def _pack_networks(
    run_dir: pathlib.Path, typed: custom.Typed, player: Player
) -> list[dict[str, Any]]:
    """Returns the networks of some iterations, newest last: their outputs or their weights."""
    try:
        newest = _pack_newest(player)
    except ValueError as error:
        console.note(f"without the network, and games against it: {error}")
        return []
    if has_table(player.game):
        known, most = networks.answered(run_dir), _MOST_NETWORKS
    else:
        known, most = runs.iterations(run_dir), min(_MOST_BYTES // _size(newest), _MOST_NETWORKS)

    def pack(iteration: int) -> dict[str, Any]:
        if not has_table(player.game):
            return pack_player(custom.load_player(run_dir, typed, iteration), newest["width"])
        answers = networks.load_answers(run_dir, iteration, solve(player.game))
        return networks.pack_answers(iteration, answers)

    known = np.array([i for i in known if i < player.iteration])
    older = []
    for place in atlas.choose_frames(known, most - 1) if len(known) and most > 2 else []:
        try:
            older.append(pack(int(known[place])))
        except (ValueError, runs.CheckpointError) as error:
            console.note(f"without the network of iteration {known[place]}: {error}")
    return [*older, newest]


def _pack_newest(player: Player) -> dict[str, Any]:
    """Packs a network; rounds the weights if it is large."""
    packed = pack_player(player)
    if has_table(player.game) or _size(packed) <= _MOST_BYTES or packed["width"] <= _ROUNDED:
        return packed
    console.note(
        f"the network's weights are rounded to {_ROUNDED} bytes to keep the page small: its "
        "results differ from those in Python in about the fifth digit"
    )
    return pack_player(player, _ROUNDED)


def _size(packed: dict[str, Any]) -> int:
    return sum(len(part) for layer in packed["layers"].values() for part in layer.values())


def _cells(text: str) -> tuple[int, ...]:
    return tuple({"X": 1, "O": -1, ".": 0}[mark] for mark in text.replace(" ", ""))


def _portraits(
    run_dir: pathlib.Path, player: Player
) -> tuple[atlas.Atlas, np.ndarray, atlas.Portrait] | None:
    """Returns the layout of all positions and their snapshots; None if the run stored none."""
    try:
        return atlas.make_atlas(player.game, solve(player.game)), *atlas.load_portraits(run_dir)
    except ValueError as error:
        console.note(f"without the picture of all positions: {error}")
        return None


def _atlas(
    player: Player, places: atlas.Atlas, iterations: np.ndarray, portraits: atlas.Portrait
) -> page.Section:
    """Returns the section that shows all positions over the iterations."""
    solution = solve(player.game)
    which = "Every position" if places.total == len(places.ply) else "A sample of the positions"
    return page.Section(
        "All positions during training",
        f"{which} of the game up to symmetry, ply by ply from top to bottom.",
        kind="atlas",
        data=atlas.atlas_data(player.game, solution, places, iterations, portraits),
    )


def _loop(run_dir: pathlib.Path, player: Player) -> list[page.Section]:
    """Returns the section about learning from a game of self-play, if the run can be resumed."""
    try:
        data = loop.loop_data(run_dir, player)
    except checkpoint.CheckpointError as error:
        console.note(f"without how it learned: {error}")
        return []
    intro = (
        "One game of self-play, as in training but from the starting position, and what the "
        "network learns from one of its positions. Choose a move, then go on step by step."
    )
    return [page.Section("How it learned", intro, kind="loop", data=data)]


main = console.make_main(explain, Options, "azjax explain", "the page was not written")
