"""Matches and tournaments: `python -m experiments.arena A B … --games N`."""

from experiments import interrupts

if __name__ == "__main__":
    interrupts.listen()

import dataclasses
import importlib.util
import json
import os
import pathlib
import sys
from typing import Annotated

import jax
import numpy as np
import tyro
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Table

from azjax import games, ratings
from azjax.agents import Agent
from azjax.arena import MOST_OPENINGS, Match, Tally, random_openings, round_robin
from azjax.game import Game
from azjax.settings import check_range
from experiments import console, players, specs


@dataclasses.dataclass(frozen=True)
class Options:
    """Lets players meet each other, each pairing from both seats."""

    players: Annotated[tuple[str, ...], tyro.conf.Positional]
    """Two or more players, such as random, perfect, uct:100 or network@runs/NAME#20."""
    games: int = 1000
    """Games of each pairing, half of them from either seat."""
    openings: int = 0
    """Start from this many different random positions, each from both seats; 0: from the
    starting position."""
    opening_plies: int = 2
    """Random moves before each of those positions."""
    run_dir: pathlib.Path | None = None
    """The run whose network plays where a player names none."""
    game: str = "tic_tac_toe"
    """The game."""
    seed: int = 0
    """Of all randomness: the same seed gives the same games."""
    plot: pathlib.Path | None = None
    """Draw the ratings and all scores into this PNG."""
    json: pathlib.Path | None = None
    """Write the results there as JSON, too."""

    def __post_init__(self):
        games.make(self.game)
        check_range("--", self, "games", 1)
        check_range("--", self, "openings", 0, MOST_OPENINGS)
        check_range("--", self, "opening_plies", 0)
        check_range("--", self, "seed", 0, 2**32 - 1)
        for path in (self.plot, self.json):
            if path and not path.parent.is_dir():
                raise ValueError(f"{path.parent} is not a folder: make it, or write elsewhere")
        if self.plot and importlib.util.find_spec("matplotlib") is None:
            raise ValueError("--plot needs matplotlib: pip install 'azjax[plots]'")


def run(options: Options) -> int:
    """Plays everything, prints the tables and writes what was asked for."""
    game = games.make(options.game)
    agents = players.make_agents(list(options.players), game, options.run_dir)
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
    interrupts.now.outcome = "perhaps not all was written"
    if options.plot:
        _draw(options.plot, fitted, matches)
    if options.json:
        content = {"matches": [_as_json(match) for match in matches], "ratings": _table(fitted)}
        temporary = options.json.with_name(f"{options.json.name}.tmp")
        temporary.write_text(json.dumps(content, indent=2) + "\n")
        os.replace(temporary, options.json)
    return 0


def _play(options: Options, game: Game, agents: list[Agent], openings, key) -> list[Match]:
    pairings = len(agents) * (len(agents) - 1) // 2
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    with console.progress(*columns) as progress:
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
    table = Table(box=None, padding=(0, 1), caption_justify="left")
    table.add_column("player", no_wrap=True)
    table.add_column("against", no_wrap=True)
    titles = ("moves", "won", "drawn", "lost", "score [95%]", "games", "different")
    for title in titles:
        table.add_column(title, justify="right")
    for match in matches:
        for moves, tally in (("first", match.moving_first), ("second", match.moving_second)):
            score = _score(match, tally)
            counts = (tally.wins, tally.draws, tally.losses)
            table.add_row(
                match.first, match.second, moves, *(f"{n:,}" for n in counts), score,
                f"{tally.games:,}", f"{tally.distinct:,}",
            )  # fmt: skip
    console.print_rich(table)
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
    return f"{found.estimate:.3f} [{found.low:.3f}, {found.high:.3f}]"


def _show_ratings(fitted: ratings.Ratings) -> None:
    table = Table(box=None, padding=(0, 1), title="ratings", title_justify="left")
    table.add_column("player", no_wrap=True)
    for title in ("Elo", "95%"):
        table.add_column(title, justify="right")
    for row in _table(fitted):
        table.add_row(
            row["player"], f"{row['elo']:+.0f}", f"{row['low']:+.0f} … {row['high']:+.0f}"
        )
    console.print_rich(table)
    advantage = fitted.first_move_advantage
    print(
        f"moving first is worth {advantage.estimate:+.0f} Elo "
        f"[{advantage.low:+.0f}, {advantage.high:+.0f}]; players average 0"
    )


def _table(fitted: ratings.Ratings) -> list[dict]:
    """The ratings, best first."""
    rows = zip(fitted.names, fitted.ratings, fitted.low, fitted.high, strict=True)
    found = [
        {"player": name, "elo": float(elo), "low": float(low), "high": float(high)}
        for name, elo, low, high in rows
    ]
    return sorted(found, key=lambda row: -row["elo"])


def _as_json(match: Match) -> dict:
    seats = {
        name: _rates(getattr(match, name), match.deterministic)
        for name in ("moving_first", "moving_second")
    }
    return match._asdict() | seats


def _rates(tally: Tally, deterministic: bool) -> dict:
    """The counts, and the 95% interval of each of their rates, if anything was drawn at random."""
    counts = {name: getattr(tally, name) for name in ("wins", "draws", "losses")}
    intervals = {
        name: None if deterministic else ratings.proportion(count, tally.games)[1:]
        for name, count in counts.items()
    }
    return tally._asdict() | {"intervals": intervals}


def _draw(path: pathlib.Path, fitted: ratings.Ratings, matches: list[Match]) -> None:
    """Draws the ratings with their intervals, and the score of everybody against everybody."""
    from matplotlib.figure import Figure  # An extra, and slow to import.

    rows = _table(fitted)
    names = [row["player"] for row in rows]
    figure = Figure(figsize=(10, 1.6 + 0.5 * len(names)), layout="constrained", dpi=110)
    left, right = figure.subplots(1, 2)
    elo = np.array([row["elo"] for row in rows])
    errors = np.abs([[row[end] for row in rows] - elo for end in ("low", "high")])
    left.errorbar(elo, names, xerr=errors, fmt="o", color="#2166ac", capsize=3)
    left.invert_yaxis()
    left.set(xlabel="Elo, 95% intervals")
    left.grid(axis="x", alpha=0.3)
    scores = np.full((len(names), len(names)), np.nan)
    for match in matches:
        i, j = names.index(match.first), names.index(match.second)
        wins, draws, losses = (
            getattr(match.moving_first, name) + getattr(match.moving_second, name)
            for name in ("wins", "draws", "losses")
        )
        scores[i, j] = (wins + draws / 2) / (wins + draws + losses)
        scores[j, i] = 1 - scores[i, j]
    right.imshow(scores, cmap="RdBu", vmin=0, vmax=1)
    for i, j in zip(*np.nonzero(~np.isnan(scores)), strict=True):
        colour = "white" if abs(scores[i, j] - 0.5) > 0.3 else "black"
        right.text(j, i, f"{scores[i, j]:.2f}", ha="center", va="center", fontsize=8, color=colour)
    ticks = range(len(names))
    right.set_xticks(ticks, names, rotation=40, ha="right", fontsize=8)
    right.set_yticks(ticks, names, fontsize=8)
    right.set_title("score of the row against the column", fontsize=10)
    figure.savefig(path)


def main(arguments: list[str] | None = None) -> int:
    """Runs the program; returns its exit status."""
    return console.run(lambda: run(_parse(arguments)), interrupted="nothing was written")


def _parse(arguments: list[str] | None) -> Options:
    description = f"{Options.__doc__}\n\n{specs.HELP}"
    return console.parse(Options, arguments, "experiments.arena", description=description)


if __name__ == "__main__":
    sys.exit(main())
