"""The estimate from shapes, and training that does not fit is rejected."""

import dataclasses
import functools
import math

import jax
import pytest

from azjax import training
from azjax.networks import MLPConfig
from azjax.runs.config import Config, make_parts
from azjax.search import Gumbel
from azjax.training import memory
from azjax.training.learner import LearnerConfig
from azjax.training.memory import Estimate, check_fits, check_trees, estimate, tree_bytes
from azjax.training.parts import SelfPlayConfig
from azjax.training.replay import ReplayConfig
from refusals import assert_refused

SMALL = Config(
    network=MLPConfig(hidden=(8,), head_hidden=8),
    search=Gumbel(num_simulations=4),
    selfplay=SelfPlayConfig(games=64, unroll_length=1),
    replay=ReplayConfig(capacity=128, shards=2),
    learner=LearnerConfig(batch_size=8, steps=1),
)


def change(config, **sections):
    """Returns a configuration with changed settings in some sections."""
    old = {name: getattr(config, name) for name in sections}
    new = {name: dataclasses.replace(old[name], **fields) for name, fields in sections.items()}
    return dataclasses.replace(config, **new)


def bytes_of(*trees):
    """The bytes of a tree on one device."""
    leaves = [(leaf.sharding.shard_shape(leaf.shape), leaf) for leaf in jax.tree.leaves(trees)]
    return sum(math.prod(shape) * leaf.dtype.itemsize for shape, leaf in leaves)


def test_each_device_holds_its_share():
    """Of games, buffer and trees; the network and the position buffer are replicated."""
    parts = make_parts(change(SMALL, selfplay={"archive": 100, "games_at_once": 16}))
    for devices in (1, 2):
        mesh = training.make_mesh(jax.devices()[:devices])
        state, needs = training.abstract_state(parts, mesh), estimate(parts, mesh)
        learner = state.learner
        assert needs.network == bytes_of(learner.variables, learner.average)
        assert needs.optimizer == bytes_of(learner.opt_state, learner.step)
        assert needs.buffer == bytes_of(state.replay, state.games, state.archive)
        assert needs.tree == 16 * tree_bytes(parts.search, parts.game)
    more = make_parts(change(SMALL, selfplay={"games_at_once": 0}), platform="tpu")
    assert estimate(more, mesh).tree == 32 * tree_bytes(parts.search, parts.game)


class Program:
    """A stand-in for the memory analysis of a compiled program."""

    def __init__(self, arguments, outputs, shared, temporary):
        self.argument_size_in_bytes, self.output_size_in_bytes = arguments, outputs
        self.alias_size_in_bytes, self.temp_size_in_bytes = shared, temporary

    def memory_analysis(self):
        return self


def test_work_is_the_extra_memory_of_a_program():
    """Outputs that alias arguments are counted once."""
    parts, mesh = make_parts(SMALL), training.make_mesh(jax.devices()[:1])
    lasting = estimate(parts, mesh)
    assert lasting.work == 0 < lasting.total == sum(lasting[:5])
    size = lasting.total
    assert estimate(parts, mesh, Program(size, 100, 0, 400)) == lasting._replace(work=500)
    assert estimate(parts, mesh, Program(size, size, size, 300)) == lasting._replace(work=300)
    assert estimate(parts, mesh, Program(5, 0, 0, 0)) == lasting


def test_training_that_does_not_fit_is_rejected_with_advice(monkeypatch, tic_tac_toe):
    sound = Estimate(network=1, optimizer=2, buffer=3, tree=4, work=5, limit=115)
    check_fits(sound._replace(tree=99))
    said = "the run needs ...B on each...: tree takes most...so use fewer search.num_simulations"
    assert_refused((functools.partial(check_fits, sound._replace(tree=1000)), said))
    needs = Estimate(1_500_000, 2_000, 30, 4, 5_000_000_000, 7_000_000_000)
    assert memory.describe(needs, 2) == (
        "memory on each of 2 devices: 5.0 GB of 7.0 GB\n"
        "network 1.5 MB, optimizer 2 kB, buffer 30 B, tree 4 B, work 5.0 GB"
    )
    monkeypatch.setattr(memory, "device_memory", lambda: 10**9)
    with pytest.raises(ValueError, match="trees of 1000000 .*, 100 at a time, .* GB") as error:
        check_trees(Gumbel(num_simulations=10**6), tic_tac_toe, 100)
    advice = int(str(error.value).split("use at most ")[1].split()[0])
    check_trees(Gumbel(num_simulations=advice), tic_tac_toe, 100)


def test_devices_share_the_memory_of_the_machine_or_container(monkeypatch):
    one, two = (training.make_mesh(jax.devices()[:n]) for n in (1, 2))
    assert memory.device_memory(one) // 2 == memory.device_memory(two) > 1e8
    machine = memory.os.sysconf("SC_PHYS_PAGES") * memory.os.sysconf("SC_PAGE_SIZE")
    monkeypatch.setattr(memory.pathlib.Path, "exists", lambda path: True)
    for limit, bytes_each in (("2000000\n", 10**6), ("max\n", machine // 2)):
        monkeypatch.setattr(memory.pathlib.Path, "read_text", lambda path, limit=limit: limit)
        assert memory.device_memory(two) == bytes_each
