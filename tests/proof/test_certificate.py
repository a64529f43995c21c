"""The certificate: the source of each of its numbers, and the verdicts that follow."""

import dataclasses
import itertools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax.proof import certificate as certificates
from azjax.proof.certificate import (
    Certificate,
    VerifiedSearch,
    certificate_table,
    make_certifier,
    reached,
    searches_to_verify,
)
from azjax.proof.verify import Verdict, verify
from azjax.runs.config import Config, make_parts
from azjax.search import PUCT, UCT, Gumbel, make_search
from azjax.training.parts import Parts, SelfPlayConfig
from tables import bench

SIMULATIONS = 6
# Far from the defaults, so that a search with other settings plays other moves.
PUCT_FAR = PUCT(num_simulations=3, c_puct=0.3, first_play_urgency="loss", dirichlet_fraction=0.9)
GUMBEL_FAR = Gumbel(num_simulations=3, value_scale=1.5, maxvisit_init=5.0, max_considered_actions=3)
SEARCHES = tuple(
    dataclasses.replace(search, num_simulations=SIMULATIONS) for search in (PUCT_FAR, GUMBEL_FAR)
)
CONFIG = Config(seed=5, search=PUCT_FAR, selfplay=SelfPlayConfig(games=48, unroll_length=7))


class TableParts(Parts):
    """Parts whose network is a table of outputs."""

    @property
    def evaluate(self):
        return bench("tic_tac_toe").evaluate


@pytest.fixture(scope="module")
def table():
    """The outputs of the network; with a table, 4,520 searches compile in a second."""
    return bench("tic_tac_toe").random_table()


@pytest.fixture(scope="module")
def certificate(solution, table):
    certify = make_certifier(TableParts(*make_parts(CONFIG)), solution, SEARCHES)
    return certify(jax.tree.map(jnp.asarray, table), 11, -1e9, 5)


@pytest.mark.parametrize("number", [0, 1])
def test_a_search_is_verified_with_the_given_settings(certificate, solution, table, number):
    """Without noise and at temperature 0; `tests/mutations.py` tries the alternatives."""
    search = make_search(SEARCHES[number], bench("tic_tac_toe").game, bench("tic_tac_toe").evaluate)
    keys = jax.random.split(jax.random.key(0), len(solution.decisions))
    act = jax.jit(lambda table: search(table, keys, solution.decision_states).action)
    actions = np.asarray(act(jax.tree.map(jnp.asarray, table)))
    blunders = int((~solution.optimal[solution.decisions, actions]).sum())
    verified = certificate.searches[number]
    assert verified.algorithm == ("puct", "gumbel")[number]
    assert (verified.num_simulations, verified.blunders) == (SIMULATIONS, blunders)
    assert 0 < blunders != certificate.searches[1 - number].blunders


@pytest.mark.parametrize("search", [PUCT_FAR, GUMBEL_FAR, UCT(exploration=0.1)])
def test_puct_gumbel_and_the_settings_of_the_run_are_verified(search):
    puct, gumbel = searches_to_verify(search, 9)
    expected = {"puct": PUCT(), "gumbel": Gumbel()} | {search.algorithm: search}
    assert puct == dataclasses.replace(expected["puct"], num_simulations=9)
    assert gumbel == dataclasses.replace(expected["gumbel"], num_simulations=9)


def test_a_custom_search_is_verified_after_them():
    @dataclasses.dataclass(frozen=True)
    class Custom(PUCT):
        algorithm: str = "custom"

    custom = Custom(num_simulations=24, c_puct=0.3)
    assert searches_to_verify(custom, 9)[2:] == (dataclasses.replace(custom, num_simulations=9),)
    assert [s.num_simulations for s in searches_to_verify(custom)] == [32, 32, 24]
    plain = types.SimpleNamespace(  # Not a dataclass, so its number cannot be changed.
        algorithm="plain", num_simulations=24, is_deterministic=True, select=custom.select
    )
    assert searches_to_verify(plain)[2:] == (plain,)
    with pytest.raises(ValueError, match="not a dataclass, so its settings cannot be changed"):
        searches_to_verify(plain, 9)


def test_these_searches_are_verified_by_default(solution, monkeypatch):
    seen = []
    monkeypatch.setattr(certificates, "check_trees", lambda search, *_: seen.append(search))
    make_certifier(make_parts(CONFIG), solution)
    assert tuple(seen) == searches_to_verify(PUCT_FAR, 32)


def test_many_positions_are_verified_in_slices(certificate, solution, table, monkeypatch):
    monkeypatch.setattr(certificates, "SLICE", 1000)
    seen = []
    parts = TableParts(*make_parts(CONFIG))
    certify = make_certifier(parts, solution, SEARCHES[:1], lambda *done: seen.append(done))
    found = certify(jax.tree.map(jnp.asarray, table), 11, 0.0, 5)
    sizes = [1000, 2000, 3000, 4000, 4520]
    assert seen == [(name, done) for name in ("network alone", "puct(6)") for done in sizes]
    whole = dataclasses.replace(certificate, searches=certificate.searches[:1])
    assert dataclasses.replace(found, seconds=whole.seconds) == whole


@pytest.mark.slow
def test_the_raw_network_is_verified_without_search(certificate, solution, table):
    logits, values = bench("tic_tac_toe").evaluate(table, None, solution.decision_states)
    verdict = verify(solution, lambda _: (logits, values))
    assert certificate.blunders == verdict.blunders > 0
    assert certificate.losing_lines_first == verdict.losing_lines[0] > 0
    assert certificate.losing_lines_second == verdict.losing_lines[1] > 0
    assert certificate.losing_lines_first != certificate.losing_lines_second
    assert certificate.value_sign_errors == verdict.value_sign_errors > 0
    assert certificate.decision_states == 4520


def test_a_certificate_describes_the_run(certificate):
    assert certificate.game == "tic_tac_toe"
    assert (certificate.seed, certificate.iterations) == (5, 11)
    assert certificate.moves == 11 * 48 * 7
    assert certificate.seconds > 1e9  # The start was given as -1e9.
    assert {"azjax", "python", "jax", "mctx"} <= set(certificate.versions)
    assert certificate.device == "8 x cpu"


NUMBERS = {
    "decision_states": 4520,
    "blunders": 11,
    "losing_lines_first": 12,
    "losing_lines_second": 13,
    "value_sign_errors": 14,
}


def test_each_number_of_a_verdict_has_its_place():
    """And each number of a certificate has its label in the table."""
    verdict = Verdict(
        decision_states=jnp.int32(4520),
        blunders=jnp.int32(11),
        losing_lines=jnp.array([12, 13]),
        value_sign_errors=jnp.int32(14),
        value_error=jnp.float32(0.5),
        is_blunder=jnp.zeros(1),
        actions=jnp.zeros(1),
    )
    searches = [VerifiedSearch("puct", 32, 15), VerifiedSearch("gumbel", 64, 16)]
    content = certificates.issue(make_parts(CONFIG), verdict, searches, 3, 0.0, 5).as_json()
    assert {name: content[name] for name in NUMBERS} == NUMBERS
    _, rows = certificate_table(content)
    assert rows[:8] == [
        ("game", "tic_tac_toe"),
        ("decision states checked", "4,520"),
        ("blunders, network alone", "11"),
        ("blunders, network + puct(32)", "15"),
        ("blunders, network + gumbel(64)", "16"),
        ("losing lines as first player, network alone", "12"),
        ("losing lines as second player, network alone", "13"),
        ("wrong value signs (not required)", "14"),
    ]
    assert dict(rows)["training iterations"] == "3" and dict(rows)["seed"] == "5"


# The verdicts.

FAULTS = ["puct", "gumbel", "blunders", "losing_lines_first", "losing_lines_second"]


def with_faults(faults):
    zeros = {field.name: 0 for field in dataclasses.fields(Certificate)}
    searches = tuple(VerifiedSearch(name, 32, int(name in faults)) for name in FAULTS[:2])
    ones = dict.fromkeys({*faults} - {*FAULTS[:2]}, 1)
    return Certificate(**zeros | {"versions": {}, "searches": searches} | ones)


@pytest.mark.parametrize("count", range(len(FAULTS) + 1))
def test_one_fault_of_any_kind_is_too_many(count):
    for faults in itertools.combinations(FAULTS, count):
        certificate = with_faults(faults)
        assert certificate.perfect == (not faults)
        assert certificate.unbeatable == (not {*faults} & {*FAULTS[3:]})
        title, _ = certificate_table(certificate.as_json())
        word = "Perfect" if certificate.perfect else "Unbeatable"
        assert title.startswith(word if certificate.unbeatable else "Not proved")


def test_wrong_value_signs_do_not_matter_for_perfection():
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
