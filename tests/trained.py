"""What the tests of programs share: one trained run, and one program for each configuration.

Compiled programs are kept for the whole session: another training with the same settings takes a
moment instead of ten seconds.
"""

import contextlib
import functools
import json
import os
import pathlib
import re
import shutil
import sys
import types
from typing import NamedTuple

import jax
import numpy as np
import pytest

from azjax import callbacks, training
from azjax.cli import train
from azjax.games import solver
from azjax.proof import certificate as certificates
from azjax.runs import checkpoint
from guard import sharing

solve_once = functools.cache(solver.solve)
_PROGRAMS = {}


def once(key, make):
    with sharing():
        if key not in _PROGRAMS:
            _PROGRAMS[key] = make()
        return _PROGRAMS[key]


@functools.cache
def make_iteration(parts, mesh, make=training.make_iteration):
    """An iteration that is lowered and compiled once for each kind of state."""
    function = make(parts, mesh)

    def lower(state):
        kind = parts, mesh, str(jax.tree.map(lambda leaf: leaf.dtype, state))
        lowered = once(kind, lambda: function.lower(state))
        return types.SimpleNamespace(
            compile=lambda options: once((kind, "compiled"), lambda: lowered.compile(options))
        )

    return types.SimpleNamespace(lower=lower)


def make_state(parts, key, mesh, make=training.make_state):
    """The first state of a training, as a copy, because training donates it."""
    kind = parts, mesh, str(jax.random.key_impl(key)), jax.random.key_data(key).tobytes()
    state = once((kind, "state"), lambda: make(parts, key, mesh))
    return jax.tree.map(lambda x: jax.device_put(x, x.sharding, may_alias=False), state)


def network_alone(player, search, states):
    """Replaces the searches of certificates, which take most of their time."""
    return player.evaluate(states)


class _Called(NamedTuple):
    """A function whose programs are shared; it compiles when it is called."""

    function: object

    def __call__(self, *arguments):
        with sharing():
            return self.function(*arguments)


@contextlib.contextmanager
def compiling_once():
    with pytest.MonkeyPatch.context() as patch:

        def share(owner, name, key):
            make = getattr(owner, name)

            def make_once(*arguments):
                return once((name, *key(*arguments)), lambda: _Called(make(*arguments)))

            patch.setattr(owner, name, make_once)

        patch.setattr(solver, "solve", solve_once)
        patch.setattr(training, "make_iteration", make_iteration)
        patch.setattr(training, "make_state", make_state)
        patch.setattr(certificates, "policy", _Called(network_alone))
        patch.setattr(certificates, "verify_outputs", _Called(certificates.verify_outputs))
        yield patch


# The trained run.

RUN = ["--smoke", "--until", "never", "--max-iterations", "8", "--checkpoint-every", "2"]
RUN += ["--keep-checkpoints", "2"]


def is_iteration(number):
    return lambda callback, loop: loop.iteration == number


def goes_to(suffix):
    return lambda old, new: str(new).endswith(suffix)


# When a training may be killed: the function that is called, and whether it has ended.
MOMENTS = {
    "before the first checkpoint": (callbacks.Records, "on_iteration", is_iteration(1), True),
    "between two checkpoints": (callbacks.Records, "on_iteration", is_iteration(3), True),
    "inside a save": (os, "rename", goes_to("checkpoints/4"), False),
    "while an old checkpoint is deleted": (os, "rename", goes_to(".deleted"), True),
}


def copy_tree(source, target):
    """Copies a folder in which a thread may rename files."""
    while True:
        try:
            return shutil.copytree(source, target)
        except (shutil.Error, FileNotFoundError):
            shutil.rmtree(target, ignore_errors=True)


def copy_at(patch, run_dir, copies):
    """Copies a run directory at every moment: it is what a killed program leaves on the disk."""

    def watch(name, owner, method, is_due, after):
        original = getattr(owner, method)

        def watched(*arguments, **settings):
            due = not (copies / name).exists() and is_due(*arguments)
            if due and not after:
                copy_tree(run_dir, copies / name)
            result = original(*arguments, **settings)
            if due and after:
                copy_tree(run_dir, copies / name)
            return result

        patch.setattr(owner, method, watched)

    for name, moment in MOMENTS.items():
        watch(name, *moment)


class Trained(NamedTuple):
    run_dir: pathlib.Path
    copies: pathlib.Path  # A folder for each moment.
    calls: list[str]  # Of slow functions.


def train_once(folder):
    """A run of `azjax train` with a report; its certificate leaves out the two searches."""
    run_dir, calls = folder / "run", []

    def count(owner, name):
        original = getattr(owner, name)
        patch.setattr(owner, name, lambda *a, **kw: calls.append(name) or original(*a, **kw))

    with compiling_once() as patch:
        count(solver, "solve")
        count(checkpoint, "restore_player")
        copy_at(patch, run_dir, folder / "copies")
        assert train_in(run_dir, *RUN) == 0
    return Trained(run_dir, folder / "copies", calls)


def train_in(run_dir, *arguments):
    return train.main([*map(str, arguments), "--run-dir", str(run_dir)])


def records(run_dir, without_time=False):
    lines = (run_dir / "metrics.jsonl").read_text().splitlines()
    times = ("seconds", "games_per_second") if without_time else ()
    return [{k: v for k, v in json.loads(line).items() if k not in times} for line in lines]


def read(run_dir, name="certificate.json"):
    return json.loads((run_dir / name).read_text())


def damage(run_dir, step):
    (run_dir / "checkpoints" / str(step) / "player" / "arrays.npz").unlink()


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def assert_same(left, right):
    """Checks that the leaves of two trees are the same, bit for bit."""
    pairs = zip(*map(jax.tree_util.tree_leaves_with_path, (left, right)), strict=True)
    for (name, one), (other_name, other) in pairs:
        one, other = (np.asarray(checkpoint.plain(leaf)) for leaf in (one, other))
        assert (name, one.dtype) == (other_name, other.dtype)
        assert one.tobytes() == other.tobytes(), name


def without_progress(text):
    """Removes the lines about what goes on, such as `compiling…` or, later, `compiling…, 30 s`."""
    return re.sub(r"^.+(…|, \d+ s)\n", "", text, flags=re.MULTILINE)


def process_environment():
    """Variables with which a process finds the tests."""
    return {"PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm-256color"}


def chosen(*words):
    """Returns the settings, the plan, the preset and the custom code that words choose."""
    given, typed = train.read_words(words)
    config, plan, preset = train.choose(given, typed)
    return types.SimpleNamespace(config=config, plan=plan, preset=preset, typed=typed)
