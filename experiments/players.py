"""Players as they are written on the command line, such as `uct:100` or `network@runs/NAME#20`."""

import dataclasses
import pathlib

from azjax import checkpoint, oracle
from azjax.agents import (
    Agent,
    PersistentConfig,
    alpha_beta_agent,
    anytime_agent,
    minimax_agent,
    network_agent,
    perfect_agent,
    persistent_agent,
    random_agent,
    sampled,
    search_agent,
)
from azjax.evaluators import rollout_evaluator
from azjax.game import Game
from azjax.memory import check_trees
from azjax.player import Player, load
from azjax.search import SearchConfig
from azjax.settings import MOST_SIMULATIONS
from azjax.train import make_parts
from experiments import console
from experiments.specs import KINDS, Spec, parse

_FASTEST = 20_000  # Simulations a second that a player with a clock has room for.
_solutions: dict[str, oracle.Solution] = {}  # By the game's name.


def make_agent(spec: str, game: Game, run_dir: pathlib.Path | None = None) -> Agent:
    """Makes the player that a description such as `puct:50+sampled@runs/NAME#20` stands for.

    Args:
      spec: as `specs.HELP` explains.
      game: the rules.
      run_dir: the run whose network plays where the description names none.

    Raises:
      ValueError: with one sentence, if there is no such player, not for this game, or its
        run or checkpoint is not there.
    """
    found = parse(spec)
    if found.checkpoint == "all":
        raise ValueError(f"{spec!r} stands for several players: name one checkpoint, as in #20")
    if KINDS[found.name].trained:
        player = _load(found, game, run_dir)
        agent = _trained_agent(found, player)
        agent = agent._replace(name=f"{agent.name} #{player.iteration}")
    else:
        agent = _untrained_agent(found, game)
    return sampled(agent) if found.is_sampled else agent


def make_agents(specs: list[str], game: Game, run_dir: pathlib.Path | None = None) -> list[Agent]:
    """Makes several players, with names that tell them apart.

    Raises:
      ValueError: as `make_agent` does, or if two descriptions are the same.
    """
    specs = [one for spec in specs for one in expand(spec, run_dir)]
    for spec in specs:
        if specs.count(spec) > 1:
            raise ValueError(f"the player {spec!r} is listed twice: list it once")
    agents = [make_agent(spec, game, run_dir) for spec in specs]
    names = [agent.name for agent in agents]
    return [
        agent if names.count(agent.name) == 1 else agent._replace(name=spec)
        for spec, agent in zip(specs, agents, strict=True)
    ]


def expand(spec: str, run_dir: pathlib.Path | None = None) -> list[str]:
    """Returns one description for each checkpoint that `#all` stands for, oldest first.

    A description without `#all` is returned alone.

    Raises:
      ValueError: if it cannot be read, or there is no checkpoint.
    """
    found = parse(spec)
    if found.checkpoint != "all":
        return [spec]
    run_dir = _run_of(found, run_dir)
    try:
        checkpoint.read_config(run_dir)
    except checkpoint.CheckpointError as error:
        raise ValueError(str(error)) from error
    known = checkpoint.iterations(run_dir)
    if not known:
        raise ValueError(f"{run_dir} has no checkpoint yet: train on")
    return [f"{spec.removesuffix('#all')}#{iteration}" for iteration in known]


def _untrained_agent(spec: Spec, game: Game) -> Agent:
    if not game.enumerable and spec.name == "perfect":
        raise ValueError(
            f"{game.name} has too many positions to enumerate, so nobody is perfect at it: "
            "use another player, such as uct:100"
        )
    if not game.enumerable and spec.number is None and spec.name in ("minimax", "alphabeta"):
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
        case "learner":
            room = PersistentConfig.capacity * (1 if game.enumerable else 16)
            config = PersistentConfig(capacity=room)
            return persistent_agent(game, dataclasses.replace(config, num_simulations=spec.number))
        case _:
            return _searcher(spec, game, SearchConfig("uct"), rollout_evaluator(game))


def _trained_agent(spec: Spec, player: Player) -> Agent:
    evaluate = make_parts(player.config).evaluate
    if spec.name == "network":
        return network_agent(player.game, evaluate, player.params)
    search = player.config.search
    if spec.name != "alphazero":
        search = dataclasses.replace(search, algorithm=spec.name)
    return _searcher(spec, player.game, search, evaluate, player.params)


def _searcher(spec: Spec, game: Game, search: SearchConfig, evaluate, params=None) -> Agent:
    """A search with a number of simulations or with a clock, if one tree fits in memory."""
    if spec.seconds is not None:
        room = max(256, min(int(_FASTEST * spec.seconds), MOST_SIMULATIONS))
        search = dataclasses.replace(search, num_simulations=room)
        check_trees(search, game, 1)
        name = f"{spec.name}({spec.seconds:g} s)"
        return anytime_agent(game, search, evaluate, params, spec.seconds, name)
    number = spec.number or search.num_simulations
    search = dataclasses.replace(search, num_simulations=number)
    check_trees(search, game, 1)
    return search_agent(game, search, evaluate, params, f"{spec.name}({number})")


def _load(spec: Spec, game: Game, run_dir: pathlib.Path | None) -> Player:
    """Loads a run's checkpoint, and says so if newer ones are damaged."""
    run_dir = _run_of(spec, run_dir)
    try:
        played = checkpoint.read_config(run_dir).game
        if played != game.name:
            raise ValueError(
                f"{run_dir} is a run of {played}, not of {game.name}: use a run of {game.name}"
            )
        step = spec.checkpoint if isinstance(spec.checkpoint, int) else None
        player = load(run_dir, step)
    except checkpoint.CheckpointError as error:
        raise ValueError(str(error)) from error
    for sentence in player.skipped:
        console.note(f"{sentence}; an older one plays")
    return player


def _run_of(spec: Spec, run_dir: pathlib.Path | None) -> pathlib.Path:
    found = spec.run_dir or run_dir
    if found is None:
        raise ValueError(
            f"{spec.text!r} needs the network of a training run: add @RUN_DIR, as in "
            f"{spec.name}@runs/NAME, or --run-dir runs/NAME"
        )
    return found


def _solve(game: Game) -> oracle.Solution:
    if game.name not in _solutions:
        _solutions[game.name] = oracle.solve(game)
    return _solutions[game.name]
