"""Settings have the right types and ranges, for all kinds of numbers."""

import dataclasses
import functools
import json
import pathlib
import re
import typing

import jax
import jax.numpy as jnp
import numpy as np

from azjax import games
from azjax._settings import check, did_you_mean, find_kinds, flatten, from_dict, list_changes
from azjax.cli import arena, options, play, specs, verify
from azjax.cli.options import Plan
from azjax.games.square import observation_planes
from azjax.networks import MLPConfig, make_network
from azjax.runs import presets
from azjax.runs.config import Config
from azjax.runs.player import changed
from azjax.search import PUCT
from azjax.training.learner import LearnerConfig
from azjax.training.parts import SelfPlayConfig
from azjax.training.replay import ReplayConfig
from azjax.training.targets import TargetConfig
from azjax.viz.live import live_data
from experiments.benchmark import options as benchmark
from experiments.lecture import __main__ as lecture
from experiments.lecture.persistent import PersistentConfig
from refusals import assert_refused


def sections(cls, name=""):
    """Yields every nested dataclass of settings, of all kinds, as `(name, class)`."""
    yield name, cls
    for field, hint in typing.get_type_hints(cls).items():
        kinds = find_kinds(hint)
        for inner in kinds.classes.values() if kinds else [hint]:
            if dataclasses.is_dataclass(inner):
                yield from sections(inner, f"{name}.{field}".lstrip("."))


SECTIONS = [*sections(Config), ("", Plan), ("persistent", PersistentConfig)]
PROGRAMS = [
    (arena.Options, {"players": ("random", "uct")}),
    (play.Options, {}),
    (verify.Options, {}),
    (lecture.Options, {"out": pathlib.Path("out")}),
    (benchmark.Options, {"verification": True}),
]


def fields(cls, wanted):
    return [name for name, hint in typing.get_type_hints(cls).items() if hint is wanted]


def of_type(wanted):
    """Yields every setting of a type, as `(class, other arguments, name in errors, field)`."""
    for section, cls in SECTIONS:
        for name in fields(cls, wanted):
            yield cls, {}, f"{section}.{name}".lstrip("."), name
    for cls, others in PROGRAMS:
        for name in fields(cls, wanted):
            yield cls, others, f"--{name.replace('_', '-')}", name


def test_every_number_has_bounds():
    rows = []
    for cls, others, said, name in of_type(int):
        call = functools.partial(cls, **others, **{name: 2**40})
        rows.append((call, re.compile(f"^{said} is {2**40}[:,] .*use .*[0-9]")))
    for cls, others, said, name in of_type(float):
        for value in (float("nan"), float("inf"), -float("inf"), 1e300):
            call = functools.partial(cls, **others, **{name: value})
            rows.append((call, re.compile("^" + re.escape(f"{said} is {value}: use "))))
    for name in ("train_games", "batch_sizes"):
        call = functools.partial(benchmark.Options, verification=True, **{name: (8, 2**40)})
        rows.append((call, f"--{name.replace('_', '-')} is 8 {2**40}: use numbers"))
    for hidden in ((8, 65_537), (8,) * 101):
        call = functools.partial(MLPConfig, hidden=hidden)
        rows.append((call, "use 1 to 100 widths, each 1 to 65536"))
    assert len(rows) > 100
    assert_refused(*rows)


def test_numpy_numbers_become_python_numbers():
    given = {
        "num_simulations": np.int64(8),
        "c_puct": np.float32(1),
        "dirichlet_alpha": np.array(2),
    }
    given |= {"algorithm": np.str_("puct"), "dirichlet_fraction": 1}
    expected = PUCT(num_simulations=8, c_puct=1.0, dirichlet_alpha=2.0, dirichlet_fraction=1.0)
    for config in (PUCT(**given), from_dict(PUCT, given)):
        assert config == expected and hash(config) == hash(expected)
        assert json.dumps(dataclasses.asdict(config)) == json.dumps(dataclasses.asdict(expected))
    widths = [MLPConfig(hidden=hidden) for hidden in (np.array([8, 4]), [np.int8(8), 4])]
    assert widths == [MLPConfig(hidden=(8, 4))] * 2
    assert type(widths[0].hidden[0]) is type(widths[1].hidden[0]) is int


def test_other_types_are_rejected():
    rows = [
        (PUCT, {"num_simulations": 1.5}, "search.num_simulations is 1.5, .* type int"),
        (PUCT, {"num_simulations": "8"}, "search.num_simulations is '8', .* type int"),
        (PUCT, {"num_simulations": True}, "search.num_simulations is True, .* type int"),
        (PUCT, {"num_simulations": None}, "search.num_simulations is None, .* type int"),
        (PUCT, {"num_simulations": np.float32(8)}, "search.num_simulations is 8.0, "),
        (PUCT, {"num_simulations": np.arange(2)}, r"search.num_simulations is \[0, 1\], "),
        (PUCT, {"c_puct": "1"}, "search.c_puct is '1', which is not of type float"),
        (
            PUCT,
            {"c_puct": np.bool_(1)},
            "search.c_puct is True, which is not of type float",
        ),
        (PUCT, {"c_puct": 10**40}, f"search.c_puct is {10**40}: use at most 1000000000"),
        (PUCT, {"algorithm": 3}, "search.algorithm is 3: use 'puct'"),
        (PUCT, {"algorithm": np.arange(2)}, r"search.algorithm is \[0, 1\]: use 'puct'"),
        (MLPConfig, {"hidden": 32}, "network.hidden is 32, .* type tuple"),
        (MLPConfig, {"hidden": ("8",)}, "network.hidden is '8', which is not of type int"),
        (MLPConfig, {"hidden": jnp.arange(3)}, "network.hidden is Array"),
        (LearnerConfig, {"l2": None}, "learner.l2 is None, which is not of type float"),
        (ReplayConfig, {"capacity": 1e5}, "replay.capacity is 100000.0, .* type int"),
        (SelfPlayConfig, {"games": "many"}, "selfplay.games is 'many', which is not of type int"),
        (TargetConfig, {"td_lambda": "1"}, "targets.td_lambda is '1', .* type float"),
        (PersistentConfig, {"capacity": 64.0}, "persistent.capacity is 64.0, .* type int"),
        (Config, {"game": 3}, "game is 3, which is not of type str"),
        (Config, {"seed": 1.0}, "seed is 1.0, which is not of type int"),
        (
            Config,
            {"search": "puct"},
            "search is 'puct', .* not of type Gumbel or PUCT or UCT",
        ),
        (Config, {"network": "mlp"}, "network is 'mlp', .* not of type ResNetConfig or MLPConfig"),
        (Config, {"network": PUCT()}, "network is PUCT.*, which is not of type Res"),
        (Plan, {"report": 1}, "report is 1, which is not of type bool"),
        (Plan, {"max_iterations": "9"}, "max_iterations is '9', which is not of type int"),
    ]
    assert_refused(
        *((functools.partial(cls, **one), re.compile(f"^{said}")) for cls, one, said in rows)
    )


def test_numbers_of_every_kind_are_checked():
    for make in (float, np.float32, jnp.float32):
        wrong = [lambda x=x, make=make: SelfPlayConfig(temperature=make(x)) for x in (-1.0, np.nan)]
        assert_refused(*((call, "selfplay.temperature is ", ": use 0 or more") for call in wrong))
        assert hash(SelfPlayConfig(temperature=make(0.5))) == hash(SelfPlayConfig(temperature=0.5))


def test_traced_settings_are_not_checked():
    def bonus(c_puct):
        return dataclasses.replace(PUCT(), c_puct=c_puct).c_puct * 2

    np.testing.assert_array_equal(jax.vmap(bonus)(jnp.array([-1.0, 2.0])), [-2, 4])


# --- Kinds --------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Constant:
    schedule: typing.Literal["constant"] = "constant"


@dataclasses.dataclass(frozen=True)
class Cosine:
    schedule: typing.Literal["cosine"] = "cosine"
    steps: int = 100


@dataclasses.dataclass(frozen=True)
class Adam:
    kind: typing.Literal["adam"] = "adam"
    epsilon: float = 1e-8


@dataclasses.dataclass(frozen=True)
class SGD:
    kind: typing.Literal["sgd"] = "sgd"
    momentum: float = 0.9
    nesterov: bool = False
    rate: Cosine | Constant = dataclasses.field(default_factory=Cosine)


@dataclasses.dataclass(frozen=True)
class Learning:
    optimizer: SGD | Adam = dataclasses.field(default_factory=SGD)

    def __post_init__(self):
        check("learning", self)


@dataclasses.dataclass(frozen=True)
class Nested:
    learning: Learning = dataclasses.field(default_factory=Learning)


def nested(optimizer):
    return Nested(Learning(optimizer))


def test_the_tag_chooses_the_kind_at_any_depth():
    rows = [
        ({}, SGD()),
        ({"momentum": 0.5}, SGD(momentum=0.5)),  # Without a tag: the first kind.
        ({"kind": "adam"}, Adam()),
        ({"kind": "adam", "epsilon": 1.0}, Adam(epsilon=1.0)),
        ({"kind": "sgd", "rate": {"steps": 3}}, SGD(rate=Cosine(steps=3))),
        ({"rate": {"schedule": "constant"}}, SGD(rate=Constant())),
        ({"kind": np.str_("adam")}, Adam()),
    ]
    for content, expected in rows:
        found = from_dict(Nested, {"learning": {"optimizer": content}})
        assert found == nested(expected)
        assert from_dict(Nested, json.loads(json.dumps(dataclasses.asdict(found)))) == found


def test_a_union_itself_can_be_read():
    assert from_dict(Adam | SGD, {"kind": "sgd"}) == SGD()
    assert from_dict(Adam | SGD, {}) == Adam()
    assert from_dict(typing.Union[SGD, Adam], {}) == SGD()  # noqa: UP007


def test_unknown_kinds_and_settings_of_other_kinds_are_rejected():
    rows = [
        ({"kind": "lion"}, "learning.optimizer.kind is 'lion': use 'sgd' or 'adam'"),
        ({"kind": 3}, "learning.optimizer.kind is 3: use 'sgd' or 'adam'"),
        ({"kind": ["sgd"]}, r"learning.optimizer.kind is \['sgd'\]: use 'sgd' or 'adam'"),
        ({"beta": 3}, "unknown setting 'learning.optimizer.beta': use one of kind, momentum"),
        (
            {"epsilon": 3},
            "learning.optimizer.epsilon is a setting of adam, and learning.optimizer.kind is sgd: "
            "leave it out, or choose learning.optimizer.kind adam",
        ),
        (
            {"rate": {"schedule": "constant", "steps": 3}},
            "learning.optimizer.rate.steps is a setting of cosine, and .*.schedule is constant",
        ),
        ({"rate": 3}, "learning.optimizer.rate is 3, not an object"),
        (3, "learning.optimizer is 3, not an object"),
    ]
    wrong = [
        ({"learning": {"optimizer": content}}, re.compile(f"^{said}")) for content, said in rows
    ]
    assert_refused(*((functools.partial(from_dict, Nested, given), said) for given, said in wrong))


def test_settings_of_kinds_are_listed_and_compared():
    old, new = nested(SGD(momentum=0.5)), nested(Adam())
    assert flatten(old) == [
        ("learning.optimizer.kind", "sgd"),
        ("learning.optimizer.momentum", 0.5),
        ("learning.optimizer.nesterov", False),
        ("learning.optimizer.rate.schedule", "cosine"),
        ("learning.optimizer.rate.steps", 100),
    ]
    assert list_changes(old, old) == []
    assert list_changes(old, nested(SGD())) == [("learning.optimizer.momentum", 0.5, 0.9)]
    assert list_changes(old, new)[:2] == [
        ("learning.optimizer.kind", "sgd", "adam"),
        ("learning.optimizer.momentum", 0.5, None),
    ]
    assert list_changes(new, old)[-1] == ("learning.optimizer.epsilon", 1e-8, None)


# Misspelled names.

NEARLY = {
    "connect_four": lambda: games.make("conect_four"),
    "othello": lambda: games.make("othelo:6"),
    "hex_swap": lambda: games.make("Hex-Swap"),
    "chess": lambda: games.make("pgx:ches"),
    "enumerable": lambda: presets.get("enumerabel"),
    "learning_rate": lambda: from_dict(Config, {"learner": {"leanring_rate": 1.0}}),
    "mlp": lambda: from_dict(Config, {"network": {"kind": "mpl"}}),
    "sgd": lambda: LearnerConfig(optimizer="SGD"),  # pyright: ignore
    "num_simulations": lambda: changed(PUCT(), simulations=3),
    "relative": lambda: make_network(MLPConfig(encoding="relatve"), games.make("tic_tac_toe")),
    "absolute": lambda: observation_planes(jnp.zeros(1), jnp.int8(0), (1, 1), "absolut"),
    "alphabeta": lambda: specs.parse("alpha-beta:3"),
    "rollout": lambda: live_data(games.make("tic_tac_toe"), PUCT(), evaluator="rolout"),
    "--learner.learning-rate": lambda: options.parse(["--learner.leanring-rate", "1"]),
    "adam": lambda: options.parse(["--learner.optimizer", "adm"]),
}


def test_errors_suggest_similar_names():
    assert_refused(
        *(
            (call, re.compile(f"(; did you mean|, perhaps you meant) {m}"))
            for m, call in NEARLY.items()
        )
    )


def test_nothing_is_suggested_for_dissimilar_names():
    assert did_you_mean("chess", games.available()) == did_you_mean("", ["x"]) == ""
    assert did_you_mean(3, ["x"]) == did_you_mean("x", []) == ""
