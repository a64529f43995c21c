"""Mistakes put into the code one at a time, to see that the tests notice: by hand, not by pytest.

    python tests/mutations.py               # all of them, two at a time: about half an hour
    python tests/mutations.py gumbel keys   # those whose name holds one of these words

Each mistake is a replacement of text in one file, made in a copy of the tree, and the tests
that should fail with it. `tests/test_mutations.py` holds the table to the code: a text that is
no longer there, or a test that is gone, fails there.
"""

import argparse
import concurrent.futures
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parent.parent


class Mutation(NamedTuple):
    """A mistake.

    Attributes:
      name: what it does wrong, after the name of its area.
      file: where.
      old: the text that it replaces, which must be there exactly once.
      new: what it puts in its place.
      tests: arguments of pytest: the tests of which at least one must fail.
    """

    name: str
    file: str
    old: str
    new: str
    tests: str


MUTATIONS = []


def run_tests(folder: pathlib.Path, tests: str) -> subprocess.CompletedProcess:
    """Runs some tests in a copy of the tree, until the first that fails."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests.split()]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1200)


def copy_tree(folder: pathlib.Path) -> None:
    """Copies what tests need; compilations are kept in the original's cache."""
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".*", "runs", "build", "dist"))
    cache = ROOT / ".pytest_cache"
    cache.mkdir(exist_ok=True)
    (folder / ".pytest_cache").symlink_to(cache)


def survives(mutation: Mutation) -> str:
    """Returns why a mistake was not noticed, or nothing if it was."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "azjax"
        copy_tree(folder)
        path = folder / mutation.file
        text = path.read_text()
        if text.count(mutation.old) != 1:
            return f"its text is in {mutation.file} {text.count(mutation.old)} times"
        path.write_text(text.replace(mutation.old, mutation.new))
        result = run_tests(folder, mutation.tests)
    if result.returncode == 1 and "ERROR" not in result.stdout.splitlines()[-2]:
        return ""
    last = (result.stdout + result.stderr).strip().splitlines()[-1:]
    return f"pytest ended with {result.returncode}: {' '.join(last)}"


def main() -> int:
    """Makes the mistakes one by one; the exit status says whether all were noticed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="only mistakes whose name holds one of these")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    options = parser.parse_args()
    chosen = [m for m in MUTATIONS if not options.words or any(w in m.name for w in options.words)]
    unnoticed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for mutation, why in zip(chosen, pool.map(survives, chosen), strict=True):
            unnoticed += bool(why)
            print(f"{'NOT NOTICED' if why else 'noticed':<12} {mutation.name}  {why}", flush=True)
    print(f"{len(chosen) - unnoticed} of {len(chosen)} mistakes were noticed")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
