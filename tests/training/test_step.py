"""An iteration is reproducible, the same on 1 and 2 devices, and compiled once; it learns."""

import dataclasses
import functools
import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

import trainings
from azjax import training
from azjax.networks import MLPConfig
from azjax.proof.verify import verify
from azjax.runs import presets
from azjax.runs.config import Config, make_parts
from azjax.search import Gumbel
from azjax.training import sharding
from azjax.training.learner import LearnerConfig
from azjax.training.parts import SelfPlayConfig
from azjax.training.replay import ReplayConfig
from refusals import assert_refused
from small import NAMES
from trainings import CONFIG, assert_equal, compilations, copy, to_host


@pytest.fixture
def one():
    return trainings.run(1)


@pytest.fixture
def two():
    return trainings.run(2)


# --- Reproducible ------------------------------------------------------------------------


def test_an_iteration_is_reproducible_bit_for_bit(two):
    assert_equal(two.iterate(copy(two.before)), (two.after, two.metrics))


def test_one_device_and_two_agree(one, two):
    assert_equal(one.before, two.before)
    assert_equal(one.after.games, two.after.games)
    assert_equal(one.metrics.games, two.metrics.games)
    for ours, theirs in (
        (one.after.replay, two.after.replay),
        (one.metrics.losses, two.metrics.losses),
        (one.after.learner, two.after.learner),
    ):
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5),
            *map(to_host, (ours, theirs)),
        )


def test_every_iteration_has_new_random_draws(two):
    # The games and the network are the same, but the iteration number differs.
    counted_on = copy(two.before).replace(iteration=two.before.iteration + 1)
    assert (two.iterate(counted_on)[0].games.states.board != two.after.games.states.board).any()


def test_the_average_plays_and_the_parameters_learn(two):
    def perturb(name):
        learner = two.before.learner
        changed = jax.tree.map(lambda x: x + 0.1, getattr(learner, name))
        state = two.before.replace(learner=learner._replace(**{name: changed}))
        return two.iterate(copy(state))[0]

    assert_equal(perturb("variables").replay, two.after.replay)
    with pytest.raises(AssertionError):
        assert_equal(perturb("average").replay, two.after.replay)


def test_an_iteration_changes_what_it_should(two):
    for before, after in zip(
        *map(jax.tree.leaves, (two.before.learner, two.after.learner)), strict=True
    ):
        assert (to_host(before) != to_host(after)).any()
    assert_equal(two.before.key, two.after.key)
    assert (two.before.iteration, two.after.iteration) == (0, 1)
    assert two.after.learner.step == CONFIG.learner.steps


def test_every_device_holds_the_same_parameters_and_statistics(two):
    assert "batch_stats" in two.after.learner.variables
    for leaf in jax.tree.leaves(two.after.learner):
        first, *others = (np.asarray(shard.data) for shard in leaf.addressable_shards)
        assert len(others) == 1
        for other in others:
            np.testing.assert_array_equal(first, other)


def test_samples_are_stored_shard_by_shard(two):
    parts, shards = make_parts(CONFIG), CONFIG.replay.shards
    draw = jax.jit(jax.vmap(parts.replay.sample, in_axes=(None, 0)))
    keys = jax.random.split(jax.random.key(0), (200, shards))
    played = CONFIG.selfplay.games * CONFIG.selfplay.unroll_length // shards
    for state, expected in ((two.after, played), (two.later, 2 * played)):
        drawn = to_host(draw(jax.device_get(state.replay), keys))
        assert drawn.legal.any(axis=-1).all()
        np.testing.assert_allclose(drawn.policy.sum(axis=-1), 1, atol=1e-5)
        assert (abs(drawn.value) <= 1).all()
        for policies in np.split(drawn.policy.reshape(200, shards, -1, 9), shards, axis=1):
            found = len(np.unique(policies.reshape(-1, 9), axis=0))
            assert expected / 2 < found <= expected


# --- Compiled once, and well -------------------------------------------------------------


def test_the_second_call_compiles_nothing(one, two):
    with compilations() as heard:
        jax.jit(lambda x: x + 1)(0)
    assert heard
    assert one.compiled_again == two.compiled_again == []


def test_a_state_keeps_its_types_and_shardings(two):
    promised = training.abstract_state(make_parts(CONFIG), two.mesh)
    for state in (two.before, two.after, two.later):
        assert jax.tree.structure(state) == jax.tree.structure(promised)
        for leaf, expected in zip(*map(jax.tree.leaves, (state, promised)), strict=True):
            assert (leaf.shape, leaf.dtype) == (expected.shape, expected.dtype)
            assert leaf.sharding.is_equivalent_to(expected.sharding, leaf.ndim)
            assert not getattr(leaf, "weak_type", False)


def test_the_old_state_is_donated(two):
    state = copy(two.before)
    two.iterate(state)
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


def test_only_the_optimizer_communicates_with_other_devices(two):
    # One loop makes the optimizer steps; self-play with its searches is another. A collective
    # inside a search would wait for the other device at every node.
    hlo = two.iterate.lower(two.before).compile().as_text()
    assert len(loops_with_collectives(hlo)) == 1


# --- Settings ----------------------------------------------------------------------------


def test_contradictory_settings_are_rejected_with_one_that_works():
    sound = dataclasses.replace(
        CONFIG,
        selfplay=SelfPlayConfig(games=24, unroll_length=4),
        replay=ReplayConfig(capacity=960, shards=4),
        learner=LearnerConfig(batch_size=24),
    )
    for name, value, num_devices in [
        ("replay.shards", 4, 3),
        ("replay.shards", 1, 2),
        ("replay.shards", 48, 2),  # More than the number of games.
        ("selfplay.games", 18, 1),
        ("learner.batch_size", 14, 2),
        ("replay.capacity", 95, 1),
    ]:
        with pytest.raises(ValueError, match=f"{name} is {value}, ") as error:
            training.check_parts(make_parts(with_setting(sound, name, value)), num_devices)
        advice = int(re.findall(r"\d+", str(error.value))[-1])
        assert advice != value
        training.check_parts(make_parts(with_setting(sound, name, advice)), num_devices)


def functions_of_a_mesh(parts, mesh):
    return [
        lambda: training.make_iteration(parts, mesh),
        lambda: training.make_play(parts, mesh),
        lambda: training.make_state(parts, jax.random.key(0), mesh),
        lambda: training.abstract_state(parts, mesh),
    ]


def functions_of_parts(parts):
    mesh = training.make_mesh()
    state, key = training.abstract_state(make_parts(CONFIG), mesh), jax.random.key(0)
    on_mesh = sharding._on_mesh(
        mesh, lambda state: training.iteration(parts, state, training.AXIS), P()
    )
    return [
        lambda: training.init(parts, key),
        lambda: jax.eval_shape(functools.partial(training.iteration, parts), state),
        lambda: jax.eval_shape(on_mesh, state),
        *functions_of_a_mesh(parts, mesh),
    ]


def test_contradictions_are_rejected_without_a_program():
    cases = []
    for name, value, fragment in [
        ("learner.batch_size", 30, "learner.batch_size is 30, "),  # Its shards would draw 24.
        ("learner.batch_size", 4, "batch...4"),
        ("replay.capacity", 511, "replay.capacity is 511, "),
    ]:
        parts = make_parts(with_setting(CONFIG, name, value))
        cases += [(call, fragment) for call in functions_of_parts(parts)]
    three = training.make_mesh(jax.devices()[:3])
    for call in functions_of_a_mesh(make_parts(CONFIG), three):
        cases.append((call, "replay.shards is 8, not a multiple of"))
    many = Config(  # The games would have to change.
        selfplay=SelfPlayConfig(games=24),
        learner=LearnerConfig(batch_size=24),
        replay=ReplayConfig(shards=50_000),
    )
    cases.append((lambda: training.check_parts(make_parts(many), 5), "50000, more than...: use 5"))
    long = Config(
        selfplay=SelfPlayConfig(games=10**9, unroll_length=8), replay=ReplayConfig(capacity=10**9)
    )  # More moves than any buffer holds.
    cases.append((lambda: training.check_parts(make_parts(long), 1), "is 8, ...use at most 1"))
    cases.append((lambda: make_parts(Config(game="chess")), "unknown game 'chess': use one of tic"))
    cases.append((lambda: presets.get("best"), "unknown preset 'best': use one of default, paper"))
    assert_refused(*cases)


def test_advice_on_shards_leads_to_settings_that_work():
    """However few games there are: each advice is followed until there is none, at most 4 times."""
    tried = set()
    for shards, games, batch, devices in itertools.product((1, 2, 6), (1, 3, 4), (1, 2, 4), (1, 2)):
        config = dataclasses.replace(
            CONFIG,
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


def with_setting(config, name, value):
    section, field = name.split(".")
    changed = dataclasses.replace(getattr(config, section), **{field: value})
    return dataclasses.replace(config, **{section: changed})


def test_the_default_settings_are_the_preset_default():
    assert Config() == presets.get("default")


def test_presets_build_and_shrink():
    """Each for another game."""
    mesh = training.make_mesh(jax.devices()[:1])
    for number, name in enumerate(presets.PRESETS):
        config = dataclasses.replace(presets.get(name), game=NAMES[number % len(NAMES)])
        sizes = []
        for settings in (config, presets.smoke(config)):
            parts = make_parts(settings)
            for num_devices in (1, 2):
                training.check_parts(parts, num_devices)
            leaves = jax.tree.leaves(training.abstract_state(parts, mesh))
            sizes.append(sum(leaf.size for leaf in leaves))
        assert sizes[1] < sizes[0] / 5, name


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
        folded = parts.network.fold(state.learner.average)
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
