"""How much memory an iteration will need on each device, known before anything is compiled.

The state's bytes are counted. What the computation needs beside them is estimated from its
traced program: a value lives from the operation that makes it to the last one that reads it.
"""

import dataclasses
import math
import os
import pathlib
from collections.abc import Collection
from typing import Any, NamedTuple

import jax
from jax.extend import core
from jax.sharding import Mesh

from azjax import games, train
from azjax.game import Game, state_shapes
from azjax.search import SearchConfig
from azjax.selfplay import group_size

# Operations of a traced program, by name: those that XLA computes where they are read, those that
# may write over what they read, and those that run a program inside.
_VIEWS = {"broadcast_in_dim", "iota", "reshape", "squeeze", "expand_dims", "convert_element_type"}
_IN_PLACE = _VIEWS | {"add", "add_any", "sub", "mul", "div", "max", "min", "neg", "abs", "sign"}
_IN_PLACE |= {"exp", "log", "log1p", "tanh", "sqrt", "rsqrt", "square", "integer_pow", "pow"}
_IN_PLACE |= {"and", "or", "not", "xor", "eq", "ne", "lt", "le", "gt", "ge", "is_finite", "floor"}
_IN_PLACE |= {"select_n", "clamp", "copy", "scatter", "scatter-add", "dynamic_update_slice"}
_CALLS = {"jit", "closed_call", "shard_map", "custom_jvp_call", "custom_vjp_call"}
_LOOPS = {"scan", "while"}

# What makes each part of a plan smaller.
_LESS = {
    "network": "a smaller network",
    "optimizer": "a smaller network",
    "buffer": "a smaller replay.capacity",
    "tree": "fewer search.num_simulations",
    "work": "a smaller network, learner.batch_size, learner.steps, selfplay.plies or "
    "selfplay.opening_plies",
}


class MemoryPlan(NamedTuple):
    """Bytes on each device.

    Attributes:
      network: parameters and statistics, and their average.
      optimizer: its state.
      buffer: replayed positions, and the games in flight.
      tree: the search trees of the games that are played together.
      work: everything else: activations, gradients, copies.
      limit: what the device has.
    """

    network: int
    optimizer: int
    buffer: int
    tree: int
    work: int
    limit: int

    @property
    def total(self) -> int:
        """What is needed at the worst moment."""
        return self.network + self.optimizer + self.buffer + self.tree + self.work


def plan_memory(config: train.Config, mesh: Mesh, iterate: Any) -> MemoryPlan:
    """Plans the memory of a run.

    Args:
      config: the run's settings.
      mesh: its devices.
      iterate: from `train.make_iteration`; it is traced here, not compiled.
    """
    state = train.abstract_state(config, mesh)
    learner = state.learner
    network = _bytes_of((learner.variables, learner.average))
    optimizer = _bytes_of((learner.opt_state, learner.step))
    buffer = _bytes_of((state.replay, state.games)) // mesh.size
    traced = iterate.trace(state).jaxpr.eqns
    (program,) = (e.params["jaxpr"] for e in traced if e.primitive.name == "shard_map")
    game = games.make(config.game)
    together = group_size(config.selfplay, config.selfplay.games // mesh.size)
    needed = max(peak_bytes(program, program.invars), _start_bytes(config, mesh))
    tree = min(needed, together * tree_bytes(config.search, game))
    return MemoryPlan(network, optimizer, buffer, tree, needed - tree, device_memory(mesh))


def _start_bytes(config: train.Config, mesh: Mesh) -> int:
    """Bytes that a device needs beside the first state while it computes that."""
    made = train.trace_state(config).jaxpr
    return (peak_bytes(made.jaxpr) - _bytes_of(made.out_avals)) // mesh.size


def check_memory(config: train.Config, mesh: Mesh, plan: MemoryPlan) -> None:
    """Refuses a run that its devices cannot hold.

    Raises:
      ValueError: naming the largest number of games that fits.
    """
    if plan.total <= plan.limit:
        return
    games = config.selfplay.games
    needs = f"{describe_bytes(plan.total)} on each device, and it has {describe_bytes(plan.limit)}"
    least = _plan_fewer(config, mesh, config.replay.shards)
    if least.total > plan.limit:
        largest = max(_LESS, key=lambda part: getattr(least, part))
        raise ValueError(
            f"the run needs {needs}, and too much whatever the number of games: use "
            f"{_LESS[largest]}"
        )
    largest = _largest_games(config, mesh, plan, least)
    raise ValueError(
        f"selfplay.games is {games}, which needs {needs}: use at most {largest}, or a smaller "
        "selfplay.games_at_once"
    )


def check_trees(config: SearchConfig, game: Game, positions: int) -> None:
    """Refuses a search of so many positions at once whose trees one device cannot hold.

    Raises:
      ValueError: naming the largest number of simulations that fits.
    """
    needed = positions * tree_bytes(config, game)
    limit = device_memory(train.make_mesh(jax.local_devices()[:1]))
    if needed > limit:
        most = max(1, config.num_simulations * limit // needed - 2)  # Two for the root and notes.
        raise ValueError(
            f"trees of {config.num_simulations} simulations, {positions} at a time, need "
            f"{describe_bytes(needed)}, and the device has {describe_bytes(limit)}: use at most "
            f"{most} simulations"
        )


def tree_bytes(config: SearchConfig, game: Game) -> int:
    """Bytes of the search tree of one game: mctx's statistics, and the game's states."""
    actions = game.num_actions
    statistics = 5 * 4 + 6 * 4 * actions  # Five numbers a node, six an action.
    nodes = config.num_simulations + 1
    noted = actions  # Which of the root's are illegal; Gumbel's noise, and its schedule of visits.
    noted += 4 * (actions + config.num_simulations) if config.algorithm == "gumbel" else 0
    return nodes * (statistics + _bytes_of(state_shapes(game))) + noted


def device_memory(mesh: Mesh) -> int:
    """Bytes that each of this process's devices has; CPU devices share the machine's."""
    device = mesh.local_devices[0]
    statistics = device.memory_stats() or {}
    if "bytes_limit" in statistics:
        return statistics["bytes_limit"]
    return _machine_memory() // len(mesh.local_devices)


def _machine_memory() -> int:
    """The machine's memory, or what a container leaves of it."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = pathlib.Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text().strip() if limit.exists() else "max"
    return memory if text == "max" else min(memory, int(text))


def describe_bytes(count: float) -> str:
    """Such as `1.5 GB`."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.1f} GB"


def describe_plan(plan: MemoryPlan, num_devices: int) -> str:
    """One line for people."""
    where = f"each of {num_devices} devices" if num_devices > 1 else "the device"
    names = ("network", "optimizer", "buffer", "tree", "work")
    parts = ", ".join(f"{name} {describe_bytes(getattr(plan, name))}" for name in names)
    total, limit = describe_bytes(plan.total), describe_bytes(plan.limit)
    return f"memory on {where}: {total} of {limit} ({parts})"


def _largest_games(config: train.Config, mesh: Mesh, plan: MemoryPlan, least: MemoryPlan) -> int:
    """About the largest number of games whose plan fits, as that of the least number does.

    Needs grow with the games nearly in a line, so it is found between two points. Where they
    grow in steps instead, what a number needs tells how far it has to come down.
    """
    shards, games = config.replay.shards, config.selfplay.games
    share = (plan.limit - least.total) / (plan.total - least.total)
    found = _round_down(shards + int(share * (games - shards)), shards)
    while found > shards and (needed := _plan_fewer(config, mesh, found).total) > plan.limit:
        found = _round_down(min(found - found // 20, found * plan.limit // needed), shards)
    return found


def _plan_fewer(config: train.Config, mesh: Mesh, games: int) -> MemoryPlan:
    selfplay = dataclasses.replace(config.selfplay, games=games)
    fewer = dataclasses.replace(config, selfplay=selfplay)
    return plan_memory(fewer, mesh, train.make_iteration(fewer, mesh))


def _round_down(games: int, shards: int) -> int:
    """To a multiple of the shards that has many divisors, by less than a fiftieth."""
    unit = shards
    while unit * 128 <= games:
        unit *= 2
    return max(games // unit * unit, shards)


def peak_bytes(program: core.Jaxpr, donated: Collection[core.Var] = ()) -> int:
    """Estimates the most bytes that a traced program holds at once beside its arguments.

    Args:
      program: what was traced.
      donated: arguments whose memory it may use again.
    """
    last = {v: i for i, equation in enumerate(program.eqns) for v in _variables(equation.invars)}
    last |= {v: len(program.eqns) for v in _variables(program.outvars)}
    held = {v: _bytes_of(v.aval) for v in donated}
    start = live = top = sum(held.values())
    for i, equation in enumerate(program.eqns):
        operands = _variables(equation.invars)
        dying = [v for v in operands if v in held and last[v] == i]
        freed = sum(held[v] for v in dying)
        made = {v: _bytes_of(v.aval) for v in equation.outvars}
        if equation.primitive.name in _VIEWS and held.keys().isdisjoint(operands):
            made = dict.fromkeys(made, 0)  # Of an argument or a constant.
        top = max(top, live + _needed(equation, dying, sum(made.values()), freed))
        held = {v: size for v, size in (held | made).items() if last.get(v, i) > i}
        live = sum(held.values())
    return top - start


def _needed(equation: core.JaxprEqn, dying: list[core.Var], made: int, freed: int) -> int:
    """Bytes that an operation adds to those held, while it runs."""
    name = equation.primitive.name
    inner = max((peak_bytes(*program) for program in _programs(equation, dying)), default=0)
    if name in _CALLS:  # What it returns is made inside.
        return max(inner, made - freed)
    if name in _LOOPS:
        return inner + max(0, made - freed)
    return max(0, made - freed) if name in _IN_PLACE else made


def _programs(equation: core.JaxprEqn, dying: list[core.Var]):
    """The programs that an operation runs, each with those of its arguments that it may reuse."""
    for value in equation.params.values():
        for item in value if isinstance(value, tuple | list) else [value]:
            program = getattr(item, "jaxpr", item)
            if not isinstance(program, core.Jaxpr):
                continue
            reused = []
            if equation.primitive.name in _LOOPS:
                reused = _carried(program, equation)
            elif equation.primitive.name in _CALLS:
                pairs = zip(program.invars, equation.invars, strict=True)
                reused = [argument for argument, operand in pairs if operand in dying]
            yield program, list(_variables(reused))


def _carried(body: core.Jaxpr, loop: core.JaxprEqn) -> list[core.Var]:
    """The arguments that a loop carries from step to step, in place.

    Arguments are constants, what is carried, and, of a scan, slices; results are what is
    carried, and slices. A slice has an axis less in the body.
    """

    def whole(inside, outside):
        pairs = zip(inside, outside, strict=False)
        return [a for a, b in pairs if len(a.aval.shape) == len(b.aval.shape)]

    count = len(whole(body.outvars, loop.outvars))
    return whole(body.invars[::-1], loop.invars[::-1])[:count]


def _variables(atoms) -> dict[core.Var, None]:
    """The variables among operands, each once."""
    return dict.fromkeys(atom for atom in atoms if isinstance(atom, core.Var))


def _bytes_of(tree: Any) -> int:
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
