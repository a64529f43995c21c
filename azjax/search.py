# mctx's dataclasses hide their fields and shapes from type checkers.
# pyright: reportCallIssue=false, reportIndexIssue=false, reportArgumentType=false
"""Batched Monte Carlo tree search over any evaluator, on `mctx`.

PUCT is AlphaZero's search (Silver et al. 2018, Methods, "Search"); Gumbel is Gumbel
AlphaZero (Danihelka et al. 2022, "Policy improvement by planning with Gumbel"). Both see
values in [-1, 1], never an illegal action at any depth, and games that end inside the tree.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import mctx

from azjax.evaluators import Evaluator
from azjax.game import Game, State, play
from azjax.settings import check_choices, check_range

_NEVER = float(jnp.finfo(jnp.float32).min)  # The logit of an illegal action; -inf gives NaN.


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """How a search spends its simulations."""

    algorithm: Literal["gumbel", "puct"] = "gumbel"
    """`puct`: AlphaZero's; `gumbel`: Gumbel AlphaZero's, better with few simulations."""
    num_simulations: int = 32
    """Positions evaluated per move, beside the root. AlphaZero: 800."""
    c_puct: float = 1.25
    """PUCT: weight of the prior's exploration bonus. AlphaZero: 1.25."""
    first_play_urgency: Literal["zero", "parent", "loss"] = "zero"
    """PUCT: value assumed for an unvisited action: 0, the node's own, or -1.
    AlphaZero: loss for an action of value in [0, 1], which is `loss` here."""
    dirichlet_alpha: float = 0.3
    """PUCT: concentration of the root noise over the legal actions. AlphaZero: 0.3 in
    chess, about 10 / (number of legal actions)."""
    dirichlet_fraction: float = 0.25
    """PUCT: share of the noise in the root's prior. AlphaZero: 0.25."""
    gumbel_scale: float = 1.0
    """Gumbel: scale of the noise that chooses among the root's actions. Paper: 1."""
    max_considered_actions: int = 16
    """Gumbel: root actions that sequential halving starts with. Paper: 16."""
    value_scale: float = 0.1
    """Gumbel: weight of Q against the prior's logits. Paper: 0.1, with Q in [0, 1]."""
    maxvisit_init: float = 50.0
    """Gumbel: visits added to the largest count in that weight. Paper: 50."""

    def __post_init__(self):
        check_choices("search", self)
        check_range("search", self, "num_simulations max_considered_actions", 1)
        check_range("search", self, "dirichlet_fraction", 0, 1)
        check_range("search", self, "c_puct gumbel_scale value_scale maxvisit_init", 0)
        if not self.dirichlet_alpha > 0:
            raise ValueError(f"search.dirichlet_alpha is {self.dirichlet_alpha}: use above 0")


class SearchResult(NamedTuple):
    """What a search found out about `B` positions.

    Attributes:
      action: `int32 [B]`, the action to play.
      action_weights: `float32 [B, A]`, the policy to learn: PUCT's visit shares, or
        Gumbel's improved policy. Sums to 1 over the legal actions.
      visit_counts: `int32 [B, A]`.
      q_values: `float32 [B, A]`, mean outcome of each action for the player to move; 0
        where unvisited.
      value: `float32 [B]`, the root's mean value, for the player to move.
      tree: the `mctx.Tree`; its embeddings are game states.
    """

    action: jax.Array
    action_weights: jax.Array
    visit_counts: jax.Array
    q_values: jax.Array
    value: jax.Array
    tree: mctx.Tree


Search = Callable[..., SearchResult]


def make_search(config: SearchConfig, game: Game, evaluate: Evaluator) -> Search:
    """Builds `search(params, keys, states, temperature=0.0, explore=False)`.

    Args:
      config: the algorithm and its settings.
      game: the rules. Positions of a batch may be finished; what is found for those means
        nothing.
      evaluate: any evaluator; `params` are handed to it.

    Returns:
      A function of `params`, `keys [B]` (one per position), `states [B, ...]`, and
      `temperature`, a float or `[B]`, which PUCT uses to draw the action from
      `visits ** (1 / temperature)` (0: the most visited). With `explore` set, PUCT mixes
      Dirichlet noise into the root's prior and Gumbel draws its noise; without it a search
      with temperature 0 is deterministic.
    """
    run = _puct if config.algorithm == "puct" else _gumbel

    def search(params, keys, states, temperature=0.0, explore=False) -> SearchResult:
        keys = jax.vmap(jax.random.split)(keys)
        key_root, key_tree = jax.random.split(keys[0, 0])  # Only random evaluators use these.
        root = _evaluate(game, evaluate, params, key_root, states)
        invalid = ~jax.vmap(game.legal_actions)(states)
        recurrent = functools.partial(_recurrent, game, evaluate)
        temperature = jnp.asarray(temperature, jnp.float32)
        return run(
            config, params, key_tree, root, invalid, recurrent, keys[:, 1], temperature, explore
        )

    return search


def _evaluate(game: Game, evaluate: Evaluator, params, key, states: State):
    """Evaluates states, with illegal actions excluded and finished games worth 0."""
    logits, value = evaluate(params, key, states)
    legal = jax.vmap(game.legal_actions)(states)
    over = jax.vmap(game.is_over)(states)
    return mctx.RootFnOutput(
        prior_logits=jnp.where(legal, logits, _NEVER),
        value=jnp.where(over, 0.0, value),
        embedding=states,
    )


def _recurrent(game: Game, evaluate: Evaluator, params, key, actions, states: State):
    """Plays one action in each game and evaluates what comes after."""
    step = jax.vmap(functools.partial(play, game))(states, actions)
    node = _evaluate(game, evaluate, params, key, step.state)
    output = mctx.RecurrentFnOutput(
        reward=step.reward,
        discount=step.discount,
        prior_logits=node.prior_logits,
        value=node.value,
    )
    return output, step.state


def _puct(config, params, key, root, invalid, recurrent, keys, temperature, explore):
    """AlphaZero's search: `argmax Q + c P sqrt(N) / (1 + n)` at every node."""
    keys = jax.vmap(jax.random.split)(keys)
    key_noise, key_action = keys[:, 0], keys[:, 1]
    if explore:
        root = root.replace(prior_logits=_with_dirichlet(config, key_noise, root, invalid))
    select = functools.partial(puct_action, config)
    tree = mctx.search(
        params,
        key,
        root=root,
        recurrent_fn=recurrent,
        root_action_selection_fn=lambda key, tree, node: select(tree, node),
        interior_action_selection_fn=lambda key, tree, node, depth: select(tree, node),
        num_simulations=config.num_simulations,
        invalid_actions=invalid,
    )
    visits = tree.children_visits[:, tree.ROOT_INDEX]
    weights = visits / jnp.sum(visits, axis=-1, keepdims=True)
    action = jax.vmap(_draw_by_visits)(
        key_action, visits, jnp.broadcast_to(temperature, visits.shape[:1])
    )
    return _result(tree, action, weights)


def puct_action(config: SearchConfig, tree: mctx.Tree, node: jax.Array) -> jax.Array:
    """Chooses the action to follow from one node of one tree; ties go to the lowest.

    The score is `Q + c_puct P sqrt(N) / (1 + n)` (Silver et al. 2018), with Q in [-1, 1]
    for the player to move, `N` the node's visits and `n` the action's. Below a finished
    game, where nothing is legal, the least visited action keeps the walk short.
    """
    visits = tree.children_visits[node]
    logits = tree.children_prior_logits[node]
    legal = logits > _NEVER
    unvisited = {"zero": 0.0, "parent": tree.node_values[node], "loss": -1.0}
    q = jnp.where(visits > 0, tree.qvalues(node), unvisited[config.first_play_urgency])
    exploration = jax.nn.softmax(logits) * jnp.sqrt(tree.node_visits[node].astype(jnp.float32))
    score = q + config.c_puct * exploration / (1 + visits)
    score = jnp.where(jnp.any(legal), jnp.where(legal, score, -jnp.inf), -visits)
    return jnp.argmax(score).astype(jnp.int32)


def _with_dirichlet(config: SearchConfig, keys, root, invalid):
    """Mixes Dirichlet noise over the *legal* actions into the root's prior.

    A Dirichlet draw restricted to a subset is Gamma draws, masked, then normalised.
    """
    alpha, fraction = config.dirichlet_alpha, config.dirichlet_fraction
    num_actions = invalid.shape[-1]
    gammas = jax.vmap(lambda key: jax.random.loggamma(key, alpha, (num_actions,)))(keys)
    noise = jax.nn.softmax(jnp.where(invalid, _NEVER, gammas))
    prior = (1 - fraction) * jax.nn.softmax(root.prior_logits) + fraction * noise
    return jnp.where(invalid, _NEVER, jnp.log(jnp.maximum(prior, 1e-30)))


def _draw_by_visits(key, visits, temperature):
    """Draws an action with probability proportional to `visits ** (1 / temperature)`."""
    logits = jnp.log(jnp.maximum(visits, 1e-30)) / jnp.maximum(temperature, 1e-3)
    drawn = jax.random.categorical(key, jnp.where(visits > 0, logits, -jnp.inf))
    return jnp.where(temperature > 0, drawn, jnp.argmax(visits)).astype(jnp.int32)


def _gumbel(config, params, key, root, invalid, recurrent, keys, temperature, explore):
    """Gumbel AlphaZero: sequential halving at the root, the improved policy below it."""
    del temperature
    gumbel = jnp.zeros(invalid.shape)
    if explore:
        draw = functools.partial(jax.random.gumbel, shape=invalid.shape[-1:])
        gumbel = config.gumbel_scale * jax.vmap(draw)(keys)
    # Q is already in [-1, 1]; halving it gives the paper's unit range without stretching.
    qtransform = functools.partial(
        mctx.qtransform_completed_by_mix_value,
        value_scale=config.value_scale / 2,
        maxvisit_init=config.maxvisit_init,
        rescale_values=False,
    )
    tree = mctx.search(
        params,
        key,
        root=root,
        recurrent_fn=recurrent,
        root_action_selection_fn=functools.partial(
            mctx.gumbel_muzero_root_action_selection,
            num_simulations=config.num_simulations,
            max_num_considered_actions=min(config.max_considered_actions, invalid.shape[-1]),
            qtransform=qtransform,
        ),
        interior_action_selection_fn=functools.partial(
            mctx.gumbel_muzero_interior_action_selection, qtransform=qtransform
        ),
        num_simulations=config.num_simulations,
        invalid_actions=invalid,
        extra_data=mctx.GumbelMuZeroExtraData(root_gumbel=gumbel),
    )
    completed = jax.vmap(qtransform, in_axes=(0, None))(tree, tree.ROOT_INDEX)
    improved = jnp.where(invalid, _NEVER, root.prior_logits + completed)
    visits = tree.children_visits[:, tree.ROOT_INDEX]
    finalist = visits == jnp.max(visits, axis=-1, keepdims=True)
    action = jnp.argmax(jnp.where(finalist, gumbel + improved, -jnp.inf), axis=-1)
    return _result(tree, action.astype(jnp.int32), jax.nn.softmax(improved))


def _result(tree: mctx.Tree, action, weights) -> SearchResult:
    visits = tree.children_visits[:, tree.ROOT_INDEX]
    return SearchResult(
        action=action,
        action_weights=weights,
        visit_counts=visits,
        q_values=jnp.where(visits > 0, tree.summary().qvalues, 0.0),
        value=tree.node_values[:, tree.ROOT_INDEX],
        tree=tree,
    )
