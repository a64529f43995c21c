"""Matches against replays in plain Python, and the program `azjax arena`."""

import functools
import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import guard
from azjax.cli import arena as program
from azjax.games import tic_tac_toe as ttt
from azjax.players import Agent, Decision, arena, random_agent
from reference import misere_pile as misere_pile_rules
from refusals import assert_refused
from tables import bench
from trained import compiling_once

KEY = jax.random.key(0)
GAME = bench("tic_tac_toe").game
UNIFORM = random_agent(GAME)


@pytest.fixture(autouse=True)
def _shared():
    """Programs of matches are kept for all players that differ in their parameters alone."""
    with guard.sharing():
        yield


def same(left, right):
    return all(map(np.array_equal, left, right))


def test_the_key_determines_the_games_of_every_batch_and_seat():
    played = [arena.play_games(GAME, UNIFORM, UNIFORM, 32, KEY, batch_size=8) for _ in range(2)]
    assert same(*played)
    other = arena.play_games(GAME, UNIFORM, UNIFORM, 28, jax.random.key(1), batch_size=8)
    assert len(other.outcomes) == 28
    assert not np.array_equal(played[0].actions[:28], other.actions)
    for batch, other in itertools.combinations(np.split(played[0].actions, 4), 2):
        assert len({*map(bytes, batch)} & {*map(bytes, other)}) <= 1
    stones = ttt.from_board([1, -1, 1, -1, 1, -1, 0, 0, 0])
    few = jax.tree.map(lambda leaf: np.stack([leaf] * 2), stones)  # Two moves end most games.
    tally = arena.play_match(GAME, UNIFORM, UNIFORM, 64, KEY, few).moving_first
    assert sum(tally[:3]) == 32 and 4 < tally.distinct <= 8  # Four from each of the openings.
    three = jax.tree.map(lambda leaf: np.stack([leaf] * 3), stones)
    games = arena.play_games(GAME, UNIFORM, UNIFORM, 16, KEY, openings=three, batch_size=8)
    assert games.openings.tolist() == [game % 3 for game in range(16)]


def scripted(game):
    """Plays by the bits of one number per row, one bit for each stone that is gone."""

    def act(params, key, states):
        gone = jnp.sum(states.board != 0, axis=1)
        wanted = (params >> gone) & 1
        legal = jnp.take_along_axis(jax.vmap(game.legal_actions)(states), wanted[:, None], 1)
        return Decision(jnp.where(legal[:, 0], wanted, 0).astype(jnp.int32), legal / 1.0)

    return Agent("scripted", act, np.arange(32), deterministic=True)


def replay(code):
    """The moves of the scripted player, and the outcome for player 0."""
    rules, moves, outcome = misere_pile_rules, [], 0
    position = rules.start()
    while not position.over:
        gone = 5 - position.board.count(0)
        moves.append((code >> gone) & 1 if (code >> gone) & 1 in rules.legal(position) else 0)
        player = position.player
        position, reward = rules.play(position, moves[-1])
        outcome += reward if player == 0 else -reward
    return tuple(moves), outcome


def test_games_in_which_a_player_moves_twice():
    """All possible games have their outcomes."""
    player = scripted(game := bench("misere_pile").game)
    moves, outcomes = zip(*map(replay, range(32)), strict=True)
    assert set(outcomes) == {1, -1}
    for seat in (0, 1):
        games = arena.play_games(game, player, player, 32, KEY, seat, batch_size=32)
        assert games.outcomes.tolist() == [o if seat == 0 else -o for o in outcomes]
        assert [tuple(row[row >= 0].tolist()) for row in games.actions] == [*moves]
    assert len(set(moves)) == 8  # Ways to write 5 as a sum of ones and twos.


def rows(states):
    return {
        bytes(np.concatenate([np.ravel(leaf) for leaf in row])) for row in zip(*states, strict=True)
    }


def test_random_openings():
    for plies, result in [(1, 9), (4, 20), (8, 20)]:
        states = arena.draw_openings(GAME, KEY, 20, plies)
        assert len(states.board) == len(rows(states)) == result
        assert ((states.board != 0).sum(axis=1) == plies).all()
        assert not states.over.any() and (states.player == plies % 2).all()
    assert rows(states) != rows(arena.draw_openings(GAME, jax.random.key(1), 20, plies))


def test_ratings_of_a_match_count_both_seats():
    """Without an advantage of moving first, which one with swapped results would have."""
    won = arena.Tally(20, 5, 3, 28)
    rated = arena.rate([arena.Match("a", "b", won, won, False)])
    assert rated.names == ("a", "b") and rated.ratings[0] > 100
    assert rated.first_move_advantage.estimate == pytest.approx(0, abs=1e-6)


def test_refusals():
    one = jax.tree.map(lambda leaf: leaf[None], ttt.from_board([1, 1, 1, -1, -1, 0, 0, 0, 0]))
    stubborn = Agent("stubborn", lambda *given: Decision(jnp.zeros(4, jnp.int32), None))
    match = functools.partial(arena.play_match, GAME, UNIFORM)
    assert_refused(
        (lambda: match(UNIFORM, 2, KEY, one), "an opening is a finished game"),
        (lambda: match("perfect", 2, KEY), "is not a player: use an Agent"),
        (lambda: match(UNIFORM, 0, KEY), "num_games is 0: use 1 or more"),
        (
            lambda: [*arena.round_robin(GAME, [UNIFORM], 10, KEY)],
            "['random'] has no pairing: name 2",
        ),
        (
            lambda: next(arena.round_robin(GAME, [UNIFORM] * 2, 9, KEY)),
            "two players are called random: give",
        ),
        (  # Illegal actions leave a position unchanged forever.
            lambda: arena.play_games(GAME, stubborn, UNIFORM, 4, KEY, batch_size=4),
            "stubborn against random is not over after 9 moves, the max_plies",
        ),
        (lambda: arena.draw_openings(GAME, KEY, 5, 9), "plies is 9: use 0 to 8"),
    )


# The program `azjax arena`.

MATCHES = [
    arena.Match("a", "best", arena.Tally(10, 20, 70, 9), arena.Tally(0, 20, 80, 7), False),
    arena.Match("a", "worst", arena.Tally(1, 0, 1, 2), arena.Tally(2, 0, 0, 2), True),
    arena.Match(
        "best", "worst", arena.Tally(1200, 0, 0, 900), arena.Tally(900, 100, 200, 800), False
    ),
]


def test_matches_and_ratings_are_printed(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    program._show_matches(MATCHES)
    program._show_ratings(arena.rate(MATCHES))
    lines = re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert lines[0].split() == [
        *["player", "against", "moves", "won", "drawn", "lost", "score", "[95%]", "different"]
    ]
    rows = [line.split() for line in lines if line[:2].strip() and "[" in line or " worst " in line]
    assert rows[1][:7] == ["a", "best", "first", "10", "20", "70", "0.200"]
    assert rows[2][:7] == ["a", "best", "second", "0", "20", "80", "0.100"]
    # Without randomness there is no interval.
    assert rows[3] == ["a", "worst", "first", "1", "0", "1", "0.500", "2"]
    assert rows[5][:7] == ["best", "worst", "first", "1,200", "0", "0", "1.000"]
    assert any("further games would be identical: a – worst." in line for line in lines)
    best = re.findall(r"^ *(\S+) +([+-]\d+) +([+-]\d+) … ([+-]\d+) *$", "\n".join(lines), re.M)
    assert [row[0] for row in best] == ["best", "a", "worst"]


def test_a_match_is_played_and_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # The game would be that of the newest run.
    keys, play = [], program.round_robin
    monkeypatch.setattr(program, "round_robin", lambda *a: keys.append(a[3]) or play(*a))
    line = "random perfect --games 20 --openings 100 --opening-plies 1"
    with compiling_once():
        assert program.main(line.split()) == 0
    out, err = capsys.readouterr()
    assert err == (
        "there are only 9 such openings: all are played\n"
        "each pairing plays 36 games: every opening equally often from each seat\n"
    )
    rows = [line.split() for line in out.splitlines() if re.search(r"(first|second) ", line)]
    for number in (0, 1):
        assert rows[number][:2] == ["random", "perfect"]
        assert sum(map(int, rows[number][3:6])) == 18 and int(rows[number][3]) == 0  # 9 or 18 each.
    # The seed determines the games.
    monkeypatch.setattr(program, "round_robin", lambda *a: keys.append(a[3]) or [MATCHES])
    for seed in (0, 3):
        assert program.main(["random", "perfect", "--seed", str(seed)]) == 0
    assert keys[0] == keys[1] != keys[2]
