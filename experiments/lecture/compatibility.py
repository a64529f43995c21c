"""A test of whether a count of the lecture is compatible with ours."""

from collections.abc import Sequence

import numpy as np
from scipy import stats


def count_p_value(observed: Sequence[int], reference: Sequence[int]) -> float:
    """Tests whether wins, draws and losses of a few games are compatible with those of many.

    With Jeffreys' prior, `reference` predicts a Dirichlet-multinomial distribution of the triples
    with as many games as `observed`. Its parameters are `reference + 1/2`.

    Returns:
      The total probability of all triples that are at most as probable as the observed one.

    Raises:
      ValueError: unless both are three whole numbers, 0 or more, with a sum above 0.
    """
    triple = _check_counts("observed", observed)
    parameters = _check_counts("reference", reference) + 0.5
    games = int(triple.sum())
    wins, losses = np.nonzero(np.tri(games + 1)[::-1])  # All with wins + losses <= games.
    triples = np.stack([wins, games - wins - losses, losses], axis=1)
    predicted = stats.dirichlet_multinomial(parameters, games)
    rounding = 1e-6  # Triples of equal probability must compare as equal.
    unlikely = predicted.logpmf(triples) <= predicted.logpmf(triple) + rounding
    return min(float(predicted.pmf(triples)[unlikely].sum()), 1.0)


def _check_counts(name: str, counts: Sequence[int]) -> np.ndarray:
    array = np.asarray(counts)
    if array.shape != (3,) or array.dtype.kind not in "iu" or array.min() < 0 or not array.any():
        wanted = "three whole numbers, 0 or more, with a sum above 0"
        raise ValueError(f"{name} is {array.tolist()}: use {wanted}")
    return array
