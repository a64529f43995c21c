"""The estimate matches compiled programs, and training that does not fit is rejected."""

import dataclasses
import functools
import math
import resource

import jax
import numpy as np
import pytest

from azjax import games, training
from azjax.games.base import init_batch
from azjax.networks import MLPConfig
from azjax.runs.config import Config, make_parts
from azjax.search import ALGORITHMS, Gumbel, make_search
from azjax.search.evaluators import uniform_evaluator
from azjax.training import memory
from azjax.training.learner import LearnerConfig
from azjax.training.memory import Estimate, check_fits, check_trees, estimate, tree_bytes
from azjax.training.parts import SelfPlayConfig
from azjax.training.replay import ReplayConfig
from refusals import assert_refused
from small import NAMES, conv

SMALL = Config(
    network=MLPConfig(hidden=(8,), head_hidden=8),
    search=Gumbel(num_simulations=4),
    selfplay=SelfPlayConfig(games=64, unroll_length=1),
    replay=ReplayConfig(capacity=128, shards=2),
    learner=LearnerConfig(batch_size=8, steps=1),
)


def change(config, **sections):
    return dataclasses.replace(
        config,
        **{
            name: dataclasses.replace(getattr(config, name), **fields)
            for name, fields in sections.items()
        },
    )


# In each, a different part takes most of the memory.
TREES = change(SMALL, search={"num_simulations": 64}, selfplay={"games": 512, "games_at_once": 512})
TREES = change(TREES, replay={"capacity": 512})
BUFFER = change(SMALL, replay={"capacity": 65_536})
ACTIVATIONS = change(SMALL, learner={"batch_size": 512}, replay={"capacity": 512})
ACTIVATIONS = dataclasses.replace(ACTIVATIONS, network=conv(width=16, blocks=1))
WEIGHTS = change(SMALL, network={"hidden": (512, 512)})


def compile_all(parts, mesh):
    """Compiles the programs of training: an iteration, and the first state."""
    iterate = (
        training.make_iteration(parts, mesh).lower(training.abstract_state(parts, mesh)).compile()
    )
    made = []

    class Seen(Exception):
        pass

    def stop(program):
        made.append(program)
        raise Seen

    with pytest.raises(Seen):
        training.make_state(parts, jax.random.key(0), mesh, stop)
    return iterate, *made


@pytest.mark.parametrize(
    ("config", "largest"),
    [
        pytest.param(TREES, "tree", marks=pytest.mark.slow, id="trees"),
        pytest.param(BUFFER, "buffer", marks=pytest.mark.slow, id="buffer"),
        pytest.param(ACTIVATIONS, "work", marks=pytest.mark.slow, id="activations"),
        pytest.param(WEIGHTS, "optimizer", marks=pytest.mark.slow, id="weights"),
    ],
)
def test_the_estimate_matches_the_memory_analysis_of_xla(config, largest):
    mesh, parts = training.make_mesh(jax.devices()[:2]), make_parts(config)
    iterate = training.make_iteration(parts, mesh)
    compiled = iterate.lower(training.abstract_state(parts, mesh)).compile()
    needs, before = estimate(parts, mesh, compiled), estimate(parts, mesh)
    used = compiled.memory_analysis()
    total = used.argument_size_in_bytes + used.output_size_in_bytes - used.alias_size_in_bytes
    total += used.temp_size_in_bytes
    assert needs.total == sum(needs[:5]) == max(total, before.total)
    assert needs.total < 1.01 * total  # Not all lasting parts are in memory during initialization.
    assert max(needs[:5]) == getattr(needs, largest)
    assert before == needs._replace(work=0)


@pytest.mark.parametrize("devices", [1, 2])
def test_each_device_holds_its_share(devices):
    """Of games, buffer and trees; the network and the position buffer are replicated."""
    parts = make_parts(change(SMALL, selfplay={"archive": 100, "games_at_once": 64}))
    mesh = training.make_mesh(jax.devices()[:devices])
    state, needs = training.abstract_state(parts, mesh), estimate(parts, mesh)

    def held(*trees):
        leaves = [(leaf.sharding.shard_shape(leaf.shape), leaf) for leaf in jax.tree.leaves(trees)]
        return sum(math.prod(shape) * leaf.dtype.itemsize for shape, leaf in leaves)

    learner = state.learner
    assert needs.network == held(learner.variables, learner.average)
    assert needs.optimizer == held(learner.opt_state, learner.step)
    assert needs.buffer == held(state.replay, state.games, state.archive)
    assert needs.tree == 64 // devices * tree_bytes(parts.search, parts.game)


class Program:
    """A stand-in for the memory analysis of a compiled program."""

    def __init__(self, arguments, outputs, shared, temporary):
        self.argument_size_in_bytes, self.output_size_in_bytes = arguments, outputs
        self.alias_size_in_bytes, self.temp_size_in_bytes = shared, temporary

    def memory_analysis(self):
        return self


def test_work_is_the_extra_memory_of_the_largest_program():
    """Outputs that alias arguments are counted once."""
    parts, mesh = make_parts(SMALL), training.make_mesh(jax.devices()[:1])
    lasting = estimate(parts, mesh)
    assert lasting.work == 0 < lasting.total
    size = lasting.total
    programs = [Program(size, size, size, 300), Program(size, 100, 0, 400), Program(5, 0, 0, 0)]
    assert estimate(parts, mesh, *programs) == lasting._replace(work=500)
    assert estimate(parts, mesh, programs[-1]) == lasting


def test_a_tree_has_the_estimated_size():
    for algorithm, name in zip(ALGORITHMS, NAMES[2:], strict=True):
        game, config = games.make(name), ALGORITHMS[algorithm](num_simulations=7)
        search = make_search(config, game, uniform_evaluator(game))
        keys = jax.random.split(jax.random.key(0), 3)
        tree = jax.eval_shape(search, None, keys, init_batch(game, 3)).tree
        sizes = [np.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree)]
        assert 3 * tree_bytes(config, game) == sum(sizes), algorithm


def test_training_that_does_not_fit_is_rejected_with_advice():
    sound = Estimate(network=1, optimizer=2, buffer=3, tree=4, work=5, limit=115)
    advice = {
        "network": "a smaller network",
        "optimizer": "a smaller network",
        "buffer": "a smaller replay.capacity",
        "tree": "fewer search.num_simulations",
        "work": "fewer selfplay.games",
    }
    cases = []
    for part, smaller in advice.items():
        check_fits(sound._replace(**{part: 99}))
        call = functools.partial(check_fits, sound._replace(**{part: 1000}))
        cases.append((call, f"the run needs ...B on each...: {part} takes most...so use {smaller}"))
    assert_refused(*cases)


def test_settings_at_their_upper_bounds_are_checked_before_compilation():
    mesh, cases, many, half = training.make_mesh(jax.devices()[:1]), [], 10**9, 10**9 // 2
    together = {"games": many, "games_at_once": many}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for sections, part in [
        ({"search": {"num_simulations": 10**6}}, "tree"),
        ({"replay": {"capacity": many}}, "buffer"),
        (
            {"selfplay": together, "replay": {"capacity": many}},
            "tree",
        ),
        ({"selfplay": {"games": half}, "replay": {"capacity": half}}, "buffer"),
        ({"learner": {"batch_size": many}, "replay": {"capacity": many}}, "buffer"),
        ({"network": {"hidden": (65_536, 65_536)}}, "optimizer"),
        ({"selfplay": {"temperature_plies": many}}, None),
        ({"learner": {"warmup_steps": many, "decay_steps": many}}, None),
        ({"search": {"max_considered_actions": many}}, None),
        ({"network": {"head_hidden": 65_536}}, None),
    ]:
        parts = make_parts(change(SMALL, **sections))
        training.check_parts(parts, 1)
        check = functools.partial(check_fits, estimate(parts, mesh)._replace(limit=10**8))
        if part is None:
            check()
        else:
            cases.append((check, f": {part} takes most of it"))
    assert_refused(*cases)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # Kilobytes.


@pytest.mark.slow
@pytest.mark.parametrize(
    "sections",
    [
        {"learner": {"batch_size": 10**6}, "replay": {"capacity": 10**6}},
        {"learner": {"steps": 10**9}},
        {"selfplay": {"opening_plies": 10**6}},
    ],
)
def test_work_that_does_not_fit_is_rejected_after_compilation(sections):
    mesh, parts = training.make_mesh(jax.devices()[:1]), make_parts(change(SMALL, **sections))
    check_fits(estimate(parts, mesh)._replace(limit=10**8))
    with pytest.raises(ValueError, match="work takes most of it"):
        check_fits(estimate(parts, mesh, *compile_all(parts, mesh))._replace(limit=10**8))


def test_trees_that_do_not_fit_are_rejected_with_a_number_that_fits(monkeypatch, tic_tac_toe):
    monkeypatch.setattr(memory, "device_memory", lambda: 10**9)
    for algorithm in ("puct", "gumbel"):
        config = ALGORITHMS[algorithm](num_simulations=10**6)
        check_trees(config, tic_tac_toe, 1)
        with pytest.raises(
            ValueError, match="trees of 1000000 simulations, 100 at a time, .* GB"
        ) as error:
            check_trees(config, tic_tac_toe, 100)
        advice = int(str(error.value).split("use at most ")[1].split()[0])
        check_trees(ALGORITHMS[algorithm](num_simulations=advice), tic_tac_toe, 100)
        with pytest.raises(ValueError, match="use at most"):
            more = ALGORITHMS[algorithm](num_simulations=advice + 4)
            check_trees(more, tic_tac_toe, 100)


def test_fewer_games_together_need_less_memory():
    mesh = training.make_mesh(jax.devices()[:1])
    few = change(TREES, selfplay={"games_at_once": 64})
    less, more = (estimate(make_parts(config), mesh) for config in (few, TREES))
    assert less.tree == more.tree / 8 and less.total < more.total / 2


def test_the_description_of_an_estimate():
    needs = Estimate(1_500_000, 2_000, 30, 4, 5_000_000_000, 7_000_000_000)
    assert memory.describe(needs, 2) == (
        "memory on each of 2 devices: 5.0 GB of 7.0 GB (network 1.5 MB, optimizer 2 kB, "
        "buffer 30 B, tree 4 B, work 5.0 GB)"
    )


def test_devices_of_one_machine_share_its_memory():
    one, two = (memory.device_memory(training.make_mesh(jax.devices()[:n])) for n in (1, 2))
    assert one // 2 == two > 1e8


def test_a_container_has_no_more_than_its_limit(monkeypatch):
    mesh = training.make_mesh(jax.devices()[:2])
    machine = memory.os.sysconf("SC_PHYS_PAGES") * memory.os.sysconf("SC_PAGE_SIZE")
    monkeypatch.setattr(memory.pathlib.Path, "exists", lambda path: True)
    for limit, bytes_each in (("2000000\n", 10**6), ("max\n", machine // 2)):
        monkeypatch.setattr(memory.pathlib.Path, "read_text", lambda path: limit)
        assert memory.device_memory(mesh) == bytes_each
