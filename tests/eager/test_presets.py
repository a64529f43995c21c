"""The presets match their description, and differ from each other only as described."""

import dataclasses

import pytest

import dots
from azjax import games
from azjax._settings import list_changes
from azjax.runs import presets
from azjax.runs.config import Config, count_devices
from azjax.search import PUCT


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


@pytest.mark.parametrize(
    ("game", "name"),
    [
        *[("tic_tac_toe", "default"), ("mnk:3x3x3", "default"), ("pgx:tic_tac_toe", "default")],
        *[("mnk:2x2x2", "default"), ("hex:3", "default")],
        *[("othello:4", "enumerable"), ("connect_four:4x4", "enumerable")],
        *[("connect_four", "connect_four"), ("connect_four:7x8", "connect_four")],
        *[("othello", "large"), ("pgx:chess", "large"), ("pgx:connect_four", "large")],
    ],
)
def test_a_game_is_trained_by_the_preset_of_its_name_or_its_size(game, name):
    assert presets.name_for(game) == name


def iterations(config):
    """Returns how many iterations the buffer holds, and over how many the rate decays."""
    moves = config.selfplay.games * config.selfplay.unroll_length
    return config.replay.capacity / moves, config.learner.decay_steps / config.learner.steps


def test_large_games_differ_little_from_connect_four():
    old, new = presets.get("connect_four"), presets.get("large")
    changes = {name: (before, after) for name, before, after in list_changes(old, new)}
    assert changes == {
        "game": ("connect_four", "tic_tac_toe"),
        "network.width": (320, 448),
        "replay.capacity": (old.replay.capacity, old.replay.capacity // 2),
        "learner.learning_rate": (old.learner.learning_rate, old.learner.learning_rate / 2),
        "learner.decay_steps": (96_000, 30_000),
        "learner.policy_surprise": (0.5, 0.0),
    }


def test_enumerable_games_restart_in_each_iteration():
    old, new = presets.get("connect_four"), presets.get("enumerable")
    assert (new.search, new.targets) == (old.search, old.targets)
    assert new.network == dataclasses.replace(old.network, width=224)
    assert not new.selfplay.carry_over and new.selfplay.unroll_length == 4
    assert new.selfplay.archive == 2**20 and new.selfplay.archive_share == 0.8
    assert iterations(new) == (8, 156.25)
    assert new.learner == dataclasses.replace(old.learner, decay_steps=10_000, policy_surprise=0.0)


def test_the_preset_of_the_paper_learns_as_alphazero_did():
    """Except for sizes that depend on the board, and for random openings."""
    config = presets.get("paper")
    assert config.network.layers == "conv"
    search = PUCT(num_simulations=50, c_puct=1.25, dirichlet_fraction=0.25, dirichlet_alpha=1.0)
    assert config.search == search and search.first_play_urgency == "zero"
    assert config.targets == Config().targets  # Only outcomes.
    assert (config.targets.outcome_weight, config.targets.td_lambda) == (1, 1)
    learner = config.learner
    assert learner.optimizer == "sgd" and learner.l2 == 1e-4 and learner.value_weight == 1
    others = learner.clip_norm, learner.ema_decay, learner.weight_decay, learner.policy_surprise
    assert not any(others) and config.selfplay.archive == 0
    assert learner.final_learning_rate < learner.learning_rate and learner.decay_steps > 0


def test_a_preset_fits_a_game():
    """One encoding replaces that of the preset; symmetries must divide every width."""
    shared = dataclasses.replace(Config().network, symmetric=True, width=16, head_hidden=8)
    fitted = presets.fit(Config(network=shared), games.make("tic_tac_toe")).network
    assert fitted.symmetric and fitted.encoding == "relative"
    for narrow in ({"width": 12}, {"head_hidden": 12}):
        network = dataclasses.replace(shared, **narrow)
        assert not presets.fit(Config(network=network), games.make("tic_tac_toe")).network.symmetric
    assert presets.fit(Config(network=shared), dots.make()).network.encoding == "edges"


def test_the_devices_divide_the_shards_or_the_games_and_samples():
    assert count_devices(16, 6) == 4 and count_devices(16, 6, processes=8) == 2
    assert count_devices(8, 64, evenly=(1024, 512)) == 64
    assert count_devices(8, 64, evenly=(1024, 96)) == 32 and count_devices(7, 4) == 1
