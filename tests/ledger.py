"""A ledger of the use of every random key while compiled programs run."""

import collections
import functools
import inspect

import jax
import numpy as np

_FREE = {"key", "key_data", "wrap_key_data", "key_impl", "PRNGKey"}  # They do not draw.


class Ledger:
    """Every use of a key, by its value.

    A key may be used for one draw, or one split, or folds with different numbers.
    """

    def __init__(self, monkeypatch):
        """Wraps the functions of `jax.random`, so that programs traced later record their use."""
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
        """Returns the number of keys for each function."""
        jax.effects_barrier()
        return collections.Counter(use.split()[0] for uses in self._uses.values() for use in uses)

    def misused(self):
        """Returns the keys that were used twice, with their uses."""
        jax.effects_barrier()
        return {key: dict(uses) for key, uses in self._uses.items() if not _is_sound(uses)}


def _is_sound(uses):
    folded = all(use.startswith("fold_in") for use in uses)
    return max(uses.values()) == 1 and (folded or len(uses) == 1)
