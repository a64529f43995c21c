"""Components of games with stones on a grid: state, planes, symmetries, text and pictures."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from azjax import drawing
from azjax._settings import checked
from azjax.games.base import Display, Game, Symmetries, guard_step

LARGEST = 32  # Rows and columns; larger numbers are typing errors.
ENCODINGS = ("absolute", "relative")  # The encodings of `observation_planes`.


class State(NamedTuple):
    """A position."""

    board: jax.Array  # `int8 [rows * columns]`, row 0 on top: 1 = X, -1 = O, 0 = empty.
    player: jax.Array  # `int8 []`, who is to move: 0 = X, 1 = O.
    over: jax.Array  # `bool []`, whether a player has won or no move is left.


def check_board(name: str, rows: int, columns: int, least: tuple[int, int] = (1, 1)) -> None:
    """Raises ValueError if a board has fewer rows or columns than `least`, or more than 32."""
    if not (least[0] <= rows <= LARGEST and least[1] <= columns <= LARGEST):
        raise ValueError(
            f"{name} has no board of {rows} by {columns}: use {least[0]} to {LARGEST} rows and "
            f"{least[1]} to {LARGEST} columns"
        )


def start(board: np.ndarray) -> State:
    """Returns the position of an unfinished game with X to move."""
    return State(jnp.asarray(board.ravel(), jnp.int8), jnp.int8(0), jnp.bool_(False))


def make_game(
    shape: tuple[int, int],
    num_actions: int,
    legal_actions: Callable[[Any], jax.Array],
    move: Callable[[Any, jax.Array], tuple[Any, jax.Array]],
    **others: Any,
) -> Game:
    """Makes a game on rows and columns, whose states have the fields of `State`.

    `move` is `Game.step` for legal actions. Fields of `Game` that follow from `State` are optional.
    """

    def observe(state, encoding):
        return observation_planes(state.board, state.player, shape, encoding)

    fields: dict[str, Any] = {
        "num_actions": num_actions,
        "encodings": ENCODINGS,
        "step": guard_step(num_actions, legal_actions, move),
        "legal_actions": legal_actions,
        "is_over": lambda state: state.over,
        "player": lambda state: state.player,
        "observe": observe,
    }
    return Game(**fields | others)


def observation_planes(
    board: jax.Array, player: jax.Array, board_shape: tuple[int, int], encoding: str
) -> jax.Array:
    """Encodes a board of stones `int8 [H * W]` as planes `bool [H, W, C]`.

    `"absolute"`: first player's stones, second player's stones, and whether the first player is to
    move. `"relative"`: the mover's stones, the opponent's.
    """
    checked("encoding", encoding, Literal[*ENCODINGS])
    mover = 1 - 2 * player if encoding == "relative" else 1
    planes = [board == mover, board == -mover]
    if encoding == "absolute":
        planes.append(jnp.full(board.shape, player == 0))
    return jnp.stack(planes, axis=-1).reshape(*board_shape, len(planes))


def diagonals(n: int) -> np.ndarray:
    """Returns `int32 [4, n * n]`: identity, half turn, and reflections in both diagonals."""
    grid = np.arange(n * n, dtype=np.int32).reshape(n, n)
    turned = grid[::-1, ::-1]
    return np.stack([copy.ravel() for copy in (grid, turned, grid.T, turned.T)])


def with_pass(cells: np.ndarray) -> Symmetries:
    """Returns the symmetries of a game with an action for each cell and one more, for none."""
    passing = np.full((len(cells), 1), cells.shape[1], np.int32)
    return Symmetries(cells=cells, actions=np.concatenate([cells, passing], axis=1))


def bound_positions(fillings: Sequence[int]) -> int:
    """Bounds the number of positions, by how many sets of cells each number of stones can occupy.

    Half of the stones, rounded down, belong to O.
    """
    return sum(ways * math.comb(n, n // 2) for n, ways in enumerate(fillings))


def cell_names(rows: int, columns: int) -> tuple[str, ...]:
    """Returns the names of the cells, row by row; `a1` is the upper left one."""
    return tuple(f"{column_name(c)}{r + 1}" for r in range(rows) for c in range(columns))


def column_name(column: int) -> str:
    """Returns the letter of a column, or two letters after `z`: `aa`."""
    first, last = divmod(column, 26)
    return (chr(ord("a") + first - 1) if first else "") + chr(ord("a") + last)


def make_display(
    shape: tuple[int, int],
    names: Sequence[str] | Callable[[Any], Sequence[str]],
    find_cells: Callable[[Any, bool], np.ndarray] | None = None,
    render: Callable[[Any], str] | None = None,
    cell_size: float = 30,
    **look: Any,
) -> Display:
    """Makes the display of a game with stones on a grid.

    Args:
      shape: rows and columns.
      names: the names of the actions, or `Display.name_actions`.
      find_cells: `(state, is_made) -> int [A]`, the cell to which each action leads: an action of
        the mover or, if it is made already, of the opponent. Other numbers mean no cell. The
        default is the number of the action.
      render: see `Display`; the default is `render_board`.
      cell_size: default width of a cell in pixels.
      **look: further arguments of `drawing.board`.
    """
    count = shape[0] * shape[1]

    def name_actions(state):
        return names(state) if callable(names) else names

    def cells_of(state, is_made):
        if find_cells is None:
            return np.arange(len(name_actions(state)))
        return np.asarray(find_cells(state, is_made))

    def draw(state, values=None, labels=None, last=None, size=cell_size * shape[1]):
        cells = cells_of(state, False)
        cells = np.where((cells >= 0) & (cells < count), cells, count)
        if values is not None:
            values = np.bincount(cells, np.asarray(values), count + 1)[:count]
        if labels is not None:
            named = [np.flatnonzero(cells == cell) for cell in range(count)]
            labels = [" ".join(labels[i] for i in some if labels[i]) for some in named]
        if last is not None:
            last = int(cells_of(state, True)[last])
            last = last if 0 <= last < count else None
        options = {"values": values, "labels": labels, "last": last, "size": size}
        return drawing.board(np.asarray(state.board), shape, **options, **look)

    return Display(render or (lambda state: render_board(state.board, shape)), draw, name_actions)


def render_board(
    board: np.ndarray, shape: tuple[int, int], slant: int = 0, names: Sequence[str] | None = None
) -> str:
    """Returns a board of stones `[rows * columns]` as text, with coordinates.

    Each row is shifted by `slant` characters to the right of the one above. The coordinates are
    those in the `names` of the cells, by default `cell_names`.
    """
    names = cell_names(*shape) if names is None else names
    letters = [name.rstrip("0123456789") for name in names[: shape[1]]]
    numbers = [name.removeprefix(letters[0]) for name in names[:: shape[1]]]
    marks = np.array([".", "X", "O"])[np.asarray(board).reshape(shape)]
    width = len(str(shape[0]))
    rows = [
        " " * (slant * r) + f"{number:>{width}} " + " ".join(row)
        for r, (number, row) in enumerate(zip(numbers, marks.tolist(), strict=True))
    ]
    return "\n".join([" " * (width + 1) + " ".join(letters), *rows])
