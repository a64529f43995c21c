"""Run directories: contents are restored bit for bit, and damage is detected."""

import concurrent.futures
import dataclasses
import functools
import gc
import itertools
import json
import os
import pickle
import resource
import shutil
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import azjax
from azjax import runs, training
from azjax._files import replacing
from azjax.runs import checkpoint, directory, presets, storage
from azjax.runs.checkpoint import CheckpointError
from azjax.runs.config import make_parts
from azjax.training import memory
from azjax.training.learner import make_learner

CONFIG = presets.smoke(presets.get("default"))


@pytest.fixture(scope="module")
def state():
    return training.make_state(
        make_parts(CONFIG), jax.random.key(CONFIG.seed), training.make_mesh()
    )


@pytest.fixture(scope="module")
def saved(state, tmp_path_factory):
    """A run with checkpoints 1, 2 and 3; tests work on copies of it."""
    run_dir = tmp_path_factory.mktemp("saved") / "run"
    make_run(run_dir, state, [0.0, 0.0, 0.0])
    return run_dir


@pytest.fixture
def run(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "run")


def at(state, iteration):
    return dataclasses.replace(state, iteration=jnp.full_like(state.iteration, iteration))


def make_run(run_dir, state, scores):
    runs.create_run(run_dir, CONFIG)
    for iteration, score in enumerate(scores, start=1):
        checkpoint.save(run_dir, at(state, iteration), score)


def restore(run_dir, **options):
    return checkpoint.restore(run_dir, make_parts(CONFIG), **options)


def steps(run_dir):
    return sorted(int(path.name) for path in (run_dir / "checkpoints").iterdir())


def arrays(state):
    leaves = jax.tree_util.tree_leaves_with_path(state)
    return {jax.tree_util.keystr(path): np.asarray(storage.plain(leaf)) for path, leaf in leaves}


def assert_same(left, right):
    dtypes = [[leaf.dtype for leaf in jax.tree.leaves(state)] for state in (left, right)]
    assert dtypes[0] == dtypes[1]
    left, right = arrays(left), arrays(right)
    assert left.keys() == right.keys()
    for name in left:
        assert left[name].dtype == right[name].dtype, name
        assert left[name].tobytes() == right[name].tobytes(), name


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


# Saving and restoring.


@pytest.mark.parametrize(
    ("devices_before", "devices_after"),
    [
        (1, 2),
        (2, 1),
        pytest.param(1, 1, marks=pytest.mark.slow),
        pytest.param(2, 8, marks=pytest.mark.slow),
    ],
)
def test_restores_what_was_saved(devices_before, devices_after, tmp_path):
    meshes = [training.make_mesh(jax.devices()[:n]) for n in (devices_before, devices_after)]
    before = training.make_state(make_parts(CONFIG), jax.random.key(CONFIG.seed), meshes[0])
    make_run(tmp_path / "run", before, [0.0])
    after, skipped = restore(tmp_path / "run", mesh=meshes[1])
    assert skipped == []
    assert_same(after, at(before, 1))
    expected = training.abstract_state(make_parts(CONFIG), meshes[1])
    for leaf, abstract in zip(jax.tree.leaves(after), jax.tree.leaves(expected), strict=True):
        assert leaf.sharding == abstract.sharding


def test_types_unknown_to_numpy_are_restored(tmp_path):
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    half = jnp.asarray([1.5, -2.0], jnp.bfloat16)
    tree = {"a/b": half, "rest": (half[0], jnp.int32(3), jnp.zeros((0, 2), bool))}
    storage.write_arrays(tmp_path / "tree", tree)
    target = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), tree)
    found = storage.read_arrays([tmp_path / "tree" / "arrays.npz"], target)
    assert jax.tree.map(lambda x: x.dtype, found) == jax.tree.map(lambda x: x.dtype, tree)
    jax.tree.map(np.testing.assert_array_equal, found, tree)


@pytest.mark.parametrize("devices", [1, 2, 8])
def test_rows_in_several_files_are_one_array(devices, tmp_path):
    """Also if the devices of two processes alternate."""
    keys = jax.random.split(jax.random.key(1), 8)
    tree = {"a": jnp.asarray(np.random.default_rng(0).normal(size=(8, 3)), "float32"), "k": keys}
    for file, first in (("arrays.npz", 0), ("arrays-1.npz", 2)):
        stored = {}
        for name, array in arrays(tree).items():
            for start in (first, first + 4):
                stored[f"{name}[{start}:{start + 2}]"] = array[start : start + 2]
        np.savez(tmp_path / file, **stored)
    mesh = training.make_mesh(jax.devices()[:devices])
    rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(training.AXIS))
    target = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=rows), tree)
    found = storage.read_arrays(tmp_path.glob("*.npz"), target)
    assert_same(found, tree)
    assert found["a"].sharding == rows
    (tmp_path / "arrays-1.npz").unlink()
    with pytest.raises(ValueError):
        storage.read_arrays(tmp_path.glob("*.npz"), target)


def test_a_name_that_is_not_utf_8_works(state, tmp_path):
    run_dir = tmp_path / os.fsdecode(b"l\xe4ufe")
    make_run(run_dir, state, [0.0])
    assert_same(restore(run_dir).state, at(state, 1))


def test_a_full_disk_is_reported_once(state, tmp_path, monkeypatch):
    gc.collect()  # Ignores leftovers of other tests.
    said = []
    monkeypatch.setattr(sys, "unraisablehook", lambda problem: said.append(problem.exc_value))
    make_run(tmp_path / "run", state, [0.0])
    before = files(tmp_path / "run")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
    try:
        with pytest.raises(CheckpointError, match="2 could not be written .*: make room"):
            checkpoint.save(tmp_path / "run", at(state, 2), 0.0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    gc.collect()
    assert said == []
    kept = files(tmp_path / "run")
    assert {name: kept[name] for name in before} == before


@pytest.mark.slow
def test_resumes_from_a_checkpoint_without_a_difference(state, tmp_path):
    iterate = training.make_iteration(make_parts(CONFIG), training.make_mesh())
    first, _ = iterate(jax.tree.map(jnp.copy, state))
    runs.create_run(tmp_path / "run", CONFIG)
    checkpoint.save(tmp_path / "run", first, 0.0)
    restored = restore(tmp_path / "run").state
    assert_same(iterate(restored)[0], iterate(first)[0])


IMPLS = ("threefry2x32", "rbg", "unsafe_rbg")


@pytest.mark.parametrize(("before", "after"), [*itertools.permutations(IMPLS, 2)])
def test_a_run_keeps_its_key_implementation(before, after, state, tmp_path):
    with jax.default_prng_impl(before):
        saved = dataclasses.replace(state, key=jax.random.key(7))
        make_run(tmp_path / "run", saved, [0.0])
    with jax.default_prng_impl(after):
        restored, skipped = restore(tmp_path / "run", set_aside=True)
        assert azjax.load(tmp_path / "run").iteration == 1
    assert skipped == []
    assert_same(restored, at(saved, 1))
    assert jax.random.key_impl(restored.key) == before


@pytest.mark.parametrize(
    ("impl", "default", "expected"),
    [
        ("threefry2x32", "threefry2x32", "threefry2x32"),
        ("threefry2x32", "rbg", "threefry2x32"),
        ("rbg", "threefry2x32", "rbg"),
        ("unsafe_rbg", "unsafe_rbg", "unsafe_rbg"),
    ],
)
def test_a_checkpoint_without_key_implementations_is_read(impl, default, expected, state, tmp_path):
    saved = dataclasses.replace(state, key=jax.random.key(7, impl=impl))
    make_run(tmp_path / "run", saved, [0.0])
    folder = tmp_path / "run" / "checkpoints" / "1"
    content = read_summary(folder)
    size = len(jax.random.key_data(saved.key))
    assert content["arrays"]["state"][".key"] == f"{impl}[]"
    content["arrays"]["state"][".key"] = f"uint32[{size}]"  # As in older versions.
    write_summary(folder, content | {"sha256": storage._digest(without_digest(content))})
    with jax.default_prng_impl(default):
        restored = restore(tmp_path / "run").state
    assert jax.random.key_impl(restored.key) == expected
    assert_same(restored, at(saved, 1))


@pytest.mark.parametrize("impl", IMPLS[:2])
def test_an_optimizer_may_hold_keys(impl, state, tmp_path):
    noise = optax.add_noise(0.1, 0.5, key=jax.random.key(3, impl=impl))
    parts = make_parts(CONFIG)
    parts = parts._replace(
        learner=make_learner(parts.network, optax.chain(noise, optax.sgd(0.1)), steps=1)
    )
    saved = at(dataclasses.replace(state, learner=parts.learner.init(state.learner.variables)), 1)
    runs.create_run(tmp_path / "run", CONFIG)
    checkpoint.save(tmp_path / "run", saved, 0.0)
    with jax.default_prng_impl("unsafe_rbg"):
        restored = checkpoint.restore(tmp_path / "run", parts).state
    assert impl in {
        storage.key_impl(x) for x in jax.tree.leaves(restored.learner) if storage.is_key(x)
    }
    assert_same(restored, saved)
    needs = memory.estimate(parts, training.make_mesh())
    assert needs.optimizer > 0


def test_a_run_without_checkpoints_has_no_state(tmp_path):
    runs.create_run(tmp_path / "run", CONFIG)
    assert restore(tmp_path / "run") == (None, [])


def test_saving_twice_keeps_the_first(run, state):
    before = files(run)
    checkpoint.save(run, at(state, 3), 5.0)
    assert files(run) == before


@pytest.mark.parametrize("part", ["variables", "average", "opt_state"])
def test_refuses_to_save_parameters_that_are_not_finite(part, run, state):
    poison = jax.tree.map(
        lambda leaf: leaf * jnp.nan if leaf.dtype == jnp.float32 else leaf,
        getattr(state.learner, part),
    )
    bad = dataclasses.replace(at(state, 4), learner=state.learner._replace(**{part: poison}))
    with pytest.raises(CheckpointError, match="iteration 4"):
        checkpoint.save(run, bad, 0.0)
    assert steps(run) == [1, 2, 3]
    assert_same(restore(run).state, at(state, 3))


# Which checkpoints are kept.


@pytest.mark.parametrize(
    ("scores", "kept"),
    [
        ([0, 0], [1, 2]),
        ([5, 4, 3, 2, 1], [1, 3, 4, 5]),
        ([1, 9, 3, 2, 1, 0], [2, 4, 5, 6]),
        ([1, 2, 3, 4, 5], [3, 4, 5]),
        ([7, 7, 1, 1, 1], [2, 3, 4, 5]),  # Of equal scores, the newest is the best.
    ],
)
def test_keeps_the_newest_three_and_the_best(scores, kept, state, tmp_path):
    make_run(tmp_path / "run", state, scores)
    assert steps(tmp_path / "run") == kept


def test_keeps_the_best_of_earlier_sessions(state, tmp_path):
    make_run(tmp_path / "run", state, [1, 9, 3])
    for iteration in range(4, 7):
        checkpoint.save(tmp_path / "run", at(state, iteration), 0.0)
    assert steps(tmp_path / "run") == [2, 4, 5, 6]


def test_deletes_leftovers_of_a_killed_run(run, state):
    shutil.copytree(run / "checkpoints" / "3", run / "checkpoints" / "4.partial")
    (run / "checkpoints" / "1").rename(run / "checkpoints" / "1.deleted")
    assert_same(restore(run).state, at(state, 3))
    checkpoint.save(run, at(state, 4), 0.0)
    assert steps(run) == [2, 3, 4]


# Damage.


STRAYS = [".DS_Store", "._summary.json", "player/._arrays.npz", "player/arrays (1).npz"]
STRAYS += [
    "state/.nfs0001",
    "player/.ipynb_checkpoints/arrays.npz",
    "../4.partial",
    "../mine.partial",
]


def test_files_that_a_checkpoint_does_not_list_are_ignored(run, state):
    for name in STRAYS:
        path = run / "checkpoints" / "3" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("stray")
    assert azjax.load(run).iteration == 3
    restored, skipped = restore(run, set_aside=True)
    assert_same(restored, at(state, 3))
    assert skipped == []
    checkpoint.save(run, at(state, 4), 0.0)
    names = {path.name for path in (run / "checkpoints").iterdir()}
    assert names == {"2", "3", "4", "mine.partial"}


def test_nothing_outside_a_run_is_changed(run, state, tmp_path):
    """Links in the place of everything that is deleted or written while a checkpoint is saved."""
    outside = tmp_path / "outside"
    shutil.copytree(run / "checkpoints", outside)
    (outside / "5.partial").mkdir()
    before = files(outside)
    for name in ("4.partial", "9.deleted", "7.partial/player"):
        (run / "checkpoints" / name).parent.mkdir(exist_ok=True)
        (run / "checkpoints" / name).symlink_to(outside)
    shutil.rmtree(run / "checkpoints" / "1")
    (run / "checkpoints" / "1").symlink_to(outside / "1")  # Pruned: the oldest one.
    (run / "checkpoints" / "4").symlink_to("nothing")  # The name of the next one.
    (run / "damaged").mkdir()
    (run / "damaged" / "4-1").symlink_to("nothing")
    checkpoint.save(run, at(state, 4), 0.0)
    assert files(outside) == before and steps(run) == [2, 3, 4]
    assert os.readlink(run / "damaged" / "4-2") == "nothing"
    assert_same(restore(run).state, at(state, 4))


def test_a_run_without_its_checkpoints_does_not_begin_again(run):
    (run / "checkpoints").rename(run / "moved")
    for _ in ("missing", "a file"):
        with pytest.raises(CheckpointError, match="checkpoints is missing: restore it"):
            restore(run, set_aside=True)
        (run / "checkpoints").write_text("")


def test_a_reader_follows_a_training_that_replaces_the_newest_checkpoint(run, state, monkeypatch):
    read, pending = checkpoint._read, [True]

    def read_late(*arguments, **options):
        if pending:
            pending.pop()
            checkpoint.save(run, at(state, 4), 0.0, keep=1)
        return read(*arguments, **options)

    monkeypatch.setattr(checkpoint, "_read", read_late)
    assert azjax.load(run).iteration == 4


def truncate_the_largest_file(folder):
    path = largest_file(folder)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip_a_byte(folder):
    path = largest_file(folder)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def delete_the_largest_file(folder):
    largest_file(folder).unlink()


def delete_the_summary(folder):
    (folder / "summary.json").unlink()


def empty(folder):
    shutil.rmtree(folder)
    folder.mkdir()


def replace_by_a_file(folder):
    shutil.rmtree(folder)
    folder.write_text("not a checkpoint")


def spoil_the_summary(folder):
    (folder / "summary.json").write_text("[]")


def exchange_the_arrays(folder):
    """Exchanges two sound files of arrays, like a faulty copy."""
    shutil.rmtree(folder / "state")
    shutil.copytree(folder.parent / "1" / "state", folder / "state")


def edit_the_score(folder):
    write_summary(folder, read_summary(folder) | {"score": 9.0})


def seal_nonsense(folder):
    """Writes nonsense with a valid digest."""
    content = read_summary(folder) | {"files": 3}
    write_summary(folder, content | {"sha256": storage._digest(without_digest(content))})


def nest_the_summary_deeply(folder):
    (folder / "summary.json").write_text("[" * 10_000)


def take_the_place_of_another(folder):
    shutil.rmtree(folder)
    shutil.copytree(folder.parent / "1", folder)


def read_summary(folder):
    return json.loads((folder / "summary.json").read_text())


def write_summary(folder, content):
    (folder / "summary.json").write_text(json.dumps(content))


def without_digest(content):
    return {name: value for name, value in content.items() if name != "sha256"}


def largest_file(folder):
    """Of the averaged variables, so that loading a player fails as well."""
    paths = (folder / "player").rglob("*")
    return max(paths, key=lambda path: path.stat().st_size * path.is_file())


DAMAGES = [
    truncate_the_largest_file,
    flip_a_byte,
    delete_the_largest_file,
    delete_the_summary,
    empty,
    replace_by_a_file,
    spoil_the_summary,
    exchange_the_arrays,
    edit_the_score,
    seal_nonsense,
    nest_the_summary_deeply,
    take_the_place_of_another,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_falls_back_to_the_newest_sound_checkpoint(damage, run, state):
    damage(run / "checkpoints" / "3")
    before = files(run)
    restored, skipped = restore(run)
    assert_same(restored, at(state, 2))
    assert len(skipped) == 1
    assert f"checkpoint 3 in {run} is damaged" in skipped[0]
    assert "\n" not in skipped[0] and len(skipped[0]) < 400
    assert files(run) == before


@pytest.mark.parametrize(
    "damage",
    [*DAMAGES[:2], *(pytest.param(damage, marks=pytest.mark.slow) for damage in DAMAGES[2:])],
)
def test_sets_damaged_checkpoints_aside(damage, run, state):
    damage(run / "checkpoints" / "3")
    damage(run / "checkpoints" / "2")
    damaged = files(run / "checkpoints" / "2") | files(run / "checkpoints" / "3")
    assert_same(restore(run, set_aside=True).state, at(state, 1))
    assert steps(run) == [1]
    assert sorted(path.name for path in (run / "damaged").iterdir()) == ["2-1", "3-1"]
    assert files(run / "damaged" / "2-1") | files(run / "damaged" / "3-1") == damaged
    checkpoint.save(run, at(state, 3), 0.0)
    flip_a_byte(run / "checkpoints" / "3")
    restore(run, set_aside=True)
    assert (run / "damaged" / "3-2").is_dir()


def test_ignores_a_damaged_older_checkpoint(run, state):
    empty(run / "checkpoints" / "1")
    assert restore(run, set_aside=True).skipped == []
    checkpoint.save(run, at(state, 4), -1.0)
    assert steps(run) == [2, 3, 4]


def test_raises_if_all_are_damaged_and_moves_nothing(run):
    for step in (1, 2, 3):
        flip_a_byte(run / "checkpoints" / str(step))
    before = files(run)
    with pytest.raises(CheckpointError, match="no checkpoint in .* is sound"):
        restore(run, set_aside=True)
    assert files(run) == before


def swap(run, left, right):
    folder = run / "checkpoints"
    (folder / left).rename(folder / "between")
    (folder / right).rename(folder / left)
    (folder / "between").rename(folder / right)


def test_a_swapped_checkpoint_counts_as_damaged(run, state):
    swap(run, "2", "3")
    for iteration, other in ((2, 3), (3, 2)):
        said = f"checkpoint {iteration} in .* .it is the checkpoint of iteration {other}.: use one"
        with pytest.raises(CheckpointError, match=said):
            azjax.load(run, iteration)
    restored, skipped = restore(run, set_aside=True)
    assert_same(restored, at(state, 1))
    assert "is damaged (it is the checkpoint of iteration 2)" in skipped[0]
    assert "is damaged (it is the checkpoint of iteration 3)" in skipped[1]
    assert steps(run) == [1]
    assert sorted(path.name for path in (run / "damaged").iterdir()) == ["2-1", "3-1"]


@pytest.mark.parametrize("name", ["003", "²", "٣", "-3", "3 "])
def test_only_a_plain_number_is_a_checkpoint(name, run, state):
    (run / "checkpoints" / "3").rename(run / "checkpoints" / name)
    assert runs.iterations(run) == [1, 2]
    assert_same(restore(run, set_aside=True).state, at(state, 2))


@pytest.mark.parametrize("change", [{"format": 2}, {"format": None}, {}])
def test_a_run_of_another_version_is_rejected_in_one_sentence(run, change):
    path = run / "config.json"
    content = json.loads(path.read_text())
    del content["format"]
    path.write_text(json.dumps(content | change))
    with pytest.raises(CheckpointError, match="has the format of another version of azjax: use"):
        azjax.load(run)


CHANGES = {
    "seed": (1, "seed is 1 in", "with 0: restore the file"),
    "learner.l2": (0.5, "learner.l2 is 0.5 in", "restore the file"),
    "network.width": (32, "network.width is 32 in", "with 16: restore the file"),
    "network": ({"kind": "mlp"}, "network.kind is 'mlp' in", "with 'resnet': restore the file"),
    "game": ("connect_four", "game is 'connect_four' in", "with 'tic_tac_toe': restore the file"),
}


@pytest.mark.parametrize("setting", CHANGES)
def test_a_wrong_configuration_does_not_damage_checkpoints(setting, run, state):
    value, *fragments = CHANGES[setting]
    edit_config(run, setting, value)
    flip_a_byte(run / "checkpoints" / "3")
    before = files(run)
    for read in (
        runs.read_config,
        azjax.load,
        lambda run: checkpoint.save(run, at(state, 4), 0.0),
        lambda run: azjax.load(run, 1),
    ):
        with pytest.raises(CheckpointError) as error:
            read(run)
        for fragment in [*fragments, f"{run / 'config.json'}, and checkpoint 3 was written with"]:
            assert fragment in str(error.value)
        assert "\n" not in str(error.value)
    assert files(run) == before


def edit_config(run, setting, value):
    content = json.loads((run / "config.json").read_text())
    *parents, name = setting.split(".")
    target = content
    for parent in parents:
        target = target[parent]
    target[name] = value
    (run / "config.json").write_text(json.dumps(content))


def test_a_setting_missing_in_both_has_its_default(run):
    for path in (run / "config.json", *run.rglob("summary.json")):
        content = json.loads(path.read_text())
        del content.get("settings", content)["seed"]
        if "settings" in content:
            content["sha256"] = storage._digest(without_digest(content))
        path.write_text(json.dumps(content))
    assert runs.read_config(run) == CONFIG and azjax.load(run).iteration == 3


def test_rejects_a_checkpoint_with_unknown_settings(run):
    content = read_summary(run / "checkpoints" / "2")
    content["settings"]["colour"] = "red"
    content["sha256"] = storage._digest(without_digest(content))
    write_summary(run / "checkpoints" / "2", content)
    with pytest.raises(CheckpointError, match="2/summary.json cannot be used .* 'colour'"):
        azjax.load(run)


def test_rejects_arrays_that_do_not_match_the_settings(run, monkeypatch):
    monkeypatch.setattr(storage, "describe", lambda tree: {})
    before = files(run)
    with pytest.raises(CheckpointError, match="its arrays do not match its settings"):
        restore(run, set_aside=True)
    assert files(run) == before


def test_loading_unpickles_nothing(run, monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("something was unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    assert azjax.load(run).iteration == 3


def test_a_player_needs_only_its_parameters(run, state):
    """Not even the files of the optimizer and the buffer."""
    before = azjax.load(run)
    shutil.rmtree(run / "checkpoints" / "3" / "state")
    after = azjax.load(run)
    assert after.iteration == 3
    jax.tree.map(np.testing.assert_array_equal, after.params, before.params)
    restored, skipped = restore(run)
    assert_same(restored, at(state, 2))
    assert len(skipped) == 1 and "its file state/" in skipped[0]


# A requested checkpoint.


def test_loads_the_requested_checkpoint(run):
    assert runs.iterations(run) == [1, 2, 3]
    flip_a_byte(run / "checkpoints" / "3")
    assert azjax.load(run, 1).iteration == 1
    assert azjax.load(run, iteration=2).iteration == 2
    said = "checkpoint 3 in .* was changed.: use one of 1, 2, or move its folder away to use"
    with pytest.raises(CheckpointError, match=said):  # Never an older player in its place.
        azjax.load(run)
    (run / "checkpoints" / "3").rename(run / "3")
    assert azjax.load(run).iteration == 2


def test_lists_the_existing_checkpoints(run, tmp_path):
    flip_a_byte(run / "checkpoints" / "3")
    before = files(run)
    with pytest.raises(CheckpointError, match="run has no checkpoint 7: use one of 1, 2, 3$"):
        azjax.load(run, 7)
    with pytest.raises(CheckpointError, match="checkpoint 3 in .* was changed.: use one of 1, 2$"):
        azjax.load(run, 3)
    assert files(run) == before
    runs.create_run(tmp_path / "new", CONFIG)
    with pytest.raises(CheckpointError, match="new has no checkpoint yet: resume the run to"):
        azjax.load(tmp_path / "new", 0)


def test_reports_that_the_only_checkpoint_is_damaged(state, tmp_path):
    make_run(tmp_path / "run", state, [0.0])
    flip_a_byte(tmp_path / "run" / "checkpoints" / "1")
    with pytest.raises(CheckpointError, match="checkpoint 1 in .*: resume the run to"):
        azjax.load(tmp_path / "run", 1)


# Configurations.


@pytest.mark.parametrize("shrink", [False, True])
@pytest.mark.parametrize("name", presets.PRESETS)
def test_a_configuration_is_restored(name, shrink, tmp_path):
    config = presets.smoke(presets.get(name)) if shrink else presets.get(name)
    runs.create_run(tmp_path / "run", config)
    assert runs.read_config(tmp_path / "run") == config


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["colour"], 3, "unknown setting 'colour': use one of game, seed, parts"),
        (["network", "chanels"], 3, "unknown setting 'network.chanels'"),
        (["seed"], "zero", "seed is 'zero', which is not of type int"),
        (["seed"], True, "seed is True, which is not of type int"),
        (["network"], 3, "network is 3, not an object"),
        (
            ["network", "kind"],
            "transformer",
            "network.kind is 'transformer': use 'resnet' or 'mlp'",
        ),
        (["network", "kind"], "mlp", "network.layers is a setting of resnet, and network.kind is"),
        (["network", "hidden"], [8], "leave it out, or choose network.kind mlp"),
        (["network", "width"], [32], "network.width is"),
        (["network", "width"], "32", "network.width is '32', which is not of type int"),
        (["learner", "l2"], None, "learner.l2 is None, which is not of type float"),
        (["learner", "steps"], 0, "learner.steps is 0: use 1 or more"),
    ],
)
def test_rejects_a_wrong_entry_in_the_configuration(path, value, said, tmp_path):
    content = {"format": runs.FORMAT, **dataclasses.asdict(CONFIG)}
    *parents, name = path
    target = content
    for parent in parents:
        target = target[parent]
    target[name] = value
    (tmp_path / "config.json").write_text(json.dumps(content))
    with pytest.raises(CheckpointError) as error:
        runs.read_config(tmp_path)
    assert said in str(error.value)
    assert str(tmp_path / "config.json") in str(error.value)


NO_CONFIGURATIONS = ["", "{", "[]", "null", '"text"', "\0\1\2", "[" * 10_000, '{"a":' * 10_000]


@pytest.mark.parametrize("content", NO_CONFIGURATIONS, ids=lambda content: content[:9])
def test_rejects_content_that_is_not_a_configuration(content, tmp_path):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(CheckpointError, match="config.json cannot be used"):
        runs.read_config(tmp_path)


def test_an_integer_is_accepted_for_a_float(tmp_path):
    (tmp_path / "config.json").write_text(f'{{"format": {runs.FORMAT}, "learner": {{"l2": 1}}}}')
    l2 = runs.read_config(tmp_path).learner.l2
    assert l2 == 1 and isinstance(l2, float)


# New run directories.


def test_never_touches_a_directory_that_exists(run):
    before = files(run)
    with pytest.raises(CheckpointError, match="exists already"):
        runs.create_run(run, CONFIG)
    assert files(run) == before


def test_programs_that_start_together_get_different_numbers(tmp_path):
    prefix = tmp_path / "deep" / "run"
    (tmp_path / "deep" / "run").mkdir(parents=True)  # The name without a number is not used.
    (tmp_path / "deep" / "run-2").symlink_to("nothing")
    create = functools.partial(runs.create_run, config=CONFIG, numbered=True)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        made = [*pool.map(create, [prefix] * 8)]
    assert {path.name for path in made} == {f"run-{number}" for number in (1, *range(3, 10))}
    assert all(runs.read_config(path) == CONFIG for path in made)
    assert len([*prefix.parent.iterdir()]) == 10  # No temporary folder is left.


def test_two_programs_can_write_one_file(tmp_path):
    path = tmp_path / "report.html"
    with replacing(path) as first, replacing(path) as second:
        for temporary in (first, second):
            temporary.write_text(temporary.name)
    assert path.read_text() == first.name != second.name
    assert [*tmp_path.iterdir()] == [path]


def test_of_programs_that_start_in_one_directory_one_gets_it(tmp_path):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        starts = [pool.submit(runs.create_run, tmp_path / "run", CONFIG) for _ in range(8)]
    errors = [str(error) for start in starts if (error := start.exception())]
    assert len(errors) == 7 and all("run exists already: " in error for error in errors)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_check_free_changes_nothing(tmp_path):
    runs.check_free(tmp_path / "run")
    assert not any(tmp_path.iterdir())


def test_names_the_reason_why_a_directory_cannot_be_created(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot be created .Not a directory.: choose"):
        runs.create_run(tmp_path / "file" / "run", CONFIG)


def test_an_incomplete_directory_is_deleted(tmp_path, monkeypatch):
    def fail(old, new):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(directory.os, "rename", fail)
    with pytest.raises(CheckpointError, match="run cannot be created .No space left on device.: "):
        runs.create_run(tmp_path / "run", CONFIG)
    assert not any(tmp_path.iterdir())


def test_check_free_leaves_no_parent_folders(tmp_path):
    runs.check_free(tmp_path / "some" / "deep" / "run")
    (tmp_path / "kept").mkdir()
    runs.check_free(tmp_path / "kept" / "deep" / "run")
    assert [path.name for path in tmp_path.rglob("*")] == ["kept"]
