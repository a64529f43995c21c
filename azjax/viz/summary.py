"""Sections of the page that explains a player: an introduction and facts."""

import json
import math
import pathlib

import jax

from azjax import runs
from azjax._files import Path
from azjax.drawing import Drawing, node
from azjax.networks import MLPConfig, ResNetConfig
from azjax.networks.base import Network
from azjax.proof.certificate import certificate_table
from azjax.runs.config import Config
from azjax.runs.player import Player
from azjax.runs.pretrained import read_about
from azjax.training import metrics
from azjax.viz.live import game_title
from azjax.viz.page import Section

_LEAD = (
    "AlphaZero learns to play a board game from its rules alone. A neural network suggests moves "
    "and estimates who will win. A search looks ahead with these estimates and finds better moves. "
    "The network then learns from games that the search plays against itself."
)
_LIVE = (
    "This page is about one player that was trained in this way. All searches run in your browser. "
    "Most sections of the page share one position: change it in one section, and the others follow."
)
_RECORDED = (
    "This page shows recorded searches and games of one player that was trained in this way."
)


def introduce(is_live: bool) -> Section:
    """Returns the first section of a page; `is_live`: whether searches run in the page."""
    texts = [
        node("p", {"class": "az-about"}, text) for text in (_LEAD, _LIVE if is_live else _RECORDED)
    ]
    return Section("What this page is about", element=node("div", None, *texts))


def summarize_run(run_dir: Path, player: Player, picture: Drawing | None = None) -> Section:
    """Summarizes the run, its network, and the proof of its player.

    Args:
      run_dir: the run directory.
      player: the player.
      picture: shown below, such as an animation of the training.
    """
    path, config = pathlib.Path(run_dir), runs.read_config(run_dir)
    search, played, iterations = config.search, config.selfplay, player.iteration
    records = metrics.read_records(path / "metrics.jsonl")
    games = sum(record.get("games", 0) for record in records if record["iteration"] <= iterations)
    moves = iterations * played.games * played.unroll_length
    finished = f"{_count(games, 'game')} and " if games else ""
    text = (
        f"This player learned {game_title(player.game.name)} only from games against itself, in "
        f"{_count(iterations, 'iteration')} with {finished}{_count(moves, 'move')} in total. Each "
        f"move was chosen by {type(search).__name__} search with "
        f"{_count(search.num_simulations, 'simulation')} and {_network(player, config)}, whose "
        f"input has the {player.parts.network.encoding} encoding. {_proof(path, player, config)} "
        f"The run directory is {path.resolve().name}."
    )
    shown = [node("div", {"class": "az-scroll", "tabindex": 0}, picture.element)] if picture else []
    summary = node("p", {"class": "az-about"}, text)
    return Section("About this run", element=node("div", None, summary, *shown), label="The run")


def summarize_shipped(player: Player) -> Section:
    """Summarizes a player that comes with azjax: its training, its network and its overrides."""
    assert player.name is not None
    training, search = read_about(player.name)["training"], player.parts.search
    seconds = training["seconds"]
    time = f", {_count(seconds, 'second')}" if seconds else ""
    plays = "without search" if player.alone else f"with {search.num_simulations} simulations"
    text = (
        f"{player.name} comes with azjax. It learned {game_title(player.game.name)} only from "
        f"games against itself, {_count(training['moves'], 'move')} in "
        f"{_count(player.iteration, 'iteration')} ({training['device']}{time}). The weights of its "
        f"network ({_count(count_parameters(player.parts.network), 'parameter')}) were rounded to "
        f"integers, so every machine computes the same outputs. It plays {plays}."
    )
    if player.overrides is not None:
        entries = _count(len(player.overrides.actions), "position")
        text += (
            f" In {entries} and their symmetric copies, an override table replaces its move. "
            "This page shows the network without that table."
        )
    summary = node("p", {"class": "az-about"}, text)
    return Section("About this player", element=summary, label="The player")


def _network(player: Player, config: Config) -> str:
    network, count = config.network, count_parameters(player.parts.network)
    kind = "a custom network"
    if isinstance(network, ResNetConfig):
        width = _count(network.width, "channel" if network.layers == "conv" else "unit")
        kind = f"a residual network of {_count(network.blocks, 'block')} and {width}"
    if isinstance(network, MLPConfig):
        kind = f"an MLP of {' · '.join(map(str, network.hidden))}"
    return f"{kind} ({_count(count, 'parameter')})"


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _proof(run_dir: pathlib.Path, player: Player, config: Config) -> str:
    """Returns the statement of the certificate, if it is about this iteration."""
    path = run_dir / "certificate.json"
    if not path.exists():
        return "Nothing was proved about this player."
    try:
        content = json.loads(path.read_text())
        title, _ = certificate_table(content)
        subject = content["game"], content["seed"], content["iterations"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{path} is damaged: delete it, or make it again by verifying the run"
        ) from error
    if subject != (player.game.name, config.seed, player.iteration):
        return "Nothing was proved about this iteration."
    return f"{title}."


def count_parameters(network: Network) -> int:
    """Returns the number of parameters of a network."""
    shapes = jax.eval_shape(network.init, jax.random.key(0))["params"]
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes))
