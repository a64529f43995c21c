"""What a page needs to search on its own: a game, its networks, and the settings to start with."""

import base64
import contextlib
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from azjax import games
from azjax.games import solver
from azjax.games.base import Game
from azjax.networks.symmetric import Group, make_group
from azjax.runs.player import Player
from azjax.search import PUCT, UCT, Algorithm, Gumbel
from azjax.viz.page import encode

GAMES = "tic_tac_toe", "connect_four", "mnk", "hex"  # Their rules are in `js/games.js`.
_MOST_SIMULATIONS = 1000  # Larger trees cannot be drawn.


def live_data(
    game: Game, search: Algorithm, packed: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """Returns the input of the components of `js/`, for JSON.

    Args:
      game: the rules.
      search: the first algorithm and its settings.
      packed: networks, from `pack_player`, oldest first.
    """
    evaluator = {"evaluator": "network" if packed else "uniform", "seed": 0}
    settings = search_settings(search) | evaluator
    data: dict[str, Any] = {"game": game.name, "settings": settings, "networks": list(packed)}
    return data | ({"positions": _positions(game)} if game.is_small else {})


@functools.lru_cache(maxsize=4)
def solve(game: Game) -> solver.Solution:
    """Returns the cached solution of a game; see `solver.solve`."""
    return solver.solve(game)


@functools.lru_cache(maxsize=4)
def _positions(game: Game) -> dict[str, Any]:
    """Lists the positions with a decision of a small game, for `openGame` in `js/games.js`.

    `boards` are their cells as `.XO`, and `values` are under perfect play for the player to move.
    `counts` are the numbers of legal moves, and `optimal` is 1 for those that keep the value.
    """
    solution = solve(game)
    rows = solution.decisions
    legal = solution.legal[rows]
    return {
        "boards": "".join(".XO"[mark] for mark in np.ravel(solution.decision_states.board)),
        "values": encode(solution.values[rows], "i1"),
        "counts": encode(legal.sum(axis=1), "<u2"),
        "optimal": encode(solution.optimal[rows][legal], "u1"),
    }


def game_title(name: str) -> str:
    """Returns the title of a game on pages, such as `Connect Four 4 × 5`."""
    base, _, size = name.partition(":")
    known = {"tic_tac_toe": "tic-tac-toe", "mnk": "m,n,k"}
    words = known.get(base, base.replace("_", " ").title())
    if base == "pgx":
        return f"{size} of pgx"
    return " ".join([words, *([" × ".join(size.split("x"))] if size else [])])


def is_live(game: Game) -> bool:
    """Returns whether a page can search a game: whether it has the rules and the start."""
    if game.name.partition(":")[0] not in GAMES:
        return False
    with contextlib.suppress(ValueError):  # A custom game may have the name of no size.
        made = games.make(game.name)
        return game.step is made.step and game.init is made.init and game.display is made.display
    return False


def search_settings(search: Algorithm) -> dict[str, Any]:
    """Returns the settings of all algorithms; those of `search` override the defaults.

    There is no root noise, as in evaluation, and the tree is small enough to draw.
    """
    if not isinstance(search, PUCT | Gumbel | UCT):
        raise ValueError(
            f"a page does not support the search {type(search).__name__}: use PUCT, Gumbel or UCT"
        )
    every: dict[str, Any] = {}
    for algorithm in (PUCT(), Gumbel(), UCT(), search):
        every |= dataclasses.asdict(algorithm)
    simulations = min(search.num_simulations, _MOST_SIMULATIONS)
    no_noise = {"dirichlet_fraction": 0.0, "gumbel_scale": 0.0}
    return every | no_noise | {"num_simulations": simulations}


# Networks: in a small game their outputs in every position, in other games their weights.


def pack_player(player: Player) -> dict[str, Any]:
    """Packs a player's network for a page, for `openNetworks` in `js/network.js`.

    In small games, these are its outputs in all positions that have a decision.
    """
    if not player.game.is_small:
        return pack_weights(player)
    solution = solve(player.game)
    legal = solution.legal[solution.decisions]
    logits, values = map(np.asarray, player.evaluate(solution.decision_states))
    packed = {"logits": encode(logits[legal], "<f4"), "values": encode(values, "<f4")}
    return {"iteration": player.iteration, "kind": "answers"} | packed


def pack_weights(player: Player) -> dict[str, Any]:
    """Packs the folded weights of a network, for `openNetworks` in `js/network.js`."""
    network = player.parts.network
    if network.plain is None:
        raise ValueError("a page cannot compute this network: use an MLP or a residual network")
    kind, blocks, norm, layers = network.plain(player.params)
    header = {"kind": kind, "iteration": player.iteration, "encoding": network.encoding}
    if kind == "quantized":
        group = make_group(player.game, network.symmetric)
        arrays, content = list_arrays(integers(player))
        packed = base64.b64encode(content).decode()
        return header | {"group": list_group(group), "arrays": arrays, "bytes": packed}
    packed = {
        name: {part: encode(np.asarray(weights), "<f4") for part, weights in layer.items()}
        for name, layer in layers.items()
    }
    return header | {"blocks": blocks, "norm": norm, "layers": packed}


def integers(player: Player) -> dict[str, dict[str, Any]]:
    """Returns the arrays of each layer of a quantized network."""
    params = player.parts.network.init(jax.random.key(0))["params"]
    return {name: dict(layer) for name, layer in params.items()}


def list_arrays(layers: Mapping[str, Mapping[str, Any]]) -> tuple[list[Any], bytes]:
    """Returns `[layer, name, type, shape]` of each array, and their bytes in the same order."""
    arrays = [
        (layer, name, np.ascontiguousarray(np.atleast_1d(np.asarray(array))))
        for layer, parts in layers.items()
        for name, array in parts.items()
    ]
    listed = [[layer, name, array.dtype.str[1:], [*array.shape]] for layer, name, array in arrays]
    return listed, b"".join(array.tobytes() for _, _, array in arrays)


def list_group(group: Group) -> dict[str, list[list[int]]]:
    """Returns the permutations of cells, copies and actions as lists."""
    return {name: getattr(group, name).tolist() for name in ("cells", "copies", "actions")}
