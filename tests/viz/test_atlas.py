"""The atlas of a game: classes of positions, snapshots of networks, and their files."""

import base64
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games import solver
from azjax.games.display import Display
from azjax.proof.verify import verify
from azjax.viz import atlas as atlases
from azjax.viz.atlas import Snapshot, choose_frames
from azjax.viz.positions import true_values
from misere_pile import make as make_pile
from reference import Position, misere_pile, sign, tic_tac_toe

PLIES = [1, 3, 12, 38, 108, 174, 204, 153, 57, 15]


@pytest.fixture(scope="module")
def atlas(tic_tac_toe, solution):
    return atlases.make_atlas(tic_tac_toe, solution)


@pytest.fixture(scope="module")
def summarize(solution, atlas):
    """Makes the verdict and the snapshot of `logits [D, A]` and `values [D]`."""

    @jax.jit
    def summarize(logits, values):
        verdict = verify(solution, lambda _: (logits, values))
        return verdict, atlases.make_snapshot(atlas, solution, verdict, logits, values)

    return summarize


@pytest.fixture(scope="module")
def truth(solution):
    """Logits and values of perfect play."""
    rows = solution.decisions
    return jnp.log(solution.optimal[rows] + 1e-9), jnp.asarray(solution.values[rows])


@pytest.fixture(scope="module")
def noise(solution):
    """Random logits and values; illegal actions have the highest logits."""
    keys = jax.random.split(jax.random.key(3))
    legal = solution.legal[solution.decisions]
    logits = jax.random.normal(keys[0], legal.shape)
    return jnp.where(legal, logits, 9.0), jax.random.uniform(keys[1], legal.shape[:1]) * 2 - 1


@pytest.fixture(scope="module")
def snapshot(summarize, noise):
    return jax.device_get(summarize(*noise)[1])


# Atlases.


def test_the_classes_of_tic_tac_toe(solution, atlas):
    assert len(atlas.members) == 765
    assert np.bincount(atlas.ply).tolist() == PLIES
    assert atlas.members.sum() == len(solution.decisions) == 4520
    assert atlas.members.max() == 8
    assert (atlas.members == 0).sum() == 765 - 627
    np.testing.assert_array_equal(atlas.members == 0, solution.over[atlas.representatives])


def test_a_class_holds_its_representative_and_states_of_one_kind(solution, atlas):
    rows, classes = atlas.representatives, atlas.classes
    np.testing.assert_array_equal(classes[rows], np.arange(765))
    for kind in (solution.values, solution.over, solution.player, solution.legal.sum(axis=1)):
        np.testing.assert_array_equal(kind[rows][classes], kind)
    ply = np.repeat(np.arange(10), np.diff(solution.layers))
    np.testing.assert_array_equal(atlas.ply[classes], ply)


def test_every_dot_has_a_place_of_its_own(solution, atlas):
    assert len(set(zip(atlas.x.tolist(), atlas.y.tolist(), strict=True))) == 765
    assert atlas.x.min() >= 0 and atlas.x.max() <= 33
    tops = [atlas.y[atlas.ply == ply].min() for ply in range(10)]
    ends = [atlas.y[atlas.ply == ply].max() for ply in range(10)]
    assert all(end + 1 < top for end, top in zip(ends[:-1], tops[1:], strict=True))
    for ply in range(10):  # Won, drawn, lost, finished, from left to right.
        rows = atlas.representatives[atlas.ply == ply]
        kind = solution.values[rows] - 9 * solution.over[rows]
        assert (np.diff(kind) <= 0).all()
        assert (np.diff(atlas.x[atlas.ply == ply]) >= 0).all()


@pytest.mark.parametrize("most", [1, 60, 300, 764])
def test_of_too_many_positions_it_is_a_sample(tic_tac_toe, solution, atlas, summarize, noise, most):
    """Equally many classes of each ply, or all; the sample equals the whole atlas there."""
    sample = atlases.make_atlas(tic_tac_toe, solution, most)
    assert sample.total == atlas.total == len(atlas.ply) == 765
    sizes, whole = np.bincount(sample.ply), np.bincount(atlas.ply)
    assert len(sample.ply) <= max(most, 10) and sizes.min() > 0
    assert set(sizes[sizes < whole]) == {sizes.max()}
    shown = [int(np.flatnonzero(atlas.representatives == r)[0]) for r in sample.representatives]
    assert shown == sorted(shown)
    verdict, whole_snapshot = summarize(*noise)
    snapshot = atlases.make_snapshot(sample, solution, verdict, *noise)
    for mine, theirs in zip(snapshot, whole_snapshot, strict=True):
        np.testing.assert_allclose(mine, np.asarray(theirs)[shown], atol=1e-6)


def test_another_game_has_an_atlas():
    game = make_pile()
    solution = solver.solve(game)
    atlas = atlases.make_atlas(game, solution)
    assert atlas.members.sum() == len(solution.decisions)

    @jax.jit
    def summarize(logits, values):
        verdict = verify(solution, lambda _: (logits, values))
        return atlases.make_snapshot(atlas, solution, verdict, logits, values)

    rows = solution.decisions
    snapshot = summarize(jnp.log(solution.optimal[rows] + 1e-9), solution.values[rows])
    assert not snapshot.blunders.any() and not snapshot.value_error.any()
    data = atlases.atlas_data(
        game, solution, atlas, np.array([0]), jax.tree.map(lambda leaf: leaf[None], snapshot)
    )
    assert len(data["frames"]) == 1


# Snapshots.


def test_perfect_play_has_no_blunders(solution, atlas, summarize, truth):
    verdict, snapshot = jax.device_get(summarize(*truth))
    assert verdict.blunders == 0
    assert not snapshot.blunders.any()
    np.testing.assert_allclose(snapshot.value_error, 0, atol=1e-6)
    np.testing.assert_array_equal(snapshot.value, solution.values[atlas.representatives])
    optimal = solution.optimal[atlas.representatives]
    shares = optimal / np.maximum(optimal.sum(axis=1, keepdims=True), 1)
    np.testing.assert_allclose(snapshot.policy, shares, atol=1e-6)


def test_a_bad_network_has_all_its_blunders(solution, atlas, summarize, noise):
    verdict, snapshot = jax.device_get(summarize(*noise))
    assert snapshot.blunders.sum() == verdict.blunders > 500
    assert (snapshot.blunders <= atlas.members).all()
    logits, values = map(np.asarray, noise)
    for index in (0, 5, 100, 400, 700):  # One class at a time, slowly.
        members = [d for d, s in enumerate(solution.decisions) if atlas.classes[s] == index]
        assert len(members) == atlas.members[index]
        assert snapshot.blunders[index] == sum(verdict.is_blunder[members])
        if not members:
            assert snapshot.action[index] == -1 and not snapshot.policy[index].any()
            continue
        errors = [abs(values[d] - solution.values[solution.decisions[d]]) for d in members]
        np.testing.assert_allclose(snapshot.value_error[index], np.mean(errors), rtol=1e-5)
        row = members[0]
        assert solution.decisions[row] == atlas.representatives[index]
        assert snapshot.value[index] == values[row]
        assert snapshot.action[index] == verdict.actions[row]
        weights = np.exp(logits[row]) * solution.legal[atlas.representatives[index]]
        np.testing.assert_allclose(snapshot.policy[index], weights / weights.sum(), rtol=1e-5)


# Files.


def test_a_saved_snapshot_is_read_back(tmp_path, snapshot):
    for iteration in (12, 0, 3):
        atlases.save_snapshot(tmp_path, iteration, snapshot._replace(value=snapshot.value / 2))
    (tmp_path / "snapshots" / "².npz").write_text("Not of an iteration.")
    iterations, stacked = atlases.load_snapshots(tmp_path)
    assert iterations.tolist() == [0, 3, 12]
    for name, loaded in stacked._asdict().items():
        field = getattr(snapshot, name)
        assert loaded.shape == (3, *field.shape)
        assert loaded.dtype == field.dtype
    np.testing.assert_array_equal(stacked.blunders[1], snapshot.blunders)
    np.testing.assert_array_equal(stacked.action[1], snapshot.action)
    np.testing.assert_allclose(stacked.policy[1], snapshot.policy, atol=0.5 / 255 + 1e-6)
    np.testing.assert_allclose(stacked.value[1], snapshot.value / 2, atol=0.005 + 1e-6)
    np.testing.assert_allclose(stacked.value_error[1], snapshot.value_error, atol=0.005 + 1e-6)


def test_the_same_snapshot_gives_the_same_bytes(tmp_path, snapshot):
    path = tmp_path / "snapshots" / "000007.npz"
    atlases.save_snapshot(tmp_path, 7, snapshot)
    first = path.read_bytes()
    atlases.save_snapshot(tmp_path, 7, snapshot)
    assert path.read_bytes() == first
    assert len(first) < 8000
    assert list(path.parent.iterdir()) == [path]


def test_numbers_that_are_not_finite_are_saved_as_0(tmp_path, snapshot):
    wild = snapshot._replace(value=np.full(765, np.nan), value_error=np.full(765, np.inf))
    atlases.save_snapshot(tmp_path, 1, wild)
    _, stacked = atlases.load_snapshots(tmp_path)
    assert not stacked.value.any() and not stacked.value_error.any()


def test_rejects_a_folder_without_snapshots(tmp_path):
    with pytest.raises(ValueError, match="holds no snapshots: use the directory of a training run"):
        atlases.load_snapshots(tmp_path)


SPOILS = ["cut short", "empty", "object arrays", "flipped", "encrypted", "text", "two sizes"]


@pytest.mark.parametrize("spoil", SPOILS)
def test_rejects_a_damaged_snapshot(spoil, tmp_path, snapshot):
    atlases.save_snapshot(tmp_path, 7, snapshot)
    path = tmp_path / "snapshots" / "000007.npz"
    content = path.read_bytes()
    entry = content.index(b"PK\x01\x02") + 8  # The flags of the first file in the directory.
    arrays = dict(np.load(path))
    match spoil:
        case "object arrays":
            np.savez(path, **{name: np.array([{}], dtype=object) for name in Snapshot._fields})
        case "text":
            np.savez(path, **{name: field.astype(str) for name, field in arrays.items()})
        case "two sizes":
            np.savez(path, **arrays | {"blunders": arrays["blunders"][1:]})
        case "cut short":
            path.write_bytes(content[:900])
        case "empty":
            path.write_bytes(b"")
        case "flipped":
            path.write_bytes(content[:700] + bytes(50) + content[750:])
        case "encrypted":
            path.write_bytes(content[:entry] + b"\x01" + content[entry + 1 :])
    with pytest.raises(ValueError, match="000007.npz is damaged: delete it"):
        atlases.load_snapshots(tmp_path)


def test_rejects_snapshots_of_two_games(tmp_path, snapshot):
    atlases.save_snapshot(tmp_path, 1, snapshot)
    atlases.save_snapshot(tmp_path, 2, jax.tree.map(lambda leaf: leaf[:9], snapshot))
    with pytest.raises(ValueError, match="of several games"):
        atlases.load_snapshots(tmp_path)


# Frames.


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 16, 500])
def test_frames_are_few_with_both_ends_and_denser_at_the_beginning(size):
    chosen = choose_frames(np.arange(size) * 3, 8)
    assert len(chosen) <= 8 and chosen[0] == 0 and chosen[-1] == size - 1
    assert (np.diff(chosen) > 0).all()
    if size <= 8:
        assert len(chosen) == size
    elif size > 9:
        assert len(chosen) >= 7 and chosen[1] == 1
        assert np.diff(chosen)[0] < np.diff(chosen)[-1]


def decode(text, kind):
    return np.frombuffer(base64.b64decode(text), kind)


def test_data_for_the_page(tic_tac_toe, solution, atlas, snapshot):
    snapshots = jax.tree.map(lambda leaf: np.stack([leaf] * 60), snapshot)
    data = atlases.atlas_data(tic_tac_toe, solution, atlas, np.arange(60), snapshots)
    assert len(data["frames"]) <= 24
    assert len(json.dumps(data)) < 400_000
    assert len(data["boards"]) == 765 * 9
    rows = atlas.representatives
    cells = np.array([{".": 0, "X": 1, "O": -1}[mark] for mark in data["boards"]])
    np.testing.assert_array_equal(cells.reshape(765, 9), solution.states.board[rows])
    np.testing.assert_array_equal(decode(data["x2"], "<u2"), atlas.x * 2)
    np.testing.assert_array_equal(decode(data["y"], "<u2"), atlas.y)
    np.testing.assert_array_equal(decode(data["members"], "<u2"), atlas.members)
    moves = decode(data["moves"], "u1").reshape(765, 9)
    np.testing.assert_array_equal(moves > 0, solution.legal[rows])
    np.testing.assert_array_equal(moves == 2, solution.optimal[rows])
    last = data["frames"][-1]
    assert last["iteration"] == 59 and last["blunders"] == snapshot.blunders.sum()
    np.testing.assert_array_equal(decode(last["wrong"], "<u2"), snapshot.blunders)
    np.testing.assert_array_equal(decode(last["action"], "<i2"), snapshot.action)


def test_a_game_without_rules_in_the_page_has_its_own_pictures(
    tic_tac_toe, solution, atlas, snapshot
):
    text = tic_tac_toe.display.render
    name = lambda state: [f"{state.player}{cell}" for cell in "ABCDEFGHI"]  # noqa: E731
    other = tic_tac_toe._replace(display=Display(text, name_actions=name))
    snapshots = jax.tree.map(lambda leaf: leaf[None], snapshot)
    data = atlases.atlas_data(other, solution, atlas, np.array([0]), snapshots)
    lines, counts = data["pictures"]["parts"], decode(data["pictures"]["counts"], "<u2")
    first = decode(data["pictures"]["indices"], "<u4")[: counts[0]]
    assert "\n".join(lines[i] for i in first) == text(tic_tac_toe.init())
    assert "boards" not in data  # The page's own would have other names.
    assert data["names"] == [[f"{player}{cell}" for cell in "ABCDEFGHI"] for player in (0, 1)]
    np.testing.assert_array_equal(decode(data["named"], "<u2"), atlas.ply % 2)
    np.testing.assert_array_equal(decode(data["rows"], "<u4"), atlas.representatives)
    np.testing.assert_array_equal(decode(data["classes"], "<u4"), atlas.classes)


def test_finished_games_have_their_outcome(tic_tac_toe, solution, atlas, snapshot):
    snapshots = jax.tree.map(lambda leaf: leaf[None], snapshot)
    data = atlases.atlas_data(tic_tac_toe, solution, atlas, np.array([0]), snapshots)
    truth = decode(data["truth"], "i1")
    over = atlas.members == 0
    full_and_drawn = over & (truth == 0)
    assert set(truth[over].tolist()) == {
        0,
        -1,
    }  # Lost for the player to move, or drawn.
    assert full_and_drawn.sum() == 3  # The three drawn boards up to symmetry.
    np.testing.assert_array_equal(truth[~over], solution.values[atlas.representatives[~over]])


def test_rejects_snapshots_of_another_game(tic_tac_toe, solution, atlas, snapshot):
    few = jax.tree.map(lambda leaf: leaf[None, :9], snapshot)
    with pytest.raises(ValueError, match="9 classes of positions, but the atlas has 765"):
        atlases.atlas_data(tic_tac_toe, solution, atlas, np.array([0]), few)


# Exact values of pages.


@pytest.mark.parametrize("rules", [tic_tac_toe, misere_pile], ids=["tic_tac_toe", "misere_pile"])
def test_finished_games_are_worth_their_outcome_to_the_player_to_move(rules, solution):
    """The outcome is the reward of the last move, for the next player."""
    solution = solution if rules is tic_tac_toe else solver.solve(make_pile())
    leaves = (np.asarray(leaf).tolist() for leaf in solution.states)
    listed = [Position(tuple(b), p, o) for b, p, o in zip(*leaves, strict=True)]
    truth, places = true_values(solution), {position: row for row, position in enumerate(listed)}
    np.testing.assert_array_equal(truth[~solution.over], solution.values[~solution.over])
    seen = set()
    for position in listed:
        for action in rules.legal(position):
            after, reward = rules.play(position, action)
            if after.over:
                assert truth[places[after]] == sign(position, after) * reward
                seen.add((truth[places[after]], after.player))
    assert len(seen) >= 2
