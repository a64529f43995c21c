"""Settings: of the right type, within bounds, whatever they are given as."""

import dataclasses
import json
import typing

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.agents import PersistentConfig
from azjax.learner import LearnerConfig
from azjax.network import NetworkConfig
from azjax.replay import ReplayConfig
from azjax.search import SearchConfig
from azjax.selfplay import SelfPlayConfig
from azjax.settings import from_dict
from azjax.targets import TargetConfig
from azjax.train import Config
from experiments import arena, play, verify
from experiments.benchmark import options as benchmark
from experiments.lecture import __main__ as lecture
from experiments.options import Plan

SECTIONS = {
    "": Config,
    "network": NetworkConfig,
    "search": SearchConfig,
    "selfplay": SelfPlayConfig,
    "targets": TargetConfig,
    "replay": ReplayConfig,
    "learner": LearnerConfig,
    "persistent": PersistentConfig,
}
PROGRAMS = {
    "train": (Plan, {}),
    "arena": (arena.Options, {"players": ("random", "uct")}),
    "play": (play.Options, {}),
    "verify": (verify.Options, {"run_dir": "run"}),
    "lecture": (lecture.Options, {"out": "out"}),
    "benchmark": (benchmark.Options, {"verification": True}),
}


def fields(cls, wanted):
    return [name for name, hint in typing.get_type_hints(cls).items() if hint is wanted]


def of_type(wanted):
    """Every setting of that type, as `(class, other arguments, what errors call it, field)`."""
    for section, cls in SECTIONS.items():
        for name in fields(cls, wanted):
            yield pytest.param(cls, {}, f"{section}.{name}".lstrip("."), name)
    for program, (cls, others) in PROGRAMS.items():
        for name in fields(cls, wanted):
            flag = f"--{name.replace('_', '-')}"
            yield pytest.param(cls, others, flag, name, id=f"{program} {flag}")


@pytest.mark.parametrize(("cls", "others", "said", "name"), [*of_type(int)])
def test_every_whole_number_has_an_upper_bound(cls, others, said, name):
    with pytest.raises(ValueError, match=f"^{said} is {2**40}[:,] .*use .*[0-9]"):
        cls(**others, **{name: 2**40})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e300])
@pytest.mark.parametrize(("cls", "others", "said", "name"), [*of_type(float)])
def test_every_fraction_is_finite(value, cls, others, said, name):
    with pytest.raises(ValueError, match=f"^{said} is {value}: use .*".replace("+", r"\+")):
        cls(**others, **{name: value})


@pytest.mark.parametrize("setting", ["train_games", "batch_sizes"])
def test_lists_of_numbers_have_bounds(setting):
    with pytest.raises(
        ValueError, match=f"--{setting.replace('_', '-')} is 8 {2**40}: use numbers"
    ):
        benchmark.Options(verification=True, **{setting: (8, 2**40)})


@pytest.mark.parametrize("hidden", [(8, 65_537), (8,) * 101])
def test_networks_have_bounds(hidden):
    with pytest.raises(ValueError, match="use 1 to 100 widths, each 1 to 65536"):
        NetworkConfig(hidden=hidden)


@pytest.mark.parametrize("make", [SearchConfig, lambda **given: from_dict(SearchConfig, given)])
def test_numbers_of_numpy_become_pythons(make):
    given = {"num_simulations": np.int64(8), "c_puct": np.float32(1), "value_scale": np.array(2)}
    config = make(algorithm=np.str_("puct"), exploration=3, **given)
    expected = SearchConfig("puct", num_simulations=8, c_puct=1.0, value_scale=2.0, exploration=3.0)
    assert config == expected and hash(config) == hash(expected)
    assert json.dumps(dataclasses.asdict(config)) == json.dumps(dataclasses.asdict(expected))
    widths = [NetworkConfig(hidden=hidden) for hidden in (np.array([8, 4]), [np.int8(8), 4])]
    assert widths == [NetworkConfig(hidden=(8, 4))] * 2
    assert type(widths[0].hidden[0]) is type(widths[1].hidden[0]) is int


@pytest.mark.parametrize(
    ("cls", "setting", "said"),
    [
        (SearchConfig, {"num_simulations": 1.5}, "search.num_simulations is 1.5, .* type int"),
        (SearchConfig, {"num_simulations": "8"}, "search.num_simulations is '8', .* type int"),
        (SearchConfig, {"num_simulations": True}, "search.num_simulations is True, .* type int"),
        (SearchConfig, {"num_simulations": None}, "search.num_simulations is None, .* type int"),
        (SearchConfig, {"num_simulations": np.float32(8)}, "search.num_simulations is 8.0, "),
        (SearchConfig, {"num_simulations": np.arange(2)}, r"search.num_simulations is \[0, 1\], "),
        (SearchConfig, {"c_puct": "1"}, "search.c_puct is '1', which is not of type float"),
        (
            SearchConfig,
            {"c_puct": np.bool_(1)},
            "search.c_puct is True, which is not of type float",
        ),
        (SearchConfig, {"c_puct": 10**40}, f"search.c_puct is {10**40}: use at most 1000000000"),
        (SearchConfig, {"algorithm": 3}, "search.algorithm is 3: use 'gumbel' or 'puct' or 'uct'"),
        (SearchConfig, {"algorithm": np.arange(2)}, r"search.algorithm is \[0, 1\]: use 'gumbel'"),
        (NetworkConfig, {"hidden": 32}, "network.hidden is 32, .* type tuple"),
        (NetworkConfig, {"hidden": ("8",)}, "network.hidden is '8', which is not of type int"),
        (NetworkConfig, {"hidden": jnp.arange(3)}, "network.hidden is Array"),
        (LearnerConfig, {"l2": None}, "learner.l2 is None, which is not of type float"),
        (ReplayConfig, {"capacity": 1e5}, "replay.capacity is 100000.0, .* type int"),
        (SelfPlayConfig, {"games": "many"}, "selfplay.games is 'many', which is not of type int"),
        (TargetConfig, {"trace_decay": "1"}, "targets.trace_decay is '1', .* type float"),
        (PersistentConfig, {"capacity": 64.0}, "persistent.capacity is 64.0, .* type int"),
        (Config, {"game": 3}, "game is 3, which is not of type str"),
        (Config, {"seed": 1.0}, "seed is 1.0, which is not of type int"),
        (Config, {"search": "puct"}, "search is 'puct', which is not of type SearchConfig"),
        (Plan, {"report": 1}, "--report is 1, which is not of type bool"),
        (Plan, {"max_iterations": "9"}, "--max-iterations is '9', which is not of type int"),
    ],
)
def test_what_is_of_another_type_is_refused(cls, setting, said):
    with pytest.raises(ValueError, match=f"^{said}"):
        cls(**setting)


def test_traced_settings_go_unchecked():
    def bonus(c_puct):
        return dataclasses.replace(SearchConfig("puct"), c_puct=c_puct).c_puct * 2

    np.testing.assert_array_equal(jax.vmap(bonus)(jnp.array([-1.0, 2.0])), [-2, 4])
