"""Matches in a report: what is told of a player whose game nobody judges."""

import pathlib
import time
from collections.abc import Callable

import jax

from azjax import runs
from azjax.drawing import node
from azjax.games.base import State
from azjax.players import Agent, search_agent
from azjax.players.arena import Match, Tally, play_match
from azjax.players.openings import random_openings
from azjax.players.ratings import mean_score
from azjax.runs.player import Player, load
from azjax.search import UCT
from azjax.search.evaluators import rollout_evaluator
from azjax.viz.page import Section

Notify = Callable[[str, int, int], None]  # Told the opponent, the games played, and how many.

_PLIES = 2  # Random moves of an opening.
_AT_ONCE = 4  # Openings between two looks at the clock.
_SIMULATIONS = 100  # Of UCT.


def matches(
    run_dir: pathlib.Path,
    player: Player,
    games: int = 64,
    seconds: float = 60.0,
    notify: Notify | None = None,
) -> list[Section]:
    """Plays against UCT and the run's older networks, where there is no other judge.

    Args:
      run_dir: the run.
      player: its player.
      games: at most this many against each opponent, 2 or more.
      seconds: for all matches. The clock is looked at every few games, so at least these are
        played against each opponent.
      notify: called with the opponent's name, the games played against it, and how many there are.

    Raises:
      checkpoint.CheckpointError: if an older checkpoint is damaged.
    """
    game = player.game
    if game.enumerable or game.positions is not None:
        return []
    key, plies = jax.random.key(0), min(_PLIES, game.max_plies - 1)
    openings = random_openings(game, key, games // 2, plies)
    opponents, start = _opponents(run_dir, player), time.monotonic()
    played = []
    for number, opponent in enumerate(opponents, start=1):
        end = start + seconds * number / len(opponents)  # What one leaves, the next ones have.
        key_match = jax.random.fold_in(key, number)
        played.append(_play(player, opponent, openings, key_match, end, notify))
    intro = (
        f"Of {player.agent.name}, the newest network with its search of the training, against "
        "random rollouts and its older selves: different openings of two random moves, each from "
        f"both seats. At most {games} games against each, and fewer where {seconds:.0f} seconds "
        "for all matches were over before. A win counts 1, a draw ½."
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


def _opponents(run_dir: pathlib.Path, player: Player) -> list[Agent]:
    """UCT with random rollouts, and the older networks with the search of the player."""
    game, parts = player.game, player.parts
    older = [
        load(run_dir, iteration, game, parts.network)
        for iteration in runs.iterations(run_dir)
        if iteration < player.iteration
    ]
    return [
        search_agent(game, UCT(num_simulations=_SIMULATIONS), rollout_evaluator(game)),
        # The same functions, so that all of them are compiled once.
        *(player.agent._replace(name=old.agent.name, params=old.params) for old in older),
    ]


def _play(
    player: Player,
    opponent: Agent,
    openings: State,
    key: jax.Array,
    end: float,
    notify: Notify | None,
) -> Match:
    """Plays each opening once from both seats, a few at a time, until the clock says `end`."""
    count = len(jax.tree.leaves(openings)[0])
    pieces = []
    for first in range(0, count, _AT_ONCE):
        if notify:
            notify(opponent.name, 2 * first, 2 * count)
        if pieces and time.monotonic() >= end:
            break
        some = jax.tree.map(lambda leaf, i=first: leaf[i : i + _AT_ONCE], openings)
        number = 2 * len(jax.tree.leaves(some)[0])
        key_some = jax.random.fold_in(key, first)
        pieces.append(play_match(player.game, player.agent, opponent, number, key_some, some))
    return pieces[0]._replace(
        moving_first=_total([piece.moving_first for piece in pieces]),
        moving_second=_total([piece.moving_second for piece in pieces]),
    )


def _total(tallies: list[Tally]) -> Tally:
    return Tally(*map(sum, zip(*tallies, strict=True)))


def _row(match: Match) -> list[str]:
    one, other = match.moving_first, match.moving_second
    counts = one.wins + other.wins, one.draws + other.draws, one.losses + other.losses
    found = mean_score(*counts)
    share = f"{found.estimate:.0%} ({found.low:.0%} to {found.high:.0%})"
    return [match.second, *map(str, counts), share]
