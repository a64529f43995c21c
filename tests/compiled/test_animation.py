"""The picture of a whole game: its classes, the saved blunders of a network, and the animation."""

import numpy as np
import pytest

from azjax.viz import animation
from refusals import assert_refused


@pytest.fixture(scope="module")
def atlas(tic_tac_toe, solution):
    return animation.make_atlas(tic_tac_toe, solution)


def test_the_classes_of_tic_tac_toe(solution, atlas):
    assert np.bincount(atlas.ply).tolist() == [1, 3, 12, 38, 108, 174, 204, 153, 57, 15]
    assert len(atlas.ply) == atlas.total == 765
    assert atlas.members.sum() == len(solution.decisions) == 4520 and atlas.members.max() == 8
    ply = np.repeat(np.arange(10), np.diff(solution.layers))[solution.decisions]
    np.testing.assert_array_equal(atlas.ply[atlas.classes], ply)
    np.testing.assert_array_equal(np.bincount(atlas.classes, minlength=765), atlas.members)
    order = np.full(765, 2.0)  # Finished games come last.
    order[atlas.classes] = -solution.values[solution.decisions]
    assert (np.diff(order)[np.diff(atlas.ply) == 0] >= 0).all()


def test_of_too_many_positions_it_is_a_sample(tic_tac_toe, solution, atlas):
    """Equally many classes of each ply, or all."""
    for most in (1, 60, 300, 764):
        sample = animation.make_atlas(tic_tac_toe, solution, most)
        assert sample.total == 765
        sizes, whole = np.bincount(sample.ply), np.bincount(atlas.ply)
        assert len(sample.ply) <= max(most, 10) and sizes.min() > 0
        assert set(sizes[sizes < whole]) == {sizes.max()}
        counts = np.bincount(sample.classes, minlength=len(sample.ply))[: len(sample.ply)]
        np.testing.assert_array_equal(counts, sample.members)
        assert sample.members.max() <= 8  # The symmetric copies of one position.
    every = np.ones((1, len(solution.decisions)), bool)
    label = animation.draw_animation(sample, np.array([0]), every).element.get("aria-label")
    assert f": {sample.members.sum():,} blunders after 0 iterations" in label


def test_saved_blunders_are_read_back_and_damaged_ones_refused(tmp_path):
    rows = np.random.default_rng(0).random((40, 21)) < 0.3
    assert_refused(
        (lambda: animation.load_blunders(tmp_path, 21, 12), "holds no snapshots: use the")
    )
    for iteration, row in enumerate(rows):
        animation.save_blunders(tmp_path, iteration, row)
    (tmp_path / "snapshots" / "².bits").write_text("Not of an iteration.")
    iterations, loaded = animation.load_blunders(tmp_path, 21, 12)
    assert iterations[0] == 0 and iterations[-1] == 39 and 8 < len(iterations) <= 12
    assert (np.diff(iterations, 2) >= 0).all()  # Denser at the start.
    np.testing.assert_array_equal(loaded, rows[iterations])
    np.testing.assert_array_equal(animation.load_blunders(tmp_path, 21, 40)[1], rows)
    assert_refused(
        (lambda: animation.load_blunders(tmp_path, 33, 12), "is damaged, or of another game")
    )


def test_an_animation_has_every_class_in_every_iteration(solution, atlas):
    is_blunder = np.random.default_rng(1).random((2, len(solution.decisions))) < 0.4
    is_blunder[1] = False
    picture = animation.draw_animation(atlas, np.array([3, 8]), is_blunder)
    assert len(str(picture)) < 100_000
    root = picture.element
    assert f"{is_blunder[0].sum():,} blunders after 3 iterations" in root.get("aria-label")
    frames = [g for g in root.iter() if g.get("class") == "az-animation-frame"]
    for frame, iteration, row in zip(frames, (3, 8), is_blunder, strict=True):
        dots = {e.get("class"): e.get("d").count("M") for e in frame if e.get("d")}
        share = np.array([row[atlas.classes == i].mean() for i in np.flatnonzero(atlas.members)])
        expected = {
            "ok": share == 0,
            "some": (share > 0) & (share < 0.5),
            "half": (share >= 0.5) & (share < 1),
            "all": share == 1,
        }
        for name, where in expected.items():
            assert dots.get(f"az-animation-{name}", 0) == where.sum()
        words = f"{row.sum():,} blunders" if row.any() else "no blunder"
        assert [e.text for e in frame if e.text] == [f"iteration {iteration}", words]
    delays = [float(g.get("style").split(":")[1].rstrip("s")) for g in frames]
    assert delays == [-5, -4]  # The last frame stays for four.
