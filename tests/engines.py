"""Searches on both engines, rounded as in training, to compare bit for bit."""

import jax
import numpy as np

from azjax.search import make_search
from tables import AS_IN_TRAINING, FAULTS, Faulty, bench


def assert_equal(ours, theirs):
    """Compares every field of the results and of their trees; NaN equals NaN."""
    paths = jax.tree_util.tree_leaves_with_path(ours)
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for (path, expected), found in zip(paths, jax.tree.leaves(theirs), strict=True):
        assert expected.dtype == found.dtype
        np.testing.assert_array_equal(found, expected, err_msg=jax.tree_util.keystr(path))


def search_by(engine, config, game, evaluate, params, states):
    """The result of one engine; half of the rows have noise, and half a temperature."""
    size = len(states.board)
    temperature = np.arange(size, dtype=np.float32) % 2
    keys, noise = jax.random.split(jax.random.key(7), size), np.arange(size) % 4 < 2
    search = jax.jit(make_search(config, game, evaluate, engine), compiler_options=AS_IN_TRAINING)
    return jax.device_get(search(params, keys, states, temperature, noise))


def compare(config, name, states, luck, fault="none"):
    """The results of both engines with a random table as the evaluator."""
    a_bench, is_hurt = bench(name), np.arange(len(states.board)) % 2 == 0
    number = np.int32([*FAULTS].index(fault))
    params = Faulty(a_bench.random_table(), np.float32(luck), number, is_hurt)
    given = config, a_bench.game, a_bench.evaluate_faulty, params, states
    return search_by("azjax", *given), search_by("mctx", *given)
