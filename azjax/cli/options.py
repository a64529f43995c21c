"""The command line of `azjax train`: the game, the preset and the kinds choose the defaults."""

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Annotated, Literal

from azjax import runs
from azjax._settings import list_changes
from azjax.cli import custom
from azjax.cli.parsing import Line, Place, choose_kinds, fill, read, spell
from azjax.games.base import Game
from azjax.program import choose_settings
from azjax.runs.config import Config, CustomNetworkConfig, is_custom
from azjax.runs.plan import Plan

_PROG = "azjax train"


@dataclasses.dataclass(frozen=True)
class Options:
    """Trains AlphaZero by self-play, and verifies or evaluates the network during training."""

    config: Annotated[Config, Place.FLAT]
    plan: Annotated[Plan, Place.FLAT]
    run_dir: pathlib.Path | None = None
    """Folder for checkpoints, metrics, certificate and report. Default: a new folder in runs/."""
    resume: bool = False
    """Continue the run in --run-dir exactly where its newest checkpoint stopped."""
    log: tuple[Literal["tensorboard", "wandb"], ...] = ()
    """Also send the metrics to TensorBoard (files in the run directory) or Weights & Biases."""
    distributed: bool = False
    """Run as one of several processes that train together, all with the same options."""
    typed: Annotated[custom.Typed, Place.HIDDEN] = custom.NOTHING
    """The custom game, network or parts that the command line names."""
    given: Annotated[tuple[str, ...], Place.HIDDEN] = ()
    """Names of the settings that the command line has, such as `selfplay.games`."""

    def __post_init__(self):
        if self.distributed and self.run_dir is None:
            raise ValueError(
                "--distributed needs a folder that all processes share: add --run-dir runs/NAME"
            )
        if self.resume and self.run_dir is None:
            raise ValueError("--resume needs the run to continue: add --run-dir runs/NAME")


def parse(arguments: list[str], prepare: Callable[[Options], None] = lambda _: None) -> Options:
    """Parses the command line; presets, kinds and resumed runs determine the defaults.

    Args:
      arguments: the command line.
      prepare: called once, before the code of a custom game runs, which may start JAX. Its argument
        has the final `plan.cpu_devices`, `distributed` and `given`.
    """
    line = read(arguments)
    given = tuple(line.options)
    # A run records these with the digest of their file.
    typed = custom.Typed(**{name: line.get(name) for name in ("game", "network", "parts")})
    line = line._replace(
        options={k: v for k, v in line.options.items() if k not in ("game", "network", "parts")}
    )
    if "resume" in given and "run_dir" in given:
        options = _parse_resumed(line, typed, pathlib.Path(line.get("run_dir")))
        prepare(options)
    elif typed.game is not None and custom.is_code(typed.game):
        if not line.asks_for_help:
            prepare(_parse_new(line, typed, given))
        options = _parse_new(line, typed, given, custom.find_game(typed.game))
    else:
        options = _parse_new(line, typed, given)
        prepare(options)
    config = options.config
    if typed.parts is not None and not options.resume:
        config = dataclasses.replace(config, game=custom.find_parts(typed.parts).game.name)
    return dataclasses.replace(options, config=config, typed=typed)


def _parse_resumed(line: Line, typed: custom.Typed, run_dir: pathlib.Path) -> Options:
    """Parses the command line of a resumed run, which keeps its settings."""
    config = custom.check_run(run_dir, typed)
    saved = Options(config, runs.read_settings(run_dir / "plan.json", Plan), run_dir, True)
    options = fill(saved, line, _PROG)
    fixed = ("preset", "smoke", "cpu_devices")
    changes = [change for change in list_changes(saved.plan, options.plan) if change[0] in fixed]
    for name, old, new in changes + list_changes(saved.config, options.config):
        raise ValueError(
            f"a resumed run keeps its settings, and {spell(name)} was {old!r}, not {new!r}: leave "
            "it out, or start a new run in another --run-dir"
        )
    return options


def _parse_new(
    line: Line, typed: custom.Typed, given: tuple[str, ...], game: Game | None = None
) -> Options:
    """Parses the command line of a new run.

    If `game` is None, a custom game has the defaults of the preset `default`.
    """
    for name in ("game", "network"):
        if typed.parts and getattr(typed, name) is not None:
            raise ValueError(
                f"--parts has its own {name}: leave --{name} out, or leave --parts out"
            )
    if typed.network is not None and "network.kind" in given:
        raise ValueError("--network names a custom network: leave --network.kind out")

    def change(config: Config) -> Config:
        if typed.parts is not None:
            config = dataclasses.replace(config, parts=custom.identify(typed.parts))
        if typed.network is not None:
            network = CustomNetworkConfig(source=custom.identify(typed.network))
            config = dataclasses.replace(config, network=network)
        return choose_kinds(config, line)

    name = typed.game and custom.identify(typed.game)
    is_unknown = name is not None and is_custom(name) and game is None
    preset = line.get("preset", "default" if is_unknown else None)
    config, plan = choose_settings(name, game, preset=preset, smoke="smoke" in given, change=change)
    return fill(Options(config, plan, given=given), line, _PROG)
