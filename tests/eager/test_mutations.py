"""The table of mistakes fits the code; `mutations.py` itself is run by hand."""

import ast
import functools

from mutations import MUTATIONS, ROOT


def exists(path, name=""):
    name = name.partition("[")[0]  # Without its case.
    return f"def {name}" in (ROOT / path).read_text()


def test_every_mistake_can_be_made():
    """Its text occurs exactly once, and its tests exist."""
    stale = [
        mutation.name
        for mutation in MUTATIONS
        if (ROOT / mutation.file).read_text().count(mutation.old) != 1
        or not all(exists(*test.split("::")) for test in mutation.tests.split())
    ]
    assert stale == []


@functools.cache
def parse(path):
    return ast.parse((ROOT / path).read_text()).body


def is_slow(path, name):
    """Whether `make test` skips all cases of a test."""
    nodes = parse(path)
    (test,) = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == name]
    return "pytest.mark.slow" in map(ast.unparse, test.decorator_list)


def test_the_tests_of_a_mistake_are_not_slow():
    tests = {test for mutation in MUTATIONS for test in mutation.tests.split() if "::" in test}
    named = {test.partition("[")[0] for test in tests}
    assert named and not [test for test in named if is_slow(*test.split("::"))]


def test_names_of_mistakes_differ():
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)


def test_there_are_as_many_mistakes_as_the_guide_says():
    text = (ROOT / "docs/explanation/enumeration.md").read_text()
    assert "inserts more than 300 mistakes into the code" in text and len(MUTATIONS) > 300
