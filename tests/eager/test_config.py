"""Presets fit their games, and every setting of training changes the program."""

import dataclasses
import typing

import pytest

from azjax import games
from azjax._settings import find_kinds
from azjax.runs import config as configs
from azjax.runs import presets
from azjax.runs.config import Config
from nim import NIM
from traced_settings import LEARNER, MLP, OTHERS, SELFPLAY, without_effect


@pytest.mark.parametrize("name", presets.PRESETS)
def test_smoke_keeps_kinds_and_shrinks_sizes(name):
    config, small = presets.get(name), presets.smoke(presets.get(name))
    assert small.network.kind == config.network.kind
    assert small.search.algorithm == config.search.algorithm
    assert small.selfplay.games * small.selfplay.unroll_length <= 64
    assert small.selfplay.archive <= 1024 and bool(small.selfplay.archive) == bool(
        config.selfplay.archive
    )
    assert small.learner.steps * small.learner.batch_size <= 64
    assert small.search.num_simulations <= 4 and small.replay.capacity <= 1024


def test_a_preset_fits_a_game():
    """One encoding replaces that of the preset; symmetries must divide every width."""
    unary = NIM._replace(encodings=("unary",))
    shared = dataclasses.replace(Config().network, symmetric=True, width=16, head_hidden=8)
    fitted = presets.fit(Config(network=shared), games.make("tic_tac_toe")).network
    assert fitted.symmetric and fitted.encoding == "relative"
    for narrow in ({"width": 12}, {"head_hidden": 12}):
        network = dataclasses.replace(shared, **narrow)
        assert not presets.fit(Config(network=network), games.make("tic_tac_toe")).network.symmetric
    assert presets.fit(Config(network=shared), unary).network.encoding == "unary"


NO_PROGRAM = {"kind", "algorithm"}  # Tags, which select the class.


# Those that are easily lost; `tests/system/test_lowering.py` has the others.
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
