# mctx's dataclasses hide their fields and shapes from type checkers.
# pyright: reportCallIssue=false, reportIndexIssue=false, reportArgumentType=false
"""Batched Monte Carlo tree search over any evaluator, on `mctx`.

PUCT is AlphaZero's search (Silver et al. 2018, Methods, "Search"); Gumbel is Gumbel
AlphaZero (Danihelka et al. 2022, "Policy improvement by planning with Gumbel"); UCT is the
classic one (Kocsis and Szepesvári 2006), which knows no priors. All see values in [-1, 1],
never an illegal action at any depth, and games that end inside the tree.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import mctx
import numpy as np

from azjax.evaluators import Evaluator
from azjax.game import Game, State, play
from azjax.settings import check_choices, check_range

_NEVER = float(jnp.finfo(jnp.float32).min)  # The logit of an illegal action; -inf gives NaN.
_UNTRIED = 1e6  # UCT's score of an untried action, above all others.


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """How a search spends its simulations."""

    algorithm: Literal["gumbel", "puct", "uct"] = "gumbel"
    """`puct`: AlphaZero's; `gumbel`: Gumbel AlphaZero's, better with few simulations;
    `uct`: without priors, at its best with random rollouts."""
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
    exploration: float = math.sqrt(2)
    """UCT: weight C of the confidence bound. UCB1 (Auer et al. 2002): sqrt(2), for rewards
    in [0, 1]."""

    def __post_init__(self):
        check_choices("search", self)
        check_range("search", self, "num_simulations max_considered_actions", 1)
        check_range("search", self, "dirichlet_fraction", 0, 1)
        check_range("search", self, "c_puct gumbel_scale value_scale maxvisit_init exploration", 0)
        if not self.dirichlet_alpha > 0:
            raise ValueError(f"search.dirichlet_alpha is {self.dirichlet_alpha}: use above 0")


class SearchResult(NamedTuple):
    """What a search found out about `B` positions.

    Attributes:
      action: `int32 [B]`, the action to play.
      action_weights: `float32 [B, A]`, the policy to learn: PUCT's and UCT's visit shares,
        or Gumbel's improved policy. Sums to 1 over the legal actions.
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


class _Plan(NamedTuple):
    """What an algorithm makes of a batch of positions.

    Attributes:
      root: the evaluated root, noise included.
      invalid: `bool [B, A]`, True = not allowed: what mctx wants.
      select_root: `(tree, node) -> action`, for one tree.
      select_below: the same for the other nodes.
      finish: `tree -> SearchResult`.
      extra: what the selection needs to know beside the tree; leaves are `[B, ...]`.
    """

    root: mctx.RootFnOutput
    invalid: jax.Array
    select_root: Callable[[mctx.Tree, jax.Array], jax.Array]
    select_below: Callable[[mctx.Tree, jax.Array], jax.Array]
    finish: Callable[[mctx.Tree], SearchResult]
    extra: Any = None


def make_search(config: SearchConfig, game: Game, evaluate: Evaluator) -> Search:
    """Builds `search(params, keys, states, temperature=0.0, explore=False)`.

    Args:
      config: the algorithm and its settings.
      game: the rules. Positions of a batch may be finished; what is found for those means
        nothing.
      evaluate: any evaluator; `params` are handed to it.

    Returns:
      A function of `params`, `keys [B]` (one per position), `states [B, ...]`, and
      `temperature`, a float or `[B]`, which PUCT and UCT use to draw the action from
      `visits ** (1 / temperature)` (0: the most visited). With `explore` set, PUCT mixes
      Dirichlet noise into the root's prior and Gumbel draws its noise; without it, PUCT and
      Gumbel with temperature 0 are deterministic. UCT always expands in random order.
    """

    def search(params, keys, states, temperature=0.0, explore=False) -> SearchResult:
        plan, key_tree = _plan(config, game, evaluate, params, keys, states, temperature, explore)
        return plan.finish(_grow(config, game, evaluate, plan, params, key_tree))

    return search


class Resumable(NamedTuple):
    """A search that grows its tree a few simulations at a time, for players with a clock.

    Attributes:
      start: `(params, keys [B], states [B, ...], schedule) -> tree`, with nothing but its
        root; `schedule` is from `considered_visits` for the simulations expected.
      grow: `(params, keys [B], states, schedule, tree, done, count) -> tree`; after `done`
        simulations it makes `count` more, both `int32 []`, so that no number compiles anew.
        `done + count` is at most `config.num_simulations`.
      finish: `(params, keys [B], states, schedule, tree) -> SearchResult`.
    """

    start: Callable[..., mctx.Tree]
    grow: Callable[..., mctx.Tree]
    finish: Callable[..., SearchResult]


def make_resumable(config: SearchConfig, game: Game, evaluate: Evaluator) -> Resumable:
    """Builds the search of `make_search`, without noise, in steps.

    Args:
      config: as for `make_search`; `num_simulations` is the most that a tree has room for.
      game: the rules.
      evaluate: any evaluator.

    Returns:
      Functions to be jitted. Their calls for one search get the same `keys`. Grown to the
      end in any steps, the tree of a deterministic evaluator is that of `make_search`.
    """

    def plan_for(params, keys, states, schedule):
        return _plan(config, game, evaluate, params, keys, states, schedule=schedule)

    def start(params, keys, states, schedule):
        plan, key = plan_for(params, keys, states, schedule)
        return _grow(config, game, evaluate, plan, params, key, lambda low, high, body, init: init)

    def grow(params, keys, states, schedule, tree, done, count):
        plan, key = plan_for(params, keys, states, schedule)

        def loop(low, high, body, init):
            return jax.lax.fori_loop(done, done + count, body, (init[0], tree))

        key = jax.random.fold_in(key, done)
        return _grow(config, game, evaluate, plan, params, key, loop)

    def finish(params, keys, states, schedule, tree):
        return plan_for(params, keys, states, schedule)[0].finish(tree)

    return Resumable(start, grow, finish)


def _plan(
    config, game, evaluate, params, keys, states, temperature=0.0, explore=False, schedule=None
) -> tuple[_Plan, jax.Array]:
    """Evaluates the roots; returns the algorithm's plan, and the key for the tree."""
    keys = jax.vmap(jax.random.split)(keys)
    key_root, key_tree = jax.random.split(keys[0, 0])  # Only random evaluators use these.
    root = _evaluate(config, game, evaluate, params, key_root, states)
    invalid = ~jax.vmap(game.legal_actions)(states)
    if config.algorithm == "gumbel":
        return _gumbel(config, root, invalid, keys[:, 1], explore, schedule), key_tree
    temperature = jnp.broadcast_to(jnp.asarray(temperature, jnp.float32), invalid.shape[:1])
    if config.algorithm == "puct":
        return _puct(config, root, invalid, keys[:, 1], temperature, explore), key_tree
    return _uct(config, root, invalid, keys[:, 1], temperature), key_tree


def _grow(config, game, evaluate, plan: _Plan, params, key, loop=jax.lax.fori_loop) -> mctx.Tree:
    """Runs the simulations."""
    return mctx.search(
        params,
        key,
        root=plan.root,
        recurrent_fn=functools.partial(_recurrent, config, game, evaluate),
        root_action_selection_fn=lambda key, tree, node: plan.select_root(tree, node),
        interior_action_selection_fn=lambda key, tree, node, depth: plan.select_below(tree, node),
        num_simulations=config.num_simulations,
        invalid_actions=plan.invalid,
        extra_data=plan.extra,
        loop_fn=loop,
    )


def _evaluate(config, game: Game, evaluate: Evaluator, params, key, states: State):
    """Evaluates states, with illegal actions excluded and finished games worth 0.

    UCT has no use for priors: their place takes the random order in which it tries actions.
    """
    if config.algorithm == "uct":
        key, key_order = jax.random.split(key)
    logits, value = evaluate(params, key, states)
    if config.algorithm == "uct":
        logits = jax.random.uniform(key_order, logits.shape)
    legal = jax.vmap(game.legal_actions)(states)
    over = jax.vmap(game.is_over)(states)
    return mctx.RootFnOutput(
        prior_logits=jnp.where(legal, logits, _NEVER),
        value=jnp.where(over, 0.0, value),
        embedding=states,
    )


def _recurrent(config, game: Game, evaluate: Evaluator, params, key, actions, states: State):
    """Plays one action in each game and evaluates what comes after."""
    step = jax.vmap(functools.partial(play, game))(states, actions)
    node = _evaluate(config, game, evaluate, params, key, step.state)
    output = mctx.RecurrentFnOutput(
        reward=step.reward,
        discount=step.discount,
        prior_logits=node.prior_logits,
        value=node.value,
    )
    return output, step.state


def _puct(config, root, invalid, keys, temperature, explore) -> _Plan:
    """AlphaZero's search: `argmax Q + c P sqrt(N) / (1 + n)` at every node."""
    keys = jax.vmap(jax.random.split)(keys)
    key_noise, key_action = keys[:, 0], keys[:, 1]
    if explore:
        root = root.replace(prior_logits=_with_dirichlet(config, key_noise, root, invalid))

    def finish(tree):
        visits = tree.children_visits[:, tree.ROOT_INDEX]
        action = jax.vmap(_draw_by_visits)(key_action, visits, temperature)
        return _result(tree, action, visits / jnp.sum(visits, axis=-1, keepdims=True))

    select = functools.partial(puct_action, config)
    return _Plan(root, invalid, select, select, finish)


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


def _uct(config, root, invalid, keys, temperature) -> _Plan:
    """Classic search: `argmax Q + C sqrt(ln(N + 1) / n)`, every action once before that."""

    def finish(tree):
        visits = tree.children_visits[:, tree.ROOT_INDEX]
        first = _earliest(visits, tree.children_index[:, tree.ROOT_INDEX])
        drawn = jax.vmap(_draw_by_visits)(keys, visits, temperature)
        action = jnp.where(temperature > 0, drawn, first)
        result = _result(tree, action, visits / jnp.sum(visits, axis=-1, keepdims=True))
        return result._replace(value=jnp.sum(result.action_weights * result.q_values, axis=-1))

    select = functools.partial(uct_action, config)
    return _Plan(root, invalid, select, select, finish)


def uct_action(config: SearchConfig, tree: mctx.Tree, node: jax.Array) -> jax.Array:
    """Chooses the action to follow from one node of one tree by UCB1.

    The score is `V + C sqrt(ln(N + 1) / n)` (Kocsis and Szepesvári 2006), with the mean V
    in [-1, 1] for the player to move, `n` the action's visits and `N` those of the node,
    its own rollout among them; the root has none. Untried actions come first, in the random
    order that stands in the place of the priors; of equal scores the one tried first wins.
    """
    visits = tree.children_visits[node]
    order = tree.children_prior_logits[node]
    legal = order > _NEVER
    total = (tree.node_visits[node] - (node == tree.ROOT_INDEX)).astype(jnp.float32)
    bound = config.exploration * jnp.sqrt(jnp.log1p(total) / jnp.maximum(visits, 1))
    score = jnp.where(visits > 0, tree.qvalues(node) + bound, _UNTRIED + order)
    score = jnp.where(jnp.any(legal), jnp.where(legal, score, -jnp.inf), -visits)
    return _earliest(score, tree.children_index[node])


def _earliest(score, index):
    """Returns the action of highest score, and of several the one expanded first."""
    tied = score == jnp.max(score, axis=-1, keepdims=True)
    never = jnp.iinfo(index.dtype).max
    return jnp.argmin(jnp.where(tied, index, never), axis=-1).astype(jnp.int32)


def considered_visits(max_considered: int, num_simulations: int) -> np.ndarray:
    """The order of sequential halving (Karnin et al. 2013), as Gumbel AlphaZero uses it.

    Returns:
      `int32 [max_considered + 1, num_simulations]`: in row `m`, with `m` actions to consider,
      the number of visits that the action to visit next has had.
    """
    rows = []
    for considered in range(max_considered + 1):
        row, visits, left = [], [0] * considered, considered
        halvings = max(math.ceil(math.log2(max(considered, 1))), 1)
        while len(row) < num_simulations:
            for _ in range(max(1, num_simulations // (halvings * max(left, 1)))):
                row += visits[:left] if left > 1 else [len(row)]
                visits[:left] = [n + 1 for n in visits[:left]]
            left = max(2, left // 2) if considered > 1 else left
        rows.append(row[:num_simulations])
    return np.array(rows, np.int32)


def _gumbel(config, root, invalid, keys, explore, schedule) -> _Plan:
    """Gumbel AlphaZero: sequential halving at the root, the improved policy below it."""
    num_actions = invalid.shape[-1]
    max_considered = min(config.max_considered_actions, num_actions)
    gumbel = jnp.zeros(invalid.shape)
    if explore:
        draw = functools.partial(jax.random.gumbel, shape=(num_actions,))
        gumbel = config.gumbel_scale * jax.vmap(draw)(keys)
    if schedule is None:
        schedule = considered_visits(max_considered, config.num_simulations)
    considered = jnp.minimum(max_considered, jnp.sum(~invalid, axis=-1))
    # Q is already in [-1, 1]; halving it gives the paper's unit range without stretching.
    qtransform = functools.partial(
        mctx.qtransform_completed_by_mix_value,
        value_scale=config.value_scale / 2,
        maxvisit_init=config.maxvisit_init,
        rescale_values=False,
    )

    def select_below(tree, node):
        return mctx.gumbel_muzero_interior_action_selection(
            None, tree, node, None, qtransform=qtransform
        )

    def finish(tree):
        completed = jax.vmap(qtransform, in_axes=(0, None))(tree, tree.ROOT_INDEX)
        improved = jnp.where(invalid, _NEVER, root.prior_logits + completed)
        visits = tree.children_visits[:, tree.ROOT_INDEX]
        finalist = visits == jnp.max(visits, axis=-1, keepdims=True)
        action = jnp.argmax(jnp.where(finalist, gumbel + improved, -jnp.inf), axis=-1)
        return _result(tree, action.astype(jnp.int32), jax.nn.softmax(improved))

    extra = (gumbel, jnp.asarray(schedule)[considered])
    select_root = functools.partial(_halving_action, qtransform)
    return _Plan(root, invalid, select_root, select_below, finish, extra)


def _halving_action(qtransform, tree: mctx.Tree, node: jax.Array) -> jax.Array:
    """Chooses at the root: the best of those that sequential halving has come to."""
    gumbel, visits_wanted = tree.extra_data
    visits = tree.children_visits[node]
    logits = tree.children_prior_logits[node]
    score = jnp.maximum(-1e9, gumbel + logits - jnp.max(logits) + qtransform(tree, node))
    eligible = (visits == visits_wanted[jnp.sum(visits)]) & ~tree.root_invalid_actions
    return jnp.argmax(jnp.where(eligible, score, -jnp.inf)).astype(jnp.int32)


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
