"""Checkpoints: contents are restored bit for bit, and damage is detected."""

import dataclasses
import gc
import json
import os
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
from azjax.runs import checkpoint, presets, storage
from azjax.runs.checkpoint import CheckpointError
from azjax.runs.config import make_parts
from azjax.training.learner import make_learner
from refusals import assert_refused

CONFIG = presets.smoke(presets.get("default"))
PARTS = make_parts(CONFIG)


def make_state(devices=1, parts=PARTS):
    """A training state of random numbers, which no program has to be compiled for."""
    rng = np.random.default_rng(0)

    def fill(leaf):
        data = jax.eval_shape(storage.plain, leaf)
        array = np.asarray(rng.integers(0, 100, data.shape)).astype(data.dtype)
        array = jax.device_put(array, leaf.sharding)
        if storage.is_key(leaf):
            return jax.random.wrap_key_data(array, impl=storage.key_impl(leaf))
        return array

    mesh = training.make_mesh(jax.devices()[:devices])
    return jax.tree.map(fill, training.abstract_state(parts, mesh))


@pytest.fixture(scope="module")
def state():
    return make_state()


@pytest.fixture(scope="module")
def saved(state, tmp_path_factory):
    """A run with checkpoints 1, 2 and 3; tests work on copies of it."""
    run_dir = make_run(tmp_path_factory.mktemp("saved") / "run", state, [0.0, 0.0, 0.0])
    azjax.load(run_dir)  # Compiles the only program, `fold`.
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
    return run_dir


def restore(run_dir, devices=1, **options):
    mesh = training.make_mesh(jax.devices()[:devices])
    return checkpoint.restore(run_dir, PARTS, mesh, **options)


def steps(run_dir):
    return sorted(int(path.name) for path in (run_dir / "checkpoints").iterdir())


def assert_same(left, right):
    pairs = zip(*map(jax.tree_util.tree_leaves_with_path, (left, right)), strict=True)
    for (name, one), (other_name, other) in pairs:
        assert name == other_name and one.dtype == other.dtype
        one, other = (np.asarray(storage.plain(leaf)) for leaf in (one, other))
        assert one.tobytes() == other.tobytes(), name


def files(folder):
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


# Saving and restoring.


@pytest.mark.parametrize("devices", [(1, 2), (2, 8), (8, 1)])
def test_restores_what_was_saved_on_other_devices(devices, tmp_path):
    before = make_state(devices[0])
    after, skipped = restore(make_run(tmp_path / "run", before, [0.0]), devices[1])
    assert skipped == []
    assert_same(after, at(before, 1))
    mesh = training.make_mesh(jax.devices()[: devices[1]])
    expected = training.abstract_state(PARTS, mesh)
    for leaf, abstract in zip(jax.tree.leaves(after), jax.tree.leaves(expected), strict=True):
        assert leaf.sharding == abstract.sharding


def test_types_unknown_to_numpy_are_restored(tmp_path):
    place = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    half = jnp.asarray([1.5, -2.0], jnp.bfloat16)
    tree = {"a/b": half, "rest": (half[0], jnp.int32(3), jnp.zeros((0, 2), bool))}
    storage.write_arrays(tmp_path / "tree", tree)
    target = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place), tree)
    assert_same(storage.read_arrays([tmp_path / "tree" / "arrays.npz"], target), tree)


def test_rows_in_the_files_of_two_processes_are_one_array(tmp_path):
    """The devices of the processes alternate."""
    keys = jax.random.split(jax.random.key(1), 8)
    tree = {"a": jnp.asarray(np.random.default_rng(0).normal(size=(8, 3)), "float32"), "k": keys}
    for file, first in (("arrays.npz", 0), ("arrays-1.npz", 2)):
        stored = {}
        for name, leaf in tree.items():
            for start in (first, first + 4):
                rows = np.asarray(storage.plain(leaf))[start : start + 2]
                stored[f"['{name}'][{start}:{start + 2}]"] = rows
        np.savez(tmp_path / file, **stored)
    for devices in (1, 2, 8):
        mesh = training.make_mesh(jax.devices()[:devices])
        rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(training.AXIS))
        target = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=rows), tree)
        assert_same(storage.read_arrays(tmp_path.glob("*.npz"), target), tree)
    (tmp_path / "arrays-1.npz").unlink()
    with pytest.raises(ValueError):
        storage.read_arrays(tmp_path.glob("*.npz"), target)


def test_a_full_disk_is_reported_once(run, state, monkeypatch):
    gc.collect()  # Ignores leftovers of other tests.
    ignored, before = [], files(run)
    monkeypatch.setattr(sys, "unraisablehook", lambda problem: ignored.append(problem.exc_value))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
    try:
        with pytest.raises(CheckpointError, match="4 could not be written .*: make room"):
            checkpoint.save(run, at(state, 4), 0.0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    gc.collect()
    assert ignored == [] and before.items() <= files(run).items()


@pytest.mark.parametrize(("before", "after"), [("threefry2x32", "rbg"), ("rbg", "unsafe_rbg")])
def test_a_run_keeps_its_key_implementation(before, after, state, tmp_path):
    """Also that of keys in the state of an optimizer."""
    noise = optax.add_noise(0.1, 0.5, key=jax.random.key(3, impl=before))
    learner = make_learner(PARTS.network, optax.chain(noise, optax.sgd(0.1)), steps=1)
    parts = PARTS._replace(learner=learner)
    with jax.default_prng_impl(before):
        kept = dataclasses.replace(make_state(parts=parts), key=jax.random.key(7))
        run_dir = make_run(tmp_path / os.fsdecode(b"l\xe4ufe"), kept, [0.0])  # Not UTF-8.
    with jax.default_prng_impl(after):
        restored, skipped = checkpoint.restore(run_dir, parts, training.make_mesh())
        assert checkpoint.restore_player(run_dir, PARTS.network)[1] == 1
    assert skipped == []
    assert_same(restored, at(kept, 1))
    impls = {storage.key_impl(leaf) for leaf in jax.tree.leaves(restored) if storage.is_key(leaf)}
    assert impls == {before}


def test_refuses_to_save_parameters_that_are_not_finite(run, state):
    before = files(run)
    for part in ("variables", "average", "opt_state"):
        poison = jax.tree.map(
            lambda leaf: leaf + jnp.inf if leaf.dtype == jnp.float32 else leaf,
            getattr(state.learner, part),
        )
        learner = state.learner._replace(**{part: poison})
        with pytest.raises(CheckpointError, match="NaN or infinite after iteration 4"):
            checkpoint.save(run, dataclasses.replace(at(state, 4), learner=learner), 0.0)
    assert files(run) == before


# Which checkpoints are kept.


@pytest.mark.parametrize(
    ("scores", "kept"),
    [
        ([5, 4, 3, 2, 1], [1, 3, 4, 5]),
        ([1, 9, 3, 2, 1, 0], [2, 4, 5, 6]),
        ([1, 2, 3, 4, 5], [3, 4, 5]),
        ([7, 7, 1, 1, 1], [2, 3, 4, 5]),  # Of equal scores, the newest is the best.
    ],
)
def test_keeps_the_newest_three_and_the_best(scores, kept, state, tmp_path):
    assert steps(make_run(tmp_path / "run", state, scores)) == kept


STRAYS = [".DS_Store", "._summary.json", "player/._arrays.npz", "player/arrays (1).npz"]
STRAYS += ["state/.nfs0001", "player/.ipynb_checkpoints/arrays.npz", "../mine.partial"]


def test_files_that_a_checkpoint_does_not_list_are_ignored(run, state):
    """Leftovers of a killed program are deleted, and nothing else."""
    for name in STRAYS:
        path = run / "checkpoints" / "3" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("stray")
    shutil.copytree(run / "checkpoints" / "3", run / "checkpoints" / "4.partial")
    (run / "checkpoints" / "1").rename(run / "checkpoints" / "1.deleted")
    assert azjax.load(run).iteration == 3
    restored, skipped = restore(run, set_aside=True)
    assert_same(restored, at(state, 3))
    assert skipped == []
    checkpoint.save(run, at(state, 4), 0.0)
    names = {path.name for path in (run / "checkpoints").iterdir()}
    assert names == {"2", "3", "4", "mine.partial"}


def test_nothing_outside_a_run_is_changed(run, state, tmp_path):
    """Links in the place of everything that is deleted or written while a checkpoint is saved."""
    outside = shutil.copytree(run / "checkpoints", tmp_path / "outside")
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


# Damage.


def largest_file(folder):
    """Of the averaged variables, so that loading a player fails as well."""
    return max((folder / "player").iterdir(), key=lambda path: path.stat().st_size)


def truncate_the_largest_file(folder):
    path = largest_file(folder)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip_a_byte(folder):
    path = largest_file(folder)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def replace_by_a_file(folder):
    shutil.rmtree(folder)
    folder.write_text("not a checkpoint")


def exchange_the_arrays(folder):
    """Exchanges two sound files of arrays, like a faulty copy."""
    shutil.rmtree(folder / "player")
    shutil.copytree(folder / "state", folder / "player")


def edit_summary(folder, edit, seal=True):
    path = folder / "summary.json"
    content = json.loads(path.read_text())
    sealed = content.pop("sha256")
    edit(content)
    path.write_text(json.dumps(content | {"sha256": storage._digest(content) if seal else sealed}))


DAMAGES = [
    truncate_the_largest_file,
    flip_a_byte,
    replace_by_a_file,
    exchange_the_arrays,
    lambda folder: largest_file(folder).unlink(),
    lambda folder: (folder / "summary.json").unlink(),
    lambda folder: (folder / "summary.json").write_text("[" * 10_000),
    lambda folder: edit_summary(folder, lambda content: content.update(score=9.0), seal=False),
    lambda folder: edit_summary(folder, lambda content: content.update(files=3)),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_falls_back_to_the_newest_sound_checkpoint(damage, run, state):
    damage(run / "checkpoints" / "3")
    before = files(run)
    restored, skipped = restore(run)
    assert_same(restored, at(state, 2))
    assert len(skipped) == 1 and f"checkpoint 3 in {run} is damaged" in skipped[0]
    assert "\n" not in skipped[0] and len(skipped[0]) < 400
    with pytest.raises(CheckpointError, match="3 in .* is damaged .*: use one of 1, 2, or move"):
        azjax.load(run)  # Never an older player in its place.
    assert files(run) == before
    damage(run / "checkpoints" / "2")
    damaged = files(run / "checkpoints" / "2") | files(run / "checkpoints" / "3")
    assert_same(restore(run, set_aside=True).state, at(state, 1))
    assert steps(run) == [1]
    assert sorted(path.name for path in (run / "damaged").iterdir()) == ["2-1", "3-1"]
    assert files(run / "damaged" / "2-1") | files(run / "damaged" / "3-1") == damaged


def test_swapped_checkpoints_count_as_damaged(run, state):
    for old, new in (("2", "2-1"), ("3", "2"), ("2-1", "3")):
        (run / "checkpoints" / old).rename(run / "checkpoints" / new)
    assert_refused(
        (lambda: azjax.load(run, 2), "checkpoint 2 in ... (it is the checkpoint of iteration 3)"),
        (lambda: azjax.load(run, 3), "checkpoint 3 in ... (it is the checkpoint of iteration 2)"),
        error=CheckpointError,
    )
    restored, skipped = restore(run, set_aside=True)
    assert_same(restored, at(state, 1))
    assert len(skipped) == 2 and steps(run) == [1]


def test_raises_if_no_checkpoint_can_be_restored(run, tmp_path, monkeypatch):
    """And then moves nothing."""
    other = PARTS._replace(network=make_parts(azjax.Config()).network)
    before = files(run)
    with pytest.raises(CheckpointError, match="arrays do not match its settings, its custom parts"):
        checkpoint.restore(run, other, set_aside=True)
    for step in (1, 2, 3):
        flip_a_byte(run / "checkpoints" / str(step))
    with pytest.raises(CheckpointError, match="no checkpoint in .* is sound"):
        restore(run, set_aside=True)
    assert files(run).keys() == before.keys()
    shutil.rmtree(run / "checkpoints")
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


# A requested checkpoint, and a player that does not belong to the run.


def test_loads_only_the_requested_checkpoint(run, tmp_path):
    flip_a_byte(run / "checkpoints" / "3")
    assert [azjax.load(run, 1).iteration, azjax.load(run, iteration=2).iteration] == [1, 2]
    new, one = tmp_path / "new", shutil.copytree(run, tmp_path / "one")
    runs.create_run(new, CONFIG)
    for step in (1, 2):
        shutil.rmtree(one / "checkpoints" / str(step))
    assert_refused(
        (lambda: azjax.load(run, 7), "run has no checkpoint 7: use one of 1, 2, 3"),
        (lambda: azjax.load(run, 3), "checkpoint 3 in ... was changed): use one of 1, 2"),
        (lambda: azjax.load(new, 0), "new has no checkpoint yet: resume the run to write one"),
        (lambda: azjax.load(one, 3), "checkpoint 3 in ... was changed): resume the run to write"),
        error=CheckpointError,
    )
    shutil.rmtree(run / "checkpoints" / "3")
    assert azjax.load(run).iteration == 2


@pytest.mark.compiles(2)  # The network of `PARTS`, and that which is made for a given game.
def test_a_player_is_loaded_only_with_the_game_and_network_of_its_run(run):
    game, other = azjax.make("tic_tac_toe"), azjax.make("connect_four")
    for same in ({"game": game}, {"network": PARTS.network}, {"parts": PARTS}):
        assert azjax.load(run, **same).iteration == 3
    mlp = azjax.make_network(azjax.networks.MLPConfig(), game)
    cases = [
        ({"game": other}, "run is a run of tic_tac_toe, not of connect_four: leave the game out"),
        ({"network": azjax.make_network(CONFIG.network, other)}, "was made for planes [6, 7, 2"),
        ({"game": game, "parts": PARTS}, "parts contains its own game: leave game out"),
        ({"game": "tic_tac_toe"}, "game is 'tic_tac_toe', which is not of type Game"),
        ({"parts": CONFIG}, "parts is Config...which is not of type Parts"),
        ({"iteration": 0.0}, "iteration is 0.0, which is not of type int"),
        ({"run_dir": None}, "run_dir is None: use the folder of a run, or a player's name"),
        ({"run_dir": "connect_four", "game": game}, "connect_four comes with azjax ... leave game"),
        ({"run_dir": "connect_four", "iteration": 3}, "leave iteration out"),
    ]
    assert_refused(*((lambda g=g: azjax.load(**{"run_dir": run} | g), said) for g, said in cases))
    with pytest.raises(CheckpointError, match="its arrays do not match .* custom parts"):
        azjax.load(run, network=mlp)


# Settings.


def edit_config(run, setting, value):
    content = json.loads((run / "config.json").read_text())
    *parents, name = setting.split(".")
    target = content
    for parent in parents:
        target = target[parent]
    target[name] = value
    (run / "config.json").write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("seed", 1, "seed is 1 in ... and checkpoint 3 was written with 0: restore the file"),
        ("learner.l2", 0.5, "learner.l2 is 0.5 in ... restore the file"),
        ("network", {"kind": "mlp"}, "network.kind is 'mlp' in ... with 'resnet': restore"),
        ("format", 2, "has the format of another version of azjax: use"),
        ("format", None, "has the format of another version of azjax: use"),
    ],
)
def test_a_wrong_configuration_does_not_damage_checkpoints(setting, value, said, run, state):
    edit_config(run, setting, value)
    flip_a_byte(run / "checkpoints" / "3")
    before = files(run)
    calls = [
        lambda: runs.read_config(run),
        lambda: azjax.load(run),
        lambda: azjax.load(run, 1),
        lambda: checkpoint.save(run, at(state, 4), 0.0),
    ]
    assert_refused(*((call, said) for call in calls), error=CheckpointError)
    assert files(run) == before
