"""What a run was, in a sentence and three pictures."""

import json
import pathlib
from typing import Any

from azjax import runs
from azjax._files import Path
from azjax.drawing import Drawing, node
from azjax.networks import MLPConfig, ResNetConfig
from azjax.proof.certificate import certificate_table
from azjax.runs.config import Config
from azjax.runs.player import Player
from azjax.training import metrics
from azjax.viz.architecture import count_parameters
from azjax.viz.diagrams import encoding_picture, loop_picture, network_picture, sample_state
from azjax.viz.page import Section


def about(run_dir: Path, player: Player, picture: Drawing | None = None) -> Section:
    """Says what a page explains: the run, its network, and whether it was proved.

    Args:
      run_dir: the run.
      player: its player.
      picture: to show below, such as its animation.

    Raises:
      ValueError: if what is in the run directory is damaged.
    """
    path, config = pathlib.Path(run_dir), runs.read_config(run_dir)
    search, played, made = config.search, config.selfplay, player.iteration
    records = metrics.read_records(path / "metrics.jsonl")
    games = sum(record.get("games", 0) for record in records if record["iteration"] <= made)
    moves = made * played.games * played.unroll_length
    finished = f"{_many(games, 'game')} and " if games else ""
    sentence = (
        f"This page shows how AlphaZero learned {title(player.game.name)} from games against "
        f"itself alone, in {_many(made, 'iteration')} of {finished}"
        f"{_many(moves, 'move')}, each found by {type(search).__name__} with "
        f"{_many(search.num_simulations, 'simulation')} over {_network(player, config)}, which "
        f"sees {player.parts.network.encoding} planes. {_proof(path, player, config)} "
        f"Its run directory is {path.resolve().name}."
    )
    shown = [node("div", {"class": "az-scroll", "tabindex": 0}, picture.element)] if picture else []
    said = node("p", {"class": "az-about"}, sentence)
    return Section("What this is", element=node("div", None, said, *shown))


def title(name: str) -> str:
    """How a game of a name is called on pages."""
    base, _, size = name.partition(":")
    known = {"tic_tac_toe": "tic-tac-toe", "connect_four": "Connect Four", "mnk": "m,n,k"}
    words = known.get(base, base.replace("_", " "))
    return " ".join([words, *([" \N{MULTIPLICATION SIGN} ".join(size.split("x"))] if size else [])])


def _network(player: Player, config: Config) -> str:
    network, count = config.network, count_parameters(player.parts.network)
    kind = "a network of its own"
    if isinstance(network, ResNetConfig):
        width = _many(network.width, "channel" if network.layers == "conv" else "unit")
        kind = f"a residual network of {_many(network.blocks, 'block')} and {width}"
    if isinstance(network, MLPConfig):
        kind = f"an MLP of {' · '.join(map(str, network.hidden))}"
    return f"{kind} ({_many(count, 'parameter')})"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _proof(run_dir: pathlib.Path, player: Player, config: Config) -> str:
    """What the certificate says, if it is about this iteration."""
    path = run_dir / "certificate.json"
    if not path.exists():
        return "Nothing was proved about it."
    try:
        content = json.loads(path.read_text())
        title, _ = certificate_table(content)
        known = content["game"], content["seed"], content["iterations"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{path} is damaged: delete it, or make it again by verifying the run"
        ) from error
    if known != (player.game.name, config.seed, player.iteration):
        return "Nothing was proved about this iteration."
    return f"{title}."


def pictures(run_dir: Path, player: Player) -> Section:
    """Draws the loop, the network and its input."""
    config, network = runs.read_config(run_dir), player.parts.network
    planes = encoding_picture(player.game, network.encoding, sample_state(player.game))
    drawn = {
        "The loop": loop_picture(config),
        "The network": network_picture(player.parts, config.network),
        "The encoding": planes,
    }
    figures = [_figure(title, drawing) for title, drawing in drawn.items()]
    intro = (
        "Self-play fills the buffer with positions, each with the search's policy π and the "
        "game's outcome z; the learner brings the network's p and v closer to these; and the "
        "better network plays the next games."
    )
    return Section("The parts", intro, element=node("div", {"class": "az-diagrams"}, *figures))


def _figure(title: str, drawing: Drawing) -> Any:
    return node("figure", None, node("figcaption", None, title), drawing.element)
