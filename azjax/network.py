"""Policy-value networks in Flax, and the form of their parameters that the search uses.

`from_module` makes a `Network` of any Flax module, `make_network` one of the two in
`modules.py`. Training works on Flax variables; before each search `Network.fold` turns them,
once, into the arrays that inference needs.
"""

import dataclasses
import functools
import inspect
import pathlib
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.errors import FlaxError

from azjax import equivariant
from azjax.convolution import choose_form
from azjax.game import Game, Symmetries, describe
from azjax.modules import MLP, Folded, Tower, Variables, fold_tower, infer_tower
from azjax.settings import check_range, check_types, did_you_mean

Outputs = tuple[Any, ...]  # `(logits [B, A], value [B], ...)`.
DType = Literal["float32", "bfloat16", "auto"]
WIDEST, DEEPEST = 65_536, 100  # Every layer is traced one by one.


@dataclasses.dataclass(frozen=True)
class TowerConfig:
    """A residual tower of convolutions with BatchNorm, as in the papers."""

    kind: Literal["tower"] = "tower"
    """Which network. `tower`: residual convolutions (the papers); `mlp`: fully connected
    layers. Settings of the other one: --network.kind mlp --help."""
    encoding: str = "relative"
    """Input planes. `absolute`: X, O and side to move; `relative`: the mover's stones and
    the opponent's. AlphaZero: relative, with history."""
    channels: int = 64
    """Channels of each convolution. AlphaZero: 256."""
    blocks: int = 2
    """Residual blocks. AlphaZero: 19."""
    value_hidden: int = 64
    """Width of the value head's hidden layer. AlphaZero: 256."""
    evaluation_dtype: DType = "float32"
    """Arithmetic of the search's evaluations; learning is in float32. `bfloat16`: less exact,
    and faster where the hardware has it; `auto`: there."""

    def __post_init__(self):
        check_types("network", self)
        check_range("network", self, "channels value_hidden", 1, WIDEST)
        check_range("network", self, "blocks", 0, DEEPEST)


@dataclasses.dataclass(frozen=True)
class MLPConfig:
    """A multilayer perceptron: fully connected layers."""

    kind: Literal["mlp"] = "mlp"
    """Which network. `tower`: residual convolutions (the papers); `mlp`: fully connected
    layers. Settings of the other one: --network.kind tower --help."""
    encoding: str = "relative"
    """Input planes. `absolute`: X, O and side to move; `relative`: the mover's stones and
    the opponent's. AlphaZero: relative, with history."""
    hidden: tuple[int, ...] = (256, 256, 256)
    """Widths of the shared layers."""
    head_hidden: int = 64
    """Width of the hidden layer in each head."""
    evaluation_dtype: DType = "float32"
    """Arithmetic of the search's evaluations. `bfloat16`: less exact, and faster where the
    hardware has it; `auto`: there."""
    learning_dtype: DType = "float32"
    """Arithmetic of the layers in learning; parameters and losses are in float32."""
    symmetric: bool = False
    """Share weights among the symmetries that the game has, so that the images of a position get
    those of its outputs. Learns from fewer games, with a half or a quarter of the products."""

    def __post_init__(self):
        check_types("network", self)
        check_range("network", self, "head_hidden", 1, WIDEST)
        widths = self.hidden
        if not 1 <= len(widths) <= DEEPEST or not 1 <= min(widths) <= max(widths) <= WIDEST:
            raise ValueError(
                f"network.hidden is {widths}: use 1 to {DEEPEST} widths, each 1 to {WIDEST}"
            )


class Network(NamedTuple):
    """A policy-value network as pure functions.

    Its outputs start with `logits [B, A]` and `value [B]`, in [-1, 1] and for the player to move;
    a network of one's own may return more after these.

    Attributes:
      encoding: which of the game's encodings it reads.
      init: `key -> variables`.
      apply: `(variables, planes [B, H, W, C]) -> outputs`, in evaluation mode.
      train: `(variables, planes, axis_name) -> (outputs, updated)`, in training mode:
        normalisation uses the batch, and `updated` has the variables' collections other than
        `params` as they are after it, averaged over the mesh axis of that name if there is one.
      fold: `variables -> folded`, the inference form.
      infer: `(folded, planes) -> outputs`, equal to `apply`.
      symmetric: whether the outputs for an image of a position are the images of its outputs.
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
    made_for: tuple[int, ...] | None = None

    def __repr__(self):
        return f"Network(encoding={self.encoding!r}, made_for={self.made_for})"


def from_module(game: Game, module: nn.Module, encoding: str = "relative") -> Network:
    """Makes a network of any Flax module. Its variables are their own inference form.

    The statistics that it updates in training are averaged over the devices afterwards. To
    normalise by the batches of all devices, give it a field `axis_name` and hand that to its
    `nn.BatchNorm`: in training it is the name of the mesh's axis.

    Args:
      game: gives the planes' shape and the number of actions.
      module: its `__call__(planes, train=False)` returns `(logits [B, A], value [B], ...)` for
        `planes [B, H, W, C]`, with values in [-1, 1], and draws nothing at random.
      encoding: which of the game's encodings it reads.

    Raises:
      ValueError: if the game has no such encoding, the module cannot be called so, or the outputs
        have other shapes.
    """
    _check_module(module)
    network = _wrap(game, module, encoding)
    _check_outputs(game, network)

    def train(variables, planes, axis_name):
        outputs, updated = network.train(variables, planes, axis_name)
        return outputs, updated if axis_name is None else jax.lax.pmean(updated, axis_name)

    return network._replace(train=train)


def make_network(config: TowerConfig | MLPConfig, game: Game) -> Network:
    """Builds the tower or the MLP for a game.

    Raises:
      ValueError: if the game has no such encoding, or its symmetries do not divide the widths.
    """
    convolves = isinstance(config, TowerConfig)
    dtype = _choose_dtype(config.evaluation_dtype, convolves)
    symmetric = isinstance(config, MLPConfig) and config.symmetric and game.num_symmetries > 1
    if convolves:
        form = choose_form(game.board_shape, dtype)
        widths = config.channels, config.blocks, config.value_hidden
        module = learned = Tower(*widths, game.num_actions, form)
        arrange: Any = functools.partial(fold_tower, form, game.board_shape)
        infer = functools.partial(infer_tower, form, config.blocks)
    else:
        widths = config.hidden, config.head_hidden
        if symmetric:
            group = equivariant.make_group(_shareable(config, game))
            module = equivariant.EquivariantMLP(*widths, game.num_actions, group)
            arrange = functools.partial(equivariant.arrange, group)
            infer = functools.partial(equivariant.infer, group)
        else:
            module = MLP(*widths, game.num_actions)
            arrange, infer = dict, module.clone(dtype=dtype).apply
        learned = module.clone(dtype=_choose_dtype(config.learning_dtype))

    @jax.jit
    def fold(variables):
        return jax.tree.map(lambda weights: weights.astype(dtype), arrange(variables))

    network = _wrap(game, module, config.encoding, learned)
    return network._replace(fold=fold, infer=infer, symmetric=symmetric)


def _shareable(config: MLPConfig, game: Game) -> Symmetries:
    """The symmetries of a game that has some, if widths are multiples of their number."""
    widths = (*config.hidden, config.head_hidden)
    if game.symmetries is None or any(width % game.num_symmetries for width in widths):
        raise ValueError(
            f"the {game.num_symmetries} symmetries of {game.name} share layers evenly: make "
            f"network.hidden and network.head_hidden, now {config.hidden} and "
            f"{config.head_hidden}, multiples of {game.num_symmetries}"
        )
    return game.symmetries


def _choose_dtype(name: DType, convolves: bool = False) -> jnp.dtype:
    """For `auto`, the fastest type: on CPUs, float32, but bfloat16 for products where AMX is.

    Convolutions in bfloat16 XLA computes on CPUs in a plain loop.
    """
    if name != "auto":
        return jnp.dtype(name)
    about = pathlib.Path("/proc/cpuinfo")
    has_amx = not convolves and about.exists() and "amx_bf16" in about.read_text()
    return jnp.dtype("float32" if jax.default_backend() == "cpu" and not has_amx else "bfloat16")


def _wrap(
    game: Game, module: nn.Module, encoding: str, learned: nn.Module | None = None
) -> Network:
    """A module as a network, unchecked; what it does not average itself is not averaged.

    The variables are their own inference form. Where `learned` is given, training applies it.
    """
    learned = module if learned is None else learned
    one = _planes(game, encoding)
    has_axis = any(field.name == "axis_name" for field in dataclasses.fields(module))

    def init(key):
        return module.init(key, jnp.zeros((1, *one.shape), one.dtype))

    def apply(variables, planes) -> Any:
        return module.apply(variables, planes)

    def train(variables, planes, axis_name) -> Any:
        on_mesh = learned.clone(axis_name=axis_name) if has_axis else learned
        others = [name for name in variables if name != "params"]
        return on_mesh.apply(variables, planes, train=True, mutable=others)

    return Network(
        encoding,
        init,
        apply,
        train,
        fold=lambda variables: variables,
        infer=apply,
        made_for=(*one.shape, game.num_actions),
    )


def _planes(game: Game, encoding: str) -> jax.ShapeDtypeStruct:
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
            "network.from_module makes of a Flax module"
        )
    *shape, actions = wanted = (*_planes(game, network.encoding).shape, game.num_actions)
    if network.made_for not in (None, wanted):
        *given, others = network.made_for
        raise ValueError(
            f"the network was made for planes {given} and {others} actions, and {game.name} has "
            f"{shape} and {actions}: make it for {game.name}"
        )


def _check_module(module: Any) -> None:
    """Refuses what is no Flax module, or is one that cannot be called with `train`."""
    if not isinstance(module, nn.Module):
        is_class = isinstance(module, type)
        name = module.__name__ if is_class else type(module).__name__
        advice = f"make one, such as {name}()" if is_class else "use one of flax.linen"
        what = f"the class {name}" if is_class else f"of type {name}"
        raise ValueError(f"the module is {what}, not a Flax module: {advice}")
    name, parameters = type(module).__name__, inspect.signature(type(module).__call__).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    if "train" not in parameters and inspect.Parameter.VAR_KEYWORD not in kinds:
        listed = ", ".join(parameters)
        raise ValueError(
            f"{name}.__call__({listed}) does not take train: write __call__(self, planes, "
            "train=False), where train may be ignored"
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


def _check_outputs(game: Game, network: Network) -> None:
    """Refuses outputs of other shapes, for a batch of 3, in evaluation and in training."""
    one = _planes(game, network.encoding)

    def compute(planes):
        variables = network.init(jax.random.key(0))
        return network.apply(variables, planes), network.train(variables, planes, None)[0]

    planes = jax.ShapeDtypeStruct((3, *one.shape), one.dtype)
    try:
        returned = jax.eval_shape(compute, planes)
    except FlaxError as error:
        said = str(error).split(" (http")[0].split("\n")[0]
        raise ValueError(
            f"the module cannot be applied to planes {describe(planes)} of {game.name}, or draws "
            f"something at random ({said})"
        ) from error
    for heads in returned:
        check_heads(heads, 3, game, "the module")
