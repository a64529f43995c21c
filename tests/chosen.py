"""What `azjax train` chooses for a command line."""

import types

from azjax.cli import train


def chosen(*words):
    """Returns the settings, the plan, the preset and the custom code that words choose."""
    given, typed = train.read_words(words)
    config, plan, preset = train.choose(given, typed)
    return types.SimpleNamespace(config=config, plan=plan, preset=preset, typed=typed)
