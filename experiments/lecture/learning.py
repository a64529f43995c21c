"""The lecture's "learner", a player with a memory, over series of hundreds of games."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

import jax
import jax.numpy as jnp
import numpy as np

from azjax.games import Game, State, init_batch, play, where
from azjax.players import Agent
from azjax.viz.chart import line_chart
from experiments.lecture.cast import Setup, learner, player
from experiments.lecture.page import charts, table, text
from experiments.lecture.persistent import Order, PersistentPlayer


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
ORDERS: tuple[Order, ...] = ("last", "random")  # The lecture's learner uses "last".


def compute(setup: Setup) -> list[dict]:
    """Plays every series many times, each time with a new learner."""
    learners, results = setup.choose(128, 4), []
    for number, series in enumerate(SERIES):
        for order in ORDERS[: setup.choose(2, 1)]:
            key = jax.random.fold_in(setup.key("learning"), 2 * number + ORDERS.index(order))
            players = learner(series.simulations, order), player(series.opponent)
            outcomes = play_series(setup.game, *players, series.games, learners, key)
            results.append(_summarize(series, order, outcomes))
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
    memory, outcomes = player.init_memory(num_series), []
    play_once = _compile(game, player.learn, opponent.act)
    for number in range(num_games):
        key_game = jax.random.fold_in(key, number)
        outcome, memory = play_once(opponent.params, key_game, memory)
        outcomes.append(outcome)
    return np.stack(jax.device_get(outcomes)).astype(np.int8)


class _Carry(NamedTuple):
    """One game of each series; leaves are `[B, ...]`."""

    ply: jax.Array
    states: State
    outcomes: jax.Array
    memory: Any


@functools.lru_cache(maxsize=64)
def _compile(game: Game, learn: Callable, act: Callable) -> Callable:
    """Builds `(params, key, memory) -> (outcomes [B], memory)`, which plays one game per series."""

    def move(params, key, now: _Carry) -> _Carry:
        live = ~jax.vmap(game.is_over)(now.states)
        persistent = jax.vmap(game.player)(now.states) == 0
        key_learn, key_act = jax.random.split(jax.random.fold_in(key, now.ply))

        def play_persistent(memory):
            decision, memory = learn(key_learn, now.states, memory)
            return decision.action, memory

        def play_reply(memory):
            return act(params, key_act, now.states).action, memory

        action, memory = jax.lax.cond(
            jnp.any(live & persistent), play_persistent, play_reply, now.memory
        )
        step = jax.vmap(functools.partial(play, game))(now.states, action)
        reward = jnp.where(live, jnp.where(persistent, step.reward, -step.reward), 0.0)
        states = where(live, step.state, now.states)
        return _Carry(now.ply + 1, states, now.outcomes + reward, memory)

    def is_live(now: _Carry):
        return jnp.any(~jax.vmap(game.is_over)(now.states))

    @functools.partial(jax.jit, donate_argnums=2)
    def play_once(params, key, memory):
        size = len(jax.tree.leaves(memory)[0])
        start = _Carry(jnp.int32(0), init_batch(game, size), jnp.zeros(size), memory)
        end = jax.lax.while_loop(is_live, functools.partial(move, params, key), start)
        return end.outcomes, end.memory

    return play_once


def _summarize(series: Series, order: str, outcomes: np.ndarray) -> dict:
    """Summarizes outcomes `[games, learners]`, where 1 is a win of the learner."""
    counts = np.stack([(outcomes == value).sum(axis=0) for value in (1, 0, -1)])  # [3, learners]
    running = np.cumsum(outcomes, axis=0) / np.arange(1, len(outcomes) + 1)[:, None]
    mean = running.mean(axis=1)
    return {
        "series": series._asdict(),
        "order": order,
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
            "order of expansion": "last first" if row["order"] == "last" else "random",
            "lecture: won / drawn / lost": " / ".join(map(str, series.lecture)),
            "our mean": " / ".join(f"{mean:.1f}" for mean in row["mean counts"]),
            "range": " / ".join(f"{low:.0f}–{high:.0f}" for low, high in ranges),
            "compatible": compatible,
        })  # fmt: skip
    lecture_like = [row for row in results if row["order"] == "last"]
    thinker = next(row for row in lecture_like if row["series"]["opponent"] == "MCTS(40)")
    when, crossing = "does not stay above 0", thinker["crossing"]
    if crossing:
        when = f"stays above 0 from game {crossing} on" if crossing > 1 else "is always above 0"
    return [
        text(
            "The learner moves first. It keeps its statistics, keyed by position, for all moves "
            "and games of a series. The lecture shows one learner; we show "
            f"{learners} independent ones: the mean of their counts, and the range between their "
            "quantiles of 0.5% and 99.5%. A count of the lecture is compatible if its numbers lie "
            "in all three ranges. The lecture's learner tries untried moves from the last cell to "
            "the first; among equally visited moves it plays the one tried first."
        ),
        table(rows),
        charts(
            "Running average of the learner's score (1 = won, 0 = drawn, −1 = lost): mean and "
            "quantiles of 2.5% and 97.5% of all learners, and the lecture's last value.",
            map(_draw_series, lecture_like),
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
