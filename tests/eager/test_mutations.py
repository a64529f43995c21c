"""The table of mistakes fits the code; `mutations.py` itself is run by hand."""

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


def test_names_of_mistakes_differ():
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)


def test_there_are_as_many_mistakes_as_the_guide_says():
    text = (ROOT / "docs/explanation/enumeration.md").read_text()
    assert "inserts more than 400 mistakes into the code" in text and len(MUTATIONS) > 400
