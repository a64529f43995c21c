"""Data for a page: one game of self-play, its targets, and learning steps on them."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from azjax import runs, training
from azjax._files import Path
from azjax.games import tic_tac_toe
from azjax.games.base import Game, State, name_actions
from azjax.runs import checkpoint
from azjax.runs.player import Player
from azjax.search import ROOT
from azjax.training.learner import LearnerConfig, LearnerState, learning_rate
from azjax.training.loss import Losses, alphazero_loss
from azjax.training.parts import Parts
from azjax.training.selfplay import self_play, start_games
from azjax.training.targets import Sample, Transition, outcomes
from azjax.viz.positions import has_rules

_KEY = 0  # Seed of the game.
_DIGITS = 4
_ONCE = training.compiler_options


class Played(NamedTuple):
    """A game of self-play; every leaf is `[T, ...]`, one row per move.

    Attributes:
      states: the positions before the moves.
      transitions: the transitions of self-play.
      samples: the training samples made from them.
      outcome: `float32 [T]`, the result of the game for the player to move.
      visits: `int32 [T, A]`, visit counts of the searches.
      policy: `float32 [T, A]`, policy of the network that guides the searches.
      value: `float32 [T]`, value of the same network.
    """

    states: State
    transitions: Transition
    samples: Sample
    outcome: jax.Array
    visits: jax.Array
    policy: jax.Array
    value: jax.Array


def loop_data(run_dir: Path, player: Player) -> dict[str, Any]:
    """Plays one game, and learns from it, with the untrained network and with the newest one.

    Returns:
      Data for JSON. `settings`: the run's settings that determine the numbers. `game`: the name of
      the game, or null if the page has no rules for it; then positions are text. `lessons`: the
      `lesson_data` of iteration 0 and of the newest checkpoint with a training state.

    Raises:
      checkpoint.CheckpointError: if there is no such checkpoint.
    """
    config, parts = runs.read_config(run_dir), player.parts
    mesh = training.make_mesh(jax.local_devices()[:1])
    state: Any = checkpoint.restore(run_dir, parts, mesh).state
    first = jax.jit(lambda key: training.init(parts, key).learner, compiler_options=_ONCE(False))
    untrained = first(jax.random.key(config.seed, impl=jax.random.key_impl(state.key)))
    learners = {0: untrained, int(state.iteration): state.learner}
    used = {name: getattr(config, name) for name in ("search", "selfplay", "targets", "learner")}
    return {
        "settings": {name: dataclasses.asdict(settings) for name, settings in used.items()},
        "game": parts.game.name if has_rules(parts.game) else None,
        "lessons": [
            {"iteration": iteration} | lesson_data(parts, config.learner, learner)
            for iteration, learner in learners.items()
        ],
    }


def lesson_data(parts: Parts, config: LearnerConfig, learner: LearnerState) -> dict[str, Any]:
    """Plays a game with a learner's averaged network, then trains the learner on this game only.

    Returns:
      Data for JSON. `made`: number of steps made before. `rate`: learning rate of the next step.
      `counts`: numbers of further steps after which the network is evaluated, including 0 and 1.
      `loss` and `grad_norm`: the learner's values at these counts. `moves`: see `_move`.
    """
    played = play_game(parts, learner, jax.random.key(_KEY))
    evaluated, losses = learn(parts, config, learner, played.samples)
    doubled = [2**i for i in range(parts.learner.steps.bit_length())]
    counts = sorted({0, *doubled, parts.learner.steps})
    evaluated, losses = jax.tree.map(lambda leaf: leaf[np.array(counts)], (evaluated, losses))
    return {
        "made": int(learner.step),
        "rate": np.asarray(learning_rate(config)(learner.step)).item(),
        "counts": counts,
        "loss": _round(losses["loss"]),
        "grad_norm": _round(losses["grad_norm"]),
        "moves": [_move(parts.game, played, evaluated, i) for i in range(len(played.outcome))],
    }


def play_game(parts: Parts, learner: LearnerState, key: jax.Array) -> Played:
    """Plays one game from the start, with the noise and temperature of self-play."""
    played = jax.device_get(_compiled_game(parts)(learner.average, key))
    length = 1 + int(np.argmax(played.transitions.discount == 0))  # The next game follows.
    return jax.tree.map(lambda leaf: leaf[:length, 0], played)


@functools.lru_cache(maxsize=4)
def _compiled_game(parts: Parts) -> Callable[..., Played]:
    """Builds self-play of one game for `max_plies` moves; leaves are `[T, 1, ...]`."""
    alone = {"games": 1, "games_at_once": 0, "carry_over": True, "opening_share": 0.0}
    settings = dataclasses.replace(parts.selfplay, unroll_length=parts.game.max_plies, **alone)

    def note(result):
        states = jax.tree.map(lambda leaf: leaf[:, ROOT], result.tree.embeddings)
        return parts.targets.note(result), states, result.visit_counts

    noting = parts._replace(selfplay=settings, targets=parts.targets._replace(note=note))

    def play(variables, key) -> Played:
        params, (key_play, key_start) = parts.network.fold(variables), jax.random.split(key)
        games = start_games(settings, parts.game, key_start)
        transitions = self_play(noting, variables, key_play, games)[1]
        extra, states, visits = transitions.extra
        transitions = transitions._replace(extra=extra)
        logits, value = jax.vmap(lambda states: parts.evaluate(params, None, states))(states)
        policy = jax.nn.softmax(logits, where=transitions.legal)
        learned = parts.targets.make(transitions), outcomes(transitions)
        return Played(states, transitions, *learned, visits, policy, value)

    return jax.jit(play, compiler_options=_ONCE(False))


def learn(
    parts: Parts, config: LearnerConfig, learner: LearnerState, samples: Sample
) -> tuple[Losses, Losses]:
    """Makes the steps of an iteration plus one, all on the same samples `[T, ...]`.

    Returns:
      The evaluation of each sample before each step, by name, `[steps + 1, T, ...]`: policy `p`
      over legal actions, value `v` and the terms of the loss. The second result has the losses of
      the learner, `[steps + 1]`.
    """
    weights = {"value_weight": config.value_weight, "l2": config.l2}

    def evaluate(variables, samples) -> Losses:
        logits, value, *_ = parts.network.train(variables, samples.planes, None)[0]

        def one(row):
            logits, value, sample = jax.tree.map(lambda leaf: leaf[None], row)
            params = variables["params"]
            total, terms = alphazero_loss((logits, value), params, sample, None, **weights)
            return {"loss": total, **terms}

        outputs = {"p": jax.nn.softmax(logits, where=samples.legal), "v": value}
        return outputs | jax.vmap(one)((logits, value, samples))

    def run(learner, samples):
        def step(learner, _):
            after, losses = parts.learner.update(learner, samples, None)
            return after, (evaluate(learner.variables, samples), losses)

        return jax.lax.scan(step, learner, None, length=parts.learner.steps + 1)[1]

    return jax.device_get(jax.jit(run, compiler_options=_ONCE(False))(learner, samples))


def _move(game: Game, played: Played, evaluated: Losses, i: int) -> dict[str, Any]:
    """Returns one move, with lists over its legal `actions` and `frames` over counts of steps.

    If the page does not have the game's rules, `names` are those of the actions.
    """
    state, transition, sample = jax.tree.map(lambda leaf: leaf[i], played[:3])
    legal = np.flatnonzero(sample.legal)
    frames = [
        {k: _round(x[step, i, legal] if k == "p" else x[step, i]) for k, x in evaluated.items()}
        for step in range(len(evaluated["v"]))
    ]
    return {
        **({} if has_rules(game) else {"names": [name_actions(game, state)[a] for a in legal]}),
        "board": tic_tac_toe.board_text(state) if has_rules(game) else game.display.render(state),
        "player": int(game.player(state)),
        "actions": legal.tolist(),
        "prior": _round(played.policy[i, legal]),
        "value": _round(played.value[i]),
        "visits": played.visits[i, legal].tolist(),
        "found": _round(transition.root_value),
        "pi": _round(sample.policy[legal]),
        "action": int(transition.action),
        "z": _round(played.outcome[i]),
        "target": _round(sample.value),
        "frames": frames,
    }


def _round(numbers: Any) -> Any:
    """Returns rounded numbers for JSON."""
    return np.round(np.asarray(numbers, float), _DIGITS).tolist()
