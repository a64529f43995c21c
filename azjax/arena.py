"""The arena: matches of thousands of games, compiled, from both seats.

One program plays a pairing: in every ply of all games at once it asks whoever is to move.
Results are counts; what they are worth is a question for `ratings`.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.agents import Agent
from azjax.game import Game, State, check_batch, init_batch, play, random_action, where
from azjax.oracle import distinct

MOST_OPENINGS = 100_000
Progress = Callable[[int], None]  # Told how many more games are finished.

_MIXERS = np.array([0x9E3779B1, 0x85EBCA77], np.uint32)


class Games(NamedTuple):
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
    first: Agent,
    second: Agent,
    num_games: int,
    key: jax.Array,
    openings: State | None = None,
    progress: Progress | None = None,
) -> Match:
    """Plays half of the games from either seat.

    Two deterministic players play each opening once from each seat, and no more.

    Args:
      game: the rules.
      first: one player.
      second: the other.
      num_games: in all; rounded up so that every opening is played as often from both seats.
      key: for all randomness of the match.
      openings: positions to start from, `[K, ...]`; the starting position if None.
      progress: called with the number of games finished since the last call.

    Raises:
      ValueError: if there are no games to play, the openings are no states of this game, or one
        is over already.
    """
    _check_games(num_games)
    count = 1 if openings is None else check_batch(game, openings)
    rounds = -(-num_games // (2 * count))
    deterministic = first.deterministic and second.deterministic
    per_seat = count if deterministic else rounds * count
    tallies = []
    for seat in (0, 1):
        key_seat = jax.random.fold_in(key, seat)
        games = play_games(
            game, first, second, per_seat, key_seat, seat, openings, progress=progress
        )
        tallies.append(_tally(games))
    return Match(first.name, second.name, tallies[0], tallies[1], deterministic)


def _check_games(num_games: int) -> None:
    if num_games < 1:
        raise ValueError(f"{num_games} games decide nothing: play 1 or more")


def _tally(games: Games) -> Tally:
    wins, draws, losses = (int((games.outcomes == value).sum()) for value in (1, 0, -1))
    return Tally(wins, draws, losses, len(np.unique(games.digests)))


def round_robin(
    game: Game,
    agents: Sequence[Agent],
    num_games: int,
    key: jax.Array,
    openings: State | None = None,
    progress: Progress | None = None,
) -> list[Match]:
    """Plays a match between any two of the players; arguments are those of `play_match`.

    Raises:
      ValueError: if there are fewer than two players, or two have the same name.
    """
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
    first: Agent,
    second: Agent,
    num_games: int,
    key: jax.Array,
    seat: int = 0,
    openings: State | None = None,
    batch_size: int | None = None,
    progress: Progress | None = None,
) -> Games:
    """Plays games with the players in fixed seats.

    Players with a memory start with empty ones, one for each game of a batch, and keep
    them from batch to batch: with a `batch_size` of 1, `num_games` games in a row.

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
    openings = init_batch(game, 1) if openings is None else openings
    count = check_batch(game, openings)
    if bool(jnp.any(jax.vmap(game.is_over)(openings))):
        raise ValueError("an opening is a finished game: start from positions with a move left")
    size = batch_size or _batch_size(first, second, num_games)
    memories = tuple(a.init_memory(size) if a.init_memory else None for a in (first, second))
    match = _make_match(_rules(game), _behaviour(first), _behaviour(second))
    played = []
    for batch in range(-(-num_games // size)):
        rows = (np.arange(size) + batch * size) % count
        starts = jax.tree.map(lambda leaf: leaf[rows], openings)
        key_batch = jax.random.fold_in(key, batch)
        found, memories = match(
            (first.params, second.params), key_batch, jnp.int32(seat), rows, starts, memories
        )
        played.append(jax.device_get(found))
        if progress:
            progress(min(size, num_games - batch * size))
    outcomes, plies, digests = (
        np.concatenate(column)[:num_games] for column in zip(*played, strict=True)
    )
    wide = digests.astype(np.uint64)
    return Games(outcomes, plies, wide[:, 0] << np.uint64(32) | wide[:, 1])


def _rules(game: Game) -> Game:
    """The game without its arrays, so that it can be hashed."""
    return game._replace(symmetries=None)  # pyright: ignore[reportArgumentType]


def _behaviour(agent: Agent) -> Agent:
    """What determines the program that a player is compiled to."""
    return agent._replace(name="", params=None, nodes=1)


def _batch_size(first: Agent, second: Agent, num_games: int) -> int:
    """Games side by side: a power of two, so that trees take little more than a cache.

    At least 32 of them, if trees are so small that they then take a gigabyte at most.
    """
    nodes = max(first.nodes, second.nodes)
    few = min(32, max(1, 2**22 // nodes))
    return 2 ** (max(1, min(max(2**17 // nodes, few), 8192, num_games)) - 1).bit_length()


@functools.lru_cache(maxsize=64)
def _make_match(game: Game, first: Agent, second: Agent) -> Callable:
    """Builds `(params, key, seat, opening numbers, states, memories) -> (games, memories)`."""
    traceable = first.traceable and second.traceable
    agents = [first, second] if traceable else [_compiled(first), _compiled(second)]
    loop = jax.lax.while_loop if traceable else _while_on_host

    def match(params, key, seat, numbers, states, memories):
        move = functools.partial(_move, game, agents, params, key, seat)
        outcomes = jnp.zeros(len(numbers), jnp.float32)
        digests = _mix(jnp.zeros((len(numbers), 2), jnp.uint32), numbers)
        plies = jnp.zeros(len(numbers), jnp.int32)
        start = _Play(jnp.int32(0), states, outcomes, plies, digests, memories)
        end = loop(lambda now: jnp.any(~jax.vmap(game.is_over)(now.states)), move, start)
        return (end.outcomes.astype(jnp.int8), end.plies, end.digests), end.memories

    return jax.jit(match, donate_argnums=5) if traceable else match


class _Play(NamedTuple):
    """Games under way; `[B, ...]`."""

    ply: jax.Array
    states: State
    outcomes: jax.Array
    plies: jax.Array
    digests: jax.Array
    memories: Any


def _move(game: Game, agents, params, key, seat, now: _Play) -> _Play:
    """Makes one move in every unfinished game, each by the player whose turn it is."""
    live = ~jax.vmap(game.is_over)(now.states)
    mine = jax.vmap(game.player)(now.states) == seat
    keys = jax.random.split(jax.random.fold_in(key, now.ply))
    ask = _ask if all(agent.traceable for agent in agents) else _ask_on_host
    actions, memories = [], []
    for i, turn in enumerate((mine, ~mine)):
        action, memory = ask(
            agents[i], jnp.any(live & turn), params[i], keys[i], now.states, now.memories[i]
        )
        actions.append(action)
        memories.append(memory)
    action = jnp.where(mine, *actions)
    step = jax.vmap(functools.partial(play, game))(now.states, action)
    reward = jnp.where(live, jnp.where(mine, step.reward, -step.reward), 0.0)
    return _Play(
        ply=now.ply + 1,
        states=where(live, step.state, now.states),
        outcomes=now.outcomes + reward,
        plies=now.plies + live,
        digests=jnp.where(live[:, None], _mix(now.digests, action), now.digests),
        memories=tuple(memories),
    )


def _ask(agent: Agent, needed, params, key, states, memory):
    """Asks a player for actions, if it has to move in any game at all."""
    return jax.lax.cond(
        needed,
        lambda memory: _answer(agent, params, key, states, memory),
        lambda memory: (jnp.zeros(_size(states), jnp.int32), memory),
        memory,
    )


def _ask_on_host(agent: Agent, needed, params, key, states, memory):
    """Does the same in a loop on the host, where `lax.cond` would compile in every ply."""
    if needed:
        return _answer(agent, params, key, states, memory)
    return jnp.zeros(_size(states), jnp.int32), memory


def _answer(agent: Agent, params, key, states, memory):
    """A player's actions, and its memory afterwards."""
    if agent.learn is None:
        return agent.act(params, key, states).action, memory
    decision, memory = agent.learn(params, key, states, memory)
    return decision.action, memory


def _size(states: State) -> int:
    """`B`, of a batch of states."""
    return jax.tree.leaves(states)[0].shape[0]


def _compiled(agent: Agent) -> Agent:
    """The same player with its functions jitted one by one, for a loop on the host."""
    if not agent.traceable:
        return agent
    return agent._replace(act=jax.jit(agent.act), learn=agent.learn and jax.jit(agent.learn))


def _while_on_host(goes_on, body, value):
    while goes_on(value):
        value = body(value)
    return value


def _mix(digests: jax.Array, numbers) -> jax.Array:
    """Takes one more number into two 32-bit hashes, `[B, 2]`."""
    mixed = (digests + jnp.asarray(numbers).astype(jnp.uint32)[:, None] + 1) * _MIXERS
    return mixed ^ (mixed >> 15)


def random_openings(game: Game, key: jax.Array, count: int, plies: int) -> State:
    """Draws different positions, each after so many random moves, none of them over.

    Args:
      game: the rules.
      key: for the moves.
      count: positions wanted.
      plies: moves before each.

    Returns:
      The states, `[count, ...]`, or fewer if there are fewer: all of those found.

    Raises:
      ValueError: if the numbers are out of range, or no game lasts that long.
    """
    if not 1 <= count <= MOST_OPENINGS or not 0 <= plies < game.max_plies:
        raise ValueError(
            f"{count} openings of {plies} moves cannot be had: ask for 1 to {MOST_OPENINGS} "
            f"openings of 0 to {game.max_plies - 1} moves"
        )
    lanes = max(64 * count, 4096)

    def somewhere(key):
        def move(state, key):
            return game.step(state, random_action(game, key, state))[0], None

        return jax.lax.scan(move, game.init(), jax.random.split(key, plies))[0]

    states = jax.device_get(jax.jit(jax.vmap(somewhere))(jax.random.split(key, lanes)))
    over = np.asarray(jax.vmap(game.is_over)(states))
    different = np.sort(distinct(states)[0])
    chosen = different[~over[different]][:count]
    if not len(chosen):
        raise ValueError(f"every game of {game.name} found was over after {plies} moves: use fewer")
    return jax.tree.map(lambda leaf: leaf[chosen], states)
