"""Records of the behavior of custom games and networks, to detect later changes.

The source of a game can change while its rules stay the same. So a run records a digest of what the
rules return in random games, which do not depend on the machine or the version of JAX. For a custom
network, it records the outputs for generated parameters.
"""

import dataclasses
import functools
import hashlib
import pathlib
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from azjax._files import Path
from azjax._settings import check
from azjax.games.base import Game, State, describe, init_batch, legal_action_at
from azjax.networks import Network
from azjax.networks.base import check_network as check_fits
from azjax.runs.config import Config, CustomNetworkConfig, is_custom
from azjax.runs.directory import read_settings
from azjax.training.parts import Parts

NUM_GAMES = 128
_MOST_PLIES = 512
_NUM_PLANES = 8  # Generated observations.
_TOLERANCE = 1e-3  # Outputs that differ by at most this count as the same.
# Digests round numbers to multiples of 1 / _GRID, since the last bits depend on the machine.
_GRID = 1000 / np.sqrt(2)
# Digested in every position, in this order: a difference in one entry may cause differences in the
# entries after it.
_IN_ORDER = ["legal actions", "ends of games", "players to move", "rewards", "observations"]


@dataclasses.dataclass(frozen=True)
class Rules:
    """The content of `rules.json`: an encoding and the digests from `observe_rules`."""

    encoding: str
    digests: dict

    def __post_init__(self):
        check("", self)


@dataclasses.dataclass(frozen=True)
class Responses:
    """The content of `network.json`, from `observe_network`."""

    arrays: dict
    outputs: tuple[float, ...]

    def __post_init__(self):
        check("", self)


def make_records(config: Config, parts: Parts) -> dict[str, dict]:
    """Returns the records of custom games and networks, by file name, for `runs.create_run`."""
    game, encoding, recorded = parts.game, parts.network.encoding, {}
    if config.parts or is_custom(config.game):
        digests = observe_rules(game, encoding)
        recorded["rules.json"] = {"encoding": encoding, "digests": digests}
    if config.parts or isinstance(config.network, CustomNetworkConfig):
        recorded["network.json"] = dataclasses.asdict(observe_network(game, parts.network))
    return recorded


def has_record(run_dir: Path, name: Literal["rules", "network"]) -> bool:
    """Whether a run recorded the rules of its custom game, or its custom network."""
    return (pathlib.Path(run_dir) / f"{name}.json").exists()


def check_network(
    run_dir: Path, game: Game, network: Network, known: Network | None = None
) -> None:
    """Checks that a network behaves like the one that a run recorded, if any, or like `known`.

    Raises:
      ValueError: if its arrays differ, or its outputs by more than rounding errors.
      CheckpointError: if the record cannot be read.
    """
    check_fits(game, network)
    if known is not None:
        recorded = observe_network(game, known)
    elif has_record(run_dir, "network"):
        recorded = read_settings(pathlib.Path(run_dir) / "network.json", Responses)
    else:
        return
    observed = observe_network(game, network)
    one, other = np.asarray(recorded.outputs), np.asarray(observed.outputs)
    same_arrays = recorded.arrays == observed.arrays and one.shape == other.shape
    if not (same_arrays and np.allclose(one, other, rtol=_TOLERANCE, atol=_TOLERANCE)):
        raise ValueError(
            f"the network is not the one that {run_dir} was trained with; its arrays or its "
            "outputs for the same parameters differ: pass the original network"
        )


def check_rules(run_dir: Path, game: Game, resume: bool = False, known: Game | None = None) -> None:
    """Checks that a game has the rules that a run recorded, if any, or those of `known`.

    With `resume`, its states must have the same arrays as well, to continue the games in flight.

    Raises:
      ValueError: naming the difference.
      CheckpointError: if the record cannot be read.
    """
    if known is not None and game != known:
        encoding = known.encodings[0]
        difference = find_difference(observe_rules(known, encoding), game, encoding)
        if difference is not None:
            raise ValueError(
                f"{run_dir} is a run of {known.name}, and the {difference} of {game.name} differ: "
                "leave the game out, or load a run of that game"
            )
    if known is not None or not has_record(run_dir, "rules"):
        return
    recorded = read_settings(pathlib.Path(run_dir) / "rules.json", Rules)
    difference = find_difference(recorded.digests, game, recorded.encoding)
    if difference is not None:
        raise ValueError(
            f"the rules of {game.name} are not those that {run_dir} was trained with; their "
            f"{difference} differ: pass the original game, or train a new run"
        )
    states = observe_rules(game, recorded.encoding)["states"]
    if resume and states != recorded.digests.get("states"):
        raise ValueError(
            f"{game.name} has the rules that {run_dir} was trained with, but other states, so its "
            "player can be loaded, but the run cannot be resumed: pass the original game"
        )


@functools.lru_cache(maxsize=8)
def observe_rules(game: Game, encoding: str) -> dict[str, str]:
    """Digests the results of the rules in `NUM_GAMES` random games of up to 512 plies.

    Returns:
      SHA-256 digests by the name of their content, such as `legal actions`. Drawings and names of
      actions are not included.
    """
    observe = jax.jit(jax.vmap(functools.partial(_observe, game, encoding)))
    symmetries = () if game.symmetries is None else (game.symmetries.cells, game.symmetries.actions)
    hashes = {
        "sizes": _hash(game.num_actions, *game.board_shape, game.max_plies),
        "symmetries": _hash(*symmetries),
    }
    states, plies = init_batch(game, NUM_GAMES), min(game.max_plies, _MOST_PLIES) + 1
    draws = np.random.PCG64(0).random_raw((plies, NUM_GAMES)) >> np.uint64(40)
    for uniform in draws.astype(np.float32) / np.float32(2**24):
        observed, after = observe(states, uniform)
        for name in (*_IN_ORDER, "states"):
            _hash(*observed[name], onto=hashes.setdefault(name, hashlib.sha256()))
        if np.all(observed["ends of games"][0]):
            break
        states = after
    return {name: digest.hexdigest() for name, digest in hashes.items()}


def find_difference(digests: dict[str, str], game: Game, encoding: str) -> str | None:
    """Names the first part of a game's rules that differs from the digests, or returns None.

    It ignores the arrays of states, which can represent the same positions differently.
    """
    if encoding not in game.encodings:
        return "encodings"
    observed, names = observe_rules(game, encoding), ["sizes", "symmetries", *_IN_ORDER]
    return next((name for name in names if observed[name] != digests.get(name)), None)


@functools.lru_cache(maxsize=8)
def observe_network(game: Game, network: Network) -> Responses:
    """Returns the types and shapes of a network's arrays, and its outputs for generated ones.

    The generated arrays are the same on every machine. The outputs, of `apply` and of `train`, are
    the same up to rounding.
    """
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    leaves, structure = jax.tree.flatten(shapes)
    variables = jax.tree.unflatten(structure, [_generate(i, x) for i, x in enumerate(leaves)])
    one = jax.eval_shape(lambda: game.observe(game.init(), network.encoding))
    planes = _generate(len(leaves), jax.ShapeDtypeStruct((_NUM_PLANES, *one.shape), np.float32))

    @jax.jit
    def outputs_of(variables, planes):
        trained = network.train(variables, planes, None)[0]
        return network.apply(variables, planes), trained

    with jax.default_matmul_precision("highest"):
        outputs = jax.tree.leaves(outputs_of(variables, (planes > 0).astype(one.dtype)))
    named = jax.tree_util.tree_leaves_with_path(shapes)
    return Responses(
        arrays={jax.tree_util.keystr(path): describe(leaf) for path, leaf in named},
        outputs=tuple(float(number) for leaf in outputs for number in np.ravel(leaf)),
    )


def _generate(index: int, shape: Any) -> jax.Array:
    """Generates an array, scaled like the weights of a layer of that shape."""
    drawn = np.random.PCG64(index).random_raw(shape.size) >> np.uint64(40)
    uniform = drawn.astype(np.float64).reshape(shape.shape) / 2**24
    fan_in = max(shape.size // shape.shape[-1], 1) if shape.shape else 1
    return jnp.asarray(
        (uniform + 0.5 if fan_in == 1 else 2 * uniform - 1) / np.sqrt(fan_in), shape.dtype
    )


def _observe(game: Game, encoding: str, state: State, uniform: jax.Array):
    """Returns the results of the rules for one state, and the state after a random move."""
    legal = game.legal_actions(state)
    after, reward = game.step(state, legal_action_at(legal, uniform))
    observed = {
        "legal actions": [legal],
        "ends of games": [game.is_over(state)],
        "players to move": [game.player(state)],
        "rewards": [reward],
        "observations": [game.observe(state, encoding)],
        "states": [_numbers(leaf) for leaf in jax.tree.leaves(state)],
    }
    return observed, after


def _numbers(leaf: jax.Array) -> jax.Array:
    """Returns a leaf, or its data if it is a typed key."""
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(leaf) if is_key else leaf


def _hash(*leaves: Any, onto: Any = None) -> Any:
    """Rounds arrays and adds them, regardless of their types, to a hash; by default a new one."""
    digest = hashlib.sha256() if onto is None else onto
    for leaf in leaves:
        array = np.asarray(leaf, np.float64)
        digest.update(repr(array.shape).encode())
        # Rounds to the nearest multiple; 0 and 1 are not halfway between two of them.
        digest.update(np.floor(array * _GRID + 0.5).tobytes())
    return digest
