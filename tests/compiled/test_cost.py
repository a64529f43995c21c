"""Costs of programs: every loop is counted as often as it runs, and nothing twice."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.benchmark.loops import find_loops

WIDTH = 32
PRODUCT = 2 * WIDTH**3  # Operations of one product of matrices.


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


@pytest.mark.compiles(5)
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


@pytest.mark.compiles(3)
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


@pytest.mark.compiles(4)
def test_branches_and_calls_are_counted_where_they_are_taken():
    @jax.jit
    def ask(x):
        return x + 1

    def repeat(times, x):
        return jax.lax.scan(lambda x, _: (ask(x), None), x, None, length=times)[0]

    def program(choice, x):
        return jax.lax.cond(choice == 0, lambda x: repeat(4, x), lambda x: repeat(9, x), ask(x))

    loops, called = find_loops(program, jnp.int32(1), jnp.ones(3), calls="ask")
    assert called == 1 + 9
    assert sum(loop.trips for loop in loops if loop.path) == 9
