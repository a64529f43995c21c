"""Checks of the doctor that need no training."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

from azjax import diagnosis
from azjax.training.targets import Sample
from refusals import assert_refused


def test_units_without_gradients_are_dead_and_empty_cells_are_not():
    def train(variables, planes, axis_name):
        units = jax.nn.relu(planes @ variables["params"]["kernel"])
        return (units, units[:, 0]), {}

    def examine(kernel):
        parts = SimpleNamespace(network=SimpleNamespace(train=train))
        learner = SimpleNamespace(variables={"params": {"kernel": kernel}})
        case = [None, parts, SimpleNamespace(learner=learner), *[None] * 3, samples, None]
        with jax.disable_jit():
            [finding] = diagnosis._units(diagnosis._Case(*case))
        return finding.sentence.partition(" ")[0], bool(finding.advice)

    planes, thirds = np.ones((8, 5), np.float32), np.full((8, 3), 1 / 3, np.float32)
    planes[:, 1:] = 0  # Four of five cells are empty.
    samples = Sample(planes, np.ones((8, 3), bool), thirds, thirds[:, 0])
    kernel = np.arange(1, 16, dtype=np.float32).reshape(5, 3)
    assert examine(kernel) == ("0%", False)
    assert examine(kernel * [1, -1, -1]) == ("67%", True)


def test_policies_are_those_of_the_inference_form():
    """In which parameters are folded."""
    policy = np.array([[0.5, 0.5, 0]], np.float32)
    samples = Sample(jnp.eye(1, 5), policy > 0, policy, np.zeros(1))
    network = SimpleNamespace(infer=lambda params, planes: (planes @ params, None))
    for kernel, is_wrong in ((jnp.zeros((5, 3)), False), (9 * jnp.eye(5, 3), True)):
        parts = SimpleNamespace(network=network)
        case = diagnosis._Case(None, parts, None, None, kernel, None, samples, None)
        [finding] = diagnosis._policies(case)
        assert finding.sentence.startswith("KL 0.00") != is_wrong


def test_a_player_that_comes_with_azjax_has_nothing_to_examine():
    said = "hex:6 comes with azjax, without a checkpoint: name a run's folder"
    assert_refused((lambda: diagnosis.diagnose("hex:6"), said))
