"""What repair concludes about the moves of one position, from a search and from lost games."""

import numpy as np

from azjax.exact.repair import Analysis


def random_analyses():
    """Yields positions with five moves, at least one of them legal."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        legal = rng.random(5) < 0.8
        legal[rng.integers(5)] = True
        refuted = legal & (rng.random(5) < 0.5)
        expected = rng.choice([-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0], 5)
        expected[refuted] = rng.choice([-1.0, 1.0])  # Values of refuted moves must have no effect.
        yield Analysis(legal, expected, refuted, rng.choice(np.flatnonzero(legal)).item())


def test_the_best_move_is_not_a_refuted_one():
    """It is the chosen one, unless that is refuted or another one is clearly better."""
    others = 0
    for analysis in random_analyses():
        left = [move for move in range(5) if analysis.legal[move] and not analysis.refuted[move]]
        best = max(left, key=lambda move: analysis.expected[move], default=analysis.chosen)
        gain = analysis.expected[best] - analysis.expected[analysis.chosen]
        if analysis.chosen in left and gain <= 0.5:
            best = analysis.chosen
        assert (analysis.best, analysis.is_lost) == (best, not left)
        assert analysis.value == max(analysis.expected[analysis.legal])
        others += best != analysis.chosen
    assert others > 100


def test_updates_of_moves_accumulate():
    """The value of a move is the least of its results, and a refuted move stays refuted."""
    rng = np.random.default_rng(1)
    for analysis in random_analyses():
        expected, refuted = analysis.expected.copy(), analysis.refuted.copy()
        for _ in range(8):
            action, value, is_lost = rng.integers(5), rng.uniform(-1, 1), rng.random() < 0.2
            analysis.update(action, value, is_lost)
            expected[action] = value if value < expected[action] else expected[action]
            if is_lost:
                refuted[action] = True
            assert analysis.expected.tolist() == expected.tolist()
            assert analysis.refuted.tolist() == refuted.tolist()
