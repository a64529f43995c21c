"""What `azjax verify` hands to the verification, and its exit status."""

import dataclasses
import json
import pathlib

from azjax import games
from azjax.cli import custom, verify
from azjax.proof import certificate as certificates
from azjax.proof.certificate import Certificate

ZEROS = {field.name: 0 for field in dataclasses.fields(Certificate)}
PERFECT = Certificate(**ZEROS | {"versions": {}, "device": "", "game": "", "searches": ()})


def test_verify_returns_whether_the_goal_holds(monkeypatch, capfd):
    draws = dataclasses.replace(PERFECT, blunders=1)
    fails = dataclasses.replace(
        PERFECT, searches=(certificates.VerifiedSearch("puct", 32, blunders=1),)
    )
    loses = dataclasses.replace(PERFECT, blunders=1, losing_lines_second=1)
    player = type("Anyone", (), {"game": games.make("tic_tac_toe"), "name": None})
    monkeypatch.setattr(custom, "open_run", lambda typed: (pathlib.Path("run"), player))
    monkeypatch.setattr(verify.console, "solve", lambda game: None)
    for certificate, arguments, status in [
        (PERFECT, "--simulations 2 7", 0),
        (draws, "", 1),
        (draws, "--until unbeatable", 0),
        (fails, "--until perfect", 1),
        (fails, "--until unbeatable", 0),
        (loses, "--until unbeatable", 1),
    ]:

        def issue(player, simulations, certificate=certificate, arguments=arguments, **others):
            assert simulations == ((2, 7) if "--simulations" in arguments else None)
            return certificate

        monkeypatch.setattr(certificates, "verify", issue)
        assert verify.main([*arguments.split(), "--json"]) == status
        written = json.loads(capfd.readouterr().out)
        assert written == json.loads(json.dumps(certificate.as_json()))
