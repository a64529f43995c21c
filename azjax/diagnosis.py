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
from azjax.games.base import Game, State, is_chance, play, random_step, where
from azjax.games.check import check_game
from azjax.games.rows import distinct, pack
from azjax.networks.base import Network
from azjax.players import arena, network_agent, random_agent, search_agent, statistics
from azjax.runs import checkpoint
from azjax.runs.config import Config, make_parts
from azjax.runs.player import is_pretrained, read_settings
from azjax.training import Parts, TrainState, metrics, selfplay
from azjax.training.learner import learning_rate, policy_loss
from azjax.training.targets import Sample

_GAMES = 200  # Of each match.
_SAMPLES = 1024  # From the buffer.
_MOST_ACTIONS = 128  # In games with more, only wins in one move are looked for.
_FEWEST = 20  # Decided positions that are needed.


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
    records = metrics.read_records(folder / "metrics.jsonl")
    advice = "an older one was examined; resume the run to set this one aside"
    found = [Finding("checkpoint", sentence, advice) for sentence in damage]
    return found + examine(config, parts, state, records)


def examine(
    config: Config, parts: Parts, state: TrainState, records: list[dict[str, Any]]
) -> list[Finding]:
    """Examines a state of training; `records` are those of `metrics.jsonl`."""
    try:
        check_game(parts.game)
    except AssertionError as error:  # Nothing else means anything then.
        advice = "fix the rules: `azjax.check_game` names the position"
        return [Finding("contract of the game", str(error), advice)]
    keys = [jax.random.fold_in(state.key, 2**31 - number) for number in range(1, 6)]
    key_samples, key_moves, key_matches, key_signs, key_starts = keys
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
        _ages(parts),
        _repeats(samples, parts.game.most_positions),
        _openings(parts, state, key_starts),
        _ends(parts, state, moves.discount),
        *_rate(config, state),
        *_gradients(config, records),
        _units(parts, state, samples),
    ]


def _strength(parts: Parts, params: Any, key: jax.Array) -> list[Finding]:
    """The search must not be weaker than the network, and the network must beat random play."""
    game, evaluate = parts.game, parts.evaluate
    network = network_agent(game, evaluate, params)
    search = search_agent(game, parts.search, evaluate, params)
    key_openings, key_random, key_network = jax.random.split(key, 3)
    keys = jax.random.split(key_openings, 8)
    openings = jax.vmap(functools.partial(_random_position, game, 2))(keys)
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
    """Compares the signs of values with those of positions that two plies decide."""
    game = parts.game
    key_states, key = jax.random.split(key)
    keys = jax.random.split(key_states, 2 * _SAMPLES)
    states = jax.jit(jax.vmap(functools.partial(_random_position, game, game.max_plies)))(keys)
    truth = np.asarray(jax.jit(jax.vmap(functools.partial(decided, game)))(states))
    rows = np.flatnonzero(truth)[:_SAMPLES]
    if len(rows) < _FEWEST:
        return Finding("signs of values", f"only {len(rows)} positions are decided in two plies")
    states = jax.tree.map(lambda leaf: leaf[rows], states)
    _, values, *_ = jax.jit(parts.evaluate)(params, key, states)
    share = float(np.mean(np.sign(values) == truth[rows]))
    sentence = f"right in {share:.0%} of {len(rows)} positions that two plies decide"
    advice = "check the sign of `reward` and `player` in the game, and of a custom value target"
    return Finding("signs of values", sentence, advice if share < 0.6 else "")


def decided(game: Game, state: State) -> jax.Array:
    """Returns 1 if a move wins at once, -1 if the opponent can after every move, 0 if neither."""
    actions = jnp.arange(game.num_actions)

    def wins(state):
        step = jax.vmap(functools.partial(play, game, state))(actions)
        return jnp.any(game.legal_actions(state) & (step.discount == 0) & (step.reward > 0)), step

    win, step = wins(state)
    if game.num_actions > _MOST_ACTIONS:
        return win.astype(jnp.int32)
    loses = (step.discount == -1) & jax.vmap(lambda after: wins(after)[0])(step.state)
    loses &= ~jax.vmap(functools.partial(is_chance, game))(step.state)
    legal = game.legal_actions(state)
    lost = jnp.any(legal) & jnp.all(~legal | loses | ((step.discount == 0) & (step.reward < 0)))
    return win.astype(jnp.int32) - (~win & lost)


def _random_position(game: Game, most: int, key: jax.Array) -> State:
    """Returns an unfinished position after up to `most` random moves."""
    key_length, key_moves = jax.random.split(key)
    length = jax.random.randint(key_length, (), 0, most + 1)

    def move(state, inputs):
        ply, key = inputs
        after = random_step(game, key, state).state
        return where((ply < length) & ~game.is_over(after), after, state), None

    keys = jax.random.split(key_moves, most)
    return jax.lax.scan(move, game.init(), (jnp.arange(most), keys))[0]


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


def _ages(parts: Parts) -> Finding:
    new = parts.selfplay.games * parts.selfplay.unroll_length
    age = parts.replay.capacity / new
    uses = parts.replay.batch_size * parts.learner.steps / new
    sentence = f"a position stays for {age:.0f} iterations and is used {uses:.1f} times in all"
    old, often = age > 200, uses > 200
    advice = "lower replay.capacity" if old else "lower learner.steps, or play more games"
    return Finding("age of samples", sentence, advice if old or often else "")


def _repeats(samples: Sample, most_positions: int | None) -> Finding:
    number, different = len(samples.value), _count_different(samples.planes)
    most = min(number, most_positions or number)
    sentence = f"{different / number:.0%} of {number} samples are different"
    advice = "games repeat: add selfplay.opening_share, noise or temperature, or more games"
    return Finding("repetition", sentence, advice if different < 0.05 * most else "")


def _openings(parts: Parts, state: TrainState, key: jax.Array) -> Finding:
    config, keys = parts.selfplay, jax.random.split(key, 256)
    count = _count_different(selfplay.start_games(config, parts.game, keys, state.archive))
    drawn = getattr(parts.search, "gumbel_scale", config.temperature and config.temperature_plies)
    sentence = f"{count} different starts among 256"
    advice = "all games start alike, and moves are not drawn: raise selfplay.opening_share"
    return Finding("openings", sentence, advice if count == 1 and not drawn else "")


def _count_different(rows: Any) -> int:
    """Counts the different rows of a tree of arrays `[N, ...]`."""
    return len(distinct(pack(rows))[0])


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


def _gradients(config: Config, records: list[dict[str, Any]]) -> list[Finding]:
    norms = [r["grad_norm"] for r in records[-10:] if r.get("grad_norm") is not None]
    if not norms:
        return []
    norm = float(np.median(norms))
    clip = 0.0 if config.parts else config.learner.clip_norm
    sentence = f"median norm {norm:.2g} in the last {len(norms)} iterations"
    if norm == 0:
        return [Finding("gradients", sentence, "nothing is learned: check a custom loss")]
    wild = clip and norm > 100 * clip
    advice = "nearly every step is clipped: lower learner.learning_rate"
    return [Finding("gradients", sentence, advice if wild else "")]


def _units(parts: Parts, state: TrainState, samples: Sample) -> Finding:
    """A unit whose weights have no gradient, in any sample, is dead."""
    variables = state.learner.variables

    def loss(params):
        changed = {**variables, "params": params}
        outputs, _ = parts.network.train(changed, samples.planes, None)
        policy = policy_loss(outputs[0], samples.policy, samples.legal)
        return jnp.mean(policy) + jnp.mean(jnp.square(outputs[1] - samples.value))

    grads = jax.tree.leaves(jax.jit(jax.grad(loss))(variables["params"]))
    layers = [leaf.reshape(-1, leaf.shape[-1]) for leaf in grads if leaf.ndim > 1]
    # Outputs for actions that are never legal have no gradient.
    layers = [leaf for leaf in layers if leaf.shape[-1] != parts.game.num_actions]
    dead = max((float(jnp.mean(jnp.all(leaf == 0, axis=0))) for leaf in layers), default=0.0)
    sentence = f"{dead:.0%} of the units of one layer have no gradient"
    advice = "units are dead: lower learner.learning_rate and start again"
    return Finding("dead units", sentence, advice if dead > 0.5 else "")
