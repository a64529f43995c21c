"""Runs record the rules of custom games, and compare them with those of later games."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import azjax
import dots
from azjax import runs
from azjax.games.base import Symmetries
from azjax.games.display import Display
from azjax.runs import behavior, presets
from run_directories import make_run

GAME = dots.make()
DIGESTS = behavior.observe_rules(GAME, "edges")


def by_rows():
    """The same game with other arrays and other code."""

    def inner(state):
        return dots.State(*state["rows"], state["player"])

    def outer(state):
        return {"rows": (state.edges, state.lead), "player": state.player}

    def step(state, action):
        after, reward = GAME.step(inner(state), action)
        return outer(after), reward

    return GAME._replace(
        name="other",
        init=lambda: outer(dots.init()),
        step=step,
        legal_actions=lambda state: ~inner(state).edges,
        is_over=lambda state: jnp.sum(inner(state).edges) == 12,
        player=lambda state: state["player"],
        observe=lambda state, encoding: dots.observe(inner(state), encoding).astype(jnp.float32),
        display=Display(render=str),
    )


def no_way_out(state, action):
    """A game in which closing a box passes the turn."""
    after, reward = GAME.step(state, action)
    return after._replace(player=jnp.int8(jnp.sum(after.edges) % 2)), reward


OTHERS = {
    "sizes": {"max_plies": 13},
    "symmetries": {"symmetries": Symmetries(np.arange(25)[None], np.arange(12)[None])},
    "legal actions": {"legal_actions": lambda state: ~state.edges & (jnp.arange(12) != state.lead)},
    "ends of games": {"is_over": lambda state: state.edges[1:].all()},
    "players to move": {"step": no_way_out},
    "rewards": {"step": lambda *move: (GAME.step(*move)[0], -GAME.step(*move)[1])},
    "observations": {"observe": lambda *seen: dots.observe(*seen).at[0, 0, 0].set(True)},
    "encodings": {"encodings": ("planes",)},
}


@pytest.mark.parametrize("name", OTHERS)
def test_names_the_difference(name):
    other = GAME._replace(**OTHERS[name])
    assert behavior.find_difference(DIGESTS, other, "edges") == name


def test_the_same_rules_may_have_different_code():
    assert (
        behavior.find_difference(
            DIGESTS, GAME._replace(step=lambda *move: GAME.step(*move)), "edges"
        )
        is None
    )
    assert behavior.find_difference(DIGESTS, by_rows(), "edges") is None


def test_digests_ignore_rounding_errors():
    def observe(state, encoding, error):
        third = jnp.float32(1 / 3) * (1 + error)
        return jnp.where(dots.observe(state, encoding), third, 0.0625)

    games = [
        GAME._replace(observe=lambda *seen, error=error: observe(*seen, error))
        for error in (0.0, 1e-6, 1e-2)
    ]
    digests = behavior.observe_rules(games[0], "edges")
    found = [behavior.find_difference(digests, game, "edges") for game in games]
    assert found == [None, None, "observations"]


def test_digests_are_the_same_in_every_version():
    """Existing runs contain them, so they must not change."""
    found = behavior.observe_rules(azjax.make("tic_tac_toe"), "relative")
    assert {name: digest[:8] for name, digest in found.items()} == {
        "sizes": "da18441d",
        "symmetries": "b65405d8",
        "legal actions": "1ccb84fe",
        "ends of games": "ff4efa39",
        "players to move": "14c3c62c",
        "rewards": "89205d86",
        "observations": "680fd75d",
        "states": "0cf67f96",
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    config = dataclasses.replace(presets.smoke(presets.get("default")), game="dots.py:make")
    return make_run(tmp_path_factory.mktemp("rules") / "run", presets.fit(config, GAME), game=GAME)


def test_a_player_is_loaded_with_the_same_rules(run):
    assert azjax.load(run, game=by_rows()).game.name == "other"
    flipped = GAME._replace(**OTHERS["rewards"])
    with pytest.raises(
        ValueError, match=r"^the rules of dots are not .* their rewards differ: pass"
    ):
        azjax.load(run, game=flipped)
    with pytest.raises(ValueError, match="pass it as game="):
        azjax.load(run)


def test_training_resumes_only_with_the_same_arrays(run):
    behavior.check_rules(run, GAME, resume=True)
    with pytest.raises(ValueError, match="its player can be loaded, but the run cannot be resumed"):
        behavior.check_rules(run, by_rows(), resume=True)


def test_a_damaged_record_is_rejected_and_a_missing_one_ignored(run, tmp_path):
    (tmp_path / "rules.json").write_text("{}")
    with pytest.raises(runs.CheckpointError, match=r"rules.json cannot be used \(.*: restore"):
        behavior.check_rules(tmp_path, GAME)
    (tmp_path / "rules.json").unlink()
    behavior.check_rules(tmp_path, GAME._replace(**OTHERS["rewards"]))


def test_a_run_is_loaded_only_with_its_own_game_and_network(tmp_path):
    config = presets.smoke(presets.get("default"))
    run_dir, game = make_run(tmp_path / "run", config), azjax.make("tic_tac_toe")
    network, parts = azjax.make_network(config.network, game), azjax.make_parts(config)
    for same in ({"game": game._replace(most_positions=3)}, {"network": network}, {"parts": parts}):
        assert azjax.load(run_dir, **same).iteration == 0
    other = azjax.make("connect_four")
    cases = [
        ({"game": other}, "run is a run of tic_tac_toe, and the sizes of connect_four differ"),
        ({"game": game._replace(is_over=lambda state: state.over & False)}, "the ends of games of"),
        ({"network": azjax.make_network(azjax.networks.MLPConfig(), game)}, "the network is not"),
        ({"network": azjax.make_network(config.network, other)}, "was made for planes .6, 7, 2"),
        ({"network": network._replace(infer=None, apply=lambda *given: 0)}, "returns|is not the"),
        ({"game": game, "parts": parts}, "parts contains its own game: leave game out"),
        ({"game": "tic_tac_toe"}, "game is 'tic_tac_toe', which is not of type Game"),
        ({"parts": config}, "parts is Config.*, which is not of type Parts"),
        ({"iteration": 0.0}, "iteration is 0.0, which is not of type int"),
        ({"run_dir": None}, "run_dir is None: use the folder of a run, or a player's name"),
        ({"run_dir": "connect_four", "game": game}, "connect_four comes with azjax .* leave game"),
        ({"run_dir": "connect_four", "iteration": 3}, "leave iteration out"),
    ]
    for given, message in cases:
        with pytest.raises(ValueError, match=message):
            azjax.load(**{"run_dir": run_dir, **given})
