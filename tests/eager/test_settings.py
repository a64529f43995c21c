"""Settings have the right types and ranges; presets fit games; every setting has an effect."""

import dataclasses
import functools
import re
import typing
from unittest.mock import Mock

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from azjax import games, search
from azjax._settings import did_you_mean, find_kinds, flatten, from_dict, list_changes
from azjax.cli import arena, compare, parsing, play, players, verify
from azjax.games.base import init_batch
from azjax.networks import MLPConfig, ResNetConfig, make_network
from azjax.runs import config as configs
from azjax.runs import presets, pretrained
from azjax.runs.config import Config, Plan
from azjax.runs.player import read_settings
from azjax.search import PUCT, UCT, Gumbel, MctxPolicy, make_search, paths, simulate
from azjax.training import LearnerConfig, SelfPlayConfig
from experiments.benchmark import options as benchmark
from experiments.lecture import __main__ as lecture
from misere_pile import NIM
from refusals import assert_refused
from traced_settings import LEARNER, MLP, OTHERS, RESNET, SELFPLAY, without_effect
from trained import chosen


def sections(cls, name=""):
    """Yields every nested dataclass of settings, of all kinds, as `(name, class)`."""
    yield name, cls
    for field, hint in typing.get_type_hints(cls).items():
        kinds = find_kinds(hint)
        for inner in kinds.classes.values() if kinds else [hint]:
            if dataclasses.is_dataclass(inner):
                yield from sections(inner, f"{name}.{field}".lstrip("."))


TOO_LARGE = {int: [2**40], float: [float("nan"), float("inf"), -float("inf"), 1e300]}
PROGRAMS = [arena, play, verify, compare, lecture, benchmark]


def use_number(name, value):
    return re.compile(f"^{re.escape(f'{name} is {value}')}: use .*[0-9]")


def test_every_number_has_bounds():
    rows = []
    for section, cls in [*sections(Config), ("", Plan)]:
        for field, hint in typing.get_type_hints(cls).items():
            name = f"{section}.{field}".lstrip(".")
            for value in TOO_LARGE.get(hint, []):
                call = functools.partial(cls, **{field: value})
                rows.append((call, use_number(name, value)))
    for program in PROGRAMS:
        for name, hint in typing.get_type_hints(program.Options).items():
            option = parsing.spell(name)
            for value in TOO_LARGE.get(hint, []):
                words = [f"{option}={value}"]
                call = functools.partial(parsing.parse, program.Options, words, "program")
                rows.append((call, use_number(option, value)))
    for hidden in ((8, 65_537), (8,) * 101):
        call = functools.partial(MLPConfig, hidden=hidden)
        rows.append((call, "use 1 to 100 widths, each 1 to 65536"))
    assert len(rows) > 100
    assert_refused(*rows)


def test_other_types_are_refused():
    rows = [
        *((PUCT, {"num_simulations": x}, f"num_simulations is {x!r},") for x in (1.5, "8", True)),
        (PUCT, {"num_simulations": np.arange(2)}, "search.num_simulations is [0, 1],", "type int"),
        (PUCT, {"c_puct": 10**40}, f"search.c_puct is {10**40}: use at most 1000000000"),
        (PUCT, {"first_play_urgency": "win"}, "search.first_play_urgency is 'win': use 'zero'"),
        (LearnerConfig, {"learning_rate": 0.0}, "learner.learning_rate is 0.0: use more than 0"),
        (LearnerConfig, {"learning_rate": 1e-4}, "final_learning_rate is 0.0002, more", "0.0001"),
        (LearnerConfig, {"ema_decay": 1.0}, "ema_decay is 1.0: use 0 up to, not including, 1"),
        (MLPConfig, {"hidden": 32}, "network.hidden is 32, ", "type tuple"),
        (Config, {"search": "puct"}, "search is 'puct', ", "not of type Gumbel or PUCT or UCT"),
    ]
    for make in (float, np.float32, jnp.float32):
        for number in (-1.0, np.nan):
            said = ("selfplay.temperature is ", ": use 0 or more")
            rows.append((SelfPlayConfig, {"temperature": make(number)}, *said))
        assert hash(SelfPlayConfig(temperature=make(0.5))) == hash(SelfPlayConfig(temperature=0.5))
    assert_refused(*((functools.partial(cls, **one), *said) for cls, one, *said in rows))


def test_settings_of_kinds_are_listed_and_compared():
    old, new = (Config(network=network) for network in (MLPConfig(hidden=(8,)), ResNetConfig()))
    assert flatten(old)[3:5] == [("network.kind", "mlp"), ("network.encoding", "relative")]
    assert list_changes(old, old) == []
    changes = [(name, a, b) for name, a, b in list_changes(old, new) if name == "network.hidden"]
    assert changes == [("network.hidden", (8,), None)]
    assert ("network.kind", "resnet", "mlp") in list_changes(new, old)


# Misspelled names.

NEARLY = {
    "hex_swap": lambda: games.make("Hex-Swap"),
    "enumerable": lambda: presets.get("enumerabel"),
    "learning_rate": lambda: from_dict(Config, {"learner": {"leanring_rate": 1.0}}),
    "mlp": lambda: from_dict(Config, {"network": {"kind": "mpl"}}),
    "alphabeta": lambda: players.parse("alpha-beta:3"),
    "--learner.learning-rate": lambda: chosen("--learner.leanring-rate", "1"),
    "adam": lambda: chosen("--learner.optimizer", "adm"),
}


def test_errors_suggest_similar_names():
    assert_refused(*((call, f"; did you mean {name}?") for name, call in NEARLY.items()))
    assert did_you_mean("chess", games.available()) == did_you_mean(3, ["x"]) == ""


def test_a_new_default_does_not_change_the_search_of_a_player_that_comes_with_azjax():
    """Their files leave out the settings whose defaults they use."""
    others = {"max_considered_actions": 16, "gumbel_scale": 1.0, "maxvisit_init": 50.0}
    for name in pretrained.names():
        scale = 0.1 if name == "tic_tac_toe" else 0.5
        assert read_settings(name).search == Gumbel(num_simulations=64, value_scale=scale, **others)


# Presets and effects.


@pytest.mark.parametrize("name", presets.PRESETS)
def test_smoke_keeps_kinds_and_shrinks_sizes(name):
    config, small = presets.get(name), presets.smoke(presets.get(name))
    assert small.network.kind == config.network.kind
    assert small.search.algorithm == config.search.algorithm
    assert small.selfplay.games * small.selfplay.unroll_length <= 64
    assert small.selfplay.archive == min(config.selfplay.archive, 1024)
    assert small.learner.steps * small.learner.batch_size <= 64
    assert small.search.num_simulations <= 4 and small.replay.capacity <= 1024


def test_a_preset_fits_a_game():
    """One encoding replaces that of the preset; a width given for it keeps the weights shared."""
    shared = dataclasses.replace(Config().network, symmetric=True, width=12)
    fitted = presets.fit(Config(network=shared), games.make("tic_tac_toe")).network
    assert fitted.symmetric and fitted.encoding == "relative"
    fitted = presets.fit(Config(network=shared), NIM._replace(encodings=("unary",))).network
    assert fitted == dataclasses.replace(shared, encoding="unary")


# Those that are easily lost; `tests/system/test_training.py` has all.
LEARNING = "l2", "weight_decay", "clip_norm", "value_weight", "policy_surprise", "ema_decay"
PLAYING = "games_at_once", "archive_share", "temperature", "temperature_plies"


def test_settings_of_training_change_the_program():
    for settings, names in ((LEARNER, LEARNING), (SELFPLAY, PLAYING)):
        assert without_effect(settings, {name: OTHERS[settings][name] for name in names}) == []


def test_the_arithmetic_is_a_setting_of_every_kind_of_network():
    types = {name: OTHERS[MLP][name] for name in ("evaluation_dtype", "learning_dtype")}
    for settings in (MLP, RESNET, dataclasses.replace(MLP, symmetric=True)):
        assert without_effect(settings, types) == []


def test_no_setting_is_left_out():
    names, classes = zip(*sections(Config), strict=True)
    assert {f.name for f in dataclasses.fields(Config)} - {*names} == {"game", "seed", "parts"}
    without = Config, configs.CustomNetworkConfig  # Has no effect.
    assert {type(settings) for settings in OTHERS} == {*classes} - {*without}
    for settings, changes in OTHERS.items():
        names = {field.name for field in dataclasses.fields(settings)}
        assert changes.keys() == names - {"kind", "algorithm"}  # Tags, which select the class.


# What a search depends on, and what it refuses, while it is traced.


def test_values_of_any_type_become_float32(tic_tac_toe):
    def evaluate(params, keys, states):
        return jnp.zeros((2, 9), jnp.bfloat16), jnp.zeros(2, jnp.bfloat16)

    find = make_search(PUCT(num_simulations=2), tic_tac_toe, evaluate)
    states = init_batch(tic_tac_toe, 2)
    tree = jax.eval_shape(find, None, jax.random.key(0), states).tree
    assert tree.node_values.dtype == tree.raw_values.dtype == jnp.float32


def test_trees_grow_in_the_loop_of_the_platform_or_the_one_given(monkeypatch, tic_tac_toe):
    """The results are equal, so only the calls of the loops tell them apart."""
    spies = {module: Mock(wraps=module.simulate) for module in (simulate, paths)}
    for module, spy in spies.items():
        monkeypatch.setattr(module, "simulate", spy)
    for platform, grow, size, expected in (
        ("cuda", None, 2, paths),
        ("tpu", None, 2, simulate),
        ("gpu", simulate.grow, 2, simulate),
        ("cpu", paths.grow, 8192, paths),
        ("cpu", paths.grow, 8193, simulate),
    ):
        monkeypatch.setattr(jax, "default_backend", lambda platform=platform: platform)
        find = make_search(UCT(2), tic_tac_toe, search.uniform_evaluator(tic_tac_toe), grow)
        with monkeypatch.context() as patch:  # It is chosen when the search is built.
            patch.setattr(jax, "default_backend", None)
            states = jax.eval_shape(lambda size=size: init_batch(tic_tac_toe, size))
            jax.eval_shape(find, None, jax.random.key(0), states)
        assert [module for module, spy in spies.items() if spy.called] == [expected]
        for spy in spies.values():
            spy.reset_mock()


def test_the_policies_of_mctx_have_names(tic_tac_toe):
    def program(algorithm):
        find = make_search(algorithm, tic_tac_toe, search.uniform_evaluator(tic_tac_toe))
        arguments = None, jax.random.key(0), init_batch(tic_tac_toe, 2), 1.0, True
        return re.sub(" at 0x[0-9a-f]+", "", str(jax.make_jaxpr(find)(*arguments)))

    muzero, gumbel = mctx.muzero_policy, mctx.gumbel_muzero_policy
    for name, policy in ((search.MctxMuZero, muzero), (search.MctxGumbel, gumbel)):
        assert program(name(3)) == program(MctxPolicy(policy, 3)) != program(name(4))


def test_the_first_argument_of_an_algorithm_is_its_number_of_simulations():
    for algorithm in search.ALGORITHMS.values():
        assert algorithm(50) == algorithm(num_simulations=50) != algorithm()


def test_refusals(tic_tac_toe):
    """Of searches, policies, evaluators, and what the functions of `mctx_fns` are given."""
    key, policy = jax.random.key(0), mctx.gumbel_muzero_policy
    two, others = (init_batch(game, 2) for game in (tic_tac_toe, games.make("connect_four")))
    uniform, network = search.uniform_evaluator(tic_tac_toe), make_network(MLPConfig(), tic_tac_toe)
    find, fns = make_search(PUCT(), tic_tac_toe, uniform), search.mctx_fns(tic_tac_toe, uniform)
    untrained = make_search(PUCT(), tic_tac_toe, search.network_evaluator(tic_tac_toe, network))
    bad = search.mctx_fns(tic_tac_toe, lambda *given: (jnp.zeros((1, 8)), jnp.zeros(1)))
    nan, three = np.array([1.0, np.nan]), np.ones(3)
    assert_refused(
        (lambda: find(None, key, two, temperature=nan), "nan]: use 0 or more"),
        (lambda: find(None, key, two, temperature=three), "temperature has shape (3,): use one"),
        (lambda: find(None, key, two, add_noise=three > 0), "add_noise has shape (3,): use one"),
        (lambda: untrained(None, key, two), "params is None, and the eval"),
        (lambda: MctxPolicy(3), "search.policy is 3, which is not of type Callable"),
        (lambda: MctxPolicy(policy, 0), "search.num_simulations is 0"),
        (lambda: bad.root(None, key, two), "the evaluator returns"),
        (lambda: fns.root(None, jax.random.split(key, 3), two), "use one key, or a batch"),
        (lambda: fns.invalid_actions(others), "a batch of tic_tac_toe is"),
        (lambda: fns.recurrent_fn(None, key, jnp.zeros(2, int), others), "these"),
    )
