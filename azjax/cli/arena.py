"""Plays matches and tournaments: `azjax arena A B … --games N`."""

import dataclasses
from collections.abc import Sequence
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
    typed: custom.OfRun = custom.RunOptions()


def run(options: Options) -> int:
    """Plays all matches and prints the tables."""
    typed, game = players.choose_game(options.players, options.typed)
    agents = [players.make_agent(spec, game, typed) for spec in options.players]
    key_openings, key_games = jax.random.split(jax.random.key(options.seed))
    openings, count = None, 1
    if options.openings:
        openings = draw_openings(game, key_openings, options.openings, options.opening_plies)
        if (count := check_batch(game, openings)) < options.openings:
            write_note(f"there are only {count} such openings: all are played")
    pairs, per_round = len(agents) * (len(agents) - 1) // 2, 2 * count
    if (games := -(-options.games // per_round) * per_round) != options.games:
        write_note(f"each pairing plays {games} games: every opening equally often from each seat")
    matches: Sequence[Match] = ()
    with console.progress() as progress:
        task = progress.add_task("games", total=pairs * games)
        for matches in round_robin(game, agents, games, key_games, openings):
            tallies = [tally for match in matches for tally in match[2:4]]
            progress.update(task, completed=sum(sum(tally[:3]) for tally in tallies))
    fitted = rate(matches)
    _show_matches(matches)
    _show_ratings(fitted)
    return 0


def _show_matches(matches: Sequence[Match]) -> None:
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
        (name, _signed(elo), f"{_signed(low)} … {_signed(high)}")
        for name, elo, low, high in sorted(best, key=lambda row: -row[1])
    ]
    console.print_table(("player", "Elo", "95%"), rows, title="ratings")
    advantage = fitted.first_move_advantage
    print(
        f"advantage of moving first: {_signed(advantage.estimate)} Elo "
        f"[{_signed(advantage.low)}, {_signed(advantage.high)}]; the average rating is 0"
    )


def _signed(elo: float) -> str:
    return f"{round(elo):+d}"  # No -0.


main = console.make_main(run, Options, "azjax arena", "nothing was written", players.HELP)
