"""The lecture's "learner", a player with a memory, over series of hundreds of games."""

import functools
from typing import NamedTuple
from xml.etree.ElementTree import Element

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import Game, init_batch, play
from azjax.players import Agent
from azjax.viz.chart import line_chart
from experiments.lecture.cast import Setup, player
from experiments.lecture.page import charts, table, text
from experiments.lecture.persistent import PersistentPlayer, make_persistent


class Series(NamedTuple):
    """A series of games of the lecture; the learner moves first."""

    simulations: int  # Simulations of the learner.
    opponent: str
    games: int
    lecture: tuple[int, int, int]  # Won by the learner, drawn, lost.


SERIES = (
    Series(10, "MCTS(10)", 100, (86, 6, 8)),
    Series(10, "MCTS(40)", 375, (207, 150, 18)),
    Series(10, "minimax", 375, (0, 366, 9)),
    Series(20, "minimax", 375, (0, 372, 3)),
    Series(50, "minimax", 375, (0, 375, 0)),
)
_LECTURE_CROSSING = 75  # Games for which the thinker, MCTS(40), leads in the lecture's plot.
_ENOUGH = 100  # Learners needed for a 99% range.
_WINDOW = 10  # Games in the moving average that determines the crossing.


def compute(setup: Setup) -> list[dict]:
    """Plays every series many times, each time with a new learner."""
    learners, results = setup.choose(128, 4), []
    for number, series in enumerate(SERIES):
        key = jax.random.fold_in(setup.key("learning"), number)
        learner = make_persistent(setup.game, setup.solution, series.simulations)
        players = learner, player(series.opponent)
        outcomes = play_series(setup.game, *players, series.games, learners, key)
        results.append(_summarize(series, outcomes))
    return results


def play_series(
    game: Game,
    player: PersistentPlayer,
    opponent: Agent,
    num_games: int,
    num_series: int,
    key: jax.Array,
) -> np.ndarray:
    """Plays several series as one batch, each with a separate memory.

    The persistent player moves first in every game. The players must move in turn.

    Returns:
      `int8 [num_games, num_series]`, 1 = won by the persistent player, 0 = drawn, -1 = lost.
    """
    move = jax.vmap(functools.partial(play, game))

    def play_turn(key, turn, now):
        """Makes a move of each player; finished games do not change."""
        states, outcomes, memory = now
        key_learn, key_act = jax.random.split(jax.random.fold_in(key, turn))
        actions, memory = player.learn(key_learn, states, memory)
        step = move(states, actions)
        reply = move(step.state, opponent.act(opponent.params, key_act, step.state).action)
        return reply.state, outcomes + step.reward - reply.reward, memory

    @functools.partial(jax.jit, donate_argnums=1)
    def play_once(key, memory):
        start = init_batch(game, num_series), jnp.zeros(num_series), memory
        turns = (game.max_plies + 1) // 2
        _, outcomes, memory = jax.lax.fori_loop(0, turns, functools.partial(play_turn, key), start)
        return outcomes, memory

    memory, outcomes = player.init_memory(num_series), []
    for number in range(num_games):
        outcome, memory = play_once(jax.random.fold_in(key, number), memory)
        outcomes.append(outcome)
    return np.stack(jax.device_get(outcomes)).astype(np.int8)


def _summarize(series: Series, outcomes: np.ndarray) -> dict:
    """Summarizes outcomes `[games, learners]`, where 1 is a win of the learner."""
    counts = np.stack([(outcomes == value).sum(axis=0) for value in (1, 0, -1)])  # [3, learners]
    running = np.cumsum(outcomes, axis=0) / np.arange(1, len(outcomes) + 1)[:, None]
    mean = running.mean(axis=1)
    return {
        "series": series._asdict(),
        "learners": outcomes.shape[1],
        "mean counts": counts.mean(axis=1).tolist(),
        "count ranges": np.quantile(counts, [0.005, 0.995], axis=1).T.tolist(),
        "per game": outcomes.mean(axis=1).tolist(),
        "running": mean.tolist(),
        "running range": np.quantile(running, [0.025, 0.975], axis=1).tolist(),
        "crossing": _crossing(outcomes.mean(axis=1)),
        "behind": float((running[:_LECTURE_CROSSING][-1] <= 0).mean()),
    }


def _crossing(per_game: np.ndarray) -> int | None:
    """Returns the game after which the moving average stays above 0; None if it never does."""
    smooth = np.convolve(per_game, np.ones(_WINDOW) / _WINDOW, mode="valid")
    behind = np.flatnonzero(smooth <= 0)
    if not len(behind):
        return 1
    last = int(behind[-1]) + _WINDOW
    return last if last < len(per_game) else None


def show(results: list[dict]) -> list[Element]:
    """Shows the table of counts and the running averages."""
    rows, learners = [], results[0]["learners"]
    for row in results:
        series, ranges = Series(*row["series"].values()), row["count ranges"]
        pairs = zip(series.lecture, ranges, strict=True)
        compatible = "yes" if all(low <= count <= high for count, (low, high) in pairs) else "no"
        if learners < _ENOUGH:
            compatible = f"– a range needs {_ENOUGH} learners, not {learners}"
        rows.append({
            "pairing": f"learner({series.simulations}) – {series.opponent}, {series.games} games",
            "lecture: won / drawn / lost": " / ".join(map(str, series.lecture)),
            "our mean": " / ".join(f"{mean:.1f}" for mean in row["mean counts"]),
            "range": " / ".join(f"{low:.0f}–{high:.0f}" for low, high in ranges),
            "compatible": compatible,
        })  # fmt: skip
    thinker = next(row for row in results if row["series"]["opponent"] == "MCTS(40)")
    when, crossing = "does not stay above 0", thinker["crossing"]
    if crossing:
        when = f"stays above 0 from game {crossing} on" if crossing > 1 else "is always above 0"
    return [
        text(
            "The learner moves first. It keeps its statistics, keyed by position, for all moves "
            "and games of a series. The lecture shows one learner; we show "
            f"{learners} independent ones: the mean of their counts, and the range between their "
            "quantiles of 0.5% and 99.5%. A count of the lecture is compatible if its numbers lie "
            "in all three ranges. Untried moves are tried from the last cell to the first; among "
            "equally visited moves the one tried first is played."
        ),
        table(rows),
        charts(
            "Running average of the learner's score (1 = won, 0 = drawn, −1 = lost): mean and "
            "quantiles of 2.5% and 97.5% of all learners, and the lecture's last value.",
            map(_draw_series, results),
        ),
        text(
            "Against the thinker, MCTS(40), which has four times as many simulations, the "
            f"learners' mean score over {_WINDOW} games {when}. In the lecture the thinker leads "
            f"for about {_LECTURE_CROSSING} games. After this many games, the total score of "
            f"{thinker['behind']:.0%} of our learners is not above 0."
        ),
    ]


def _draw_series(row: dict) -> Element:
    series = Series(*row["series"].values())
    won, _, lost = series.lecture
    last = [(won - lost) / series.games] * series.games
    lines = {"learner": row["running"], "lecture's last value": last}
    title = f"learner({series.simulations}) – {series.opponent}"
    games, bands = list(range(1, series.games + 1)), {"learner": tuple(row["running range"])}
    return line_chart(title, games, lines, x_label="game", bands=bands)
