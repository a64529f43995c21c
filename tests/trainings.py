"""The compiled iterations of training, on one device and on two, which all tests share."""

import contextlib
import functools

import jax
import jax.numpy as jnp
import numpy as np

from azjax import games, training
from azjax.runs.config import Config, make_parts
from azjax.search import Gumbel
from azjax.training.learner import LearnerConfig
from azjax.training.parts import SelfPlayConfig
from azjax.training.replay import ReplayConfig
from small import conv

GAME = games.make("tic_tac_toe")
PLACES = 20_000  # Of the position buffer.

# A network with BatchNorm, so that statistics are compared, and large steps. SGD, since Adam
# amplifies rounding errors of gradients near zero.
CONFIG = Config(
    network=conv(width=4, blocks=0, head_hidden=4),
    search=Gumbel(num_simulations=4),
    selfplay=SelfPlayConfig(games=64, unroll_length=8, archive=PLACES, archive_share=0.8),
    replay=ReplayConfig(capacity=1024, shards=8),
    learner=LearnerConfig(
        batch_size=16, steps=3, optimizer="sgd", learning_rate=0.1, warmup_steps=0, l2=1e-3
    ),
)
PARTS = make_parts(CONFIG)
KEY = jax.random.key(CONFIG.seed)


class Run:
    """A compiled iteration, and the results of its first two calls.

    One device runs the pure functions, two run those for a mesh.
    """

    def __init__(self, num_devices):
        self.mesh = training.make_mesh(jax.devices()[:num_devices])
        if num_devices == 1:
            self.iterate = jax.jit(functools.partial(training.iteration, PARTS), donate_argnums=0)
            self.before = jax.jit(functools.partial(training.init, PARTS))(KEY)
        else:
            self.iterate = training.make_iteration(PARTS, self.mesh)
            self.before = training.make_state(PARTS, KEY, self.mesh)
        self.after, self.metrics = self.iterate(copy(self.before))
        again = copy(self.after)
        with compilations() as self.compiled_again:
            self.later, _ = jax.block_until_ready(self.iterate(again))


run = functools.cache(Run)


def copy(state):
    """Returns a copy that can be donated."""
    return jax.tree.map(jnp.copy, state)


@contextlib.contextmanager
def compilations():
    """A list to which JAX appends the names of compilation events."""
    heard = []

    def listen(event, duration, **details):
        if "compile" in event:
            heard.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield heard
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


def to_host(tree):
    """Returns NumPy arrays, with typed keys as data."""

    def convert(leaf):
        is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(leaf) if is_key else leaf)

    return jax.tree.map(convert, tree)


def assert_equal(*trees):
    jax.tree.map(np.testing.assert_array_equal, *map(to_host, trees))
