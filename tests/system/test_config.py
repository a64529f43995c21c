"""Every setting changes the compiled program."""

import dataclasses

import pytest

from traced_settings import OTHERS, RESNET, without_effect


@pytest.mark.parametrize("settings", OTHERS, ids=lambda settings: type(settings).__name__)
def test_every_setting_changes_the_program(settings):
    assert without_effect(settings, OTHERS[settings]) == []


def test_the_arithmetic_is_a_setting_of_layers_that_symmetries_share():
    types = {name: OTHERS[RESNET][name] for name in ("evaluation_dtype", "learning_dtype")}
    assert without_effect(dataclasses.replace(RESNET, symmetric=True), types) == []
