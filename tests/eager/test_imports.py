"""Allowed imports. No row has one in the wrong place, since that changes no result."""

import ast
import json
import pathlib
import textwrap

import azjax
from source import EXAMPLES, PAGES, README, ROOT, blocks, guide, trees

MAP = [line.split("`")[1] for line in guide().splitlines() if line.startswith("| `azjax/")]
ORDER = [name.removeprefix("azjax/").removesuffix("/").removesuffix(".py") for name in MAP]


def module_of(file):
    """`azjax/games/mnk.py` belongs to the package `games`, `azjax/__init__.py` to `__init__`."""
    return pathlib.Path(file).parts[1].removesuffix(".py")


def imported(tree):
    """Returns the dotted names that a file imports, also inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


FILES = [f for f in trees() if f.startswith("azjax") and not module_of(f).startswith("__")]
PACKAGE = {file: {*imported(trees()[file])} for file in FILES}


def siblings(names):
    """Returns the modules of azjax among dotted names."""
    parts = [name.split(".") for name in names]
    return {part[1] for part in parts if part[0] == "azjax" and len(part) > 1}


def test_a_package_imports_only_from_those_above_it_in_the_map():
    assert sorted({module_of(file) for file in PACKAGE}) == sorted(ORDER)
    assert all((ROOT / name).exists() for name in MAP)
    for file, names in PACKAGE.items():
        assert siblings(names) <= {*ORDER[: ORDER.index(module_of(file)) + 1]}, file
    assert not [file for file, names in PACKAGE.items() if any("experiments" in n for n in names)]
    # The package as a whole is above all others.
    assert not [file for file, names in PACKAGE.items() if "azjax" in names]


def test_training_uses_neither_the_solver_nor_labels():
    """Only proofs, reports and programs read the labelled positions of a game."""
    for file, names in PACKAGE.items():
        if module_of(file) == "training":
            assert not [name for name in names if "solver" in name.split(".")], file
        if module_of(file) in ("networks", "search", "players", "training"):
            nodes = ast.walk(trees()[file])
            assert not [node for node in nodes if getattr(node, "attr", "") == "positions"], file


def test_rules_search_training_and_proof_never_draw():
    """The exceptions are the files of games, which define their pictures, and `check`."""
    shared = ["base", "hashing", "rows", "solver", "symmetries"]
    files = [f"azjax/games/{name}.py" for name in shared]
    files += [f for f in PACKAGE if module_of(f) in ("networks", "search", "training", "proof")]
    assert [file for file in files if {"drawing", "viz"} & siblings(PACKAGE[file])] == []


def shown():
    """Yields the code that readers see: examples, the blocks of pages, the cells of notebooks."""
    yield from ((path, path.read_text()) for path in EXAMPLES)
    for page in (README, *PAGES, *(ROOT / "lab").glob("*.md")):
        yield from ((page, textwrap.dedent(text)) for text in blocks(page))
    for path in (ROOT / "experiments/notebooks").glob("*.ipynb"):
        cells = json.loads(path.read_text())["cells"]
        yield from ((path, "".join(c["source"])) for c in cells if c["cell_type"] == "code")


def test_readers_see_imports_of_packages_only():
    """Of `azjax` and `azjax.<package>`, nothing deeper or private."""
    wrong = []
    for path, text in shown():
        for node in ast.walk(ast.parse(text)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            parts = [name.split(".") for name in names if name.partition(".")[0] == "azjax"]
            wrong += [(path.name, p) for p in parts if len(p) > 2 or p[-1].startswith("_")]
    assert wrong == []


def test_every_name_of_the_public_api_is_there_and_typed():
    tree = ast.parse((ROOT / "azjax" / "__init__.py").read_text())
    (typed,) = [node for node in tree.body if isinstance(node, ast.If)]
    names = [alias.name for node in typed.body for alias in node.names]
    assert sorted(names) == sorted(azjax.__all__)
    assert all(hasattr(azjax, name) for name in azjax.__all__)
    assert not hasattr(azjax, "nothing") and {*azjax.__all__} < {*dir(azjax)}
