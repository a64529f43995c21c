"""Games that a player can be led into, counted by the rules alone: the oracle counts as many."""

import re
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import misere_pile
from azjax.games.solver import symmetry_classes
from azjax.proof import lines
from azjax.proof.verify import count_losing_lines
from bad_players import equivariant, highest, lowest, make_act, orbit, pair
from nim import NIM
from reference import exhaustive_play
from reference import nim as nim_rules


@pytest.fixture(scope="module")
def player(solution):
    """Plays anyhow, but always the same in a position: how, and the moves in all positions."""
    rows = {board.tobytes(): row for row, board in enumerate(np.asarray(solution.states.board))}
    scores = np.random.default_rng(0).random(solution.legal.shape)
    actions = np.where(solution.legal, scores, -1).argmax(axis=1)
    return lambda states: actions[[rows[board.tobytes()] for board in states.board]], actions


def walk(game, act, seat, folder, **settings):
    *_, last = lines.follow(game, act, seat, folder, **settings)
    return last


def count(solution, actions, seat, row=0):
    """Games won, drawn and lost by a player from a position on, one after the other."""
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
    found = walk(tic_tac_toe, act, seat, tmp_path / "lines", part_size=part_size)
    assert found.ends.games[0].tolist() == count(solution, actions, seat).tolist()
    assert found.ends.games[0, 2] == count_losing_lines(solution, actions[solution.decisions])[seat]
    assert not found.ends.games[1:].any() and not found.sampled
    share = found.ends.games[0, 2] / found.ends.games[0].sum()
    assert found.ends.share(2) == (share, share, share)


@pytest.fixture(scope="module")
def fair_player(tic_tac_toe, solution):
    """Likes images of each other as well: how it plays, and the moves in all positions."""
    classes = symmetry_classes(tic_tac_toe, solution)
    worth = np.random.default_rng(1).random(classes.max() + 1)[classes]
    actions = np.where(solution.legal, worth[solution.children], -1).argmax(axis=1)
    rows = {board.tobytes(): row for row, board in enumerate(np.asarray(solution.states.board))}
    return lambda states: actions[[rows[board.tobytes()] for board in states.board]], actions


@pytest.mark.parametrize("seat", [0, 1])
def test_images_of_each_other_are_followed_once(tic_tac_toe, solution, fair_player, seat, tmp_path):
    act, actions = fair_player
    every = walk(tic_tac_toe, act, seat, tmp_path / "every")
    found = walk(tic_tac_toe, act, seat, tmp_path / "one", symmetric=True, part_size=50)
    assert found.ends.games.tolist() == every.ends.games.tolist()
    assert found.ends.games[0].tolist() == count(solution, actions, seat).tolist()
    assert found.ends.decisions < every.ends.decisions / 2
    for game in [*lines.lost_games(tmp_path / "one")]:
        row = 0
        for action in game:
            assert solution.legal[row, action]
            row = solution.children[row, action]
        assert solution.over[row] and len(game) % 2 == seat


@pytest.mark.parametrize(("seat", "line", "distinct"), [(0, (0, 5), 8), (1, (1,), 4)])
def test_a_player_is_compared_with_itself_in_images(
    tic_tac_toe, solution, fair_player, seat, line, distinct, tmp_path
):
    """Each image of a position that it comes to is mistreated in turn."""
    act, actions = fair_player
    symmetric = walk(tic_tac_toe, act, seat, tmp_path / "symmetric", symmetric=True)
    fair = walk(tic_tac_toe, act, seat, tmp_path / "fair", symmetric=True, compare=True)
    assert jax.tree.all(jax.tree.map(np.array_equal, fair, symmetric)) and not fair.unlike
    assert seat or actions[0] == line[0]
    images = tic_tac_toe.symmetries.actions
    boards = lines.replay(tic_tac_toe, [tuple(image[[*line]]) for image in images]).board
    original = action_of(act, boards[0])
    for image in range(len(images)):
        here = (boards == boards[image]).all(axis=1)
        liked = images[here, original]
        assert here.sum() == 8 / distinct and action_of(act, boards[image]) in liked
        other = np.setdiff1d(np.flatnonzero(boards[image] == 0), liked)[0]

        def mistreat(states, board=boards[image], other=other):
            return np.where((states.board == board).all(axis=1), other, act(states))

        folder = tmp_path / str(image)
        found = walk(tic_tac_toe, mistreat, seat, folder, symmetric=True, compare=True)
        [(*before, last)] = lines.unlike_games(folder)
        [board] = lines.replay(tic_tac_toe, [tuple(before)]).board
        assert found.unlike and (boards == board).all(axis=1).any()
        assert last == action_of(mistreat, board)
        blind = walk(tic_tac_toe, mistreat, seat, tmp_path / f"blind {image}", symmetric=True)
        assert not blind.unlike and not [*lines.unlike_games(tmp_path / f"blind {image}")]


def action_of(act, board):
    return act(SimpleNamespace(board=board[None]))[0]


def test_a_lost_game_is_the_player_s_own(tic_tac_toe, solution, player, tmp_path):
    act, actions = player
    found = walk(tic_tac_toe, act, 0, tmp_path / "lines", part_size=50)
    games = list(lines.lost_games(tmp_path / "lines"))
    assert found.lost == games[0] and len({*games}) == len(games) == found.ends.moves[2]
    assert [len(game) for game in games] == sorted(len(game) for game in games)
    for game in games:
        row = 0
        for ply, action in enumerate(game):
            assert solution.legal[row, action] and (ply % 2 or action == actions[row])
            reward, row = solution.rewards[row, action], solution.children[row, action]
        assert solution.over[row] and reward == (1 if len(game) % 2 == 0 else -1)


@pytest.mark.parametrize("symmetric", [False, True])
def test_games_may_be_followed_from_other_positions(
    tic_tac_toe, solution, player, symmetric, tmp_path
):
    act, actions = player
    starts = [(4, 0), (8, 4, 0, 2)]
    found = walk(tic_tac_toe, act, 0, tmp_path / "lines", starts=starts, symmetric=symmetric)
    total, lost = np.zeros(3), list(lines.lost_games(tmp_path / "lines"))
    for start in starts:
        row = 0
        for action in start:
            row = solution.children[row, action]
        total += count(solution, actions, 0, row)
    if not symmetric:  # Which this player is not.
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
        found = walk(game, act, seat, tmp_path / str(seat))
        assert found.ends.games[0].tolist() == recurse(game.init(), seat).tolist()
        assert found.ends.games[0].sum() > 1


def test_a_sample_is_an_unbiased_estimate(tic_tac_toe, solution, player, tmp_path):
    act, actions = player
    truth, estimates = count(solution, actions, 1), []
    for most in (96, 128, 160):
        found = walk(tic_tac_toe, act, 1, tmp_path / str(most), most=most, part_size=64)
        assert found.sampled
        share, low, high = found.ends.share(2)
        assert low < share < high and share == pytest.approx(truth[2] / truth.sum(), abs=0.2)
        estimates.extend(found.ends.games[:1] + found.ends.games[1:])
    error = np.std(estimates, axis=0, ddof=1) / np.sqrt(len(estimates))
    assert (abs(np.mean(estimates, axis=0) - truth) < 4 * error).all()
    assert (error < truth / 5).all()


def test_an_interrupted_walk_goes_on(tic_tac_toe, player, tmp_path):
    act, _ = player
    settings = {"most": 128, "part_size": 64}
    whole = walk(tic_tac_toe, act, 1, tmp_path / "whole", **settings)
    calls = []

    def interrupted(states):
        calls.append(len(states.board))
        if len(calls) % 3 == 0:
            raise KeyboardInterrupt
        return act(states)

    for _ in range(100):
        try:
            found = walk(tic_tac_toe, interrupted, 1, tmp_path / "cut", **settings)
            break
        except KeyboardInterrupt:
            continue
    assert len(calls) > 9
    assert jax.tree.all(jax.tree.map(np.array_equal, found, whole))
    asked = len(calls)
    walk(tic_tac_toe, interrupted, 1, tmp_path / "cut", **settings)
    assert len(calls) == asked  # All is known.


CASES = [
    ("nim", lowest, ((),)),
    ("nim", highest, ((0,), (2, 1), (1, 0, 0))),  # Some meet: in different games, one position.
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
    """Whatever the size of the parts."""
    monkeypatch.setattr(lines, "_BATCH", 64)
    one = pair(name)
    expected = exhaustive_play.follow(
        one.rules, lambda position: policy(one.rules, position), seat, starts
    )
    act = make_act(one, policy)
    for part_size in (1, 2, 7, 2**18) if sum(expected.positions) < 99 else (50, 2**18):
        folder = tmp_path / str(part_size)
        steps = list(lines.follow(one.game, act, seat, folder, starts=starts, part_size=part_size))
        assert_equal(steps, folder, expected)
        plies = {step.ply: step for step in steps}
        assert [plies[ply].positions for ply in plies] == expected.positions
        assert [*plies] == [*range(len(expected.positions))]
        assert all(step.of == expected.positions[step.ply] for step in steps)
        followed = [(step.ply, step.positions) for step in steps]
        assert followed == sorted({*followed})
        starting = [step for step in steps if step.ply == 0]
        assert len(starting) == -(-len(starts) // part_size)  # Parts.
        lost = list(lines.lost_games(folder))
        assert len(lost) == len({(position(one, line[:-1]), line[-1]) for line in lost})


def position(one, line):
    return len(line), exhaustive_play.position_after(one.rules, line)


def assert_equal(steps, folder, expected):
    """What was found is what the reference finds, and each lost game is one of its."""
    found, lost = steps[-1], list(lines.lost_games(folder))
    assert found.ends.decisions == expected.decisions
    assert found.ends.moves.tolist() == expected.moves
    assert found.ends.games.tolist() == [expected.games] + lines.GROUPS * [[0, 0, 0]]
    assert len(lost) == len({*lost}) == expected.moves[2]
    assert {*lost} <= expected.lost and found.lost == next(iter(lost), None)
    assert not found.sampled and not found.unlike


@pytest.mark.parametrize(
    ("seat", "starts"),
    [(0, ((),)), (1, ((),)), (0, ((4, 0), (4, 1))), (1, ((2,), (7,))), (1, ((4, 5, 0),))],
)
def test_symmetric_copies_are_followed_as_the_reference_does(seat, starts, tmp_path):
    """Copies of the starts, which are no copies of each other, as well."""
    one = pair("tic_tac_toe")
    policy = make_act(one, equivariant)
    expected = exhaustive_play.follow(
        one.rules, lambda position: equivariant(one.rules, position), seat, starts, same=orbit
    )
    for part_size in (50, 2**18):
        folder, settings = tmp_path / str(part_size), {"symmetric": True, "compare": True}
        steps = list(
            lines.follow(
                one.game, policy, seat, folder, starts=starts, part_size=part_size, **settings
            )
        )
        assert_equal(steps, folder, expected)


def test_a_broken_symmetry_is_found_in_every_part(tic_tac_toe, tmp_path, monkeypatch):
    """The lowest action breaks it in many positions: in each, one line is yielded."""
    monkeypatch.setattr(lines, "_BATCH", 64)
    act = make_act(pair("tic_tac_toe"), lowest)
    yielded = []
    for part_size in (2, 2**18):
        folder = tmp_path / str(part_size)
        settings = {"symmetric": True, "compare": True, "part_size": part_size}
        found = walk(tic_tac_toe, act, 0, folder, starts=((4,),), **settings)
        yielded.append(list(lines.unlike_games(folder)))
        assert found.unlike and all(line[0] == 4 for line in yielded[-1])
    found = [len(np.load(part)["unlike"]) for part in sorted(tmp_path.glob("2/*/ends-*.npz"))]
    assert np.count_nonzero(found) > 4
    one = pair("tic_tac_toe")
    parted, whole = ({(orbit(position(one, g[:-1])[1]), len(g)) for g in x} for x in yielded)
    assert parted == whole and len(yielded[0]) == len(yielded[1]) == len(whole) > 7
    assert len({len(line) for line in yielded[0]}) > 1


def test_each_part_keeps_as_many_lost_games_as_it_may(tic_tac_toe, tmp_path, monkeypatch):
    """A game is lost after more ends that are not, and after the first part."""
    act = make_act(pair("tic_tac_toe"), highest)

    def lost_of_parts(folder):
        walk(tic_tac_toe, act, 1, folder, part_size=40, starts=((4,),))
        return [len(np.load(path)["lost"]) for path in sorted(folder.glob("*/ends-*.npz"))]

    every = lost_of_parts(tmp_path / "every")
    monkeypatch.setattr(lines, "_LOST", 2)
    capped = lost_of_parts(tmp_path / "capped")
    assert capped == [min(lost, 2) for lost in every] and max(every) > 2
    games = list(lines.lost_games(tmp_path / "capped"))
    assert len(games) == sum(capped) and {*games} <= {*lines.lost_games(tmp_path / "every")}


def test_a_ply_that_was_followed_takes_little_space(tic_tac_toe, tmp_path):
    """How a position was reached is a parent, of eight bytes, and an action, of four."""
    walk(tic_tac_toe, make_act(pair("tic_tac_toe"), lowest), 0, tmp_path, symmetric=True)
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
            found = walk(tic_tac_toe, act, seat, folder, starts=((4, 0), (0,)), **settings)
            assert found.sampled and found.ends.games[1:].any(axis=1).all()
            assert all(len(np.load(path)) for path in folder.glob("*/part-*.npy"))


BAD_MOVES = {"occupied": 4, "too high": 9, "too low": -1, "no number": np.nan, "half": 0.5}


@pytest.mark.parametrize("bad", BAD_MOVES)
def test_an_illegal_move_of_the_player_is_refused(tic_tac_toe, bad, tmp_path):
    act, moved = make_act(pair("tic_tac_toe"), highest), BAD_MOVES[bad]

    def cheat(states):
        return np.where((states.board != 0).sum(axis=1) == 3, moved, act(states) + 0.0)

    said = (
        rf"the player's action {moved:.1f} is illegal after the moves "
        r"\[4, 0, 8\]: \[1, 2, 3, 5, 6, 7\] are legal there"
    )
    with pytest.raises(ValueError, match=said):
        walk(tic_tac_toe, cheat, 1, tmp_path / "lines", starts=((4, 0, 8),))


@pytest.mark.parametrize(
    ("answer", "shape"), [(0, r"\(\)"), ([[0]], r"\(1, 1\)"), ([0, 0], r"\(2,\)")]
)
def test_a_player_answers_with_one_action_for_each_position(answer, shape, tmp_path):
    said = f"the player answers 1 positions with actions of shape {shape}: give one action for each"
    with pytest.raises(ValueError, match=said):
        walk(NIM, lambda states: np.array(answer), 0, tmp_path)


def test_an_illegal_move_in_a_symmetric_copy_is_refused(tic_tac_toe, tmp_path):
    """Where the player is asked about all copies, though it plays in one of them alone."""
    images, act = tic_tac_toe.symmetries.actions, make_act(pair("tic_tac_toe"), equivariant)
    line = (0, 4, 1)
    for image in images[1:]:
        copy = tuple(image[[*line]].tolist())
        [board] = lines.replay(tic_tac_toe, [copy]).board

        def cheat(states, board=board, taken=copy[1]):
            return np.where((states.board == board).all(axis=1), taken, act(states))

        said = rf"action {copy[1]} is illegal after the moves {re.escape(str([*copy]))}: "
        settings = {"symmetric": True, "compare": True, "starts": (line,)}
        with pytest.raises(ValueError, match=said):
            walk(tic_tac_toe, cheat, 1, tmp_path / str(copy), **settings)


@pytest.mark.parametrize("most", [None, 16])
@pytest.mark.parametrize("starts", [((),), ((2,), (0, 0, 0))])
def test_a_game_that_lasts_too_long_is_refused(starts, most, tmp_path):
    act = make_act(pair("nim"), lowest)
    said = r"nim is not over after 3 moves, \[(\d), (\d), (\d)\], and its max_plies is 3: set max"
    with pytest.raises(ValueError, match=said) as refused:
        walk(NIM._replace(max_plies=3), act, 0, tmp_path, starts=starts, most=most)
    line = tuple(map(int, re.search(said, str(refused.value)).groups()))
    position = exhaustive_play.position_after(nim_rules, line)
    assert not position.over and line[: len(starts[0])] == starts[0]
    assert len([*tmp_path.glob("*/")]) == 4 - len(starts[0])  # And no ply after it.


def test_a_game_that_may_last_exactly_as_long_is_followed(tmp_path):
    found = walk(NIM, make_act(pair("nim"), lowest), 0, tmp_path)
    assert found.ply + 1 == NIM.max_plies


def test_a_position_without_a_legal_move_that_is_not_over_is_refused(tmp_path):
    stuck = NIM._replace(legal_actions=lambda state: (jnp.arange(3) < state[0]) & (state[0] != 4))
    for seat in (0, 1):
        said = r"nim has no legal move after the moves \[2\], and is not over there: correct"
        with pytest.raises(ValueError, match=said):
            walk(stuck, make_act(pair("nim"), highest), seat, tmp_path / str(seat))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"seat": 2}, "seat is 2: use 0 for the first player or 1"),
        ({"most": 15}, "most is 15: use 16 or more, one position for each sample, or None"),
        ({"part_size": 0}, "part_size is 0: use 1 or more"),
        ({"starts": ()}, r"starts is empty: give one line or more, such as \(\)"),
        ({"starts": ((), (2, 2, 0))}, r"nim is over after the moves \[2, 2, 0\]: leave this"),
        ({"starts": ((2, 2, 1),)}, r"the action 1 is illegal in nim after the moves \[2, 2\]: use"),
        ({"starts": ((0,) * 8,)}, "a line of nim has 8 moves: use 7 at most"),
    ],
)
def test_settings_that_cannot_be_followed_are_refused(settings, said, tmp_path):
    settings = {"seat": 0, **settings}
    with pytest.raises(ValueError, match=said):
        walk(NIM, make_act(pair("nim"), lowest), folder=tmp_path / "lines", **settings)
    assert not (tmp_path / "lines").exists()


OTHER_WALKS = [
    {"starts": ((),)},
    {"seat": 1},
    {"most": 16},
    {"symmetric": True},
    {"symmetric": True, "compare": True},
]


@pytest.mark.parametrize("other", OTHER_WALKS, ids=lambda other: [*other][-1])
def test_a_folder_of_another_walk_is_refused(other, tmp_path):
    """It would go on with positions that are not its own, or prove what was not compared."""
    act, settings = make_act(pair("nim"), lowest), {"seat": 0, "starts": ((0,), (1,))}
    first = walk(NIM, act, folder=tmp_path, **settings)
    again = walk(NIM, act, folder=tmp_path, **settings, part_size=2)
    assert jax.tree.all(jax.tree.map(np.array_equal, first, again))
    with pytest.raises(ValueError, match="json is of another walk, .*: use another folder"):
        walk(NIM, act, folder=tmp_path, **{**settings, **other})
    (tmp_path / "settings.json").unlink()  # Walks of before had none.
    walk(NIM, act, folder=tmp_path, **settings)


@pytest.mark.parametrize("line", [(4, 4), (0, 3, 1, 4, 2, 5), (4, 9), (4, -1)])
def test_only_legal_moves_are_replayed(tic_tac_toe, line):
    said = rf"the action {line[-1]} is illegal in tic_tac_toe after the moves {[*line[:-1]]}: use"
    with pytest.raises(ValueError, match=re.escape(said)):
        lines.replay(tic_tac_toe, [(), (4,), line])
    with pytest.raises(ValueError, match="a line of tic_tac_toe has 10 moves: use 9 at most"):
        lines.replay(tic_tac_toe, [tuple(range(10))])
    assert lines.replay(tic_tac_toe, []).board.shape == (0, 9)


def test_lines_lead_to_the_positions_that_they_are_of(tmp_path):
    """Every position of every ply is traced to a line of its own, through parts of all sizes."""
    one, starts = pair("misere_pile"), ((0,), (1,))
    expected = exhaustive_play.follow(one.rules, lambda p: lowest(one.rules, p), 0, starts)
    walk(one.game, make_act(one, lowest), 0, tmp_path, starts=starts, part_size=2)
    for ply, count in enumerate(expected.positions):
        traced = lines.trace(tmp_path, ply, np.arange(count)[::-1])
        assert {line[:1] for line in traced} <= {*starts}
        assert len({position(one, line) for line in traced}) == count
        assert [lines.trace(tmp_path, ply, np.array([row]))[0] for row in range(count)] == [
            *reversed(traced)
        ]
