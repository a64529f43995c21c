"""Whole training runs, other platforms and types, and long searches by all loops."""

import dataclasses
import functools
import json
import os
import re
import subprocess
import sys

import jax
import mctx
import numpy as np
import pytest
from jax import export

import azjax
from azjax import diagnosis, games, training
from azjax.cli import doctor, verify
from azjax.games.base import init_batch
from azjax.networks import MLPConfig, make_network
from azjax.runs import Config, make_parts, presets
from azjax.search import PUCT, Gumbel, MctxPolicy, make_search, network_evaluator
from azjax.training import LearnerConfig, ReplayConfig, SelfPlayConfig
from tables import LOOPS, assert_equal, bench, search_by
from traced_settings import OTHERS, without_effect
from trained import process_environment, read, train_in

TINY = presets.smoke(presets.get("mlp"))


def test_a_few_iterations_improve_the_player_and_raise_no_alarm(tmp_path, capfd):
    config = Config(
        network=MLPConfig(hidden=(64,), head_hidden=32),
        search=Gumbel(num_simulations=16),
        selfplay=SelfPlayConfig(games=128, unroll_length=8),
        replay=ReplayConfig(capacity=8192, shards=1),
        learner=LearnerConfig(batch_size=256, steps=32, learning_rate=5e-3, warmup_steps=0),
    )
    settings = {"max_iterations": 8, "until": "never", "report": False, "display": False}
    settings |= {"checkpoint_every": 7, "keep_checkpoints": 2, "examine_every": 1}
    first, *_, last = azjax.train(config, tmp_path / "run", **settings).metrics
    for name in ("policy_kl", "blunders", "losing_lines_first", "losing_lines_second"):
        assert last[name] < first[name] / 2, name
    assert last["value_error"] < first["value_error"]
    assert doctor.main(["--run-dir", str(tmp_path / "run")]) == 0
    assert all(line.startswith("ok  ") for line in capfd.readouterr().out.splitlines())
    (tmp_path / "run/checkpoints/8/state/arrays.npz").write_bytes(b"")
    damage, *rest = diagnosis.diagnose(tmp_path / "run")
    assert damage.name == "checkpoint" and "8" in damage.sentence and damage.advice
    assert not any(finding.advice for finding in rest)
    assert not (tmp_path / "run/damaged").exists()
    player = azjax.load(tmp_path / "run", iteration=7)
    parts, infer = player.parts, player.parts.network.infer
    network = parts.network._replace(infer=lambda *given: (infer(*given)[0], -infer(*given)[1]))
    wrong = diagnosis._signs(parts._replace(network=network), player.params, jax.random.key(0))
    assert wrong.sentence.startswith("right in ") and wrong.advice


def test_games_of_pgx_are_played_in_groups_and_stored():
    """Their states have a leaf without elements."""
    selfplay = SelfPlayConfig(games=16, games_at_once=8, unroll_length=4, archive=20_000)
    network, learner = MLPConfig(hidden=(4,), head_hidden=4), LearnerConfig(batch_size=8, steps=1)
    sections = {"selfplay": selfplay, "network": network, "learner": learner}
    replay, sections["search"] = ReplayConfig(capacity=512, shards=2), Gumbel(num_simulations=2)
    parts = make_parts(Config(game="pgx:tic_tac_toe", replay=replay, **sections))
    state = training.init(parts, jax.random.key(0))
    assert any(leaf.size == 0 for leaf in jax.tree.leaves(state.games.states))
    after, _ = jax.jit(functools.partial(training.iteration, parts))(state)
    assert 16 < after.archive.used <= 2 * 16 * 4


# Runs of the program.


def test_verify_finds_the_certificate_of_a_player_that_can_be_beaten(tmp_path, capfd):
    run_dir = tmp_path / "run"
    few = "--smoke", "--network.kind=mlp", "--no-report", "--max-iterations=1"
    assert train_in(run_dir, *few) == 0
    said = read(run_dir)
    assert len({search["blunders"] for search in said["searches"]} | {said["blunders"]}) == 3
    capfd.readouterr()
    assert verify.main(["--run-dir", str(run_dir)]) == 1
    assert "NOT PROVED" in capfd.readouterr().out
    player, other = azjax.load(run_dir), {"seconds": 0, "device": "one"}
    found = json.loads(json.dumps(azjax.verify(player).as_json()))
    assert found | other == said | other
    for seat in ("first", "second"):  # Exhaustive play counts the same losing lines.
        lost = azjax.prove_seat(player, seat).exploration.ends.games[2]
        assert lost == said[f"losing_lines_{seat}"]
        assert verify.main(["--run-dir", str(run_dir), "--lines", seat]) == (lost > 0)


# Lowering.


@pytest.mark.parametrize("name", presets.PRESETS)
def test_an_iteration_follows_its_configuration(name):
    """Independent of this machine; platforms and devices take turns."""
    config, number = presets.get(name), [*presets.PRESETS].index(name)
    if name == "paper":
        config = dataclasses.replace(config, network=dataclasses.replace(config.network, blocks=1))
    platform, devices = ("cuda", "tpu")[number % 2], 2 if number % 3 == 0 else 1
    parts, mesh = make_parts(config, platform=platform), training.make_mesh(jax.devices()[:devices])
    run, state = training.make_iteration(parts, mesh), training.abstract_state(parts, mesh)
    text = export.export(run, platforms=[platform])(state).mlir_module()
    called = " ".join(re.findall(r"custom_call @(\w+)", text))
    assert not re.search(r"lapack|blas_|onednn|cpu|callback", called)
    # Games that are searched together: the leading sizes of arrays `[B, N, A]`.
    nodes, actions = config.search.num_simulations + 1, games.make(config.game).num_actions
    batches = re.findall(rf"tensor<(\d+)x{nodes}x{actions}xf32>", text)
    assert {*map(int, batches)} == {config.selfplay.games // devices}


@pytest.mark.parametrize("settings", OTHERS, ids=lambda settings: type(settings).__name__)
def test_every_setting_changes_the_program(settings):
    assert without_effect(settings, OTHERS[settings]) == []


# JAX's 64-bit mode, in a process, because JAX caches index types of the first mode.

IN_64_BITS = """
import functools
import azjax as az, jax
from azjax import players, training
from azjax.games.base import init_batch, write_types
from azjax.search import ALGORITHMS, paths, rollout_evaluator, simulate

def trace(function, *arguments):
    assert "64[" not in write_types(jax.eval_shape(function, *arguments))

for name in ("mlp", "paper"):
    parts = az.make_parts(config := az.presets.smoke(az.presets.get(name)))
    trace(functools.partial(training.init, parts), jax.random.key(0))
    state = training.abstract_state(parts, training.make_mesh(jax.devices()[:1]))
    trace(functools.partial(training.iteration, parts), state)
game, key = az.make("tic_tac_toe"), jax.random.key(0)
for algorithm in ALGORITHMS.values():
    for grow in (simulate.grow, paths.grow):
        search = az.make_search(algorithm(3), game, rollout_evaluator(game), grow)
        options = {"temperature": 1.0, "add_noise": True}
        trace(functools.partial(search, None, **options), key, init_batch(game, 2))
run = az.train(az.presets.smoke(az.presets.get("mlp")), "run", max_iterations=1, report=False)
player = az.load("tic_tac_toe")
assert az.verify(az.load("run"), ()).decision_states == 4520
assert az.prove_seat(player, "second", "proof").exploration.ply == 8
az.export(player, "player.stablehlo", num_simulations=2, batch_size=1)
az.play_match(game, player.agent, players.minimax_agent(game, 2), 4, key)
try:
    az.make("pgx:tic_tac_toe")
except ValueError as error:
    assert "in JAX's 64-bit mode" in str(error)
"""


def test_everything_works_in_64_bits(tmp_path):
    """And results keep their types."""
    environment = os.environ | process_environment() | {"JAX_ENABLE_X64": "1"}
    pipes = {"capture_output": True, "text": True, "cwd": tmp_path}
    done = subprocess.run([sys.executable, "-c", IN_64_BITS], env=environment, **pipes)
    assert done.returncode == 0, done.stderr[-3000:]


# Long searches.


def test_all_loops_find_the_same_where_a_player_moves_twice():
    """In Othello, players pass; these trees reach the end of the game."""
    game = games.make("othello:4")
    network = make_network(MLPConfig(hidden=(16,), head_hidden=8), game)
    larger = jax.tree.map(lambda leaf: 3 * leaf, network.init(jax.random.key(3)))  # Outputs differ.
    states = jax.device_get(jax.jit(lambda: init_batch(game, 8))())
    given = game, network_evaluator(game, network), network.fold(larger), states
    ours, *others = (search_by(loop, PUCT(num_simulations=150), *given) for loop in LOOPS)
    for loop, theirs in zip([*LOOPS][1:], others, strict=True):
        assert_equal(ours, theirs, loop)


def test_gumbel_equals_the_policy_of_mctx(some_states):
    """Without rescaled Q; mctx decides between scores closer than 1e-7 by chance."""
    a_bench = bench("tic_tac_toe")
    completed = functools.partial(
        mctx.qtransform_completed_by_mix_value,
        **{"value_scale": 0.25, "maxvisit_init": 50.0, "rescale_values": False},
    )
    policy = functools.partial(
        mctx.gumbel_muzero_policy, max_num_considered_actions=3, qtransform=completed
    )

    def find(algorithm):
        search = jax.jit(make_search(algorithm, a_bench.game, a_bench.evaluate))
        keys = jax.random.split(jax.random.key(0), len(some_states.board))
        return jax.device_get(search(a_bench.random_table(), keys, some_states))

    ours = find(Gumbel(max_considered_actions=3, value_scale=0.5))
    theirs = find(MctxPolicy(policy))
    equal = (ours.visit_counts == theirs.visit_counts).all(axis=1)
    assert equal.mean() > 0.98
    most = theirs.visit_counts.max(axis=1, keepdims=True)
    clear = equal & ((theirs.visit_counts == most).sum(axis=1) == 1)
    np.testing.assert_array_equal(ours.action[clear], theirs.action[clear])
    weights = ours.action_weights[equal], theirs.action_weights[equal]
    np.testing.assert_allclose(*weights, atol=1e-5)
