"""What a run remembers of a custom game and a custom network, to compare others with later.

A file's text may change where the rules do not. So runs of custom games record what the rules
return in random games, which are the same on every machine and with every version of JAX. Of custom
networks they record what these return for made-up parameters.
"""

import dataclasses
import functools
import hashlib
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax._files import Path
from azjax._settings import check
from azjax.games.base import Game, State, describe, init_batch, legal_action_at
from azjax.networks import Network
from azjax.runs.config import Config, CustomNetworkConfig, is_custom
from azjax.runs.directory import read_settings
from azjax.training.parts import Parts

NUM_GAMES = 128
_MOST_PLIES = 512
_NUM_PLANES = 8  # Made-up observations.
_TOLERANCE = 1e-3  # Of a network's outputs.
_GRID = 1000 / np.sqrt(2)  # Steps of 1 that are told apart: the last bits depend on the machine.
# What is digested in every position. Where one differs, those after it may differ because of it.
_IN_ORDER = ["legal actions", "ends of games", "players to move", "rewards", "observations"]


@dataclasses.dataclass(frozen=True)
class Rules:
    """What a run of a custom game records of its rules, its `rules.json`.

    Attributes:
      encoding: that of the observations.
      digests: see `observe_rules`.
    """

    encoding: str
    digests: dict

    def __post_init__(self):
        check("", self)


@dataclasses.dataclass(frozen=True)
class Responses:
    """What a run of a custom network records of it, its `network.json`; see `observe_network`.

    Attributes:
      arrays: their types and shapes by name.
      outputs: for made-up parameters.
    """

    arrays: dict
    outputs: tuple[float, ...]

    def __post_init__(self):
        check("", self)


def make_records(config: Config, parts: Parts) -> dict[str, dict]:
    """Returns what a run records of what is custom, by file names; see `runs.create_run`."""
    game, encoding, recorded = parts.game, parts.network.encoding, {}
    if config.parts or is_custom(config.game):
        recorded["rules.json"] = {
            "encoding": encoding,
            "digests": observe_rules(game, encoding),
        }
    if config.parts or isinstance(config.network, CustomNetworkConfig):
        recorded["network.json"] = observe_network(game, parts.network)
    return recorded


def records_rules(run_dir: Path) -> bool:
    """Whether a run recorded the rules of its custom game, so that `check_rules` compares them."""
    return (pathlib.Path(run_dir) / "rules.json").exists()


def records_network(run_dir: Path) -> bool:
    """Whether a run recorded its custom network, so that `check_network` compares it."""
    return (pathlib.Path(run_dir) / "network.json").exists()


def check_network(run_dir: Path, game: Game, network: Network) -> None:
    """Refuses another network than the one that a run recorded, if it recorded any.

    Raises:
      ValueError: if its arrays differ, or its outputs by more than rounding.
      CheckpointError: if the record cannot be read.
    """
    if not records_network(run_dir):
        return
    recorded = read_settings(pathlib.Path(run_dir) / "network.json", Responses)
    if not same_network(dataclasses.asdict(recorded), game, network):
        raise ValueError(
            f"the network is not the one that {run_dir} was trained with, its arrays or its "
            "outputs for the same parameters differ: give the network as it was"
        )


def check_rules(run_dir: Path, game: Game, resume: bool = False) -> None:
    """Refuses a game with other rules than those that a run recorded, if it recorded any.

    Args:
      run_dir: the run directory.
      game: the game that was given for the run's.
      resume: whether the run's games in flight are to go on, in the same arrays.

    Raises:
      ValueError: naming what differs.
      CheckpointError: if the record cannot be read.
    """
    if not records_rules(run_dir):
        return
    recorded = read_settings(pathlib.Path(run_dir) / "rules.json", Rules)
    difference = find_difference(recorded.digests, game, recorded.encoding)
    if difference is not None:
        raise ValueError(
            f"the rules of {game.name} are not those that {run_dir} was trained with, their "
            f"{difference} differ: give the game as it was, or train a new run"
        )
    if resume and not same_states(recorded.digests, game, recorded.encoding):
        raise ValueError(
            f"{game.name} has the rules that {run_dir} was trained with, and other states, so its "
            "player can be loaded, but its training cannot go on: give the game as it was"
        )


@functools.lru_cache(maxsize=8)
def observe_rules(game: Game, encoding: str) -> dict[str, str]:
    """Digests what the rules return in `NUM_GAMES` random games of up to 512 plies.

    Pictures, texts and names of actions are not among it, nor are positions that no random game
    comes to.

    Args:
      game: any.
      encoding: which of its encodings is observed.

    Returns:
      SHA-256 digests by what they are of, such as `legal actions`.
    """
    look = jax.jit(jax.vmap(functools.partial(_look, game, encoding)))
    symmetries = () if game.symmetries is None else (game.symmetries.cells, game.symmetries.actions)
    hashes = {
        "sizes": _hash(game.num_actions, *game.board_shape, game.max_plies),
        "symmetries": _hash(*symmetries),
    }
    states, plies = init_batch(game, NUM_GAMES), min(game.max_plies, _MOST_PLIES) + 1
    draws = np.random.PCG64(0).random_raw((plies, NUM_GAMES)) >> np.uint64(40)
    for uniform in draws.astype(np.float32) / np.float32(2**24):
        found, after = look(states, uniform)
        for name in (*_IN_ORDER, "states"):
            _hash(*found[name], onto=hashes.setdefault(name, hashlib.sha256()))
        if np.all(found["ends of games"][0]):
            break
        states = after
    return {name: digest.hexdigest() for name, digest in hashes.items()}


def find_difference(digests: dict[str, str], game: Game, encoding: str) -> str | None:
    """Names what of a game's rules is not as it was digested; None if all of it is.

    Its `states` are left out: they may hold the same positions in other arrays. See `same_states`.
    """
    if encoding not in game.encodings:
        return "encodings"
    found, names = observe_rules(game, encoding), ["sizes", "symmetries", *_IN_ORDER]
    return next((name for name in names if found[name] != digests.get(name)), None)


def same_states(digests: dict[str, str], game: Game, encoding: str) -> bool:
    """Whether positions are held in the same arrays as when the rules were digested."""
    return observe_rules(game, encoding)["states"] == digests.get("states")


def observe_network(game: Game, network: Network) -> dict[str, Any]:
    """Returns a network's arrays by name, and its outputs for made-up numbers in them.

    The parameters are the same on every machine, and the outputs, in evaluation and in training,
    are almost: `same_network` compares them.
    """
    shapes = jax.eval_shape(network.init, jax.random.key(0))
    leaves, structure = jax.tree.flatten(shapes)
    variables = jax.tree.unflatten(structure, [_made_up(i, x) for i, x in enumerate(leaves)])
    one = jax.eval_shape(lambda: game.observe(game.init(), network.encoding))
    planes = _made_up(len(leaves), jax.ShapeDtypeStruct((_NUM_PLANES, *one.shape), np.float32))

    @jax.jit
    def answer(variables, planes):
        trained = network.train(variables, planes, None)[0]
        return network.apply(variables, planes), trained

    with jax.default_matmul_precision("highest"):
        outputs = jax.tree.leaves(answer(variables, (planes > 0).astype(one.dtype)))
    named = jax.tree_util.tree_leaves_with_path(shapes)
    return {
        "arrays": {jax.tree_util.keystr(path): describe(leaf) for path, leaf in named},
        "outputs": [float(number) for leaf in outputs for number in np.ravel(leaf)],
    }


def same_network(recorded: dict[str, Any], game: Game, network: Network) -> bool:
    """Whether a network has the arrays, and the outputs but for rounding, that were recorded."""
    found = observe_network(game, network)
    one, other = (np.asarray(some["outputs"]) for some in (recorded, found))
    same_arrays = recorded["arrays"] == found["arrays"] and one.shape == other.shape
    return same_arrays and np.allclose(one, other, rtol=_TOLERANCE, atol=_TOLERANCE)


def _made_up(index: int, shape: Any) -> jax.Array:
    """An array of that shape; numbers of large arrays are small, as those of layers are."""
    drawn = np.random.PCG64(index).random_raw(shape.size) >> np.uint64(40)
    uniform = drawn.astype(np.float64).reshape(shape.shape) / 2**24
    fan_in = max(shape.size // shape.shape[-1], 1) if shape.shape else 1
    return jnp.asarray(
        (uniform + 0.5 if fan_in == 1 else 2 * uniform - 1) / np.sqrt(fan_in), shape.dtype
    )


def _look(game: Game, encoding: str, state: State, uniform: jax.Array):
    """Returns what the rules return for one state, and the state after a random move."""
    legal = game.legal_actions(state)
    after, reward = game.step(state, legal_action_at(legal, uniform))
    found = {
        "legal actions": [legal],
        "ends of games": [game.is_over(state)],
        "players to move": [game.player(state)],
        "rewards": [reward],
        "observations": [game.observe(state, encoding)],
        "states": [_numbers(leaf) for leaf in jax.tree.leaves(state)],
    }
    return found, after


def _numbers(leaf: jax.Array) -> jax.Array:
    """The numbers of a leaf, which may be a typed key."""
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(leaf) if is_key else leaf


def _hash(*leaves: Any, onto: Any = None) -> Any:
    """Takes arrays into a hash, or a new one, rounded and whatever their types."""
    digest = hashlib.sha256() if onto is None else onto
    for leaf in leaves:
        array = np.asarray(leaf, np.float64)
        digest.update(repr(array.shape).encode())
        digest.update(np.floor(array * _GRID + 0.5).tobytes())  # No round fraction is on an edge.
    return digest
