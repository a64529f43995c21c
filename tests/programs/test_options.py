"""The command line of training, and the kinds of settings that options choose."""

import dataclasses
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
from test_imports import ROOT


def network(arguments):
    return options.parse(arguments.split()).config.network


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
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
    ],
)
def test_an_option_chooses_the_kind_of_network(arguments, expected):
    assert network(arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "preset", "game"),
    [
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
    ],
)
def test_a_game_has_its_preset_unless_another_is_chosen(arguments, preset, game):
    found = options.parse(arguments.split())
    expected = (
        presets.get(preset) if "--smoke" not in arguments else presets.smoke(presets.get(preset))
    )
    assert found.plan.preset == preset
    assert found.config == dataclasses.replace(expected, game=game)


DOTS, PILE = (f"{module.__file__}:make" for module in (dots, misere_pile))
DOMINEERING = f"{ROOT}/examples/domineering.py:make"


@pytest.mark.parametrize(
    ("game", "preset", "encoding"),
    [(DOTS, "enumerable", "edges"), (PILE, "default", "relative"), (DOMINEERING, "large", None)],
)
def test_a_custom_game_has_the_preset_for_its_number_of_positions(game, preset, encoding):
    found = options.parse(["--game", game])
    assert found.plan.preset == preset
    network = dataclasses.replace(presets.get(preset).network, encoding=encoding or "relative")
    expected = dataclasses.replace(
        presets.get(preset), network=network, game=functions.identify(game)
    )
    assert found.config == expected


@pytest.mark.parametrize("arguments", ["", "--preset paper", "--network.kind mlp", "--smoke"])
def test_the_only_encoding_of_a_custom_game_is_the_default(arguments):
    found = options.parse(["--game", DOTS, *arguments.split()])
    assert custom.make_parts(found.config, found.typed).network.encoding == "edges"
    with pytest.raises(ValueError, match="network.encoding is 'absolute': use 'edges'"):
        given = options.parse(["--game", DOTS, *arguments.split(), "--network.encoding=absolute"])
        custom.make_parts(given.config, given.typed)


def test_symmetries_that_do_not_divide_the_widths_are_not_shared():
    def fitted(count):
        rows = np.zeros((count, 25), np.int32), np.zeros((count, 12), np.int32)
        return presets.fit(
            presets.get("enumerable"), dots.make()._replace(symmetries=Symmetries(*rows))
        )

    assert fitted(4).network.symmetric and not fitted(6).network.symmetric


@pytest.mark.parametrize("arguments", ["", "--smoke", "--preset mlp", "--replay.shards 4"])
def test_a_custom_game_is_made_after_the_devices_are_chosen(arguments, monkeypatch):
    order, find = [], custom.find_game
    monkeypatch.setattr(custom, "find_game", lambda typed: order.append("game") or find(typed))
    arguments = ["--game", DOTS, "--cpu-devices", "2", *arguments.split()]
    found = options.parse(arguments, order.append)
    (known, made) = order
    assert made == "game"
    assert known.config.replay.shards == found.config.replay.shards
    assert known.plan.cpu_devices == found.plan.cpu_devices == 2


def test_help_shows_the_preset_of_a_custom_game(capsys):
    with pytest.raises(SystemExit):
        options.parse(["--game", DOTS, "--help"], lambda _: pytest.fail("help needs no device"))
    assert "(default: enumerable)" in " ".join(capsys.readouterr().out.split())


RESNETS, MLPS = (
    f"is a setting of {kind}, and --network.kind is {other}: leave it out, or choose "
    f"--network.kind {kind}"
    for kind, other in (("resnet", "mlp"), ("mlp", "resnet"))
)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--network.kind cnn", "--network.kind is 'cnn': use 'resnet' or 'mlp' or 'custom'"),
        ("--preset mlp --network.width 8", f"--network.width {RESNETS}"),
        ("--preset=mlp --network.norm=layer", f"--network.norm {RESNETS}"),
        ("--preset paper --network.kind mlp --network.blocks 3", f"--network.blocks {RESNETS}"),
        (
            "--preset paper --network.hidden 3",
            "--network.hidden is a setting of mlp, and --network.kind is resnet: leave it out, "
            "or choose --network.kind mlp",
        ),
        ("--network.kind", "--network.kind has no value: add one, or leave it out"),
    ],
)
def test_settings_of_another_kind_are_refused(arguments, said):
    with pytest.raises(ValueError) as error:
        network(arguments)
    assert str(error.value) == said


def spelled(config):
    """Returns the options of a network's settings."""
    return {f"--network.{name}".replace("_", "-") for name, _ in flatten(config)}


@pytest.mark.parametrize("kind", ["resnet", "mlp"])
def test_help_lists_the_settings_of_the_chosen_kind(kind, capsys):
    with pytest.raises(SystemExit):
        options.parse(["--network.kind", kind, "--help"])
    said = capsys.readouterr().out
    both = {"resnet": ResNetConfig(), "mlp": MLPConfig()}
    shared = set.intersection(*(spelled(config) for config in both.values()))
    for each, config in both.items():
        others = spelled(config) - shared
        assert others and all((option in said) == (each == kind) for option in others)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--network.kind mlp", "--network.kind was 'resnet', not 'mlp'"),
        ("--network.kind resnet --network.width 4", "--network.width was 16, not 4"),
        ("--network.hidden 4", f"--network.hidden {MLPS}"),
    ],
)
def test_a_resumed_run_keeps_its_kind(arguments, said, tmp_path):
    run_dir = tmp_path / "run"
    plan = dataclasses.asdict(options.Plan())
    runs.create_run(run_dir, presets.smoke(presets.get("default")), plan)
    with pytest.raises(ValueError) as error:
        options.parse(["--resume", "--run-dir", str(run_dir), *arguments.split()])
    assert said in str(error.value)


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


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", PRESET),
        (f"{OF}.kind adam --learner.steps 3", Adam()),
        (f"{OF}.kind adam {OF}.epsilon 1", Adam(epsilon=1.0)),
        (f"{OF}.no-nesterov", SGD(momentum=0.5, nesterov=False)),
        (f"{OF}.its-rate.name cosine", dataclasses.replace(PRESET, its_rate=Cosine())),
        (
            f"{OF}.its_rate.decay_steps=3 {OF}.its_rate.name=cosine",
            dataclasses.replace(PRESET, its_rate=Cosine(decay_steps=3)),
        ),
    ],
)
def test_kinds_can_be_nested(arguments, expected):
    assert parse(arguments, PRESET) == expected


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
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
    ],
)
def test_settings_of_another_nested_kind_are_refused(arguments, said):
    with pytest.raises(ValueError) as error:
        parse(arguments, PRESET)
    assert str(error.value).startswith(said)
