"""Checkpoints: contents are restored bit for bit, and damage is detected."""

import dataclasses
import json
import os
import resource
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import azjax
from azjax import _files, runs, training
from azjax.networks import MLPConfig
from azjax.runs import checkpoint, presets
from azjax.runs.checkpoint import CheckpointError
from azjax.runs.config import make_parts
from azjax.training.learner import make_learner
from refusals import assert_refused
from trained import assert_same, files

CONFIG = presets.smoke(presets.get("default"))
PARTS = make_parts(CONFIG)


def make_state(devices=1, parts=PARTS):
    """A training state of random numbers, which no program has to be compiled for."""
    rng = np.random.default_rng(0)

    def fill(leaf):
        data = jax.eval_shape(checkpoint.plain, leaf)
        array = np.asarray(rng.integers(0, 100, data.shape)).astype(data.dtype)
        array = jax.device_put(array, leaf.sharding)
        if checkpoint.is_key(leaf):
            return jax.random.wrap_key_data(array, impl=checkpoint.key_impl(leaf))
        return array

    mesh = training.make_mesh(jax.devices()[:devices])
    return jax.tree.map(fill, training.abstract_state(parts, mesh))


@pytest.fixture(scope="module")
def state():
    return make_state()


@pytest.fixture(scope="module")
def saved(state, tmp_path_factory):
    """A run with checkpoints 1, 2 and 3; tests work on copies of it."""
    run_dir = make_run(tmp_path_factory.mktemp("saved") / "run", state, 3)
    azjax.load(run_dir)  # Compiles the only program, `fold`.
    return run_dir


@pytest.fixture
def run(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "run")


def at(state, iteration):
    return dataclasses.replace(state, iteration=jnp.full_like(state.iteration, iteration))


def save(run_dir, state, keep=3):
    checkpoint.write(run_dir, checkpoint.copy(state), keep)


def make_run(run_dir, state, count=1):
    runs.create_run(run_dir, CONFIG)
    for iteration in range(1, count + 1):
        save(run_dir, at(state, iteration))
    return run_dir


def restore(run_dir):
    return checkpoint.restore(run_dir, PARTS, training.make_mesh(jax.devices()[:1]))


def steps(run_dir):
    return sorted(int(path.name) for path in (run_dir / "checkpoints").iterdir())


# Saving and restoring.


@pytest.mark.parametrize("devices", [(1, 2), (8, 1)])
def test_restores_what_was_saved_on_other_devices(devices, tmp_path):
    """The state of the optimizer has keys of another kind, and a type that NumPy lacks."""
    noise = optax.add_noise(0.1, 0.5, key=jax.random.key(3, impl="rbg"))
    sgd = optax.sgd(0.1, momentum=0.9, accumulator_dtype=jnp.bfloat16)
    learner = make_learner(PARTS.network, optax.chain(noise, sgd), steps=1)
    parts, mesh = PARTS._replace(learner=learner), training.make_mesh(jax.devices()[: devices[1]])
    state = make_state(devices[0], parts)
    run_dir = make_run(tmp_path / os.fsdecode(b"l\xe4ufe"), state)  # Not UTF-8.
    restored, skipped = checkpoint.restore(run_dir, parts, mesh)
    expected = training.abstract_state(parts, mesh)
    assert skipped == []
    assert_same(restored, at(state, 1))
    shardings = (jax.tree.map(lambda leaf: leaf.sharding, tree) for tree in (restored, expected))
    assert next(shardings) == next(shardings)
    with jax.default_prng_impl("rbg"), pytest.raises(CheckpointError, match="kind of random keys"):
        checkpoint.restore(run_dir, parts, mesh)


def test_refuses_to_save_parameters_that_are_not_finite(run, state):
    before = files(run)

    def spoil(leaf):
        return leaf + jnp.inf if leaf.dtype == jnp.float32 else leaf

    for part in ("variables", "average", "opt_state"):
        poison = jax.tree.map(spoil, getattr(state.learner, part))
        learner = state.learner._replace(**{part: poison})
        with pytest.raises(CheckpointError, match="NaN or infinite after iteration 4"):
            save(run, dataclasses.replace(at(state, 4), learner=learner))
    assert files(run) == before


# Which files are kept.


def test_keeps_the_newest(state, tmp_path):
    run_dir = make_run(tmp_path / "run", state, 5)
    assert steps(run_dir) == [3, 4, 5]
    save(run_dir, at(state, 10), keep=1)
    assert steps(run_dir) == [10]


def test_files_that_a_checkpoint_does_not_list_are_ignored(run, state):
    """Leftovers of a killed program are deleted, and nothing else."""
    for name in (".DS_Store", "player/arrays (1).npz", "state/.nfs0001", "../mine.partial"):
        (run / "checkpoints" / "3" / name).write_text("stray")
    shutil.copytree(run / "checkpoints" / "3", run / "checkpoints" / "4.partial")
    (run / "checkpoints" / "1").rename(run / "checkpoints" / "1.deleted")
    restored, skipped = restore(run)
    assert_same(restored, at(state, 3))
    assert skipped == []
    save(run, at(state, 4))
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
    save(run, at(state, 4))
    assert files(outside) == before and steps(run) == [2, 3, 4]
    assert os.readlink(run / "damaged" / "4-1") == "nothing"
    assert_same(restore(run)[0], at(state, 4))


def test_a_full_disk_changes_nothing(run, state):
    before = files(run)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, limits[1]))
    try:
        with pytest.raises(CheckpointError, match="4 could not be written .*: make room"):
            save(run, at(state, 4))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert before.items() <= files(run).items()


# Damage.


def flip_a_byte(folder, name="player/arrays.npz"):
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 0xFF
    (folder / name).write_bytes(content)


def edit_summary(folder):
    content = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps(content | {"edited": True}))


DAMAGES = [
    flip_a_byte,
    lambda folder: (folder / "player" / "arrays.npz").unlink(),
    lambda folder: (folder / "summary.json").write_text("[" * 10_000),
    edit_summary,
    # Those of two iterations are exchanged.
    lambda folder: shutil.copy(folder.with_name("1") / "summary.json", folder),
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_falls_back_to_the_newest_sound_checkpoint(damage, run, state):
    damage(run / "checkpoints" / "3")
    with pytest.raises(CheckpointError, match="3 in .* is damaged .*: use one of 1, 2"):
        azjax.load(run)  # Never an older player in its place.
    damage(run / "checkpoints" / "2")
    damaged = files(run / "checkpoints" / "2") | files(run / "checkpoints" / "3")
    restored, skipped = restore(run)
    assert_same(restored, at(state, 1))
    assert len(skipped) == 2 and f"checkpoint 3 in {run} is damaged" in skipped[0]
    assert "\n" not in skipped[0] and len(skipped[0]) < 400
    assert steps(run) == [1]
    assert sorted(path.name for path in (run / "damaged").iterdir()) == ["2-1", "3-1"]
    assert files(run / "damaged" / "2-1") | files(run / "damaged" / "3-1") == damaged


def test_a_disk_that_cannot_be_read_is_no_damage(run, monkeypatch):
    def fail(path):
        raise OSError(5, "Input/output error", path)

    before = files(run)
    monkeypatch.setattr(_files, "digest_file", fail)
    with pytest.raises(OSError, match="Input/output"):
        restore(run)
    assert files(run) == before


def test_nothing_moves_if_no_checkpoint_fits(run):
    other, before = PARTS._replace(network=make_parts(azjax.Config()).network), files(run)
    with pytest.raises(CheckpointError, match="arrays do not match its settings, its custom parts"):
        checkpoint.restore(run, other)
    assert files(run) == before


# A requested checkpoint, and a player that does not belong to the run.


@pytest.mark.compiles(1)
def test_loads_only_the_requested_checkpoint(run, tmp_path, state):
    """Its player is the averaged network."""
    flip_a_byte(run / "checkpoints" / "3")
    player = azjax.load(run, iteration=2)
    assert player.iteration == 2
    assert_same(player.params, PARTS.network.fold(state.learner.average))
    new, one = tmp_path / "new", shutil.copytree(run, tmp_path / "one")
    runs.create_run(new, CONFIG)
    for step in (1, 2):
        shutil.rmtree(one / "checkpoints" / str(step))
    assert_refused(
        (lambda: azjax.load("conect_four"), "is not a run", "did you mean connect_four?"),
        (lambda: azjax.load(run, 7), "run has no checkpoint 7: use one of 1, 2, 3"),
        (lambda: azjax.load(run, 3), "checkpoint 3 in ... was changed): use one of 1, 2"),
        (lambda: azjax.load(new, 0), "new has no checkpoint yet: resume the run to write one"),
        (lambda: azjax.load(one, 3), "checkpoint 3 in ... was changed): resume the run to write"),
        error=CheckpointError,
    )


@pytest.mark.compiles(2)  # The network of `PARTS`, and that which is made for a given game.
def test_a_player_is_loaded_only_with_the_game_and_network_of_its_run(run):
    game, other = azjax.make("tic_tac_toe"), azjax.make("connect_four")
    for same in ({"game": game}, {"network": PARTS.network}, {"parts": PARTS}):
        assert azjax.load(run, **same).iteration == 3
    cases = [
        ({"game": other}, "run is a run of tic_tac_toe, not of connect_four: leave the game out"),
        ({"network": azjax.make_network(CONFIG.network, other)}, "was made for planes [6, 7, 2"),
        ({"game": game, "parts": PARTS}, "parts contains its own game: leave game out"),
        ({"game": "tic_tac_toe"}, "game is 'tic_tac_toe', which is not of type Game"),
        ({"run_dir": "connect_four", "iteration": 3}, "comes with azjax ... give only its name"),
    ]
    assert_refused(*((lambda g=g: azjax.load(**{"run_dir": run} | g), said) for g, said in cases))


# Settings.


def test_a_wrong_configuration_does_not_damage_checkpoints(run):
    content = json.loads((run / "config.json").read_text())
    flip_a_byte(run / "checkpoints" / "3")
    before = files(run)
    network = {"network": dataclasses.asdict(MLPConfig())}
    for change, said in [
        (network, "network.kind is 'mlp' in ... with 'resnet': restore"),
        ({"format": 2}, "has the format of another version of azjax: use"),
    ]:
        (run / "config.json").write_text(json.dumps(content | change))
        assert_refused((lambda: azjax.load(run, 1), said), error=CheckpointError)
    assert files(run) == before | {"config.json": (run / "config.json").read_bytes()}
