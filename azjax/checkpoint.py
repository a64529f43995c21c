"""Run directories: configuration, checkpoints and trained players, on disk.

A run directory holds `config.json` and `checkpoints/ITERATION/`, each checkpoint complete:
parameters, optimiser, buffer, games in flight, key and counter. Orbax writes a checkpoint
beside its final place and renames it when it is whole, so a killed run leaves no half of
one; a digest over all arrays finds out one that was damaged later. Only arrays and JSON are
read back: loading a stranger's checkpoint runs no code.
"""

import dataclasses
import hashlib
import json
import logging
import os
import pathlib
from typing import Any, NamedTuple

import jax
import numpy as np
import orbax.checkpoint as ocp
from jax.sharding import Mesh

from azjax import search as search_lib
from azjax.evaluators import Evaluator
from azjax.game import Game, State
from azjax.train import (
    Config,
    TrainState,
    abstract_state,
    make_mesh,
    make_parts,
    make_state,
)

Path = str | os.PathLike[str]

_policies = ocp.checkpoint_managers


class CheckpointError(Exception):
    """A run directory or checkpoint cannot be used; the message says why and what would."""


class Restored(NamedTuple):
    """A checkpoint read back.

    Attributes:
      state: the whole training state.
      skipped: one sentence for each newer checkpoint that was damaged and passed over.
    """

    state: TrainState
    skipped: list[str]


class Checkpointer:
    """Writes the checkpoints of one run, keeping the newest few and the best.

    Use it as a context manager, so that the last write is complete on leaving.
    """

    def __init__(self, run_dir: Path, keep: int = 3):
        """Opens the run directory's checkpoints for writing.

        Args:
          run_dir: the run directory; it must hold a `config.json` (see `create_run`).
          keep: how many of the newest checkpoints to keep, beside the best one.
        """
        logging.getLogger("absl").setLevel(logging.ERROR)
        best = _policies.BestN(
            get_metric_fn=lambda metrics: metrics["score"],
            n=1,
            keep_checkpoints_without_metrics=False,
        )
        self._manager = ocp.CheckpointManager(
            _checkpoints(run_dir),
            options=ocp.CheckpointManagerOptions(
                preservation_policy=_policies.AnyPreservationPolicy(
                    [_policies.LatestN(keep), best]
                ),
                enable_async_checkpointing=False,
            ),
        )

    def save(self, state: TrainState, score: float) -> None:
        """Writes a checkpoint named after `state.iteration`; nothing if it exists already.

        Args:
          state: the state to write; its arrays are copied before this returns.
          score: higher is better; decides which checkpoint is the best.
        """
        plain = _to_plain(state)
        step = int(state.iteration)
        if step in self._manager.all_steps():
            return
        self._manager.save(
            step,
            args=ocp.args.Composite(
                state=ocp.args.StandardSave(plain),
                digest=ocp.args.JsonSave({"sha256": _digest(plain)}),
            ),
            metrics={"score": float(score)},
        )

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._manager.close()


def create_run(run_dir: Path, config: Config) -> None:
    """Makes a new run directory with the configuration in it.

    Raises:
      CheckpointError: if the directory exists; it is never erased.
    """
    path = pathlib.Path(run_dir)
    if path.exists():
        raise CheckpointError(
            f"{path} exists already: add --resume to go on with that run, or choose another "
            "--run-dir"
        )
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.mkdir(parents=True, exist_ok=True)
    write_json(temporary / "config.json", dataclasses.asdict(config))
    os.rename(temporary, path)


def write_json(path: Path, content: Any) -> None:
    """Writes JSON so that a crash leaves either the old file or the new one."""
    temporary = pathlib.Path(f"{path}.tmp")
    temporary.write_text(json.dumps(content, indent=2) + "\n")
    os.replace(temporary, path)


def read_config(run_dir: Path) -> Config:
    """Reads the configuration of a run.

    Raises:
      CheckpointError: if there is no run, or its configuration cannot be understood.
    """
    path = pathlib.Path(run_dir) / "config.json"
    if not path.exists():
        raise CheckpointError(
            f"{run_dir} is not a run directory (no config.json in it): give the folder that "
            "a training run made, such as runs/tic_tac_toe-default-1"
        )
    try:
        return _from_dict(Config, json.loads(path.read_text()))
    except (ValueError, TypeError) as error:
        raise CheckpointError(f"{path} cannot be used ({error}): restore the file") from error


def _from_dict(cls, content: dict):
    """Builds a (nested) dataclass from JSON; every unknown or wrong entry is an error."""
    fields = {field.name: field for field in dataclasses.fields(cls)}
    unknown = sorted(set(content) - set(fields))
    if unknown:
        raise ValueError(f"unknown setting {unknown[0]!r}")
    values = {}
    for name, value in content.items():
        default = getattr(cls(), name)
        if dataclasses.is_dataclass(default):
            value = _from_dict(type(default), value)
        elif isinstance(default, tuple):
            value = tuple(value)
        elif not isinstance(value, type(default)):
            raise ValueError(f"{name} is {value!r}, which is not a {type(default).__name__}")
        values[name] = value
    return cls(**values)


def restore(
    run_dir: Path, config: Config, mesh: Mesh | None = None, set_aside: bool = False
) -> Restored:
    """Reads the newest sound checkpoint of a run; its initial state if it has none yet.

    Args:
      run_dir: the run directory.
      config: the run's configuration, from `read_config`.
      mesh: the devices to put the state on; all local devices by default.
      set_aside: move damaged checkpoints to `damaged/`, so that the run can write its own.

    Raises:
      CheckpointError: if there are checkpoints but none is sound.
    """
    folder = _checkpoints(run_dir)
    mesh = make_mesh() if mesh is None else mesh
    steps = _steps(run_dir)
    if not steps:
        return Restored(make_state(config, mesh), [])
    target = _abstract(config, mesh)
    skipped = []
    for step in steps:
        try:
            return Restored(_read(folder / str(step), target), skipped)
        except Exception as error:  # Whatever is wrong with this one, an older one may do.
            reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else error
            skipped.append(f"checkpoint {step} in {run_dir} is damaged ({reason!s})")
            if set_aside:
                _set_aside(pathlib.Path(run_dir), step)
    raise CheckpointError(
        f"no sound checkpoint is left in {run_dir}: {'; '.join(skipped)}; restore the folder "
        "from a copy, or start a new run in another --run-dir"
    )


def _steps(run_dir: Path) -> list[int]:
    """The iterations that have a checkpoint, newest first."""
    names = (path.name for path in _checkpoints(run_dir).glob("*"))
    return sorted((int(name) for name in names if name.isdigit()), reverse=True)


def _set_aside(run_dir: pathlib.Path, step: int) -> None:
    """Moves a checkpoint to `damaged/`, under a name that is free."""
    folder, number = run_dir / "damaged", 1
    folder.mkdir(exist_ok=True)
    while (target := folder / f"{step}-{number}").exists():
        number += 1
    os.rename(_checkpoints(run_dir) / str(step), target)


def _read(folder: pathlib.Path, target) -> TrainState:
    """Reads one checkpoint and checks its digest."""
    with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as reader:
        content = reader.restore(
            folder,
            args=ocp.args.Composite(
                state=ocp.args.StandardRestore(target), digest=ocp.args.JsonRestore()
            ),
        )
    if _digest(content["state"]) != content["digest"]["sha256"]:
        raise ValueError("its digest does not match its content")
    return _from_plain(content["state"])


def _checkpoints(run_dir: Path) -> pathlib.Path:
    return pathlib.Path(run_dir).resolve() / "checkpoints"


def _to_plain(state: TrainState) -> TrainState:
    """Replaces the typed key by its data, which orbax stores as an ordinary array."""
    return state.replace(key=jax.random.key_data(state.key))


def _from_plain(state: TrainState) -> TrainState:
    return state.replace(key=jax.random.wrap_key_data(state.key))


def _abstract(config: Config, mesh: Mesh) -> TrainState:
    """The shapes, types and places of a plain state."""
    state = abstract_state(config, mesh)
    data = jax.eval_shape(jax.random.key_data, state.key)
    plain = jax.ShapeDtypeStruct(data.shape, data.dtype, sharding=state.key.sharding)
    return state.replace(key=plain)


def _digest(plain: TrainState) -> str:
    """SHA-256 over every array's name, type, shape and bytes."""
    digest = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(plain):
        array = np.asarray(leaf)
        digest.update(f"{jax.tree_util.keystr(path)} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


@dataclasses.dataclass(frozen=True)
class Player:
    """A trained player, as `load` returns it.

    Attributes:
      game: the rules.
      config: the run's configuration.
      params: the trained network in its inference form.
      iteration: the iteration that it was saved after.
      skipped: one sentence for each newer checkpoint that was damaged.
    """

    game: Game
    config: Config
    params: Any
    iteration: int
    evaluator: Evaluator
    skipped: tuple[str, ...] = ()

    def evaluate(self, states: State) -> tuple[jax.Array, jax.Array]:
        """Returns the raw network's `(logits [B, A], value [B])` for states `[B, ...]`.

        Values are in [-1, 1], for the player to move; logits of illegal actions mean nothing.
        """
        return _evaluate(self.evaluator, self.params, states)

    def search(self, key: jax.Array, states: State, **settings: Any) -> search_lib.SearchResult:
        """Searches from states `[B, ...]`.

        Args:
          key: one key for the whole batch.
          states: the positions.
          **settings: fields of `SearchConfig` to change, such as `num_simulations=64` or
            `algorithm="puct"`.
        """
        config = dataclasses.replace(self.config.search, **settings)
        keys = jax.random.split(key, self.game.player(states).shape[0])
        return _search(config, self.game.name, self.evaluator, self.params, keys, states)


_evaluate = jax.jit(lambda evaluate, params, states: evaluate(params, None, states), static_argnums=0)


def _search_impl(config, game_name, evaluate, params, keys, states):
    from azjax import games

    return search_lib.make_search(config, games.make(game_name), evaluate)(params, keys, states)


_search = jax.jit(_search_impl, static_argnums=(0, 1, 2))


def load(run_dir: Path) -> Player:
    """Loads the newest sound checkpoint of a run as a player.

    Raises:
      CheckpointError: if there is no run or no sound checkpoint.
    """
    config = read_config(run_dir)
    parts = make_parts(config)
    state, skipped = restore(run_dir, config)
    return Player(
        game=parts.game,
        config=config,
        params=parts.network.fold(state.learner.average),
        iteration=int(state.iteration),
        evaluator=parts.evaluate,
        skipped=tuple(skipped),
    )
