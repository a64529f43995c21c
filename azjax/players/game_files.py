"""Games as files: JSON lines for every game, SGF (FF[4]) for Go, Othello and Hex.

A line of a `.jsonl` file is one game, an object with the entries:

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
import pathlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from azjax._files import Path, write_text
from azjax.drawing import check_folder
from azjax.games.base import Game, init_batch, name_actions
from azjax.players.arena import PlayedGames

_GO, _HEX = 1, 11  # The numbers of these games in SGF.


def check_path(path: Path, game: Game | None = None) -> None:
    """Checks, before any game is played, that games can be written to a file; None: any game."""
    path = pathlib.Path(path)
    check_folder(path)
    if path.suffix not in (".jsonl", ".sgf"):
        raise ValueError(f"{path} is not a file of games: use a name that ends in .jsonl or .sgf")
    if path.suffix == ".sgf" and game is not None and _sgf_number(game) is None:
        raise ValueError(
            f"{game.name} has no SGF format here, only Go, Othello and Hex have one: use a name "
            "that ends in .jsonl"
        )


def write_games(
    path: Path,
    game: Game,
    played: Sequence[PlayedGames],
    opening_actions: np.ndarray | None = None,
) -> None:
    """Writes games to a file, in the format of its extension; replaces an existing file.

    `played` is from the argument `record` of `play_match`; `opening_actions [K, plies]` are the
    moves that lead to the openings of the match.
    """
    check_path(path, game)
    openings = np.zeros((1, 0), np.int32) if opening_actions is None else opening_actions
    lines = []
    for players, results in played:
        actions = np.concatenate([openings[results.openings], results.actions], axis=1)
        named = zip(actions, name_moves(game, actions), results.outcomes.tolist(), strict=True)
        for row, moves, result in named:
            entries = {"game": game.name, "players": players, "opening_plies": openings.shape[1]}
            entries |= {"actions": row[row >= 0].tolist(), "moves": moves, "result": result}
            is_sgf = pathlib.Path(path).suffix == ".sgf"
            lines.append(_as_sgf(game, entries) if is_sgf else json.dumps(entries))
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


def _as_sgf(game: Game, entries: dict[str, Any]) -> str:
    """Writes a game as an SGF tree; the colors alternate, beginning with black."""
    black, white = (name.replace("\\", "\\\\").replace("]", "\\]") for name in entries["players"])
    number, result = _sgf_number(game), {1: "B+", 0: "0", -1: "W+"}[entries["result"]]
    root = f";FF[4]GM[{number}]CA[UTF-8]SZ[{game.board_shape[0]}]PB[{black}]PW[{white}]RE[{result}]"
    if number == _GO:
        root += "KM[7.5]"  # The komi of pgx.

    def to_point(move: str) -> str:
        if number == _HEX:
            return "swap-pieces" if move == "swap" else move
        return "" if move == "pass" else move[0] + chr(ord("a") + int(move[1:]) - 1)  # d3 is dc.

    nodes = [f";{'BW'[i % 2]}[{to_point(move)}]" for i, move in enumerate(entries["moves"])]
    return f"({root}{''.join(nodes)})"


def _sgf_number(game: Game) -> int | None:
    """Returns the number of a game in SGF, or None."""
    name = game.name.removeprefix("pgx:").partition(":")[0]
    numbers = {"othello": 2, "hex": _HEX, "hex_swap": _HEX}
    return _GO if name.startswith("go_") else numbers.get(name)
