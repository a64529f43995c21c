"""Printed commands name the interpreter, and quote arguments for a shell."""

import shlex
import subprocess
import sys

from azjax._commands import command


def test_the_interpreter_path_is_relative(tmp_path, monkeypatch):
    for executable, folder, expected in [
        (".venv/bin/python", ".", ".venv/bin/python"),
        (".venv/bin/python", "notes/deep", "../../.venv/bin/python"),
        (".venv/bin/python3.12", ".venv/bin", "./python3.12"),
        ("my env/bin/python", ".", "'my env/bin/python'"),
        ("/usr/bin/python3", ".", "/usr/bin/python3"),
        ("", ".", "python"),
    ]:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        monkeypatch.chdir(tmp_path / folder)
        monkeypatch.setattr(sys, "executable", executable and str(tmp_path / executable))
        assert command("azjax", "play") == f"{expected} -m azjax play"


def test_arguments_are_quoted_for_a_shell():
    words = ["pip", "install", "azjax[notebook]", "one two", "it's", "$HOME", "#", "", 12, ";"]
    read = ["sh", "-c", f"printf '%s\\n' {command(*words)}"]
    printed = subprocess.run(read, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[1:] == ["-m", *map(str, words)]
    assert shlex.split(command(*words))[2:] == [str(word) for word in words]
