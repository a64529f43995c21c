"""Players as the command line describes them: `uct:100`, `puct:50@runs/NAME#20`."""

import dataclasses
import functools
import pathlib
import re
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from azjax import runs
from azjax._commands import command
from azjax._settings import MOST_SIMULATIONS, did_you_mean
from azjax.cli import console, custom
from azjax.exact import overrides
from azjax.games import solver
from azjax.games.base import Game
from azjax.players import (
    Agent,
    alpha_beta_agent,
    anytime_agent,
    minimax_agent,
    network_agent,
    perfect_agent,
    random_agent,
    search_agent,
)
from azjax.runs import pretrained
from azjax.runs.loading import is_pretrained, read_config
from azjax.runs.player import Player
from azjax.search import ALGORITHMS, UCT
from azjax.search.evaluators import rollout_evaluator
from azjax.training.memory import check_trees
from azjax.training.parts import Parts

HELP = """\
A player is written NAME, NAME:NUMBER or NAME:TIME.

- random: a random legal move
- perfect: from the exact solution, for games that can be enumerated
- minimax:4: looks 4 moves ahead; without a number, to the end of the game
- alphabeta:4: the same result, with alpha-beta pruning
- uct:100: classic Monte Carlo tree search, with 100 random games per move
- network: the network of a training run, without search
- alphazero: the network, with the search of its training
- repaired:32: alphazero:32 with the override table from azjax verify with --repair
- puct:50: the network, with AlphaZero's search
- gumbel:32: the network, with Gumbel AlphaZero's search

- a player that comes with azjax, such as connect_four or hex:6

- a time, as in uct:0.5s: for uct, alphazero, puct and gumbel
- @RUN_DIR: the run whose network plays, as in network@runs/NAME
- #ITERATION: the checkpoint of the run, as in network@runs/NAME#20
- @NAME: the network of a player that comes with azjax, as in puct:200@connect_four
- #all: in a tournament, one player for each checkpoint"""
SHIPPED = "shipped"  # The `Spec.name` of every player that comes with azjax.
_FIRST = "tic_tac_toe"  # The game if none is named.
_FASTEST = 20_000  # Simulations per second, at most; determines the tree size of a timed player.


class Kind(NamedTuple):
    """What may follow a player's name: a number, with its default, or a time, and a run."""

    counts: Literal["moves ahead", "simulations"] | None = None
    default: int | None = None
    timed: bool = False
    trained: bool = False


KINDS = {
    "random": Kind(),
    "perfect": Kind(),
    "minimax": Kind("moves ahead"),
    "alphabeta": Kind("moves ahead"),
    "uct": Kind("simulations", 100, timed=True),
    "network": Kind(trained=True),
    "alphazero": Kind("simulations", timed=True, trained=True),
    "repaired": Kind("simulations", trained=True),
    "puct": Kind("simulations", 50, timed=True, trained=True),
    "gumbel": Kind("simulations", 32, timed=True, trained=True),
    SHIPPED: Kind(trained=True),
}
_SPEC = re.compile(
    r"(?P<name>[^:@#]*)(:(?P<amount>[^@#]*))?(@(?P<run>.*?))?(#(?P<checkpoint>[^#]*))?"
)


class Spec(NamedTuple):
    """A parsed description of a player."""

    text: str
    name: str  # One of `KINDS`.
    number: int | None = None  # Simulations or moves ahead.
    seconds: float | None = None
    run_dir: pathlib.Path | None = None
    checkpoint: int | Literal["all"] | None = None


def parse(text: str) -> Spec:
    """Parses a description; raises a ValueError for an unknown player or what it does not take."""
    match = _SPEC.fullmatch(text)
    name = match["name"] if match else text
    if not match or name not in KINDS or name == SHIPPED:
        if text in pretrained.names():
            return Spec(text, SHIPPED, run_dir=pathlib.Path(text))
        known = [*KINDS][:-1] + [*pretrained.names()]
        names = ", ".join(known) + did_you_mean(name, known)
        raise ValueError(f"unknown player {name!r}: use one of {names}")
    kind, run, step, amount = KINDS[name], match["run"], match["checkpoint"], match["amount"]
    if not kind.trained and (run, step) != (None, None):
        raise ValueError(f"{text!r} names a run, and {name} plays without one: leave it out")
    if run == "":
        raise ValueError(f"{text!r} has no run after the @: add one, as in {name}@runs/NAME")
    if step not in (None, "all"):
        if not re.fullmatch("[0-9]{1,9}", step):
            raise ValueError(f"{text!r} has no checkpoint after the #: use a number, as in #20")
        step = int(step)
    spec = Spec(text, name, kind.default, None, pathlib.Path(run) if run else None, step)
    if amount is None:
        return spec
    if kind.counts is None:
        raise ValueError(f"{text!r} has something after the colon, and {name} takes nothing there")
    if re.fullmatch("[0-9]{1,9}", amount) and 1 <= int(amount) <= MOST_SIMULATIONS:
        return spec._replace(number=int(amount))
    is_time = kind.timed and re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?s", amount)
    if is_time and 0 < (seconds := float(amount.removesuffix("s"))) <= 3600:
        return spec._replace(number=None, seconds=seconds)
    or_time = ", or a time up to 3600s such as 0.5s" if kind.timed else ""
    raise ValueError(
        f"{text!r} needs a number of {kind.counts} after the colon: use 1 to "
        f"{MOST_SIMULATIONS}{or_time}"
    )


def choose_game(specs: Sequence[str], typed: custom.Typed) -> tuple[custom.Typed, Game]:
    """Chooses the game, and the run for descriptions without one.

    The run is the first one that a description names, or the newest, or the player of the game that
    comes with azjax. Without any run and game, the game is tic-tac-toe.
    """
    named = next(filter(None, (parse(spec).run_dir for spec in specs)), None)
    typed = custom.choose_run(dataclasses.replace(typed, run_dir=typed.run_dir or named))
    if typed.run_dir is None and (shipped := typed.game or _FIRST) in pretrained.names():
        typed = dataclasses.replace(typed, run_dir=pathlib.Path(shipped))
    of_run = custom.check_run(typed.run_dir, typed, alone=False).game if typed.run_dir else _FIRST
    name = typed.game or of_run
    game = custom.load_code(typed.parts, Parts).game if typed.parts else custom.find_game(name)
    return dataclasses.replace(typed, game=name), game


def make_agent(spec: str, game: Game, typed: custom.Typed = custom.NOTHING) -> Agent:
    """Makes the player of a description such as `puct:50@runs/NAME#20`; see `HELP`.

    `typed` has the run for a description without one, and the custom game and network of the run.
    """
    parsed = parse(spec)
    if parsed.checkpoint == "all":
        raise ValueError(f"{spec!r} names several players: name one checkpoint, as in #20")
    if not KINDS[parsed.name].trained:
        return _untrained_agent(parsed, game)
    typed = dataclasses.replace(typed, game=typed.game or game.name)
    run_dir = _run_of(parsed, typed)
    player = custom.load_player(run_dir, typed, parsed.checkpoint)
    agent = _trained_agent(parsed, player, run_dir)
    if player.name is not None:
        return agent if parsed.name == SHIPPED else agent._replace(name=spec)
    return agent._replace(name=f"{agent.name} #{player.iteration}")


def make_agents(
    specs: Sequence[str], game: Game, typed: custom.Typed = custom.NOTHING
) -> list[Agent]:
    """Makes several players with different names."""
    specs = [one for spec in specs for one in expand(spec, typed)]
    for spec in specs:
        if specs.count(spec) > 1:
            raise ValueError(f"the player {spec!r} is listed twice: list it once")
    agents = [make_agent(spec, game, typed) for spec in specs]
    names = [agent.name for agent in agents]
    return [
        agent if names.count(agent.name) == 1 else agent._replace(name=spec)
        for spec, agent in zip(specs, agents, strict=True)
    ]


def expand(spec: str, typed: custom.Typed = custom.NOTHING) -> list[str]:
    """Replaces `#all` by each checkpoint of the run, oldest first; keeps other descriptions."""
    parsed = parse(spec)
    if parsed.checkpoint != "all":
        return [spec]
    run_dir = _run_of(parsed, typed)
    read_config(run_dir)  # Raises if it is not a run.
    if is_pretrained(run_dir):
        raise ValueError(f"{run_dir} has one network, not several checkpoints: leave #all out")
    iterations = runs.iterations(run_dir)
    if not iterations:
        raise ValueError(f"{run_dir} has no checkpoint yet: resume the run")
    return [f"{spec.removesuffix('#all')}#{iteration}" for iteration in iterations]


def _untrained_agent(spec: Spec, game: Game) -> Agent:
    if not game.is_small and spec.number is None and spec.name in ("minimax", "alphabeta"):
        raise ValueError(
            f"{spec.name} cannot look to the end of {game.name}: give the moves to look ahead, "
            f"such as {spec.name}:4"
        )
    match spec.name:
        case "random":
            return random_agent(game)
        case "perfect":
            return perfect_agent(game, _solve(game))
        case "minimax":
            return minimax_agent(game, spec.number)
        case "alphabeta":
            return alpha_beta_agent(game, spec.number)
    return _searcher(spec, game, UCT(), rollout_evaluator(game))


def _trained_agent(spec: Spec, player: Player, run_dir: pathlib.Path) -> Agent:
    evaluate, search = player.parts.evaluate, player.parts.search
    if spec.name == "repaired":
        return _repaired_agent(spec, player, run_dir)
    if spec.name == SHIPPED:
        return player.agent
    if spec.name == "network":
        return network_agent(player.game, evaluate, player.params)
    if spec.name not in ("alphazero", search.algorithm):
        search = ALGORITHMS[spec.name](num_simulations=search.num_simulations)
    return _searcher(spec, player.game, search, evaluate, player.params)


def _repaired_agent(spec: Spec, player: Player, run_dir: pathlib.Path) -> Agent:
    """Returns the network or its search, with the override tables of both seats."""
    number = spec.number or 0
    paths = [overrides.table_path(run_dir, player.iteration, seat, number) for seat in range(2)]
    tables = [overrides.load_table(path, player.game) for path in paths if path.exists()]
    if not tables:
        if player.name is not None:
            raise ValueError(
                f"{player.name} comes with its own overrides: write {player.name}, without repaired"
            )
        named = custom.name_run(run_dir, read_config(run_dir))
        raise ValueError(
            f"{run_dir} has no override table for {number} simulations of network "
            f"#{player.iteration}: make one with {command('azjax', 'verify')} {named} --lines "
            f"first --simulations {number} --repair 12"
        )
    moves = [table[:-1] for table in tables]  # Without their rounds.
    table = overrides.OverrideTable(*jax.tree.map(lambda *leaves: np.concatenate(leaves), *moves))
    alone = spec._replace(name="alphazero" if number else "network")
    agent = _trained_agent(alone, player, run_dir)
    name = f"repaired({number})" if number else "repaired"
    return overrides.override_agent(player.game, agent, table, name)


def _searcher(spec: Spec, game: Game, search: Any, evaluate, params=None) -> Agent:
    """Returns a search limited by simulations or time; checks that a tree fits in memory."""
    number = spec.number or search.num_simulations
    if spec.seconds is not None:
        number = max(256, min(int(_FASTEST * spec.seconds), MOST_SIMULATIONS))
    search = dataclasses.replace(search, num_simulations=number)
    check_trees(search, game, 1)
    if spec.seconds is not None:
        name = f"{spec.name}({spec.seconds:g} s)"
        return anytime_agent(game, search, evaluate, params, spec.seconds, name)
    return search_agent(game, search, evaluate, params, f"{spec.name}({number})")


def _run_of(spec: Spec, typed: custom.Typed) -> pathlib.Path:
    run_dir = spec.run_dir or typed.run_dir
    if run_dir is None:
        raise ValueError(
            f"{spec.text!r} needs the network of a training run: add @RUN_DIR, as in "
            f"{spec.name}@runs/NAME, or --run-dir runs/NAME"
        )
    return run_dir


@functools.cache
def _solve(game: Game) -> solver.Solution:
    return console.solve(game)
