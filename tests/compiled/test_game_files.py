"""Games as files: they replay by the rules of another implementation, and SGF has its notation."""

import json

import jax
import numpy as np
import pytest

import azjax
import guard
from azjax.cli import arena
from azjax.games.square import cell_names
from azjax.players import game_files, random_agent
from azjax.players.arena import PlayedGames, Results
from reference import tic_tac_toe as rules
from refusals import check_program


def replay(game):
    """Plays the actions of an exported game; returns the outcome for player 0."""
    position, outcome = rules.start(), 0
    for action in game["actions"]:
        assert not position.over and action in rules.legal(position)
        player = position.player
        position, reward = rules.play(position, action)
        outcome += reward if player == 0 else -reward
    assert position.over
    return outcome


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_tournament_is_exported_with_its_openings(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # Without runs.
    path = tmp_path / "games.jsonl"
    options = "random minimax:1 --games 20 --openings 3 --opening-plies 2 --export-games"
    with guard.sharing():
        assert arena.main([*options.split(), str(path)]) == 0
    games = read(path)
    assert len(games) == 24  # Every opening equally often from each seat.
    assert len({tuple(game["actions"][:2]) for game in games}) == 3
    for game in games:
        assert replay(game) == game["result"] and game["opening_plies"] == 2
        assert game["game"] == "tic_tac_toe"
        assert game["moves"] == [cell_names(3, 3)[action] for action in game["actions"]]
    sides = [game["players"] for game in games[::12]]
    assert sides == [["random", "minimax(1)"], ["minimax(1)", "random"]]
    won = [row.split()[3] for row in capsys.readouterr().out.splitlines()[1:3]]
    results = np.array([game["result"] for game in games])
    assert won == [str((results[:12] == 1).sum()), str((results[12:] == -1).sum())]


def test_a_player_is_exported_against_itself(tmp_path):
    game, path = azjax.make("tic_tac_toe"), tmp_path / "games.jsonl"
    player = random_agent(game)
    with guard.sharing():
        game_files.export_games(path, game, player, player, 10, jax.random.key(0))
    games = read(path)
    assert len(games) == 10 and len({tuple(game["actions"]) for game in games}) > 5
    assert all(replay(one) == one["result"] for one in games)


@pytest.mark.parametrize(
    ("name", "actions", "outcome", "sgf"),
    [
        ("hex:3", [2, 2], 1, "(;FF[4]GM[11]CA[UTF-8]SZ[3]PB[a\\]b]PW[c]RE[B+];B[c1];W[a3])"),
        ("hex_swap:3", [2, 9, 0], -1, "RE[W+];B[c1];W[swap-pieces];B[a1])"),
        ("othello:4", [1, 0], 0, "(;FF[4]GM[2]CA[UTF-8]SZ[4]PB[a\\]b]PW[c]RE[0];B[ba];W[aa])"),
        ("pgx:go_5x5", [7, 25], -1, "GM[1]CA[UTF-8]SZ[5]PB[a\\]b]PW[c]RE[W+]KM[7.5];B[cb];W[])"),
    ],
)
def test_sgf(name, actions, outcome, sgf, tmp_path):
    if name.startswith("pgx"):
        pytest.importorskip("pgx")
    padded = np.array([[*actions, -1, -1]], np.int32)
    results = Results(np.array([outcome]), np.array([len(actions)]), np.zeros(1), padded)
    with guard.sharing():
        played = [PlayedGames(("a]b", "c"), results)]
        game_files.write_games(tmp_path / "x.sgf", azjax.make(name), played)
    assert (tmp_path / "x.sgf").read_text().endswith(f"{sgf}\n")


def test_wrong_paths_are_refused_before_the_games(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(arena, "round_robin", None)
    rows = [
        ("x.pgn", "x.pgn is not a file of games: use a name that ends in .jsonl or .sgf"),
        ("x.sgf", "tic_tac_toe has no SGF format here, only Go, Othello and Hex have one"),
        ("nowhere/x.jsonl", "there is no folder nowhere"),
    ]
    rows = [(f"random minimax:1 --export-games {path}", said) for path, said in rows]
    check_program(arena.main, rows, capfd)
