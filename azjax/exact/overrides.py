"""Override tables: their files, and leaving out the overrides that a player does not need."""

import io
import pathlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax._files import replacing
from azjax.exact import exhaustive
from azjax.exact.deciding import make_decide
from azjax.games import rows as packing
from azjax.games.base import Game, State, init_batch
from azjax.players import Agent
from azjax.players.overrides import (
    Lookup,
    Overrides,
    make_find,
    make_lookup,
    with_overrides,
)

TABLE_SUFFIX = ".overrides.npz"


class OverrideTable(NamedTuple):
    """Moves to play in certain positions."""

    states: State  # The positions `[K, ...]`, on the host.
    actions: np.ndarray  # `int32 [K]`, the move in each position.
    refuted: np.ndarray  # `bool [K, A]`, the moves that lose there against some line of play.
    rounds: int = 0  # The number of repair rounds that made the table.


def empty_table(game: Game) -> OverrideTable:
    """Returns a table without moves."""
    states = jax.tree.map(lambda leaf: leaf[:0], jax.device_get(init_batch(game, 1)))
    return OverrideTable(states, np.zeros(0, np.int32), np.zeros((0, game.num_actions), bool))


def table_path(run_dir: pathlib.Path, iteration: int, seat: int, simulations: int) -> pathlib.Path:
    """Returns the path of a checkpoint's table for a seat; 0 simulations: the network alone."""
    seat_name = ("first", "second")[seat]
    return run_dir / "lines" / f"{iteration}-{seat_name}-{simulations}{TABLE_SUFFIX}"


def save_table(path: pathlib.Path, table: OverrideTable) -> None:
    """Writes a table atomically."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        states = packing.pack(table.states)
        np.savez(file, **table._replace(states=states)._asdict())


def load_table(path: pathlib.Path, game: Game) -> OverrideTable:
    """Reads a table; its moves must be legal."""
    content = path.read_bytes()
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            states = packing.unpack(game, file["states"])
            table = OverrideTable(states, file["actions"], file["refuted"], file["rounds"].item())
        legal = np.asarray(jax.vmap(game.legal_actions)(states))
        moves = np.arange(game.num_actions) == table.actions[:, None]
        fits = table.refuted.shape == moves.shape == legal.shape
        if not fits or not (legal & moves).any(axis=1).all():
            raise ValueError("the moves are not those of the positions")
        return table
    except Exception as error:  # Damaged files fail in many ways.
        raise ValueError(
            f"{path} is damaged or not an override table of {game.name}: delete it and repair again"
        ) from error


def table_lookup(game: Game, table: OverrideTable) -> Lookup:
    """Builds a lookup in which only equal states are the same position."""
    if not len(table.actions):
        raise ValueError("the override table has no positions: play without it")
    find, actions = make_find(game, table.states), jnp.asarray(table.actions)

    def lookup(states):
        row = find(states)
        return row, actions[row]

    return lookup


def override_agent(
    game: Game, agent: Agent, table: OverrideTable, name: str | None = None
) -> Agent:
    """Returns an agent that plays the moves of a table; see `table_lookup`."""
    name = name or f"{agent.name} with {len(table.actions)} overrides"
    return with_overrides(agent, table_lookup(game, table), name)


def prune(
    game: Game,
    encoding: str,
    agent: Agent,
    overrides: Overrides,
    seat: int,
    folder: pathlib.Path,
    watch: exhaustive.Watch = exhaustive.finish,
    **settings: Any,
) -> tuple[Overrides, exhaustive.Exploration]:
    """Explores all games of a player with overrides, and keeps only the overrides that it needs.

    An override is needed if a game reaches its position, and the player would move differently
    without it. The player with the remaining overrides plays exactly the same games, so the result
    of the exploration, whose last step is returned, holds for it as well. The moves of `agent`, the
    player without overrides, must be equivariant.
    """
    lookup = make_lookup(game, encoding, overrides)
    is_needed = np.zeros(len(overrides.actions), bool)

    def act_and_find(params, key, states):
        alone = agent.act(params, key, states).action
        row, action = lookup(states)
        changes = (row >= 0) & (action != alone)
        return jnp.where(changes, action, alone), jnp.where(changes, row, -1)

    decide = make_decide(agent._replace(act=act_and_find))

    def act(states):
        actions, rows = map(np.asarray, decide(states))
        is_needed[rows[rows >= 0]] = True
        return actions

    symmetric = game.symmetries is not None
    steps = exhaustive.explore(game, act, seat, folder, symmetric=symmetric, **settings)
    last = watch(steps)
    return Overrides(overrides.planes[is_needed], overrides.actions[is_needed]), last
