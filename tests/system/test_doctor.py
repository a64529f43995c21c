"""The doctor finds planted faults in short trainings, and nothing in a healthy one."""

import dataclasses

import jax
import jax.numpy as jnp
import optax
import pytest

import azjax
from azjax import diagnosis
from azjax.cli import doctor
from azjax.networks import MLPConfig
from azjax.runs.config import Config, make_parts
from azjax.search import Gumbel
from azjax.training import make_mesh
from azjax.training.learner import LearnerConfig, make_learner
from azjax.training.parts import SelfPlayConfig
from azjax.training.replay import ReplayConfig

HEALTHY = Config(
    network=MLPConfig(hidden=(64,), head_hidden=32),
    search=Gumbel(num_simulations=8),
    selfplay=SelfPlayConfig(games=128, unroll_length=8),
    replay=ReplayConfig(capacity=4096, shards=1),
    learner=LearnerConfig(batch_size=128, steps=32, learning_rate=5e-3),
)


def change(section, **settings):
    return dataclasses.replace(
        HEALTHY, **{section: dataclasses.replace(getattr(HEALTHY, section), **settings)}
    )


def wrong_sign(parts):
    right = parts.targets

    def make(transitions):
        samples = right.make(transitions)
        return samples._replace(value=-samples.value)

    return parts._replace(targets=right._replace(make=make))


def no_rate(parts):
    return parts._replace(learner=make_learner(parts.network, optax.sgd(0.0), steps=8))


def wrong_mask(parts):
    game = parts.game._replace(legal_actions=lambda state: jnp.ones(9, bool) & ~state.over)
    return parts._replace(game=game)


def dead_units(parts):
    init = parts.network.init

    def broken(key):
        variables = init(key)
        return jax.tree.map(lambda leaf: leaf - 9.0 if leaf.shape == (64,) else leaf, variables)

    return parts._replace(network=parts.network._replace(init=broken))


SETTINGS = dataclasses.replace(
    change("selfplay", unroll_length=1, carry_over=False, opening_share=0.0),
    search=Gumbel(num_simulations=8, gumbel_scale=0.0),
    learner=LearnerConfig(batch_size=512, steps=2000, decay_steps=32, final_learning_rate=0.0),
)
ONE_GAME = dataclasses.replace(
    change("selfplay", games=1, unroll_length=64, opening_share=0.0),
    search=Gumbel(num_simulations=2, gumbel_scale=0.0),
    learner=LearnerConfig(batch_size=128, steps=1, learning_rate=1e-9, decay_steps=0),
)
FAULTS = {  # What is found: settings, a change of the parts, and iterations.
    "signs of values": (HEALTHY, wrong_sign, 6),
    "policy": (HEALTHY, no_rate, 2),
    "contract of the game": (HEALTHY, wrong_mask, 1),
    "dead units": (HEALTHY, dead_units, 1),
    "repetition": (ONE_GAME, lambda parts: parts, 4),
    "openings, ends of games, learning rate, age of samples": (SETTINGS, lambda parts: parts, 2),
}


def train(config, parts, iterations):
    state = None
    for state, _ in azjax.iterate(parts, jax.random.key(0), make_mesh(jax.devices()[:1])):
        if int(state.iteration) == iterations:
            return state
    return state


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name):
    config, plant, iterations = FAULTS[name]
    parts = plant(make_parts(config))
    state = train(config, parts, iterations)
    findings = diagnosis.examine(config, parts, state, [])
    alarms = {finding.name for finding in findings if finding.advice}
    assert {*name.split(", ")} <= alarms, findings


def test_a_healthy_run_raises_no_alarm(tmp_path, capfd):
    plan = {"max_iterations": 12, "checkpoint_every": 11, "keep_checkpoints": 2}
    azjax.train(HEALTHY, tmp_path / "run", until="never", report=False, **plan)
    assert doctor.main(["--run-dir", str(tmp_path / "run")]) == 0
    lines = capfd.readouterr().out.splitlines()[-12:]
    assert all(line.startswith("ok  ") for line in lines)
    (tmp_path / "run/checkpoints/12/state/arrays.npz").write_bytes(b"")
    damage, *rest = diagnosis.diagnose(tmp_path / "run")
    assert damage.name == "checkpoint" and "12" in damage.sentence and damage.advice
    assert not any(finding.advice for finding in rest)
    assert not (tmp_path / "run/damaged").exists()
