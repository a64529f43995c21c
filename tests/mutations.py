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
import importlib
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
    """A mistake.

    Attributes:
      name: its area and what goes wrong.
      file: the file to change.
      old: the text to replace, which occurs exactly once.
      new: the replacement.
      tests: test files or single tests, of which at least one must fail.
    """

    name: str
    file: str
    old: str
    new: str
    tests: str


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


MUTATIONS = [
    mutation
    for path in sorted((ROOT / "tests" / "mistakes").glob("*.txt"))
    for mutation in read_mistakes(path)
]


# Imported once, before the forks; none starts a thread of JAX.
LIBRARIES = "chex flax.nnx jax.numpy mctx numpy optax pytest rich.console scipy"
TIMEOUT = 600  # Seconds after which a test counts as hanging.


def copy_tree(folder: pathlib.Path) -> None:
    """Copies what tests need; the copy shares the compilation cache of the original."""

    def ignore(source: str, names: list[str]) -> set[str]:
        outputs = {"runs", "build", "dist", "site"} if pathlib.Path(source) == ROOT else set()
        return {name for name in names if name.startswith(".") or name in outputs}

    shutil.copytree(ROOT, folder, ignore=ignore)
    cache = ROOT / ".pytest_cache"
    cache.mkdir(exist_ok=True)
    (folder / ".pytest_cache").symlink_to(cache)


def start(mutation: Mutation, folder: pathlib.Path) -> int:
    """Makes a mistake in a copy of the tree and runs its tests, in a fork; returns its number."""
    if process := os.fork():
        return process
    status = 70
    try:
        signal.alarm(TIMEOUT)
        with folder.with_suffix(".log").open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        shutil.copytree(folder.with_name("tree"), folder, symlinks=True)
        path = folder / mutation.file
        path.write_text(path.read_text().replace(mutation.old, mutation.new))
        os.chdir(folder)
        sys.path[0] = str(folder)
        options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider"]
        status = importlib.import_module("pytest").main([*options, *mutation.tests.split()])
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def verdict(status: int, log: pathlib.Path) -> tuple[bool, str]:
    """Returns whether a mistake was noticed, and the test that noticed it or why none did."""
    lines = log.read_text(errors="replace").splitlines()
    failed = [line.split(" - ")[0].split(" ", 1)[1] for line in lines if line.startswith("FAILED ")]
    if failed and not any(line.startswith("ERROR ") for line in lines):
        return True, failed[0]  # Errors outside a test do not count.
    return False, f"pytest ended with {os.waitstatus_to_exitcode(status)}: {''.join(lines[-1:])}"


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
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # Plugins of other packages start slowly.
    for library in LIBRARIES.split():
        importlib.import_module(library)
    waiting, running, noticed, seconds = chosen[::-1], {}, 0, 0.0
    with tempfile.TemporaryDirectory() as temporary:
        copy_tree(pathlib.Path(temporary, "tree"))
        while waiting or running:
            while waiting and len(running) < options.jobs:
                folder = pathlib.Path(temporary, str(len(waiting)))
                mutation = waiting.pop()
                running[start(mutation, folder)] = mutation, folder
            process, status, usage = os.wait3(0)
            mutation, folder = running.pop(process)
            is_noticed, text = verdict(status, folder.with_suffix(".log"))
            shutil.rmtree(folder)
            taken = usage.ru_utime + usage.ru_stime
            noticed, seconds = noticed + is_noticed, seconds + taken
            label = f"noticed in {taken:5.1f} s" if is_noticed else "NOT NOTICED"
            print(f"{label:<18} {mutation.name}  {text}", flush=True)
    print(f"{noticed} of {len(chosen)} mistakes were noticed, in {seconds:.0f} CPU seconds")
    return 0 if noticed == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
