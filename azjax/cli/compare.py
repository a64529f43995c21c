"""Compares settings by exact error: `azjax compare --vary search.algorithm=puct,gumbel`."""

import dataclasses
import itertools
import math
import pathlib
import statistics
from typing import Annotated

import numpy as np

from azjax import _processes as processes
from azjax import comparison
from azjax._settings import Fraction, Positive, Range
from azjax.cli import console, custom
from azjax.cli.parsing import build, read
from azjax.cli.train import choose_new
from azjax.comparison import Curves, Effect
from azjax.runs.config import Config, is_custom
from azjax.training import Parts
from azjax.viz.chart import write_comparison


@dataclasses.dataclass(frozen=True)
class Options:
    """Trains many seeds with each of several settings, and compares their exact errors."""

    game: str = "tic_tac_toe"
    """The game: tic_tac_toe, hex:3, othello:4, … or a custom one: FILE.py:FUNCTION. It must have
    few enough positions to enumerate, or labelled positions."""
    preset: str | None = None
    """Settings to vary, as in `azjax train`. Default: the preset for the game."""
    smoke: bool = False
    """Use tiny settings, to see the whole program work in seconds."""
    vary: tuple[str, ...] = ()
    """Settings and their values, such as search.algorithm=puct,gumbel. Several are combined. All
    are compared with the first combination."""
    seeds: Annotated[int, Range(1, 65_536)] = 16
    """Number of players per setting; their seeds are 0, 1, 2 and so on."""
    iterations: Positive | None = None
    """Iterations of the first setting. The others make as many network evaluations. Default: 100,
    or those of the comparison that continues."""
    target: Fraction = 0.0
    """Compare the evaluations after which the error is at most this; if fewer than half of the
    seeds of a setting get there, compare the last errors."""
    out: pathlib.Path = pathlib.Path("comparison.json")
    """The results. The page next to it has the same name. A comparison that was interrupted
    continues with the settings that the file lacks."""

    def __post_init__(self):
        if self.out.suffix != ".json":
            raise ValueError(f"--out is {self.out}: name a file that ends in .json")


def run(options: Options) -> int:
    """Compares the settings; returns 0."""
    processes.set_cpu_devices(processes.cores())
    settings = _combine(options)
    with console.progress() as bar:
        task = bar.add_task("compiling", total=None)
        result = comparison.compare(
            settings,
            options.out,
            seeds=options.seeds,
            iterations=options.iterations,
            tell=lambda sentence: bar.update(task, description=sentence),
        )
    effects = result.effects(options.target)
    _show(options.target, result.curves, effects)
    page = write_comparison(options.out.with_suffix(".html"), result)
    print(f"results: {options.out}\npage: {page}")
    return 0


def _combine(options: Options) -> dict[str, Config | Parts]:
    """Returns the combinations of all values, by what distinguishes them.

    Those of a custom game are parts.
    """
    varied = []
    for text in options.vary:
        name, equals, values = text.partition("=")
        if not (name and equals and values):
            raise ValueError(f"--vary {text} has no values: write SETTING=VALUE,VALUE")
        if name in ("game", "seed"):
            raise ValueError(f"--vary {text} is not a setting: use --game, or --seeds")
        varied.append([(name, value) for value in values.split(",")])
    base = {"preset": options.preset, "smoke": options.smoke}
    typed = custom.RunOptions(game=options.game)
    settings: dict[str, Config | Parts] = {}
    for chosen in itertools.product(*varied):
        words = [word for pair in chosen for word in _spell(*pair)]
        given = base | read(Config(), words, "azjax train")
        config = build(choose_new(given, typed)[0], given)
        name = " ".join(f"{name}={value}" for name, value in chosen) or "default"
        settings[name] = custom.parts_for(config, typed) if is_custom(options.game) else config
    return settings


def _spell(name: str, value: str) -> list[str]:
    """Returns the words of a command line that set a value; a bool has none."""
    if value not in ("true", "false"):
        return [f"--{name}", value]
    section, dot, field = name.rpartition(".")
    return [f"--{section}{dot}{'' if value == 'true' else 'no-'}{field}"]


def _show(target: float, curves: list[Curves], effects: list[Effect]) -> None:
    rows = []
    for one, effect in zip(curves, [None, *effects], strict=True):
        cost = one.cost(target)
        reached, middle = np.count_nonzero(np.isfinite(cost)), np.median(cost)
        rows.append(
            (
                one.name,
                f"{reached} of {len(cost)}",
                f"{middle:,.0f}" if math.isfinite(middle) else "–",
                f"{statistics.median(one.errors[-1]):.2%}",
                "–" if one.searched is None else f"{statistics.median(one.searched):.2%}",
                f"{one.seconds[-1]:.1f}",
                "" if effect is None else "{:.2f} [{:.2f}, {:.2f}]".format(*effect.ratio),
                "" if effect is None else f"{effect.p_value:.3f}",
            )
        )
    errors = f"error {target:.2%}", "evaluations", "last error", "with search"
    title = f"ratios of {effects[0].measure}" if effects else ""
    console.print_table(("setting", *errors, "seconds", "ratio [95%]", "p"), rows, title=title)


main = console.make_main(run, Options, "azjax compare", "run it again to continue")
