"""Every player satisfies the contract; minimax and alpha-beta equal their recursions."""

import functools
import io
import shlex
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import guard
from azjax import games
from azjax.cli import gtp, play
from azjax.cli.custom import find_game
from azjax.games.tic_tac_toe import from_board
from azjax.players import (
    ProgramError,
    minimax_agent,
    network_agent,
    perfect_agent,
    random_agent,
    search_agent,
)
from azjax.players.arena import draw_openings
from azjax.players.gtp import gtp_agent
from azjax.search import ALGORITHMS, PUCT, UCT
from azjax.search.evaluators import Evaluator, rollout_evaluator, uniform_evaluator
from guard import sharing
from reference import Position, minimax, misere_pile, tic_tac_toe
from refusals import assert_refused, check_program
from small import take
from source import ROOT
from tables import bench, pile_states

ROWS = 8
DEPTHS = {"tic_tac_toe": 4, "misere_pile": 9}
SCORED = {"value", "q_values"}
SEARCHED = SCORED | {"prior", "visit_counts"}
HAS = {  # The fields of a decision in addition to the action and the weights.
    "random": set(),
    "perfect": SCORED,
    "network": {"value", "prior"},
    "puct": SEARCHED,
    "gumbel": SEARCHED,
    "uct": SEARCHED - {"prior"},
    "minimax": SCORED,
    "alpha_beta": SCORED,
}


@functools.cache
def make_agent(kind, name="tic_tac_toe"):
    game, table = bench(name).game, bench(name).random_table()
    evaluate = Evaluator(bench(name).evaluate, is_deterministic=True)
    if kind in ("puct", "gumbel"):
        return search_agent(game, ALGORITHMS[kind](num_simulations=8), evaluate, table)
    return {
        "random": lambda: random_agent(game),
        "network": lambda: network_agent(game, evaluate, table),
        "uct": lambda: search_agent(game, UCT(num_simulations=8), rollout_evaluator(game)),
        "minimax": lambda: minimax_agent(game, DEPTHS[name]),
        "alpha_beta": lambda: minimax_agent(game, DEPTHS[name], prune=True),
    }[kind]()


def ask(agent, states, seed=0):
    with guard.sharing():
        return jax.device_get(jax.jit(agent.act)(agent.params, jax.random.key(seed), states))


@pytest.mark.parametrize("kind", HAS)
def test_contract(kind, solution, some_states):
    game, states = bench("tic_tac_toe").game, take(some_states, slice(ROWS))
    agent = perfect_agent(game, solution) if kind == "perfect" else make_agent(kind)
    assert agent.deterministic == (kind not in {"random", "uct"})
    decision, legal = ask(agent, states), states.board == 0
    found = {field: leaf for field, leaf in decision._asdict().items() if leaf is not None}
    assert found.keys() == {"action", "weights", *HAS[kind]}
    assert legal[np.arange(ROWS), decision.action].all()
    for policy in (decision.weights, found.get("prior", decision.weights)):
        assert (policy >= 0).all() and not policy[~legal].any()
        np.testing.assert_allclose(policy.sum(axis=1), 1, atol=1e-5)
    assert all((abs(found[name]) <= 1).all() for name in SCORED & found.keys())
    if kind in {"perfect", "minimax"}:
        best = legal & (decision.q_values == decision.value[:, None])
        np.testing.assert_array_equal(decision.weights > 0, best)
    if kind == "alpha_beta":
        assert (decision.weights.max(axis=1) == 1).all()
    if agent.deterministic:  # And independent of the rest of the batch.
        alone = np.full(ROWS, 4)
        again = ask(agent, states, seed=1), ask(agent, take(states, alone))
        jax.tree.map(np.testing.assert_array_equal, (decision, take(decision, alone)), again)


def test_a_player_is_as_deterministic_as_its_evaluator(tic_tac_toe):
    known = uniform_evaluator(tic_tac_toe)
    for evaluate in (known, rollout_evaluator(tic_tac_toe), known.function):
        for agent in (
            network_agent(tic_tac_toe, evaluate, None),
            search_agent(tic_tac_toe, PUCT(num_simulations=2), evaluate),
        ):
            assert agent.deterministic == (evaluate is known)
    assert not search_agent(tic_tac_toe, UCT(num_simulations=2), known).deterministic


@pytest.mark.compiles(1)
def test_no_evaluator_makes_a_player_play_an_illegal_action(tic_tac_toe):
    def evaluate(params, keys, states):
        values = jnp.full(len(states.board), params)
        return jnp.full((len(states.board), 9), params), values, values

    states = jax.tree.map(lambda leaf: leaf[None], from_board([1, -1, 1, 0, 0, 0, 0, 0, 0]))
    act = jax.jit(network_agent(tic_tac_toe, evaluate, None).act)
    for value in (np.nan, -np.inf):
        assert act(np.float32(value), jax.random.key(0), states).action[0] >= 3, value


@pytest.mark.parametrize(
    ("name", "rules"), [("tic_tac_toe", tic_tac_toe), ("misere_pile", misere_pile)]
)
def test_minimax_equals_the_recursion(name, rules, some_states):
    """Values and actions equal those of the recursive implementation."""
    states = take(some_states, slice(ROWS)) if name == "tic_tac_toe" else pile_states()
    every, pruned = (ask(make_agent(kind, name), states) for kind in ("minimax", "alpha_beta"))
    rows = zip(states.board.tolist(), states.player.tolist(), strict=True)
    for row, (board, player) in enumerate(rows):
        position = Position(tuple(board), player, False)
        expected = minimax.action_values(rules, position, DEPTHS[name])
        assert {action: every.q_values[row, action] for action in expected} == expected
        assert every.value[row] == pruned.value[row] == max(expected.values())
        assert every.action[row] == pruned.action[row] == max(expected, key=expected.get)


def test_alpha_beta_where_a_player_can_move_again():
    game = find_game(f"{ROOT}/examples/dots_and_boxes.py:make")
    with sharing():
        states = draw_openings(game, jax.random.key(0), count=256, plies=8)
    agents = [minimax_agent(game, 4, prune=prune) for prune in (False, True)]
    np.testing.assert_array_equal(*(ask(agent, states).value for agent in agents))


# The Go Text Protocol.


def engine(name):
    game = games.make(name)
    return gtp.Engine(game, play.Machine(random_agent(game), jax.random.key(0)))


def test_a_game_is_played(monkeypatch, capsys):
    """In Othello, the upper left is a1."""
    lines = ["protocol_version", "7 boardsize 4 # a comment", "", "clear_board"]
    lines += ["play black A2", "showboard", "genmove w", "undo", "play w C3", "quit", "x"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(lines)))
    with sharing():
        assert gtp.main(["random", "--game", "othello:4"]) == 0
    replies = capsys.readouterr().out.split("\n\n")
    assert replies[:4] == ["= 2", "=7 ", "= ", "= "]
    assert replies[4] == "= \n  a b c d\n1 . . . .\n2 X X X .\n3 . X O .\n4 . . . ."
    assert replies[5] in ("= a1", "= c1", "= a3")  # Those that outflank the stone at b2.
    assert replies[6:] == ["= ", "? illegal move", "= ", ""]


@pytest.mark.compiles(1)
@pytest.mark.parametrize(
    ("line", "reply"),
    [
        ("boardsize 5", "? unacceptable size\n"),
        ("3 undo", "?3 cannot undo\n"),
        ("genmove w", "? illegal move: it is the other color's turn\n"),
        ("genmove green", "? invalid color or coordinate\n"),
        ("play b", "? syntax error\n"),
        ("play b z9", "? illegal move\n"),
        ("known_command genmove", "= true\n"),
        ("known_command loadsgf", "= false\n"),
        ("loadsgf x", "? unknown command\n"),
        ("  # nothing", ""),
    ],
)
def test_replies(line, reply):
    assert engine("hex:3").answer(line) == reply


@pytest.mark.compiles(2)
def test_a_finished_game_of_hex_is_resigned_and_can_start_again():
    hex3 = engine("hex:3")
    for line in ("b a1", "w b1", "b a2", "w b2", "b a3"):
        assert hex3.answer(f"play {line}") == "= \n"
    assert hex3.answer("genmove w") == "= resign\n"
    assert [hex3.answer(line) for line in ("boardsize 3", "play b a1")] == ["= \n", "= \n"]


def test_any_number_of_passes_ends_a_game_of_go():
    with sharing():
        go = engine("pgx:go_3x3")
        for line in ("play b pass", "play w pass", "play b pass", "play b pass"):
            assert go.answer(line) == "= \n"
        assert go.answer("genmove b") == "= pass\n"
        assert go.answer("play b a1").startswith("? illegal move")


@pytest.mark.compiles(3)
def test_a_game_has_the_komi_of_its_rules():
    go = engine("pgx:go_3x3")
    replies = [go.answer(f"komi {number}") for number in ("7.5", "7.50", "6.5", "abc")]
    refused = "? unacceptable komi: the game is played with 7.5\n"
    assert replies == ["= \n", "= \n", refused, refused]
    assert engine("hex:3").answer("komi 0") == "? unknown command\n"


def test_the_seed_determines_the_game(monkeypatch, capsys):
    games_played = []
    for seed in (1, 1, 2):
        monkeypatch.setattr(sys, "stdin", io.StringIO("genmove b\ngenmove w\n" * 4))
        with sharing():
            assert gtp.main(["random", "--game", "hex:3", "--seed", str(seed)]) == 0
        games_played.append(capsys.readouterr().out)
    assert games_played[0] == games_played[1] != games_played[2]


SERVER = """
import sys
for line in sys.stdin:
    with open(sys.argv[1], "a") as file:
        print(line.strip(), file=file)
    print(f"= {'a2' if 'genmove' in line else ''}\\n", flush=True)
"""


@pytest.mark.compiles(3)
def test_a_program_is_told_positions_and_plays(tmp_path):
    """Colors take turns, and an illegal answer becomes the last legal action."""
    heard, game = tmp_path / "heard", games.make("hex:3")
    agent = gtp_agent(game, shlex.join([sys.executable, "-c", SERVER, str(heard)]))
    states = [game.init()]
    for action in (3, 5):  # At a2 and b3: White sees the board mirrored.
        states.append(game.step(states[-1], action)[0])
    batch = jax.tree.map(lambda *leaves: np.stack(leaves), *states)
    assert agent.act(None, None, batch).action.tolist() == [3, 8, 8]
    lines = heard.read_text().split("\n")
    assert lines[:3] == ["boardsize 3", "clear_board", "genmove b"]
    assert lines[3:6] == ["clear_board", "play b a2", "genmove w"]
    assert lines[6:10] == ["clear_board", "play b a2", "play w b3", "genmove b"]


def test_a_program_for_go_is_told_the_komi_and_the_stones_of_each_color(tmp_path):
    """The planes of Go begin with the stones of the player to move."""
    heard = tmp_path / "heard"
    with sharing():
        game = games.make("pgx:go_5x5")
        agent = gtp_agent(game, shlex.join([sys.executable, "-c", SERVER, str(heard)]))
        states = jax.tree.map(lambda leaf: leaf[None], game.step(game.init(), 0)[0])
        agent.act(None, None, states)
    lines = ["boardsize 5", "komi 7.5", "clear_board", "play b a5", "genmove w"]
    assert heard.read_text().splitlines() == lines


def test_a_program_that_stops_plays_no_action():
    """An error in a callback would be printed with its traceback."""
    script = "for line in iter(input, 'genmove b'): print('= \\n', flush=True)"
    agent = gtp_agent(game := games.make("hex:3"), shlex.join([sys.executable, "-c", script]))
    batch = jax.tree.map(lambda leaf: np.stack([leaf] * 2), game.init())
    agent.check()
    for _ in range(2):
        assert agent.act(None, None, batch).action.tolist() == [-1, -1]
        assert_refused((agent.check, "does not answer 'genmove b' (it ended)"), error=ProgramError)


def test_games_and_programs_that_cannot_be_played_are_refused(capfd):
    rows = [
        ("hex:3", "no-such-program", "cannot be started"),
        ("hex:3", "", "gtp: cannot be started (it names no"),
        ("othello:4", "true", "use Go or Hex"),
        ("hex_swap:3", "true", "hex_swap:3 cannot be given a"),
    ]
    assert_refused(*((lambda g=g, c=c: gtp_agent(games.make(g), c), said) for g, c, said in rows))
    said = "Protocol has no connect_four:4x4: use one such as"
    check_program(gtp.main, [("random --game connect_four:4x4", said)], capfd)
