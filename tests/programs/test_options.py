"""The command line of training, and the kinds of settings that options choose."""

import dataclasses
import functools
from typing import Literal

import numpy as np
import pytest

import dots
import misere_pile
from azjax import runs
from azjax._settings import flatten
from azjax.cli import custom, functions, options, parsing
from azjax.games.base import Symmetries
from azjax.networks import MLPConfig, ResNetConfig
from azjax.runs import presets
from refusals import assert_refused
from test_imports import ROOT


def network(arguments):
    return options.parse(arguments.split()).config.network


def test_an_option_chooses_the_kind_of_network():
    rows = [
        ("", presets.get("default").network),
        ("--network.kind mlp", MLPConfig()),
        ("--network.kind resnet", presets.get("default").network),  # Its values are kept.
        ("--network.kind=mlp --network.head_hidden 9", MLPConfig(head_hidden=9)),
        ("--network.hidden 7 8 --network.kind mlp", MLPConfig(hidden=(7, 8))),
        ("--preset paper", presets.get("paper").network),
        ("--preset paper --network.kind resnet", presets.get("paper").network),
        ("--preset paper --network.kind mlp --network.hidden 8 4", MLPConfig(hidden=(8, 4))),
        ("--smoke", ResNetConfig(width=16, blocks=1, head_hidden=16)),
        ("--smoke --network.kind mlp", MLPConfig(hidden=(32,), head_hidden=16)),
        ("--smoke --network.width 5", ResNetConfig(width=5, blocks=1, head_hidden=16)),
    ]
    assert [(arguments, network(arguments)) for arguments, _ in rows] == rows


def test_a_game_has_its_preset_unless_another_is_chosen():
    for arguments, preset, game in [
        ("", "default", "tic_tac_toe"),
        ("--game connect_four", "connect_four", "connect_four"),
        ("--smoke --game=connect_four", "connect_four", "connect_four"),
        ("--game othello:6", "large", "othello:6"),
        ("--game pgx:go_5x5", "large", "pgx:go_5x5"),
        ("--game mnk:3x3x3", "default", "mnk:3x3x3"),
        ("--game connect_four:3x3x3", "default", "connect_four:3x3x3"),
        ("--game connect_four:4x4", "enumerable", "connect_four:4x4"),
        ("--game connect_four:6x6", "connect_four", "connect_four:6x6"),
        ("--game othello:4", "enumerable", "othello:4"),
        ("--preset connect_four", "connect_four", "connect_four"),
        ("--game connect_four --preset default", "default", "connect_four"),
        ("--game tic_tac_toe --preset connect_four", "connect_four", "tic_tac_toe"),
    ]:
        found = options.parse(arguments.split())
        small = presets.smoke if "--smoke" in arguments else lambda config: config
        assert found.plan.preset == preset
        assert found.config == dataclasses.replace(small(presets.get(preset)), game=game)


DOTS, PILE = (f"{module.__file__}:make" for module in (dots, misere_pile))
DOMINEERING = f"{ROOT}/examples/domineering.py:make"


def test_a_custom_game_has_the_preset_for_its_number_of_positions():
    rows = [(DOTS, "enumerable", "edges"), (PILE, "default", "relative")]
    for game, preset, encoding in [*rows, (DOMINEERING, "large", "relative")]:
        found = options.parse(["--game", game])
        assert found.plan.preset == preset
        network = dataclasses.replace(presets.get(preset).network, encoding=encoding)
        changes = {"network": network, "game": functions.identify(game)}
        assert found.config == dataclasses.replace(presets.get(preset), **changes)


def test_the_only_encoding_of_a_custom_game_is_the_default():
    for arguments in ("", "--preset paper", "--network.kind mlp", "--smoke"):
        found = options.parse(["--game", DOTS, *arguments.split()])
        assert custom.make_parts(found.config, found.typed).network.encoding == "edges"
    given = options.parse(["--game", DOTS, "--network.encoding=absolute"])
    with pytest.raises(ValueError, match="network.encoding is 'absolute': use 'edges'"):
        custom.make_parts(given.config, given.typed)


def test_symmetries_that_do_not_divide_the_widths_are_not_shared():
    def fitted(count):
        rows = np.zeros((count, 25), np.int32), np.zeros((count, 12), np.int32)
        return presets.fit(
            presets.get("enumerable"), dots.make()._replace(symmetries=Symmetries(*rows))
        )

    assert fitted(4).network.symmetric and not fitted(6).network.symmetric


def test_a_custom_game_is_made_after_the_devices_are_chosen(monkeypatch):
    order, find = [], custom.find_game
    monkeypatch.setattr(custom, "find_game", lambda typed: order.append("game") or find(typed))
    for arguments in ("--smoke", "--replay.shards 4"):
        found = options.parse(
            ["--game", DOTS, "--cpu-devices", "2", *arguments.split()], order.append
        )
        known, made = order
        order.clear()
        assert made == "game" and known.config.replay.shards == found.config.replay.shards
        assert known.plan.cpu_devices == found.plan.cpu_devices == 2


def test_help_shows_the_preset_of_a_custom_game(capsys):
    with pytest.raises(SystemExit):
        options.parse(["--game", DOTS, "--help"], lambda _: pytest.fail("help needs no device"))
    assert "(default: enumerable)" in " ".join(capsys.readouterr().out.split())


def test_settings_of_another_kind_are_refused(tmp_path):
    resnets, mlps = (
        f"is a setting of {kind}, and --network.kind is {other}: leave it out, or choose "
        f"--network.kind {kind}"
        for kind, other in (("resnet", "mlp"), ("mlp", "resnet"))
    )
    rows = [
        ("--network.kind cnn", "--network.kind is 'cnn': use 'resnet' or 'mlp' or 'custom'"),
        ("--preset mlp --network.width 8", f"--network.width {resnets}"),
        ("--preset=mlp --network.norm=layer", f"--network.norm {resnets}"),
        ("--preset paper --network.kind mlp --network.blocks 3", f"--network.blocks {resnets}"),
        ("--preset paper --network.hidden 3", f"--network.hidden {mlps}"),
        ("--network.kind", "--network.kind has no value: add one, or leave it out"),
    ]
    assert_refused(*((functools.partial(network, arguments), said) for arguments, said in rows))
    # A resumed run keeps its kind.
    plan = dataclasses.asdict(options.Plan())
    runs.create_run(tmp_path / "run", presets.smoke(presets.get("default")), plan)
    rows = [
        ("--network.kind mlp", "--network.kind was 'resnet', not 'mlp'"),
        ("--network.kind resnet --network.width 4", "--network.width was 16, not 4"),
        ("--network.hidden 4", f"--network.hidden {mlps}"),
    ]
    resumed = f"--resume --run-dir {tmp_path / 'run'} "
    assert_refused(*((functools.partial(network, resumed + words), said) for words, said in rows))


def spelled(config):
    """Returns the options of a network's settings."""
    return {f"--network.{name}".replace("_", "-") for name, _ in flatten(config)}


def test_help_lists_the_settings_of_the_chosen_kind(capsys):
    both = {"resnet": ResNetConfig(), "mlp": MLPConfig()}
    shared = set.intersection(*(spelled(config) for config in both.values()))
    for kind in both:
        with pytest.raises(SystemExit):
            options.parse(["--network.kind", kind, "--help"])
        said = capsys.readouterr().out
        for each, config in both.items():
            others = spelled(config) - shared
            assert others and all((option in said) == (each == kind) for option in others)


# Kinds within kinds.


@dataclasses.dataclass(frozen=True)
class Constant:
    name: Literal["constant"] = "constant"


@dataclasses.dataclass(frozen=True)
class Cosine:
    name: Literal["cosine"] = "cosine"
    decay_steps: int = 100


@dataclasses.dataclass(frozen=True)
class Adam:
    kind: Literal["adam"] = "adam"
    epsilon: float = 1e-8


@dataclasses.dataclass(frozen=True)
class SGD:
    kind: Literal["sgd"] = "sgd"
    momentum: float = 0.9
    nesterov: bool = True
    its_rate: Constant | Cosine = dataclasses.field(default_factory=Constant)


@dataclasses.dataclass(frozen=True)
class Learner:
    optimizer: Adam | SGD = dataclasses.field(default_factory=SGD)
    steps: int = 1


@dataclasses.dataclass(frozen=True)
class Everything:
    learner: Learner = dataclasses.field(default_factory=Learner)


def parse(arguments, optimizer):
    arguments = [options._dashed(argument) for argument in arguments.split()]
    config = options._choose_kinds(Everything(Learner(optimizer)), arguments)
    return parsing.parse(Everything, arguments, "program", default=config).learner.optimizer


OF = "--learner.optimizer"
PRESET = SGD(momentum=0.5)


def test_kinds_can_be_nested():
    rows = [
        ("", PRESET),
        (f"{OF}.kind adam --learner.steps 3", Adam()),
        (f"{OF}.kind adam {OF}.epsilon 1", Adam(epsilon=1.0)),
        (f"{OF}.no-nesterov", SGD(momentum=0.5, nesterov=False)),
        (f"{OF}.its-rate.name cosine", dataclasses.replace(PRESET, its_rate=Cosine())),
        (
            f"{OF}.its_rate.decay_steps=3 {OF}.its_rate.name=cosine",
            dataclasses.replace(PRESET, its_rate=Cosine(decay_steps=3)),
        ),
    ]
    assert [(arguments, parse(arguments, PRESET)) for arguments, _ in rows] == rows


def test_settings_of_another_nested_kind_are_refused():
    rows = [
        (f"{OF}.kind lion", f"{OF}.kind is 'lion': use 'adam' or 'sgd'"),
        (f"{OF}.epsilon 1", f"{OF}.epsilon is a setting of adam, and {OF}.kind is sgd: leave"),
        (
            f"{OF}.kind adam {OF}.no-nesterov",
            f"{OF}.nesterov is a setting of sgd, and {OF}.kind is adam",
        ),
        (
            f"{OF}.kind adam {OF}.its-rate.name cosine",
            f"{OF}.its-rate is a setting of sgd, and {OF}.",
        ),
        (
            f"{OF}.its-rate.decay-steps 1",
            f"{OF}.its-rate.decay-steps is a setting of cosine, and {OF}",
        ),
        (f"{OF}.epsilom 1", f"Unrecognized options: {OF}.epsilom"),
    ]
    assert_refused(*((functools.partial(parse, words, PRESET), said) for words, said in rows))
