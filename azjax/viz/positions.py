"""All positions of tic-tac-toe with their truth and what a network makes of them, as JSON."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import tic_tac_toe
from azjax.oracle import Solution
from azjax.player import Player
from azjax.viz.page import pack

_OVER = 255  # In the place of a move.


def position_table(solution: Solution, player: Player | None = None, name: str = "") -> dict:
    """Lists every reachable position, for pages that answer without Python.

    Args:
      solution: of tic-tac-toe, from `oracle.solve`.
      player: a trained player, whose raw network is asked for its policy and value.
      name: what to call it.

    Returns:
      Strings and lists for JSON; `S` positions in the solution's order. `boards`: 9 of
      `.XO` each. `truth`: `int8 [S]`, the value under perfect play, in finished games the
      outcome, for the player to move. `optimal`: `uint16 [S]`, a bit for each move that keeps
      it. With a player, `policy`: `uint16 [S, 9]`, probabilities of legal moves in 1 / 10,000;
      `value`: `int16 [S]`, in 1 / 10,000, for the player to move; `move`: `uint8 [S]`, the
      most probable one, 255 in finished games. Arrays are little-endian, in base64.

    Raises:
      ValueError: if the player plays another game.
    """
    if player:
        check_game(player)
    table = {
        "boards": tic_tac_toe.board_text(solution.states),
        "lines": tic_tac_toe.LINES.tolist(),
        "truth": pack(true_values(solution), "i1"),
        "optimal": pack(solution.optimal @ (1 << np.arange(9)), "<u2"),
    }
    return table | _network(solution, player, name) if player else table


def true_values(solution: Solution) -> np.ndarray:
    """Returns `Solution.values`, but the outcome where the game is over."""
    truth = solution.values.copy()
    parents, actions = np.nonzero(solution.legal)
    children = solution.children[parents, actions]
    same = solution.player[children] == solution.player[parents]
    outcome = solution.rewards[parents, actions] * np.where(same, 1, -1)
    ends = solution.over[children]
    truth[children[ends]] = outcome[ends]
    return truth


def check_game(player: Player) -> None:
    """Refuses players of other games.

    Raises:
      ValueError: if the player does not play tic-tac-toe.
    """
    if player.game.name != "tic_tac_toe":
        raise ValueError(
            f"this player plays {player.game.name}, and what is shown here is tic_tac_toe: load "
            "a run of tic_tac_toe"
        )


def _network(solution: Solution, player: Player, name: str) -> dict[str, Any]:
    logits, value = player.evaluate(solution.states)
    logits = jnp.where(solution.legal, logits, -jnp.inf)
    policy = jnp.where(solution.over[:, None], 0.0, jax.nn.softmax(logits))
    move = np.where(solution.over, _OVER, np.argmax(logits, axis=1))
    return {
        "name": name,
        "policy": pack(np.rint(np.asarray(policy) * 10_000), "<u2"),
        "value": pack(np.rint(np.asarray(value) * 10_000), "<i2"),
        "move": pack(move, "u1"),
    }
