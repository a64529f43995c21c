"""The examples of README and guide run as they stand, and their numbers are the code's."""

import re
import shlex
import tomllib

import jax
import numpy as np
import pytest

import azjax as az
from azjax import training
from azjax.cli import custom, options, train
from azjax.games import solver
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.search import Gumbel, make_search
from azjax.training import memory
from test_imports import ORDER, ROOT

README = (ROOT / "README.md").read_text()
PAGES = sorted((ROOT / "docs").rglob("*.md"))
TEXT = "\n".join([README, *(path.read_text() for path in PAGES)])


def blocks(page=None):
    """Returns the blocks of Python of a page, or of README and guide."""
    text = TEXT if page is None else (ROOT / "docs" / page).read_text()
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def test_the_readme_has_at_most_900_words():
    assert len(README.split()) <= 900


@pytest.mark.slow
def test_the_quickstart_prints_what_the_readme_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, shown = re.search(r"```python\n(.*?)```\s*```\n(.*?)```", README, re.DOTALL).groups()
    assert len(re.findall(r"^(?:import|from) ", code, re.MULTILINE)) == 1
    exec(code, {})
    printed = capsys.readouterr().out.splitlines()
    results = [line for line in shown.splitlines() if not line.startswith(("iteration", "..."))]
    assert len(results) == 2 and printed[-2:] == results


@pytest.mark.slow
def test_the_ten_lines_step_and_search_4096_games():
    block = blocks("explanation/search.md")[0]
    assert len(block.strip().splitlines()) <= 11
    found = {}
    exec(block, found)
    result, states, game = found["result"], found["states"], found["game"]
    assert result.action.shape == (4096,)
    assert result.action_weights.shape == (4096, game.num_actions)
    assert (abs(states.board).sum(axis=1) == 1).all()
    assert (np.asarray(states.board)[np.arange(4096), result.action] == 0).all()


@pytest.mark.slow
def test_the_lines_on_traces_and_trees_go_on_from_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = {}
    exec(blocks("explanation/search.md")[0], found)
    (block,) = [block for block in blocks() if "draw_tree" in block]
    exec(block, found)
    assert found["trace"](found["config"], found["result"].tree).simulations[7].path[0] == 0
    assert (tmp_path / "tree.svg").read_text().startswith("<svg")


@pytest.mark.slow
def test_a_training_in_a_dozen_lines_learns():
    block = blocks("tutorials/custom_algorithm.md")[0]
    assert len(block[block.index("game =") :].strip().splitlines()) <= 16
    small = block.replace("(128, 128)", "(16,)").replace("games=256", "games=64")
    found = {}
    exec(small, found)
    assert found["state"].iteration == 10
    assert found["metrics"].losses["policy_kl"] < 0.5


@pytest.mark.slow
def test_the_lines_on_training_from_python_run_from_top_to_bottom(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = {}
    for block in blocks("how_to/python.md"):
        exec(block, found)
    assert "\nTrue\n" in capsys.readouterr().out
    assert found["player"].iteration > 2
    assert found["run"].metrics[-1]["patience"] == 0 and found["state"].iteration == 3


@pytest.mark.slow
def test_the_lines_on_mctx_run_from_top_to_bottom():
    lines, found = blocks("explanation/search.md")[1:], {}
    for block in lines:
        exec(block, found)
    assert len(lines) == 4 and found["actions"].shape == (8,)
    assert found["weights"].shape == (4, 8, 7)
    expected = make_search(Gumbel(num_simulations=32), found["game"], found["evaluate"])
    states, key = found["states"], jax.random.key(3)
    visits = jax.jit(expected)(found["params"], key, states).visit_counts
    np.testing.assert_array_equal(found["result"].visit_counts, visits)


@pytest.mark.slow
def test_thousands_of_games_are_played_as_the_page_says(capsys):
    found = {}
    for block in blocks("how_to/selfplay.md"):
        assert not re.search(r"^from", block, re.MULTILINE)
        exec(block.replace("4096", "512"), found)
    one, many, fresh = (line.split() for line in capsys.readouterr().out.splitlines())
    assert int(one[0]) == 1 and int(many[0]) > 450
    assert 1024 < int(fresh[0]) == int(found["over"].sum()) and int(fresh[3]) > 1000
    rewards = np.asarray(found["rewards"])
    assert set(np.unique(rewards)) == {0, 1} and (rewards[~np.asarray(found["over"])] == 0).all()


@pytest.mark.slow
def test_each_policy_of_mctx_trains_a_perfect_player(tmp_path, monkeypatch, capsys):
    """Gumbel MuZero from Python and MuZero from the command line, as on the page."""
    monkeypatch.chdir(tmp_path)
    found = {}
    exec(blocks("how_to/mctx.md")[0], found)
    assert capsys.readouterr().out.splitlines()[-1] == "True"
    last = found["run"].certificate.searches[-1]
    assert (last.algorithm, last.num_simulations, last.blunders) == ("mctx", 16, 0)
    train.main(["--search.algorithm", "mctx_muzero", "--run-dir", "runs/mctx_muzero"])
    player = az.load("runs/mctx_muzero")
    assert az.verify(player, simulations=()).perfect
    assert player.parts.search == az.search.MctxMuZero()


def test_the_map_is_the_order_of_imports():
    mapped = re.findall(r"^\| `azjax/(\w+)(\.py|/)` \|", TEXT, re.MULTILINE)
    assert [name for name, _ in mapped] == ORDER
    assert all((ROOT / "azjax" / f"{name}{ending}").exists() for name, ending in mapped)


def test_positions_are_as_many_as_said(tic_tac_toe, solution):
    counts = {
        solution.num_states: [r"reachable positions \| {}", "all {} positions and the"],
        len(solution.decisions): [
            *("all {} positions with", "all {} tic-tac-toe positions with"),
            "of all {} positions with",
        ],
        int(solver.symmetry_classes(tic_tac_toe, solution).max()) + 1: ["[Aa]ll {} positions"],
        int(solver.count_games(solution)[0].sum()): ["all {} possible games"],
    }
    for count, phrases in counts.items():
        assert all(re.search(phrase.format(f"{count:,}"), TEXT) for phrase in phrases), count


@pytest.mark.slow
def test_a_run_needs_as_much_memory_as_said(tic_tac_toe):
    config, mesh = presets.get("default"), training.make_mesh(jax.devices()[:2])
    parts = make_parts(config)
    iterate = training.make_iteration(parts, mesh)
    iterate = training.compiled(iterate, training.abstract_state(parts, mesh))
    needs = memory.estimate(parts, mesh, iterate)
    own = memory.describe_bytes(needs.limit)
    expected = memory.describe(needs, 2).replace(f" of {own} (", " of 12.6 GB (")
    assert re.findall(r"^memory on .*", TEXT, re.MULTILINE) == [expected] * 2
    tree = memory.tree_bytes(Gumbel(num_simulations=32), tic_tac_toe)
    assert f"| memory of the search tree of a game, 32 simulations | {tree / 1000:.1f} kB |" in TEXT


def test_the_stated_versions_of_python_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    low, high = re.findall(r"You need Python (\S+) to (3\.\d+)", README)[0]
    assert project["requires-python"].startswith(f">={low}")
    assert f"version_info[:2] <= ({high.replace('.', ', ')})" in (ROOT / "Makefile").read_text()


def commands():
    """Returns the arguments of every training that README and guide start."""
    text = re.sub(r"\\\n\s*", "", TEXT)
    found = re.findall(r"(?:python -m experiments\.|\bazjax )train\b([^`|#&\"\n]*)", text)
    lines = {line.strip() for line in found if "--help" not in line}
    return sorted(line for line in lines if not line or line.startswith("--"))


def test_every_training_can_be_started():
    lines = commands()
    assert len(lines) > 10
    for arguments in lines:
        parsed = options.parse(shlex.split(arguments.replace("--resume", "")))  # No run is here.
        parts = custom.make_parts(parsed.config, parsed.typed)
        training.check_parts(parts, parsed.config.replay.shards)
