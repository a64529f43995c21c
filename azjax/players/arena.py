"""The arena: compiled matches of thousands of games, played from both seats.

A player is an `Agent`, or an object with one as its attribute `agent`. In seat 0 or 1, it plays as
player 0 or 1 of the game. Results are counts of games; `ratings` computes intervals and Elo from
them.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games.base import Game, State, check_batch, init_batch
from azjax.players import Agent, HasAgent, as_agent, ratings
from azjax.players.game_loop import make_match

Progress = Callable[[int], None]  # Called with the number of games finished since the last call.
Record = Callable[["PlayedGames"], None]


class Results(NamedTuple):
    """Finished games, in the order in which they were played.

    Attributes:
      outcomes: `int8 [N]`, 1 = won by the first-named player, 0 = drawn, -1 = lost.
      plies: `int32 [N]`, moves made.
      digests: `uint64 [N]`, a hash of the opening and of all moves; equal games have equal hashes.
      actions: `int32 [N, T]`, the moves after the opening, padded with -1; `T` is the game's
        `max_plies`.
    """

    outcomes: np.ndarray
    plies: np.ndarray
    digests: np.ndarray
    actions: np.ndarray


class PlayedGames(NamedTuple):
    """The games of a match with one assignment of the players to seats.

    Attributes:
      players: the names of player 0 and player 1.
      results: the games; `outcomes` are those of player 0.
    """

    players: tuple[str, str]
    results: Results


class Tally(NamedTuple):
    """Games counted for one player from one seat.

    Attributes:
      wins, draws, losses: the numbers of games with that result.
      distinct: the number of different games among them.
    """

    wins: int
    draws: int
    losses: int
    distinct: int

    @property
    def games(self) -> int:
        """The number of games."""
        return self.wins + self.draws + self.losses


class Match(NamedTuple):
    """The result of a pairing.

    Attributes:
      first: the name of the first-named player, whose wins are counted.
      second: the name of the other player.
      moving_first: games in which the first-named player made the first move.
      moving_second: games in which the second-named player made the first move.
      deterministic: whether both players are deterministic; more games would then only repeat
        these.
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
    record: Record | None = None,
) -> Match:
    """Plays half of the games from each seat.

    Two deterministic players play each opening only once from each seat.

    Args:
      game: the rules.
      first: the player whose wins are counted.
      second: the other player.
      num_games: the total, rounded up to play every opening equally often from each seat.
      key: for all randomness of the match.
      openings: positions to start from, `[K, ...]`; the starting position if None.
      progress: called with the number of games finished since the last call.
      record: called twice, with the games of each assignment of the players to seats.

    Raises:
      ValueError: if `num_games` is below 1, the openings are not states of this game, an opening
        is over, or a game is not over after `game.max_plies` moves.
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
        if record and seat == 0:
            record(PlayedGames((first.name, second.name), games))
        elif record:
            of_other = games._replace(outcomes=-games.outcomes)
            record(PlayedGames((second.name, first.name), of_other))
        wins, draws, losses = (int((games.outcomes == value).sum()) for value in (1, 0, -1))
        return Tally(wins, draws, losses, len(np.unique(games.digests)))

    return Match(first.name, second.name, play_seat(0), play_seat(1), deterministic)


def rate(matches: Sequence[Match]) -> ratings.Ratings:
    """Fits Elo ratings to the results of matches; see `ratings.fit`."""
    names = list(dict.fromkeys(name for match in matches for name in (match.first, match.second)))
    rows = []
    for match in matches:
        one, other = names.index(match.first), names.index(match.second)
        tally = match.moving_first
        rows.append((one, other, (tally.wins, tally.draws, tally.losses)))
        tally = match.moving_second
        rows.append((other, one, (tally.losses, tally.draws, tally.wins)))
    first, second, counts = (np.array(column) for column in zip(*rows, strict=True))
    return ratings.fit(names, first, second, counts)


def _check_games(num_games: int) -> None:
    if num_games < 1:
        raise ValueError(f"the number of games is {num_games}: play 1 or more")


def round_robin(
    game: Game,
    agents: Sequence[Agent | HasAgent],
    num_games: int,
    key: jax.Array,
    openings: State | None = None,
    progress: Progress | None = None,
    record: Record | None = None,
) -> list[Match]:
    """Plays a match between each pair of players; see `play_match` for the arguments.

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
        play_match(game, *pair, num_games, jax.random.fold_in(key, i), openings, progress, record)
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
      second: the other player.
      num_games: the number of games.
      key: for all randomness.
      seat: 0 if `first` is player 0, who moves first from the starting position; 1 if `second` is.
      openings: positions to start from in turn, `[K, ...]`; the starting position if None.
      batch_size: games played in parallel; if None, it depends on the sizes of the search trees.
      progress: called with the number of games finished since the last call.
    """
    _check_games(num_games)
    first, second = as_agent(first), as_agent(second)
    openings = init_batch(game, 1) if openings is None else openings
    count = check_batch(game, openings)
    if bool(jnp.any(jax.vmap(game.is_over)(openings))):
        raise ValueError("an opening is a finished game: start from positions with a move left")
    size = batch_size or _batch_size(first, second, num_games)
    match = make_match(game, _without_params(first), _without_params(second))
    played = []
    for batch in range(-(-num_games // size)):
        rows = (np.arange(size) + batch * size) % count
        starts = jax.tree.map(lambda leaf: leaf[rows], openings)
        key_batch = jax.random.fold_in(key, batch)
        params = first.params, second.params
        *games, over = jax.device_get(match(params, key_batch, jnp.int32(seat), rows, starts))
        if not np.all(over):
            raise ValueError(
                f"a game of {first.name} against {second.name} is not over after {game.max_plies} "
                f"moves, the max_plies of {game.name}: one of them plays illegal actions, or "
                "max_plies is too small"
            )
        played.append(games)
        if progress:
            progress(min(size, num_games - batch * size))
    outcomes, plies, digests, actions = (
        np.concatenate(column)[:num_games] for column in zip(*played, strict=True)
    )
    wide = digests.astype(np.uint64)
    return Results(outcomes, plies, wide[:, 0] << np.uint64(32) | wide[:, 1], actions)


def _without_params(agent: Agent) -> Agent:
    """Returns a player without the fields that do not change its compiled program."""
    return agent._replace(name="", params=None, nodes=1)


def _batch_size(first: Agent, second: Agent, num_games: int) -> int:
    """Returns the number of games to play in parallel; batches have about equal sizes.

    The trees of a batch have at most 2**17 nodes. In games with few actions, these take little more
    memory than a CPU's cache has. If that leaves fewer than 32 games, a batch has up to 32 games
    and 2**22 nodes, which take up to a gigabyte in such games.
    """
    nodes = max(first.nodes, second.nodes)
    few = min(32, max(1, 2**22 // nodes))
    most = min(max(2**17 // nodes, few), 8192)
    return -(-num_games // -(-num_games // most))
