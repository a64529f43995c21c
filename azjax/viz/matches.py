"""Matches in a report, for games where positions cannot be checked against ground truth."""

import pathlib
import time
from collections.abc import Callable

import jax

from azjax import runs
from azjax.drawing import node
from azjax.games.base import State
from azjax.players import Agent, search_agent
from azjax.players.arena import Match, Tally, play_match
from azjax.players.openings import draw_openings
from azjax.players.statistics import mean_score
from azjax.runs.loading import load
from azjax.runs.player import Player
from azjax.search import UCT
from azjax.search.evaluators import rollout_evaluator
from azjax.viz.page import Section

Notify = Callable[[str, int, int], None]  # Called with the opponent, games played, games in all.

_PLIES = 2  # Random moves of an opening.
_AT_ONCE = 4  # Openings played between two checks of the time limit.
_SIMULATIONS = 100  # Of UCT.


def matches(
    run_dir: pathlib.Path,
    player: Player,
    games: int = 64,
    seconds: float = 60.0,
    notify: Notify | None = None,
) -> list[Section]:
    """Plays against UCT and the run's older networks if the game has no ground truth.

    Games have ground truth if they can be enumerated or have labelled positions.

    Args:
      run_dir: the run.
      player: the run's player.
      games: maximum number of games against each opponent, at least 2.
      seconds: time limit of all matches. It is checked every few games, so at least that many
        are played against each opponent.
      notify: progress callback, called with the opponent's name, the number of games played
        against it, and their total number.
    """
    game = player.game
    if game.enumerable or game.positions is not None:
        return []
    key, plies = jax.random.key(0), min(_PLIES, game.max_plies - 1)
    openings = draw_openings(game, key, games // 2, plies).states
    opponents, start = _opponents(run_dir, player), time.monotonic()
    rows = []
    for number, opponent in enumerate(opponents, start=1):
        end = start + seconds * number / len(opponents)  # Time left over goes to the next match.
        key_match = jax.random.fold_in(key, number)
        rows.append(_row(_play(player, opponent, openings, key_match, end, notify)))
    intro = (
        f"{player.agent.name} is the newest network with the search of training. It plays against "
        "UCT with random rollouts and against the run's older networks. Each opening of two random "
        f"moves is played twice, with the sides exchanged: at most {games} games against each "
        f"opponent, fewer if the limit of {seconds:.0f} seconds for all matches is reached. A win "
        "counts 1, a draw ½."
    )
    titles = ("against", "won", "drawn", "lost", "score (95% interval)")
    head = node("tr", None, *(node("th", {"scope": "col"}, title) for title in titles))
    body = [node("tr", None, *(node("td", None, text) for text in row)) for row in rows]
    parts = node("thead", None, head), node("tbody", None, *body)
    return [Section("Matches", intro, element=node("table", {"class": "az-facts"}, *parts))]


def _opponents(run_dir: pathlib.Path, player: Player) -> list[Agent]:
    """Returns UCT with random rollouts, and the older networks with the search of the player."""
    game, parts = player.game, player.parts
    older = [
        load(run_dir, iteration, game, parts.network)
        for iteration in runs.iterations(run_dir)
        if iteration < player.iteration
    ]
    return [
        search_agent(game, UCT(num_simulations=_SIMULATIONS), rollout_evaluator(game)),
        # All networks share the player's functions, which are compiled once.
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
    """Plays each opening once from both seats, a few at a time, until the time `end`."""
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
    first, second = match.moving_first, match.moving_second
    counts = first.wins + second.wins, first.draws + second.draws, first.losses + second.losses
    score = mean_score(*counts)
    share = f"{score.estimate:.0%} ({score.low:.0%} to {score.high:.0%})"
    return [match.second, *map(str, counts), share]
