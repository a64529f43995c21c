"""The doctor: what keeps a training run from learning, from its newest checkpoint.

Every check measures one cause that users of AlphaZero report again and again, and returns one
sentence with what to do next. The thresholds are loose: runs that learn raise no alarm.
"""

import functools
import pathlib
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax import _files as files
from azjax import runs, training
from azjax.games.base import Game, play, random_step
from azjax.games.check import check_game
from azjax.games.rows import distinct, pack
from azjax.networks.base import Network
from azjax.players import arena, network_agent, random_agent, search_agent, statistics
from azjax.runs import checkpoint
from azjax.runs.config import Config, make_parts
from azjax.runs.player import is_pretrained, read_settings
from azjax.training import Parts, TrainState, selfplay
from azjax.training.learner import learning_rate, policy_loss
from azjax.training.targets import Sample

_GAMES = 200  # Of each match, and random ones.
_SAMPLES = 1024  # From the buffer.
_FEWEST = 20  # Won positions that are needed.


class Finding(NamedTuple):
    """The result of one check."""

    name: str
    sentence: str  # What was measured.
    advice: str = ""  # The next step; empty if nothing is wrong.


def diagnose(
    run_dir: files.Path, game: Game | None = None, parts: Parts | None = None
) -> list[Finding]:
    """Examines the newest sound checkpoint of a run; see `checkpoint.restore`.

    A custom game, or parts with a custom network, must be given. A CheckpointError is raised if
    nothing was saved.
    """
    if is_pretrained(run_dir):
        raise ValueError(f"{run_dir} comes with azjax, without a checkpoint: name a run's folder")
    config, folder = read_settings(run_dir), pathlib.Path(run_dir)
    parts = make_parts(config, game) if parts is None else parts
    mesh = training.make_mesh(jax.devices()[:1])
    state, damage = checkpoint.restore(folder, parts, mesh, sets_aside=False)
    if state is None:
        raise runs.CheckpointError(f"{run_dir} has no checkpoint yet: resume the run to write one")
    advice = "an older one was examined; resume the run to set this one aside"
    found = [Finding("checkpoint", sentence, advice) for sentence in damage]
    return found + examine(config, parts, state)


def examine(config: Config, parts: Parts, state: TrainState) -> list[Finding]:
    """Examines a state of training."""
    try:
        check_game(parts.game)
    except AssertionError as error:  # Nothing else means anything then.
        advice = "fix the rules: `azjax.check_game` names the position"
        return [Finding("contract of the game", str(error), advice)]
    keys = [jax.random.fold_in(state.key, 2**31 - number) for number in range(1, 5)]
    key_samples, key_moves, key_matches, key_signs = keys
    self_play = jax.jit(functools.partial(selfplay.self_play, parts))
    games = jax.random.split(key_moves, parts.selfplay.games)
    _, moves = self_play(state.learner.average, games, state.games, state.archive)
    shape = -(-_SAMPLES // parts.replay.batch_size), parts.replay.shards
    sample = jax.jit(jax.vmap(parts.replay.sample, (None, 0)))
    drawn = sample(state.replay, jax.random.split(key_samples, shape))
    samples = jax.tree.map(lambda leaf: jax.lax.collapse(leaf, 0, 3)[:_SAMPLES], drawn)
    params = parts.network.fold(state.learner.average)
    return [
        Finding("contract of the game", "random games satisfy the conventions"),
        *_strength(parts, params, key_matches),
        _signs(parts, params, key_signs),
        _policies(parts.network, params, samples),
        _repeats(samples, parts.game.most_positions),
        _ends(parts, state, moves.discount),
        *_rate(config, state),
    ]


def _strength(parts: Parts, params: Any, key: jax.Array) -> list[Finding]:
    """The search must not be weaker than the network, and the network must beat random play."""
    game, evaluate = parts.game, parts.evaluate
    network = network_agent(game, evaluate, params)
    search = search_agent(game, parts.search, evaluate, params)
    key_openings, key_random, key_network = jax.random.split(key, 3)
    openings = arena.draw_openings(game, key_openings, 8, 2)
    found = []
    for first, second, key, name in (
        (network, random_agent(game), key_random, "network against random play"),
        (search, network, key_network, "search against the network"),
    ):
        match = arena.play_match(game, first, second, _GAMES, key, openings)
        counts = np.add(match.moving_first[:3], match.moving_second[:3])
        score = statistics.mean_score(*counts.tolist())
        sentence = f"scores {score.estimate:.2f} [{score.low:.2f}, {score.high:.2f}]"
        weak = score.low <= 0.5 if first is network else score.high < 0.5
        advice = "look at the findings below: the targets, or the learning rate, are wrong"
        found.append(Finding(name, sentence, advice if weak else ""))
    return found


def _signs(parts: Parts, params: Any, key: jax.Array) -> Finding:
    """The values of positions of random games in which a move wins at once must be positive."""
    game = parts.game
    key_games, key = jax.random.split(key)

    def random_game(key):
        def move(state, key):
            step = jax.vmap(functools.partial(play, game, state))(jnp.arange(game.num_actions))
            wins = game.legal_actions(state) & (step.discount == 0) & (step.reward > 0)
            return random_step(game, key, state).state, (state, jnp.any(wins))

        return jax.lax.scan(move, game.init(), jax.random.split(key, game.max_plies))[1]

    states, is_won = jax.jit(jax.vmap(random_game))(jax.random.split(key_games, _GAMES))
    rows, plies = (index[:_SAMPLES] for index in np.nonzero(is_won))
    if len(rows) < _FEWEST:
        return Finding("signs of values", f"only {len(rows)} positions are won in one move")
    states = jax.tree.map(lambda leaf: leaf[rows, plies], states)
    _, values, *_ = jax.jit(parts.evaluate)(params, key, states)
    share = float(np.mean(np.asarray(values) > 0))
    sentence = f"right in {share:.0%} of {len(rows)} positions that are won in one move"
    advice = "check the sign of `reward` and `player` in the game, and of a custom value target"
    return Finding("signs of values", sentence, advice if share < 0.6 else "")


def _policies(network: Network, params: Any, samples: Sample) -> Finding:
    outputs = network.infer(params, samples.planes)
    loss = policy_loss(outputs[0], samples.policy, samples.legal)
    entropy = jnp.sum(jax.scipy.special.entr(samples.policy), axis=-1)
    uniform = jnp.log(jnp.sum(samples.legal, axis=-1)) - entropy
    has_moves = jnp.any(samples.legal, axis=-1)  # Not before the dice.
    kl, start = (float(jnp.mean(of, where=has_moves)) for of in (loss - entropy, uniform))
    sentence = f"KL {kl:.2f} from the network to the search; {start:.2f} from a uniform policy"
    advice = "the network does not learn the policy: check the learning rate and legal actions"
    return Finding("policy", sentence, advice if kl > 0.9 * start else "")


def _repeats(samples: Sample, most_positions: int | None) -> Finding:
    number, different = len(samples.value), len(distinct(pack(samples.planes))[0])
    most = min(number, most_positions or number)
    sentence = f"{different / number:.0%} of {number} samples are different"
    advice = "games repeat: add selfplay.opening_share, noise or temperature, or more games"
    return Finding("repetition", sentence, advice if different < 0.05 * most else "")


def _ends(parts: Parts, state: TrainState, discounts: jax.Array) -> Finding:
    config, ended = parts.selfplay, int(jnp.sum(discounts == 0))
    sentence = f"{ended} games ended in {discounts.size:,} moves of self-play"
    advice = "no game reaches its end: raise selfplay.unroll_length, or turn selfplay.carry_over on"
    played = int(state.iteration) * config.unroll_length
    is_early = config.carry_over and played < parts.game.max_plies
    return Finding("ends of games", sentence, advice if ended == 0 and not is_early else "")


def _rate(config: Config, state: TrainState) -> list[Finding]:
    if config.parts:  # Custom parts have a learner without these settings.
        return []
    settings, step = config.learner, int(state.learner.step)
    rate = float(jnp.asarray(learning_rate(settings)(step)))
    over = step > settings.warmup_steps and rate < settings.learning_rate / 1000
    sentence = f"{rate:.2g} at step {step:,}; its peak is {settings.learning_rate:.2g}"
    advice = "the schedule has ended: raise learner.decay_steps or learner.final_learning_rate"
    return [Finding("learning rate", sentence, advice if over else "")]
