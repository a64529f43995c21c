"""Choose where self-play games continue: in games that the player still loses.

    python examples/counterexamples.py 20    # seeds 0 to 19 for each variant; default: seed 0

`exhaustive.explore` plays the network's moves against every reply. After each iteration, half of
the games in progress are replaced with positions from games that the network loses. Two variants,
for comparison, replace them with random openings or leave them unchanged. Training ends when the
network makes no blunder. The solver is used only for evaluation.
"""

import functools
import pathlib
import sys
import tempfile

import jax
import numpy as np

from azjax.games import choose, rows, solver
from azjax.proof import exhaustive, replies, verify_outputs
from azjax.runs import make_parts, presets
from azjax.training import Games, init, iteration, start_games

parts = make_parts(presets.get("default"))
game, half = parts.game, parts.selfplay.games // 2
step = jax.jit(functools.partial(iteration, parts))


@jax.jit
def answer(variables, states):
    """Returns scores, values and moves of the network."""
    scores, values = parts.evaluate(parts.network.fold(variables), None, states)
    return scores, values, choose(scores, jax.vmap(game.legal_actions)(states))


def from_lost_games(act, rng) -> Games | None:
    """Returns random positions of games that a player loses, or None if it never loses."""
    lost = []
    with tempfile.TemporaryDirectory() as folder:
        for seat in (0, 1):
            place = pathlib.Path(folder, str(seat))
            list(exhaustive.explore(game, act, seat, place))
            lost += exhaustive.lost_games(place)
    if not lost:
        return None
    return Games(*replies.draw_within(game, lost, half, rng))


def from_random_openings(act, rng) -> Games:
    """Returns games with the random openings of self-play."""
    key = jax.random.key(rng.integers(2**31))
    return start_games(parts.selfplay, game, jax.random.split(key, half))


def iterations_to_perfect(solution, begin, seed: int) -> int:
    """Returns the number of iterations until the network makes no blunder.

    `begin(act, rng)` returns new positions for half of the games, or None.
    """
    state, rng = init(parts, jax.random.key(seed)), np.random.default_rng(seed)
    while True:
        state, _ = step(state)
        ask = functools.partial(answer, state.learner.average)
        scores, values, _ = ask(solution.decision_states)
        if not verify_outputs(solution, scores, values).blunders:
            return int(state.iteration)
        # The number of positions varies by ply.
        begun = begin(lambda states, ask=ask: rows.in_batches(ask, (states,), 512)[2], rng)
        if begun is not None:
            put = jax.tree.map(lambda old, new: old.at[:half].set(new), state.games, begun)
            state = state.replace(games=put)


if __name__ == "__main__":
    ways = {"lost games": from_lost_games, "random openings": from_random_openings}
    ways["unchanged"] = lambda act, rng: None
    seeds, solution = range(int(*sys.argv[1:] or [1])), solver.solve(game)
    for name, begin in ways.items():
        needed = [iterations_to_perfect(solution, begin, seed) for seed in seeds]
        print(
            f"{name}: {np.mean(needed):.1f} iterations to perfect, {min(needed)} to {max(needed)}"
        )
