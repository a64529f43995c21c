"""The arena: matches of thousands of games, compiled, from both seats.

A player is an `Agent`, or anything that has one as its attribute `agent`. Results are counts;
what they are worth is a question for `ratings`.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import Game, State, check_batch, init_batch, play, where
from azjax.games.hashing import mix
from azjax.players import Agent, HasAgent, as_agent

Progress = Callable[[int], None]  # Told how many more games are finished.


class Results(NamedTuple):
    """Finished games, in the order in which they were played.

    Attributes:
      outcomes: `int8 [N]`, 1 = won by the first-named player, 0 = drawn, -1 = lost.
      plies: `int32 [N]`, moves made.
      digests: `uint64 [N]`, a hash of the opening and of all moves: equal for equal games.
    """

    outcomes: np.ndarray
    plies: np.ndarray
    digests: np.ndarray


class Tally(NamedTuple):
    """Games counted for one player from one seat.

    Attributes:
      wins, draws, losses: of that player.
      distinct: how many different games were among them.
    """

    wins: int
    draws: int
    losses: int
    distinct: int

    @property
    def games(self) -> int:
        """All games."""
        return self.wins + self.draws + self.losses


class Match(NamedTuple):
    """The result of a pairing.

    Attributes:
      first: the name of the first-named player, whose wins are counted.
      second: the name of the other one.
      moving_first: the games in which the first-named player made the first move.
      moving_second: those in which it did not.
      deterministic: whether both always play the same move in a position, so that more
        games would have been the same games.
    """

    first: str
    second: str
    moving_first: Tally
    moving_second: Tally
    deterministic: bool


def play_match(
    game: Game,
    first: Agent | HasAgent,
    second: Agent | HasAgent,
    num_games: int,
    key: jax.Array,
    openings: State | None = None,
    progress: Progress | None = None,
) -> Match:
    """Plays half of the games from either seat.

    Two deterministic players play each opening once from each seat, and no more.

    Args:
      game: the rules.
      first: the player whose wins are counted.
      second: the other.
      num_games: in all; rounded up so that every opening is played as often from both seats.
      key: for all randomness of the match.
      openings: positions to start from, `[K, ...]`; the starting position if None.
      progress: called with the number of games finished since the last call.

    Raises:
      ValueError: if there are no games to play, the openings are no states of this game, one is
        over already, or a game is not over after `game.max_plies` moves.
    """
    _check_games(num_games)
    first, second = as_agent(first), as_agent(second)
    count = 1 if openings is None else check_batch(game, openings)
    rounds = -(-num_games // (2 * count))
    deterministic = first.deterministic and second.deterministic
    per_seat = count if deterministic else rounds * count

    def play_seat(seat):
        key_seat = jax.random.fold_in(key, seat)
        players = game, first, second
        games = play_games(*players, per_seat, key_seat, seat, openings, progress=progress)
        wins, draws, losses = (int((games.outcomes == value).sum()) for value in (1, 0, -1))
        return Tally(wins, draws, losses, len(np.unique(games.digests)))

    return Match(first.name, second.name, play_seat(0), play_seat(1), deterministic)


def _check_games(num_games: int) -> None:
    if num_games < 1:
        raise ValueError(f"{num_games} games decide nothing: play 1 or more")


def round_robin(
    game: Game,
    agents: Sequence[Agent | HasAgent],
    num_games: int,
    key: jax.Array,
    openings: State | None = None,
    progress: Progress | None = None,
) -> list[Match]:
    """Plays a match between any two of the players; arguments are those of `play_match`.

    Raises:
      ValueError: if there are fewer than two players, or two have the same name.
    """
    agents = [as_agent(agent) for agent in agents]
    names = [agent.name for agent in agents]
    if len(names) < 2:
        raise ValueError(f"a tournament of {names} has no pairing: name 2 players or more")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two players are called {twice[0]}: give them different names")
    pairs = list(itertools.combinations(agents, 2))
    return [
        play_match(game, *pair, num_games, jax.random.fold_in(key, i), openings, progress)
        for i, pair in enumerate(pairs)
    ]


def play_games(
    game: Game,
    first: Agent | HasAgent,
    second: Agent | HasAgent,
    num_games: int,
    key: jax.Array,
    seat: int = 0,
    openings: State | None = None,
    batch_size: int | None = None,
    progress: Progress | None = None,
) -> Results:
    """Plays games with the players in fixed seats.

    Args:
      game: the rules.
      first: the player whose outcomes are counted.
      second: the other.
      num_games: how many.
      key: for all randomness.
      seat: 0 if `first` is player 0, who moves first from the starting position, else 1.
      openings: positions to start from in turn, `[K, ...]`; the starting position if None.
      batch_size: games played side by side; by default as many as fit well in memory.
      progress: called with the number of games finished since the last call.

    Raises:
      ValueError: as `play_match` does.
    """
    _check_games(num_games)
    first, second = as_agent(first), as_agent(second)
    openings = init_batch(game, 1) if openings is None else openings
    count = check_batch(game, openings)
    if bool(jnp.any(jax.vmap(game.is_over)(openings))):
        raise ValueError("an opening is a finished game: start from positions with a move left")
    size = batch_size or _batch_size(first, second, num_games)
    match = _make_match(game, _behaviour(first), _behaviour(second))
    played = []
    for batch in range(-(-num_games // size)):
        rows = (np.arange(size) + batch * size) % count
        starts = jax.tree.map(lambda leaf: leaf[rows], openings)
        key_batch = jax.random.fold_in(key, batch)
        found = match((first.params, second.params), key_batch, jnp.int32(seat), rows, starts)
        *found, over = jax.device_get(found)
        if not np.all(over):
            raise ValueError(
                f"a game of {first.name} against {second.name} is not over after {game.max_plies} "
                f"moves, the max_plies of {game.name}: one of them plays illegal actions, or "
                "max_plies is too small"
            )
        played.append(found)
        if progress:
            progress(min(size, num_games - batch * size))
    outcomes, plies, digests = (
        np.concatenate(column)[:num_games] for column in zip(*played, strict=True)
    )
    wide = digests.astype(np.uint64)
    return Results(outcomes, plies, wide[:, 0] << np.uint64(32) | wide[:, 1])


def _behaviour(agent: Agent) -> Agent:
    """Returns a player without what its compiled program does not depend on."""
    return agent._replace(name="", params=None, nodes=1)


def _batch_size(first: Agent, second: Agent, num_games: int) -> int:
    """Chooses how many games to play side by side, in batches as equal as can be.

    So few that their trees take little more than a cache, but 32 where that is a gigabyte at most.
    """
    nodes = max(first.nodes, second.nodes)
    few = min(32, max(1, 2**22 // nodes))
    most = min(max(2**17 // nodes, few), 8192)
    return -(-num_games // -(-num_games // most))


@functools.lru_cache(maxsize=64)
def _make_match(game: Game, first: Agent, second: Agent) -> Callable:
    """Builds `(params, key, seat, opening numbers, states) -> games`."""
    traceable = first.traceable and second.traceable
    agents = [first, second] if traceable else [_compiled(first), _compiled(second)]
    loop = jax.lax.while_loop if traceable else _while_on_host
    cond = jax.lax.cond if traceable else _cond_on_host

    def match(params, key, seat, numbers, states):
        move = functools.partial(_move, game, agents, cond, params, key, seat)
        outcomes = jnp.zeros(len(numbers), jnp.float32)
        digests = mix(jnp.zeros((len(numbers), 2), jnp.uint32), numbers)
        plies = jnp.zeros(len(numbers), jnp.int32)
        start = _Play(jnp.int32(0), states, outcomes, plies, digests)
        end = loop(functools.partial(_goes_on, game), move, start)
        over = jax.vmap(game.is_over)(end.states)
        return end.outcomes.astype(jnp.int8), end.plies, end.digests, over

    return jax.jit(match) if traceable else match


class _Play(NamedTuple):
    """Games under way; `[B, ...]`."""

    ply: jax.Array
    states: State
    outcomes: jax.Array
    plies: jax.Array
    digests: jax.Array


def _goes_on(game: Game, now: _Play) -> jax.Array:
    return (now.ply < game.max_plies) & jnp.any(~jax.vmap(game.is_over)(now.states))


def _move(game: Game, agents, cond, params, key, seat, now: _Play) -> _Play:
    """Makes one move in every unfinished game, each by the player whose turn it is."""
    live = ~jax.vmap(game.is_over)(now.states)
    mine = jax.vmap(game.player)(now.states).astype(jnp.int32) == seat
    keys = jax.random.split(jax.random.fold_in(key, now.ply))
    actions = [
        _ask(cond, agents[i], jnp.any(live & turn), params[i], keys[i], now.states)
        for i, turn in enumerate((mine, ~mine))
    ]
    action = jnp.where(mine, *actions)
    step = jax.vmap(functools.partial(play, game))(now.states, action)
    reward = jnp.where(live, jnp.where(mine, step.reward, -step.reward), 0.0)
    return _Play(
        ply=now.ply + 1,
        states=where(live, step.state, now.states),
        outcomes=now.outcomes + reward,
        plies=now.plies + live.astype(jnp.int32),
        digests=jnp.where(live[:, None], mix(now.digests, action), now.digests),
    )


def _ask(cond, agent: Agent, needed, params, key, states):
    """Returns a player's actions; calls it only if it moves in some game."""

    def answer(states):
        return agent.act(params, key, states).action

    def rest(states):
        return jnp.zeros(jax.tree.leaves(states)[0].shape[0], jnp.int32)

    return cond(needed, answer, rest, states)


def _compiled(agent: Agent) -> Agent:
    """Returns the same player with its function jitted, for a loop on the host."""
    return agent._replace(act=jax.jit(agent.act)) if agent.traceable else agent


def _cond_on_host(condition, on_true, on_false, value):
    """Is `lax.cond` in a loop on the host, where that would compile in every ply."""
    return on_true(value) if condition else on_false(value)


def _while_on_host(goes_on, body, value):
    while goes_on(value):
        value = body(value)
    return value
