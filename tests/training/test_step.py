"""An iteration is reproducible, the same on 1 and 8 devices, and compiled once; it learns."""

import contextlib
import dataclasses
import functools
import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from azjax import training
from azjax.networks import MLPConfig
from azjax.proof.verify import verify
from azjax.runs import presets
from azjax.runs.config import Config, make_parts
from azjax.search import Gumbel
from azjax.training import sharding
from azjax.training.learner import LearnerConfig
from azjax.training.replay import ReplayConfig
from azjax.training.selfplay import SelfPlayConfig
from small import NAMES, conv

# A network with BatchNorm, so that statistics are compared, and large steps. SGD, since Adam
# amplifies rounding errors of gradients near zero.
TOWER = Config(
    network=conv(width=4, blocks=0, head_hidden=4),
    search=Gumbel(num_simulations=4),
    selfplay=SelfPlayConfig(games=16, unroll_length=4),
    replay=ReplayConfig(capacity=128, shards=8),
    learner=LearnerConfig(
        batch_size=16, steps=3, optimizer="sgd", learning_rate=0.1, warmup_steps=0, l2=1e-3
    ),
)


class Run:
    """A compiled iteration on some devices, and the results of its first two calls."""

    def __init__(self, config, num_devices):
        self.mesh = training.make_mesh(jax.devices()[:num_devices])
        self.iterate = training.make_iteration(make_parts(config), self.mesh)
        self.before = training.make_state(
            make_parts(config), jax.random.key(config.seed), self.mesh
        )
        self.after, self.metrics = self.iterate(copy(self.before))
        again = copy(self.after)
        with compilations() as self.compiled_again:
            self.later, _ = jax.block_until_ready(self.iterate(again))


def copy(state):
    """Returns a copy that can be donated."""
    return jax.tree.map(jnp.copy, state)


@contextlib.contextmanager
def compilations():
    """A list to which JAX appends the names of compilation events."""
    heard = []

    def listen(event, duration, **details):
        if "compile" in event:
            heard.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield heard
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


@pytest.fixture(scope="module")
def one():
    return Run(TOWER, 1)


@pytest.fixture(scope="module")
def eight():
    return Run(TOWER, 8)


@pytest.fixture(params=["eight", pytest.param("one", marks=pytest.mark.slow)])
def either(request):
    return request.getfixturevalue(request.param)


def to_host(tree):
    """Returns NumPy arrays, with typed keys as data."""

    def convert(leaf):
        is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(leaf) if is_key else leaf)

    return jax.tree.map(convert, tree)


def assert_equal(*trees):
    jax.tree.map(np.testing.assert_array_equal, *map(to_host, trees))


# --- Reproducible ------------------------------------------------------------------------


def test_an_iteration_is_reproducible_bit_for_bit(eight):
    assert_equal(eight.iterate(copy(eight.before)), (eight.after, eight.metrics))


@pytest.mark.slow
def test_the_start_depends_only_on_the_seed(one, eight):
    assert_equal(one.before, eight.before)
    other = jax.jit(lambda: training.init(make_parts(TOWER), jax.random.key(1)).games.ply)()
    assert (other != one.before.games.ply).any()


@pytest.mark.slow
def test_one_device_and_eight_agree(one, eight):
    assert_equal(one.after.games, eight.after.games)
    assert_equal(one.metrics.games, eight.metrics.games)
    for ours, theirs in (
        (one.after.replay, eight.after.replay),
        (one.metrics.losses, eight.metrics.losses),
        (one.after.learner, eight.after.learner),
    ):
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5),
            *map(to_host, (ours, theirs)),
        )


def test_every_iteration_has_new_random_draws(eight):
    # The games and the network are the same, but the iteration number differs.
    counted_on = copy(eight.before).replace(iteration=eight.before.iteration + 1)
    assert (eight.iterate(counted_on)[0].games.states.board != eight.after.games.states.board).any()


def test_the_average_plays_and_the_parameters_learn(eight):
    def perturb(name):
        learner = eight.before.learner
        changed = jax.tree.map(lambda x: x + 0.1, getattr(learner, name))
        state = eight.before.replace(learner=learner._replace(**{name: changed}))
        return eight.iterate(copy(state))[0]

    assert_equal(perturb("variables").replay, eight.after.replay)
    with pytest.raises(AssertionError):
        assert_equal(perturb("ema_params").replay, eight.after.replay)


def test_an_iteration_changes_what_it_should(eight):
    for before, after in zip(
        *map(jax.tree.leaves, (eight.before.learner, eight.after.learner)), strict=True
    ):
        assert (to_host(before) != to_host(after)).any()
    assert_equal(eight.before.key, eight.after.key)
    assert (eight.before.iteration, eight.after.iteration) == (0, 1)
    assert eight.after.learner.step == TOWER.learner.steps


def test_every_device_holds_the_same_parameters_and_statistics(eight):
    assert "batch_stats" in eight.after.learner.variables
    for leaf in jax.tree.leaves(eight.after.learner):
        first, *others = (np.asarray(shard.data) for shard in leaf.addressable_shards)
        assert len(others) == 7
        for other in others:
            np.testing.assert_array_equal(first, other)


def test_samples_are_stored_shard_by_shard(eight):
    parts, shards = make_parts(TOWER), TOWER.replay.shards
    draw = jax.jit(jax.vmap(parts.replay.sample, in_axes=(None, 0)))
    keys = jax.random.split(jax.random.key(0), (200, shards))
    played = TOWER.selfplay.games * TOWER.selfplay.unroll_length // shards
    for state, expected in ((eight.after, played), (eight.later, 2 * played)):
        drawn = to_host(draw(jax.device_get(state.replay), keys))
        assert drawn.legal.any(axis=-1).all()
        np.testing.assert_allclose(drawn.policy.sum(axis=-1), 1, atol=1e-5)
        assert (abs(drawn.value) <= 1).all()
        for policies in np.split(drawn.policy.reshape(200, shards, -1, 9), shards, axis=1):
            found = len(np.unique(policies.reshape(-1, 9), axis=0))
            assert expected / 2 < found <= expected


# --- Compiled once, and well -------------------------------------------------------------


def test_the_second_call_compiles_nothing(either):
    with compilations() as heard:
        jax.jit(lambda x: x + 1)(0)
    assert heard
    assert either.compiled_again == []


def test_a_state_keeps_its_types_and_shardings(either):
    promised = training.abstract_state(make_parts(TOWER), either.mesh)
    for state in (either.before, either.after, either.later):
        assert jax.tree.structure(state) == jax.tree.structure(promised)
        for leaf, expected in zip(*map(jax.tree.leaves, (state, promised)), strict=True):
            assert (leaf.shape, leaf.dtype) == (expected.shape, expected.dtype)
            assert leaf.sharding.is_equivalent_to(expected.sharding, leaf.ndim)
            assert not getattr(leaf, "weak_type", False)


def test_the_old_state_is_donated(eight):
    state = copy(eight.before)
    eight.iterate(state)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(state))


COLLECTIVES = r"\b(all-reduce|all-gather|all-to-all|reduce-scatter|collective-\w+)(-start)?\("


def loops_with_collectives(hlo):
    """Returns the bodies of while loops with collectives in a compiled program."""
    bodies = dict(re.findall(r"^(?:ENTRY )?%?([\w.-]+) \(.*?\{\n(.*?)^\}", hlo, re.M | re.S))
    calls = {name: set(re.findall(r"[\w.-]+", text)) & set(bodies) for name, text in bodies.items()}
    talking = {name for name, text in bodies.items() if re.search(COLLECTIVES, text)}
    while callers := {name for name in bodies if calls[name] & talking} - talking:
        talking |= callers
    loops = set(re.findall(r"\bbody=%?([\w.-]+)", hlo))
    assert len(loops & set(bodies)) > 3, "the program's loops were not found"
    return loops & talking


def test_only_the_optimizer_communicates_with_other_devices(eight):
    # One loop makes the optimizer steps; self-play with its searches is another. A collective
    # inside a search would wait for the other device at every node.
    hlo = eight.iterate.lower(eight.before).compile().as_text()
    assert len(loops_with_collectives(hlo)) == 1


# --- Settings ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "num_devices"),
    [
        ("replay.shards", 4, 3),
        ("replay.shards", 1, 2),
        ("replay.shards", 48, 2),  # More than the number of games.
        ("selfplay.games", 18, 1),
        ("learner.batch_size", 14, 2),
        ("replay.capacity", 95, 1),
    ],
)
def test_contradictory_settings_are_rejected_with_one_that_works(name, value, num_devices):
    sound = dataclasses.replace(
        TOWER,
        selfplay=SelfPlayConfig(games=24, unroll_length=4),
        replay=ReplayConfig(capacity=960, shards=4),
        learner=LearnerConfig(batch_size=24),
    )
    with pytest.raises(ValueError, match=f"{name} is {value}, ") as error:
        training.check_parts(make_parts(with_setting(sound, name, value)), num_devices)
    advice = int(re.findall(r"\d+", str(error.value))[-1])
    assert advice != value
    training.check_parts(make_parts(with_setting(sound, name, advice)), num_devices)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("learner.batch_size", 30, "learner.batch_size is 30, "),  # Its shards would draw 24.
        ("learner.batch_size", 4, "(replay.shards is 8|learner.batch_size is 4), .* (4|8)"),
        ("replay.capacity", 63, "replay.capacity is 63, "),
    ],
)
def test_contradictions_are_rejected_without_a_program(name, value, said):
    parts, mesh = make_parts(with_setting(TOWER, name, value)), training.make_mesh()
    state, key = training.abstract_state(make_parts(TOWER), mesh), jax.random.key(0)
    on_mesh = sharding._on_mesh(
        mesh, lambda state: training.iteration(parts, state, training.AXIS), P()
    )
    for call in (
        lambda: training.init(parts, key),
        lambda: jax.eval_shape(functools.partial(training.iteration, parts), state),
        lambda: jax.eval_shape(on_mesh, state),
        *functions_of_a_mesh(parts, mesh),
    ):
        with pytest.raises(ValueError, match=said):
            call()


def functions_of_a_mesh(parts, mesh):
    return [
        lambda: training.make_iteration(parts, mesh),
        lambda: training.make_play(parts, mesh),
        lambda: training.make_state(parts, jax.random.key(0), mesh),
        lambda: training.abstract_state(parts, mesh),
    ]


def test_devices_that_do_not_divide_the_shards_are_rejected_without_a_program():
    for call in functions_of_a_mesh(make_parts(TOWER), training.make_mesh(jax.devices()[:3])):
        with pytest.raises(ValueError, match="replay.shards is 8, not a multiple of"):
            call()


def test_too_many_shards_are_rejected_if_the_games_must_change():
    selfplay, learner = SelfPlayConfig(games=24), LearnerConfig(batch_size=24)
    config = Config(selfplay=selfplay, learner=learner, replay=ReplayConfig(shards=50_000))
    with pytest.raises(ValueError, match=r"replay.shards is 50000, more than .*: use 5$"):
        training.check_parts(make_parts(config), 5)


def test_advice_on_shards_leads_to_settings_that_work():
    """However few games there are: each advice is followed until there is none, at most 4 times."""
    tried = set()
    for shards, games, batch, devices in itertools.product((1, 2, 6), (1, 3, 4), (1, 2, 4), (1, 2)):
        config = dataclasses.replace(
            TOWER,
            selfplay=SelfPlayConfig(games=games, unroll_length=1),
            replay=ReplayConfig(capacity=960, shards=shards),
            learner=LearnerConfig(batch_size=batch),
        )
        for _ in range(4):
            try:
                training.check_parts(make_parts(config), devices)
                break
            except ValueError as error:
                name, advice = re.search(
                    r"^(\S+) is .*\b(\d+)( or a multiple of it)?$", str(error)
                ).group(1, 2)
                tried.add(name)
                config = with_setting(config, name, int(advice))
        training.check_parts(make_parts(config), devices)
    assert tried == {"replay.shards", "selfplay.games", "learner.batch_size"}


def test_more_moves_than_any_buffer_holds_are_rejected():
    selfplay, replay = SelfPlayConfig(games=10**9, unroll_length=8), ReplayConfig(capacity=10**9)
    config = Config(selfplay=selfplay, replay=replay)
    with pytest.raises(ValueError, match=r"selfplay.unroll_length is 8, .*: use at most 1$"):
        training.check_parts(make_parts(config), 1)


def with_setting(config, name, value):
    section, field = name.split(".")
    changed = dataclasses.replace(getattr(config, section), **{field: value})
    return dataclasses.replace(config, **{section: changed})


def test_the_default_settings_are_the_preset_default():
    assert Config() == presets.get("default")


def test_an_unknown_game_or_preset_is_rejected():
    with pytest.raises(ValueError, match="unknown game 'chess': use one of tic_tac_toe"):
        make_parts(Config(game="chess"))
    with pytest.raises(ValueError, match="unknown preset 'best': use one of default, paper, mlp"):
        presets.get("best")


@pytest.mark.slow_after(12)
@pytest.mark.parametrize("game", NAMES)
@pytest.mark.parametrize("name", presets.PRESETS)
def test_presets_build_and_shrink(name, game):
    config = dataclasses.replace(presets.get(name), game=game)
    for settings in (config, presets.smoke(config)):
        for num_devices in (1, 2):
            training.check_parts(make_parts(settings), num_devices)
    mesh = training.make_mesh(jax.devices()[:1])
    size, small = (
        sum(leaf.size for leaf in jax.tree.leaves(training.abstract_state(make_parts(c), mesh)))
        for c in (config, presets.smoke(config))
    )
    assert small < size / 5


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("name", presets.PRESETS)
def test_small_presets_trace(name):
    config = presets.smoke(presets.get(name))
    mesh = training.make_mesh(jax.devices()[:1])
    state = training.abstract_state(make_parts(config), mesh)
    after, metrics = jax.eval_shape(training.make_iteration(make_parts(config), mesh), state)
    assert jax.tree.map(lambda x: x.shape, after) == jax.tree.map(lambda x: x.shape, state)
    assert all(leaf.shape == () for leaf in jax.tree.leaves(metrics))


# --- Many trainings -----------------------------------------------------------------------


@pytest.mark.slow
def test_sixteen_trainings_in_one_program_equal_separate_ones():
    """Batched products may round differently, so only the games are equal bit for bit."""
    parts = make_parts(presets.smoke(presets.get("mlp")))
    step = functools.partial(training.iteration, parts)

    def run(key):
        return jax.lax.scan(lambda state, _: step(state), training.init(parts, key), length=2)

    keys = jax.vmap(jax.random.key)(jnp.arange(16))
    together, alone = jax.jit(jax.vmap(run))(keys), jax.jit(run)
    assert len({leaf.tobytes() for leaf in np.asarray(together[0].games.states.board)}) == 16
    for row, key in enumerate(keys):
        (state, metrics), expected = jax.tree.map(lambda leaf, r=row: leaf[r], together), alone(key)
        assert_equal(state.games, expected[0].games)
        assert_equal(metrics.games, expected[1].games)
        for ours, theirs in ((state.learner, expected[0].learner), (metrics, expected[1])):
            jax.tree.map(
                lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5), ours, theirs
            )


# --- Learning ----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_few_iterations_improve_the_player(solution):
    config = Config(
        network=MLPConfig(hidden=(64,), head_hidden=32),
        search=Gumbel(num_simulations=16),
        selfplay=SelfPlayConfig(games=128, unroll_length=8),
        replay=ReplayConfig(capacity=8192, shards=1),
        learner=LearnerConfig(batch_size=256, steps=32, learning_rate=5e-3, warmup_steps=0),
    )
    mesh = training.make_mesh(jax.devices()[:1])
    parts = make_parts(config)

    @jax.jit
    def judge(state):
        folded = parts.network.fold(state.learner.ema_params)
        return verify(solution, lambda states: parts.evaluate(folded, None, states))

    state = training.make_state(parts, jax.random.key(0), mesh)
    iterate = training.make_iteration(parts, mesh)
    untrained, losses, moves = judge(state), [], 0
    for _ in range(8):
        state, metrics = iterate(state)
        losses.append(metrics.losses)
        moves += int(metrics.moves)
        assert metrics.games > 0
    trained = judge(state)
    assert moves == 8 * 128 * 8
    assert all(np.isfinite(leaf) for leaf in jax.tree.leaves(losses))
    assert losses[-1]["policy_kl"] < losses[0]["policy_kl"] / 2
    assert trained.blunders < untrained.blunders / 2
    assert trained.value_error < untrained.value_error
    assert (trained.losing_lines < untrained.losing_lines / 2).all()
