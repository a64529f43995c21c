"""Players by their descriptions: the player of each, and the errors for wrong ones."""

import dataclasses
import json
import re
from pathlib import Path

import jax
import numpy as np
import pytest

import azjax
import misere_pile
from azjax import runs, training
from azjax.cli import custom, players, verify
from azjax.cli.players import expand, make_agent, make_agents
from azjax.cli.specs import HELP, KINDS, SHIPPED
from azjax.games.base import init_batch
from azjax.networks import MLPConfig
from azjax.players import anytime_agent, minimax_agent, search_agent
from azjax.proof import overrides
from azjax.runs import checkpoint, presets, pretrained
from azjax.runs.config import make_parts
from azjax.search import PUCT, UCT, Gumbel
from azjax.search.evaluators import rollout_evaluator
from azjax.training import memory

CONFIG = presets.smoke(presets.get("default"))
SIMULATIONS = CONFIG.search.num_simulations
KEY = jax.random.key(0)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run with checkpoints 2, 4 and 6, with different networks."""
    return make_run(tmp_path_factory.mktemp("players") / "run", CONFIG)


def make_run(run_dir, config):
    runs.create_run(run_dir, config)
    state = training.make_state(
        make_parts(config), jax.random.key(config.seed), training.make_mesh()
    )
    for iteration in (2, 4, 6):
        average = jax.tree.map(lambda leaf, n=iteration: leaf * n, state.learner.ema_params)
        learner = state.learner._replace(ema_params=average)
        counter = state.iteration * 0 + iteration
        saved = dataclasses.replace(state, learner=learner, iteration=counter)
        checkpoint.save(run_dir, saved, 0.0)
    return run_dir


def write_table(run_dir, iteration, seat, number, states, action):
    path = overrides.table_path(run_dir, iteration, seat, number)
    path.parent.mkdir(exist_ok=True)
    nothing = np.zeros((1, 9), bool)
    overrides.save_table(
        path, overrides.OverrideTable(states, np.array([action], np.int32), nothing)
    )


def act(agent, game, key=KEY):
    return jax.device_get(jax.jit(agent.act)(agent.params, key, init_batch(game, 1)))


def assert_same(left, right):
    for name, a, b in zip(left._fields, left, right, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)


# Descriptions.


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("random", "random"),
        ("perfect", "perfect"),
        ("minimax", "minimax"),
        ("minimax:4", "minimax(4)"),
        ("alphabeta", "alpha-beta"),
        ("alphabeta:4", "alpha-beta(4)"),
        ("uct", "uct(100)"),
        ("uct:7", "uct(7)"),
        ("uct:0.5s", "uct(0.5 s)"),
        ("network", "network #6"),
        ("alphazero", f"alphazero({SIMULATIONS}) #6"),
        ("alphazero:9", "alphazero(9) #6"),
        ("alphazero:1s", "alphazero(1 s) #6"),
        ("puct", "puct(50) #6"),
        ("puct:0.25s", "puct(0.25 s) #6"),
        ("gumbel", "gumbel(32) #6"),
        ("gumbel:3#2", "gumbel(3) #2"),
    ],
)
def test_names(spec, name, tic_tac_toe, run):
    agent = make_agent(spec, tic_tac_toe, custom.Typed(run))
    assert agent.name == name
    assert agent.traceable == ("s)" not in name)


@pytest.mark.parametrize(
    ("spec", "name"), [("repaired", "repaired #6"), ("repaired:3#2", "repaired(3) #2")]
)
def test_a_repaired_player_plays_by_its_override_table(spec, name, tic_tac_toe, tmp_path):
    run = make_run(tmp_path / "run", CONFIG)
    start = jax.device_get(init_batch(tic_tac_toe, 1))
    late = start._replace(board=np.eye(1, 9, dtype=np.int8), player=np.ones(1, np.int8))
    iteration, number = (2, 3) if "2" in spec else (6, 0)
    for seat, states, action in ((0, start, 7), (1, late, 8)):
        write_table(run, iteration, seat, number, states, action)
        agent = make_agent(spec, tic_tac_toe, custom.Typed(run))
        assert agent.name == name and agent.deterministic
        result = jax.jit(agent.act)(agent.params, KEY, states)
        assert result.action.tolist() == [action]


@pytest.mark.parametrize("rounds", [1, 9])
def test_symmetry_is_checked_before_a_proof(solution, rounds, tmp_path, capfd):
    """With an override table of all moves, the player may break symmetry.

    Then every symmetric copy is explored, or the table is repaired if rounds are left.
    """
    network = MLPConfig(hidden=(16,), head_hidden=8, symmetric=True)
    run = make_run(tmp_path / "run", dataclasses.replace(CONFIG, network=network))
    rows = solution.decisions[solution.player[solution.decisions] == 0]
    actions = solution.optimal[rows].argmax(axis=1).astype(np.int32)
    states = jax.tree.map(lambda leaf: leaf[rows], solution.states)
    path = overrides.table_path(run, 6, 0, 0)
    path.parent.mkdir()
    refuted = np.zeros((len(rows), 9), bool)
    overrides.save_table(path, overrides.OverrideTable(states, actions, refuted, rounds=1))
    arguments = ["--run-dir", str(run), "--lines", "first", "--repair", str(rounds)]
    assert verify.main([*arguments, "--json"]) == 0
    result = json.loads(capfd.readouterr().out)
    assert result["up_to_symmetry"] == (rounds > 1)
    assert result["ends"]["lost"] == 0 < result["ends"]["won"]
    assert result["overrides"] == len(rows)
    changed = overrides.load_table(path, azjax.make("tic_tac_toe")).actions != actions
    assert changed.any() == (rounds > 1)
    names = {folder.name[-9:] for folder in (run / "lines").glob("6-first-0-overrides-*")}
    assert ("-compared" in names) and ("-copies" in "".join(names)) == (rounds == 1)
    assert len(names) == 2 + (rounds == 1)  # The folder of an earlier table is deleted.


def test_an_override_table_must_exist(tic_tac_toe, run):
    sentence = (
        "has no override table for 9 simulations of network #6: make one with .* --lines first"
    )
    with pytest.raises(ValueError, match=sentence):
        make_agent("repaired:9", tic_tac_toe, custom.Typed(run))


def test_every_player_is_in_the_help(tic_tac_toe, run):
    explained = re.findall(r"^- ([a-z]+)", HELP, re.MULTILINE)
    for number in (0, 32):
        write_table(run, 6, 0, number, jax.device_get(init_batch(tic_tac_toe, 1)), 7)
    for name in (name for name in KINDS if name != SHIPPED):
        assert name in explained
        assert (
            make_agent(name, tic_tac_toe, custom.Typed(run)).name.replace("-", "").startswith(name)
        )
    for spec in {*re.findall(r"[a-z]+:[0-9.]+s?\b", HELP)} - {*pretrained.names()}:
        make_agent(spec, tic_tac_toe, custom.Typed(run))


@pytest.mark.parametrize("game", [azjax.make("tic_tac_toe"), azjax.make("connect_four")])
@pytest.mark.parametrize("spec", ["random", "alphabeta:2", "uct:5"])
@pytest.mark.slow
def test_plays_every_game(spec, game):
    decision = act(make_agent(spec, game), game)
    assert 0 <= decision.action[0] < game.num_actions
    np.testing.assert_allclose(decision.weights.sum(), 1, atol=1e-5)


@pytest.mark.parametrize("depth", [1, 3])
def test_the_number_of_minimax_is_its_depth(depth, tic_tac_toe):
    result = act(make_agent(f"minimax:{depth}", tic_tac_toe), tic_tac_toe)
    assert_same(result, act(minimax_agent(tic_tac_toe, depth), tic_tac_toe))
    assert result.nodes[0] == {1: 1 + 9, 3: 1 + 9 + 72 + 504}[depth]


@pytest.mark.slow
def test_uct_is_the_classic_search(tic_tac_toe):
    classic = search_agent(tic_tac_toe, UCT(num_simulations=20), rollout_evaluator(tic_tac_toe))
    result = act(make_agent("uct:20", tic_tac_toe), tic_tac_toe)
    assert_same(result, act(classic, tic_tac_toe))
    assert result.nodes[0] == 20


@pytest.mark.parametrize(
    ("spec", "search"),
    [
        pytest.param(
            "alphazero:9",
            dataclasses.replace(CONFIG.search, num_simulations=9),
            marks=pytest.mark.slow,
        ),
        pytest.param("alphazero", CONFIG.search, marks=pytest.mark.slow),
        ("puct:9", PUCT(num_simulations=9)),
        pytest.param("gumbel:9", Gumbel(num_simulations=9), marks=pytest.mark.slow),
    ],
)
def test_searches_with_the_network_of_the_run(spec, search, tic_tac_toe, run):
    result = act(make_agent(spec, tic_tac_toe, custom.Typed(run)), tic_tac_toe)
    expected = azjax.load(run).search(KEY, init_batch(tic_tac_toe, 1), search)
    np.testing.assert_array_equal(result.visit_counts, expected.visit_counts)
    np.testing.assert_allclose(result.weights, expected.action_weights, atol=1e-6)


@pytest.mark.slow
def test_keeps_the_search_settings_of_the_run(tic_tac_toe, tmp_path):
    run = make_run(tmp_path / "run", dataclasses.replace(CONFIG, search=PUCT(c_puct=9.0)))
    result = act(make_agent("puct:20", tic_tac_toe, custom.Typed(run)), tic_tac_toe)
    states = init_batch(tic_tac_toe, 1)
    expected = azjax.load(run).search(KEY, states, num_simulations=20)
    np.testing.assert_array_equal(result.visit_counts, expected.visit_counts)
    other = azjax.load(run).search(KEY, states, PUCT(num_simulations=20))
    assert (result.visit_counts != other.visit_counts).any()


@pytest.mark.parametrize("iteration", [2, 4, 6])
def test_plays_one_of_the_checkpoints(iteration, tic_tac_toe, run):
    for agent in (
        make_agent(f"network@{run}#{iteration}", tic_tac_toe),
        make_agent(f"network#{iteration}", tic_tac_toe, custom.Typed(run)),
        make_agent(f"network@{run}#{iteration}", tic_tac_toe, custom.Typed(Path("another"))),
    ):
        assert agent.name == f"network #{iteration}"
        logits, value = azjax.load(run, iteration).evaluate(init_batch(tic_tac_toe, 1))
        decision = act(agent, tic_tac_toe)
        np.testing.assert_allclose(decision.value, value, atol=1e-5)
        assert decision.action[0] == np.argmax(logits[0])


def test_a_folder_may_have_any_name(tic_tac_toe, tmp_path):
    run = make_run(tmp_path / "a@b+c:d#e", CONFIG)
    assert make_agent(f"network@{run}#4", tic_tac_toe).name == "network #4"


@pytest.mark.parametrize(
    ("spec", "seconds", "algorithm"),
    [
        ("uct:0.5s", 0.5, "uct"),
        ("puct:0.2s", 0.2, "puct"),
        ("gumbel:1s", 1.0, "gumbel"),
        ("alphazero:1s", 1.0, CONFIG.search.algorithm),
        ("uct:3600s", 3600.0, "uct"),
    ],
)
def test_a_time_in_place_of_a_number(spec, seconds, algorithm, tic_tac_toe, run, monkeypatch):
    def note(game, config, evaluate, params, time, name):
        given.append((config.algorithm, config.num_simulations, time))
        return anytime_agent(game, config, evaluate, params, time, name)

    given = []
    monkeypatch.setattr(players, "anytime_agent", note)
    make_agent(spec, tic_tac_toe, custom.Typed(run))
    assert given == [(algorithm, min(int(20_000 * seconds), 1_000_000), seconds)]


def test_a_game_is_solved_once(tic_tac_toe, monkeypatch):
    solved, pile = [], misere_pile.make()
    players._solve.cache_clear()
    solve = players.solver.solve
    monkeypatch.setattr(players.solver, "solve", lambda game: solved.append(game) or solve(game))
    for _ in range(2):
        make_agent("perfect", tic_tac_toe)
        make_agent("perfect", pile)
    assert [game.name for game in solved] == ["tic_tac_toe", "misere_pile"]


def test_an_older_checkpoint_plays_only_if_it_is_named(tic_tac_toe, tmp_path):
    run = make_run(tmp_path / "run", CONFIG)
    (run / "checkpoints" / "6" / "player" / "arrays.npz").unlink()
    with pytest.raises(runs.CheckpointError, match="checkpoint 6 in .* is damaged .*: use one of"):
        make_agent("network", tic_tac_toe, custom.Typed(run))
    assert make_agent("network#4", tic_tac_toe, custom.Typed(run)).name == "network #4"


# Several players.


def test_one_player_for_each_checkpoint(run):
    specs = [f"puct:5@{run}#{iteration}" for iteration in (2, 4, 6)]
    assert expand(f"puct:5@{run}#all") == specs
    assert expand("network#all", custom.Typed(run)) == ["network#2", "network#4", "network#6"]
    assert expand("network#all", custom.Typed(str(run)))[0] == "network#2"
    for spec in ("uct:5", "network", f"network@{run}#4"):
        assert expand(spec) == [spec]


def test_players_have_different_names(tic_tac_toe, run, tmp_path):
    other = make_run(tmp_path / "other", CONFIG)
    made = make_agents(
        ["random", f"network@{other}#6", "network#all"], tic_tac_toe, custom.Typed(run)
    )
    assert [agent.name for agent in made] == [
        *["random", f"network@{other}#6", "network #2", "network #4", "network#6"]
    ]
    with pytest.raises(ValueError, match="'random' is listed twice: list it once"):
        make_agents(["random", "uct", "random"], tic_tac_toe)


# Errors.


def amount(spec, counts, ends="use 1 to 1000000"):
    return spec, f"'{spec}' needs a number of {counts} after the colon: {ends}"


OR_TIME = "use 1 to 1000000, or a time up to 3600s such as 0.5s"
EVERY = "random, perfect, minimax, alphabeta, uct, network, alphazero, repaired, puct, gumbel"


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("", f"unknown player '': use one of {EVERY}"),
        ("stockfish:3", f"unknown player 'stockfish': use one of {EVERY}"),
        ("uct 100", f"unknown player 'uct 100': use one of {EVERY}"),
        ("Perfect", f"unknown player 'Perfect': use one of {EVERY}"),
        ("human", f"unknown player 'human': use one of {EVERY}"),
        ("uct#1#2", f"unknown player 'uct#1#2': use one of {EVERY}"),
        ("random:5", "'random:5' has something after the colon, and random takes nothing there"),
        ("perfect:", "'perfect:' has something after the colon, and perfect takes nothing there"),
        ("network:1s", "'network:1s' has something after the colon, and network takes nothing"),
        amount("minimax:0", "moves ahead"),
        amount("minimax:-1", "moves ahead"),
        amount("minimax:1s", "moves ahead"),
        amount("alphabeta:", "moves ahead"),
        amount("repaired:0.5s", "simulations"),
        amount("repaired:5.0", "simulations"),
        amount("uct:", "simulations", OR_TIME),
        amount("uct:x", "simulations", OR_TIME),
        amount("uct:1000001", "simulations", OR_TIME),
        amount(f"uct:{'9' * 5000}", "simulations", OR_TIME),
        amount("uct:²", "simulations", OR_TIME),
        amount("uct:0s", "simulations", OR_TIME),
        amount("uct:5ms", "simulations", OR_TIME),
        amount("uct:.s", "simulations", OR_TIME),
        amount("uct:1m", "simulations", OR_TIME),
        amount("uct:3601s", "simulations", OR_TIME),
        amount("uct:-1s", "simulations", OR_TIME),
        amount("uct:nans", "simulations", OR_TIME),
        ("uct:5:6", "'uct:5:6' needs a number of simulations after the colon"),
        ("perfect@runs/a", "'perfect@runs/a' names a run, and perfect plays without one: leave"),
        ("uct:5@", "'uct:5@' names a run, and uct plays without one: leave it out"),
        ("random#3", "'random#3' names a run, and random plays without one: leave it out"),
        ("random#all", "'random#all' names a run, and random plays without one: leave it out"),
        ("network@", "'network@' has no run after the @: add one, as in network@runs/NAME"),
        ("network#", "'network#' has no checkpoint after the #: use a number, as in #20"),
        ("network#new", "'network#new' has no checkpoint after the #: use a number, as in #20"),
        ("network#-1", "'network#-1' has no checkpoint after the #: use a number, as in #20"),
        (
            "puct:5",
            "'puct:5' needs the network of a training run: add @RUN_DIR, as in puct@runs/NAME, or",
        ),
        ("network@nothing", "nothing is not a run directory (no config.json in it): use"),
    ],
)
def test_refuses_in_one_sentence(spec, sentence, tic_tac_toe, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert_refuses(lambda: make_agent(spec, tic_tac_toe), sentence)


@pytest.mark.parametrize("spec", ["uct:1000000", "uct:3600s"])
def test_refuses_trees_that_do_not_fit_in_memory(spec, tic_tac_toe, monkeypatch):
    monkeypatch.setattr(memory, "device_memory", lambda: 10**8)
    sentence = (
        "trees of 1000000 simulations, 1 at a time, need 247 MB, and the device has 100 MB: use"
    )
    assert_refuses(lambda: make_agent(spec, tic_tac_toe), sentence)


def assert_refuses(call, sentence):
    with pytest.raises((ValueError, runs.CheckpointError)) as error:
        call()
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("perfect", "connect_four has too many positions to enumerate"),
        ("minimax", "minimax cannot look to the end of connect_four: give .* such as minimax:4"),
        ("alphabeta", "alphabeta cannot look to the end of connect_four: .* such as alphabeta:4"),
        ("network", "run is a run of tic_tac_toe, not of connect_four: use a run of connect_four"),
    ],
)
def test_refuses_players_that_cannot_play_a_game(spec, sentence, run):
    with pytest.raises(ValueError, match=sentence):
        make_agent(spec, azjax.make("connect_four"), custom.Typed(run))


def test_refuses_missing_checkpoints(tic_tac_toe, run, tmp_path):
    sentence = f"{run} has no checkpoint 5: use one of 2, 4, 6"
    assert_refuses(lambda: make_agent(f"network@{run}#5", tic_tac_toe), sentence)
    sentence = f"'network@{run}#all' names several players: name one checkpoint, as in #20"
    assert_refuses(lambda: make_agent(f"network@{run}#all", tic_tac_toe), sentence)
    assert_refuses(lambda: expand("network#all"), "'network#all' needs the network of a training")
    runs.create_run(tmp_path / "new", CONFIG)
    sentence = f"{tmp_path / 'new'} has no checkpoint yet: resume the run"
    assert_refuses(lambda: expand(f"network@{tmp_path / 'new'}#all"), sentence)
    assert_refuses(lambda: expand("network@nothing#all"), "nothing is not a run directory")
    assert_refuses(lambda: expand("stockfish#all"), "unknown player 'stockfish'")
