"""The JavaScript of pages in Node: its own tests, and the modules joined into one."""

import re

import pytest

from azjax.viz import page
from javascript import PLAYGROUND, ROOT, evaluate, run_node

TESTS = sorted((ROOT / "tests" / "javascript").glob("*.test.js"))


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.name.removesuffix(".test.js"))
def test_the_tests_in_javascript_pass(path):
    done = run_node("--test", "--test-reporter=tap", str(path))
    assert done.returncode == 0, done.stdout
    assert re.search(r"^# pass [1-9]", done.stdout, re.MULTILINE)


def test_modules_are_joined_into_one(tmp_path):
    """Node finds names that are missing in modules, or that two modules declare."""
    entries = {"library": page.FOLDER / "main.js", "playground": PLAYGROUND / "main.js"}
    for name, entry in entries.items():
        source = page.script(entry)
        assert not re.search(r"^import|^export |innerHTML|eval\(", source, re.MULTILINE)
        (tmp_path / f"{name}.mjs").write_text(f"{source}\nexport {{ COMPONENTS, mountPage }};")
    names = """async (paths) => {
      const modules = await Promise.all(paths.map((path) => import(path)));
      return modules.map((module) => [Object.keys(module.COMPONENTS), typeof module.mountPage]);
    }"""
    found = evaluate(names, [str(tmp_path / f"{name}.mjs") for name in entries])
    assert [kind for _, kind in found] == ["function"] * 2
    assert set(found[1][0]) - set(found[0][0]) == {"playground"}
    every = page.FOLDER.glob("*.js")
    lines = [line for path in every for line in path.read_text().splitlines()]
    imports = [line for line in lines if line.startswith("import")]
    assert all(re.fullmatch(r'import \{ .* \} from "\./\w+\.js";', line) for line in imports)


def test_a_module_is_part_of_the_page_only_if_it_is_imported(tmp_path):
    (tmp_path / "b.js").write_text("export const b = 1;\n")
    (tmp_path / "c.js").write_text('import { b } from "./b.js";\nexport const c = b;\n')
    (tmp_path / "unused.js").write_text("never")
    main = 'import { c } from "./c.js";\nimport { b } from "./b.js";\nexport const d = b + c;\n'
    (tmp_path / "a.js").write_text(main)
    assert page.script(tmp_path / "a.js").split("\n") == [
        *("const b = 1;", "", "const c = b;", "", "const d = b + c;", "")
    ]
