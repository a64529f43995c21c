"""`Network`, a policy-value network as a record of pure functions.

Training works on a network's variables; before each search `Network.fold` turns them, once, into
the arrays that inference needs.
"""

import pathlib
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from azjax._settings import did_you_mean
from azjax.games.base import Game, describe

Variables = Any  # Such as Flax's: {"params": ..., "batch_stats": ...}.
Folded = Any  # The inference form of the variables.
Outputs = tuple[Any, ...]  # `(logits [B, A], value [B], ...)`.
DType = Literal["float32", "bfloat16", "auto"]
WIDEST, DEEPEST = 65_536, 100  # Every layer is traced one by one.
_AMPERE = 8  # NVIDIA's compute capability from which on cards have products in bfloat16.


class Plain(NamedTuple):
    """A network as the weights of its layers, for programs that compute it without JAX.

    Attributes:
      kind: `mlp`, or `resnet`, of dense layers or of convolutions.
      blocks: residual blocks; of an MLP, shared layers.
      norm: whether what blocks and heads read has mean 0 and variance 1, plus 1e-5.
      layers: by name, a `kernel`, `[I, O]` or `[k, k, I, O]`, and a `bias [O]`.
    """

    kind: str
    blocks: int
    norm: bool
    layers: dict[str, dict[str, jax.Array]]


class Network(NamedTuple):
    """A policy-value network as pure functions.

    Its outputs start with `logits [B, A]` and `value [B]`, in [-1, 1] and for the player to move;
    a network of one's own may return more after these.

    Attributes:
      encoding: which of the game's encodings it reads.
      init: `key -> variables`.
      apply: `(variables, planes [B, H, W, C]) -> outputs`, in evaluation mode.
      train: `(variables, planes, axis_name) -> (outputs, updated)`, in training mode:
        normalization uses the batch, and `updated` has the variables' collections other than
        `params` as they are after it, averaged over the mesh axis of that name if there is one.
      fold: `variables -> folded`, the inference form.
      infer: `(folded, planes) -> outputs`, equal to `apply`.
      symmetric: whether the outputs for an image of a position are the images of its outputs.
      plain: `folded -> Plain`, where there is such a form; None elsewhere.
      made_for: the shape of the planes and the number of actions of the game that it was made for,
        `(H, W, C, A)`; None: unknown.
    """

    encoding: str
    init: Callable[[jax.Array], Variables]
    apply: Callable[[Variables, jax.Array], Outputs]
    train: Callable[[Variables, jax.Array, str | None], tuple[Outputs, Any]]
    fold: Callable[[Variables], Folded]
    infer: Callable[[Folded, jax.Array], Outputs]
    symmetric: bool = False
    plain: Callable[[Folded], Plain] | None = None
    made_for: tuple[int, ...] | None = None

    def __repr__(self):
        return f"Network(encoding={self.encoding!r}, made_for={self.made_for})"


def unfolded(
    game: Game,
    encoding: str,
    init: Callable[[jax.Array], Variables],
    apply: Callable[[Variables, jax.Array], Outputs],
    train: Callable[[Variables, jax.Array, str | None], tuple[Outputs, Any]],
) -> Network:
    """Makes a network for a game, whose variables are their own inference form."""
    return Network(
        encoding,
        init,
        apply,
        train,
        fold=lambda variables: variables,
        infer=apply,
        made_for=(*observed_planes(game, encoding).shape, game.num_actions),
    )


def observed_planes(game: Game, encoding: str) -> jax.ShapeDtypeStruct:
    """The shape and type of a position's planes, if the game has them."""
    if encoding not in game.encodings:
        known = " or ".join(map(repr, game.encodings))
        meant = did_you_mean(encoding, game.encodings)
        raise ValueError(
            f"network.encoding is {encoding!r}: use {known}, which {game.name} has{meant}"
        )
    return jax.eval_shape(lambda: game.observe(game.init(), encoding))


def check_network(game: Game, network: Network) -> None:
    """Refuses a network that was made for another game, or that lacks the game's encodings.

    Raises:
      ValueError: if it does.
    """
    if not isinstance(network, Network):
        raise ValueError(
            f"the network is of type {type(network).__name__}: use a Network, such as "
            "networks.from_module makes of a Flax module"
        )
    *shape, actions = wanted = (*observed_planes(game, network.encoding).shape, game.num_actions)
    if network.made_for not in (None, wanted):
        *given, others = network.made_for
        raise ValueError(
            f"the network was made for planes {given} and {others} actions, and {game.name} has "
            f"{shape} and {actions}: make it for {game.name}"
        )


def check_heads(heads: Any, size: int, game: Game, subject: str) -> None:
    """Refuses outputs that do not start with logits `[B, A]` and value `[B]`, while tracing.

    Args:
      heads: what was returned.
      size: `B`.
      game: the rules.
      subject: what returned it, for the error.

    Raises:
      ValueError: if they do not.
    """
    first = heads[:2] if isinstance(heads, tuple) else ()
    if [getattr(head, "shape", None) for head in first] != [(size, game.num_actions), (size,)]:
        raise ValueError(
            f"for {size} positions of {game.name} {subject} returns {describe(heads)}: make it a "
            f"tuple that starts with logits [{size}, {game.num_actions}] and value [{size}]"
        )


def choose_dtype(name: DType, platform: str, convolves: bool = False) -> jnp.dtype:
    """For `auto`, the fastest type: bfloat16 where the hardware has products for it.

    On CPUs that is AMX, and for convolutions none: XLA computes them in a plain loop.
    """
    if name != "auto":
        return jnp.dtype(name)
    if platform == "cpu":
        about = pathlib.Path("/proc/cpuinfo")
        is_fast = not convolves and about.exists() and "amx_bf16" in about.read_text()
    else:
        is_fast = platform == "tpu" or all(has_bfloat16(device) for device in jax.devices())
    return jnp.dtype("bfloat16" if is_fast else "float32")


def has_bfloat16(device: Any) -> bool:
    """Whether a GPU has products in bfloat16: all but NVIDIA's older than Ampere.

    So do devices without a compute capability: what they lower for a GPU runs on another machine.
    """
    capability = getattr(device, "compute_capability", "")  # Such as "7.5", and AMD's "gfx90a".
    generation = str(capability).partition(".")[0]
    return not generation.isdigit() or int(generation) >= _AMPERE
