"""Override tables: moves that replace those of a player in certain positions."""

import pathlib
import zipfile
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax._files import replacing
from azjax.games import rows as packing
from azjax.games.base import Game, State, init_batch
from azjax.games.hashing import contents, make_index
from azjax.players import Agent


class OverrideTable(NamedTuple):
    """Moves to be played in certain positions.

    Attributes:
      states: the positions, leaves `[K, ...]`, on the host.
      actions: `int32 [K]`.
      refuted: `bool [K, A]`, the moves that lose there against some line of play.
      rounds: how often lost games were repaired.
    """

    states: State
    actions: np.ndarray
    refuted: np.ndarray
    rounds: int = 0


def empty_table(game: Game) -> OverrideTable:
    """Returns a table without any move."""
    states = jax.tree.map(lambda leaf: leaf[:0], jax.device_get(init_batch(game, 1)))
    return OverrideTable(states, np.zeros(0, np.int32), np.zeros((0, game.num_actions), bool))


def table_path(run_dir: pathlib.Path, iteration: int, seat: int, simulations: int) -> pathlib.Path:
    """Returns where a run keeps the table of a checkpoint's player in one seat.

    0 simulations are the network alone.
    """
    seat_name = ("first", "second")[seat]
    return run_dir / "lines" / f"{iteration}-{seat_name}-{simulations}.book.npz"


def save_table(path: pathlib.Path, table: OverrideTable) -> None:
    """Writes a table, whole or not at all."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        states = packing.pack(table.states)
        np.savez(file, **table._replace(states=states)._asdict())


def load_table(path: pathlib.Path, game: Game) -> OverrideTable:
    """Reads a table of a game.

    Raises:
      ValueError: if the file is not a table, is damaged, or has a move that is not legal.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            states = packing.unpack(game, file["states"])
            table = OverrideTable(states, file["actions"], file["refuted"], file["rounds"].item())
        legal = np.asarray(jax.vmap(game.legal_actions)(states))
        moves = np.arange(game.num_actions) == table.actions[:, None]
        fits = table.refuted.shape == moves.shape == legal.shape
        if not fits or not (legal & moves).any(axis=1).all():
            raise ValueError("the moves are not those of the positions")
        return table
    except (EOFError, KeyError, NotImplementedError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} is damaged or not an override table of {game.name}: delete it and repair again"
        ) from error


def override_agent(
    game: Game, agent: Agent, table: OverrideTable, name: str | None = None
) -> Agent:
    """Plays the table's moves in its positions, and as another player does in all others.

    Values are the other player's in both.

    Raises:
      ValueError: if the table has no positions, or they cannot be looked up, see `make_index`.
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
