"""Plays matches and tournaments: `azjax arena A B … --games N`."""

import dataclasses
import functools
from typing import Annotated

import jax

from azjax._commands import write_note
from azjax._settings import Count, Positive, Range
from azjax.cli import console, custom, players
from azjax.cli.parsing import Place
from azjax.games.base import check_batch
from azjax.players import statistics
from azjax.players.arena import (
    MOST_OPENINGS,
    Match,
    Tally,
    draw_openings,
    rate,
    round_robin,
)


@dataclasses.dataclass(frozen=True)
class Options:
    """Plays a match between every two players, from both seats, and rates them."""

    players: Annotated[tuple[str, ...], Place.POSITIONAL] = ()
    """Two or more players, such as random, perfect, uct:100 or network@runs/NAME#20."""
    games: Positive = 1000
    """Games of each pairing, half of them from each seat."""
    openings: Annotated[int, Range(0, MOST_OPENINGS)] = 0
    """Start from this many different random positions, each from both seats; 0: from the
    starting position."""
    opening_plies: Count = 2
    """Random moves that lead to each of these positions."""
    seed: Annotated[int, Range(0, 2**32 - 1)] = 0
    """Seed of all randomness."""
    typed: custom.Option = custom.NOTHING


def run(options: Options) -> int:
    """Plays all matches and prints the tables."""
    typed, game = players.choose_game(options.players, options.typed)
    agents = players.make_agents(options.players, game, typed)
    if len(agents) < 2:
        raise ValueError("a match needs two players: name 2 players or more")
    key_openings, key_games = jax.random.split(jax.random.key(options.seed))
    openings = None
    if options.openings:
        openings = draw_openings(game, key_openings, options.openings, options.opening_plies)
        if (count := check_batch(game, openings)) < options.openings:
            write_note(f"there are only {count} such openings: all are played")
    with console.progress() as progress:
        total = len(agents) * (len(agents) - 1) // 2 * options.games
        advance = functools.partial(progress.advance, progress.add_task("games", total=total))
        matches = round_robin(game, agents, options.games, key_games, openings, advance)
    fitted = rate(matches)
    _show_matches(matches)
    _show_ratings(fitted)
    return 0


def _show_matches(matches: list[Match]) -> None:
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
            "Two deterministic players play each opening once from each seat, since further games "
            f"would be identical: {', '.join(repeated)}."
        )


def _score(match: Match, tally: Tally) -> str:
    score = statistics.mean_score(tally.wins, tally.draws, tally.losses)
    if match.deterministic:  # Without randomness there is no interval.
        return f"{score.estimate:.3f}"
    return f"{score.estimate:.3f} [{score.low:.2f}, {score.high:.2f}]"


def _show_ratings(fitted: statistics.Ratings) -> None:
    best = zip(fitted.names, fitted.ratings, fitted.low, fitted.high, strict=True)
    rows = [
        (name, f"{elo:+.0f}", f"{low:+.0f} … {high:+.0f}")
        for name, elo, low, high in sorted(best, key=lambda row: -row[1])
    ]
    console.print_table(("player", "Elo", "95%"), rows, title="ratings")
    advantage = fitted.first_move_advantage
    print(
        f"advantage of moving first: {advantage.estimate:+.0f} Elo "
        f"[{advantage.low:+.0f}, {advantage.high:+.0f}]; the average rating is 0"
    )


main = console.make_main(run, Options, "azjax arena", "nothing was written", players.HELP)
