"""Override tables: moves that replace those of a player in certain positions."""

import io
import pathlib
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax._files import replacing
from azjax.games import rows as packing
from azjax.games.base import Game, State, init_batch
from azjax.games.hashing import contents, make_index
from azjax.players import Agent

TABLE_SUFFIX = ".overrides.npz"


class OverrideTable(NamedTuple):
    """Moves to play in certain positions.

    Attributes:
      states: the positions `[K, ...]`, on the host.
      actions: `int32 [K]`, the move in each position.
      refuted: `bool [K, A]`, the moves that lose there against some line of play.
      rounds: the number of repair rounds that made the table.
    """

    states: State
    actions: np.ndarray
    refuted: np.ndarray
    rounds: int = 0


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
    """Reads a table.

    Raises:
      ValueError: if the file is damaged or not a table of this game, or a move is illegal.
    """
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


def override_agent(
    game: Game, agent: Agent, table: OverrideTable, name: str | None = None
) -> Agent:
    """Returns an agent whose actions, not values, are overridden in the positions of a table.

    Raises:
      ValueError: if the table is empty, or its positions cannot be hashed; see `make_index`.
    """
    if not len(table.actions):
        raise ValueError("the override table has no positions: play without it")
    index, in_table = make_index(game, table.states), contents(table.states, axes=1)
    overrides = jnp.asarray(table.actions)

    def act(params, key, states):
        decision = agent.act(params, key, states)
        row = index(states)
        is_in_table = jnp.all(contents(states, axes=1) == in_table[row], axis=1)
        action = jnp.where(is_in_table, overrides[row], decision.action)
        return decision._replace(
            action=action,
            weights=jnp.where(
                is_in_table[:, None], jax.nn.one_hot(action, game.num_actions), decision.weights
            ),
        )

    return agent._replace(name=name or f"{agent.name} with {len(in_table)} overrides", act=act)
