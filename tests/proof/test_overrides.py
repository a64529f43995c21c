"""Override tables: their files, and the players that use them."""

import jax
import numpy as np
import pytest

import misere_pile
from azjax.exact.moves import replay
from azjax.exact.overrides import (
    OverrideTable,
    empty_table,
    load_table,
    override_agent,
    save_table,
    table_path,
)
from azjax.games.base import init_batch
from azjax.players import network_agent
from azjax.search.evaluators import uniform_evaluator


def test_a_table_overrides_the_player_in_its_positions(tic_tac_toe, solution, tmp_path):
    evaluate = uniform_evaluator(tic_tac_toe)
    agent = network_agent(tic_tac_toe, evaluate, None, name="first")
    chosen = solution.decisions[::7]
    table = OverrideTable(
        jax.tree.map(lambda leaf: leaf[chosen], solution.states),
        solution.legal[chosen].cumsum(axis=1).argmax(axis=1).astype(np.int32),  # The last one.
        solution.action_values[chosen] == -1,
        rounds=3,
    )
    save_table(tmp_path / "table.npz", table)
    loaded = load_table(tmp_path / "table.npz", tic_tac_toe)
    assert all(map(np.array_equal, jax.tree.leaves(loaded), jax.tree.leaves(table)))
    player = override_agent(tic_tac_toe, agent, loaded)
    assert player.name == f"first with {len(chosen)} overrides" and player.deterministic
    assert override_agent(tic_tac_toe, agent, loaded, "x").name == "x"
    key, states = jax.random.key(0), solution.decision_states
    plain, found = (jax.jit(one.act)(None, key, states) for one in (agent, player))
    is_in_table = np.isin(solution.decisions, chosen)
    assert found.action[is_in_table].tolist() == table.actions.tolist()
    assert (found.action[is_in_table] != plain.action[is_in_table]).any()
    np.testing.assert_array_equal(found.weights[is_in_table], np.eye(9)[table.actions])
    for ours, theirs in ((found.action, plain.action), (found.weights, plain.weights)):
        np.testing.assert_array_equal(ours[~is_in_table], theirs[~is_in_table])
    np.testing.assert_array_equal(found.value, plain.value)


def test_only_the_whole_state_identifies_a_position():
    """The same stones are gone, but the other player is to move."""
    game = misere_pile.make()
    agent = network_agent(game, uniform_evaluator(game), None)
    states = replay(game, [(0, 0), (1,)])  # One by one, or two in one move.
    assert states.board[0].tolist() == states.board[1].tolist()
    for row in range(2):
        entry = jax.tree.map(lambda leaf, row=row: leaf[row : row + 1], states)
        table = OverrideTable(entry, np.array([1], np.int32), np.zeros((1, 2), bool))
        act = override_agent(game, agent, table).act
        assert agent.act(None, jax.random.key(0), states).action.tolist() == [0, 0]
        assert act(None, jax.random.key(0), states).action.tolist() == [row == 0, row == 1]


def test_a_table_is_written_atomically(tic_tac_toe, monkeypatch, tmp_path):
    start, path = jax.device_get(init_batch(tic_tac_toe, 1)), tmp_path / "table.npz"
    save_table(path, OverrideTable(start, np.array([6], np.int32), np.zeros((1, 9), bool)))

    def write_half(file, **arrays):
        file.write(b"PK")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", write_half)
    with pytest.raises(KeyboardInterrupt):
        save_table(path, empty_table(tic_tac_toe))
    assert load_table(path, tic_tac_toe).actions.tolist() == [6]
    assert [file.name for file in tmp_path.iterdir()] == ["table.npz"]


def test_an_empty_table_is_refused(tic_tac_toe, tmp_path):
    agent = network_agent(tic_tac_toe, uniform_evaluator(tic_tac_toe), None)
    table = empty_table(tic_tac_toe)
    save_table(tmp_path / "table.npz", table)
    assert load_table(tmp_path / "table.npz", tic_tac_toe).states.board.shape == (0, 9)
    with pytest.raises(ValueError, match="the override table has no positions: play without it"):
        override_agent(tic_tac_toe, agent, table)


def test_names_on_disk(tic_tac_toe, tmp_path):
    path = table_path(tmp_path, 6, 1, 32)
    assert path == tmp_path / "lines" / "6-second-32.overrides.npz"
    save_table(tmp_path / "table.npz", empty_table(tic_tac_toe))
    with np.load(tmp_path / "table.npz") as file:
        assert sorted(file) == ["actions", "refuted", "rounds", "states"]


def spoiled(**arrays):
    """The arrays of a table with one position, X at 0 and O to move to 4, some of them replaced."""
    states = np.array([[1, *[0] * 8, 1, 0]], np.uint8)
    sound = {"actions": np.array([4], np.int32), "refuted": np.zeros((1, 9), bool), "rounds": 1}
    return {"states": states} | sound | arrays


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no archive",
        b"another method of compression",
        {"states": np.zeros((1, 3), np.uint8), "actions": np.zeros(1, np.int32)},
        spoiled(states=np.zeros((1, 3), np.uint8)),
        spoiled(actions=np.array([0], np.int32)),  # X is there.
        spoiled(actions=np.array([9], np.int32)),
        spoiled(actions=np.array([4, 4], np.int32)),
        spoiled(refuted=np.zeros((1, 8), bool)),
        spoiled(rounds=[1, 2]),
    ],
)
def test_a_file_that_is_not_a_table_is_refused(tic_tac_toe, content, tmp_path):
    path = tmp_path / "table.npz"
    np.savez(path, **spoiled())
    assert load_table(path, tic_tac_toe).actions.tolist() == [4]
    if isinstance(content, dict):
        np.savez(path, **content)
    elif content.startswith(b"another"):
        whole = bytearray(path.read_bytes())
        whole[whole.rindex(b"PK\x01\x02") + 10] = 99  # In the directory of the archive.
        path.write_bytes(whole)
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError) as error:
        load_table(path, tic_tac_toe)
    assert str(error.value) == (
        f"{path} is damaged or not an override table of tic_tac_toe: delete it and repair again"
    )


def test_no_damaged_byte_gives_other_moves(tic_tac_toe, tmp_path):
    path = tmp_path / "table.npz"
    save_table(path, empty_table(tic_tac_toe))
    content, expected = path.read_bytes(), load_table(path, tic_tac_toe)
    for place in range(0, len(content), 7):
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        try:
            table = load_table(path, tic_tac_toe)
            assert jax.tree.all(jax.tree.map(np.array_equal, table, expected)), place
        except ValueError as error:
            assert f"{path} is damaged or not an override table" in str(error), place
