"""The lesson of one game of self-play, compared with the run's learner."""

import dataclasses
import functools
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
import misere_pile
from azjax import runs, training
from azjax.cli import explain
from azjax.games.tic_tac_toe import from_board
from azjax.networks import MLPConfig
from azjax.runs import checkpoint, presets
from azjax.runs.config import make_parts
from azjax.search import PUCT
from azjax.training.targets import Sample, TargetConfig
from azjax.viz.loop import lesson_data, loop_data
from run_directories import make_run


def small(preset, **changed):
    """The smallest run of a preset, with a learner that improves in a few steps."""
    config = presets.smoke(presets.get(preset))
    rate = {"learning_rate": 0.02, "warmup_steps": 0, "steps": 24}
    learner = dataclasses.replace(config.learner, **rate | changed)
    selfplay = dataclasses.replace(config.selfplay, opening_share=1.0)
    return dataclasses.replace(config, learner=learner, selfplay=selfplay)


CONFIGS = {
    "mlp": small("default", l2=0.01, value_weight=0.5),
    "conv": dataclasses.replace(small("paper"), targets=TargetConfig(0.75, 0.5)),
}


def start(parts):
    """A learner whose average, which plays, differs from the parameters that learn."""
    variables, average = (parts.network.init(jax.random.key(seed)) for seed in (1, 2))
    return parts.learner.init(variables)._replace(average=average)


@pytest.fixture(scope="module", params=["mlp", pytest.param("conv", marks=pytest.mark.slow)])
def taught(request):
    """Settings, parts, an untrained learner, and its lesson."""
    config = CONFIGS[request.param]
    parts = make_parts(config)
    learner = start(parts)
    return config, parts, learner, lesson_data(parts, config.learner, learner)


def cells(move):
    return np.array([{"X": 1, "O": -1, ".": 0}[mark] for mark in move["board"]])


def spread(move, name):
    """Numbers of the legal moves as an array of all moves."""
    dense = np.zeros(9)
    dense[move["actions"]] = move[name]
    return dense


def states_of(moves):
    states = [from_board(cells(move)) for move in moves]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)


def samples_of(parts, moves):
    """What is to be learned, from nothing but what the page shows."""
    states, game = states_of(moves), parts.game
    return Sample(
        planes=jax.vmap(lambda state: game.observe(state, parts.network.encoding))(states),
        legal=jax.vmap(game.legal_actions)(states),
        policy=jnp.array([spread(move, "pi") for move in moves], jnp.float32),
        value=jnp.array([move["target"] for move in moves], jnp.float32),
    )


def test_the_losses_equal_those_of_the_learner(taught):
    """The learner steps here on the rounded samples of the page."""
    config, parts, learner, lesson = taught

    @jax.jit
    def evaluate_and_update(learner, samples):
        outputs, _ = parts.network.train(learner.variables, samples.planes, None)
        policy = jax.nn.softmax(outputs[0], where=samples.legal)
        return policy, outputs[1], parts.learner.update(learner, samples, None)

    samples = samples_of(parts, lesson["moves"])
    for step, tolerance in ((0, 2e-3), (1, 2e-2)):
        policy, values, (learner, losses) = evaluate_and_update(learner, samples)
        close = functools.partial(pytest.approx, abs=tolerance)
        assert lesson["counts"][step] == step
        for name in ("loss", "grad_norm"):
            assert lesson[name][step] == close(float(losses[name])), name
        frames = [move["frames"][step] for move in lesson["moves"]]
        for name in ("loss", "policy_loss", "value_loss", "policy_kl", "l2"):
            assert np.mean([frame[name] for frame in frames]) == close(float(losses[name])), name
        for i, (frame, move) in enumerate(zip(frames, lesson["moves"], strict=True)):
            assert frame["p"] == close(np.asarray(policy)[i, move["actions"]].tolist())
            assert frame["v"] == close(float(values[i]))
            squared, weight = (move["target"] - frame["v"]) ** 2, config.learner.value_weight
            assert frame["value_loss"] == pytest.approx(squared, abs=1e-3)
            total = frame["policy_loss"] + weight * frame["value_loss"] + frame["l2"]
            assert frame["loss"] == pytest.approx(total, abs=1e-3)


def test_the_policy_moves_towards_that_of_the_search(taught):
    config, _, _, lesson = taught
    assert lesson["counts"] == [0, 1, 2, 4, 8, 16, 24]
    assert lesson["loss"][-1] < lesson["loss"][0]
    far = [np.mean([m["frames"][i]["policy_kl"] for m in lesson["moves"]]) for i in (0, -1)]
    assert far[1] < far[0] / 2
    assert (lesson["made"], lesson["rate"]) == (0, pytest.approx(config.learner.learning_rate))


def test_the_game_is_one_of_self_play_from_the_start(taught):
    config, parts, learner, lesson = taught
    moves = lesson["moves"]
    assert moves[0]["board"] == "." * 9  # Games of the run itself have random openings.
    states = states_of(moves)
    actions = jnp.array([move["action"] for move in moves])
    after, rewards = jax.jit(jax.vmap(parts.game.step))(states, actions)
    assert np.array_equal(after.board[:-1], [cells(move) for move in moves[1:]])
    assert after.over.tolist() == [False] * (len(moves) - 1) + [True]
    legal = np.asarray(jax.vmap(parts.game.legal_actions)(states))
    params = parts.network.fold(learner.average)
    logits, values = jax.jit(parts.evaluate)(params, None, states)
    for i, move in enumerate(moves):
        assert move["actions"] == np.flatnonzero(legal[i]).tolist()
        assert move["player"] == i % 2
        assert sum(move["pi"]) == pytest.approx(1, abs=1e-3)
        assert sum(move["visits"]) == config.search.num_simulations
        prior = jax.nn.softmax(logits[i], where=legal[i])
        assert spread(move, "prior") == pytest.approx(np.asarray(prior), abs=1e-3)
        assert move["value"] == pytest.approx(float(values[i]), abs=1e-3)
    outcome = int(rewards[-1]) * (-1) ** (len(moves) - 1)  # For X.
    assert [m["z"] for m in moves] == [outcome * (-1) ** i for i in range(len(moves))]
    mixed = config.targets != TargetConfig()
    assert any(m["target"] != m["z"] for m in moves) == mixed


def tiny(**changed):
    config = dataclasses.replace(small("default", steps=1), **changed)
    return dataclasses.replace(config, network=MLPConfig(hidden=(8,), head_hidden=8))


@pytest.mark.slow
def test_noise_is_on():
    """An untrained network gives similar priors, so only noise changes the first visits."""
    visits = []
    for fraction in (0.0, 1.0):
        config = tiny(search=PUCT(num_simulations=4, dirichlet_fraction=fraction))
        parts = make_parts(config)
        visits.append(lesson_data(parts, config.learner, start(parts))["moves"][0]["visits"])
    assert visits[0] != visits[1]


@pytest.mark.slow
def test_a_game_without_a_picture_is_shown_as_text():
    """In this game a player can move twice; values are for the mover."""
    game = misere_pile.make()
    names = lambda state: [f"{int(state.player)} takes {count}" for count in (1, 2)]  # noqa: E731
    game = game._replace(display=game.display._replace(name_actions=names))
    config = tiny(search=PUCT(num_simulations=8))
    parts = make_parts(config, game)
    moves = lesson_data(parts, config.learner, start(parts))["moves"]
    state, winner = game.init(), None
    for move in moves:
        assert (move["board"], move["player"]) == (game.display.render(state), int(state.player))
        assert move["names"] == [names(state)[action] for action in move["actions"]]
        state, reward = game.step(state, move["action"])
        winner = 1 - move["player"] if reward < 0 else winner
    assert bool(state.over)
    assert [m["z"] for m in moves] == [1 if m["player"] == winner else -1 for m in moves]


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    """A run whose network of iteration 3 is another than its seed makes."""
    config = small("default", steps=2)
    run_dir = make_run(tmp_path_factory.mktemp("taught") / "run", config)
    parts = make_parts(config)
    mesh = training.make_mesh(jax.devices()[:1])
    state = training.make_state(parts, jax.random.key(5), mesh)
    checkpoint.save(run_dir, state.replace(iteration=state.iteration + 3), 0.0)
    return run_dir


@pytest.mark.slow
def test_the_lessons_are_of_the_start_and_of_the_newest_network(run_dir):
    player, config = azjax.load(run_dir), runs.read_config(run_dir)
    data = loop_data(run_dir, player)
    assert data["game"] == "tic_tac_toe"
    assert data["settings"]["learner"] == dataclasses.asdict(config.learner)
    assert data["settings"].keys() == {"search", "selfplay", "targets", "learner"}
    for lesson, (iteration, seed) in zip(data["lessons"], ((0, 0), (3, 5)), strict=True):
        learner = training.init(player.parts, jax.random.key(seed)).learner
        known = lesson_data(player.parts, config.learner, learner)
        assert lesson == {"iteration": iteration} | known


@pytest.mark.slow
def test_a_run_that_cannot_be_resumed_has_no_such_section(run_dir, tmp_path, capsys):
    copy = tmp_path / "run"
    shutil.copytree(run_dir, copy)
    assert [s.kind for s in explain._loop(copy, azjax.load(copy))] == ["loop"]
    shutil.rmtree(runs.checkpoints(copy) / "3" / "state")
    player = azjax.load(copy)  # Who plays needs none of it.
    assert [lesson["iteration"] for lesson in loop_data(copy, player)["lessons"]] == [0]
    shutil.rmtree(runs.checkpoints(copy) / "0" / "state")
    with pytest.raises(checkpoint.CheckpointError):
        loop_data(copy, player)
    assert explain._loop(copy, player) == []
    error = capsys.readouterr().err
    assert error.startswith("the page does not show how the player learned: ") and "state" in error
