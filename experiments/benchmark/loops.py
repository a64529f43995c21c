"""Costs of a program's loops: the number of trips, and the arithmetic and traffic of one trip.

XLA's cost analysis counts the body of a loop only once. So each body is compiled alone, and an
interpreter of the traced program counts the trips.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

from azjax import training

# Indices of the enclosing loops, outermost first, and of the loop itself, each in its parent.
Path = tuple[int, ...]
_MOST = 64  # Largest number of loops in a program.
_NO_KERNEL = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast"}
_NO_KERNEL |= {"while", "conditional", "iota", "after-all", "partition-id"}


class Cost(NamedTuple):
    """Cost of one run of a program, without its inner loops.

    Attributes:
      kernels: operations of the optimized program that compute or move data, such as a fusion, a
        product or a copy.
      flops: arithmetic operations, by XLA.
      bytes: read and written, by XLA.
      memory: bytes of temporary memory, including inner loops.
    """

    kernels: float
    flops: float
    bytes: float
    memory: float


class Loop(NamedTuple):
    """A loop of a program, or the program itself.

    Attributes:
      path: its place; `()` for the program itself.
      trips: runs of its body in one run of the program; 1 for the program itself.
      once: the cost of one trip, without inner loops.
    """

    path: Path
    trips: int
    once: Cost


def find_loops(function: Callable, *args: Any, calls: str = "") -> tuple[list[Loop], int]:
    """Runs `function(*args)`; returns its loops and its number of calls of a jitted function.

    Args:
      function: a function of arrays.
      *args: its arguments.
      calls: the name of the jitted function.
    """
    program = jax.make_jaxpr(function)(*args)
    counter = _Counter(calls)

    def count(*leaves):
        outputs, counts = counter.run(
            program, leaves, jnp.zeros(_MOST, jnp.int32), (), itertools.count()
        )
        return counts, outputs  # Without outputs, XLA would remove their computation.

    leaves = jax.tree.leaves(args)
    counts = training.compiled(jax.jit(count), *leaves, often=False)(*leaves)[0].tolist()
    called = counts[counter.places[None]] if None in counter.places else 0
    bodies = {(): (program, range(0))} | counter.bodies
    totals = {path: measure(*body) for path, body in bodies.items()}

    def subtract_inner(path):
        """The cost without inner loops, whose bodies XLA counts once."""
        total = totals[path]
        inner = [cost for other, cost in totals.items() if other[:-1] == path != other]
        flops, moved = sum(cost.flops for cost in inner), sum(cost.bytes for cost in inner)
        left = max(0, total.flops - flops), max(0, total.bytes - moved)
        return Cost(total.kernels, *left, total.memory)

    return [
        Loop(path, counts[counter.places[path]] if path else 1, subtract_inner(path))
        for path in sorted(totals)
    ], called


def measure(program: ClosedJaxpr, donated: Sequence[int] = ()) -> Cost:
    """Compiles a program for this machine; the arguments `donated` are updated in place."""
    shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in program.in_avals]
    jitted = jax.jit(jaxpr_as_fun(program), donate_argnums=tuple(donated), keep_unused=True)
    compiled = training.compiled(jitted, *shapes, often=False)
    costs = compiled.cost_analysis()
    return Cost(
        count_kernels(compiled.as_text()),
        costs.get("flops", 0.0),
        costs.get("bytes accessed", 0.0),
        compiled.memory_analysis().temp_size_in_bytes,
    )


def count_kernels(text: str) -> int:
    """Counts the operations of an optimized program's entry that compute or move data."""
    entry = re.split(r"^ENTRY ", text, flags=re.MULTILINE)[1]
    operations = re.findall(r"^ .* = .*? ([a-z][a-z0-9-]*)\(", entry, flags=re.MULTILINE)
    return sum(operation not in _NO_KERNEL for operation in operations)


class _Counter:
    """Interprets a traced program under `jax.jit` and counts the trips of its loops.

    Attributes:
      calls: the name of the jitted function whose calls are counted.
      places: the index of each loop in the counts; that of the calls has the key None.
      bodies: each loop's body, and the indices of its arguments that are carried.
    """

    def __init__(self, calls: str):
        self.calls = calls
        self.places: dict[Path | None, int] = {}
        self.bodies: dict[Path, tuple[ClosedJaxpr, range]] = {}

    def run(self, program, values, counts, path: Path, numbers: Iterator[int]):
        """Returns the program's outputs and the updated counts."""
        jaxpr = program.jaxpr
        env = dict(zip(jaxpr.constvars, program.consts, strict=True))
        env |= dict(zip(jaxpr.invars, values, strict=True))

        def read(variables):
            return [v.val if isinstance(v, Literal) else env[v] for v in variables]

        for equation in jaxpr.eqns:
            inputs = read(equation.invars)
            outputs, counts = self._apply(jaxpr, equation, inputs, counts, path, numbers)
            env |= dict(zip(equation.outvars, outputs, strict=True))
        return read(jaxpr.outvars), counts

    def _apply(self, jaxpr, equation, values, counts, path, numbers):
        name, params = equation.primitive.name, equation.params
        if name in ("while", "scan"):
            apply = self._while if name == "while" else self._scan
            return apply(equation, values, counts, (*path, next(numbers)))
        if name in ("jit", "pjit"):
            if params["name"] == self.calls:
                counts = counts.at[self._place(None)].add(1)
            return self.run(params["jaxpr"], values, counts, path, numbers)
        if name == "cond":
            branches = [
                lambda counts, *rest, branch=branch: self.run(branch, rest, counts, path, numbers)
                for branch in params["branches"]
            ]
            return jax.lax.switch(values[0], branches, counts, *values[1:])
        inputs = zip(equation.invars, values, strict=True)
        inputs = {v: value for v, value in inputs if not isinstance(v, Literal)}
        alone = jaxpr.replace(
            constvars=[], invars=list(inputs), outvars=equation.outvars, eqns=[equation]
        )
        return jaxpr_as_fun(ClosedJaxpr(alone, []))(*inputs.values()), counts

    def _place(self, path: Path | None) -> int:
        return self.places.setdefault(path, len(self.places))

    def _trip(self, path, body, carried, values, counts):
        self.bodies[path] = body, carried
        counts = counts.at[self._place(path)].add(1)
        return self.run(body, values, counts, path, itertools.count())

    def _while(self, equation, values, counts, path):
        params = equation.params
        split, fixed = params["cond_nconsts"], params["body_nconsts"]
        continues, body = jaxpr_as_fun(params["cond_jaxpr"]), params["body_jaxpr"]
        for_condition, consts = values[:split], values[split : split + fixed]
        if params["cond_jaxpr"].out_avals[0].shape:
            body, consts = _select(params), values[: split + fixed]
        carried = range(len(consts), len(body.in_avals))

        def trip(carry):
            outputs, counts = self._trip(path, body, carried, [*consts, *carry[0]], carry[1])
            return tuple(outputs), counts

        def any_continues(carry):
            return jnp.any(continues(*for_condition, *carry[0])[0])

        start = tuple(map(jnp.asarray, values[split + fixed :])), counts
        return jax.lax.while_loop(any_continues, trip, start)

    def _scan(self, equation, values, counts, path):
        params, body = equation.params, equation.params["jaxpr"]
        # Constants and carries have the same shape inside and outside the body. Scanned inputs and
        # stacked outputs have one more axis outside.
        size = _count_equal(equation.outvars, body.out_avals)
        fixed = _count_equal(equation.invars, body.in_avals) - size
        consts, start = values[:fixed], tuple(map(jnp.asarray, values[fixed : fixed + size]))
        carried = range(fixed, fixed + size)

        def trip(carry, inputs):
            values = [*consts, *carry[0], *inputs]
            outputs, counts = self._trip(path, body, carried, values, carry[1])
            return (tuple(outputs[:size]), counts), tuple(outputs[size:])

        (carry, counts), stacked = jax.lax.scan(
            trip,
            (start, counts),
            tuple(values[fixed + size :]),
            length=params["length"],
            reverse=params["reverse"],
        )
        return [*carry, *stacked], counts


def _count_equal(outside: Sequence[Any], inside: Sequence[Any]) -> int:
    """Counts the variables that have the same shape in a loop's body and outside."""
    pairs = zip(outside, inside, strict=True)
    return sum(variable.aval.shape == aval.shape for variable, aval in pairs)


def _select(params: dict[str, Any]) -> ClosedJaxpr:
    """Returns the body of a vmapped loop as compiled: finished rows keep their carry.

    Its arguments start with the constants of the condition.
    """
    condition, body = params["cond_jaxpr"], params["body_jaxpr"]
    split, fixed = params["cond_nconsts"], params["body_nconsts"]

    def step(*values):
        carry = values[split + fixed :]
        (continues,) = jaxpr_as_fun(condition)(*values[:split], *carry)
        after = jaxpr_as_fun(body)(*values[split:])

        def select(new, old):
            rows = jax.lax.broadcast_in_dim(continues, new.shape, range(continues.ndim))
            return jnp.where(rows, new, old)

        return list(map(select, after, carry))

    avals = [*condition.in_avals[:split], *body.in_avals]
    return jax.make_jaxpr(step)(*(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals))
