"""Exhaustive play counts the same games as the solver and the reference implementation."""

import re
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import misere_pile
from azjax.exact import exhaustive, lines, moves, sampling
from azjax.games.solver import symmetry_classes
from azjax.proof.verify import count_losing_lines
from bad_players import equivariant, highest, lowest, make_act, orbit, pair
from nim import NIM
from reference import exhaustive_play
from reference import nim as nim_rules


@pytest.fixture(scope="module")
def player(solution):
    """A deterministic player: its function, and its moves in all positions of the solution."""
    rows = {board.tobytes(): row for row, board in enumerate(np.asarray(solution.states.board))}
    scores = np.random.default_rng(0).random(solution.legal.shape)
    actions = np.where(solution.legal, scores, -1).argmax(axis=1)
    return lambda states: actions[[rows[board.tobytes()] for board in states.board]], actions


def explore_all(game, act, seat, folder, **settings):
    *_, last = exhaustive.explore(game, act, seat, folder, **settings)
    return last


def count(solution, actions, seat, row=0):
    """Counts games won, drawn and lost by a player from a position, by plain recursion."""
    own = solution.player[row] == seat
    total = np.zeros(3)
    for action in [actions[row]] if own else np.flatnonzero(solution.legal[row]):
        child, reward = solution.children[row, action], solution.rewards[row, action]
        if solution.over[child]:
            total[int(1 - reward * (1 if own else -1))] += 1
        else:
            total += count(solution, actions, seat, child)
    return total


@pytest.mark.parametrize("part_size", [2**18, 50])
@pytest.mark.parametrize("seat", [0, 1])
def test_all_games_are_counted(tic_tac_toe, solution, player, seat, part_size, tmp_path):
    act, actions = player
    found = explore_all(tic_tac_toe, act, seat, tmp_path / "lines", part_size=part_size)
    assert found.ends.games[0].tolist() == count(solution, actions, seat).tolist()
    assert found.ends.games[0, 2] == count_losing_lines(solution, actions[solution.decisions])[seat]
    assert not found.ends.games[1:].any() and not found.sampled
    share = found.ends.games[0, 2] / found.ends.games[0].sum()
    assert found.ends.share(2) == (share, share, share)


@pytest.fixture(scope="module")
def equivariant_player(tic_tac_toe, solution):
    """An equivariant player: its function, and its moves in all positions of the solution."""
    classes = symmetry_classes(tic_tac_toe, solution)
    value = np.random.default_rng(1).random(classes.max() + 1)[classes]
    actions = np.where(solution.legal, value[solution.children], -1).argmax(axis=1)
    rows = {board.tobytes(): row for row, board in enumerate(np.asarray(solution.states.board))}
    return lambda states: actions[[rows[board.tobytes()] for board in states.board]], actions


@pytest.mark.parametrize("seat", [0, 1])
def test_symmetric_copies_are_explored_once(
    tic_tac_toe, solution, equivariant_player, seat, tmp_path
):
    act, actions = equivariant_player
    every = explore_all(tic_tac_toe, act, seat, tmp_path / "every")
    found = explore_all(tic_tac_toe, act, seat, tmp_path / "one", symmetric=True, part_size=50)
    assert found.ends.games.tolist() == every.ends.games.tolist()
    assert found.ends.games[0].tolist() == count(solution, actions, seat).tolist()
    assert found.ends.decisions < every.ends.decisions / 2
    for game in [*exhaustive.lost_games(tmp_path / "one")]:
        row = 0
        for action in game:
            assert solution.legal[row, action]
            row = solution.children[row, action]
        assert solution.over[row] and len(game) % 2 == seat


@pytest.mark.parametrize(("seat", "line", "distinct"), [(0, (0, 5), 8), (1, (1,), 4)])
def test_moves_are_compared_in_all_symmetric_copies(
    tic_tac_toe, solution, equivariant_player, seat, line, distinct, tmp_path
):
    """Another move is made in each symmetric copy of a position in turn."""
    act, actions = equivariant_player
    symmetric = explore_all(tic_tac_toe, act, seat, tmp_path / "symmetric", symmetric=True)
    folder = tmp_path / "compared"
    compared = explore_all(tic_tac_toe, act, seat, folder, symmetric=True, compare=True)
    assert jax.tree.all(jax.tree.map(np.array_equal, compared, symmetric))
    assert not compared.breaks_symmetry
    assert seat or actions[0] == line[0]
    symmetries = tic_tac_toe.symmetries.actions
    copies = [tuple(symmetry[[*line]]) for symmetry in symmetries]
    boards = lines.replay(tic_tac_toe, copies).board
    original = action_of(act, boards[0])
    for copy in range(len(symmetries)):
        here = (boards == boards[copy]).all(axis=1)
        expected = symmetries[here, original]
        assert here.sum() == 8 / distinct and action_of(act, boards[copy]) in expected
        other = np.setdiff1d(np.flatnonzero(boards[copy] == 0), expected)[0]

        def break_symmetry(states, board=boards[copy], other=other):
            return np.where((states.board == board).all(axis=1), other, act(states))

        folder = tmp_path / str(copy)
        found = explore_all(tic_tac_toe, break_symmetry, seat, folder, symmetric=True, compare=True)
        [(*before, last)] = exhaustive.symmetry_violations(folder)
        [board] = lines.replay(tic_tac_toe, [tuple(before)]).board
        assert found.breaks_symmetry and (boards == board).all(axis=1).any()
        assert last == action_of(break_symmetry, board)
        folder = tmp_path / f"not compared {copy}"
        found = explore_all(tic_tac_toe, break_symmetry, seat, folder, symmetric=True)
        assert not found.breaks_symmetry and not [*exhaustive.symmetry_violations(folder)]


def action_of(act, board):
    return act(SimpleNamespace(board=board[None]))[0]


def test_a_lost_game_is_the_player_s_own(tic_tac_toe, solution, player, tmp_path):
    act, actions = player
    found = explore_all(tic_tac_toe, act, 0, tmp_path / "lines", part_size=50)
    games = list(exhaustive.lost_games(tmp_path / "lines"))
    assert found.lost == games[0] and len({*games}) == len(games) == found.ends.moves[2]
    assert [len(game) for game in games] == sorted(len(game) for game in games)
    for game in games:
        row = 0
        for ply, action in enumerate(game):
            assert solution.legal[row, action] and (ply % 2 or action == actions[row])
            reward, row = solution.rewards[row, action], solution.children[row, action]
        assert solution.over[row] and reward == (1 if len(game) % 2 == 0 else -1)


@pytest.mark.parametrize("symmetric", [False, True])
def test_games_may_be_explored_from_other_positions(
    tic_tac_toe, solution, player, symmetric, tmp_path
):
    act, actions = player
    starts = [(4, 0), (8, 4, 0, 2)]
    found = explore_all(tic_tac_toe, act, 0, tmp_path / "lines", starts=starts, symmetric=symmetric)
    total, lost = np.zeros(3), list(exhaustive.lost_games(tmp_path / "lines"))
    for start in starts:
        row = 0
        for action in start:
            row = solution.children[row, action]
        total += count(solution, actions, 0, row)
    if not symmetric:  # This player is not equivariant.
        assert found.ends.games[0].tolist() == total.tolist()
    assert lost and all(game[:2] == (4, 0) or game[:4] == (8, 4, 0, 2) for game in lost)
    states = lines.replay(tic_tac_toe, lost)
    assert states.over.all() and found.ends.moves[2] == len(lost)


def test_a_player_may_move_twice_in_a_row(tmp_path):
    game = misere_pile.make()

    def act(states):
        legal = np.asarray(jax.vmap(game.legal_actions)(states))
        return legal.shape[1] - 1 - legal[:, ::-1].argmax(axis=1)  # The last legal one.

    def recurse(state, seat):
        own, total = int(game.player(state)) == seat, np.zeros(3)
        legal = np.flatnonzero(game.legal_actions(state))
        for action in legal[-1:] if own else legal:
            after, reward = game.step(state, action)
            outcome = int(1 - reward * (1 if own else -1))
            total += np.eye(3)[outcome] if game.is_over(after) else recurse(after, seat)
        return total

    for seat in (0, 1):
        found = explore_all(game, act, seat, tmp_path / str(seat))
        assert found.ends.games[0].tolist() == recurse(game.init(), seat).tolist()
        assert found.ends.games[0].sum() > 1


def test_a_sample_is_an_unbiased_estimate(tic_tac_toe, solution, player, tmp_path):
    act, actions = player
    truth, estimates = count(solution, actions, 1), []
    for most in (96, 128, 160):
        found = explore_all(tic_tac_toe, act, 1, tmp_path / str(most), most=most, part_size=64)
        assert found.sampled
        share, low, high = found.ends.share(2)
        assert low < share < high and share == pytest.approx(truth[2] / truth.sum(), abs=0.2)
        estimates.extend(found.ends.games[:1] + found.ends.games[1:])
    error = np.std(estimates, axis=0, ddof=1) / np.sqrt(len(estimates))
    assert (abs(np.mean(estimates, axis=0) - truth) < 4 * error).all()
    assert (error < truth / 5).all()


def test_an_interrupted_exploration_resumes(tic_tac_toe, player, tmp_path):
    act, _ = player
    settings = {"most": 128, "part_size": 64}
    whole = explore_all(tic_tac_toe, act, 1, tmp_path / "whole", **settings)
    calls = []

    def interrupted(states):
        calls.append(len(states.board))
        if len(calls) % 3 == 0:
            raise KeyboardInterrupt
        return act(states)

    for _ in range(100):
        try:
            found = explore_all(tic_tac_toe, interrupted, 1, tmp_path / "cut", **settings)
            break
        except KeyboardInterrupt:
            continue
    assert len(calls) > 9
    assert jax.tree.all(jax.tree.map(np.array_equal, found, whole))
    before = len(calls)
    explore_all(tic_tac_toe, interrupted, 1, tmp_path / "cut", **settings)
    assert len(calls) == before  # Everything is stored.


CASES = [
    ("nim", lowest, ((),)),
    ("nim", highest, ((0,), (2, 1), (1, 0, 0))),  # Different games reach one position.
    ("misere_pile", lowest, ((),)),
    ("misere_pile", highest, ((1,), (0, 0))),
    ("tic_tac_toe", lowest, ((4, 0, 8), (4, 2, 0, 8), (0, 4, 8))),
    ("tic_tac_toe", highest, ((),)),
]


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize(
    ("name", "policy", "starts"), CASES, ids=lambda case: getattr(case, "__name__", None)
)
def test_exhaustive_play_equals_the_reference(name, policy, starts, seat, tmp_path, monkeypatch):
    monkeypatch.setattr(moves, "_BATCH", 64)
    one = pair(name)
    expected = exhaustive_play.explore(
        one.rules, lambda position: policy(one.rules, position), seat, starts
    )
    act = make_act(one, policy)
    for part_size in (1, 2, 7, 2**18) if sum(expected.positions) < 99 else (50, 2**18):
        folder = tmp_path / str(part_size)
        steps = list(
            exhaustive.explore(one.game, act, seat, folder, starts=starts, part_size=part_size)
        )
        assert_equal(steps, folder, expected)
        plies = {step.ply: step for step in steps}
        assert [plies[ply].positions for ply in plies] == expected.positions
        assert [*plies] == [*range(len(expected.positions))]
        assert all(step.total == expected.positions[step.ply] for step in steps)
        order = [(step.ply, step.positions) for step in steps]
        assert order == sorted({*order})
        starting = [step for step in steps if step.ply == 0]
        assert len(starting) == -(-len(starts) // part_size)  # Parts.
        lost = list(exhaustive.lost_games(folder))
        assert len(lost) == len({(position(one, line[:-1]), line[-1]) for line in lost})


def position(one, line):
    return len(line), exhaustive_play.position_after(one.rules, line)


def assert_equal(steps, folder, expected):
    """The results equal those of the reference; each lost game is one of its lost games."""
    found, lost = steps[-1], list(exhaustive.lost_games(folder))
    assert found.ends.decisions == expected.decisions
    assert found.ends.moves.tolist() == expected.moves
    assert found.ends.games.tolist() == [expected.games] + sampling.GROUPS * [[0, 0, 0]]
    assert len(lost) == len({*lost}) == expected.moves[2]
    assert {*lost} <= expected.lost and found.lost == next(iter(lost), None)
    assert not found.sampled and not found.breaks_symmetry


@pytest.mark.parametrize(
    ("seat", "starts"),
    [(0, ((),)), (1, ((),)), (0, ((4, 0), (4, 1))), (1, ((2,), (7,))), (1, ((4, 5, 0),))],
)
def test_symmetric_copies_are_explored_as_the_reference_does(seat, starts, tmp_path):
    """Starts that are not copies of each other are transformed as well."""
    one = pair("tic_tac_toe")
    policy = make_act(one, equivariant)
    expected = exhaustive_play.explore(
        one.rules, lambda position: equivariant(one.rules, position), seat, starts, same=orbit
    )
    for part_size in (50, 2**18):
        folder, settings = tmp_path / str(part_size), {"symmetric": True, "compare": True}
        steps = list(
            exhaustive.explore(
                one.game, policy, seat, folder, starts=starts, part_size=part_size, **settings
            )
        )
        assert_equal(steps, folder, expected)


def test_a_broken_symmetry_is_found_in_every_part(tic_tac_toe, tmp_path, monkeypatch):
    """The lowest action breaks it in many positions; each of them yields one line."""
    monkeypatch.setattr(moves, "_BATCH", 64)
    act = make_act(pair("tic_tac_toe"), lowest)
    yielded = []
    for part_size in (2, 2**18):
        folder = tmp_path / str(part_size)
        settings = {"symmetric": True, "compare": True, "part_size": part_size}
        found = explore_all(tic_tac_toe, act, 0, folder, starts=((4,),), **settings)
        yielded.append(list(exhaustive.symmetry_violations(folder)))
        assert found.breaks_symmetry and all(line[0] == 4 for line in yielded[-1])
    found = [len(np.load(part)["unlike"]) for part in sorted(tmp_path.glob("2/*/ends-*.npz"))]
    assert np.count_nonzero(found) > 4
    one = pair("tic_tac_toe")
    parted, whole = ({(orbit(position(one, g[:-1])[1]), len(g)) for g in x} for x in yielded)
    assert parted == whole and len(yielded[0]) == len(yielded[1]) == len(whole) > 7
    assert len({len(line) for line in yielded[0]}) > 1


def test_each_part_keeps_as_many_lost_games_as_it_may(tic_tac_toe, tmp_path, monkeypatch):
    """Games are also lost in later parts, and after more ends that are not lost."""
    act = make_act(pair("tic_tac_toe"), highest)

    def lost_of_parts(folder):
        explore_all(tic_tac_toe, act, 1, folder, part_size=40, starts=((4,),))
        return [len(np.load(path)["lost"]) for path in sorted(folder.glob("*/ends-*.npz"))]

    every = lost_of_parts(tmp_path / "every")
    monkeypatch.setattr(moves, "_LOST", 2)
    capped = lost_of_parts(tmp_path / "capped")
    assert capped == [min(lost, 2) for lost in every] and max(every) > 2
    games = list(exhaustive.lost_games(tmp_path / "capped"))
    assert len(games) == sum(capped) and {*games} <= {*exhaustive.lost_games(tmp_path / "every")}


def test_a_ply_that_was_explored_takes_little_space(tic_tac_toe, tmp_path):
    """It keeps a parent of eight bytes and an action of four."""
    explore_all(tic_tac_toe, make_act(pair("tic_tac_toe"), lowest), 0, tmp_path, symmetric=True)
    parts = sorted(tmp_path.glob("*/part-*.npy"))
    assert [np.load(path).itemsize for path in parts] == [12] * len(parts) and len(parts) > 5
    assert not [*tmp_path.glob("*/children-*")]


@pytest.mark.parametrize(("seat", "symmetric"), [(0, False), (1, True)])
def test_no_size_of_parts_is_too_small_for_a_sample(tic_tac_toe, seat, symmetric, tmp_path):
    act = make_act(pair("tic_tac_toe"), lowest)
    for part_size in (2, 17, 64):
        for most in (16, 17):
            folder = tmp_path / f"{part_size} {most}"
            settings = {"part_size": part_size, "most": most, "symmetric": symmetric}
            found = explore_all(tic_tac_toe, act, seat, folder, starts=((4, 0), (0,)), **settings)
            assert found.sampled and found.ends.games[1:].any(axis=1).all()
            assert all(len(np.load(path)) for path in folder.glob("*/part-*.npy"))


@pytest.mark.parametrize("most", [None, 16])
@pytest.mark.parametrize("starts", [((),), ((2,), (0, 0, 0))])
def test_a_game_that_lasts_too_long_is_refused(starts, most, tmp_path):
    act = make_act(pair("nim"), lowest)
    said = r"over after 3 moves, the actions \[(\d), (\d), (\d)\], and its max_plies is 3: set max"
    with pytest.raises(ValueError, match=said) as refused:
        explore_all(NIM._replace(max_plies=3), act, 0, tmp_path, starts=starts, most=most)
    line = tuple(map(int, re.search(said, str(refused.value)).groups()))
    position = exhaustive_play.position_after(nim_rules, line)
    assert not position.over and line[: len(starts[0])] == starts[0]
    assert len([*tmp_path.glob("*/")]) == 4 - len(starts[0])  # No later ply was written.


def test_a_game_of_exactly_max_plies_is_explored(tmp_path):
    found = explore_all(NIM, make_act(pair("nim"), lowest), 0, tmp_path)
    assert found.ply + 1 == NIM.max_plies


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"seat": 2}, "seat is 2: use 0 for the first player or 1"),
        ({"most": 15}, "most is 15: use 16 or more, one position for each sample, or None"),
        ({"part_size": 0}, "part_size is 0: use 1 or more"),
        ({"starts": ()}, r"starts is empty: give one line or more, such as \(\)"),
        ({"starts": ((), (2, 2, 0))}, r"nim is over after the actions \[2, 2, 0\]: leave this"),
        (
            {"starts": ((2, 2, 1),)},
            r"action 1 is illegal in nim after the actions \[2, 2\]: use",
        ),
        ({"starts": ((0,) * 8,)}, "a line of nim has 8 moves: use 7 at most"),
    ],
)
def test_settings_that_cannot_be_explored_are_refused(settings, said, tmp_path):
    settings = {"seat": 0, **settings}
    with pytest.raises(ValueError, match=said):
        explore_all(NIM, make_act(pair("nim"), lowest), folder=tmp_path / "lines", **settings)
    assert not (tmp_path / "lines").exists()


OTHER_SETTINGS = [
    {"starts": ((),)},
    {"seat": 1},
    {"most": 16},
    {"symmetric": True},
    {"compare": True},
    {"symmetric": True, "compare": True},
]


@pytest.mark.parametrize("other", OTHER_SETTINGS, ids=lambda other: "-".join(other))
def test_a_folder_with_other_settings_is_refused(other, tmp_path):
    """Otherwise it would continue with wrong positions, or skip the comparison of copies."""
    act, settings = make_act(pair("nim"), lowest), {"seat": 0, "starts": ((0,), (1,))}
    first = explore_all(NIM, act, folder=tmp_path, **settings)
    again = explore_all(NIM, act, folder=tmp_path, **settings, part_size=2)
    assert jax.tree.all(jax.tree.map(np.array_equal, first, again))
    with pytest.raises(
        ValueError, match="json has the settings of another exploration, .*: use another folder"
    ):
        explore_all(NIM, act, folder=tmp_path, **{**settings, **other})
