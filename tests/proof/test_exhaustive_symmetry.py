"""Exhaustive play finds a symmetry violation in a single position, in whichever file it is."""

import numpy as np
import pytest

from azjax.exact import exhaustive, lines
from reference import Position
from reference import tic_tac_toe as rules
from reference.exhaustive_play import explore


@pytest.fixture(scope="module")
def equivariant_moves(solution):
    """`{position: action}` of an equivariant player."""
    moves, rng = {}, np.random.default_rng(3)
    board, player, over = (np.asarray(leaf).tolist() for leaf in solution.decision_states)
    positions = list(map(Position, map(tuple, board), player, over))
    least = {position: rules.least_image(position) for position in positions}
    of_least = {}
    for position in dict.fromkeys(least.values()):
        of_least[position] = rng.choice(rules.legal(position)).item()
    for position in positions:
        name = least[position]
        cells = next(c for c in rules.symmetries() if rules.image(position, c) == name)
        moves[position] = cells[of_least[name]]
    return moves


def position_of(board):
    return Position(tuple(board), int(sum(board)) & 1, False)


def make_act(moves):
    return lambda states: np.array([moves[position_of(board)] for board in states.board.tolist()])


def explore_all(game, moves, seat, folder, **settings):
    *_, last = exhaustive.explore(game, make_act(moves), seat, folder, **settings)
    return last


def test_every_part_is_searched_for_broken_symmetry(tic_tac_toe, equivariant_moves, tmp_path):
    """The player breaks symmetry in one position after four moves, until one is in a later file."""
    reached = {}

    def policy(position):
        if sum(map(abs, position.board)) == 4:
            reached[rules.least_image(position)] = position
        return equivariant_moves[position]

    explore(rules, policy, 0)
    numbers = []
    settings = {"symmetric": True, "compare": True, "part_size": 2}
    for number, position in enumerate(reached.values()):
        after = {move: rules.play(position, move)[0] for move in rules.legal(position)}
        expected = rules.least_image(after[equivariant_moves[position]])
        other = next(move for move in after if rules.least_image(after[move]) != expected)
        folder = tmp_path / str(number)
        last = explore_all(
            tic_tac_toe, equivariant_moves | {position: other}, 0, folder, **settings
        )
        assert last.breaks_symmetry
        [(*line, _)] = exhaustive.symmetry_violations(folder)
        [board] = lines.replay(tic_tac_toe, [tuple(line)]).board.tolist()
        assert rules.least_image(position_of(board)) == rules.least_image(position)
        unlike = []
        for part in sorted((folder / "004").glob("ends-*.npz")):
            with np.load(part) as file:
                unlike.append(len(file["unlike"]))
        numbers.append(unlike.index(1))
        if numbers[-1] > 1:
            break
    assert numbers[-1] > 1
