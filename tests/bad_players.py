"""Bad players of small games, as policies for the reference rules and for states.

All tests of exhaustive play share its compiled functions, with small batches: see `small_batches`.
"""

import contextlib
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import guard
from azjax.games.rows import in_batches
from azjax.networks import Network
from azjax.players import Agent, Decision
from azjax.proof import exhaustive, replies, seat_proof
from azjax.runs.player import Player
from azjax.search import PUCT
from azjax.training.parts import Parts, SelfPlayConfig
from pairs import Pair, pair
from reference import minimax


def lowest(rules, position):
    return min(rules.legal(position))


def highest(rules, position):
    return max(rules.legal(position))


@functools.cache
def equivariant(rules, position):
    """An equivariant player: plays symmetric copies of a move in symmetric copies of a position."""
    least = {a: rules.least_image(rules.play(position, a)[0]) for a in rules.legal(position)}
    return max(least, key=least.get)


@functools.cache
def first_legal(game):
    """An agent that plays the first legal action; its other outputs are recognizable."""

    def act(params, key, states):
        legal = jax.vmap(game.legal_actions)(states)
        value = jnp.full(len(legal), 0.25)
        return Decision(jnp.argmax(legal, axis=1).astype(jnp.int32), legal * 0.5, value=value)

    return Agent("lowest", act, deterministic=True)


def search_blindly(legal):
    """Values every move at 0 and chooses the first."""
    nothing = np.zeros(legal.shape)
    return Decision(legal.argmax(axis=1), legal, q_values=nothing, visit_counts=legal)


def make_act(one: Pair, policy: Callable) -> Callable:
    """Builds `states [N, ...] -> actions [N]` from `policy(rules, position) -> action`."""
    return lambda states: np.array([policy(one.rules, p) for p in one.positions(states)])


@contextlib.contextmanager
def small_batches():
    with guard.sharing(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(replies, "_BATCH", 64)
        yield


def explore_all(game, act, seat, folder, **settings):
    """The last step of exhaustive play."""
    with small_batches():
        *_, last = exhaustive.explore(game, act, seat, folder, **settings)
        return last


def replay(game, lines):
    with small_batches():
        return replies.replay(game, lines)


# Players of listed moves, for proofs of a seat.


def moves_of(rules, policy):
    """The moves `{position: action}` of a policy in every reachable position."""
    plies = minimax.reachable(rules)
    return {p: policy(rules, p) for ply in plies for p in ply if not p.over}


def make_player(moves, name="tic_tac_toe", symmetric=False):
    """Returns a player of the moves `{position: action}`; see `use_listed_players`."""
    network = Network("absolute", *[None] * 4, symmetric)
    parts = Parts(pair(name).game, network, PUCT(), SelfPlayConfig(), *[None] * 3)
    number = np.array([*moves.values()])
    return Player(parts, {"moves": number, "name": moves}, 6)


def _make_agent(player, simulations):
    """The moves of the player; its search chooses the first move and values all moves at 0."""
    one, count = pair(player.game.name), player.game.num_actions

    def act(params, key, states):
        positions = one.positions(states)
        if simulations:
            legal = [np.isin(np.arange(count), one.rules.legal(p)) for p in positions]
            return search_blindly(np.array(legal))
        moves = np.array([params["name"].get(position, 0) for position in positions])
        return Decision(moves, np.eye(count)[moves])

    return Agent("listed", act, player.params)


def _make_decide(agent):  # Batches of one size, so that operations are compiled once.
    act = functools.partial(agent.act, agent.params, None)
    return lambda states: in_batches(act, (states,), 512)


def use_listed_players(monkeypatch):
    """Proofs of a seat use the moves of `make_player`, without a compiled program."""
    monkeypatch.setattr(seat_proof, "make_agent", _make_agent)
    monkeypatch.setattr(seat_proof, "make_decide", _make_decide)
    digest = lambda player, table: f"{hash(table.actions.tobytes())}"  # noqa: E731
    monkeypatch.setattr(seat_proof, "_digest", digest)
