"""Costs of programs: every loop is counted as often as it runs, and nothing twice."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.runs import presets
from azjax.search import make_search
from azjax.search.evaluators import network_evaluator
from experiments.benchmark import __main__ as benchmark
from experiments.benchmark import cost
from experiments.benchmark.loops import Cost, Loop, count_kernels, find_loops

WIDTH = 32
PRODUCT = 2 * WIDTH**3  # Operations of one product of matrices.
SMALL = presets.smoke(presets.get("connect_four"))


def multiply(x):
    return jax.lax.dot(x, x) / WIDTH


def nested(x, counts):
    """1 product outside, 3 trips with 2, and in each trip `max(counts)` inner trips with 1."""

    def below(carry):
        i, x = carry
        return i + 1, multiply(x)

    def outer(x, _):
        x = multiply(multiply(x))
        until = jax.vmap(lambda count: jax.lax.while_loop(lambda i: i < count, lambda i: i + 1, 0))
        number = jnp.max(until(counts))
        return jax.lax.while_loop(lambda carry: carry[0] < number, below, (0, x))[1], None

    return jax.lax.scan(outer, multiply(x), None, length=3)[0]


def test_trips_are_counted_and_inner_loops_excluded():
    x = jnp.eye(WIDTH)
    loops, called = find_loops(nested, x, jnp.array([2, 5, 1]))
    assert called == 0
    products = {loop.path: round(loop.once.flops / PRODUCT) for loop in loops}
    trips = {loop.path: loop.trips for loop in loops}
    assert products == {(): 1, (0,): 2, (0, 0): 0, (0, 1): 1}
    assert trips == {(): 1, (0,): 3, (0, 0): 15, (0, 1): 15}
    in_trip = next(loop for loop in loops if loop.path == (0, 1)).once
    assert in_trip.bytes >= 2 * x.nbytes  # Reads one matrix and writes another.
    assert 1 <= in_trip.kernels <= 4


def test_finished_rows_keep_their_carry():
    """The interpreted program computes what the program itself computes."""

    @jax.vmap
    def add_up(number):
        def step(carry):
            number, total = carry
            return number - 1, total + number

        return jax.lax.while_loop(lambda carry: carry[0] > 0, step, (number, 0))[1]

    seen = []

    def program(numbers):
        totals = add_up(numbers)
        jax.debug.callback(lambda totals: seen.append(np.asarray(totals)), totals)
        return totals

    numbers = jnp.array([1, 6, 27, 0])
    loops, _ = find_loops(program, numbers)
    jax.effects_barrier()
    assert [loop.trips for loop in loops] == [1, 27]
    np.testing.assert_array_equal(seen, [[1, 21, 378, 0]])


def test_branches_and_calls_are_counted_where_they_are_taken():
    @jax.jit
    def ask(x):
        return x + 1

    def repeat(times, x):
        return jax.lax.scan(lambda x, _: (ask(x), None), x, None, length=times)[0]

    def program(choice, x):
        return jax.lax.cond(choice == 0, lambda x: repeat(4, x), lambda x: repeat(9, x), ask(x))

    for choice, trips in ((0, 4), (1, 9)):
        loops, called = find_loops(program, jnp.int32(choice), jnp.ones(3), calls="ask")
        assert called == 1 + trips
        assert sum(loop.trips for loop in loops if loop.path) == trips


def test_kernels_are_operations_that_compute_or_move_data():
    text = """HloModule jit_f

%body (p: f32[3]) -> f32[3] {
  ROOT %x = f32[3]{0} add(%p, %p)
}

ENTRY %main (p: f32[3], q: s32[]) -> (f32[3], s32[]) {
  %p = f32[3]{0} parameter(0)
  %q = s32[] parameter(1)
  %fused = f32[3]{0} fusion(%p), kind=kLoop, calls=%body
  %both = (f32[3]{0}, s32[]) tuple(%fused, %q)
  %loop = (f32[3]{0}, s32[]) while(%both), condition=%c, body=%body
  %dot.1 = f32[3,3]{1,0} dot(%fused, %p), metadata={op_name="jit(f)/dot_general("}
  ROOT %copy = f32[3]{0} copy(%fused)
}
"""
    assert count_kernels(text) == 3


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(presets, "get", lambda name: SMALL)


@pytest.mark.slow
def test_the_costs_of_a_search_are_printed_and_written(small, tmp_path, capsys):
    path = tmp_path / "found.json"
    assert benchmark.main(["--cost", "--cost-games", "8", f"--out={path}"]) == 0
    rows = json.loads(path.read_text())["cost"]
    shown = capsys.readouterr().out
    assert "not run" in shown
    assert {row["engine"] for row in rows} >= {"azjax", "mctx.gumbel_muzero_policy"}
    simulations = SMALL.search.num_simulations
    for row in rows:
        trips = {loop["part"]: loop["trips"] for loop in row["loops"]}
        assert trips.keys() == {"around", "simulation", "down", "up"}, row["engine"]
        assert (row["network calls"], trips["simulation"]) == (1 + simulations, simulations)
        assert row["loop trips"] == sum(trips.values()) - 1
        assert row["kernels"] == sum(loop["kernels"] * loop["trips"] for loop in row["loops"])
        assert trips["up"] >= simulations


@pytest.mark.slow
def test_the_stock_search_is_that_of_mctx_with_the_same_settings():
    """Without noise its weights equal those of azjax's search, so both do the same work."""
    quiet = dataclasses.replace(SMALL.search, gumbel_scale=0.0, num_simulations=8)
    parts = cost.make_gpu_parts(dataclasses.replace(SMALL, search=quiet))
    evaluate = network_evaluator(parts.game, parts.network)

    @jax.jit
    def both(key):
        params = parts.network.fold(parts.network.init(key))
        states = jax.tree.map(lambda leaf: leaf[None], parts.game.init())
        ours = make_search(quiet, parts.game, evaluate)(params, key, states).action_weights
        return ours, cost.make_searches(parts)[cost._STOCK](params, key, states)

    ours, theirs = both(jax.random.key(0))
    assert ours.shape == (1, 7) and ours.std() > 0
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_sizes_fit_their_cards(small, monkeypatch):
    """Launches take as long as the games' traffic, up to a power of two."""
    once = Cost(kernels=1000, flops=1e9, bytes=2e6 * cost._MEASURED, memory=0)
    monkeypatch.setattr(cost, "find_costs", lambda games: [("azjax", [Loop((), 1, once)], 17)])
    monkeypatch.setattr(
        cost, "_CARDS", {16: ("slow", 100), 40: ("fast", 10_000), 1: ("tiny", 10_000)}
    )
    asked = []

    def find_needs(games):
        asked.append(games)
        return cost.memory.Estimate(0, 0, games * 90_000, games * 10_000, 0, 0)

    monkeypatch.setattr(cost, "find_needs", find_needs)
    slow, fast, tiny = cost.choose_sizes(benchmark.Options(cards=True))
    # 5 ms of launches; 2 MB a game at 100 GB/s are 20 us, of which 250 fit, and at 10 TB/s 25,000.
    assert [row["games"] for row in (slow, fast, tiny)] == [256, 32_768, 4096]
    assert asked == [256, 32_768, 32_768, 16_384, 8192, 4096]
    for row, memory in ((slow, 16), (fast, 40), (tiny, 1)):
        assert row["card"].startswith(f"{memory} GB") and 2 * row["whole run, GB"] <= memory
        assert row["games_at_once"] == 0
        moves = row["games"] * SMALL.selfplay.unroll_length
        assert row["capacity"] == 24 * moves
        assert row["steps"] * row["batch_size"] == 4 * moves
    assert slow["launches, ms/move"] == pytest.approx(5)
    assert slow["traffic, ms/move"] == pytest.approx(5.12)


@pytest.mark.slow
def test_memory_is_estimated_before_training(small):
    few, many = cost.find_needs(64), cost.find_needs(128)
    assert (many.tree, many.buffer > few.buffer) == (2 * few.tree, True)
    assert min(few.work, few.network, few.optimizer) > 0
