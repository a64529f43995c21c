"""A record of what every random key was used for, while compiled programs run."""

import collections
import functools
import inspect

import jax
import numpy as np

_FREE = {"key", "key_data", "wrap_key_data", "key_impl", "PRNGKey"}  # They draw nothing.


class Ledger:
    """Every use of a key, by the key's value.

    A key may be drawn from once, or be split once, or be folded with different numbers.
    """

    def __init__(self, monkeypatch):
        """Wraps the functions of `jax.random`; programs traced from now on tell what they do."""
        self._uses = collections.defaultdict(collections.Counter)
        for name, function in inspect.getmembers(jax.random, inspect.isfunction):
            parameters = list(inspect.signature(function).parameters)
            if name not in _FREE and parameters[:1] == ["key"]:
                monkeypatch.setattr(jax.random, name, self._wrap(name, function))

    def _wrap(self, name, function):
        @functools.wraps(function)
        def wrapped(key, *args, **kwargs):
            number = args[0] if name == "fold_in" else -1
            note = functools.partial(self._note, name)
            jax.debug.callback(note, jax.random.key_data(key), number)
            return function(key, *args, **kwargs)

        return wrapped

    def _note(self, name, data, number):
        use = f"{name} {int(number)}" if name == "fold_in" else name
        self._uses[tuple(np.asarray(data).tolist())][use] += 1

    def counts(self):
        """How many keys each function was called with."""
        jax.effects_barrier()
        return collections.Counter(use.split()[0] for uses in self._uses.values() for use in uses)

    def misused(self):
        """The keys that were used for two things, and for which."""
        jax.effects_barrier()
        return {key: dict(uses) for key, uses in self._uses.items() if not _is_sound(uses)}


def _is_sound(uses):
    folded = all(use.startswith("fold_in") for use in uses)
    return max(uses.values()) == 1 and (folded or len(uses) == 1)
