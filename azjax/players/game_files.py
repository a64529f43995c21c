"""Games as files of JSON lines.

A line is one game, an object with the entries:

| entry | content |
| --- | --- |
| `game` | the name of the game |
| `players` | the names of player 0 and player 1 |
| `opening_plies` | how many of the moves are a random opening |
| `actions` | all actions from the starting position |
| `moves` | the names of the actions |
| `result` | 1 if player 0 won, 0 for a draw, -1 if player 1 won |
"""

import json
from collections.abc import Sequence

import jax
import numpy as np

from azjax._files import Path, write_text
from azjax.games.base import Game, init_batch, name_actions
from azjax.players.arena import PlayedGames


def write_games(
    path: Path,
    game: Game,
    played: Sequence[PlayedGames],
    opening_actions: np.ndarray | None = None,
) -> None:
    """Writes games to a file; replaces an existing file.

    `played` is from the argument `record` of `play_match`; `opening_actions [K, plies]` are the
    moves that lead to the openings of the match.
    """
    openings = np.zeros((1, 0), np.int32) if opening_actions is None else opening_actions
    lines = []
    for players, results in played:
        actions = np.concatenate([openings[results.openings], results.actions], axis=1)
        named = zip(actions, name_moves(game, actions), results.outcomes.tolist(), strict=True)
        for row, moves, result in named:
            entries = {"game": game.name, "players": players, "opening_plies": openings.shape[1]}
            entries |= {"actions": row[row >= 0].tolist(), "moves": moves, "result": result}
            lines.append(json.dumps(entries))
    write_text(path, "".join(f"{line}\n" for line in lines))


def name_moves(game: Game, actions: np.ndarray) -> list[list[str]]:
    """Returns the names of the moves of each game; `actions [N, T]` are padded with -1."""
    step = jax.jit(jax.vmap(lambda state, action: game.step(state, action)[0]))
    states, names = init_batch(game, len(actions)), [[] for _ in actions]
    for column in actions.T:
        on_host = jax.device_get(states)
        for i in np.flatnonzero(column >= 0):
            state = jax.tree.map(lambda leaf, i=i: leaf[i], on_host)
            names[i].append(name_actions(game, state)[column[i]])
        states = step(states, column)
    return names
