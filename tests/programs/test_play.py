"""Games at the terminal: whole games, all inputs, and all ways to end."""

import contextlib
import dataclasses
import io
import os
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
import misere_pile
from azjax import runs
from azjax.cli import board, play, table
from azjax.games import tic_tac_toe
from azjax.games.square import cell_names
from azjax.players import Decision, random_agent
from azjax.runs import presets
from refusals import check_program
from run_directories import make_run
from terminal import Terminal
from trained import process_environment

pytestmark = pytest.mark.usefixtures("compiled_once")

CONFIG = presets.smoke(presets.get("default"))
RULE = "----+----+----\n"
EMPTY = f"""
 a1 | b1 | c1
{RULE} a2 | b2 | c2
{RULE} a3 | b3 | c3
"""

FREE = "b1, c1, a2, c2, a3, b3, c3"  # After two moves, in b2 and a1.

LOST = f"""
  X |  X |  O
{RULE}  X |  O | c2
{RULE}  O | b3 | c3

O (perfect) wins.
"""


class Keyboard(io.StringIO):
    """Lines from a terminal or a pipe."""

    def __init__(self, lines, terminal):
        super().__init__("".join(f"{line}\n" for line in lines))
        self.isatty = lambda: terminal


@pytest.fixture
def program(monkeypatch, capfd, tmp_path):
    """Runs the program in an empty folder; returns its exit status and what it printed."""
    monkeypatch.chdir(tmp_path)

    def run(arguments, typed=(), terminal=False):
        monkeypatch.setattr(sys, "stdin", Keyboard(typed, terminal))
        status = play.main(arguments.split())
        out, err = capfd.readouterr()
        assert "\x1b" not in out + err
        return status, out, err

    return run


def moves_of_a_person(solution, seat, best):
    """The names of one person's moves against the perfect player, at its best or its worst."""
    row, moves = 0, []
    while not solution.over[row]:
        action = int(np.argmax(solution.optimal[row]))
        if solution.player[row] == seat:
            values = np.where(solution.legal[row], solution.action_values[row], np.nan)
            action = int((np.nanargmax if best else np.nanargmin)(values))
            moves.append(cell_names(3, 3)[action])
        row = solution.children[row, action]
    return moves


# Whole games.


@pytest.mark.parametrize(("seat", "best"), [(0, True), (1, False)])
def test_a_game_with_the_perfect_player(seat, best, solution, program):
    moves = moves_of_a_person(solution, seat, best)
    mine, other = "XO"[seat], "XO"[1 - seat]
    status, out, err = program(f"--{other.lower()} perfect", moves)
    assert (status, err) == (0, "")
    assert out.startswith(["X: you, O: perfect\n", "X: perfect, O: you\n"][seat])
    assert out.splitlines()[-1] == ("A draw." if best else f"{other} (perfect) wins.")
    announced = re.findall(
        rf"^{other} \(perfect\) plays ([abc]\d), expects an? .* for {other} \(.*\)$", out, re.M
    )
    assert len(announced) in (len(moves) - 1, len(moves), len(moves) + 1)
    last = out.rstrip().rsplit("\n\n", 2)[1]
    assert last.count(mine) == len(moves) and last.count(other) == len(announced)
    if best:
        assert not re.search(r"[abc]\d", last)


def test_a_person_can_win(program):
    typed = ["a1", "c3", "b1", "b3", "c1"]  # Two people, one keyboard.
    status, out, _ = program("--x human --o human", typed)
    assert status == 0
    assert out.startswith("X: a person, O: a person\n")
    assert out.endswith(
        f"  X |  X |  X\n{RULE} a2 | b2 | c2\n{RULE} a3 |  O |  O\n\nX (a person) wins.\n"
    )


def test_two_machines(program):
    status, out, err = program("--x minimax:1 --o perfect")
    assert (status, err) == (0, "")
    assert out.startswith(f"X: minimax(1), O: perfect\n{EMPTY}\nX (minimax(1)) plays a1")
    assert out.endswith(" plays a3, expects a win for O (+1.00)\n" + LOST)
    assert out.count("plays") == 6 and out.count(RULE) == 2 * 7


def test_connect_four_has_columns_from_1(program):
    typed = ["hint", "9", *range(1, 8)] * 12
    status, out, _ = program("--game connect_four --o random", typed)
    assert status == 0
    assert ". . . . . . .\n. . . . . . .\n1 2 3 4 5 6 7\n" in out
    assert "'9' is not a legal move: type one of 1, 2, 3, 4, 5, 6, 7, or help.\n" in out
    assert re.search(r"(wins|A draw)\.\n$", out)


def test_the_same_seed_plays_the_same_game(program):
    def moves(seed):
        return re.findall(r"plays (..)", program(f"--x random --o random --seed {seed}")[1])

    assert moves(1) == moves(1)
    assert moves(1) != moves(2)


def test_a_game_in_which_the_mover_loses(capfd, monkeypatch):
    game = misere_pile.make()  # Taking 1, 2, 2 from five stones: the second player loses.
    monkeypatch.setattr(sys, "stdin", Keyboard([0, 1, 1], terminal=False))
    hint = table.Machine(game, random_agent(game), jax.random.key(0))
    table.Table(game, (None, None), hint).play_game()
    assert capfd.readouterr().out.endswith("XXXOO\n\nX (a person) wins.\n")


# Input.


def test_wrong_input_gets_one_sentence(program):
    texts = ("b2", "4", "", "x", "-1", "1.0", "1 2", "²", "٣", "[red]")
    wrong = {
        **{text: repr(text) for text in texts},
        **{"9" * 5000: "'9999999999999999999…'", "z" * 5000: "'zzzzzzzzzzzzzzzzzzz…'"},
        "\x1b[A": r"'\x1b[A'",
    }
    status, out, err = program("--o perfect", [" B2 ", *wrong, "undo", "QUIT"])
    assert (status, err) == (0, "")
    boards = out.split(EMPTY)
    assert len(boards) == 3  # At the start and after an undo.
    answers = boards[1].split("\n\n")[-1].splitlines()
    is_not = f"is not a legal move: type one of {FREE}, or help."
    assert answers == [f"{shown} {is_not}" for shown in wrong.values()]
    assert out.endswith("Goodbye.\n")


def test_undo_takes_back_both_moves(program):
    typed = ["undo", "b2", "undo", "undo", "c3", "quit"]
    _, out, _ = program("--o perfect", typed)
    parts = out.split("You have no move to take back.\n")
    assert len(parts) == 3
    assert parts[1].count(EMPTY) == 1 and parts[1].count("plays a1") == 1
    assert "O (perfect) plays b2" in parts[2]
    assert parts[2].count("X") == 1


def test_undo_of_the_second_player_leaves_the_first_move(program):
    _, out, _ = program("--x perfect", ["undo", "b1", "undo", "quit"])
    boards = [part for part in out.split("\n\n") if RULE in part]
    marks = [sorted(re.sub("[^XO]", "", drawn)) for drawn in boards]
    assert marks == [["X"], ["O", "X", "X"], ["X"]]
    assert out.count("You have no move") == 1


def test_help_explains_the_commands(program):
    status, out, _ = program("--o perfect", ["help", "q"])
    assert status == 0 and out.endswith("Goodbye.\n") and "input has ended" not in out
    for command in ("hint, ?", "undo", "help", "q, quit"):
        assert re.search(rf"^{re.escape(command)} +\w", out, re.M)


def test_hint_by_the_opponent(program):
    assert "perfect would play b1, " in program("--o perfect", ["b2", "?", "quit"])[1]
    _, out, _ = program("--o perfect", ["b2", "hint", "quit"])
    assert "perfect would play b1, expects an even game for X (+0.00)\n" in out
    assert re.search(r"^move +Q +policy *$", out, re.M)
    assert re.search(r"^ +b1 +\+0\.00 +14\.3% +best *$", out, re.M)
    assert re.search(r"^ +c3 +\+0\.00 +14\.3% *$", out, re.M)
    assert not re.search(r"^ +(a1|b2) +\+", out, re.M) and out.count("best") == 1


def test_hint_of_a_search(program, tmp_path):
    make_run(tmp_path / "run", CONFIG, (3,))
    _, out, _ = program(f"--o puct:9@{tmp_path / 'run'}", ["hint", "quit"])
    assert re.search(r"^puct\(9\) #3 would play [abc]\d, expects an? ", out, re.M)
    assert re.search(r"^move +visits +Q +prior +policy *$", out, re.M)
    rows = re.findall(r"^ +([abc]\d) +(\d+) +([+-]\d\.\d\d)? +[\d.]+% +[\d.]+% ", out, re.M)
    assert tuple(row[0] for row in rows) == cell_names(3, 3)
    assert sum(int(row[1]) for row in rows) == 9


def test_hint_without_a_machine(program):
    _, out, _ = program("--x human --o human", ["hint", "quit"])
    assert "tic_tac_toe would play a1" in out


# The ends.


def test_seats_are_exchanged_when_playing_again(solution, program):
    first, second = (moves_of_a_person(solution, seat, True) for seat in (0, 1))
    typed = [*first, "perhaps", "Y", *second, "n"]
    status, out, _ = program("--o perfect", typed, terminal=True)
    assert status == 0
    assert out.count("A draw.") == 2
    assert out.index("X: you, O: perfect") < out.index("X: perfect, O: you")
    assert "X, your move: " in out and "O, your move: " in out
    question = "Play again, with the seats exchanged? (y/n): "
    assert out.count(question) == 3
    assert f"{question}Type y to play again, or n to leave.\n{question}" in out


def test_no_question_for_machines_or_a_pipe(solution, program):
    assert "again" not in program("--x random --o random", terminal=True)[1]
    _, out, _ = program("--o perfect", [*moves_of_a_person(solution, 0, True), "y"])
    assert "again" not in out and "your move" not in out


def test_the_end_of_the_input(program):
    for typed in ([], ["b2", "x"]):
        status, out, err = program("--o perfect", typed)
        assert (status, err) == (0, "")
        assert out.endswith("\nThe input has ended. Goodbye.\n")


def test_an_illegal_move_of_a_machine_is_named(program, monkeypatch):
    def cheat(game):
        def act(params, key, states):
            return Decision(jnp.array([4]), jnp.ones((1, 9)) / 9)

        return random_agent(game)._replace(name="cheat", act=act)

    monkeypatch.setattr("azjax.cli.players.random_agent", cheat)
    status, _, err = program("--o random", ["b2"])
    assert status == 2
    assert err == f"error: cheat cannot play b2 here: the legal moves are a1, {FREE}\n"


# Seats.


def test_seats():
    for arguments, seats in [
        ("", ("human", "default")),
        ("--x uct", ("uct", "human")),
        ("--o uct", ("human", "uct")),
        ("--x human", ("human", "default")),
        ("--o human", ("default", "human")),
        ("--x human --o uct", ("human", "uct")),
        ("--x uct --o random", ("uct", "random")),
        ("--x human --o human", ("human", "human")),
    ]:
        words = iter(arguments.split())
        options = play.Options(**{flag[2:]: next(words) for flag in words})
        assert play.choose_seats(options, "default") == seats


def test_the_default_opponent(program, tmp_path, capfd):
    _, out, _ = program("", ["quit"])
    assert out.startswith("X: you, O: tic_tac_toe\n")
    _, out, _ = program("--game connect_four", ["quit"])
    assert out.startswith("X: connect_four, O: you\n")  # It was repaired in this seat.
    _, out, _ = program("--game connect_four:4x4", ["quit"])
    assert out.startswith("X: you, O: uct(100)\n")
    make_run(tmp_path / "runs" / "a", CONFIG, (3,))
    make_run(tmp_path / "runs" / "b", CONFIG, (5,))
    runs.create_run(tmp_path / "runs" / "untrained", CONFIG)
    four = dataclasses.replace(CONFIG, game="connect_four")
    make_run(tmp_path / "runs" / "four", four, (3,))
    for age, name in enumerate(["untrained", "four", "b", "a"]):
        os.utime(tmp_path / "runs" / name / "config.json", (10**9 - age, 10**9 - age))
    (tmp_path / "runs" / "spoiled" / "checkpoints" / "3").mkdir(parents=True)
    (tmp_path / "runs" / "spoiled" / "config.json").write_text("{")
    _, out, err = program("--game tic_tac_toe", ["quit"])
    assert err == "run: runs/b, the newest (--run-dir names another)\n"
    assert "O: alphazero(4) #5\n" in out
    _, out, err = program("--run-dir runs/a", ["quit"])
    assert "O: alphazero(4) #3\n" in out and err == ""
    for arguments in ("", "--run-dir runs/four"):
        assert "1 2 3 4 5 6 7\n" in program(arguments, ["quit"])[1]


def test_refuses_bad_options_in_one_sentence(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    rows = [
        ("--o stockfish", "unknown player 'stockfish': use one of random, perfect"),
        ("--x uct:0", "'uct:0' needs a number of simulations"),
        ("--game hex:5 --o human --x network", "'network' needs the network of a training run"),
        ("--game chess", "unknown game 'chess': use one of tic_tac_toe, connect_four"),
        ("--game connect_four --o perfect", "too many positions to enumerate"),
        ("--game connect_four --o minimax", "such as minimax:4"),
        ("--run-dir nothing", "nothing is not a run directory"),
        ("--run-dir nothing --game tic_tac_toe", "nothing is not a run directory"),
        ("--seed -1", "--seed is -1: use 0 to 2147483647"),
        (f"--seed {2**40}", f"--seed is {2**40}: use 0 to 2147483647"),
        ("--gaem perfect", "--gaem", "meant --game"),
        ("perfect", "no player 'perfect' comes with azjax: use connect_four"),
        ("hex:4 --run-dir x", "hex:4 and --run-dir x name two players: leave one out"),
        ("hex:4 hex:6", "hex:6", "--help lists what is allowed"),
    ]
    check_program(play.main, rows, capfd)


def test_help_lists_options_and_players(capfd):
    with pytest.raises(SystemExit) as stop:
        play.main(["--help"])
    assert stop.value.code == 0
    out, err = capfd.readouterr()
    assert err == ""
    for name in ("--x", "--o", "--run-dir", "--game", "--seed"):
        assert name in out
    for name in ("minimax:4", "uct:100", "uct:0.5s", "#ITERATION"):
        assert name in out


# Words.


def test_values_in_words():
    for value, words in [
        (1.0, "a win (+1.00)"),
        (0.91, "a win (+0.91)"),
        (0.9, "an advantage (+0.90)"),
        (0.31, "an advantage (+0.31)"),
        (0.3, "an even game (+0.30)"),
        (0.0, "an even game (+0.00)"),
        (-0.001, "an even game (+0.00)"),
        (-0.29, "an even game (-0.29)"),
        (-0.3, "a disadvantage (-0.30)"),
        (-0.89, "a disadvantage (-0.89)"),
        (-0.9, "a loss (-0.90)"),
        (-1.0, "a loss (-1.00)"),
    ]:
        assert board.in_words(np.float32(value), 1) == words.replace("(", "for O (")


def test_the_announced_value_is_that_of_the_move():
    rows = [
        ([0.9, -0.02], [0, 9], "an even game for O (-0.02)"),  # The value of the chosen move.
        (None, None, "a disadvantage for O (-0.67)"),
        ([0.9, 0.0], [9, 0], "a disadvantage for O (-0.67)"),  # Not visited.
    ]
    for q_values, visits, message in rows:
        q_values, visits = (known and np.array(known) for known in (q_values, visits))
        decision = Decision(np.int32(1), np.ones(2) / 2, np.float32(-0.67), q_values, None, visits)
        said = f"O (name) plays 1, expects {message}"
        assert board.announce(1, "name", decision, "01") == said


def test_changes_are_highlighted(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    before = tic_tac_toe.from_board([1, 0, 0, 0, 0, 0, 0, 0, 0])
    after = tic_tac_toe.from_board([1, 0, 0, 0, -1, 0, 0, 0, 0])
    board.show(azjax.make("tic_tac_toe"), after, before)
    out = capsys.readouterr().out
    assert re.findall(r"\x1b\[([\d;]*)m([XO])", out) == [("1;36", "X"), ("1;7;35", "O")]
    four = azjax.make("connect_four")
    board.show(four, four.step(four.init(), jnp.int32(3))[0], four.init())
    assert re.findall(r"\x1b\[([\d;]*)m([XO])", capsys.readouterr().out) == [("1;7;36", "X")]


# Real terminals.


@pytest.fixture
def start():
    with contextlib.ExitStack() as stack:

        def make(*arguments):
            environment = os.environ | process_environment() | {"COLUMNS": "80", "PYTHONUTF8": "1"}
            command = ["-W", "error", "-m", "experiments.play", *arguments]
            return stack.enter_context(Terminal(command, environment))

        yield make


@pytest.mark.slow
def test_a_game_at_a_real_terminal(start, solution):
    terminal = start("--o", "perfect")
    first, *others = moves_of_a_person(solution, 0, True)
    for line in (b"", b"\xff\xfe", "²".encode(), b"\x1b[A", b"hint", b"undo"):
        terminal.type(line)
    terminal.type(first.encode())
    terminal.type(first.encode())  # The cell is occupied.
    terminal.type(b"undo")
    for move in (first, *others):
        terminal.type(move.encode())
    terminal.type(b"y", after="(y/n): ")
    terminal.type(b"quit")
    assert terminal.finish() == 0
    screen = terminal.screen
    for message in (
        "'²' is not a legal move",
        "perfect is choosing a move",
        "perfect would play a1",
        "You have no move to take back.",
        f"'{first}' is not a legal move",
        "A draw.",
        "X: perfect, O: you",
    ):
        assert message in screen, message
    assert screen.count("is not a legal move") == 5
    assert screen.endswith("Goodbye.\n")
    lines = [line.split("\r")[-1] for line in screen.split("\n")]
    # The list of all nine cells wraps at a comma.
    assert all(len(line) <= 80 or "is not a legal move" in line for line in lines)
    assert b"\x1b[1;36mX" in terminal.raw


@pytest.mark.slow
def test_ctrl_c_and_ctrl_d_at_a_real_terminal(start):
    interrupted, ended = start("--o", "perfect"), start("--o", "perfect")
    interrupted.type(b"b2")
    interrupted.type(b"\x03")
    assert interrupted.finish() == 130
    assert interrupted.screen.endswith("\ninterrupted: the game was not finished\n")
    ended.type(b"\x04")
    assert ended.finish() == 0
    assert ended.screen.endswith("your move: \nThe input has ended. Goodbye.\n")


@pytest.mark.slow
def test_ctrl_c_while_machines_play(start):
    terminal = start("--x", "random", "--o", "uct:60s")
    terminal.type(b"\x03", after="plays")
    assert terminal.finish() == 130
    # A spinner may end its line at the same time.
    assert terminal.screen.rstrip("\n").endswith("\ninterrupted: the game was not finished")
