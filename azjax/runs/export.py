"""Export of players to StableHLO files, which run with JAX and without azjax.

The parameters are part of the file, which is lowered for CPUs, NVIDIA GPUs and TPUs. To call its
function, here that of a network:

    network = jax.export.deserialize(pathlib.Path("player.stablehlo").read_bytes())
    logits, value = network.call(states)

Here, `states` is a dictionary of arrays `[b, ...]`, one for each leaf of the game's state; see
`name_leaves`.
"""

import pathlib
from typing import Any

import jax
import jax.numpy as jnp

from azjax._commands import check_installed
from azjax._files import Path, check_folder, replacing
from azjax._settings import AnySimulations, Positive, checked
from azjax.games.base import State, state_shapes
from azjax.runs.player import Player

PLATFORMS = "cpu", "cuda", "tpu"
_SEED = jax.ShapeDtypeStruct((), jnp.int32)


def export(
    player: Player,
    path: Path,
    num_simulations: int | None = None,
    batch_size: int | None = None,
) -> pathlib.Path:
    """Writes a player to a file that runs without azjax; replaces an existing file.

    Args:
      player: the player, from `load`.
      path: the file, which is returned; its name ends in `.stablehlo`.
      num_simulations: None: `states -> (logits float32 [b, A], value float32 [b])`, as in
        `Player.evaluate`. 0: `(states, seed int32 []) -> (action int32 [b], weights float32 [b, A],
        value float32 [b])`, the moves of the network alone, with the player's overrides. A positive
        number: the same for a search with that many simulations.
      batch_size: the number of positions `b`; None means any number.
    """
    checked("player", player, Player)
    path = pathlib.Path(path)
    if path.suffix != ".stablehlo":
        raise ValueError(f"{path} has no known extension: use a name that ends in .stablehlo")
    check_folder(path)
    checked("num_simulations", num_simulations, AnySimulations | None)
    checked("batch_size", batch_size, Positive | None)
    check_installed("flatbuffers", "a .stablehlo file")
    content = _to_stablehlo(player, num_simulations, batch_size)
    with replacing(path) as partial:
        partial.write_bytes(content)
    return path


def name_leaves(states: State) -> dict[str, Any]:
    """Returns the leaves of states by name, such as `board` and `player`.

    A state that is a single array has the name `state`.
    """
    paths = jax.tree_util.tree_flatten_with_path(states)[0]
    return {
        jax.tree_util.keystr(path, simple=True, separator=".") or "state": leaf
        for path, leaf in paths
    }


def _to_stablehlo(player: Player, num_simulations: int | None, batch_size: int | None) -> bytes:
    one = state_shapes(player.game)
    batch = jax.export.symbolic_shape("b")[0] if batch_size is None else batch_size
    states = {
        name: jax.ShapeDtypeStruct((batch, *leaf.shape), leaf.dtype)
        for name, leaf in name_leaves(one).items()
    }
    agent = player.with_simulations(num_simulations or 0)

    def unname(named):
        return jax.tree.unflatten(jax.tree.structure(one), [named[name] for name in states])

    def evaluate(states):
        return player.parts.evaluate(player.params, None, unname(states))[:2]

    def act(states, seed):
        decision = agent.act(agent.params, jax.random.key(seed), unname(states))
        return decision.action, decision.weights, decision.value

    function, given = (evaluate, [states]) if num_simulations is None else (act, [states, _SEED])
    try:
        exported = jax.export.export(jax.jit(function), platforms=PLATFORMS)(*given)
    except (TypeError, jax.errors.InconclusiveDimensionOperation) as error:
        if batch_size is not None:
            raise
        raise ValueError(
            "this player cannot be exported for a variable number of positions, because its code "
            f"needs a fixed number ({error}): choose a batch size"
        ) from error
    return bytes(exported.serialize())
