"""Matches in a report: what is told of a player whose game nobody judges."""

import pathlib

import jax

from azjax import runs
from azjax.agents import search_agent
from azjax.arena import Match, play_match
from azjax.drawing import node
from azjax.evaluators import rollout_evaluator
from azjax.openings import random_openings
from azjax.player import Player, load
from azjax.ratings import mean_score
from azjax.search import UCT
from azjax.viz.page import Section

_OPENINGS, _PLIES = 32, 2
_SIMULATIONS = 100  # Of UCT.


def matches(run_dir: pathlib.Path, player: Player) -> list[Section]:
    """Plays against UCT and the run's older networks, where there is no other judge.

    Raises:
      checkpoint.CheckpointError: if an older checkpoint is damaged.
    """
    game, parts = player.game, player.parts
    if game.enumerable or game.positions is not None:
        return []
    uct = search_agent(game, UCT(num_simulations=_SIMULATIONS), rollout_evaluator(game))
    older = [
        load(run_dir, iteration, game, parts.network).agent
        for iteration in runs.iterations(run_dir)
        if iteration < player.iteration
    ]
    openings = random_openings(game, jax.random.key(0), _OPENINGS, min(_PLIES, game.max_plies - 1))
    played = [
        play_match(game, player.agent, other, 2 * _OPENINGS, jax.random.key(i), openings)
        for i, other in enumerate([uct, *older])
    ]
    intro = (
        f"Of {player.agent.name}, the newest network with its search of the training, against "
        "random rollouts and its older selves: different openings of two random moves, each from "
        "both seats. A win counts 1, a draw ½."
    )
    head = ("against", "won", "drawn", "lost", "score (95% interval)")
    body = [node("tr", None, *(node("td", None, text) for text in _row(m))) for m in played]
    table = node(
        "table",
        {"class": "az-facts"},
        node("thead", None, node("tr", None, *(node("th", {"scope": "col"}, t) for t in head))),
        node("tbody", None, *body),
    )
    return [Section("Matches", intro, element=table)]


def _row(match: Match) -> list[str]:
    one, other = match.moving_first, match.moving_second
    counts = one.wins + other.wins, one.draws + other.draws, one.losses + other.losses
    found = mean_score(*counts)
    share = f"{found.estimate:.0%} ({found.low:.0%} to {found.high:.0%})"
    return [match.second, *map(str, counts), share]
