"""Players as they are written on the command line, such as `uct:100` or `network@runs/NAME#20`."""

import dataclasses
import functools
import pathlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from azjax import runs
from azjax._commands import command
from azjax._settings import MOST_SIMULATIONS
from azjax.cli import custom
from azjax.cli.specs import KINDS, Spec, parse
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
from azjax.proof import overrides
from azjax.runs.player import Player
from azjax.search import ALGORITHMS, UCT
from azjax.search.evaluators import rollout_evaluator
from azjax.training.memory import check_trees

_FASTEST = 20_000  # Simulations a second that a player with a clock has room for.


def choose_game(specs: Sequence[str], typed: custom.Typed) -> tuple[custom.Typed, Game]:
    """Finds out what is played, and whose network plays where a description names no run.

    Args:
      specs: descriptions of the players.
      typed: the run, game and network that the command line names, if it does.

    Returns:
      What was typed, with the name of the game and with a run: else that of the first player
      who names one, or else the newest; and the game, tic-tac-toe if there is no run.

    Raises:
      ValueError: as `specs.parse`, `custom.check_run` and `custom.find_game` do.
      runs.CheckpointError: if there is no such run.
    """
    named = next(filter(None, (parse(spec).run_dir for spec in specs)), None)
    typed = custom.choose_run(dataclasses.replace(typed, run_dir=typed.run_dir or named))
    of_run = custom.check_run(typed.run_dir, typed).game if typed.run_dir else "tic_tac_toe"
    name = typed.game or of_run
    game = custom.find_parts(typed.parts).game if typed.parts else custom.find_game(name)
    return dataclasses.replace(typed, game=name), game


def make_agent(spec: str, game: Game, typed: custom.Typed = custom.NOTHING) -> Agent:
    """Makes the player that a description such as `puct:50@runs/NAME#20` stands for.

    Args:
      spec: as `specs.HELP` explains.
      game: the rules.
      typed: the run whose network plays where the description names none, and the game and
        the network of one's own that a run may have.

    Raises:
      ValueError: with one sentence, if there is no such player, or not for this game.
      runs.CheckpointError: if its run or checkpoint is not there.
    """
    found = parse(spec)
    if found.checkpoint == "all":
        raise ValueError(f"{spec!r} stands for several players: name one checkpoint, as in #20")
    if not KINDS[found.name].trained:
        return _untrained_agent(found, game)
    typed = dataclasses.replace(typed, game=typed.game or game.name)
    run_dir = _run_of(found, typed)
    player = custom.load_player(run_dir, typed, found.checkpoint)
    agent = _trained_agent(found, player, run_dir)
    return agent._replace(name=f"{agent.name} #{player.iteration}")


def make_agents(
    specs: Sequence[str], game: Game, typed: custom.Typed = custom.NOTHING
) -> list[Agent]:
    """Makes several players, with names that tell them apart.

    Raises:
      ValueError: as `make_agent` does, or if two descriptions are the same.
      runs.CheckpointError: as `make_agent` does.
    """
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
    """Returns one description for each checkpoint that `#all` stands for, oldest first.

    A description without `#all` is returned alone.

    Raises:
      ValueError: if it cannot be read, or there is no checkpoint.
      runs.CheckpointError: if there is no run.
    """
    found = parse(spec)
    if found.checkpoint != "all":
        return [spec]
    run_dir = _run_of(found, typed)
    runs.read_config(run_dir)  # Is it a run?
    known = runs.iterations(run_dir)
    if not known:
        raise ValueError(f"{run_dir} has no checkpoint yet: train on")
    return [f"{spec.removesuffix('#all')}#{iteration}" for iteration in known]


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
        case _:
            return _searcher(spec, game, UCT(), rollout_evaluator(game))


def _trained_agent(spec: Spec, player: Player, run_dir: pathlib.Path) -> Agent:
    evaluate, search = player.parts.evaluate, player.parts.search
    if spec.name == "book":
        return _with_book(spec, player, run_dir)
    if spec.name == "network":
        return network_agent(player.game, evaluate, player.params)
    if spec.name not in ("alphazero", search.algorithm):
        search = ALGORITHMS[spec.name](num_simulations=search.num_simulations)
    return _searcher(spec, player.game, search, evaluate, player.params)


def _with_book(spec: Spec, player: Player, run_dir: pathlib.Path) -> Agent:
    """The network, alone or with a search, and the books of both seats for it."""
    number = spec.number or 0
    paths = [overrides.table_path(run_dir, player.iteration, seat, number) for seat in range(2)]
    books = [overrides.load_table(path, player.game) for path in paths if path.exists()]
    if not books:
        options = custom.run_options(run_dir, runs.read_config(run_dir))
        options += ["--lines", "first", "--simulations", number, "--repair", 12]
        raise ValueError(
            f"{run_dir} has no book for {number} simulations of network #{player.iteration}: make "
            f"one with {command('azjax', 'verify', *options)}"
        )
    moves = [book[:-1] for book in books]  # Without their rounds.
    book = overrides.OverrideTable(*jax.tree.map(lambda *leaves: np.concatenate(leaves), *moves))
    without = spec._replace(name="alphazero" if number else "network")
    agent = _trained_agent(without, player, run_dir)
    return overrides.override_agent(
        player.game, agent, book, f"book({number})" if number else "book"
    )


def _searcher(spec: Spec, game: Game, search: Any, evaluate, params=None) -> Agent:
    """A search with a number of simulations or with a clock, if one tree fits in memory."""
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
    found = spec.run_dir or typed.run_dir
    if found is None:
        raise ValueError(
            f"{spec.text!r} needs the network of a training run: add @RUN_DIR, as in "
            f"{spec.name}@runs/NAME, or --run-dir runs/NAME"
        )
    return found


@functools.cache
def _solve(game: Game) -> solver.Solution:
    return solver.solve(game)
