"""Settings of training change the compiled program, and fit the devices."""

import dataclasses
import typing

import pytest

from azjax import training
from azjax._settings import find_kinds
from azjax.runs import config as configs
from azjax.runs.config import Config
from azjax.training.learner import LearnerConfig
from azjax.training.parts import SelfPlayConfig
from azjax.training.replay import ReplayConfig
from traced_settings import LEARNER, MLP, OTHERS, SELFPLAY, without_effect

NO_PROGRAM = {"kind", "algorithm"}  # Tags, which select the class.


# Those that are easily lost; `tests/system/test_config.py` has all.
LEARNING = "l2", "weight_decay", "clip_norm", "value_weight", "policy_surprise", "ema_decay"
PLAYING = "games_at_once", "archive_share", "temperature", "temperature_plies"


def test_settings_of_training_change_the_program():
    for settings, names in ((LEARNER, LEARNING), (SELFPLAY, PLAYING)):
        assert without_effect(settings, {name: OTHERS[settings][name] for name in names}) == []


def test_the_arithmetic_is_a_setting_of_layers_that_symmetries_share():
    types = {name: OTHERS[MLP][name] for name in ("evaluation_dtype", "learning_dtype")}
    assert without_effect(dataclasses.replace(MLP, symmetric=True), types) == []


def test_no_setting_is_left_out():
    classes = set()
    for name, hint in typing.get_type_hints(Config).items():
        kinds = find_kinds(hint)
        found = kinds.classes.values() if kinds else [hint]
        classes |= {cls for cls in found if dataclasses.is_dataclass(cls)}
        assert dataclasses.is_dataclass(hint) or kinds or name in ("game", "seed", "parts")
    classes.remove(configs.CustomNetworkConfig)  # Has no effect.
    assert {type(settings) for settings in OTHERS} == classes
    for settings, changes in OTHERS.items():
        names = {field.name for field in dataclasses.fields(settings)}
        assert changes.keys() == names - NO_PROGRAM


# Devices.

SHARED = Config(
    selfplay=SelfPlayConfig(games=16, unroll_length=4),
    replay=ReplayConfig(capacity=64),
    learner=LearnerConfig(batch_size=32),
)


def numbers(config):
    """Games, batch, capacity and shards."""
    replay = config.replay
    return config.selfplay.games, config.learner.batch_size, replay.capacity, replay.shards


@pytest.mark.parametrize(
    ("devices", "keep", "expected"),
    [
        (4, (), (16, 32, 64, 8)),
        (3, (), (18, 33, 72, 3)),
        (6, (), (18, 36, 72, 6)),
        (16, (), (16, 32, 64, 16)),
        (100, (), (100, 100, 400, 100)),
        (3, ("replay.shards",), (16, 32, 64, 8)),
        (3, ("selfplay.games",), (16, 33, 64, 3)),
        (3, ("learner.batch_size", "seed"), (18, 32, 72, 3)),
        (3, ("replay.capacity",), (18, 33, 64, 3)),
    ],
)
def test_settings_are_rounded_up_for_the_devices(devices, keep, expected):
    fitted = configs.fit_devices(SHARED, devices, keep)
    assert numbers(fitted) == expected
    if numbers(fitted) == numbers(SHARED):
        assert fitted is SHARED
    named = [name for name in keep if name.partition(".")[2]]
    if not named:
        training.check_parts(configs.make_parts(fitted), devices)
        return
    with pytest.raises(ValueError, match=named[0]):
        training.check_parts(configs.make_parts(fitted), devices)
