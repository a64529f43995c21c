"""The table of mistakes fits the code: `mutations.py` itself is run by hand."""

import ast

from mutations import MUTATIONS, ROOT


def exists(path, name=""):
    return f"def {name}" in (ROOT / path).read_text()


def test_every_mistake_can_be_made():
    """Its text is there once, and so are the tests that should notice."""
    stale = [
        mutation.name
        for mutation in MUTATIONS
        if (ROOT / mutation.file).read_text().count(mutation.old) != 1
        or not all(exists(*test.split("::")) for test in mutation.tests.split())
    ]
    assert stale == []


def is_slow(path, name):
    """Whether all cases of a test are left out by `make test`."""
    nodes = ast.parse((ROOT / path).read_text()).body
    (test,) = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == name]
    return "pytest.mark.slow" in map(ast.unparse, test.decorator_list)


def test_what_should_notice_a_mistake_is_not_left_out():
    named = {test for mutation in MUTATIONS for test in mutation.tests.split() if "::" in test}
    assert named and not [test for test in named if is_slow(*test.split("::"))]


def test_every_mistake_has_a_name_of_its_own():
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)


def test_there_are_as_many_as_said():
    assert (
        f"puts {len(MUTATIONS)} mistakes into the code"
        in (ROOT / "docs/explanation/enumeration.md").read_text()
    )
