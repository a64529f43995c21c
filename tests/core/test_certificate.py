"""The certificate: what each of its numbers is counted from, and what follows from them."""

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import train
from azjax.certificate import Certificate, make_certifier, reached
from azjax.search import SearchConfig, make_search
from azjax.selfplay import SelfPlayConfig
from azjax.train import Config
from azjax.verify import Verdict, verify
from tables import bench

SIMULATIONS = 6
# Far from the defaults, so that a search with other settings plays other moves.
SEARCH = SearchConfig(
    num_simulations=3,
    c_puct=0.3,
    first_play_urgency="loss",
    dirichlet_fraction=0.9,
    value_scale=1.5,
    maxvisit_init=5.0,
    max_considered_actions=3,
)
CONFIG = Config(seed=5, search=SEARCH, selfplay=SelfPlayConfig(games=48, plies=7))


@pytest.fixture(scope="module")
def table():
    """What the network says: a table, so that its 4,520 searches compile in a second."""
    return bench("tic_tac_toe").random_table()


@pytest.fixture(scope="module")
def certificate(solution, table):
    parts = train.make_parts(CONFIG)._replace(evaluate=bench("tic_tac_toe").evaluate)
    certify = make_certifier(CONFIG, parts, solution, SIMULATIONS)
    return certify(jax.tree.map(jnp.asarray, table), 11, 0.0)


@pytest.mark.parametrize("algorithm", ["puct", "gumbel"])
def test_a_search_is_judged_with_the_settings_of_its_run(certificate, solution, table, algorithm):
    """Without noise, at temperature 0: `tests/mutations.py` tries everything else."""
    config = dataclasses.replace(SEARCH, algorithm=algorithm, num_simulations=SIMULATIONS)
    search = make_search(config, bench("tic_tac_toe").game, bench("tic_tac_toe").evaluate)
    keys = jax.random.split(jax.random.key(0), len(solution.decisions))
    act = jax.jit(lambda table: search(table, keys, solution.decision_states).action)
    actions = np.asarray(act(jax.tree.map(jnp.asarray, table)))
    blunders = int((~solution.optimal[solution.decisions, actions]).sum())
    assert getattr(certificate, f"{algorithm}_blunders") == blunders > 0
    assert certificate.num_simulations == SIMULATIONS
    assert certificate.puct_blunders != certificate.gumbel_blunders


def test_the_raw_network_is_judged_without_search(certificate, solution, table):
    logits, values = bench("tic_tac_toe").evaluate(table, None, solution.decision_states)
    verdict = verify(solution, lambda _: (logits, values))
    assert certificate.blunders == verdict.blunders > 0
    assert certificate.losing_lines_first == verdict.losing_lines[0] > 0
    assert certificate.losing_lines_second == verdict.losing_lines[1] > 0
    assert certificate.losing_lines_first != certificate.losing_lines_second
    assert certificate.value_sign_errors == verdict.value_sign_errors > 0
    assert certificate.decision_states == 4520


def test_a_certificate_tells_the_run(certificate):
    assert certificate.game == "tic_tac_toe"
    assert (certificate.seed, certificate.iterations) == (5, 11)
    assert certificate.moves == 11 * 48 * 7
    assert certificate.seconds > 1e9  # Since 1970, as it was told.
    assert {"azjax", "python", "jax", "mctx"} <= set(certificate.versions)
    assert certificate.device == "8 x cpu"


# What follows from the numbers.

FAULTS = [
    "blunders",
    "puct_blunders",
    "gumbel_blunders",
    "losing_lines_first",
    "losing_lines_second",
]


def with_faults(faults):
    zeros = {field.name: 0 for field in dataclasses.fields(Certificate)}
    return Certificate(**zeros | {"versions": {}} | dict.fromkeys(faults, 1))


@pytest.mark.parametrize("count", range(len(FAULTS) + 1))
def test_one_fault_of_any_kind_is_too_many(count):
    for faults in itertools.combinations(FAULTS, count):
        certificate = with_faults(faults)
        assert certificate.perfect == (not faults)
        assert certificate.unbeatable == (not {*faults} & {*FAULTS[3:]})


def test_wrong_signs_of_values_are_told_but_lose_nothing():
    assert with_faults(["value_sign_errors"]).perfect


@pytest.mark.parametrize("blunders", [0, 2])
@pytest.mark.parametrize("lines", [(0, 0), (1, 0), (0, 1), (3, 4)])
def test_a_goal_is_reached_from_both_seats_or_not_at_all(blunders, lines):
    empty = jnp.zeros(1)
    verdict = Verdict(
        decision_states=jnp.int32(4520),
        blunders=jnp.int32(blunders),
        losing_lines=jnp.array(lines),
        value_sign_errors=jnp.int32(0),
        value_error=jnp.float32(0),
        is_blunder=empty,
        actions=empty,
    )
    assert reached("perfect", verdict) == (blunders == 0)
    assert reached("unbeatable", verdict) == (lines == (0, 0))
    assert not reached("never", verdict)
