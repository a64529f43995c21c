"""A custom game without optional fields, in programs that draw or print its positions."""

import io
import pathlib
import shutil
import sys

import misere_pile
from azjax.cli import custom, explain, play, train
from small import make_run
from trained import compiling_once


def test_programs_accept_a_game_without_optional_fields(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(misere_pile.__file__, "pile.py")
    with open("pile.py", "a") as file:
        file.write("\n\ndef rules():\n    return Game(*make()[:10])\n")
    own = ["--game", "pile.py:rules", "--run-dir", "rules"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("0\n"))
    with compiling_once():
        found = train.parse(["--smoke", *own])
        make_run(tmp_path / "rules", found.config, game=custom.find_game("pile.py:rules"))
        assert explain.main(own) == 0
        note = "The `most_positions` of misere pile is missing or above 20,000"
        assert note in capfd.readouterr().err
        assert play.main(["--o", "network", *own]) == 0
    page = pathlib.Path("explain.html").read_text()
    assert note in page and "Games of self-play" in page and 'data-kind="explorer"' not in page
    shown = capfd.readouterr().out
    assert "board [0 0 0 0 0]\nplayer 0\nover False" in shown and "board [1 0 0 0 0]" in shown
