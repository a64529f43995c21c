"""The numbers of a certificate, and the verdicts and goals that follow from them."""

import dataclasses
import itertools
import json
import types

import jax.numpy as jnp
import pytest

from azjax.games import make
from azjax.networks import MLPConfig
from azjax.proof import certificate as certificates
from azjax.proof.callbacks import Certification
from azjax.proof.certificate import Certificate, VerifiedSearch, searches_to_verify, verify
from azjax.proof.enumeration import Verdict
from azjax.runs import Config, Player, make_parts
from azjax.search import PUCT, UCT, Gumbel
from azjax.training.parts import SelfPlayConfig
from refusals import assert_refused

NETWORK = MLPConfig(hidden=(4,), head_hidden=4)
PARTS = make_parts(Config(network=NETWORK, selfplay=SelfPlayConfig(games=48, unroll_length=7)))


def verdict_of(blunders=11, lines=(12, 13)):
    return Verdict(
        blunders=jnp.int32(blunders),
        losing_lines=jnp.array(lines),
        value_sign_errors=jnp.int32(14),
        value_error=jnp.float32(0.5),
        is_blunder=jnp.zeros(1),
        actions=jnp.zeros(1),
    )


@pytest.fixture
def examined(monkeypatch):
    """The searches of each verification; those with PUCT have 15 blunders, the others 16."""
    searches = []

    def examine(player, solution, search):
        if search is None:
            searches.append([])
        else:
            searches[-1].append(search.num_simulations)
        return verdict_of({"puct": 15, "gumbel": 16}[search.algorithm] if search else 11)

    monkeypatch.setattr(certificates, "examine", examine)
    return searches


SOLUTION = types.SimpleNamespace(decisions=range(4520))


def test_each_number_of_a_verdict_has_its_place(examined):
    """And each number of a certificate has its label in the table."""
    certificate = verify(Player(PARTS, {}, 3), (9,), solution=SOLUTION)
    assert {"azjax", "python", "jax", "jaxlib", "flax", "optax", "mctx"} == {*certificate.versions}
    _, rows = certificates.certificate_table(certificate.as_json())
    assert rows[:10] == [
        ("game", "tic_tac_toe"),
        ("decision states checked", "4,520"),
        ("blunders, network alone", "11"),
        ("blunders, network + puct(9)", "15"),
        ("blunders, network + gumbel(9)", "16"),
        ("losing lines as first player, network alone", "12"),
        ("losing lines as second player, network alone", "13"),
        ("wrong value signs (not required)", "14"),
        ("training iterations", "3"),
        ("self-play moves", f"{3 * 48 * 7:,}"),
    ]
    assert (dict(rows)["seed"], dict(rows)["device"]) == ("unknown", "1 x cpu")


def test_what_is_verified_by_default_and_by_request(examined):
    for simulations in (None, (), (8, 0, 9)):
        verify(Player(PARTS, {}, 6), simulations, solution=SOLUTION)
    assert examined == [[32, 32], [], [8, 8, 9, 9]]
    large = Player(PARTS._replace(game=make("connect_four")), {})
    said = "connect_four has too many positions to enumerate: play matches instead, with azjax"
    assert_refused((lambda: verify(large), said))


FAULTS = ["puct", "gumbel", "blunders", "losing_lines_first", "losing_lines_second"]


def with_faults(faults):
    zeros = {field.name: 0 for field in dataclasses.fields(Certificate)}
    zeros |= dict.fromkeys(["large_blunders", "largest_loss", "mean_loss"])  # Of dice.
    searches = tuple(VerifiedSearch(name, 32, int(name in faults)) for name in FAULTS[:2])
    ones = dict.fromkeys({*faults} - {*FAULTS[:2]}, 1)
    return Certificate(**zeros | {"versions": {}, "searches": searches} | ones)


def test_one_fault_of_any_kind_is_too_many():
    for count in range(len(FAULTS) + 1):
        for faults in itertools.combinations(FAULTS, count):
            certificate = with_faults(faults)
            assert certificate.perfect == (not faults)
            assert certificate.unbeatable == (not {*faults} & {*FAULTS[3:]})
            word = "Perfect" if certificate.perfect else "Unbeatable"
            word = word if certificate.unbeatable else "Not proved"
            title, _ = certificates.certificate_table(certificate.as_json())
            assert title.startswith(word)
    assert with_faults(["value_sign_errors"]).perfect


def test_a_goal_is_reached_from_both_seats_or_not_at_all():
    for blunders, lines in itertools.product([0, 2], [(0, 0), (1, 0), (0, 1)]):
        verdict = verdict_of(blunders, lines)
        assert certificates.reached("perfect", verdict) == (blunders == 0)
        assert certificates.reached("unbeatable", verdict) == (lines == (0, 0))
        assert not certificates.reached("never", verdict)


def test_puct_gumbel_and_the_search_of_the_run_are_verified():
    for search in (PUCT(c_puct=0.3), Gumbel(value_scale=1.5), UCT(exploration=0.1)):
        puct, gumbel = searches_to_verify(search, 9)
        expected = {"puct": PUCT(), "gumbel": Gumbel()} | {search.algorithm: search}
        assert puct == dataclasses.replace(expected["puct"], num_simulations=9)
        assert gumbel == dataclasses.replace(expected["gumbel"], num_simulations=9)
    plain = types.SimpleNamespace(  # Not a dataclass, so its number cannot be changed.
        algorithm="plain", num_simulations=24, is_deterministic=True, select=PUCT().select
    )
    assert searches_to_verify(plain)[2:] == (plain,)
    assert_refused((lambda: searches_to_verify(plain, 9), "cannot be changed"))


# Stopping a training.


class Examined:
    """A verification with given results in each iteration: blunders, losses, search blunders.

    A result of None leaves it without a verdict.
    """

    def __init__(self, results):
        self._results, self.certified = iter(results), []

    def next(self):
        result = next(self._results)
        self.blunders, self.lost, self.searched = result or (0, 0, 0)
        self.verdict = result and verdict_of(self.blunders, (0, self.lost))

    def certify(self, loop, seed):
        self.certified.append(loop.iteration)
        searches = (VerifiedSearch("puct", 32, self.searched),)
        given = {"searches": searches, "blunders": self.blunders, "losing_lines_second": self.lost}
        return dataclasses.replace(with_faults([]), **given, iterations=loop.iteration, seed=seed)


def loop_at(iteration, has_trained=True):
    record = types.SimpleNamespace(iteration=iteration * has_trained)
    return types.SimpleNamespace(parts=PARTS, iteration=iteration, record=record, stop=False)


@pytest.mark.parametrize(
    ("goal", "results", "stop", "certified"),
    [
        ("perfect", [(1, 0, 0), (0, 0, 2), (0, 0, 0), (0, 0, 0)], 3, [2, 3]),
        ("perfect", [(1, 0, 0), (0, 0, 2), (1, 1, 0), (0, 0, 1)], None, [2, 4, 4]),
        ("unbeatable", [(1, 1, 0), (2, 0, 3), (0, 0, 0), (0, 0, 0)], 2, [2]),
        ("never", [(0, 0, 0)] * 4, None, [4]),
        ("perfect", [None] * 4, None, [4]),  # Although another process has proved the goal.
    ],
)
def test_the_training_stops_when_the_goal_is_proved(
    goal, results, stop, certified, tmp_path, capsys
):
    verification, path, loop = Examined(results), tmp_path / "certificate.json", loop_at(0)
    certification = Certification(verification, goal, 5, path, display=True)
    while loop.iteration < 4 and not loop.stop:
        loop.iteration = loop.record.iteration = loop.iteration + 1
        verification.next()
        certification.on_iteration(loop)
        assert certification.reached == loop.stop == (loop.iteration == stop)
    certification.on_end(loop)
    content = json.loads(path.read_text())
    assert content == json.loads(json.dumps(certification.certificate.as_json()))
    assert content["iterations"] == (stop or 4) and content["seed"] == 5
    # Searches are verified only if the network alone reaches the goal, and at the end.
    assert verification.certified == certified
    [note] = {*capsys.readouterr().err.splitlines()}
    assert note == "verifying the network with its searches, in every position"


def test_a_certificate_is_replaced_after_training_and_a_proved_goal_ends_a_resumed_run(tmp_path):
    path = tmp_path / "certificate.json"
    for iteration in (0, 1):
        path.write_text(old := f'{{"iterations": {iteration}}}')
        verification, loop = Examined([(0, 0, 0), (1, 0, 0)]), loop_at(iteration, False)
        verification.next()
        certification = Certification(verification, "perfect", 5, path)
        certification.on_start(loop)
        assert loop.stop == (iteration > 0)
        certification.on_end(loop)
        assert path.read_text() == old
    path.write_text('{"iterations": 7}')  # As after an interrupted training.
    certification.on_end(loop)
    assert json.loads(path.read_text())["blunders"] == 0
    verification.next()
    certification, loop = Certification(verification, "perfect", 5, path), loop_at(1)
    certification.on_iteration(loop)
    certification.on_end(loop)
    assert json.loads(path.read_text())["blunders"] == 1
