"""One search by the lecture's rules, step by step, and its trees."""

import itertools
from typing import Any
from xml.etree.ElementTree import Element

import jax
import jax.numpy as jnp
import numpy as np

from azjax import games
from azjax.drawing import gallery, node, signed
from azjax.games.base import Game, State, init_batch, legal_action_at
from azjax.games.tic_tac_toe import from_board
from azjax.search import UCT, SearchResult, make_resumable
from azjax.search.evaluators import Evaluator, rollout
from azjax.viz.pictures import draw_state
from azjax.viz.tree import draw_tree
from experiments.lecture.page import figure, table
from experiments.lecture.setup import ROOT_2, Setup

BOARD = (1, -1, 1, 0, -1, 0, 0, 0, 0)  # X to move; O threatens to complete the middle column.
SIMULATIONS = 30  # Simulations from this board.
BUDGETS = (10, 100, 1_000)  # Simulations from the empty board.
_SHOWN = 13  # Maximum nodes of a tree, so that its root is in view on a phone.


def repeatable_rollout(game: Game) -> Evaluator:
    """Plays a random game from each position, always the same one, so that the page can show it."""

    def evaluate(key, _, states):
        keys = jax.vmap(lambda state: _key_of(key, state))(states)
        return jnp.zeros((len(keys), game.num_actions)), rollout(game, keys, states)

    return Evaluator(evaluate)


def _key_of(key: jax.Array, state: State) -> jax.Array:
    return jax.random.fold_in(key, jnp.sum((state.board + 1) * 3 ** jnp.arange(9)))


def play_out(game: Game, key: jax.Array, state: State) -> list[State]:
    """Returns the positions of the random game that `repeatable_rollout` plays."""
    states = [jax.tree.map(jnp.asarray, state)]
    for uniform in jax.random.uniform(_key_of(key, states[0]), (game.max_plies,)):
        if game.is_over(states[-1]):
            break
        action = legal_action_at(game.legal_actions(states[-1]), uniform)
        states.append(game.step(states[-1], action)[0])
    return jax.device_get(states)


def compute(setup: Setup) -> dict:
    """Searches one position simulation by simulation, and the empty board in three stages."""
    game, key = setup.game, setup.key("steps")
    stages = make_resumable(UCT(num_simulations=max(BUDGETS)), game, repeatable_rollout(game))
    begin, grow, finish = map(jax.jit, stages)

    def search(states: State, ends) -> list[SearchResult]:
        """Returns the result after each number of simulations in `ends`."""
        inputs, results, done = (key, jax.random.split(key, 1), states, max(BUDGETS)), [], 0
        tree = begin(*inputs)
        for end in ends:
            tree, done = grow(*inputs, tree, done, end - done), end
            results.append(jax.device_get(finish(*inputs, tree)))
        return results

    start = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], from_board(BOARD))
    results = search(start, range(SIMULATIONS + 1))
    trees = [jax.tree.map(lambda leaf: leaf[0], result.tree) for result in results]
    all_tried = next(k for k, tree in enumerate(trees) if np.isfinite(ucb1(tree, 0)[2].max()))
    steps = []
    for k in sorted({0, all_tried, SIMULATIONS - 1}):
        path = np.flatnonzero(trees[k + 1].node_visits > trees[k].node_visits)  # From the root.
        states = play_out(game, key, _state(trees[k + 1], path[-1]))
        steps.append((k + 1, trees[k], trees[k + 1], path, states))
    return {"steps": steps, "small": results[-1], "large": search(init_batch(game, 1), BUDGETS)}


def ucb1(tree: Any, i: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns n, V and the score of each move: infinity if untried, -infinity if illegal."""
    visits, total = tree.children_visits[i], tree.node_visits[i] - (i == 0)
    means = tree.children_rewards[i] + tree.children_discounts[i] * tree.children_values[i]
    scores = means + ROOT_2 * np.sqrt(np.log1p(total) / np.maximum(visits, 1))
    scores = np.where(visits > 0, scores, np.inf)
    return visits, means, np.where(_state(tree, i).board == 0, scores, -np.inf)


def _state(tree: Any, i: int) -> State:
    return jax.tree.map(lambda leaf: leaf[i], tree.embeddings)


def show(results: dict, page) -> None:
    """Shows three simulations in four phases, and the trees."""
    page.text(
        "X is to move, and O threatens to complete the middle column. A search makes "
        f"{SIMULATIONS} simulations, each with the four phases of the lecture. This page shows the "
        "first one, the first one after every move has been tried, and the last one.",
        "For each move, n is the number of simulations that took it, and V their mean outcome for "
        "the player who makes it: 1 won, 0 drawn, −1 lost. UCB1 is V plus the bonus "
        "√2 √(ln(N + 1) / n). N is the n of the move that led here, or at the root the number of "
        "simulations so far. An untried move has an infinite score; among several, the choice is "
        "random.",
    )
    free = ["" if cell else str(i) for i, cell in enumerate(BOARD)]
    picture = draw_state(games.make("tic_tac_toe"), from_board(BOARD), labels=free)
    page.figure("The position, and the moves in it.", picture.element)
    for number, *step in results["steps"]:
        page.add(node("h3", {"style": "margin: 40px 0 0"}, f"Simulation {number}"))
        page.row(*_phases(*step))
    page.heading("The trees of a search")
    page.text(
        "Each node shows its n as N and its V as Q. P is random: untried moves are tried in the "
        "order of their P, the highest first."
    )
    figures, titles = [], [f"The position above, {SIMULATIONS} simulations."]
    titles += [f"The empty board, {budget:,} simulations." for budget in BUDGETS]
    for title, result in zip(titles, (results["small"], *results["large"]), strict=True):
        tree = draw_tree(games.make("tic_tac_toe"), result, max_nodes=_SHOWN)
        figures.append(figure(title, tree.element))
    page.row(*figures)


def _phases(before: Any, after: Any, path: np.ndarray, states: list[State]) -> list[Element]:
    """Shows the phases of one simulation, from the trees before and after it."""
    choices = [(after.parents[i], after.action_from_parent[i]) for i in path[1:]]
    moves = [f"{'XO'[after.embeddings.player[i]]} {action}" for i, action in choices]
    phases, backups, outcome = [], [], 0
    for k, (i, action) in enumerate(choices):
        title = f"then after {', '.join(moves[:k])}" if k else "1. Selection: at the root"
        visits, means, scores = ucb1(before, i)
        shown = _scores(visits, means, scores, action)
        phases.append(
            figure(f"{title}, {moves[k][0]} takes the move with the highest UCB1.", shown)
        )
        n, old, new = int(visits[action]), float(means[action]), float(ucb1(after, i)[1][action])
        change = f"{signed(old)} → {signed(new)}" if n else signed(new)
        outcome = round((n + 1) * new - n * old)
        row = {"move": moves[k], "outcome": signed(outcome, 0), "n": f"{n} → {n + 1}", "V": change}
        backups.append(row)
    is_new = before.node_visits[path[-1]] == 0
    words = "is new to the tree." if is_new else "is already in the tree: the game is over."
    leaf = draw_state(games.make("tic_tac_toe"), states[0], 88, last=choices[-1][1]).element
    phases.append(figure(f"2. Expansion: the position after {moves[-1]} {words}", leaf))
    words = "random moves to the end" if len(states) > 1 else "none, as the game is over"
    words += f"; {('drawn', 'won', 'lost')[outcome]} for {moves[-1][0]}"
    phases.append(figure(f"3. Rollout: {words}.", _playout(states)))
    words = (
        "4. Back-propagation: the outcome for the player who made a move is averaged into its V."
    )
    return [*phases, figure(words, table(backups[::-1]))]


def _scores(visits: np.ndarray, means: np.ndarray, scores: np.ndarray, taken: int) -> Element:
    rows = []
    for action in np.flatnonzero(scores > -np.inf):
        row = {"move": action, "n": visits[action], "V": "", "bonus": "", "UCB1": "∞"}
        if visits[action]:
            mean, score = means[action], scores[action]
            row |= {"V": signed(mean), "bonus": signed(score - mean), "UCB1": signed(score)}
        rows.append(row | {"": "← taken" if action == taken else ""})
    return table(rows)


def _playout(states: list[State]) -> Element:
    """Draws a random game, board by board."""
    game, captions = games.make("tic_tac_toe"), ["the leaf"]
    pictures = [draw_state(game, states[0], 88)]
    for old, new in itertools.pairwise(states):
        action = np.flatnonzero(old.board != new.board)[0]
        pictures.append(draw_state(game, new, 88, last=action))
        captions.append(f"{'XO'[old.player]} {action}")
    return gallery(pictures, captions).element
