"""Printed commands are short, run in this environment, and quote arguments for a shell."""

import subprocess
import sys

from azjax._commands import command


def test_the_command_is_short_and_of_this_environment(tmp_path, monkeypatch):
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(root / ".venv/bin"))
    for number, (scripts, path, folder, expected) in enumerate(
        [
            ([], "", ".", ".venv/bin/python -m azjax"),
            ([".venv/bin"], ".venv/bin", "notes", "azjax"),
            ([".venv/bin"], "", "notes", "../.venv/bin/azjax"),
            # The first one on the PATH belongs to another environment.
            ([".venv/bin", "other/bin"], "other/bin:.venv/bin", ".", ".venv/bin/azjax"),
            (["other/bin"], "other/bin", ".", ".venv/bin/python -m azjax"),
        ]
    ):
        root = tmp_path / str(number)
        for name in (folder, ".venv/bin", "other/bin"):
            (root / name).mkdir(parents=True, exist_ok=True)
        for name in scripts:
            (root / name / "azjax").touch(mode=0o755)
        monkeypatch.chdir(root / folder)
        entries = [str(root / entry) for entry in path.split(":") if entry]
        monkeypatch.setenv("PATH", ":".join([*entries, "/usr/bin"]))
        monkeypatch.setattr(sys, "executable", str(root / ".venv/bin/python"))
        assert command("azjax", "play") == f"{expected} play"


def test_paths_and_arguments_are_quoted_for_a_shell():
    words = ["install", "azjax[notebook]", "one two", "it's", "$HOME", "#", "", 12, ";"]
    read = ["sh", "-c", f"printf '%s\\n' {command('none', *words)}"]
    printed = subprocess.run(read, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[1:] == ["-m", "none", *map(str, words)]
