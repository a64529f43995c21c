"""Writes one page that explains a trained player: `azjax explain`."""

import dataclasses
import json
import pathlib
from typing import Any

from azjax import runs
from azjax._commands import write_note
from azjax._files import check_folder
from azjax.cli import console, custom
from azjax.runs.player import Player
from azjax.viz import animation, page, report
from azjax.viz.live import GAMES, game_title, is_live, live_data, pack_player

_MOST_NETWORKS = 8
_MOST_BYTES = 3_500_000  # Maximum size of all weights in a page.


@dataclasses.dataclass(frozen=True)
class Options:
    """Writes a page about a player: games against it, and its search step by step."""

    out: pathlib.Path = pathlib.Path("explain.html")
    """The page."""
    typed: custom.OfPlayer = custom.PlayerOptions()


def explain(options: Options) -> int:
    """Writes the page; returns the exit status."""
    check_folder(options.out)
    run_dir, player = custom.open_player(options.typed)
    if not is_live(player.game):
        raise ValueError(
            f"pages have the rules of {', '.join(GAMES)}, and not of {player.game.name}: write the "
            "report of a run instead, by azjax report"
        )
    with console.busy(f"writing {options.out}…"):
        title = f"How AlphaZero learned {game_title(player.game.name)}"
        sections = _live(run_dir, options.typed, player)
        sections = [report.INTRODUCTION, *sections, report.about(player, run_dir)]
        written = page.write_page(options.out, title, sections)
    print(f"{written}: {written.stat().st_size / 1e6:.2f} MB")
    return 0


def _live(run_dir: pathlib.Path, typed: custom.RunOptions, player: Player) -> list[page.Section]:
    """Returns the sections that search in the page."""
    game, search = player.game, player.parts.search
    packed = _pack_networks(run_dir, typed, player)
    data = live_data(game, search, packed)
    data["explorer"] = {"algorithm": "puct"}
    name = type(search).__name__
    trained = "" if name == "PUCT" else f"; this run was trained with {name}"
    parts = [  # Kind, label, whether it is shown, title, introduction.
        ("play", "Play", packed, "Play against the network",
         "Choose your side, and click your moves."),
        ("explorer", "Search", True, "The search, step by step",
         "The player looks ahead before each move. Press “next phase” to follow the search. The "
         f"evaluator estimates new positions. PUCT is the search of AlphaZero{trained}."),
        ("proof", "Proof", packed and game.is_small, "The proof, game by game",
         "Can the network be beaten? All games against it are counted. Choose a reply to see the "
         "games that remain."),
    ]  # fmt: skip
    return [
        page.Section(title, intro, kind=kind, data=data, label=label)
        for kind, label, shown, title, intro in parts
        if shown
    ]


def _pack_networks(
    run_dir: pathlib.Path, typed: custom.RunOptions, player: Player
) -> list[dict[str, Any]]:
    """Packs the networks of some iterations, the newest last."""
    try:
        newest = pack_player(player)
    except ValueError as error:
        write_note(f"the page has no network and no games against it: {error}")
        return []
    if player.name is not None:
        return [newest]
    most = min(_MOST_BYTES // len(json.dumps(newest)), _MOST_NETWORKS)
    earlier = [i for i in runs.iterations(run_dir) if i < player.iteration]
    packed = []
    for i in animation.choose_frames(len(earlier), most - 1) if most > 2 else []:
        try:
            packed.append(pack_player(custom.load_player(run_dir, typed, earlier[i])))
        except (ValueError, runs.CheckpointError) as error:
            write_note(f"the page has no network of iteration {earlier[i]}: {error}")
    return [*packed, newest]


main = console.make_main(explain, Options, "azjax explain", "the page was not written")
