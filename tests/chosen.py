"""What `azjax train` chooses for a command line."""

import pathlib
import types

from azjax.cli import custom, parsing, train


def chosen(*words):
    """Returns the settings, the plan, the preset and the custom code that words choose."""
    given = parsing.scan(words)
    resumed = given.get("run-dir") if "resume" in given else None
    typed = custom.Typed(
        None if resumed is None else pathlib.Path(resumed),
        *map(given.get, ("game", "network", "parts")),
    )
    config, plan, preset = train.choose(words, given, typed)
    return types.SimpleNamespace(config=config, plan=plan, preset=preset, typed=typed)
