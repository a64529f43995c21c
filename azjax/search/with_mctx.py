# mctx's dataclasses hide their fields from type checkers.
# pyright: reportCallIssue=false
"""mctx's policies as algorithms, and games and evaluators as arguments of mctx's policies."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import mctx

from azjax._settings import Settings, Simulations, mixes_types
from azjax.games.base import Game, State, batch_keys, check_batch
from azjax.search.algorithm import (
    NEVER,
    Expansion,
    Roots,
    SearchResult,
    make_result,
    next_outcome,
)
from azjax.search.evaluators import Evaluator, Function, checked, evaluate_states, play_and_evaluate


class MctxFns(NamedTuple):
    """A game and an evaluator as arguments of mctx's policies."""

    # `(params, keys, states [B, ...]) -> mctx.RootFnOutput`; one key, or `[B]` keys.
    root: Callable[[Any, jax.Array, State], mctx.RootFnOutput]
    # `(params, key, actions [B], states) -> (mctx.RecurrentFnOutput, states)`; see `Expansion`.
    recurrent_fn: Callable[..., tuple[mctx.RecurrentFnOutput, State]]
    # `states -> bool [B, A]`, True = not allowed; policies do not derive it from the logits.
    invalid_actions: Callable[[State], jax.Array]


def mctx_fns(game: Game, evaluate: Evaluator | Function) -> MctxFns:
    """Makes the arguments of mctx's policies and of `mctx.search`.

    mctx passes `params` to the evaluator, and one key per batch, which is split. Values of a
    random evaluator therefore depend on the batch.
    """
    evaluate = checked(game, evaluate)

    def root(params, keys, states):
        keys = batch_keys(keys, check_batch(game, states))
        logits, value = evaluate_states(game, evaluate, params, keys, states)
        return mctx.RootFnOutput(prior_logits=logits, value=value, embedding=states)

    def recurrent_fn(params, key, actions, states):
        keys = batch_keys(key, check_batch(game, states))
        return _recurrent(play_and_evaluate(game, evaluate, params, keys, actions, states))

    def invalid_actions(states):
        check_batch(game, states)
        return ~jax.vmap(game.legal_actions)(states)

    return MctxFns(root, recurrent_fn, invalid_actions)


def _recurrent(expansion: Expansion) -> tuple[mctx.RecurrentFnOutput, State]:
    states, reward, discount, logits, value = expansion
    output = mctx.RecurrentFnOutput(
        reward=reward, discount=discount, prior_logits=logits, value=value
    )
    return output, states


@dataclasses.dataclass(frozen=True)
class MctxPolicy(Settings, section="search"):
    """A policy of mctx as an algorithm: `MctxPolicy(mctx.muzero_policy, num_simulations=32)`.

    A policy is `mctx.muzero_policy`, `mctx.gumbel_muzero_policy`, or a function with the arguments
    `(params, rng_key, root, recurrent_fn, num_simulations, invalid_actions)` that returns a
    `mctx.PolicyOutput`. `params` is None, since `recurrent_fn` has the parameters. The policy is
    called for each position with a batch of one, so a result depends only on the position and its
    key. If it has an argument `temperature`, it gets the search's; `dirichlet_fraction` and
    `gumbel_scale` have their defaults where the search adds noise, and are 0 elsewhere.

    Without noise and at temperature 0, the policy gets the same key in every search, so the action
    depends only on the position, although mctx breaks ties at random.
    """

    policy: Callable
    num_simulations: Simulations = 32
    algorithm: str = "mctx"

    is_deterministic = True  # Without exploration, the policy draws with a fixed key.

    def select(self, roots: Roots) -> SearchResult:
        """Searches from each position with a batch of one."""
        noisy = jnp.broadcast_to(jnp.asarray(roots.add_noise), roots.temperature.shape)
        explores = noisy | (roots.temperature > 0)
        fixed = jax.random.key(0, impl=jax.random.key_impl(roots.keys))

        def search(key, key_expand, root, invalid, temperature, noisy):
            def recurrent_fn(_, key, actions, states):
                number = jax.random.bits(key, dtype=jnp.uint32)  # `key` may be `fixed`.
                keys = jax.random.fold_in(key_expand, number)[None]
                return _recurrent(roots.expand(keys, actions, states))

            root, invalid = jax.tree.map(lambda leaf: leaf[None], (root, invalid))
            output = mixes_types(self.policy)(
                params=None,
                rng_key=key,
                root=root,
                recurrent_fn=recurrent_fn,
                num_simulations=self.num_simulations,
                invalid_actions=invalid,
                **_optional(self.policy, roots.chance, temperature, noisy),
            )
            return jax.tree.map(lambda leaf: leaf[0], output)

        root = mctx.RootFnOutput(
            prior_logits=roots.logits, value=roots.value, embedding=roots.states
        )
        keys = jnp.where(explores, roots.keys, fixed)
        each = keys, roots.keys_expand, root, ~roots.legal, roots.temperature, noisy
        output = jax.vmap(search)(*each)
        tree = output.search_tree  # In 64-bit mode, mctx draws Dirichlet noise of 64 bits.
        logits = jnp.maximum(tree.children_prior_logits, NEVER).astype(jnp.float32)
        tree = tree.replace(children_prior_logits=logits)
        return make_result(tree, output.action, output.action_weights)


def _optional(
    policy: Callable, chance: Callable | None, temperature: jax.Array, noisy: jax.Array
) -> dict[str, Any]:
    """Returns the arguments that not every policy has, for one position."""
    parameters = inspect.signature(policy).parameters
    given: dict[str, Any] = {"temperature": temperature} if "temperature" in parameters else {}
    for name in ("dirichlet_fraction", "gumbel_scale"):
        if name in parameters:
            given[name] = jnp.where(noisy, parameters[name].default, 0.0)
    if chance is not None:
        if "qtransform" not in parameters:
            raise ValueError(
                "the policy has no argument qtransform, by which outcomes of dice are selected: "
                "use a policy of mctx, or PUCT, Gumbel or UCT"
            )
        given["qtransform"] = _with_chance(chance, parameters["qtransform"].default)
    return given


def _with_chance(chance: Callable, qtransform: Callable) -> Callable:
    """Gives the next outcome of dice a Q-value that exceeds everything else in the selection.

    At the root, `mctx.gumbel_muzero_policy` still visits the outcomes in the order of its halving.
    """

    def transform(tree, node):
        is_chance, outcome = next_outcome(chance, tree, node)
        largest = 1e38 * jax.nn.one_hot(outcome, tree.num_actions)
        return jnp.where(is_chance, largest, qtransform(tree, node))

    return transform


@dataclasses.dataclass(frozen=True)
class _Default(Settings, section="search"):
    """A policy of mctx with its defaults, by name."""

    algorithm: str = dataclasses.field(default="", kw_only=True)
    num_simulations: Simulations = 32
    """Positions evaluated per move, without the root."""

    policy = staticmethod(mctx.gumbel_muzero_policy)
    is_deterministic = True

    def select(self, roots: Roots) -> SearchResult:
        """Searches by mctx's policy."""
        return MctxPolicy(self.policy, self.num_simulations).select(roots)


@dataclasses.dataclass(frozen=True)
class MctxGumbel(_Default):
    """`mctx.gumbel_muzero_policy` with its defaults."""

    algorithm: Literal["mctx_gumbel"] = dataclasses.field(default="mctx_gumbel", kw_only=True)
    """mctx's own policy of Gumbel MuZero, with its loop."""


@dataclasses.dataclass(frozen=True)
class MctxMuZero(_Default):
    """`mctx.muzero_policy` with its defaults."""

    algorithm: Literal["mctx_muzero"] = dataclasses.field(default="mctx_muzero", kw_only=True)
    """mctx's own policy of MuZero, with its loop."""
    policy = staticmethod(mctx.muzero_policy)
