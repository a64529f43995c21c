"""Rounds the MLP of a run to integers, and writes it as a file of `azjax/pretrained`.

    python -m experiments.quantize --run-dir runs/NAME

The player plays without search, unless `--simulations` is given. Commands load it by the name of
its game. `azjax.runs.pretrained` describes the file.
"""

from azjax.cli import run_program

if __name__ == "__main__":
    run_program("experiments.quantize")

import dataclasses
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from azjax._settings import Count, Range
from azjax.cli import console, custom
from azjax.games.base import Game, State, choose, play, random_action, where
from azjax.networks.rounding import quantize
from azjax.runs import checkpoint, pretrained
from azjax.runs.config import make_parts
from azjax.runs.directory import read_config
from azjax.search.evaluators import Evaluator

_POSITIONS = 16_384  # Positions in which the range of each unit is measured.
_SEED = 7


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
    typed: custom.Option = custom.NOTHING


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


def run(options: Options) -> int:
    """Writes the file and its digest; returns the exit status."""
    run_dir, _ = custom.open_run(options.typed)
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
        parts.network.apply(variables, planes),
        made.network.apply(made.variables, planes),
    )
    same = np.mean(choose(floats[0], legal) == choose(integers[0], legal))
    print(f"the integers lead to the same move in {same:.2%} of {len(planes):,} positions")
    about = {
        "game": config.game,
        "encoding": parts.network.encoding,
        "symmetric": parts.network.symmetric,
        "iteration": iteration,
        "search": {
            "algorithm": "gumbel",
            "num_simulations": options.simulations or 64,
            "value_scale": getattr(config.search, "value_scale", 0.1),
        },
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
    path = pretrained.add(name, about, made.variables)
    print(f"{path}: {path.stat().st_size:,} bytes; azjax play {name}")
    return 0


main = console.make_main(run, Options, "experiments.quantize", "nothing was written")
