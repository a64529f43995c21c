"""Checks of the doctor that need no training."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

from azjax import diagnosis
from azjax.search import PUCT, UCT, Gumbel
from azjax.training.parts import SelfPlayConfig
from azjax.training.targets import Sample
from refusals import assert_refused


def test_units_without_gradients_are_dead_and_empty_cells_are_not():
    def train(variables, planes, axis_name):
        units = jax.nn.relu(planes @ variables["params"]["kernel"])
        others = jax.nn.relu(variables["params"]["more"][None, 0])
        return (units, units[:, 0] + jnp.sum(others)), {}

    def examine(kernel, actions=9):
        game = SimpleNamespace(num_actions=actions)
        parts = SimpleNamespace(network=SimpleNamespace(train=train), game=game)
        learner = SimpleNamespace(variables={"params": {"kernel": kernel, "more": np.ones((1, 2))}})
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
    assert examine(kernel * [1, -1, -1], actions=3) == ("0%", False)  # Illegal actions.


def test_few_positions_repeat_in_a_small_game_and_drawn_moves_are_no_alarm(monkeypatch):
    planes = np.arange(1000) % 20
    for most, alarms in ((None, True), (23, False)):
        game = SimpleNamespace(most_positions=most)
        samples = Sample(planes, None, None, planes)
        case = diagnosis._Case(None, SimpleNamespace(game=game), *[None] * 4, samples, None)
        [finding] = diagnosis._repeats(case)
        assert finding.sentence.startswith("2% of 1000") and bool(finding.advice) == alarms
    monkeypatch.setattr(diagnosis.selfplay, "start_games", lambda *given: np.zeros(256))
    config, state = SelfPlayConfig(opening_share=0.0), SimpleNamespace(archive=None)
    rows = ((Gumbel(), False), (Gumbel(gumbel_scale=0.0), True), (PUCT(), False), (UCT(), False))
    for search, alarms in rows:
        parts = SimpleNamespace(selfplay=config, search=search, game=None)
        case = diagnosis._Case(None, parts, state, *[None] * 4, jax.random.key(0))
        [finding] = diagnosis._openings(case)
        assert finding.sentence.startswith("1 different") and bool(finding.advice) == alarms


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
