"""The picture of a whole game: its classes, the snapshots of a network, and their files."""

import base64
import json

import jax
import numpy as np
import pytest

from azjax.games.base import Display
from azjax.proof.verify import verify
from azjax.viz import animation
from azjax.viz import atlas as atlases
from azjax.viz.atlas import Snapshot
from azjax.viz.positions import true_values
from reference import Position, sign
from reference import tic_tac_toe as rules
from refusals import assert_refused

PLIES = [1, 3, 12, 38, 108, 174, 204, 153, 57, 15]


@pytest.fixture(scope="module")
def atlas(tic_tac_toe, solution):
    return atlases.make_atlas(tic_tac_toe, solution)


@pytest.fixture(scope="module")
def noise(solution):
    """Random logits and values; illegal actions have the highest logits."""
    rng = np.random.default_rng(3)
    legal = solution.legal[solution.decisions]
    logits = np.where(legal, rng.normal(size=legal.shape), 9.0).astype(np.float32)
    return logits, rng.uniform(-1, 1, len(legal)).astype(np.float32)


@pytest.fixture(scope="module")
def summarized(solution, atlas, noise):
    """The verdicts and the snapshots of noise and of perfect play."""

    @jax.jit
    def summarize(logits, values):
        verdict = verify(solution, lambda _: (logits, values))
        return verdict, atlases.make_snapshot(atlas, solution, verdict, logits, values)

    perfect = np.log(solution.optimal[solution.decisions] + np.float32(1e-9))
    truth = solution.values[solution.decisions].astype(np.float32)
    return jax.device_get([summarize(*noise), summarize(perfect, truth)])


@pytest.fixture(scope="module")
def snapshot(summarized):
    return summarized[0][1]


def test_the_classes_of_tic_tac_toe(solution, atlas):
    assert np.bincount(atlas.ply).tolist() == PLIES and sum(PLIES) == 765 == atlas.total
    assert atlas.members.sum() == len(solution.decisions) == 4520
    assert atlas.members.max() == 8
    rows, classes = atlas.representatives, atlas.classes
    np.testing.assert_array_equal(atlas.members == 0, solution.over[rows])
    np.testing.assert_array_equal(classes[rows], np.arange(765))
    for kind in (solution.values, solution.over, solution.player, solution.legal.sum(axis=1)):
        np.testing.assert_array_equal(kind[rows][classes], kind)
    ply = np.repeat(np.arange(10), np.diff(solution.layers))
    np.testing.assert_array_equal(atlas.ply[classes], ply)


def test_of_too_many_positions_it_is_a_sample(tic_tac_toe, solution, atlas, summarized, noise):
    """Equally many classes of each ply, or all; the sample equals the whole atlas there."""
    verdict, snapshot = summarized[0]
    for most in (1, 60, 300, 764):
        sample = atlases.make_atlas(tic_tac_toe, solution, most)
        assert sample.total == 765
        sizes, whole = np.bincount(sample.ply), np.bincount(atlas.ply)
        assert len(sample.ply) <= max(most, 10) and sizes.min() > 0
        assert set(sizes[sizes < whole]) == {sizes.max()}
        shown = [int(np.flatnonzero(atlas.representatives == r)[0]) for r in sample.representatives]
        assert shown == sorted(shown)
        np.testing.assert_array_equal(sample.members, atlas.members[shown])
    few = atlases.make_snapshot(sample, solution, verdict, *noise)
    for field, whole in zip(few, snapshot, strict=True):
        np.testing.assert_allclose(field, whole[shown], atol=1e-6)


def test_a_bad_network_has_all_its_blunders(solution, atlas, summarized, noise):
    (verdict, snapshot), _ = summarized
    assert snapshot.blunders.sum() == verdict.blunders > 500
    assert (snapshot.blunders <= atlas.members).all()
    logits, values = noise
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
        assert (loaded.shape, loaded.dtype) == ((3, *field.shape), field.dtype)
    np.testing.assert_array_equal(stacked.blunders[1], snapshot.blunders)
    np.testing.assert_array_equal(stacked.action[1], snapshot.action)
    np.testing.assert_allclose(stacked.policy[1], snapshot.policy, atol=0.5 / 255 + 1e-6)
    np.testing.assert_allclose(stacked.value[1], snapshot.value / 2, atol=0.005 + 1e-6)
    np.testing.assert_allclose(stacked.value_error[1], snapshot.value_error, atol=0.005 + 1e-6)


def test_damaged_snapshots_are_refused(tmp_path, snapshot):
    atlases.save_snapshot(tmp_path / "", 7, snapshot)
    path = tmp_path / "snapshots" / "000007.npz"
    content = path.read_bytes()
    entry = content.index(b"PK\x01\x02") + 8  # The flags of the first file in the directory.
    arrays = dict(np.load(path))
    objects = {name: np.array([{}], dtype=object) for name in Snapshot._fields}
    spoiled = [
        content[:900],
        content[:entry] + b"\x01" + content[entry + 1 :],
        objects,
        arrays | {"blunders": arrays["blunders"][1:]},
    ]

    def load(spoil):
        if isinstance(spoil, bytes):
            path.write_bytes(spoil)
        else:
            np.savez(path, **spoil)
        return atlases.load_snapshots(tmp_path)

    damaged = "000007.npz is damaged: delete it"
    assert_refused(*((lambda spoil=spoil: load(spoil), damaged) for spoil in spoiled))
    few = jax.tree.map(lambda leaf: leaf[:9], snapshot)
    atlases.save_snapshot(tmp_path, 7, few)
    atlases.save_snapshot(tmp_path, 8, snapshot)
    assert_refused(
        (lambda: atlases.load_snapshots(tmp_path), "of several games: keep those of one"),
        (lambda: atlases.load_snapshots(tmp_path / "snapshots"), "holds no snapshots: use the"),
    )


# Data for pages.


def decode(text, kind):
    return np.frombuffer(base64.b64decode(text), kind)


def test_data_for_the_page(tic_tac_toe, solution, atlas, snapshot):
    snapshots = jax.tree.map(lambda leaf: np.stack([leaf] * 60), snapshot)
    data = atlases.atlas_data(tic_tac_toe, solution, atlas, np.arange(60), snapshots)
    assert len(data["frames"]) <= 24
    assert len(json.dumps(data)) < 400_000
    rows = atlas.representatives
    cells = np.array([{".": 0, "X": 1, "O": -1}[mark] for mark in data["boards"]])
    np.testing.assert_array_equal(cells.reshape(765, 9), solution.states.board[rows])
    for name, kind, expected in [
        ("x2", "<u2", atlas.x * 2),
        ("y", "<u2", atlas.y),
        ("ply", "u1", atlas.ply),
        ("members", "<u2", atlas.members),
        ("player", "u1", solution.player[rows]),
        ("truth", "i1", true_values(solution)[rows]),
        ("moves", "u1", (solution.legal + 1 * solution.optimal)[rows].ravel()),
    ]:
        np.testing.assert_array_equal(decode(data[name], kind), expected, err_msg=name)
    last = data["frames"][-1]
    assert last["iteration"] == 59 and last["blunders"] == snapshot.blunders.sum()
    for name, kind, scale, field in [
        ("policy", "u1", 255, "policy"),
        ("value", "i1", 100, "value"),
        ("error", "u1", 100, "value_error"),
        ("action", "<i2", 1, "action"),
        ("wrong", "<u2", 1, "blunders"),
    ]:
        expected = scale * getattr(snapshot, field).ravel()
        np.testing.assert_allclose(decode(last[name], kind), expected, atol=0.51, err_msg=name)
    few = jax.tree.map(lambda leaf: leaf[None, :9], snapshot)
    assert_refused(
        (
            lambda: atlases.atlas_data(tic_tac_toe, solution, atlas, np.arange(1), few),
            "9 classes of positions, but the atlas has 765",
        )
    )


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


def test_finished_games_are_worth_their_outcome_to_the_player_to_move(solution):
    """The outcome is the reward of the last move, for the next player."""
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


# Animations.


def test_an_animation_has_every_class_in_every_iteration(atlas, summarized):
    both = [snapshot for _, snapshot in summarized]
    snapshots = jax.tree.map(lambda *leaves: np.stack(leaves), *both)
    picture = animation.draw_animation(atlas, np.array([3, 8]), snapshots)
    assert len(str(picture)) < 100_000
    assert str(animation.draw_animation(atlas, np.array([3, 8]), snapshots)) == str(picture)
    root = picture.element
    assert f"{both[0].blunders.sum():,} blunders after 3 iterations" in root.get("aria-label")
    frames = [g for g in root.iter() if g.get("class") == "az-animation-frame"]
    for frame, iteration, blunders in zip(frames, (3, 8), snapshots.blunders, strict=True):
        dots = {e.get("class"): e.get("d").count("M") for e in frame if e.get("d")}
        share = (blunders / np.maximum(atlas.members, 1))[atlas.members > 0]
        expected = {
            "ok": share == 0,
            "some": (share > 0) & (share < 0.5),
            "half": (share >= 0.5) & (share < 1),
            "all": share == 1,
        }
        for name, where in expected.items():
            assert dots.get(f"az-animation-{name}", 0) == where.sum()
        words = f"{blunders.sum():,} blunders" if blunders.any() else "no blunder"
        assert [e.text for e in frame if e.text] == [f"iteration {iteration}", words]
    delays = [float(g.get("style").split(":")[1].rstrip("s")) for g in frames]
    assert delays == [-5, -4]  # The last frame stays for four.
