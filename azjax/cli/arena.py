"""Matches and tournaments: `azjax arena A B … --games N`."""

import dataclasses
import pathlib
from typing import Annotated

import jax
import numpy as np
import tyro

from azjax._settings import Count, Positive, Range, check
from azjax.cli import console, custom, players, specs
from azjax.games.base import Game
from azjax.players import Agent, ratings
from azjax.players.arena import Match, Tally, round_robin
from azjax.players.openings import MOST_OPENINGS, random_openings
from azjax.viz.chart import interval_chart, standalone


@dataclasses.dataclass(frozen=True)
class Options:
    """Lets players meet each other, each pairing from both seats."""

    players: Annotated[tuple[str, ...], tyro.conf.Positional]
    """Two or more players, such as random, perfect, uct:100 or network@runs/NAME#20."""
    games: Positive = 1000
    """Games of each pairing, half of them from either seat."""
    openings: Annotated[int, Range(0, MOST_OPENINGS)] = 0
    """Start from this many different random positions, each from both seats; 0: from the
    starting position."""
    opening_plies: Count = 2
    """Random moves before each of those positions."""
    seed: Annotated[int, Range(0, 2**32 - 1)] = 0
    """Of all randomness: the same seed gives the same games."""
    plot: pathlib.Path | None = None
    """Draw the ratings into this SVG file."""
    typed: custom.Option = custom.NOTHING

    def __post_init__(self):
        check("--", self)
        if self.plot:
            console.check_plot(self.plot)


def run(options: Options) -> int:
    """Plays everything, prints the tables and writes what was asked for."""
    typed, game = players.choose_game(options.players, options.typed)
    agents = players.make_agents(options.players, game, typed)
    if len(agents) < 2:
        raise ValueError("one player has nobody to play against: name 2 players or more")
    key_openings, key_games = jax.random.split(jax.random.key(options.seed))
    openings = None
    if options.openings:
        openings = random_openings(game, key_openings, options.openings, options.opening_plies)
        found = len(jax.tree.leaves(openings)[0])
        if found < options.openings:
            console.note(f"there are only {found} such openings: each of them is played")
    matches = _play(options, game, agents, openings, key_games)
    fitted = _rate([agent.name for agent in agents], matches)
    _show_matches(matches)
    _show_ratings(fitted)
    if options.plot:
        _draw(options.plot, fitted)
    return 0


def _play(options: Options, game: Game, agents: list[Agent], openings, key) -> list[Match]:
    pairings = len(agents) * (len(agents) - 1) // 2
    with console.progress() as progress:
        task = progress.add_task("games", total=pairings * options.games)

        def advance(count: int) -> None:
            progress.advance(task, count)

        return round_robin(game, agents, options.games, key, openings, advance)


def _rate(names: list[str], matches: list[Match]) -> ratings.Ratings:
    """Fits ratings; a match is two rows, one for either seat."""
    rows = []
    for match in matches:
        one, other = names.index(match.first), names.index(match.second)
        tally = match.moving_first
        rows.append((one, other, (tally.wins, tally.draws, tally.losses)))
        tally = match.moving_second
        rows.append((other, one, (tally.losses, tally.draws, tally.wins)))
    first, second, counts = (np.array(column) for column in zip(*rows, strict=True))
    return ratings.fit(names, first, second, counts)


def _show_matches(matches: list[Match]) -> None:
    """Prints won, drawn and lost by seat, and the scores."""
    rows = [
        (
            *(match.first, match.second, moves),
            *(f"{count:,}" for count in (tally.wins, tally.draws, tally.losses)),
            *(_score(match, tally), f"{tally.distinct:,}"),
        )
        for match in matches
        for moves, tally in (("first", match.moving_first), ("second", match.moving_second))
    ]
    titles = ("moves", "won", "drawn", "lost", "score [95%]", "different")
    console.print_table(("player", "against", *titles), rows, names=2)
    repeated = [f"{match.first} – {match.second}" for match in matches if match.deterministic]
    if repeated:
        print(
            "Two players who always play the same moves meet once in each opening and seat, since "
            f"more games would be the same games: {', '.join(repeated)}."
        )


def _score(match: Match, tally: Tally) -> str:
    found = ratings.mean_score(tally.wins, tally.draws, tally.losses)
    if match.deterministic:  # Nothing was drawn at random, so there is no interval.
        return f"{found.estimate:.3f}"
    return f"{found.estimate:.3f} [{found.low:.2f}, {found.high:.2f}]"


def _show_ratings(fitted: ratings.Ratings) -> None:
    rows = [
        (name, f"{elo:+.0f}", f"{low:+.0f} … {high:+.0f}") for name, elo, low, high in _best(fitted)
    ]
    console.print_table(("player", "Elo", "95%"), rows, title="ratings")
    advantage = fitted.first_move_advantage
    print(
        f"moving first is worth {advantage.estimate:+.0f} Elo "
        f"[{advantage.low:+.0f}, {advantage.high:+.0f}]; players average 0"
    )


def _best(fitted: ratings.Ratings) -> list[tuple[str, float, float, float]]:
    """Names, ratings and the ends of their intervals, best first."""
    rows = zip(fitted.names, fitted.ratings, fitted.low, fitted.high, strict=True)
    return sorted(rows, key=lambda row: -row[1])


def _draw(path: pathlib.Path, fitted: ratings.Ratings) -> None:
    """Draws the ratings with their intervals."""
    intervals = {name: ratings.Interval(*rest) for name, *rest in _best(fitted)}
    standalone(interval_chart("Elo, 95% intervals", intervals)).save(path)


main = console.make_main(run, Options, "azjax arena", "nothing was written", specs.HELP)
