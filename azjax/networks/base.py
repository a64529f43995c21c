"""`Network`, a policy-value network as a record of pure functions."""

import pathlib
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from azjax._settings import checked
from azjax.games.base import Game, write_types
from azjax.networks.config import DType

Variables = Any  # Such as Flax's: {"params": ..., "batch_stats": ...}.
Folded = Any  # The inference form of the variables.
Outputs = tuple[Any, ...]  # `(logits [B, A], value [B], ...)`.
_AMPERE = 8  # First NVIDIA compute capability with bfloat16 matrix products.


class Plain(NamedTuple):
    """The weights of a network of plain layers, for programs that evaluate it without JAX."""

    kind: str  # `mlp`, `resnet` or `quantized` (see `integers.py`).
    blocks: int  # Number of residual blocks; for an MLP, of shared layers.
    norm: bool  # Whether LayerNorm without scale and bias precedes blocks and heads.
    # `{name: {"kernel": [I, O] or [k, k, I, O], "bias": [O]}}`; those of a quantized network are
    # its folded layers.
    layers: dict[str, dict[str, jax.Array]]


class Network(NamedTuple):
    """A policy-value network as pure functions.

    `make_network`, `from_module` (Flax Linen) and `from_nnx` (Flax NNX) make one. With any other
    library, fill the record yourself; `examples/equinox_network.py` does so in 20 lines. The rules:

    - `variables` is a dictionary of pytrees of arrays. The optimizer updates `params`; `train`
      returns all other entries, such as `batch_stats`.
    - `planes` are `game.observe(state, encoding)` with a batch axis, often of type bool.
    - outputs are a tuple of `logits float32 [B, A]`, which callers mask, `value float32 [B]`, in
      [-1, 1] and for the player to move, and any others, for a custom loss.
    - functions are traced under `jit` and `shard_map`, and draw no random numbers except in `init`.

    Attributes:
      encoding: the encoding of the input, one of `game.encodings`.
      init: `key -> variables`.
      train: `(variables, planes, axis_name) -> (outputs, updated)`, in training mode. `updated` has
        the new values of all entries of `variables` except `params`. On several devices,
        `axis_name` is the mesh axis over which to average them (`jax.lax.pmean`), else None.
      infer: `(folded, planes [B, H, W, C]) -> outputs`, in evaluation mode.
      fold: `variables -> folded`, the arrays that `infer` needs; computed once per iteration.
      symmetric: whether symmetric copies of a position get symmetric outputs.
      plain: `folded -> Plain`, for web pages; None if unavailable.
      made_for: `(H, W, C, A)`, the planes' shape and the number of actions, checked against the
        game; None if unknown.
      exact: whether no sum is ever rounded. Outputs then have the same bits on every machine, and
        those of a symmetric network are exactly symmetric.
    """

    encoding: str
    init: Callable[[jax.Array], Variables]
    train: Callable[[Variables, jax.Array, str | None], tuple[Outputs, Any]]
    infer: Callable[[Folded, jax.Array], Outputs]
    fold: Callable[[Variables], Folded] = lambda variables: variables
    symmetric: bool = False
    plain: Callable[[Folded], Plain] | None = None
    made_for: tuple[int, ...] | None = None
    exact: bool = False

    def __repr__(self):
        return f"Network(encoding={self.encoding!r}, made_for={self.made_for})"


def sizes(game: Game, encoding: str) -> tuple[int, ...]:
    """Returns `Network.made_for` of networks for a game; checks the encoding."""
    return (*observed_planes(game, encoding).shape, game.num_actions)


def observed_planes(game: Game, encoding: str) -> jax.ShapeDtypeStruct:
    """Returns the shape `[H, W, C]` and type of a position's planes; checks the encoding."""
    checked(f"network.encoding for {game.name}", encoding, Literal[*game.encodings])
    return jax.eval_shape(lambda: game.observe(game.init(), encoding))


def check_network(game: Game, network: Network) -> None:
    """Raises ValueError if a network has an unknown encoding or was made for another game."""
    if not isinstance(network, Network):
        raise ValueError(
            f"the network is of type {type(network).__name__}: use a Network, such as one "
            "that networks.from_module makes from a Flax module"
        )
    *shape, actions = wanted = sizes(game, network.encoding)
    if network.made_for not in (None, wanted):
        *given, others = network.made_for
        raise ValueError(
            f"the network was made for planes {given} and {others} actions, and {game.name} has "
            f"{shape} and {actions}: make it for {game.name}"
        )


def check_heads(heads: Any, size: int, game: Game, subject: str) -> None:
    """Raises ValueError unless outputs of `subject` start with logits `[size, A]` and value."""
    first = heads[:2] if isinstance(heads, tuple) else ()
    if [getattr(head, "shape", None) for head in first] != [(size, game.num_actions), (size,)]:
        raise ValueError(
            f"for {size} positions of {game.name} {subject} returns {write_types(heads)}: make it "
            f"a tuple that starts with logits [{size}, {game.num_actions}] and value [{size}]"
        )


def choose_dtype(name: DType, platform: str, convolves: bool = False) -> jnp.dtype:
    """Resolves `auto` to bfloat16 if the hardware has bfloat16 matrix products.

    On CPUs, this requires AMX and dense layers, because XLA computes bfloat16 convolutions in a
    plain loop there.
    """
    if name != "auto":
        return jnp.dtype(name)
    if platform == "cpu":
        about = pathlib.Path("/proc/cpuinfo")
        is_fast = not convolves and about.exists() and "amx_bf16" in about.read_text()
    else:
        is_fast = platform == "tpu" or not any(map(_is_old, jax.devices()))
    return jnp.dtype("bfloat16" if is_fast else "float32")


def _is_old(device: Any) -> bool:
    """Returns whether a device is a GPU of NVIDIA before Ampere."""
    capability = getattr(device, "compute_capability", "")  # Such as "7.5", and AMD's "gfx90a".
    generation = str(capability).partition(".")[0]
    return generation.isdigit() and int(generation) < _AMPERE
