"""What `azjax verify` hands to the verification, and its exit status."""

import dataclasses
import json
import pathlib

import pytest

from azjax import games
from azjax.cli import custom, verify
from azjax.proof import certificate as certificates
from azjax.proof.certificate import Certificate

ZEROS = {field.name: 0 for field in dataclasses.fields(Certificate)}
PERFECT = Certificate(**ZEROS | {"versions": {}, "device": "", "game": "", "searches": ()})


@pytest.fixture
def certify(monkeypatch, capfd):
    """`(certificate, *arguments) -> (exit status, JSON, simulations)`, without a verification."""

    def certify(certificate, *arguments):
        given = []

        def issue(player, simulations, **others):
            given.append(simulations)
            return certificate

        player = type("Anyone", (), {"game": games.make("tic_tac_toe"), "name": None})
        monkeypatch.setattr(custom, "open_run", lambda typed: (pathlib.Path("run"), player))
        monkeypatch.setattr(verify.console, "solve", lambda game: None)
        monkeypatch.setattr(certificates, "verify", issue)
        status = verify.main([*arguments, "--json"])
        return status, json.loads(capfd.readouterr().out), given[0]

    return certify


def test_the_goal_determines_the_exit_status(certify):
    draws = dataclasses.replace(PERFECT, blunders=1)
    fails = dataclasses.replace(
        PERFECT, searches=(certificates.VerifiedSearch("puct", 32, blunders=1),)
    )
    loses = dataclasses.replace(PERFECT, blunders=1, losing_lines_second=1)
    for certificate, goal, status in [
        (PERFECT, None, 0),
        (draws, None, 1),
        (draws, "unbeatable", 0),
        (fails, "perfect", 1),
        (fails, "unbeatable", 0),
        (loses, "unbeatable", 1),
    ]:
        arguments = ["--until", goal] if goal else []
        returned, content, simulations = certify(certificate, *arguments)
        assert (returned, content) == (status, json.loads(json.dumps(certificate.as_json())))
        assert simulations is None


def test_the_searches_to_verify_have_the_given_simulations(certify):
    assert certify(PERFECT, "--simulations", "2", "7")[2] == (2, 7)
