"""Matches against replays in plain Python, exact probabilities, and scripted players."""

import functools
import itertools
import math
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games import tic_tac_toe as ttt
from azjax.games.hashing import mix
from azjax.players import (
    Agent,
    Decision,
    arena,
    minimax_agent,
    random_agent,
)
from azjax.players import perfect_agent as make_perfect_agent
from azjax.players.arena import play_games, play_match, round_robin
from azjax.players.openings import random_openings
from azjax.search.evaluators import rollout_evaluator
from reference import misere_pile as misere_pile_rules
from reference import tic_tac_toe as tic_tac_toe_rules
from tables import bench

KEY = jax.random.key(0)


@pytest.fixture(scope="session")
def game():
    return bench("tic_tac_toe").game


@pytest.fixture(scope="session")
def perfect(game, solution):
    return make_perfect_agent(game, solution)


@pytest.fixture(scope="session")
def uniform(game):
    return random_agent(game)


@pytest.fixture(scope="session")
def lowest(game):
    """Plays the lowest legal action."""

    def act(params, key, states):
        legal = jax.vmap(game.legal_actions)(states)
        return Decision(jnp.argmax(legal, axis=1).astype(jnp.int32), legal / 1.0)

    return Agent("lowest", act, deterministic=True)


def tally(wins, draws, losses, distinct):
    return arena.Tally(wins, draws, losses, distinct)


def same(left, right):
    return all(map(np.array_equal, left, right))


def stack(*states):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *jax.device_get(states))


# Who wins.


def test_perfect_players_draw_one_game_per_seat(game, perfect):
    match = play_match(game, perfect, perfect._replace(name="other"), 1000, KEY)
    only = tally(0, 1, 0, 1)
    assert match == arena.Match("perfect", "other", only, only, deterministic=True)
    assert only.games == 1


@pytest.mark.slow
def test_players_with_random_evaluators_play_many_games(game):
    """Randomness in an evaluator leads to different games, although no move is sampled."""
    first = minimax_agent(game, 1, rollout_evaluator(game))
    match = play_match(game, first, first._replace(name="other"), 40, KEY)
    assert not match.deterministic
    for seat in (match.moving_first, match.moving_second):
        assert seat.games == 20 and seat.distinct > 10


def test_outcomes_are_the_first_named_players(game, perfect, lowest):
    """A perfect player beats one that takes the next free cell, from both seats."""
    match = play_match(game, perfect, lowest, 2, KEY)
    assert (match.moving_first, match.moving_second) == (tally(1, 0, 0, 1), tally(1, 0, 0, 1))
    match = play_match(game, lowest, perfect, 2, KEY)
    assert (match.moving_first, match.moving_second) == (tally(0, 0, 1, 1), tally(0, 0, 1, 1))


@pytest.mark.slow
def test_a_perfect_player_never_loses(game, perfect, uniform):
    """The match with the players exchanged has the mirrored result."""
    match = play_match(game, perfect, uniform, 4000, KEY)
    mirror = play_match(game, uniform, perfect, 4000, jax.random.key(1))
    assert not match.deterministic
    for ours, theirs in [
        (match.moving_first, mirror.moving_second),
        (match.moving_second, mirror.moving_first),
    ]:
        assert (ours.games, ours.wins + ours.draws, theirs.wins) == (2000, 2000, 0)
        assert 10 < ours.distinct < 2000
        rate = (ours.wins + theirs.losses) / 4000
        error = math.sqrt(2 * rate * (1 - rate) / 2000)
        assert abs(ours.wins - theirs.losses) / 2000 <= 5 * error
    assert match.moving_first.wins > match.moving_second.wins + 100


@functools.cache
def random_play(rules, position):
    """The probability of each outcome of random games for player 0, and the mean length."""
    if position.over:
        return np.array([0, 0, 0, 0.0])
    result = []
    for action in rules.legal(position):
        after, reward = rules.play(position, action)
        below = random_play(rules, after) + [0, 0, 0, 1]
        if after.over:
            below[1 - (reward if position.player == 0 else -reward)] = 1
        result.append(below)
    return np.mean(result, axis=0)


def test_random_games_have_the_exact_rates(game, uniform, seat=1):
    """Wins, draws, losses and the length of 20,000 games, within five standard errors."""
    *rates, length = random_play(tic_tac_toe_rules, tic_tac_toe_rules.start())
    assert rates == pytest.approx([0.585, 0.127, 0.288], abs=5e-4)
    games = play_games(game, uniform, uniform, 20_000, KEY, seat)
    winners = -games.outcomes
    for winner, rate in zip((1, 0, -1), rates, strict=True):
        error = math.sqrt(rate * (1 - rate) / 20_000)
        assert abs(np.mean(winners == winner) - rate) <= 5 * error
    assert abs(games.plies.mean() - length) <= 5 * games.plies.std() / math.sqrt(20_000)
    assert (games.plies.min(), games.plies.max()) == (5, 9)


@pytest.mark.slow
def test_the_key_determines_the_games(game, uniform, perfect):
    games = play_games(game, uniform, perfect, 100, KEY)
    assert same(games, play_games(game, uniform, perfect, 100, jax.random.key(0)))
    assert not same(games, play_games(game, uniform, perfect, 100, jax.random.key(1)))
    match = play_match(game, uniform, perfect, 100, KEY)
    assert match == play_match(game, uniform, perfect, 100, jax.random.key(0))


def test_batches_of_games_differ(game, uniform):
    """Games from different seats differ as well."""
    played = [play_games(game, uniform, uniform, 32, KEY, batch_size=8).digests.reshape(4, 8)]
    match = play_match(game, uniform, uniform, 400, KEY)
    for batch, other in itertools.combinations(played[0], 2):
        assert len({*batch.tolist()} & {*other.tolist()}) <= 1
    assert match.moving_first[:3] != (
        match.moving_second[2],
        match.moving_second[1],
        match.moving_second[0],
    )


# Scripted games.


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


@pytest.mark.parametrize("seat", [0, 1])
def test_games_in_which_a_player_moves_twice(seat):
    """All possible games have their outcomes and lengths; equal games have equal digests."""
    game = bench("misere_pile").game
    games = play_games(game, scripted(game), scripted(game), 32, KEY, seat, batch_size=32)
    moves, outcomes = zip(*map(replay, range(32)), strict=True)
    assert set(outcomes) == {1, -1}
    assert games.outcomes.tolist() == [o if seat == 0 else -o for o in outcomes]
    assert games.plies.tolist() == [len(made) for made in moves]
    pairs = itertools.combinations(range(32), 2)
    assert all((moves[i] == moves[j]) == (games.digests[i] == games.digests[j]) for i, j in pairs)
    assert len(set(moves)) == 8  # Ways to write 5 as a sum of ones and twos.


@pytest.mark.slow
def test_digests_distinguish_all_games_of_tic_tac_toe():
    boards, moves = np.zeros((1, 9), np.int8), np.full((1, 9), -1)
    finished = []
    for ply in range(9):
        parents, cells = np.nonzero(boards == 0)
        boards, moves = boards[parents], moves[parents]
        mark = 1 if ply % 2 == 0 else -1
        boards[np.arange(len(cells)), cells] = mark
        moves[:, ply] = cells
        over = (boards[:, ttt.LINES] == mark).all(axis=2).any(axis=1) | (ply == 8)
        finished.append(moves[over])
        boards, moves = boards[~over], moves[~over]
    games = np.concatenate(finished)
    assert len(games) == 255_168
    digest = jax.jit(mix)
    digests = digest(jnp.zeros((len(games), 2), jnp.uint32), np.zeros(len(games), int))
    for ply in range(9):
        made = games[:, ply]
        digests = jnp.where(made[:, None] >= 0, digest(digests, made), digests)
    assert len(np.unique(np.asarray(digests), axis=0)) == 255_168


# Openings and batches.


@pytest.fixture(scope="module")
def openings():
    boards = ([0] * 9, [1, -1] + [0] * 7, [1, -1, 1, -1] + [0] * 5)
    return stack(*map(ttt.from_board, boards))


def test_openings_are_played_in_turn(game, lowest, perfect, openings):
    """Seven games in batches of four; batches end between the openings."""
    reports = []
    games = play_games(
        game, lowest, perfect, 7, KEY, 0, openings, batch_size=4, progress=reports.append
    )
    assert reports == [4, 3]
    assert [len(column) for column in games] == [7, 7, 7, 7]
    expected = play_games(game, lowest, perfect, 3, KEY, 0, openings, batch_size=4)
    assert [len(column) for column in expected] == [3, 3, 3, 3]
    for column in games:
        np.testing.assert_array_equal(column, column[np.arange(7) % 3])
    assert len(set(games.digests)) == 3
    assert all(map(np.array_equal, (column[:3] for column in games), expected))


def test_every_opening_is_played_equally_often_from_both_seats(game, perfect, uniform, openings):
    reports = []
    match = play_match(game, perfect, uniform, 7, KEY, openings, reports.append)
    assert (match.moving_first.games, match.moving_second.games) == (6, 6)
    assert sum(reports) == 12
    match = play_match(game, perfect, perfect, 1000, KEY, openings)
    assert match.deterministic
    for seat in (match.moving_first, match.moving_second):
        assert (seat.games, seat.distinct) == (3, 3)
    assert match.moving_first.wins == match.moving_second.losses > 0


def test_refuses_finished_openings(game, perfect, openings):
    over = ttt.from_board([1, 1, 1, -1, -1, 0, 0, 0, 0])
    both = stack(jax.tree.map(lambda leaf: leaf[0], openings), over)
    for call in (play_match, play_games):
        with pytest.raises(ValueError, match="an opening is a finished game: start from"):
            call(game, perfect, perfect, 2, KEY, openings=both)


def rows(states):
    return {
        bytes(np.concatenate([np.ravel(leaf) for leaf in row])) for row in zip(*states, strict=True)
    }


def test_random_openings(game):
    for plies, result in [(0, 1), (1, 9), (4, 20), (8, 20)]:
        states = random_openings(game, KEY, 20, plies)
        assert len(states.board) == len(rows(states)) == result
        assert ((states.board != 0).sum(axis=1) == plies).all()
        assert not states.over.any()
        assert (states.player == plies % 2).all()
        if plies == 4:
            other = random_openings(game, jax.random.key(1), 20, plies)
            assert rows(states) != rows(other)


def test_large_trees_leave_room_for_few_games(uniform):
    for nodes, games, expected in [
        (1, 10**9, 8192),
        (101, 10**6, 1296),
        (101, 5, 5),
        (1001, 200, 100),  # Not 130 and then 70.
        (8000, 1000, 32),
        (10**5, 1000, 32),
        (10**6 + 1, 1000, 4),  # A gigabyte of trees.
        (10**8, 1000, 1),
    ]:
        assert arena._batch_size(uniform, uniform._replace(nodes=nodes), games) == expected


def test_refuses_impossible_openings(game):
    for count, plies in [(0, 2), (100_001, 2), (-1, 2), (5, -1), (5, 9)]:
        message = f"{count} openings of {plies} moves are not possible: use 1 to 100000 openings "
        with pytest.raises(ValueError, match=message + "of 0 to 8 moves"):
            random_openings(game, KEY, count, plies)
    pile = bench("misere_pile").game._replace(max_plies=7)
    with pytest.raises(ValueError, match="all random games of misere_pile were over after 6 moves"):
        random_openings(pile, KEY, 5, 6)


# Tournaments.


def test_objects_with_an_agent_play(game, perfect, lowest):
    """A trained player is accepted in place of its agent."""
    trained = types.SimpleNamespace(agent=perfect)
    match = play_match(game, trained, lowest, 2, KEY)
    assert match == play_match(game, perfect, lowest, 2, KEY)
    assert round_robin(game, [trained, lowest], 2, KEY) == round_robin(
        game, [perfect, lowest], 2, KEY
    )
    assert same(
        play_games(game, lowest, trained, 1, KEY), play_games(game, lowest, perfect, 1, KEY)
    )
    for wrong in ("perfect", types.SimpleNamespace(agent="perfect")):
        with pytest.raises(ValueError, match="is not a player: use an Agent, or an object with"):
            play_match(game, wrong, lowest, 2, KEY)


def test_round_robin_plays_every_pair_once(game, perfect, uniform, lowest):
    reports = []
    matches = round_robin(game, [perfect, uniform, lowest], 20, KEY, progress=reports.append)
    assert [(match.first, match.second) for match in matches] == [
        ("perfect", "random"),
        ("perfect", "lowest"),
        ("random", "lowest"),
    ]
    games = [(match.moving_first.games, match.moving_second.games) for match in matches]
    assert games == [(10, 10), (1, 1), (10, 10)]
    assert sum(reports) == 42


def test_refuses_invalid_tournaments(game, perfect, uniform):
    with pytest.raises(ValueError, match=r"a tournament of \['perfect'\] has no pairing: name 2"):
        round_robin(game, [perfect], 10, KEY)
    with pytest.raises(ValueError, match="two players are called random: give them different"):
        round_robin(game, [uniform, perfect, uniform], 10, KEY)
    for call in (play_match, lambda game, *args: round_robin(game, args[:2], *args[2:])):
        with pytest.raises(ValueError, match="the number of games is 0: play 1 or more"):
            call(game, perfect, uniform, 0, KEY)


# Compilation.


@pytest.mark.slow
def test_players_that_cannot_be_traced_play_on_the_host(game, perfect, uniform):
    calls = []

    def act(params, key, states):
        calls.append(len(np.asarray(states.board)))  # A tracer would not be an array.
        return perfect.act(params, key, states)

    on_host = perfect._replace(act=act, traceable=False)
    for seat in (0, 1):
        games = play_games(game, on_host, uniform, 20, KEY, seat)
        assert same(games, play_games(game, perfect, uniform, 20, KEY, seat))
        last = games.plies.max() - 1  # Called only in its plies, once for the whole batch.
        assert calls == [20] * len([ply for ply in range(last + 1) if ply % 2 == seat])
        calls.clear()


@pytest.mark.parametrize("traceable", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_second_match_compiles_nothing(game, perfect, uniform, caplog, traceable):
    def compiled(*args):
        caplog.clear()
        with jax.log_compiles():
            play_match(game, *args)
        return [r.getMessage() for r in caplog.records if "compilation of" in r.getMessage()]

    def act(params, key, states):
        return perfect.act(None, key, states)

    def draw(params, key, states):
        return uniform.act(None, key, states)

    agent = perfect._replace(act=act, params=np.int32(0), traceable=traceable)
    rival = uniform._replace(act=draw)
    assert compiled(agent, rival, 40, KEY)
    other = agent._replace(name="other", params=np.int32(1))  # Parameters are arguments.
    assert not compiled(agent, rival, 40, jax.random.key(1))
    assert not compiled(other, rival, 40, KEY)


def test_a_game_that_does_not_end_is_refused(game, uniform):
    """Illegal actions leave a position unchanged forever."""
    stubborn = Agent(
        "stubborn", lambda params, key, states: Decision(jnp.zeros(4, jnp.int32), None)
    )
    with pytest.raises(
        ValueError, match="stubborn against random is not over after 9 moves, the m"
    ):
        play_games(game, stubborn, uniform, 4, KEY, batch_size=4)
