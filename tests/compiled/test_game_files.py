"""Games as files: they replay by the rules of another implementation."""

import json

import jax
import numpy as np

import azjax
import guard
from azjax.cli import arena
from azjax.games.square import cell_names
from azjax.players import game_files, random_agent
from azjax.players.arena import play_match
from azjax.players.openings import draw_openings
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


def test_games_are_written_with_their_openings(tmp_path):
    """Of both assignments of the players to seats; outcomes are those of player 0."""
    game, path, played = azjax.make("tic_tac_toe"), tmp_path / "games.jsonl", []
    first, second = random_agent(game), random_agent(game)._replace(name="other")
    with guard.sharing():
        openings = draw_openings(game, jax.random.key(1), 3, 2)
        options = {"openings": openings.states, "record": played.append}
        match = play_match(game, first, second, 24, jax.random.key(0), **options)
        game_files.write_games(path, game, played, openings.actions)
    games = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(games) == 24 and len({tuple(one["actions"][:2]) for one in games}) == 3
    for one in games:
        assert replay(one) == one["result"]
        assert (one["game"], one["opening_plies"]) == ("tic_tac_toe", 2)
        assert one["moves"] == [cell_names(3, 3)[action] for action in one["actions"]]
    sides = [one["players"] for one in games[::12]]
    assert sides == [["random", "other"], ["other", "random"]]
    results = np.array([one["result"] for one in games])
    assert match.moving_first.wins == (results[:12] == 1).sum()
    assert match.moving_second.wins == (results[12:] == -1).sum()


def test_a_wrong_path_is_refused_before_the_games(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(arena, "round_robin", None)
    rows = [("random minimax:1 --export-games x/y.jsonl", "there is no folder x for x/y.jsonl")]
    check_program(arena.main, rows, capfd)
