"""What `verify --lines` says of a player rests on all of its games, and on nobody else's."""

import functools
import itertools
import json

import jax
import numpy as np
import pytest

import azjax
from azjax import runs
from azjax.cli import custom, verify
from azjax.games import solver
from azjax.games.base import init_batch
from azjax.networks import Network
from azjax.proof import deciding, exhaustive, overrides
from azjax.proof import seat as seats
from azjax.runs import presets
from azjax.runs.player import Player
from azjax.search import PUCT, UCT
from azjax.training.parts import Parts
from azjax.training.selfplay import SelfPlayConfig
from reference import Position
from reference import misere_pile as misere_pile_rules
from reference import tic_tac_toe as rules
from reference.exhaustive_play import explore
from tables import Table, bench


@functools.cache
def table_network(name, symmetric):
    """A network whose parameters are what it answers, one row for each position."""

    def infer(table, planes):
        planes = planes.reshape(len(planes), -1, 3).astype(np.int32)
        board, player = planes[..., 0] - planes[..., 1], 1 - planes[:, 0, 2]
        row = bench(name).number(board, player)
        return table.logits[row], table.values[row]

    return Network("absolute", *[None] * 4, infer, symmetric)


def make_player(moves, name="tic_tac_toe", symmetric=False, search=None, iteration=6):
    """Plays the moves of `{position: action}`, and its search goes by random values."""
    table = bench(name).random_table()
    table.logits[:] = 0
    for position, action in moves.items():
        row = bench(name).number(np.array(position.board), position.player)
        table.logits[row, action] = 1
    network, search = table_network(name, symmetric), search or PUCT()
    parts = Parts(bench(name).game, network, search, SelfPlayConfig(), *[None] * 3)
    return Player(parts, Table(*table), iteration)


@pytest.fixture(scope="module")
def positions(solution):
    """Those of tic-tac-toe with a decision, in the solution's order."""
    board, player, over = (np.asarray(leaf).tolist() for leaf in solution.decision_states)
    return list(map(Position, map(tuple, board), player, over))


@pytest.fixture(scope="module")
def choose(solution, positions):
    """`seed, is_fair, is_optimal -> {position: action}`; the fair respect the symmetries."""
    rows = {position: row for row, position in enumerate(positions)}

    def choose(seed, is_fair=False, is_optimal=False):
        rng = np.random.default_rng(seed)
        moves = {}
        for position in positions:
            row = solution.decisions[rows[position]]
            allowed = solution.optimal[row] if is_optimal else solution.legal[row]
            moves[position] = rng.choice(np.flatnonzero(allowed)).item()
        if not is_fair:
            return moves
        return {position: image_of_move(moves, position) for position in positions}

    return choose


def image_of_move(moves, position):
    """What is played in the least image of a position, in the position itself."""
    least = rules.least_image(position)
    [cells, *_] = [cells for cells in rules.symmetries() if rules.image(position, cells) == least]
    return cells[moves[least]]


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch):
    """Asks about few positions at once, as there are few."""
    monkeypatch.setattr(deciding, "_POSITIONS", 64)


@pytest.fixture
def examine(tmp_path, monkeypatch, capfd):
    """`(player, *arguments) -> (exit status, JSON, text)`, in one run directory."""

    def examine(player, *arguments, seat="first"):
        monkeypatch.setattr(custom, "open_run", lambda typed: (tmp_path, player))
        status = verify.main(["--lines", seat, *arguments, "--json"])
        found = json.loads(capfd.readouterr().out)
        assert verify.main(["--lines", seat, *arguments]) == status
        return status, found, capfd.readouterr().out

    return examine


def assert_counts(answer, moves, seat="first", rules=rules, same=lambda position: position):
    """What was found is what one finds who plays one game after the other."""
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
    if every.lost:
        first = tuple(found["first_lost_game"])
        assert first in every.lost and len(first) == min(map(len, every.lost))
        assert f"the first lost game, {' '.join(map(str, first))}:" in text
        assert "UNBEATABLE" not in text
    else:
        assert found["first_lost_game"] is None
        assert f"UNBEATABLE moving {seat}: no game is lost" in text


@pytest.mark.parametrize("seat", ["first", "second"])
@pytest.mark.parametrize(("is_fair", "is_optimal"), [(True, False), (False, False), (True, True)])
def test_all_games_are_counted(choose, examine, seat, is_fair, is_optimal):
    moves = choose(1, is_fair, is_optimal)
    answer = examine(make_player(moves, symmetric=is_fair), seat=seat)
    assert answer[1]["up_to_symmetry"] == is_fair and answer[1]["unbeatable"] == is_optimal
    assert_counts(
        answer, moves, seat, same=rules.least_image if is_fair else lambda position: position
    )


def pile_moves(is_wise):
    """With five stones left the first player wins: by one, and by two of four or three."""
    moves, layer = {}, {misere_pile_rules.start()}
    while layer:
        for position in layer:
            legal = misere_pile_rules.legal(position)
            moves[position] = 1 if is_wise and position.board.count(0) in (3, 4) else legal[0]
        after = [misere_pile_rules.play(p, a)[0] for p in layer for a in misere_pile_rules.legal(p)]
        layer = {position for position in after if not position.over}
    return moves


@pytest.mark.parametrize("seat", ["first", "second"])
@pytest.mark.parametrize("is_wise", [True, False])
def test_a_player_may_move_twice_in_a_row(examine, seat, is_wise):
    moves = pile_moves(is_wise)
    answer = examine(make_player(moves, "misere_pile"), seat=seat)
    assert_counts(answer, moves, seat, misere_pile_rules)
    assert answer[1]["unbeatable"] == (seat == "first" and is_wise)


# Samples.


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("sample_comes_first", [False, True])
def test_a_sample_proves_nothing(choose, examine, symmetric, sample_comes_first):
    """Of a player that loses no game, none of which is left out by the sample alone."""
    moves = choose(2, is_fair=symmetric, is_optimal=True)
    player, answers = make_player(moves, symmetric=symmetric), {}
    for most in ("16", None) if sample_comes_first else (None, "16"):
        arguments = ["--most", most] if most else []
        answers[most] = examine(player, *arguments, seat="second")
    same = rules.least_image if symmetric else lambda position: position
    assert_counts(answers[None], moves, "second", same=same)
    status, found, text = answers["16"]
    assert status == 1 and found["sampled"] and not found["unbeatable"]
    assert "NOT PROVED: no game was lost among those followed, and others were left out" in text
    assert "UNBEATABLE" not in text and found["ends"]["lost"] == 0 < found["ends"]["won"]
    assert found["decisions"] < answers[None][1]["decisions"]


def test_a_sample_may_lose_a_game(choose, examine):
    moves = choose(1)
    status, found, text = examine(make_player(moves), "--most", "16", seat="second")
    assert status == 1 and found["sampled"] and not found["unbeatable"]
    assert "NOT PROVED" not in text and "UNBEATABLE" not in text
    lost = explore(rules, moves.__getitem__, 1).lost
    assert tuple(found["first_lost_game"]) in lost and found["ends"]["lost"] > 0
    share, low, high = found["share_of_games_lost"]
    games = found["games"]
    assert games["lost"] / sum(games.values()) == pytest.approx(share)
    assert low < share < high and f"{100 * share:.4g} [{100 * low:.3g}, {100 * high:.3g}]" in text


def test_all_of_few_positions_are_no_sample(choose, examine):
    moves = choose(2, is_optimal=True)
    answer = examine(make_player(moves), "--most", "5000")
    assert_counts(answer, moves)
    assert answer[0] == 0


# Other players in the same run directory.


def test_no_player_goes_on_where_another_was(choose, examine, solution, positions):
    """The seat, the search, the checkpoint and its network each make another player."""
    good, other = choose(2, is_optimal=True), choose(1)
    player, replaced = make_player(good), make_player(other)
    later = make_player(choose(4), iteration=7)
    found = player.search(jax.random.key(1), solution.decision_states, num_simulations=8)
    searched = dict(zip(positions, found.action.tolist(), strict=True))
    everything = [
        (player, "0", "first", good),
        (player, "0", "second", good),
        (player, "8", "first", searched),
        (later, "0", "first", choose(4)),
        (replaced, "0", "first", other),  # A checkpoint of the same iteration.
        (player, "0", "first", good),
    ]
    for one, simulations, seat, moves in everything:
        answer = examine(one, "--simulations", simulations, seat=seat)
        assert answer[1]["iteration"] == one.iteration
        assert (answer[1]["seat"], answer[1]["simulations"]) == (seat, int(simulations))
        assert_counts(answer, moves, seat)
    found = [explore(rules, each.__getitem__, 0) for each in (good, searched, choose(4), other)]
    assert len({tuple(count.games) for count in found}) == len(found)  # So the test can fail.
    changed = [make_player(good, search=PUCT(num_simulations=9)), make_player(good, symmetric=True)]
    nothing = overrides.empty_table(player.game)
    assert len({seats._digest(one, nothing) for one in (player, *changed)}) == 3


def write_book(run_dir, moves, rounds=1, seat=0, simulations=0):
    """Saves `{position: action}` as the book of network #6; returns its path."""
    path = overrides.table_path(run_dir, 6, seat, simulations)
    path.parent.mkdir(exist_ok=True)
    boards = np.array([position.board for position in moves], np.int8)
    start = jax.device_get(init_batch(bench("tic_tac_toe").game, 1))
    states = type(start)(
        boards,
        np.array([position.player for position in moves], start.player.dtype),
        np.zeros(len(moves), bool),
    )
    actions = np.array([*moves.values()], np.int32)
    refuted = np.zeros((len(moves), 9), bool)
    overrides.save_table(path, overrides.OverrideTable(states, actions, refuted, rounds))
    return path


def test_a_book_is_played_if_it_is_asked_for(choose, examine, tmp_path):
    """Two books with the same positions, one after the other; without `--mend`, neither."""
    moves, books = choose(1), [choose(2, is_optimal=True), choose(3)]
    player = make_player(moves)
    for book in (*books, books[0]):
        write_book(tmp_path, {position: book[position] for position in book if not position.player})
        answer = examine(player, "--mend", "1")
        assert_counts(answer, book)
        assert answer[1]["moves_by_book"] > 1000
        assert f" alone, {answer[1]['moves_by_book']:,} moves by book, moving first" in answer[2]
        assert_counts(alone := examine(player), moves)
        assert alone[1]["moves_by_book"] == 0 and "by book" not in alone[2]
    found = [explore(rules, each.__getitem__, 0).games for each in (moves, *books)]
    assert found[0] != found[1] != found[2] != found[0]


# Symmetric copies.


def mistreatments(solution, positions, moves, worth):
    """Positions that the first player reaches, each with an unlike move of a certain worth."""
    reached, rows = [], {position: row for row, position in enumerate(positions)}
    explore(rules, lambda position: reached.append(position) or moves[position], 0)
    for position in sorted({*reached}):
        values = solution.action_values[solution.decisions[rows[position]]]
        for action in rules.legal(position):
            after = [rules.play(position, each)[0] for each in (action, moves[position])]
            if values[action] == worth and rules.least_image(after[0]) != rules.least_image(
                after[1]
            ):
                yield {position: action}


@pytest.mark.parametrize("worth", [-1, 0])
def test_what_is_done_differently_in_one_symmetric_copy_counts(
    choose, examine, solution, positions, worth
):
    """The network claims to respect the symmetries, and in one position it does not."""
    moves = choose(2, is_fair=True, is_optimal=True)
    faults = [*mistreatments(solution, positions, moves, worth)]
    is_seen = []
    for number in np.random.default_rng(1).permutation(len(faults))[:4]:
        status, found, text = examine(make_player(moves | faults[number], symmetric=True))
        assert status == (worth == -1) and found["unbeatable"] == (worth == 0)
        is_seen.append(found["up_to_symmetry"])
        if not is_seen[-1]:
            assert_counts((status, found, text), moves | faults[number])
            break
    assert not is_seen[-1]  # It was not seen before the player was asked about all copies.


# All positions, for which there is a certificate.


@pytest.fixture
def certify(solution, tmp_path, monkeypatch, capfd):
    """`(moves, *arguments) -> (exit status, JSON)`."""
    monkeypatch.setattr(solver, "solve", lambda game: solution)
    runs.create_run(tmp_path / "run", presets.get("default"))

    def certify(moves, *arguments):
        player = make_player(moves)
        monkeypatch.setattr(custom, "open_run", lambda typed: (tmp_path / "run", player))
        status = verify.main([*arguments, "--json"])
        return status, json.loads(capfd.readouterr().out)

    return certify


def weaken(moves, solution, positions, worth, thrown):
    """Plays a worse move in one position that it reaches moving first: `{position: action}`."""
    reached = []
    explore(rules, lambda position: reached.append(position) or moves[position], 0)
    for position in reached:
        values = solution.action_values[solution.decisions[positions.index(position)]]
        if values.max() == worth and thrown in values:
            return moves | {position: values.tolist().index(thrown)}
    raise AssertionError


@pytest.mark.parametrize(
    ("worth", "thrown", "perfect", "unbeatable"),
    [(None, None, True, True), (1, 0, False, True), (0, -1, False, False)],
)
def test_the_goal_decides_on_the_exit_status(
    choose, certify, solution, positions, worth, thrown, perfect, unbeatable
):
    moves = choose(2, is_optimal=True)
    if worth is not None:
        moves = weaken(moves, solution, positions, worth, thrown)
    for goal, holds in ((None, perfect), ("perfect", perfect), ("unbeatable", unbeatable)):
        arguments = ["--until", goal] if goal else []
        status, found = certify(moves, "--simulations", "0", *arguments)
        assert status == (not holds) and found["searches"] == []
        assert (found["perfect"], found["unbeatable"]) == (perfect, unbeatable)
        assert found["blunders"] == (worth is not None)


def test_a_search_that_errs_is_not_perfect(choose, certify):
    status, found = certify(choose(2, is_optimal=True), "--simulations", "2")
    assert {search["num_simulations"] for search in found["searches"]} == {2}
    assert {search["algorithm"] for search in found["searches"]} == {"puct", "gumbel"}
    assert any(search["blunders"] for search in found["searches"]) and not found["blunders"]
    assert status == 1 and not found["perfect"] and found["unbeatable"]


# What is refused.


def test_nothing_is_proved_of_a_search_that_draws_lots(choose, monkeypatch, tmp_path, capfd):
    player = make_player(choose(1), search=UCT())
    monkeypatch.setattr(custom, "open_run", lambda typed: (tmp_path, player))
    assert verify.main(["--lines", "first", "--simulations", "2"]) == 2
    assert capfd.readouterr() == (
        "",
        "error: uct draws lots, so nothing can be proved of it: use --simulations 0, for the "
        "network alone\n",
    )


def test_a_goal_is_for_certificates(capfd):
    assert verify.main(["--lines", "first", "--until", "perfect"]) == 2
    assert "error: --until is for all positions" in capfd.readouterr().err


# Repair.


@pytest.fixture
def thinks_shortly(monkeypatch):
    monkeypatch.setattr(seats, "_SHORTEST", 16)


def with_book(moves, path):
    """The moves of a player with a book, and the book."""
    book = overrides.load_table(path, bench("tic_tac_toe").game)
    leaves = (leaf.tolist() for leaf in book.states)
    known = [Position(tuple(board), *rest) for board, *rest in zip(*leaves, strict=True)]
    assert len(set(known)) == len(known)
    return moves | dict(zip(known, book.actions.tolist(), strict=True)), book, known


def test_symmetric_copies_are_repaired_alike(
    choose, examine, thinks_shortly, monkeypatch, tmp_path
):
    """And what comes of a repair is repaired: all but the first games are played by the book."""
    make_act, names = seats.make_act, []

    def make_and_note(agent):
        names.append(agent.name)
        return make_act(agent)

    monkeypatch.setattr(seats, "make_act", make_and_note)
    moves, path = choose(1, is_fair=True), overrides.table_path(tmp_path, 6, 0, 0)
    player = make_player(moves, symmetric=True)
    answer = examine(player, "--mend", "1")
    better, book, known = with_book(moves, path)
    assert_counts(answer, better, same=rules.least_image)
    assert answer[1]["up_to_symmetry"] and answer[1]["moves_by_book"] == len(known) > 0
    assert [name.endswith(" overrides") for name in names] == [False] + [True] * (len(names) - 1)
    assert len(names) > 2
    for cells in rules.symmetries():
        for position in known:
            image = rules.image(position, cells)
            assert image in known
            after = [rules.play(each, better[each])[0] for each in (position, image)]
            assert rules.least_image(after[0]) == rules.least_image(after[1])


def test_as_many_rounds_are_made_as_asked_for(
    choose, examine, thinks_shortly, monkeypatch, tmp_path
):
    """All calls together; what is lost is said before each."""
    monkeypatch.setattr(seats, "_GENERATIONS", 1)
    moves, path = choose(1), overrides.table_path(tmp_path, 6, 1, 0)
    player, rounds, contents = make_player(moves), [], []
    for most in (1, 1, 2):
        answer = examine(player, "--mend", str(most), seat="second")
        better, book, _ = with_book(moves, path)
        assert_counts(answer, better, "second")
        assert answer[1]["ends"]["lost"] > 0  # So another round may follow.
        rounds.append(book.rounds)
        contents.append(path.read_bytes())
    assert rounds == [1, 1, 2] and contents[0] == contents[1] != contents[2]


@pytest.mark.parametrize(
    ("rounds", "simulations", "number"),
    [(0, 0, 256), (0, 1, 256), (0, 20, 320), (3, 0, 2048), (2, 20, 1280), (9, 0, 2**15)],
)
def test_each_round_thinks_longer(choose, rounds, simulations, number, monkeypatch, tmp_path):
    """And it knows what the book refutes."""
    numbers, thoughts, player = [], [], make_player(choose(1))
    monkeypatch.setattr(seats, "make_agent", lambda player, number: numbers.append(number))
    monkeypatch.setattr(seats, "make_decide", lambda agent: None)
    monkeypatch.setattr(seats, "make_analyze", lambda game, decide, book: book)
    monkeypatch.setattr(seats, "repair", lambda *given: thoughts.append(given) or (book, []))
    monkeypatch.setattr(exhaustive, "lost_games", lambda folder: [(0,)])
    book = overrides.empty_table(player.game)._replace(rounds=rounds)
    walk = seats.SeatProof(None, tmp_path, False, 0, 0.0, book)
    seats._improve(tmp_path / "book.npz", player, "first", simulations, walk, seats.finish)
    assert numbers == [simulations, number] and [given[4] for given in thoughts] == [book]


def test_an_interrupted_repair_goes_on(
    choose, examine, thinks_shortly, monkeypatch, tmp_path, capfd
):
    """Before and after its book is written, and while games are followed."""
    monkeypatch.setattr(seats, "_GENERATIONS", 1)
    moves, path = choose(1), overrides.table_path(tmp_path, 6, 0, 0)
    player, save, make_act = make_player(moves), seats.save_table, seats.make_act
    stops, asked = iter([True, False, False, True]), itertools.count()

    def save_or_stop(path, book):
        if next(stops, False):
            raise KeyboardInterrupt
        save(path, book)
        if next(stops, False):
            raise KeyboardInterrupt

    def make_or_stop(agent):
        act = make_act(agent)

        def ask(states):
            if next(asked) in (3, 9):
                raise KeyboardInterrupt
            return act(states)

        return ask

    monkeypatch.setattr(seats, "save_table", save_or_stop)
    monkeypatch.setattr(seats, "make_act", make_or_stop)
    monkeypatch.setattr(custom, "open_run", lambda typed: (tmp_path, player))
    statuses = []
    while not {0, 1} & {*statuses}:
        statuses.append(verify.main(["--lines", "first", "--mend", "1"]))
    assert len(statuses) == 5 and next(asked) > 9
    capfd.readouterr()
    better, book, _ = with_book(moves, path)
    answer = examine(player, "--mend", "1")
    assert_counts(answer, better)
    assert book.rounds == 1 and answer[0] == statuses[-1]


def test_a_player_is_proved_and_repaired_from_python(choose, thinks_shortly, tmp_path):
    player, rounds = make_player(choose(1)), []
    found = azjax.prove_seat(player, "first", tmp_path)
    assert found.lost > 0 and not found.is_proof and not len(found.table.actions)
    better = azjax.repair(
        player, "first", 9, tmp_path, notify=lambda proof, table: rounds.append(proof.lost)
    )
    assert better.is_proof and better.lost == 0 < len(better.table.actions)
    assert rounds[0] == found.lost and len(rounds) == better.table.rounds
    with pytest.raises(ValueError, match="run_dir is None, and the player is from no run"):
        azjax.prove_seat(player, "second")


def test_what_is_lost_whatever_is_played_stays_so(examine, thinks_shortly):
    """What is said is of the player whose games were followed, and not of its next book."""
    moves = pile_moves(is_wise=False)
    answer = examine(make_player(moves, "misere_pile"), "--mend", "1", seat="second")
    assert_counts(answer, moves, "second", misere_pile_rules)
    assert answer[1]["moves_by_book"] == 0 < answer[1]["ends"]["lost"]
