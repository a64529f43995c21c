"""Rounds the MLP of a run to integers, and writes it as a file of `azjax/pretrained`.

    python -m experiments.quantize --run-dir runs/NAME

The player plays without search, unless `--simulations` is given. Commands load it by the name of
its game. `azjax.runs.pretrained` describes the file.
"""

from azjax.cli import run_program

if __name__ == "__main__":
    run_program("experiments.quantize")

import dataclasses
import hashlib
import json
import pathlib
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax._files import replacing, write_text
from azjax._settings import Count, Range
from azjax.cli import console, custom
from azjax.games import Game, State, choose, play, random_action, where
from azjax.networks import Network
from azjax.networks.base import Variables
from azjax.networks.integers import LARGEST, VALUES, make_quantized
from azjax.networks.symmetric import Group, copy_weights, make_group
from azjax.players.overrides import Overrides
from azjax.runs import checkpoint, make_parts, pretrained, read_config
from azjax.search import Evaluator, Gumbel

_POSITIONS = 16_384  # Positions in which the range of each unit is measured.
_SEED = 7
_END = 3.8  # The table of values covers tanh from -_END to _END.

Weights = dict[str, Any]  # Arrays by name.


@dataclasses.dataclass(frozen=True)
class Options:
    """Rounds the network of a run to integers, and adds it to the players that come with azjax."""

    command: str = ""
    """The training command, to record in the file."""
    seconds: Count = 0
    """The duration of the training in seconds, to record in the file."""
    device: str = ""
    """The device that trained it, to record in the file. Default: that of this machine."""
    simulations: Annotated[int, Range(0)] = 0
    """Simulations of the player's search; 0: it plays without search."""
    typed: custom.OfPlayer = custom.PlayerOptions()


def draw_positions(game: Game, evaluate: Evaluator, params, count: int = _POSITIONS) -> State:
    """Returns positions `[count, ...]` after random moves, followed by moves of the policy."""
    most = game.max_plies - 2
    rng = np.random.default_rng(_SEED)
    totals = rng.integers(0, most + 1, count)
    openings = (totals * rng.random(count)).astype(np.int32)

    def draw(key, opening, total):
        def move(ply, state):
            key_random, key_network = jax.random.split(jax.random.fold_in(key, ply))
            logits, _ = evaluate(params, None, jax.tree.map(lambda leaf: leaf[None], state))
            noisy = logits + jax.random.gumbel(key_network, logits.shape)
            drawn = choose(noisy, game.legal_actions(state)[None])[0]
            action = jnp.where(ply < opening, random_action(game, key_random, state), drawn)
            after = play(game, state, action).state
            return where((ply < total) & ~game.is_over(after), after, state)

        return jax.lax.fori_loop(0, most, move, game.init())

    keys = jax.random.split(jax.random.key(_SEED), count)
    return jax.jit(jax.vmap(draw))(keys, openings, totals)


class Quantized(NamedTuple):
    """A quantized network."""

    network: Network  # It cannot be trained.
    variables: Variables  # Its integers; `network.fold(variables)` prepares them for inference.


def quantize(game: Game, network: Network, variables: Variables, states: State) -> Quantized:
    """Rounds a trained MLP to integers.

    Args:
      game: the game of the network.
      network: an MLP, symmetric or not.
      variables: its trained variables.
      states: several thousand positions `[N, ...]` like those that the network will evaluate.
        They determine the range of each unit.
    """
    plain = None if network.plain is None else network.plain(network.fold(variables))
    if plain is None or plain.kind != "mlp":
        raise ValueError("this network cannot be quantized: use an MLP, `MLPConfig`")
    planes = jax.vmap(lambda state: game.observe(state, network.encoding))(states)
    if planes.dtype != bool:
        raise ValueError(
            f"the planes of {game.name} are of type {planes.dtype}: quantized networks need bool"
        )
    group = make_group(game, network.symmetric)
    layers = {name: jax.tree.map(np.asarray, layer) for name, layer in plain.layers.items()}
    rounding = _Rounding(group, layers, {})
    x, units = np.asarray(planes).reshape(len(planes), -1), np.ones(planes[0].size)
    for i in range(plain.blocks):
        x, units = rounding.hidden(f"Dense_{i}", x, units)
    rounding.policy(*rounding.hidden("policy_hidden", x, units))
    rounding.value(rounding.hidden("value_hidden", x, units)[1])
    integers = {"params": rounding.params}
    made = make_quantized(game, integers, network.encoding, network.symmetric)
    return Quantized(made, integers)


class _Rounding(NamedTuple):
    """Rounds layer by layer; `params` collects the results."""

    group: Group
    layers: dict[str, Weights]
    params: dict[str, Weights]

    def hidden(self, name: str, x: np.ndarray, units: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rounds a hidden layer.

        Args:
          name: the layer.
          x: its inputs `[N, I]`, integers.
          units: `[I]`, the real number that the integer 1 represents in each input.

        Returns:
          Its outputs `[N, O]`, integers, and the real number that 1 represents in each, `[O]`.
        """
        copies = len(self.group.copies)
        kernel, bias = (self.layers[name][part].astype(np.float64) for part in ("kernel", "bias"))
        first = kernel.shape[1] // copies  # The other copies follow from the first.
        weights = kernel[:, :first] * units[:, None]
        scale = np.maximum(np.abs(weights).max(axis=0), 1e-12) / LARGEST
        rounded = {
            "kernel": np.rint(weights / scale).astype(np.int8),
            "bias": np.rint(bias[:first] / scale).astype(np.int32),
            "shift": np.zeros(first, np.uint8),
        }
        dense = jax.tree.map(np.asarray, copy_weights(self.group, name, rounded))
        totals = x.astype(np.float32) @ dense["kernel"].astype(np.float32) + dense["bias"]
        shift = _choose_shifts(np.maximum(totals, 0).reshape(-1, copies, first))
        rounded["shift"], rounded["bias"] = (
            shift.astype(np.uint8),
            rounded["bias"] + 2 ** (shift - 1),
        )
        self.params[name] = rounded
        shifts = np.tile(shift, copies)
        totals = np.floor((totals + 2.0 ** (shifts - 1)) * 2.0**-shifts)
        return np.clip(totals, 0, LARGEST), np.tile(scale * 2.0**shift, copies)

    def policy(self, x: np.ndarray, units: np.ndarray) -> None:
        """Rounds the layer of the logits, with one power of two for all of them."""
        group, layer = self.group, self.layers["policy"]
        weights = (layer["kernel"] * units[:, None])[: len(units) // len(group.copies)]
        scale = 2.0 ** np.ceil(np.log2(np.abs(weights).max() / LARGEST))
        bias = np.rint(layer["bias"] / scale)[group.actions.min(axis=0)]  # One for all copies.
        kernel = np.rint(weights / scale).astype(np.int8)
        rounded: dict[str, Any] = {"kernel": kernel, "bias": bias.astype(np.int32), "shift": 0}
        dense = np.asarray(copy_weights(group, "policy", rounded)["kernel"]).astype(np.int64)
        most = int((np.abs(dense).sum(axis=0) * LARGEST + np.abs(bias)).max())
        ranks = (group.actions.shape[1] - 1).bit_length()
        rounded["shift"] = np.uint8(max(most.bit_length() + ranks + 1 - 24, 0))
        rounded["scale"] = np.float32(scale * 2.0 ** int(rounded["shift"]) / 2**ranks)
        self.params["policy"] = rounded

    def value(self, units: np.ndarray) -> None:
        """Rounds the layer of the value, and computes the table that replaces tanh."""
        layer, copies = self.layers["value"], len(self.group.copies)
        weights = (layer["kernel"] * units[:, None])[: len(units) // copies]
        scale = np.abs(weights).max() / LARGEST
        shift = max(int(np.ceil(np.log2(_END / VALUES / scale))), 1)
        bias = np.rint(layer["bias"] / scale).astype(np.int32) + 2 ** (shift - 1)
        steps = np.arange(-VALUES, VALUES + 1) * scale * 2.0**shift
        self.params["value"] = {
            "kernel": np.rint(weights / scale).astype(np.int8),
            "bias": bias.astype(np.int32),
            "shift": np.uint8(shift),
            "table": np.tanh(steps).astype(np.float32),
        }


def _choose_shifts(totals: np.ndarray) -> np.ndarray:
    """Returns `int [O]`, the shifts that round nonnegative `totals [N, G, O]` with least error."""
    largest = np.maximum(totals.max(axis=(0, 1)), 1)
    most = np.maximum(np.ceil(np.log2(largest / LARGEST)), 1).astype(np.int32)
    candidates = [np.maximum(most - fewer, 1) for fewer in range(3)]

    def error(shift):
        rounded = np.clip(np.floor(totals * 2.0**-shift + 0.5), 0, LARGEST) * 2.0**shift
        return np.square(rounded - totals).mean(axis=(0, 1))

    best = np.argmin([error(shift) for shift in candidates], axis=0)
    return np.take_along_axis(np.stack(candidates), best[None], axis=0)[0]


def run(options: Options) -> int:
    """Writes the file and its digest; returns the exit status."""
    run_dir, _ = custom.open_player(options.typed)
    config = read_config(run_dir)
    network = dataclasses.replace(config.network, evaluation_dtype="float32")
    parts = make_parts(dataclasses.replace(config, network=network))
    variables, iteration = checkpoint.restore_player(run_dir, parts.network)
    params = parts.network.fold(variables)
    states = draw_positions(parts.game, parts.evaluate, params)
    made = quantize(parts.game, parts.network, variables, states)
    legal = jax.vmap(parts.game.legal_actions)(states)
    planes = jax.vmap(lambda state: parts.game.observe(state, parts.network.encoding))(states)
    floats, integers = (
        parts.network.infer(params, planes),
        made.network.infer(made.network.fold(made.variables), planes),
    )
    same = np.mean(choose(floats[0], legal) == choose(integers[0], legal))
    print(f"the integers lead to the same move in {same:.2%} of {len(planes):,} positions")
    about = {
        "game": config.game,
        "encoding": parts.network.encoding,
        "symmetric": parts.network.symmetric,
        "iteration": iteration,
        "search": dataclasses.asdict(
            Gumbel(
                num_simulations=options.simulations or 64,
                value_scale=getattr(config.search, "value_scale", 0.1),
            )
        ),
        "alone": not options.simulations,
        "training": {
            "command": options.command,
            "moves": iteration * config.selfplay.games * config.selfplay.unroll_length,
            "seconds": options.seconds,
            "device": options.device or jax.devices()[0].device_kind,
            "jax": jax.__version__,
        },
    }
    name = config.game.removeprefix("pgx:")
    path = add_player(name, about, made.variables)
    print(f"{path}: {path.stat().st_size:,} bytes; azjax play {name}")
    return 0


def save_player(
    path: pathlib.Path,
    about: dict[str, Any],
    variables: Variables,
    overrides: Overrides | None = None,
) -> None:
    """Writes the file of a player."""
    arrays = {
        f"{layer}.{part}": array
        for layer, parts in variables["params"].items()
        for part, array in parts.items()
    }
    if overrides is not None:
        arrays |= {f"overrides.{part}": array for part, array in overrides._asdict().items()}
    text = json.dumps(about, indent=1).encode()
    with replacing(path) as partial, partial.open("wb") as file:
        np.savez_compressed(file, about=np.frombuffer(text, np.uint8), **arrays)


def add_player(
    name: str, about: dict[str, Any], variables: Variables, overrides: Overrides | None = None
) -> pathlib.Path:
    """Writes the file of a player of the package and its entry in the index."""
    path = pretrained.path_of(name)
    save_player(path, about, variables, overrides)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    index = pretrained.read_index() | {name: {"sha256": digest}}
    write_text(path.with_name("index.json"), json.dumps(index, indent=1, sort_keys=True) + "\n")
    return path


main = console.make_main(run, Options, "experiments.quantize", "nothing was written")
