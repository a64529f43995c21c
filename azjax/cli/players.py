"""Players as the command line describes them: `uct:100`, `puct:50@runs/NAME#20`."""

import dataclasses
import os
import pathlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from azjax._settings import MOST_SIMULATIONS, did_you_mean
from azjax.cli import console, custom
from azjax.cli.verify import folder_of
from azjax.games.base import Game
from azjax.players import (
    Agent,
    minimax_agent,
    network_agent,
    perfect_agent,
    random_agent,
    search_agent,
)
from azjax.players.overrides import state_lookup, with_overrides
from azjax.proof import repair
from azjax.runs import pretrained
from azjax.runs.player import Player, check_name
from azjax.search import ALGORITHMS, UCT
from azjax.search.evaluators import rollout_evaluator
from azjax.training.memory import check_trees
from azjax.training.parts import Parts

HELP = """\
A player is written NAME or NAME:NUMBER.

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
- mctx_gumbel:32, mctx_muzero:32: the network, with a policy of mctx

- a player that comes with azjax, such as connect_four or hex:6

- @RUN_DIR: the run whose network plays, as in network@runs/NAME
- #ITERATION: the checkpoint of the run, as in network@runs/NAME#20
- @NAME: the network of a player that comes with azjax, as in puct:200@connect_four"""
_FIRST = "tic_tac_toe"  # The game if none is named.

_PATTERN = re.compile("[^:@#]+(?::([0-9]{1,7}))?(?:@([^#]+))?(?:#([0-9]{1,9}))?")
_NUMBER, _RUN = "[:NUMBER]", "[@RUN_DIR][#ITERATION]"
_SEARCHES = ("alphazero", "repaired", "puct", "gumbel", "mctx_gumbel", "mctx_muzero")
_FORMS = {  # What may follow a name.
    **dict.fromkeys(("random", "perfect"), ""),
    **dict.fromkeys(("minimax", "alphabeta", "uct"), _NUMBER),
    "network": _RUN,
    **dict.fromkeys(_SEARCHES, _NUMBER + _RUN),
}
_SIMULATIONS = {"uct": 100, "puct": 50, "gumbel": 32}  # By default.


class Spec(NamedTuple):
    """A parsed description of a player."""

    name: str  # One of `_FORMS`, or `shipped` for a player that comes with azjax.
    number: int | None = None  # Simulations or moves ahead.
    run_dir: pathlib.Path | None = None
    checkpoint: int | None = None


def parse(text: str) -> Spec:
    """Parses a description; raises a ValueError for an unknown player or what it does not take."""
    name = re.split("[:@#]", text)[0]
    if name not in _FORMS:
        if text in pretrained.names():
            check_name(text)
            return Spec("shipped", run_dir=pathlib.Path(text))
        if os.path.isdir(text):
            raise ValueError(f"{text} is a folder: write network@{text} if it is that of a run")
        known = [*_FORMS, *pretrained.names()]
        names = f"{', '.join(known)}, or human in azjax play{did_you_mean(name, known)}"
        raise ValueError(f"unknown player {name!r}: use one of {names}")
    form, match = _FORMS[name], _PATTERN.fullmatch(text)
    number, run_dir, checkpoint = match.groups() if match else (None, None, None)
    allowed = (number is None or _NUMBER in form) and (
        run_dir is checkpoint is None or _RUN in form
    )
    if not match or not allowed or not 1 <= int(number or 1) <= MOST_SIMULATIONS:
        most = f", a number up to {MOST_SIMULATIONS}" if _NUMBER in form else ""
        raise ValueError(f"{text!r} is not a player: write {name}{form}{most}")
    return Spec(
        name,
        int(number) if number else None,
        pathlib.Path(run_dir) if run_dir else None,
        int(checkpoint) if checkpoint else None,
    )


def choose_game(specs: Sequence[str], typed: custom.RunOptions) -> tuple[custom.RunOptions, Game]:
    """Chooses the game, and the run for descriptions without one.

    The run is the first one that a description names, or the newest, or the player of the game that
    comes with azjax. Without any run and game, the game is tic-tac-toe.
    """
    if typed.game and not typed.parts:
        custom.find_game(typed.game)  # Its name may be wrong.
    named = next(filter(None, (parse(spec).run_dir for spec in specs)), None)
    run_dir = custom.choose_run(dataclasses.replace(typed, run_dir=typed.run_dir or named))
    shipped = typed.game or _FIRST
    is_free = not os.path.isdir(shipped)  # A player that nobody named must not be an error.
    if run_dir is None and is_free and shipped in pretrained.names():
        run_dir = pathlib.Path(shipped)
    of_run = custom.check_run(run_dir, typed).game if run_dir else _FIRST
    name = typed.game or of_run
    game = custom.load_code(typed.parts, Parts).game if typed.parts else custom.find_game(name)
    return dataclasses.replace(typed, run_dir=run_dir, game=name), game


def make_agent(spec: str, game: Game, typed: custom.RunOptions) -> Agent:
    """Makes the player of a description such as `puct:50@runs/NAME#20`, its name; see `HELP`.

    `typed` has the run for a description without one, and the custom game and network of the run.
    """
    return _make_agent(spec, game, typed)._replace(name=spec)


def _make_agent(spec: str, game: Game, typed: custom.RunOptions) -> Agent:
    parsed = parse(spec)
    match parsed.name:
        case "random":
            return random_agent(game)
        case "perfect":
            return perfect_agent(game, console.solve(game))
        case "uct":
            return _searcher(parsed, game, UCT(), rollout_evaluator(game))
        case "minimax" | "alphabeta":
            if not game.is_small and parsed.number is None and game.chance is None:
                raise ValueError(
                    f"{spec} cannot look to the end of {game.name}: give the moves to look ahead, "
                    f"such as {spec}:4"
                )
            return minimax_agent(game, parsed.number, prune=parsed.name == "alphabeta")
    run_dir = parsed.run_dir or typed.run_dir
    if run_dir is None:
        raise ValueError(
            f"{spec!r} needs the network of a training run: add @RUN_DIR, as in "
            f"{parsed.name}@runs/NAME, or --run-dir runs/NAME"
        )
    typed = dataclasses.replace(typed, game=typed.game or game.name)
    player = custom.load_player(run_dir, typed, parsed.checkpoint)
    search, evaluate = player.parts.search, player.parts.evaluate
    match parsed.name:
        case "shipped":
            return player.agent
        case "network":
            return network_agent(player.game, evaluate, player.params)
        case "repaired":
            return _repaired_agent(parsed.number or 0, player, run_dir)
    if parsed.name not in ("alphazero", search.algorithm):
        search = ALGORITHMS[parsed.name](num_simulations=search.num_simulations)
    return _searcher(parsed, player.game, search, evaluate, player.params)


def _repaired_agent(number: int, player: Player, run_dir: pathlib.Path) -> Agent:
    """Returns the network, or its search for a number, with the override tables of both seats."""
    folder = folder_of(player.name) if player.name else run_dir
    paths = [repair.table_path(folder, player.iteration, seat, number) for seat in range(2)]
    tables = [repair.load_table(path, player.game) for path in paths if path.exists()]
    if not tables:
        raise ValueError(
            f"{run_dir} has no override table for {number} simulations of network "
            f"#{player.iteration}: azjax verify {run_dir} --lines first --simulations {number} "
            "--repair 12 makes one for the newest network"
        )
    moves = [(table.states, table.actions) for table in tables]
    moves = jax.tree.map(lambda *leaves: np.concatenate(leaves), *moves)
    return with_overrides(player.with_simulations(number), state_lookup(*moves))


def _searcher(spec: Spec, game: Game, search: Any, evaluate, params=None) -> Agent:
    number = spec.number or _SIMULATIONS.get(spec.name, search.num_simulations)
    search = dataclasses.replace(search, num_simulations=number)
    check_trees(search, game, 1)
    return search_agent(game, search, evaluate, params)
