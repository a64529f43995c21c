"""A proof for one seat covers all games of a player, and no results of another player."""

import functools
import itertools
import tempfile

import jax
import numpy as np
import pytest

import azjax
from azjax.cli import custom, verify
from azjax.proof import repair, seat_proof
from bad_players import lowest, make_player, moves_of, small_batches, use_listed_players
from pairs import pair
from reference import misere_pile as misere_pile_rules
from reference import tic_tac_toe as rules
from reference.exhaustive_play import explore


@pytest.fixture(autouse=True)
def listed_moves(monkeypatch):
    use_listed_players(monkeypatch)
    with small_batches():
        yield


@pytest.fixture(scope="module")
def choose(solution):
    """`seed, is_equivariant, is_optimal -> {position: action}`."""

    positions = pair("tic_tac_toe").positions(solution.decision_states)

    def choose(seed, is_equivariant=False, is_optimal=False):
        rng = np.random.default_rng(seed)
        allowed = (solution.optimal if is_optimal else solution.legal)[solution.decisions]
        chosen = [rng.choice(np.flatnonzero(row)).item() for row in allowed]
        moves = dict(zip(positions, chosen, strict=True))
        if not is_equivariant:
            return moves
        return {position: transformed_move(moves, position) for position in positions}

    return choose


def transformed_move(moves, position):
    """The move in the least symmetric copy of a position, transformed to the position itself."""
    least = rules.least_image(position)
    [cells, *_] = [cells for cells in rules.symmetries() if rules.image(position, cells) == least]
    return cells[moves[least]]


def assert_counts(proof, moves, seat=0):
    """The results equal those of a traversal that plays one game after the other."""
    every, ends = explore(rules, moves.__getitem__, seat), proof.exploration.ends
    assert (ends.decisions, ends.moves.tolist()) == (every.decisions, every.moves)
    assert ends.games.tolist() == every.games
    assert proof.is_proof == (not every.lost)


# The program.


@pytest.mark.parametrize("is_optimal", [True, False])
def test_the_program_shows_how_games_end(is_optimal, choose, tmp_path, monkeypatch, capfd):
    moves = choose(2, is_optimal=is_optimal)
    monkeypatch.setattr(custom, "open_player", lambda typed: (tmp_path, make_player(moves)))
    expected = explore(rules, moves.__getitem__, 1)
    assert verify.main(["--lines", "second"]) == (not is_optimal)
    text = capfd.readouterr().out
    assert ("UNBEATABLE moving second" in text) == is_optimal
    assert f"{expected.decisions:,} positions decided" in text
    rows = [line.split() for line in text.splitlines()]
    for row in zip(("won", "drawn", "lost"), expected.moves, expected.games, strict=True):
        outcome, ends, games = row
        shares = (100 * n / sum(of) for n, of in ((ends, expected.moves), (games, expected.games)))
        assert [outcome, f"{ends:,}", *(f"{share:.4g}" for share in shares)] in rows


def test_a_player_in_memory_needs_no_folder(choose, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    player = make_player(choose(1))
    proofs = [azjax.prove_seat(player, "first", folder) for folder in (None, tmp_path / "kept")]
    assert not {path.name for path in tmp_path.iterdir()} - {"kept"}
    assert jax.tree.all(jax.tree.map(np.array_equal, *[proof.exploration for proof in proofs]))
    assert proofs[0].lost > 0
    moves = moves_of(misere_pile_rules, lowest)
    assert azjax.repair(make_player(moves, "misere_pile"), "first", 9).is_proof


# Repair.


def with_table(moves, path):
    """The moves of a player with an override table, the table, and its positions."""
    one = pair("tic_tac_toe")
    table = repair.load_table(path, one.game)
    known = one.positions(table.states)
    assert len(set(known)) == len(known)
    return moves | dict(zip(known, table.actions.tolist(), strict=True)), table, known


def test_symmetric_copies_are_repaired_alike(choose, monkeypatch, tmp_path):
    """Games that follow from a repair are repaired as well: only the first ones have no table."""
    make_act, has_table = seat_proof.make_act, []

    def make_and_note(game, agent, table):
        has_table.append(len(table.actions) > 0)
        return make_act(game, agent, table)

    monkeypatch.setattr(seat_proof, "make_act", make_and_note)
    monkeypatch.setattr(seat_proof, "_GENERATIONS", 10)
    moves, path = choose(1, is_equivariant=True), repair.table_path(tmp_path, 6, 0, 0)
    proof = azjax.repair(make_player(moves, symmetric=True), "first", 1, tmp_path)
    better, _, known = with_table(moves, path)
    assert_counts(proof, better)  # Of all copies, since no game of one copy is lost.
    assert proof.is_proof and not proof.symmetric
    assert len(proof.table.actions) == len(known) > 0
    assert has_table == [False] + [True] * (len(has_table) - 1) and len(has_table) > 2
    for cells, position in itertools.product(rules.symmetries(), known):
        image = rules.image(position, cells)
        assert image in known
        after = [rules.play(each, better[each])[0] for each in (position, image)]
        assert rules.least_image(after[0]) == rules.least_image(after[1])


def test_an_interrupted_repair_resumes_and_all_its_rounds_count(choose, monkeypatch, tmp_path):
    """It is interrupted before and after its table is written, and during the exploration."""
    monkeypatch.setattr(seat_proof, "_GENERATIONS", 1)
    moves, path = choose(1), repair.table_path(tmp_path, 6, 1, 0)
    player, save, make_act = make_player(moves), seat_proof.save_table, seat_proof.make_act
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

    monkeypatch.setattr(seat_proof, "save_table", save_or_stop)
    monkeypatch.setattr(seat_proof, "make_act", make_or_stop)
    prove = functools.partial(azjax.prove_seat, player, "second", tmp_path)
    for _ in range(4):
        with pytest.raises(KeyboardInterrupt):
            prove(rounds=1)
    proof = prove(rounds=1)
    assert next(calls) > 9
    better, table, _ = with_table(moves, path)
    content = path.read_bytes()
    again = prove(rounds=1)  # No more rounds.
    assert_counts(again, better, 1)
    assert table.rounds == 1 and again.lost == proof.lost and path.read_bytes() == content
    assert again.lost > 0  # Another round is possible.
    alone = prove()  # Without rounds, the table is not used.
    assert_counts(alone, moves, 1)
    assert len(alone.table.actions) == 0 < len(again.table.actions)


def test_a_seat_that_cannot_be_saved_stays_lost(tmp_path, monkeypatch):
    """The result is of the explored player, without the next override table.

    Each round searches twice as long as the one before it, with the refuted moves of the table.
    """
    numbers, make_agent = set(), seat_proof.make_agent
    tables, make_analyze = [], seat_proof.make_analyze
    for name, note in (
        ("make_analyze", lambda *given: tables.append(given[2]) or make_analyze(*given)),
        ("make_agent", lambda player, n: numbers.add(n) or make_agent(player, n)),
    ):
        monkeypatch.setattr(seat_proof, name, note)
    player = make_player(moves_of(misere_pile_rules, lowest), "misere_pile")
    path = repair.table_path(tmp_path, 6, 1, 0)

    def rounds(seat):
        steps = seat_proof.explore_seat(player, seat, tmp_path, simulations=0, rounds=9)
        proofs = [step for step in steps if isinstance(step, seat_proof.SeatProof)]
        assert [proof.table.rounds for proof in proofs] == [*range(len(proofs))]
        return proofs

    *_, last = rounds("second")
    assert last.lost > 0 and last.table.rounds < 8
    assert repair.load_table(path, player.game).rounds == last.table.rounds + 1
    assert tables[-1].refuted.any()
    assert numbers == {0, *(256 * 2**number for number in range(last.table.rounds + 1))}
    first, *_, last = rounds("first")  # With five stones the first player wins.
    assert first.lost > 0 == last.lost and last.is_proof and len(last.table.actions)
