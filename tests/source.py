"""The source of the library, its programs and its guide, and a way to run it without compiling."""

import ast
import dataclasses
import functools
import pathlib
import re

import jax
import jax.numpy as jnp

from azjax.training import step

ROOT = pathlib.Path(__file__).parents[1]
README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs").rglob("*.md"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@functools.cache
def trees():
    """The syntax tree of each file of the library and of `experiments`."""
    files = [path for name in ("azjax", "experiments") for path in (ROOT / name).rglob("*.py")]
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in sorted(files)}


@functools.cache
def guide():
    """The text of README and guide."""
    return "\n".join(path.read_text() for path in [README, *PAGES])


def blocks(page):
    """The blocks of Python of a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def only_trace(parts, state, iteration=step.iteration):
    """Traces an iteration, and returns the state with the next number and metrics of 0."""
    _, metrics = jax.eval_shape(functools.partial(iteration, parts), state)
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), metrics)
    return dataclasses.replace(state, iteration=state.iteration + 1), zeros
