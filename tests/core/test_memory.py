"""The plan is what compiled programs use, and what does not fit is refused with what does."""

import dataclasses
import resource

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import games, memory, train
from azjax.evaluators import uniform_evaluator
from azjax.game import init_batch
from azjax.learner import LearnerConfig
from azjax.network import NetworkConfig
from azjax.replay import ReplayConfig
from azjax.search import SearchConfig, make_search
from azjax.selfplay import SelfPlayConfig
from azjax.train import Config

SMALL = Config(
    network=NetworkConfig(kind="mlp", hidden=(8,), head_hidden=8),
    search=SearchConfig(num_simulations=4),
    selfplay=SelfPlayConfig(games=64, plies=1),
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


# In each something else takes most of the memory; of large weights, gradients and copies do.
TREES = change(SMALL, search={"num_simulations": 64}, selfplay={"games": 512, "games_at_once": 512})
TREES = change(TREES, replay={"capacity": 512})
BUFFER = change(SMALL, replay={"capacity": 65_536})
ACTIVATIONS = change(
    SMALL, network={"kind": "tower", "channels": 16, "blocks": 1}, learner={"batch_size": 512}
)
ACTIVATIONS = change(ACTIVATIONS, replay={"capacity": 512})
WEIGHTS = change(SMALL, network={"hidden": (512, 512)})


@pytest.mark.parametrize(
    ("config", "largest"),
    [(TREES, "tree"), (BUFFER, "buffer"), (ACTIVATIONS, "work"), (WEIGHTS, "work")],
    ids=["trees", "buffer", "activations", "weights"],
)
@pytest.mark.slow
def test_the_plan_is_within_a_fifth_of_what_is_used(config, largest):
    mesh = train.make_mesh(jax.devices()[:2])
    iterate = train.make_iteration(config, mesh)
    plan = memory.plan_memory(config, mesh, iterate)
    compiled = iterate.lower(train.abstract_state(config, mesh)).compile()
    used = compiled.memory_analysis()
    total = used.argument_size_in_bytes + used.output_size_in_bytes - used.alias_size_in_bytes
    total += used.temp_size_in_bytes
    assert plan.total == pytest.approx(total, rel=0.2)
    assert plan.total == sum(plan[:5])
    assert max(plan[:5]) == getattr(plan, largest)


@pytest.mark.parametrize("name", games.available())
@pytest.mark.parametrize("algorithm", ["gumbel", "puct", "uct"])
def test_a_tree_is_as_large_as_said(name, algorithm):
    game, config = games.make(name), SearchConfig(algorithm, num_simulations=7)
    search = make_search(config, game, uniform_evaluator(game))
    keys = jax.random.split(jax.random.key(0), 3)
    tree = jax.eval_shape(search, None, keys, init_batch(game, 3)).tree
    sizes = [np.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree)]
    assert 3 * memory.tree_bytes(config, game) == sum(sizes)


@pytest.mark.parametrize(
    ("program", "squares"),
    [
        (lambda x: x @ x, 1),
        (lambda x: jnp.tanh(x @ x + 1), 1),  # Written over what they read.
        (lambda x: (x @ x) @ x, 2),
        (lambda x: ((x @ x) @ x) @ x, 2),  # The first is gone when the third is made.
        (lambda x: (x @ x, x @ x @ x), 3),
        (lambda x: jax.jit(lambda y: (y @ y) @ y)(x) @ x, 2),
        (lambda x: jax.lax.fori_loop(0, 9, lambda i, y: y @ x, x @ x), 2),
        (lambda x: jax.lax.scan(lambda y, _: (y, y @ x), x, None, 5)[1], 6),
    ],
)
def test_values_live_until_they_are_read_for_the_last_time(program, squares):
    size = 4 * 10 * 10
    jaxpr = jax.make_jaxpr(program)(jnp.zeros((10, 10))).jaxpr
    assert memory.peak_bytes(jaxpr) == pytest.approx(squares * size, abs=20)


def test_donated_arguments_are_used_again():
    jaxpr = jax.make_jaxpr(lambda x, y: x + y)(jnp.zeros(100), jnp.zeros(100)).jaxpr
    assert memory.peak_bytes(jaxpr) == 400
    assert memory.peak_bytes(jaxpr, jaxpr.invars[:1]) == 0


@pytest.mark.slow
def test_what_does_not_fit_is_refused_with_the_number_that_does():
    mesh = train.make_mesh(jax.devices()[:2])

    def plan(config, limit):
        found = memory.plan_memory(config, mesh, train.make_iteration(config, mesh))
        return found._replace(limit=limit)

    config = change(
        TREES,
        selfplay={"games": 4096, "games_at_once": 4096},
        replay={"capacity": 8192},
    )
    limit = plan(config, 0).total * 2 // 3
    with pytest.raises(ValueError, match="selfplay.games is 4096, which needs .* MB") as error:
        memory.check_memory(config, mesh, plan(config, limit))
    advice = int(str(error.value).split("use at most ")[1].split(",")[0])
    assert 2048 < advice < 4096 and advice % config.replay.shards == 0
    fits = change(config, selfplay={"games": advice})
    memory.check_memory(fits, mesh, plan(fits, limit))
    more = change(config, selfplay={"games": advice * 21 // 20 // 2 * 2})
    with pytest.raises(ValueError, match="use at most"):
        memory.check_memory(more, mesh, plan(more, limit))


def test_a_run_that_never_fits_is_refused():
    mesh = train.make_mesh(jax.devices()[:1])
    plan = memory.plan_memory(SMALL, mesh, train.make_iteration(SMALL, mesh))
    with pytest.raises(ValueError, match="whatever the number of games: use a smaller replay.cap"):
        memory.check_memory(SMALL, mesh, plan._replace(limit=1000))


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"search": {"num_simulations": 10**6}}, "whatever .*: use fewer search.num_simulations"),
        ({"replay": {"capacity": 10**9}}, "whatever .*: use a smaller replay.capacity"),
        (
            {"selfplay": {"games": 10**9, "games_at_once": 10**9}, "replay": {"capacity": 10**9}},
            "whatever .*: use a smaller replay.capacity",
        ),
        (
            {"selfplay": {"games": 10**9 // 2}, "replay": {"capacity": 10**9 // 2}},
            "replay.capacity",
        ),
        (
            {"learner": {"batch_size": 10**9}, "replay": {"capacity": 10**9}},
            "whatever .*: use a smaller .* learner.batch_size",
        ),
        ({"learner": {"steps": 10**9}}, "whatever .*: use a smaller .* learner.steps"),
        ({"selfplay": {"opening_plies": 10**6}}, "whatever .*: use a smaller .*opening_plies"),
        ({"network": {"hidden": (65_536, 65_536)}}, "whatever .*: use a smaller network"),
        ({"selfplay": {"temperature_plies": 10**9}}, None),
        ({"learner": {"warmup_steps": 10**9, "decay_steps": 10**9}}, None),
        ({"search": {"max_considered_actions": 10**9}}, None),
        ({"network": {"head_hidden": 65_536}}, None),
    ],
)
@pytest.mark.slow
def test_settings_at_their_upper_bounds_are_planned(sections, said):
    """What needs more memory than there is says so, and what needs none is planned as usual."""
    config, mesh = change(SMALL, **sections), train.make_mesh(jax.devices()[:1])
    train.check(config, 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    plan = memory.plan_memory(config, mesh, train.make_iteration(config, mesh))
    plan = plan._replace(limit=min(plan.limit, 10**8))  # Some machines could hold some of these.
    if said is None:
        assert plan.total < 10**8
        return
    with pytest.raises(ValueError, match=said):
        memory.check_memory(config, mesh, plan)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # Kilobytes.


@pytest.mark.slow
def test_games_that_start_need_memory_too():
    mesh = train.make_mesh(jax.devices()[:1])
    config = change(SMALL, selfplay={"games": 4096, "games_at_once": 1}, replay={"capacity": 4096})
    longer = change(config, selfplay={"opening_plies": 1000})
    less, more = (
        memory.plan_memory(c, mesh, train.make_iteration(c, mesh)) for c in (config, longer)
    )
    assert more.total - less.total > 4096 * 900 * 9 * 4


def test_trees_that_do_not_fit_are_refused_with_the_number_that_does(monkeypatch, tic_tac_toe):
    monkeypatch.setattr(memory, "device_memory", lambda mesh: 10**9)
    for algorithm in ("puct", "gumbel"):
        config = SearchConfig(algorithm, num_simulations=10**6)
        memory.check_trees(config, tic_tac_toe, 1)
        with pytest.raises(
            ValueError, match="trees of 1000000 simulations, 100 at a time, .* GB"
        ) as error:
            memory.check_trees(config, tic_tac_toe, 100)
        advice = int(str(error.value).split("use at most ")[1].split()[0])
        memory.check_trees(SearchConfig(algorithm, num_simulations=advice), tic_tac_toe, 100)
        with pytest.raises(ValueError, match="use at most"):
            more = SearchConfig(algorithm, num_simulations=advice + 4)
            memory.check_trees(more, tic_tac_toe, 100)


def test_fewer_games_at_once_need_less():
    mesh = train.make_mesh(jax.devices()[:1])
    config = change(TREES, selfplay={"games_at_once": 64})
    less, more = (
        memory.plan_memory(c, mesh, train.make_iteration(c, mesh)) for c in (config, TREES)
    )
    assert less.tree == more.tree / 8 and less.total < more.total / 2


def test_a_plan_in_words(tmp_path):
    plan = memory.MemoryPlan(1_500_000, 2_000, 30, 4, 5_000_000_000, 7_000_000_000)
    assert memory.describe_plan(plan, 2) == (
        "memory on each of 2 devices: 5.0 GB of 7.0 GB (network 1.5 MB, optimizer 2 kB, "
        "buffer 30 B, tree 4 B, work 5.0 GB)"
    )


def test_devices_of_one_machine_share_its_memory():
    one, two = (memory.device_memory(train.make_mesh(jax.devices()[:n])) for n in (1, 2))
    assert one // 2 == two > 1e8
