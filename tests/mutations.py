"""Deliberate mistakes in the code, to check that the tests notice them. Run by hand, not by pytest.

    python tests/mutations.py               # all of them, two at a time
    python tests/mutations.py gumbel keys   # those whose name or tests contain one of these words

Each mistake replaces a text in one file of a copy of the tree; at least one of its tests must fail.
The files in `tests/mistakes` list them, as in this example:

    # azjax/search/algorithm.py

    search: an action is legal if its logit is not low
    @ tests/compiled/test_search.py::test_no_evaluator_makes_a_search_play_an_illegal_action
    -children_prior_logits[node] != NEVER
    +children_prior_logits[node] > NEVER

Name a single quick test. The output shows which test noticed a mistake, and its CPU seconds.
`tests/eager/test_documentation.py` checks that all texts and tests exist.
"""

import argparse
import gc
import importlib
import multiprocessing
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import traceback
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parent.parent


class Mutation(NamedTuple):
    """A mistake: its area and what goes wrong, and the text to replace, which occurs once."""

    name: str
    file: str
    old: str
    new: str
    tests: str  # Files or single tests, of which at least one must fail.


def read_mistakes(path: pathlib.Path) -> list[Mutation]:
    """Returns the mistakes of one file of `tests/mistakes`."""
    file, mutations = "", []
    for block in path.read_text().strip("\n").split("\n\n"):
        if block.startswith("# "):
            file = block.removeprefix("# ")
            continue
        name, *lines = block.split("\n")
        marked = {mark: [line[1:] for line in lines if line[0] == mark] for mark in "@-+"}
        old, new = ("\n".join(marked[mark]) for mark in "-+")
        mutations.append(Mutation(name, file, old, new, "".join(marked["@"]).strip()))
    return mutations


FILES = sorted((ROOT / "tests" / "mistakes").glob("*.txt"))
MUTATIONS = [mutation for path in FILES for mutation in read_mistakes(path)]
# Imported once; each mistake is then made in a fork, which imports the changed library. None of
# these starts a thread of JAX.
LIBRARIES = "chex flax.nnx jax.numpy mctx numpy optax pytest rich.console scipy"
TIMEOUT = 600  # Seconds after which a test counts as hanging.


class Result(NamedTuple):
    failed: str  # The test that noticed the mistake; empty if none did.
    why: str  # Why it was not noticed.
    seconds: float  # CPU time.


def copy_tree(folder: pathlib.Path) -> None:
    """Copies what tests need; the copy shares the compilation cache of the original."""

    def ignore(source: str, names: list[str]) -> set[str]:
        outputs = {"runs", "build", "dist", "site"} if pathlib.Path(source) == ROOT else set()
        return {name for name in names if name.startswith(".") or name in outputs}

    shutil.copytree(ROOT, folder, ignore=ignore)
    cache = ROOT / ".pytest_cache"
    cache.mkdir(exist_ok=True)
    (folder / ".pytest_cache").symlink_to(cache)


def start_worker(temporary: str) -> None:
    """Moves this process to its own copy of the tree."""
    folder = pathlib.Path(temporary) / str(os.getpid())
    copy_tree(folder)
    os.chdir(folder)
    sys.path[0] = str(folder)
    gc.freeze()  # Each fork would look through all of it.


def run_tests(mutation: Mutation, log: pathlib.Path) -> int:
    """Runs the tests of a mistake until one fails; returns the exit status."""
    with log.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider"]
    return importlib.import_module("pytest").main([*options, *mutation.tests.split()])


def attempt(mutation: Mutation) -> Result:
    """Makes a mistake in the copy of this process, runs its tests in a fork, and undoes it."""
    path, log = pathlib.Path(mutation.file), pathlib.Path(f"{os.getcwd()}.log")
    text = path.read_text()
    if text.count(mutation.old) != 1:
        why = f"its text is in {mutation.file} {text.count(mutation.old)} times"
        return Result("", why, 0.0)
    path.write_text(text.replace(mutation.old, mutation.new))
    try:
        if not (process := os.fork()):
            status = 70
            try:
                signal.alarm(TIMEOUT)
                status = run_tests(mutation, log)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(status)
        _, status, usage = os.wait4(process, 0)
    finally:
        path.write_text(text)
    lines, seconds = log.read_text(errors="replace").splitlines(), usage.ru_utime + usage.ru_stime
    failed = [line.split(" - ")[0].split(" ", 1)[1] for line in lines if line.startswith("FAILED ")]
    if failed and not any(line.startswith("ERROR ") for line in lines):
        return Result(failed[0], "", seconds)  # Errors outside a test do not count.
    status, last = os.waitstatus_to_exitcode(status), "".join(lines[-1:])
    return Result("", f"pytest ended with {status}: {last}", seconds)


def main() -> int:
    """Makes each mistake separately; the exit status is 0 if all were noticed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="only mistakes with one of these words")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    options = parser.parse_args()
    words = options.words or [""]
    chosen = [m for m in MUTATIONS if any(word in f"{m.name} {m.tests}" for word in words)]
    os.environ["JAX_PLATFORMS"] = "cpu"
    sys.dont_write_bytecode = True  # A file may change twice within a second.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # Plugins of other packages start slowly.
    for library in LIBRARIES.split():
        importlib.import_module(library)
    unnoticed, seconds, fork = 0, 0.0, multiprocessing.get_context("fork")
    with (
        tempfile.TemporaryDirectory() as temporary,
        fork.Pool(options.jobs, start_worker, (temporary,)) as pool,
    ):
        for mutation, result in zip(chosen, pool.imap(attempt, chosen), strict=True):
            unnoticed += not result.failed
            seconds += result.seconds
            verdict = f"noticed in {result.seconds:5.1f} s" if result.failed else "NOT NOTICED"
            print(f"{verdict:<18} {mutation.name}  {result.failed or result.why}", flush=True)
    noticed = len(chosen) - unnoticed
    print(f"{noticed} of {len(chosen)} mistakes were noticed, in {seconds:.0f} CPU seconds")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
