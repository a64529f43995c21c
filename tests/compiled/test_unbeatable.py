"""`verify --lines` covers all games of a player, and no results of another player."""

import functools
import itertools
import json
import re

import jax
import numpy as np
import pytest

import azjax
from azjax.cli import custom, verify
from azjax.exact import exhaustive, repair
from azjax.exact import seat as seats
from azjax.games.rows import in_batches
from azjax.networks import Network
from azjax.runs.player import Player
from azjax.search import PUCT
from azjax.search.evaluators import network_evaluator
from azjax.training.parts import Parts, SelfPlayConfig
from guard import sharing
from reference import Position
from reference import misere_pile as misere_pile_rules
from reference import tic_tac_toe as rules
from reference.exhaustive_play import explore
from refusals import assert_refused
from tables import Table, bench


@functools.cache
def table_network(name, symmetric):
    """A network whose parameters are its outputs, one row for each position."""

    def infer(table, planes):
        planes = planes.reshape(len(planes), -1, 3).astype(np.int32)
        board, player = planes[..., 0] - planes[..., 1], 1 - planes[:, 0, 2]
        row = bench(name).number(board, player)
        return table.logits[row], table.values[row]

    return Network("absolute", *[None] * 4, infer, symmetric)


def make_player(moves, name="tic_tac_toe", symmetric=False):
    """Returns a player of the moves `{position: action}`; its search uses random values."""
    table = bench(name).random_table()
    table.logits[:] = 0
    for position, action in moves.items():
        row = bench(name).number(np.array(position.board), position.player)
        table.logits[row, action] = 1
    network = table_network(name, symmetric)
    parts = Parts(bench(name).game, network, PUCT(), SelfPlayConfig(), *[None] * 3)
    return Player(parts, Table(*table), 6)


@pytest.fixture(scope="module")
def positions(solution):
    """The decision states of tic-tac-toe, in the order of the solution."""
    board, player, over = (np.asarray(leaf).tolist() for leaf in solution.decision_states)
    return list(map(Position, map(tuple, board), player, over))


@pytest.fixture(scope="module")
def choose(solution, positions):
    """`seed, is_equivariant, is_optimal -> {position: action}`."""
    rows = {position: row for row, position in enumerate(positions)}

    def choose(seed, is_equivariant=False, is_optimal=False):
        rng = np.random.default_rng(seed)
        moves = {}
        for position in positions:
            row = solution.decisions[rows[position]]
            allowed = solution.optimal[row] if is_optimal else solution.legal[row]
            moves[position] = rng.choice(np.flatnonzero(allowed)).item()
        if not is_equivariant:
            return moves
        return {position: transformed_move(moves, position) for position in positions}

    return choose


def transformed_move(moves, position):
    """The move in the least symmetric copy of a position, transformed to the position itself."""
    least = rules.least_image(position)
    [cells, *_] = [cells for cells in rules.symmetries() if rules.image(position, cells) == least]
    return cells[moves[least]]


KEY, BATCH = jax.random.key(0), 512
SEARCH_AGENT = seats.search_agent
compiled = functools.cache(jax.jit)


def make_decide(agent):
    """Decides without a program for each player: networks eagerly, equal searches by one."""
    act = compiled(agent.act) if agent.nodes > 1 else agent.act

    def decide(states):
        with sharing():
            return in_batches(lambda some: act(agent.params, KEY, some), (states,), BATCH)

    return decide


@functools.cache
def make_searcher(game, search):
    return SEARCH_AGENT(game, search, network_evaluator(game, table_network(game.name, False)))


def search_agent(game, search, evaluate, params):
    return make_searcher(game, search)._replace(params=params)


@pytest.fixture(autouse=True)
def shared_programs(monkeypatch):
    monkeypatch.setattr(seats, "_POSITIONS", 64)
    monkeypatch.setattr(seats, "make_decide", make_decide)
    monkeypatch.setattr(seats, "search_agent", search_agent)
    monkeypatch.setattr(seats, "_SHORTEST", 16)


@pytest.fixture
def examine(tmp_path, monkeypatch, capfd):
    """`(player, *arguments) -> (exit status, JSON, text)`, in one run directory."""

    def examine(player, *arguments, seat="first", with_text=False):
        monkeypatch.setattr(custom, "open_run", lambda typed: (tmp_path, player))
        with sharing():  # Explorations keep their programs for each game.
            status = verify.main(["--lines", seat, *arguments, "--json"])
            found = json.loads(capfd.readouterr().out)
            assert not with_text or verify.main(["--lines", seat, *arguments]) == status
        return status, found, capfd.readouterr().out

    return examine


def assert_counts(answer, moves, seat="first", rules=rules, same=lambda position: position):
    """The results equal those of a traversal that plays one game after the other."""
    status, found, text = answer
    number = seats.SEATS[seat]
    every = explore(rules, moves.__getitem__, number, same=same)
    assert found["decisions"] == every.decisions
    assert list(found["ends"].values()) == every.moves
    assert list(found["games"].values()) == every.games
    share = every.games[2] / sum(every.games)
    assert found["share_of_games_lost"] == pytest.approx([share] * 3)
    assert not found["sampled"] and found["unbeatable"] == (not every.lost)
    assert status == bool(every.lost)
    assert "UNBEATABLE" not in text or not every.lost
    first = tuple(found["first_lost_game"] or ())
    assert first in (every.lost or [()])
    assert len(first) == min(map(len, every.lost), default=0)


def pile_moves(is_optimal):
    """With five stones the first player wins: it takes one, and two of four or three."""
    moves, layer = {}, {misere_pile_rules.start()}
    while layer:
        for position in layer:
            legal = misere_pile_rules.legal(position)
            moves[position] = 1 if is_optimal and position.board.count(0) in (3, 4) else legal[0]
        after = [misere_pile_rules.play(p, a)[0] for p in layer for a in misere_pile_rules.legal(p)]
        layer = {position for position in after if not position.over}
    return moves


# Samples.


def test_a_sample_proves_nothing(choose, examine):
    """Here the player loses no game at all, sampled or not."""
    moves = choose(2, is_optimal=True)
    player, answers = make_player(moves), {}
    for most in ("16", None):
        arguments = ["--most", most] if most else []
        answers[most] = examine(player, *arguments, seat="second", with_text=bool(most))
    assert_counts(answers[None], moves, "second")
    status, found, text = answers["16"]
    assert status == 1 and found["sampled"] and not found["unbeatable"]
    assert "NOT PROVED: no explored game is lost, but positions were left out" in text
    assert found["ends"]["lost"] == 0 < found["ends"]["won"]
    assert found["decisions"] < answers[None][1]["decisions"]
    assert re.search(r"won .* [\d.]+ \[[\d.]+, [\d.]+\]", text)  # With its interval.


# Symmetric copies.


def test_a_move_that_breaks_symmetry_in_one_position_counts(choose, examine, solution, positions):
    """The network is declared equivariant, but in one position it is not, and loses."""
    moves, faults = choose(2, is_equivariant=True, is_optimal=True), []
    reached, losing = set(), solution.action_values[solution.decisions] == -1
    explore(rules, lambda position: reached.add(position) or moves[position], 0)
    for position, bad in zip(positions, losing, strict=True):
        if position in reached and position.board.count(0) <= 5:
            faults += [{position: action} for action in np.flatnonzero(bad).tolist()]
    for number in np.random.default_rng(1).permutation(len(faults))[:9]:
        answer = examine(make_player(moves | faults[number], symmetric=True))
        assert answer[0] == 1 and not answer[1]["unbeatable"]
        if not answer[1]["up_to_symmetry"]:
            assert_counts(answer, moves | faults[number])
            break
    assert not answer[1]["up_to_symmetry"]  # Only the comparison of all copies found it.


# Repair.


def with_table(moves, path):
    """The moves of a player with an override table, the table, and its positions."""
    table = repair.load_table(path, bench("tic_tac_toe").game)
    leaves = (leaf.tolist() for leaf in table.states)
    known = [Position(tuple(board), *rest) for board, *rest in zip(*leaves, strict=True)]
    assert len(set(known)) == len(known)
    return moves | dict(zip(known, table.actions.tolist(), strict=True)), table, known


def test_symmetric_copies_are_repaired_alike(choose, examine, monkeypatch, tmp_path):
    """Games that follow from a repair are repaired as well: only the first ones have no table."""
    make_act, has_table = seats.make_act, []

    def make_and_note(game, agent, table):
        has_table.append(len(table.actions) > 0)
        return make_act(game, agent, table)

    monkeypatch.setattr(seats, "make_act", make_and_note)
    monkeypatch.setattr(seats, "_GENERATIONS", 10)
    moves, path = choose(1, is_equivariant=True), repair.table_path(tmp_path, 6, 0, 0)
    player = make_player(moves, symmetric=True)
    answer = examine(player, "--repair", "1")
    better, _, known = with_table(moves, path)
    assert_counts(answer, better, same=rules.least_image)
    assert answer[1]["up_to_symmetry"] and answer[1]["overrides"] == len(known) > 0
    assert has_table == [False] + [True] * (len(has_table) - 1) and len(has_table) > 2
    for cells in rules.symmetries():
        for position in known:
            image = rules.image(position, cells)
            assert image in known
            after = [rules.play(each, better[each])[0] for each in (position, image)]
            assert rules.least_image(after[0]) == rules.least_image(after[1])


def test_an_interrupted_repair_resumes_and_all_its_rounds_count(
    choose, examine, monkeypatch, tmp_path, capfd
):
    """It is interrupted before and after its table is written, and during the exploration."""
    monkeypatch.setattr(seats, "_GENERATIONS", 1)
    moves, path = choose(1), repair.table_path(tmp_path, 6, 1, 0)
    player, save, make_act = make_player(moves), seats.save_table, seats.make_act
    stops, calls = iter([True, False, False, True]), itertools.count()

    def save_or_stop(path, table):
        if next(stops, False):
            raise KeyboardInterrupt
        save(path, table)
        if next(stops, False):
            raise KeyboardInterrupt

    def make_or_stop(*given):
        act = make_act(*given)

        def act_or_stop(states):
            if next(calls) in (3, 9):
                raise KeyboardInterrupt
            return act(states)

        return act_or_stop

    monkeypatch.setattr(seats, "save_table", save_or_stop)
    monkeypatch.setattr(seats, "make_act", make_or_stop)
    monkeypatch.setattr(custom, "open_run", lambda typed: (tmp_path, player))
    statuses = []
    while not {0, 1} & {*statuses}:
        with sharing():
            statuses.append(verify.main(["--lines", "second", "--repair", "1"]))
    assert len(statuses) == 5 and next(calls) > 9
    capfd.readouterr()
    better, table, _ = with_table(moves, path)
    content = path.read_bytes()
    answer = examine(player, "--repair", "1", seat="second", with_text=True)  # No more rounds.
    assert_counts(answer, better, "second")
    assert f" alone, {answer[1]['overrides']:,} overrides, moving second" in answer[2]
    assert table.rounds == 1 and answer[0] == statuses[-1] and path.read_bytes() == content
    assert answer[1]["ends"]["lost"] > 0  # Another round is possible.
    # Without rounds, the table is not used.
    assert_counts(alone := examine(player, seat="second"), moves, "second")
    assert alone[1]["overrides"] == 0 < answer[1]["overrides"]


def test_each_round_and_repairs_that_do_not_end_search_longer(monkeypatch, tmp_path):
    player, numbers, starts = make_player({}), [], []
    monkeypatch.setattr(seats, "make_agent", lambda player, number: numbers.append(number))
    for name in ("make_decide", "make_act"):
        monkeypatch.setattr(seats, name, lambda *given: None)
    monkeypatch.setattr(seats, "make_analyze", lambda game, decide, table: table)
    monkeypatch.setattr(exhaustive, "explore", lambda *given, **settings: iter([None]))
    monkeypatch.setattr(exhaustive, "lost_games", lambda folder: [(0,)])
    monkeypatch.setattr(seats, "_SHORTEST", 256)
    monkeypatch.setattr(seats, "_GENERATIONS", 5)
    monkeypatch.setattr(seats, "_PATIENCE", 2)

    def repair_games(game, table, lost, seat, analyze, symmetric):
        assert analyze is table  # The search starts with the refuted moves.
        return seats.Repaired(table, starts)

    monkeypatch.setattr(seats, "repair_games", repair_games)
    for rounds, simulations, *expected in [
        *[(0, 0, 256), (0, 20, 320), (3, 0, 2048), (2, 20, 1280), (9, 0, 2**15)],
        (1, 0, 512, 1024, 2048),  # Some games stay lost.
    ]:
        starts[:] = [(0,)] if len(expected) > 1 else []
        table = repair.empty_table(player.game)._replace(rounds=rounds)
        proof = seats.SeatProof(None, tmp_path, False, 0, 0.0, table)
        seats._Games(player, 0, simulations, tmp_path / "t.npz", seats.finish).improve(proof)
        assert numbers == [simulations, *expected]
        del numbers[:]


def test_a_player_is_proved_and_repaired_from_python(tmp_path):
    player, rounds = make_player(pile_moves(is_optimal=False), "misere_pile"), []
    with sharing():
        before = azjax.prove_seat(player, "first", tmp_path)
        better = azjax.repair(
            player, "first", 9, tmp_path, notify=lambda proof, table: rounds.append(proof.lost)
        )
    assert before.lost > 0 and not before.is_proof and not len(before.table.actions)
    assert better.is_proof and better.lost == 0 < len(better.table.actions)
    assert rounds[0] == before.lost and len(rounds) == better.table.rounds
    none = "run_dir is None, and the player has none"
    assert_refused((lambda: azjax.prove_seat(player, "second"), none))


def test_a_seat_that_cannot_be_saved_stays_lost(examine):
    """The result is of the explored player, without the next override table."""
    moves = pile_moves(is_optimal=False)
    player = make_player(moves, "misere_pile")
    answer = examine(player, "--repair", "1", seat="second")
    assert_counts(answer, moves, "second", misere_pile_rules)
    assert answer[1]["overrides"] == 0 < answer[1]["ends"]["lost"]
