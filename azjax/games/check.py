"""Checks of the conventions in `azjax.games.base`; call `check_game(game)` in a test."""

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from azjax.drawing import Drawing
from azjax.games import is_built_in
from azjax.games.base import (
    ILLEGAL,
    Game,
    Positions,
    State,
    is_chance,
    name_actions,
    random_action,
    state_shapes,
    write_types,
)
from azjax.games.symmetries import symmetries_of

_BEYOND = 2  # Number of actions that are tried below 0, and above A - 1.
_SHOWN = 3  # Plies of one game in which the display is checked.
_CUSTOM = 8  # Games that are played before training, which they delay.
_RANDOM = re.compile("= (random_|threefry|rng_)")  # JAX's primitives for random numbers.
Rules = Iterable[tuple[str, Any]]  # A rule, and whether it holds.


def check_game(game: Game, num_games: int = 32) -> None:
    """Plays random games and checks the conventions of `azjax.games.base` in every position.

    All actions, legal or not, and all encodings are tried. The symmetric copies of each game are
    played as well. The function cannot check whether rewards go to the right player.

    Args:
      game: the game to check.
      num_games: how many games to play.

    Raises:
      AssertionError: if a rule is violated; the message has the rule and the position.
    """
    parts = _types(game), _start(game), _symmetries(game), _positions(game)
    _require(game, itertools.chain(*parts))
    _play_games(game, num_games, jax.random.key(0))


def check_custom(game: Game) -> None:
    """Checks a game before training; raises a ValueError. Those of `games.make` have tests."""
    if not is_built_in(game):
        try:
            check_game(game, _CUSTOM)
        except AssertionError as error:
            raise ValueError(str(error)) from error


def _require(game: Game, rules: Rules, place: str = "") -> None:
    for rule, holds in rules:
        if not holds:
            raise AssertionError(f"{game.name}{place} violates the contract: {rule}")


def _call(game: Game, name: str, function: Callable, *args: Any, **options: Any) -> Any:
    """Calls a function of the game, or traces it; an error becomes a violation."""
    try:
        return function(*args, **options)
    except Exception as error:
        reason = f"{name} raises {type(error).__name__}: {error}".partition("\n")[0]
        raise AssertionError(f"{game.name} violates the contract: {reason}") from error


def _types(game: Game) -> Rules:
    encodings = game.encodings
    is_tuple = isinstance(encodings, tuple) and all(isinstance(name, str) for name in encodings)
    yield "encodings is a tuple of one name or more", is_tuple and encodings
    for name, number in (("num_actions", game.num_actions), ("max_plies", game.max_plies)):
        yield f"{name} is an integer above 0", isinstance(number, int | np.integer) and number > 0
    state = _call(game, "init", state_shapes, game)
    is_key = [jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) for leaf in jax.tree.leaves(state)]
    yield "a state has no random key, as step depends on what players see", not any(is_key)
    trace: Any = jax.make_jaxpr(game.step, return_shape=True)
    program, result = _call(game, "step", trace, state, jax.ShapeDtypeStruct((), jnp.int32))
    is_pair = isinstance(result, tuple | list) and len(result) == 2
    is_pair = is_pair and write_types(result) != write_types(state)
    yield f"step returns the next state and the reward, not {write_types(result)}", is_pair
    rule = "step draws no random numbers, as it depends on what players see"
    yield rule, not _RANDOM.search(str(program))
    after, reward = result
    weak = [leaf.weak_type for leaf in jax.tree.leaves(after)]  # They cause recompilation.
    given = write_types(after) + (f" (weak: {weak})" if any(weak) else "")
    rule = f"step returns a state like that of init, which is {write_types(state)}, not {given}"
    yield rule, given == write_types(state)
    for name, function, expected in (
        ("the reward of step", lambda _: reward, "float32[]"),
        ("legal_actions", game.legal_actions, f"bool[{game.num_actions}]"),
        ("is_over", game.is_over, "bool[]"),
        ("player", game.player, "int8[]"),
        ("chance", functools.partial(_odds, game), f"float32[{game.num_actions}]"),
    ):
        given = write_types(_call(game, name, jax.eval_shape, function, state))
        yield f"{name} is {expected}, not {given}", given == expected
    for encoding in encodings:
        place = f"observe in the encoding {encoding!r}"
        trace = functools.partial(jax.eval_shape, lambda s, name=encoding: game.observe(s, name))
        planes = _call(game, place, trace, state)
        is_right = len(getattr(planes, "shape", ())) == 3 and planes.dtype in (bool, jnp.float32)
        yield f"{place} is bool or float32[H, W, C], not {write_types(planes)}", is_right
        board = ", ".join(map(str, game.board_shape))
        rule = f"{place} is [{board}, C] as in the first one, not {write_types(planes)}"
        yield rule, planes.shape[:2] == game.board_shape
    yield "the planes of observe are not empty", min(game.board_shape) > 0


def _odds(game: Game, state: State) -> jax.Array:
    """Returns the probabilities of `chance`; zeros if the game has none."""
    none = jnp.zeros(game.num_actions, jnp.float32)
    return none if game.chance is None else game.chance(state)


def _start(game: Game) -> Rules:
    start = game.init()
    yield "the starting position is not over", not game.is_over(start)
    ends = jax.vmap(lambda action: game.is_over(game.step(start, action)[0]))
    ended = ends(jnp.arange(game.num_actions)) & (_odds(game, start) > 0)
    yield "the first throw does not end the game", not jnp.any(ended)
    yield "player 0 is to move at the start", game.player(start) == 0


def _symmetries(game: Game) -> Rules:
    if game.symmetries is None:
        return
    cells, actions = game.symmetries.cells, game.symmetries.actions
    is_array = all(isinstance(given, np.ndarray | jax.Array) for given in (cells, actions))
    yield "the cells and actions of the symmetries are arrays", is_array
    for name, given, size in (
        ("cells", cells, game.board_shape[0] * game.board_shape[1]),
        ("actions", actions, game.num_actions),
    ):
        rule = f"the {name} of the symmetries are integers [G, {size}], not {write_types(given)}"
        is_integer = jnp.issubdtype(given.dtype, jnp.integer)
        yield rule, is_integer and given.shape == (game.num_symmetries, size)
        is_permutation = (np.sort(given) == np.arange(size)).all()
        yield f"every row of the symmetries' {name} is a permutation", is_permutation
    whole = np.concatenate([cells, cells.shape[1] + actions], axis=1)
    is_identity = (whole[0] == np.arange(whole.shape[1])).all()
    yield "the first of the symmetries is the identity", is_identity
    group = set(map(tuple, whole.tolist()))
    yield "no two symmetries are the same", len(group) == len(whole)
    products = {tuple(one[other].tolist()) for one in whole for other in whole}
    yield "the composition of two symmetries is a symmetry", products == group
    for encoding in game.encodings:
        planes = np.asarray(game.observe(game.init(), encoding)).reshape(cells.shape[1], -1)
        for number, order in enumerate(cells):
            rule = f"symmetry {number} keeps the planes {encoding!r} of the starting position"
            yield rule, (planes[order] == planes).all()


def _positions(game: Game) -> Rules:
    if game.positions is None:
        return
    labelled = _call(game, "positions", game.positions)
    yield "positions returns Positions", isinstance(labelled, Positions)
    states, outcomes, classes, class_of, apart = labelled
    has_classes = np.isin(class_of, np.arange(len(classes))).all() and set(apart) < set(classes)
    is_complete = has_classes and outcomes.shape == (len(class_of), game.num_actions)
    rule = "its positions have outcomes [S, A], class_of and apart name classes, some are not apart"
    yield rule, is_complete
    step = jax.vmap(jax.vmap(game.step, (None, 0)), (0, None))
    after, rewards = jax.jit(step)(states, jnp.arange(game.num_actions))
    ends = np.asarray(jax.vmap(jax.vmap(game.is_over))(after))
    legal = np.asarray(jax.vmap(game.legal_actions)(states))
    yield "each of its positions has two or more legal actions", (legal.sum(axis=1) > 1).all()
    is_marked = ((outcomes == ILLEGAL) == ~legal).all()
    rule = f"the outcomes of its positions are {ILLEGAL} where illegal, and -1, 0 or 1 elsewhere"
    yield rule, is_marked and np.isin(outcomes, (ILLEGAL, -1, 0, 1)).all()
    is_same = (outcomes == rewards)[ends & legal].all()
    yield "the outcome of a move that ends the game is its reward", is_same


def _play_games(game: Game, num_games: int, key: jax.Array) -> None:
    check_step = jax.jit(jax.vmap(functools.partial(_check_step, game)))
    copies = num_games, game.num_symmetries
    states = jax.tree.map(
        lambda leaf: jnp.broadcast_to(leaf, (*copies, *jnp.shape(leaf))), game.init()
    )
    over, moves = np.zeros(num_games, bool), []
    for ply in range(game.max_plies + 1):
        keys = jax.random.split(jax.random.fold_in(key, ply), num_games)
        rules, over, actions, after = check_step(keys, states)
        for rule, holds in rules.items():
            for row, *tried in np.argwhere(~np.asarray(holds)).tolist():
                on = f", on action {tried[0] - _BEYOND}," if tried else ""
                _require(game, [(rule, False)], _place(moves, row) + on)
        if ply < _SHOWN or np.all(over):
            first = jax.tree.map(lambda leaf: leaf[0, 0], states)
            _require(game, _display(game, first), _place(moves, 0))
        if np.all(over):
            return
        states = after
        moves.append(np.where(over, -1, actions))
    rule = f"a game lasts at most max_plies, which is {game.max_plies}"
    _require(game, [(rule, False)], _place(moves[:-1], int(np.argmin(over))))


def _check_step(game: Game, key: jax.Array, states: State):
    """Checks the symmetric copies `[G, ...]` of a position and plays a random move in all of them.

    Returns:
      A dictionary with whether each rule holds, then whether the game is over, the move, and the
      next states.
    """
    state = jax.tree.map(lambda leaf: leaf[0], states)
    action = random_action(game, key, state)
    cells, actions = map(jnp.asarray, dataclasses.astuple(symmetries_of(game)))
    after, rewards = jax.vmap(game.step)(states, jnp.argsort(actions, axis=1)[:, action])
    over, players = jax.vmap(game.is_over)(states), jax.vmap(game.player)(states)
    legal = jax.vmap(game.legal_actions)(states)
    odds = jax.vmap(functools.partial(_odds, game))(states)
    same_legal = (legal == legal[0][actions]) & (odds == odds[0][actions])
    same_turn = jnp.all((over == over[0]) & (players == players[0]) & (rewards == rewards[0]))
    rules = _check_actions(game, state) | {
        "symmetries keep the turn, the end and the reward": same_turn,
        "symmetries take legal actions to legal actions": jnp.all(same_legal),
    }
    for encoding in game.encodings:
        planes = jax.vmap(lambda s, name=encoding: game.observe(s, name))(states)
        planes = planes.reshape(*cells.shape, -1)
        rule = f"symmetries permute the planes of {encoding!r} like their cells"
        rules[rule] = jnp.all(planes == planes[0][cells])
    return rules, over[0], action, after


def _check_actions(game: Game, state: State) -> dict[str, jax.Array]:
    """Returns whether each rule holds: `bool []` for the state, or `bool [X]` for `X` actions."""
    legal, over, odds = game.legal_actions(state), game.is_over(state), _odds(game, state)
    actions = jnp.arange(-_BEYOND, game.num_actions + _BEYOND)
    is_legal = jnp.pad(legal, _BEYOND)
    after, rewards = jax.vmap(lambda action: game.step(state, action))(actions)
    equal = [
        jnp.all((new == old[None]).reshape(len(actions), -1), axis=1)
        for new, old in zip(jax.tree.leaves(after), jax.tree.leaves(state), strict=True)
    ]
    ignored = functools.reduce(jnp.logical_and, equal) & (rewards == 0)
    ends, players = jax.vmap(game.is_over)(after), jax.vmap(game.player)(after)
    thrown, again = jnp.any(odds != 0), jax.vmap(functools.partial(is_chance, game))(after)
    sums_to_1 = (jnp.abs(jnp.sum(odds) - 1) < 1e-5) & jnp.all(odds >= 0)
    return {
        "an unfinished game has a legal action": over | jnp.any(legal),
        "a finished game has no legal action": ~over | ~jnp.any(legal),
        "an illegal action, or one in a finished game, changes nothing and earns 0": (
            is_legal | ignored
        ),
        "rewards are -1, 0 or 1": jnp.isin(rewards, jnp.array([-1.0, 0.0, 1.0])),
        "only the move that ends a game is rewarded": ends | (rewards == 0),
        "the player to move is 0 or 1": (players == 0) | (players == 1),
        "the probabilities of chance are all 0, or sum to 1": ~thrown | sums_to_1,
        "the outcomes of chance are the legal actions": ~thrown | jnp.all((odds > 0) == legal),
        "nature moves at most once in a row": ~(thrown & is_legal) | ~again,
    }


def _place(moves: list[np.ndarray], row: int) -> str:
    made = [int(actions[row]) for actions in moves if actions[row] >= 0]
    return f" after the actions {made}" if made else " at the start"


def _display(game: Game, state: State) -> Rules:
    names = _call(game, "name_actions", name_actions, game, state)
    yield "name_actions names every action", len(names) == game.num_actions
    text = _call(game, "render", game.display.render, state)
    yield "render returns a string", isinstance(text, str)
    if game.display.draw is not None:
        options = {"values": np.ones(game.num_actions) / game.num_actions, "labels": names}
        picture = _call(game, "draw", game.display.draw, state, **options, last=None, size=100)
        yield "draw returns a drawing.Drawing", isinstance(picture, Drawing)
