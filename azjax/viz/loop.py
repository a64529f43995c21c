"""What a network learns of one game of self-play, number by number, for a page."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from azjax import runs, training
from azjax._files import Path
from azjax.games import tic_tac_toe
from azjax.games.base import Game, State
from azjax.runs import checkpoint
from azjax.runs.player import Player
from azjax.search import ROOT, make_search
from azjax.training.learner import LearnerConfig, LearnerState, learning_rate
from azjax.training.loss import Losses, alphazero_loss
from azjax.training.parts import Parts
from azjax.training.selfplay import Transition, unroll
from azjax.training.starts import start_games
from azjax.training.targets import Sample, outcomes
from azjax.viz.positions import has_rules

_KEY = 0  # Of the game; any other would do.
_DIGITS = 4
_ONCE = training.compiler_options


class Played(NamedTuple):
    """A game of self-play; every leaf is `[T, ...]`, one row a move.

    Attributes:
      states: the positions before the moves.
      transitions: what self-play records.
      samples: what is learned of it.
      outcome: `float32 [T]`, how the game ends for the player to move.
      visits: `int32 [T, A]`, of the searches.
      policy: `float32 [T, A]`, of the network that guides the searches.
      value: `float32 [T]`, the same network's.
    """

    states: State
    transitions: Transition
    samples: Sample
    outcome: jax.Array
    visits: jax.Array
    policy: jax.Array
    value: jax.Array


def loop_data(run_dir: Path, player: Player) -> dict[str, Any]:
    """Plays and learns one game with the network before the training, and one with the newest.

    Returns:
      For JSON. `settings`: those of the run that the numbers come from. `game`: its name, or null
      if the page does not know it, and positions are texts. `lessons`: see `lesson_data`, of
      iteration 0 and that of the newest checkpoint that one can train on.

    Raises:
      checkpoint.CheckpointError: if there is no such checkpoint.
    """
    config, parts = runs.read_config(run_dir), player.parts
    mesh = training.make_mesh(jax.local_devices()[:1])
    state: Any = checkpoint.restore(run_dir, parts, mesh).state
    first = jax.jit(lambda key: training.init(parts, key).learner, compiler_options=_ONCE(False))
    begun = first(jax.random.key(config.seed, impl=jax.random.key_impl(state.key)))
    learners = {0: begun, int(state.iteration): state.learner}
    kept = {name: getattr(config, name) for name in ("search", "selfplay", "targets", "learner")}
    return {
        "settings": {name: dataclasses.asdict(settings) for name, settings in kept.items()},
        "game": parts.game.name if has_rules(parts.game) else None,
        "lessons": [
            {"iteration": iteration} | lesson_data(parts, config.learner, learner)
            for iteration, learner in learners.items()
        ],
    }


def lesson_data(parts: Parts, config: LearnerConfig, learner: LearnerState) -> dict[str, Any]:
    """Plays a game with a learner's averaged network, and lets the learner learn of it alone.

    Returns:
      For JSON. `made`: the steps made before; `rate`: the learning rate of the next one.
      `counts`: after how many more steps on this game it is looked at, 0 and 1 among them. `loss`
      and `grad_norm`: the learner's own, then. `moves`: see `_move`.
    """
    played = play_game(parts, learner, jax.random.key(_KEY))
    judged, losses = learn(parts, config, learner, played.samples)
    doubled = [2**i for i in range(parts.learner.steps.bit_length())]
    counts = sorted({0, *doubled, parts.learner.steps})
    judged, losses = jax.tree.map(lambda leaf: leaf[np.array(counts)], (judged, losses))
    return {
        "made": int(learner.step),
        "rate": np.asarray(learning_rate(config)(learner.step)).item(),
        "counts": counts,
        "loss": _round(losses["loss"]),
        "grad_norm": _round(losses["grad_norm"]),
        "moves": [_move(parts.game, played, judged, i) for i in range(len(played.outcome))],
    }


def play_game(parts: Parts, learner: LearnerState, key: jax.Array) -> Played:
    """Plays one game as self-play does, with its noise and temperature, but from the start."""
    played = jax.device_get(_compiled_game(parts)(learner.ema_params, key))
    length = 1 + int(np.argmax(played.transitions.discount == 0))  # Then the next game begins.
    return jax.tree.map(lambda leaf: leaf[:length, 0], played)


@functools.lru_cache(maxsize=4)
def _compiled_game(parts: Parts) -> Callable[..., Played]:
    """Self-play of one game, leaves `[T, 1, ...]`, for as many moves as any game can have."""
    alone = {"games": 1, "games_at_once": 0, "opening_share": 0.0}
    settings = dataclasses.replace(parts.selfplay, unroll_length=parts.game.max_plies, **alone)
    search = make_search(parts.search, parts.game, parts.evaluate)
    rules = settings, parts.game, parts.network.encoding, search

    def note(result):
        states = jax.tree.map(lambda leaf: leaf[:, ROOT], result.tree.embeddings)
        return parts.targets.note(result), states, result.visit_counts

    def play(variables, key) -> Played:
        params, (key_play, key_start) = parts.network.fold(variables), jax.random.split(key)
        games = start_games(settings, parts.game, key_start)
        transitions = unroll(*rules, params, key_play, games, note)[1]
        own, states, visits = transitions.extra
        transitions = transitions._replace(extra=own)
        logits, value = jax.vmap(lambda states: parts.evaluate(params, None, states))(states)
        policy = jax.nn.softmax(logits, where=transitions.legal)
        learned = parts.targets.make(transitions), outcomes(transitions)
        return Played(states, transitions, *learned, visits, policy, value)

    return jax.jit(play, compiler_options=_ONCE(False))


def learn(
    parts: Parts, config: LearnerConfig, learner: LearnerState, samples: Sample
) -> tuple[Losses, Losses]:
    """Makes an iteration's steps, and one more, all on the same samples `[T, ...]`.

    Returns:
      What the parameters say of each sample before each step: policy `p`, over legal actions,
      value `v` and the terms of the loss, all by name, `[steps + 1, T, ...]`; and the learner's
      own losses, `[steps + 1]`.
    """
    weights = {"value_weight": config.value_weight, "l2": config.l2}

    def judge(variables, samples) -> Losses:
        logits, value, *_ = parts.network.train(variables, samples.planes, None)[0]

        def one(row):
            logits, value, sample = jax.tree.map(lambda leaf: leaf[None], row)
            params = variables["params"]
            total, terms = alphazero_loss((logits, value), params, sample, None, **weights)
            return {"loss": total, **terms}

        said = {"p": jax.nn.softmax(logits, where=samples.legal), "v": value}
        return said | jax.vmap(one)((logits, value, samples))

    def run(learner, samples):
        def step(learner, _):
            after, losses = parts.learner.update(learner, samples, None)
            return after, (judge(learner.variables, samples), losses)

        return jax.lax.scan(step, learner, None, length=parts.learner.steps + 1)[1]

    return jax.device_get(jax.jit(run, compiler_options=_ONCE(False))(learner, samples))


def _move(game: Game, played: Played, judged: Losses, i: int) -> dict[str, Any]:
    """One move: lists over its legal `actions`; `frames` over the counts of steps."""
    state, transition, sample = jax.tree.map(lambda leaf: leaf[i], played[:3])
    legal = np.flatnonzero(sample.legal)
    frames = [
        {k: _round(x[step, i, legal] if k == "p" else x[step, i]) for k, x in judged.items()}
        for step in range(len(judged["v"]))
    ]
    return {
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
    """Numbers for JSON."""
    return np.round(np.asarray(numbers, float), _DIGITS).tolist()
