"""Allowed imports: the order of packages, wrapped libraries, and imports without side effects."""

import ast
import graphlib
import os
import pathlib
import subprocess
import sys

import pytest

import azjax

ROOT = pathlib.Path(__file__).parents[2]
ORDER = [
    *["_settings", "_promotion", "_files", "_commands", "_processes"],
    *["_interrupts", "drawing"],
    *["games", "networks", "search", "players", "training", "runs", "proof", "exact", "viz"],
    *["callbacks", "program", "cli"],
]
FILES = [path for name in ("azjax", "experiments") for path in sorted((ROOT / name).rglob("*.py"))]
TREES = {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in FILES}


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


def siblings(tree):
    """Returns the modules of azjax that a file imports."""
    names = [name.split(".") for name in imported(tree)]
    return {parts[1] for parts in names if parts[0] == "azjax" and len(parts) > 1}


PACKAGE = {
    file: tree
    for file, tree in TREES.items()
    if file.startswith("azjax") and not module_of(file).startswith("__")
}


def test_every_file_has_its_place():
    assert {module_of(file) for file in PACKAGE} == set(ORDER)


def test_a_package_imports_only_from_those_above_it():
    for file, tree in PACKAGE.items():
        above = ORDER[: ORDER.index(module_of(file)) + 1]
        assert siblings(tree) <= set(above), file


def test_no_files_import_each_other():
    """Neither directly nor indirectly."""
    names = {
        file.removesuffix(".py").removesuffix("/__init__").replace("/", "."): file
        for file in PACKAGE
    }

    def file_of(dotted):
        while dotted and dotted not in names:
            dotted = dotted.rpartition(".")[0]
        return names.get(dotted)

    needs = {file: {file_of(name) for name in imported(tree)} for file, tree in PACKAGE.items()}
    graph = {file: needed - {None, file} for file, needed in needs.items()}
    list(graphlib.TopologicalSorter(graph).static_order())  # Raises a CycleError with the files.


def test_wrapped_libraries_have_one_place():
    for library, home in (("mctx", "azjax/search"), ("flashbax", "azjax/training/replay.py")):
        users = {
            file if home.endswith(".py") else str(pathlib.Path(file).parent)
            for file, tree in PACKAGE.items()
            if library in {name.split(".")[0] for name in imported(tree)}
        }
        assert users == {home}


# Private names that have no public equivalent, each in one place and with a test of its behavior:
# the number of processes before JAX starts.
PRIVATE = {
    ("azjax/cli/launch.py", "jax._src.distributed.global_state"),
}


def test_private_names_of_other_packages_have_one_place():
    private = {
        (file, name)
        for file, tree in TREES.items()
        for name in imported(tree)
        if not name.startswith(("azjax", "__future__"))
        and any(part.startswith("_") for part in name.split("."))
    }
    assert private <= PRIVATE


def test_training_does_not_import_the_solver():
    for file, tree in PACKAGE.items():
        if module_of(file) == "training":
            assert not [name for name in imported(tree) if "solver" in name.split(".")], file


def test_training_does_not_read_labels():
    """Only a few files read the labelled positions of a game."""
    askers = {
        file
        for file, tree in PACKAGE.items()
        if module_of(file) != "cli"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == "positions"
    }
    assert askers == {
        "azjax/games/check.py",
        "azjax/proof/callbacks.py",
        "azjax/viz/matches.py",
        "azjax/viz/report.py",
        "azjax/program.py",
    }


def test_rules_search_training_and_proof_never_draw():
    """The exceptions are the files of games, which define their pictures, and `check`."""
    shared = ["base", "display", "hashing", "in_a_row", "positions", "rows", "solver", "square"]
    files = [f"azjax/games/{name}.py" for name in shared]
    files += [f for f in PACKAGE if module_of(f) in ("networks", "search", "training", "proof")]
    for file in files:
        assert not {"drawing", "viz"} & siblings(PACKAGE[file]), file


def test_the_package_never_imports_the_programs():
    assert not [f for f, t in PACKAGE.items() if any("experiments" in n for n in imported(t))]


def test_old_names_are_gone():
    past = {"pickle", "cloudpickle", "PRNGKey", "pmap", "device_put_replicated"}
    for file, tree in TREES.items():
        names = {name for dotted in imported(tree) for name in dotted.split(".")}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                names.add(node.id)
            elif isinstance(node, ast.Attribute):
                names.add(node.attr)
        assert not names & past, file


def run_python(program):
    environment = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "PYTHONPATH")}
    environment["PYTHONPATH"] = str(ROOT)
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)


@pytest.mark.slow
def test_importing_does_not_initialize_devices():
    # JAX cannot change the number of devices once they are initialized.
    modules = [f[: -len(".py")].replace("/", ".").removesuffix(".__init__") for f in PACKAGE]
    program = f"""
import importlib
for name in {["azjax", *modules]}:
    importlib.import_module(name)
import jax
jax.config.update("jax_num_cpu_devices", 3)
assert jax.device_count() == 3
"""
    result = run_python(program)
    assert result.returncode == 0, result.stderr


def test_every_name_of_the_public_api_is_there_and_typed():
    tree = ast.parse((ROOT / "azjax" / "__init__.py").read_text())
    (typed,) = [node for node in tree.body if isinstance(node, ast.If)]
    names = [alias.name for node in typed.body for alias in node.names]
    assert sorted(names) == sorted(azjax.__all__)
    assert all(hasattr(azjax, name) for name in azjax.__all__)
    assert not hasattr(azjax, "nothing") and {*azjax.__all__} < {*dir(azjax)}


def test_importing_the_package_is_light():
    heavy = ["jax", "numpy", "orbax", "flashbax", "mctx", "flax", "optax", "tyro", "rich"]
    program = f"import sys, azjax; print([m for m in {heavy} if m in sys.modules])"
    result = run_python(program)
    assert result.stdout.strip() == "[]", result.stdout + result.stderr
