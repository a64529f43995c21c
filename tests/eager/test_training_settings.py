"""Settings and parts of training that do not work, choices by platform, memory, and the doctor."""

import dataclasses
import functools
import re
import types

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import diagnosis, training
from azjax.cli import doctor
from azjax.diagnosis import Finding
from azjax.games import init_batch, make
from azjax.networks import MLPConfig, base, make_network
from azjax.players import network_agent
from azjax.players.arena import Match, Tally
from azjax.runs import Config, create_run, make_parts
from azjax.search import PUCT, Gumbel, make_search, paths, simulate
from azjax.search.evaluators import network_evaluator, uniform_evaluator
from azjax.training import LearnerConfig, ReplayConfig, Sample, SelfPlayConfig, check_parts, memory
from azjax.training.memory import check_fits, check_trees
from refusals import assert_refused

TINY = MLPConfig(hidden=(4,), head_hidden=4)
CONFIG = Config(
    network=TINY,
    selfplay=SelfPlayConfig(games=64, unroll_length=8),
    replay=ReplayConfig(capacity=1024, shards=8),
    learner=LearnerConfig(batch_size=16, steps=3),
)


def change(config, **sections):
    """Returns a configuration with changed settings in some sections."""
    old = {name: getattr(config, name) for name in sections}
    new = {name: dataclasses.replace(old[name], **fields) for name, fields in sections.items()}
    return dataclasses.replace(config, **new)


def test_contradictory_settings_are_rejected_with_one_that_works():
    sound = change(
        CONFIG,
        selfplay={"games": 24, "unroll_length": 4},
        replay={"capacity": 960, "shards": 4},
        learner={"batch_size": 24},
    )

    def check(section, field, value, num_devices):
        changed = change(sound, **{section: {field: value}})
        training.check_parts(make_parts(changed), num_devices)

    for section, field, value, num_devices in (
        *[("replay", "shards", 4, 3), ("replay", "shards", 1, 2), ("replay", "capacity", 95, 1)],
        *[("selfplay", "games", 18, 1), ("selfplay", "games", 2, 1)],
        ("learner", "batch_size", 14, 2),
    ):
        with pytest.raises(ValueError, match=f"^{section}.{field} is {value}, ") as error:
            check(section, field, value, num_devices)
        advice = int(re.findall(r"\d+", str(error.value))[-1])
        assert advice != value
        check(section, field, advice, num_devices)


def test_contradictions_are_rejected_by_every_function():
    mesh, three = training.make_mesh(), training.make_mesh(jax.devices()[:3])
    state = training.abstract_state(make_parts(CONFIG), mesh)

    def functions(parts, mesh):
        yield lambda: training.make_iteration(parts, mesh)
        yield lambda: training.make_state(parts, jax.random.key(0), mesh)
        yield lambda: training.abstract_state(parts, mesh)

    wrong = make_parts(change(CONFIG, learner={"batch_size": 30}))
    calls = [*functions(wrong, mesh), lambda: training.init(wrong, jax.random.key(0))]
    calls.append(lambda: training.iteration(wrong, state))
    assert_refused(
        *((call, "learner.batch_size is 30, ") for call in calls),
        *((call, "replay.shards is 8, not a") for call in functions(make_parts(CONFIG), three)),
    )


def test_choices_depend_on_the_platform(monkeypatch):
    for platform, asked, expected in [
        *((platform, 0, 0) for platform in ("cuda", "gpu", "rocm", "tpu")),
        *((None, 0, 256), ("cpu", 0, 256), ("cpu", 64, 64), ("tpu", 64, 64)),
    ]:
        selfplay = dataclasses.replace(CONFIG.selfplay, games_at_once=asked)
        parts = make_parts(dataclasses.replace(CONFIG, selfplay=selfplay), platform=platform)
        assert parts.grow == (paths if platform in ("cuda", "gpu", "rocm") else simulate).grow
        assert parts.selfplay == dataclasses.replace(selfplay, games_at_once=expected)
    assert training.compiler_options() == {"xla_backend_optimization_level": 1}
    assert training.compiler_options(often=False) == {"xla_backend_optimization_level": 0}
    with monkeypatch.context() as patch:
        patch.setattr(jax, "default_backend", lambda: "gpu")
        assert training.compiler_options(often=False) == {}
        graphs = training.compiler_options()
    assert {"WHILE", "CONDITIONAL"} <= {*graphs["xla_gpu_enable_command_buffer"].split(",")}
    jax.jit(jnp.sin).lower(0.0).compile(graphs)  # XLA refuses unknown names.
    with pytest.raises(jax.errors.JaxRuntimeError, match="not a valid enum"):
        jax.jit(jnp.sin).lower(0.0).compile({"xla_gpu_enable_command_buffer": "LOOP"})
    said = "platform is 'metal': use 'cpu', 'gpu', 'cuda', "
    assert_refused(
        (lambda: make_parts(CONFIG, platform="metal"), said),
        (lambda: make_network(TINY, make("tic_tac_toe"), "metal"), said),
    )
    for capability, expected in [
        *(("7.5", "float32"), ("8.0", "bfloat16"), ("12.0", "bfloat16")),
        *(("gfx90a", "bfloat16"), (None, "bfloat16")),
    ]:
        about = {} if capability is None else {"compute_capability": capability}
        device = types.SimpleNamespace(platform="gpu", **about)
        monkeypatch.setattr(jax, "devices", lambda d=device: [types.SimpleNamespace(), d])
        assert base.choose_dtype("auto", "cuda", False) == expected
        assert base.choose_dtype("auto", "tpu", False) == "bfloat16"


def test_a_population_trains_in_one_program():
    """The settings that determine no shape may be traced; parts of other settings stay the same."""

    def run(rate, c_puct):
        config = dataclasses.replace(CONFIG, search=PUCT(num_simulations=2, c_puct=c_puct))
        parts = make_parts(change(config, learner={"learning_rate": rate}))
        return training.iteration(parts, training.init(parts, jax.random.key(0)))[1]

    metrics = jax.eval_shape(jax.vmap(run), jnp.ones(3), jnp.ones(3))
    assert metrics.losses["loss"].shape == (3,)
    assert make_parts(CONFIG) is make_parts(CONFIG)


PARTS, OTHER, SEARCH = make_parts(CONFIG), make("connect_four"), PUCT(num_simulations=2)
GAME, NETWORK = PARTS.game, PARTS.network
MIXED = "the network was made for planes [3, 3, 2] and 9 actions, and connect_four has [6, 7, 2]"


def test_parts_that_do_not_fit_together():
    check_parts(PARTS)
    network = nn.Dense(3)
    changes = [
        ({"game": OTHER}, MIXED),
        ({"game": "tic_tac_toe"}, "parts.game is 'tic_tac_toe', which is not of type Game"),
        ({"learner": None}, "parts.learner is None, which is not of type Learner"),
        ({"network": TINY}, "the network is of type MLPConfig: use a Network"),
        ({"search": PUCT}, "the search is <class ...PUCT'>: use an instance, such as PUCT()"),
    ]
    make = functools.partial(make_search, game=GAME, evaluate=uniform_evaluator(GAME))
    states, key = init_batch(GAME, 2), jax.random.key(0)
    too_wide = lambda params, key, states: (jnp.zeros((2, 7)), jnp.zeros(2))  # noqa: E731
    wide = make(SEARCH, evaluate=too_wide), network_agent(GAME, too_wide, None).act
    # `is_deterministic` as a method is true although the search is random.
    custom = types.SimpleNamespace(algorithm="mine", num_simulations=4, select=lambda roots: None)
    custom.is_deterministic = lambda: False
    assert_refused(
        *((functools.partial(check_parts, PARTS._replace(**c)), said) for c, said in changes),
        (lambda: network_evaluator(OTHER, NETWORK), f"{MIXED}...: make it for connect_four"),
        (lambda: network_evaluator(OTHER, network), "the network is of type Dense: use a Network"),
        (lambda: make(custom), "the search is namespace(...): use an instance"),
        (lambda: make("puct"), "the search is 'puct': use an instance, such as PUCT()"),
        (lambda: make(SEARCH, evaluate=NETWORK), "the evaluator is of type Network: use one"),
        *(
            (lambda act=act: jax.eval_shape(act, None, key, states), "returns (float32[2, 7], ")
            for act in wide
        ),
    )
    network_evaluator(OTHER, NETWORK._replace(made_for=None))  # A record that is made by hand.
    network_evaluator(GAME._replace(name="another"), NETWORK)


# The estimate of memory from shapes.


SMALL = change(CONFIG, selfplay={"unroll_length": 1}, replay={"capacity": 128, "shards": 2})


@pytest.mark.parametrize("devices", [1, 2])
def test_each_device_holds_its_share(devices, monkeypatch):
    """Of games and buffer; the network and the archive are replicated."""
    mesh = training.make_mesh(jax.devices()[:devices])
    parts = make_parts(change(SMALL, selfplay={"archive": 100}))
    state = training.abstract_state(parts, mesh)

    def size(tree):
        return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))

    needed = size((state.learner, state.archive, state.key)) + 4  # The number of the iteration.
    needed += size((state.replay, state.games)) // devices
    monkeypatch.setattr(memory, "device_memory", lambda mesh: needed)
    assert check_fits(parts, mesh).startswith("memory on ")
    monkeypatch.setattr(memory, "device_memory", lambda mesh: needed - 1)
    said = "the run needs 0.00 GB on each...: use fewer search.num_simulations"
    assert_refused((functools.partial(check_fits, parts, mesh), said))


def test_outputs_that_alias_arguments_are_counted_once():
    sizes = {"argument": 4e9, "output": 3e9, "alias": 2e9, "temp": 1e9}
    used = types.SimpleNamespace(**{f"{name}_size_in_bytes": x for name, x in sizes.items()})
    program = types.SimpleNamespace(memory_analysis=lambda: used)
    line = check_fits(make_parts(SMALL), training.make_mesh(jax.devices()[:2]), program)
    assert line.startswith("memory on each of 2 devices: 6.00 of ")


def test_trees_that_do_not_fit_are_rejected_with_advice(monkeypatch, tic_tac_toe):
    monkeypatch.setattr(memory, "device_memory", lambda: 10**9)
    with pytest.raises(ValueError, match="trees of 1000000 .*, 100 at a time, .* GB") as error:
        check_trees(Gumbel(num_simulations=10**6), tic_tac_toe, 100)
    advice = int(re.findall(r"use at most (\d+)", str(error.value))[0])
    check_trees(Gumbel(num_simulations=advice), tic_tac_toe, 100)


def test_devices_share_the_memory_of_the_machine_or_container(monkeypatch):
    one, two = (training.make_mesh(jax.devices()[:n]) for n in (1, 2))
    assert memory.device_memory(one) // 2 == memory.device_memory(two) > 1e8
    machine = memory.os.sysconf("SC_PHYS_PAGES") * memory.os.sysconf("SC_PAGE_SIZE")
    monkeypatch.setattr(memory.pathlib.Path, "exists", lambda path: True)
    for limit, bytes_each in (("2000000\n", 10**6), ("max\n", machine // 2)):
        monkeypatch.setattr(memory.pathlib.Path, "read_text", lambda path, limit=limit: limit)
        assert memory.device_memory(two) == bytes_each


# Checks of the doctor that need no training.


def is_alarm(finding, sentence=""):
    assert sentence in finding.sentence
    return bool(finding.advice)


def test_strength_is_that_of_both_seats(monkeypatch, tic_tac_toe):
    """In the first row, whoever moves first wins."""
    evaluate = uniform_evaluator(tic_tac_toe)
    parts = types.SimpleNamespace(game=tic_tac_toe, evaluate=evaluate, search=PUCT())
    monkeypatch.setattr(diagnosis.arena, "draw_openings", lambda *given: None)
    for first, second, score, alarms in (
        ((100, 0, 0, 9), (0, 0, 100, 9), "0.50", [True, False]),
        ((100, 0, 0, 9), (80, 10, 10, 9), "0.93", [False, False]),
        ((0, 100, 0, 9), (0, 0, 100, 9), "0.25", [True, True]),
    ):
        match = Match("a", "b", Tally(*first), Tally(*second), False)
        monkeypatch.setattr(diagnosis.arena, "play_match", lambda *given, match=match: match)
        findings = diagnosis._strength(parts, None, jax.random.key(0))
        assert [is_alarm(finding, f"scores {score}") for finding in findings] == alarms


def test_few_positions_repeat_in_a_small_game():
    planes = np.arange(1000) % 20
    samples = Sample(planes, None, None, planes)
    assert is_alarm(diagnosis._repeats(samples, None), "2% of 1000")
    assert not is_alarm(diagnosis._repeats(samples, 23), "2% of 1000")


def test_games_that_never_end_are_an_alarm_after_their_first_moves():
    """A game lasts nine moves, and an iteration has four."""
    for carry_over, iteration, discounts, alarms in (
        (True, 3, [-1, -1], True),
        (True, 3, [-1, 0], False),
        (True, 2, [-1, -1], False),
        (False, 2, [-1, -1], True),
    ):
        config = SelfPlayConfig(unroll_length=4, carry_over=carry_over)
        parts = types.SimpleNamespace(selfplay=config, game=types.SimpleNamespace(max_plies=9))
        state = types.SimpleNamespace(iteration=iteration)
        finding = diagnosis._ends(parts, state, np.array(discounts))
        assert is_alarm(finding, f"{2 - np.count_nonzero(discounts)} games ended in 2") == alarms


def test_a_learning_rate_of_zero_is_an_alarm_after_the_warm_up():
    learner = LearnerConfig(warmup_steps=10_000, decay_steps=50, final_learning_rate=0.0)
    for step, alarms in ((1, False), (10_000, False), (10_025, False), (10_050, True)):
        state = types.SimpleNamespace(learner=types.SimpleNamespace(step=step))
        [finding] = diagnosis._rate(Config(learner=learner), state)
        assert is_alarm(finding, f"at step {step:,}") == alarms
    assert diagnosis._rate(Config(parts="custom.py:make"), None) == []


def test_policies_are_those_of_the_inference_form():
    """In which parameters are folded."""
    policy = np.array([[0.5, 0.5, 0]], np.float32)
    samples = Sample(jnp.eye(1, 5), policy > 0, policy, np.zeros(1))
    network = types.SimpleNamespace(infer=lambda params, planes: (planes @ params, None))
    for kernel, is_wrong in ((jnp.zeros((5, 3)), False), (9 * jnp.eye(5, 3), True)):
        finding = diagnosis._policies(network, kernel, samples)
        assert finding.sentence.startswith("KL 0.00") != is_wrong == is_alarm(finding)
        assert finding.sentence.endswith("; 0.00 from a uniform policy")


def test_the_exit_status_is_1_if_something_is_wrong(monkeypatch, tmp_path, capsys):
    """A run is examined even if its newest checkpoint is damaged, or missing as here."""
    run_dir = create_run(tmp_path / "run", Config())
    for advice, status, mark in (("", 0, "ok"), ("change it", 1, "NO")):
        found = [Finding("a", "is 1", advice), Finding("b", "is 2")]
        monkeypatch.setattr(diagnosis, "diagnose", lambda folder, parts, found=found: found)
        assert doctor.main(["--run-dir", str(run_dir)]) == status
        lines = capsys.readouterr().out.splitlines()
        assert lines == [f"{mark}  a: is 1", *[f"    {advice}"] * status, "ok  b: is 2"]
