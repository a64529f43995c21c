"""The lesson of one game of self-play, compared with the run's learner."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.games.tic_tac_toe import from_board
from azjax.networks import MLPConfig
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.search import PUCT
from azjax.training.targets import Sample, TargetConfig
from azjax.viz import loop

STEPS = 24


@pytest.fixture(scope="module")
def taught():
    """Settings, parts, an untrained learner, and its lesson.

    The average, which plays, differs from the parameters that learn.
    """
    config = presets.smoke(presets.get("default"))
    rate = {"learning_rate": 0.02, "warmup_steps": 0, "steps": STEPS}
    config = dataclasses.replace(
        config,
        network=MLPConfig(hidden=(16,), head_hidden=8),
        search=PUCT(num_simulations=8, dirichlet_fraction=1.0),
        targets=TargetConfig(0.75, 0.5),
        selfplay=dataclasses.replace(config.selfplay, opening_share=1.0),
        learner=dataclasses.replace(config.learner, l2=0.01, value_weight=0.5, **rate),
    )
    parts = make_parts(config)
    variables, average = (parts.network.init(jax.random.key(seed)) for seed in (1, 2))
    learner = parts.learner.init(variables)._replace(average=average)
    return config, parts, learner, loop.lesson_data(parts, config.learner, learner)


def cells(move):
    return np.array([{"X": 1, "O": -1, ".": 0}[mark] for mark in move["board"]])


def spread(move, name):
    """Numbers of the legal moves as an array of all moves."""
    dense = np.zeros(9)
    dense[move["actions"]] = move[name]
    return dense


@pytest.fixture(scope="module")
def samples(taught):
    """What is to be learned, from nothing but what the page shows, and its states."""
    _, parts, _, lesson = taught
    moves, game = lesson["moves"], parts.game
    states = [from_board(cells(move)) for move in moves]
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    return states, Sample(
        planes=jax.vmap(lambda state: game.observe(state, parts.network.encoding))(states),
        legal=jax.vmap(game.legal_actions)(states),
        policy=jnp.array([spread(move, "pi") for move in moves], jnp.float32),
        value=jnp.array([move["target"] for move in moves], jnp.float32),
    )


@pytest.fixture(scope="module")
def steps(taught, samples):
    """The learner's outputs and losses before its first two steps, on the page's samples."""
    _, parts, learner, _ = taught

    @jax.jit
    def evaluate_and_update(learner, samples):
        outputs, _ = parts.network.train(learner.variables, samples.planes, None)
        policy = jax.nn.softmax(outputs[0], where=samples.legal)
        return policy, outputs[1], parts.learner.update(learner, samples, None)

    seen = []
    for _ in range(2):
        policy, values, (learner, losses) = evaluate_and_update(learner, samples[1])
        seen.append(jax.device_get((policy, values, losses)))
    return seen


def test_the_losses_equal_those_of_the_learner(taught, steps):
    """The learner steps here on the rounded samples of the page."""
    config, _, _, lesson = taught
    for step, ((policy, values, losses), tolerance) in enumerate(
        zip(steps, (2e-3, 2e-2), strict=True)
    ):
        close = functools.partial(pytest.approx, abs=tolerance)
        assert lesson["counts"][step] == step
        for name in ("loss", "grad_norm"):
            assert lesson[name][step] == close(float(losses[name])), name
        frames = [move["frames"][step] for move in lesson["moves"]]
        for name in ("loss", "policy_loss", "value_loss", "policy_kl", "l2"):
            assert np.mean([frame[name] for frame in frames]) == close(float(losses[name])), name
        for i, (frame, move) in enumerate(zip(frames, lesson["moves"], strict=True)):
            assert frame["p"] == close(policy[i, move["actions"]].tolist())
            assert frame["v"] == close(float(values[i]))
            squared, weight = (move["target"] - frame["v"]) ** 2, config.learner.value_weight
            assert frame["value_loss"] == pytest.approx(squared, abs=1e-3)
            total = frame["policy_loss"] + weight * frame["value_loss"] + frame["l2"]
            assert frame["loss"] == pytest.approx(total, abs=1e-3)


def test_the_policy_moves_towards_that_of_the_search(taught):
    config, _, _, lesson = taught
    assert lesson["counts"] == [0, 1, 2, 4, 8, 16, STEPS]
    assert lesson["loss"][-1] < lesson["loss"][0]
    far = [np.mean([m["frames"][i]["policy_kl"] for m in lesson["moves"]]) for i in (0, -1)]
    assert far[1] < far[0] / 2
    assert (lesson["made"], lesson["rate"]) == (0, pytest.approx(config.learner.learning_rate))


@pytest.mark.compiles(1)  # The inference form of the network.
def test_the_game_is_one_of_self_play_from_the_start(taught, samples):
    config, parts, learner, lesson = taught
    moves, (states, sample) = lesson["moves"], samples
    assert moves[0]["board"] == "." * 9  # Games of the run itself have random openings.
    actions = jnp.array([move["action"] for move in moves])
    after, rewards = jax.vmap(parts.game.step)(states, actions)
    assert np.array_equal(after.board[:-1], [cells(move) for move in moves[1:]])
    assert after.over.tolist() == [False] * (len(moves) - 1) + [True]
    params = parts.network.fold(learner.average)
    logits, values = parts.evaluate(params, None, states)
    priors = np.asarray(jax.nn.softmax(logits, where=sample.legal))
    for i, move in enumerate(moves):
        assert move["actions"] == np.flatnonzero(sample.legal[i]).tolist()
        assert move["player"] == i % 2
        assert sum(move["pi"]) == pytest.approx(1, abs=1e-3)
        assert sum(move["visits"]) == config.search.num_simulations
        assert spread(move, "prior") == pytest.approx(priors[i], abs=1e-3)
        assert move["value"] == pytest.approx(float(values[i]), abs=1e-3)
    outcome = int(rewards[-1]) * (-1) ** (len(moves) - 1)  # For X.
    assert [m["z"] for m in moves] == [outcome * (-1) ** i for i in range(len(moves))]
    assert any(m["target"] != m["z"] for m in moves)  # Targets of the run, not outcomes.


def test_noise_is_on(taught):
    """With all weight on the noise, the first visits do not follow the priors of the network."""
    moves = taught[3]["moves"][:4]
    assert any(
        move["visits"][int(np.argmax(move["prior"]))] < max(move["visits"]) for move in moves
    )
