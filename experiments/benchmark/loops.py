"""What a program's loops cost: how often each goes round, and what one trip computes and moves.

XLA's cost analysis counts the body of a loop once, however often it runs. So every body is compiled
alone, and an interpreter of the traced program counts its trips while it runs.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Literal, jaxpr_as_fun

from azjax import training

Path = tuple[int, ...]  # Of a loop: its number among those of the loop around it, outermost first.
_MOST = 64  # Loops and calls of a program that are counted.
_NO_KERNEL = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast"}
_NO_KERNEL |= {"while", "conditional", "iota", "after-all", "partition-id"}


class Cost(NamedTuple):
    """What a program costs that runs once, loops within it left out.

    Attributes:
      kernels: operations of the optimized program that compute or move something; each fusion,
        product or copy is one.
      flops: arithmetic operations, by XLA.
      bytes: read and written, by XLA.
      memory: bytes of temporary memory, those of loops within it included.
    """

    kernels: float
    flops: float
    bytes: float
    memory: float


class Loop(NamedTuple):
    """A loop of a program, or the program itself around all loops.

    Attributes:
      path: where it is; `()` for the program itself.
      trips: how often its body runs in one run of the program; 1 for the program itself.
      once: what one trip costs, loops within it left out.
    """

    path: Path
    trips: int
    once: Cost


def find_loops(function: Callable, *args: Any, calls: str = "") -> tuple[list[Loop], int]:
    """Runs a function, and returns its loops and how often it called jitted functions of a name.

    Args:
      function: of arrays.
      *args: its arguments.
      calls: the name.
    """
    program = jax.make_jaxpr(function)(*args)
    counter = _Counter(calls)

    def count(*leaves):
        outputs, counts = counter.run(
            program, leaves, jnp.zeros(_MOST, jnp.int32), (), itertools.count()
        )
        return counts, outputs  # Else nothing that leads to them would have to be computed.

    leaves = jax.tree.leaves(args)
    counts = training.compiled(jax.jit(count), *leaves, often=False)(*leaves)[0].tolist()
    called = counts[counter.places[None]] if None in counter.places else 0
    bodies = {(): (program, range(0))} | counter.bodies
    totals = {path: measure(*body) for path, body in bodies.items()}
    return [
        Loop(
            path,
            counts[counter.places[path]] if path else 1,
            _subtract(totals[path], [totals[inner] for inner in totals if _is_in(inner, path)]),
        )
        for path in sorted(totals)
    ], called


def _is_in(inner: Path, path: Path) -> bool:
    """Whether a loop is in another one's body, and in no other loop there."""
    return len(inner) == len(path) + 1 and inner[: len(path)] == path


def _subtract(total: Cost, inner: Sequence[Cost]) -> Cost:
    """What is left of a program without its loops' bodies, which XLA's sums have once."""
    flops, moved = (sum(cost[i] for cost in inner) for i in (1, 2))
    left = max(0, total.flops - flops), max(0, total.bytes - moved)
    return Cost(total.kernels, *left, total.memory)


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
    """Counts the operations of an optimized program's entry that compute or move something."""
    entry = re.split(r"^ENTRY ", text, flags=re.MULTILINE)[1]
    operations = re.findall(r"^ .* = .*? ([a-z][a-z0-9-]*)\(", entry, flags=re.MULTILINE)
    return sum(operation not in _NO_KERNEL for operation in operations)


class _Counter:
    """Interprets a traced program under `jax.jit`, and counts the trips of its loops.

    Attributes:
      calls: the name of jitted functions whose calls are counted.
      places: where in the counts a loop has its own; of the calls, under None.
      bodies: of each loop, and which of its arguments it carries to its next trip.
    """

    def __init__(self, calls: str):
        self.calls = calls
        self.places: dict[Path | None, int] = {}
        self.bodies: dict[Path, tuple[ClosedJaxpr, range]] = {}

    def run(self, program, values, counts, path: Path, numbers: Iterator[int]):
        """Returns the program's outputs, and the counts with those of this run added."""
        jaxpr = program.jaxpr
        known = dict(zip(jaxpr.constvars, program.consts, strict=True))
        known |= dict(zip(jaxpr.invars, values, strict=True))
        for equation in jaxpr.eqns:
            given = [v.val if isinstance(v, Literal) else known[v] for v in equation.invars]
            outputs, counts = self._apply(jaxpr, equation, given, counts, path, numbers)
            known |= dict(zip(equation.outvars, outputs, strict=True))
        outputs = [v.val if isinstance(v, Literal) else known[v] for v in jaxpr.outvars]
        return outputs, counts

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
        given = {
            v: value
            for v, value in zip(equation.invars, values, strict=True)
            if not isinstance(v, Literal)
        }
        alone = jaxpr.replace(
            constvars=[], invars=list(given), outvars=equation.outvars, eqns=[equation]
        )
        return jaxpr_as_fun(ClosedJaxpr(alone, []))(*given.values()), counts

    def _place(self, path: Path | None) -> int:
        return self.places.setdefault(path, len(self.places))

    def _trip(self, path, body, carried, values, counts):
        """One trip of a loop."""
        self.bodies[path] = body, carried
        counts = counts.at[self._place(path)].add(1)
        return self.run(body, values, counts, path, itertools.count())

    def _while(self, equation, values, counts, path):
        params = equation.params
        asked, fixed = params["cond_nconsts"], params["body_nconsts"]
        goes_on, body = jaxpr_as_fun(params["cond_jaxpr"]), params["body_jaxpr"]
        for_condition, consts = values[:asked], values[asked : asked + fixed]
        if params["cond_jaxpr"].out_avals[0].shape:
            body, consts = _select(params), values[: asked + fixed]
        carried = range(len(consts), len(body.in_avals))

        def trip(carry):
            outputs, counts = self._trip(path, body, carried, [*consts, *carry[0]], carry[1])
            return tuple(outputs), counts

        def some_go_on(carry):
            return jnp.any(goes_on(*for_condition, *carry[0])[0])

        start = tuple(map(jnp.asarray, values[asked + fixed :])), counts
        return jax.lax.while_loop(some_go_on, trip, start)

    def _scan(self, equation, values, counts, path):
        params, body = equation.params, equation.params["jaxpr"]
        # Outside the body, inputs of single trips have one axis more, and so have outputs.
        size = _count_alike(equation.outvars, body.out_avals)
        fixed = _count_alike(equation.invars, body.in_avals) - size
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


def _count_alike(outside: Sequence[Any], inside: Sequence[Any]) -> int:
    """How many variables have the shape that they have within a loop's body."""
    pairs = zip(outside, inside, strict=True)
    return sum(variable.aval.shape == aval.shape for variable, aval in pairs)


def _select(params: dict[str, Any]) -> ClosedJaxpr:
    """The body of a vmapped loop as it is compiled: rows that are done keep what they carry.

    Its arguments begin with what the condition needs.
    """
    condition, body = params["cond_jaxpr"], params["body_jaxpr"]
    asked, fixed = params["cond_nconsts"], params["body_nconsts"]

    def step(*values):
        for_condition, consts, carry = (
            values[:asked],
            values[asked : asked + fixed],
            values[asked + fixed :],
        )
        (goes_on,) = jaxpr_as_fun(condition)(*for_condition, *carry)
        return [
            jnp.where(jax.lax.broadcast_in_dim(goes_on, new.shape, range(goes_on.ndim)), new, old)
            for new, old in zip(jaxpr_as_fun(body)(*consts, *carry), carry, strict=True)
        ]

    avals = [*condition.in_avals[:asked], *body.in_avals]
    return jax.make_jaxpr(step)(*(jax.ShapeDtypeStruct(a.shape, a.dtype) for a in avals))
