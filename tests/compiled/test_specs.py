"""What the command line names: players, such as `puct:50@runs/NAME#20`, and custom code.

Programs import only code that is named.
"""

import contextlib
import dataclasses
import io
import pathlib
import shutil
import sys

import jax
import numpy as np
import pytest

import azjax
import guard
import misere_pile
from azjax import runs
from azjax.cli import arena, custom, explain, play, players, report, train, verify
from azjax.cli.players import make_agent
from azjax.cli.verify import folder_of
from azjax.games.base import init_batch
from azjax.players import random_agent
from azjax.proof import repair
from azjax.runs import presets
from azjax.runs.config import Config
from azjax.search import PUCT, UCT
from azjax.training import memory
from refusals import assert_refused, check_program
from small import make_run
from trained import chosen, compiling_once

CONFIG = presets.smoke(presets.get("default"))


@pytest.fixture(scope="module", autouse=True)
def _programs():
    with guard.sharing(), compiling_once():
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("players") / "run", CONFIG, (2, 4, 6))


# Descriptions.


def test_a_repaired_player_plays_by_its_override_table(run, tic_tac_toe, tmp_path):
    run = shutil.copytree(run, tmp_path / "run")
    start = jax.device_get(init_batch(tic_tac_toe, 1))
    late = start._replace(board=np.eye(1, 9, dtype=np.int8), player=np.ones(1, np.int8))
    for seat, states, action in ((0, start, 7), (1, late, 8)):
        for iteration, number in ((6, 0), (2, 3)):
            path = repair.table_path(run, iteration, seat, number)
            path.parent.mkdir(exist_ok=True)
            refuted, action = np.zeros((1, 9), bool), np.full(1, action, np.int32)
            repair.save_table(path, repair.OverrideTable(states, action, refuted))
    both = jax.tree.map(lambda *leaves: np.concatenate(leaves), start, late)
    for spec in ("repaired", "repaired:3#2"):
        agent = make_agent(spec, tic_tac_toe, custom.RunOptions(run))
        moves = jax.jit(agent.act)(agent.params, jax.random.key(0), both).action
        assert (agent.deterministic, moves.tolist()) == (True, [7, 8])


def test_players_have_the_settings_of_their_description(tic_tac_toe, run, tmp_path, monkeypatch):
    made = []
    for name in ("search_agent", "minimax_agent"):

        def make(game, *settings, name=name, **prune):
            made.append((name, *settings, *prune.values()))
            return random_agent(game)

        monkeypatch.setattr(players, name, make)
    mine = make_run(tmp_path / "run", dataclasses.replace(CONFIG, search=PUCT(c_puct=9.0)), (6,))
    for spec, search, folder in [
        ("uct:20", UCT(num_simulations=20), run),
        ("alphazero:9", dataclasses.replace(CONFIG.search, num_simulations=9), run),
        ("alphazero", CONFIG.search, run),
        ("puct:9", PUCT(num_simulations=9), run),
        ("uct", UCT(num_simulations=100), run),
        ("puct", PUCT(num_simulations=50), run),
        ("puct:20", PUCT(num_simulations=20, c_puct=9.0), mine),
    ]:
        make_agent(spec, tic_tac_toe, custom.RunOptions(folder))
        assert made.pop()[:2] == ("search_agent", search)
    for spec, prune in (("minimax:3", False), ("alphabeta:3", True)):
        make_agent(spec, tic_tac_toe, custom.RunOptions())
        assert made.pop() == ("minimax_agent", 3, prune)


def test_players_have_the_names_of_their_descriptions(tic_tac_toe, run):
    for spec in ("random", f"network@{run}#6", "tic_tac_toe", "puct:3@tic_tac_toe", "network#2"):
        assert make_agent(spec, tic_tac_toe, custom.RunOptions(run)).name == spec


# Errors.

REFUSED = [
    ("puct:5", "needs the network of a training run: add @RUN_DIR, as in puct@runs/NAME, or"),
    ("network@nothing", "nothing is not a run directory, and no player 'nothing' comes with azjax"),
    *((spec, "unknown player", "use one of random, perfect, ") for spec in ("", "uct 100")),
    *((spec, "write network[@RUN_DIR][#ITERATION]") for spec in ("network@", "network#-1#2")),
    *((spec, "is not a player") for spec in ("random:5", "uct:5@x", "alphabeta:", "minimax:1s")),
    ("network#all", "is not a player"),
    *((f"uct:{x}", "write uct[:NUMBER], a number") for x in ["", "1000001", "²", "0", "1s"]),
]


def test_descriptions_without_a_meaning_are_refused(tic_tac_toe, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(spec, game=tic_tac_toe, **named):
        return lambda: make_agent(spec, game, custom.RunOptions(**named))

    four = {"game": azjax.make("connect_four"), "run_dir": run}
    six, iteration = azjax.make("hex:6"), azjax.load("hex:6").iteration
    damaged = repair.table_path(folder_of("hex:6"), iteration, 0, 3)
    damaged.parent.mkdir(parents=True)
    damaged.touch()
    rows = [
        *((call(spec), *said) for spec, *said in REFUSED),
        (call("perfect", **four), "connect_four has too many positions to enumerate"),
        (call("minimax", **four), "minimax cannot look to the end of connect_four: give "),
        (call("network", **four), "run plays tic_tac_toe, not connect_four: use a player of"),
        (call(f"network@{run}#5"), f"{run} has no checkpoint 5: use one of 2, 4, 6"),
        (call("repaired:9", run_dir=run), "has no override table for 9 simulations of network #6"),
        (call("repaired@hex:6", six), "verify hex:6 --lines first --simulations 0 --repair 12"),
        (call("repaired:3@hex:6", six), "runs/verified/hex_6/lines/...is damaged or"),
    ]
    assert_refused(*rows, error=(ValueError, runs.CheckpointError))
    monkeypatch.setattr(memory, "device_memory", lambda: 10**8)
    needs = "trees of 1000000 simulations, 1 at a time, need 0.25 GB, and the device has 0.10 GB"
    assert_refused((call("uct:1000000"), needs))


# Custom games and networks.

NETWORK = """
from azjax.networks import MLPConfig, make_network


def make(game):
    return make_network(MLPConfig(hidden=(8,), head_hidden=4), game)
"""
GAME = ["--game", "pile.py:make"]
BOTH = [*GAME, "--network", "net.py:make"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a game, a network, and a run with both."""
    folder = tmp_path_factory.mktemp("own")
    shutil.copy(misere_pile.__file__, folder / "pile.py")
    (folder / "net.py").write_text(NETWORK)
    with contextlib.chdir(folder):
        found = chosen("--smoke", *BOTH)
        parts = custom.parts_for(found.config, found.typed)
        make_run(folder / "run", found.config, game=parts.game, network=parts.network)
    return folder


@pytest.fixture
def inside(place, tmp_path, monkeypatch):
    """A copy of the folder, which is the current one."""
    monkeypatch.chdir(shutil.copytree(place, tmp_path / "own"))
    monkeypatch.setattr(sys, "stdin", io.StringIO())


PROGRAMS = {
    train: ["--resume", "--run-dir", "run", "--max-iterations", "1"],
    verify: ["--run-dir", "run"],
    report: ["--run-dir", "run"],
    play: ["--run-dir", "run", "--o", "network"],
    arena: ["network@run", "random", "--games", "2"],
    explain: ["--run-dir", "run"],
}


def test_custom_code_is_played(inside, capfd):
    assert play.main([*PROGRAMS[play], *BOTH]) == 0
    assert "X: you, O: network" in capfd.readouterr().out
    words = "--run-dir run --game pile.py:make --network net.py:make"
    assert custom.name_run(pathlib.Path("run"), runs.read_config("run")) == words


def test_no_program_imports_code_that_only_the_run_names(inside, capfd, monkeypatch):
    monkeypatch.setattr(custom, "_import", None)
    first = "azjax imports only code that you name: add --game pile.py:make, if you trust that file"
    for program, words in PROGRAMS.items():
        check_program(program.main, [(words, first), ([*words, *BOTH[2:]], first)], capfd)


def test_a_note_names_each_edited_file_once(inside, capfd):
    typed = custom.RunOptions(pathlib.Path("run"), *BOTH[1::2])
    for name in ("pile.py", "net.py"):
        with pathlib.Path(name).open("a") as file:
            file.write("# A comment.\n")
    for _ in range(2):
        assert custom.open_player(typed)[1].game.name == "misere_pile"
    note = "{} was edited since run was trained, or is another function: check that it computes"
    said = capfd.readouterr().err
    assert [said.count(note.format(name)) for name in BOTH[1::2]] == [1, 1]


def test_the_newest_run_has_the_named_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("one#1.py", "other.py"):
        pathlib.Path(name).write_text("old")
    runs.create_run(tmp_path / "run", Config(game=custom.identify("one#1.py:make")))
    monkeypatch.setattr(runs, "find_runs", lambda: iter([tmp_path / "run"]))
    for name in ("one#1.py:make", "one#1.py:other", "other.py:make", None):
        is_found = custom.choose_run(custom.RunOptions(game=name)) is not None
        assert is_found == (name == "one#1.py:make")
    pathlib.Path("one#1.py").write_text("new")
    assert custom.choose_run(custom.RunOptions(game="one#1.py:make")) is None
