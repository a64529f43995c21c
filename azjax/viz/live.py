"""What a page needs to search by itself: a game, its networks, and the settings to begin with."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from azjax import games
from azjax._settings import did_you_mean
from azjax.games import solver
from azjax.games.base import Game
from azjax.games.tic_tac_toe import from_board
from azjax.runs.player import Player, changed
from azjax.search import PUCT, UCT, Algorithm, Gumbel
from azjax.viz import networks
from azjax.viz.positions import position_table

GAMES = ("tic_tac_toe", "connect_four", "mnk")  # That `js/games.js` knows, of any size.
EVALUATORS = ("network", "uniform", "rollout", "exact")
MAX_SIMULATIONS = 1000  # A tree of so many can still be drawn.


def live_data(
    game: Game,
    search: Algorithm,
    packed: Sequence[dict[str, Any]] = (),
    board: Any = None,
    evaluator: str | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Returns what the components of `js/` are given, for JSON.

    Args:
      game: the rules.
      search: the algorithm and its settings to begin with; the other algorithms have their
        defaults. Root noise is what `search` says, 0 for none.
      packed: networks, from `networks.pack_answers` or `networks.pack_weights`, oldest first.
      board: the position to begin with, cells or a state; the first of the game if None.
      evaluator: one of `EVALUATORS`; the newest network if there is one, otherwise uniform.
      seed: of noise, rollouts and the order of UCT.

    Raises:
      ValueError: if a page does not know the game or the algorithm, the position cannot occur or is
        finished, or a setting is out of range.
    """
    check_game(game)
    evaluators = EVALUATORS[0 if packed else 1 : 4 if has_table(game) else 3]
    evaluator = evaluator or evaluators[0]
    if evaluator not in evaluators:
        hint = "" if packed else "; a network needs a trained run"
        known = ", ".join(evaluators) + hint + did_you_mean(evaluator, evaluators)
        raise ValueError(f"evaluator {evaluator!r} is unknown: use {known}")
    if not 0 <= seed < 2**31:
        raise ValueError(f"seed is {seed}: use 0 to {2**31 - 1}")
    settings = _settings(search) | {"evaluator": evaluator, "seed": seed}
    data = {"game": game.name, "settings": settings, "networks": list(packed)}
    data["board"] = _cells(game, board)
    if has_table(game):
        data["positions"] = position_table(solve(game))
    return data


@functools.lru_cache(maxsize=4)
def solve(game: Game) -> solver.Solution:
    """Returns the solution of a game, once; see `solver.solve`."""
    return solver.solve(game)


def quiet(search: Algorithm) -> Any:
    """Returns a search as a trained player plays, without root noise, and small enough to draw."""
    if not isinstance(search, PUCT | Gumbel | UCT):
        return search
    noise = {"puct": "dirichlet_fraction", "gumbel": "gumbel_scale"}.get(search.algorithm)
    simulations = min(search.num_simulations, MAX_SIMULATIONS)
    return changed(search, num_simulations=simulations, **({noise: 0.0} if noise else {}))


def pack_player(player: Player, width: int | None = None) -> dict[str, Any]:
    """Returns a player's network for a page; `width` is that of its weights, if it has them.

    Raises:
      ValueError: if a page does not know the game, or cannot compute the network.
    """
    check_game(player.game)
    if not has_table(player.game):
        return networks.pack_weights(player, width)
    answers = networks.ask(player, solve(player.game))
    return networks.pack_answers(player.iteration, answers)


def has_table(game: Game) -> bool:
    """Whether a page carries all positions of a game, and what networks answer to each."""
    return game.name == "tic_tac_toe"


def knows(game: Game) -> bool:
    """Whether `js/games.js` has a game's rules."""
    base, _, _ = game.name.partition(":")
    return base in GAMES and game.step is games.make(game.name).step


def check_game(game: Game) -> None:
    """Refuses games that `js/games.js` does not know.

    Raises:
      ValueError: if the game is another.
    """
    if not knows(game):
        raise ValueError(
            f"this is {game.name}, and a page searches {', '.join(GAMES)} alone: load a run of "
            "one of these"
        )


def _settings(search: Algorithm) -> dict[str, Any]:
    """All settings of all algorithms, those of `search` as they are."""
    if not isinstance(search, PUCT | Gumbel | UCT):
        raise ValueError(
            f"a page does not know the search {type(search).__name__}: use PUCT, Gumbel or UCT"
        )
    if search.num_simulations > MAX_SIMULATIONS:
        raise ValueError(
            f"num_simulations is {search.num_simulations}: use 1 to {MAX_SIMULATIONS}, so that the "
            "tree can be drawn"
        )
    every: dict[str, Any] = {}
    for other in (quiet(PUCT()), quiet(Gumbel()), UCT(), search):
        every |= dataclasses.asdict(other)
    return every


def _cells(game: Game, board: Any) -> list[int]:
    """The cells of a position that can be searched."""
    if board is None:
        board = game.init()
    if game.name == "tic_tac_toe":
        state = from_board(np.asarray(getattr(board, "board", board)))
    elif hasattr(board, "board"):
        state = board
    else:
        raise ValueError(f"a position of {game.name} is one of its states: pass such a state")
    if state.over:
        raise ValueError("the game is over in this position: there is nothing to search")
    return np.asarray(state.board).tolist()
