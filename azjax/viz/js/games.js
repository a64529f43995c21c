// Games as small records of pure functions. A position is `{board, player, over, line}`: the cells
// row by row (1 = player 0, X; -1 = player 1, O; 0 = empty), who is to move, whether the game is
// over, and the cells of the line that won it, or null.

const LETTERS = { 1: "X", "-1": "O", 0: "." };

/**
 * The games that a page can search, by their names in Python.
 *
 * `numActions`, `maxPlies`, `rows` and `columns` are numbers; `lines` are those that win;
 * `init()` is the first position, `at(board)` that of some cells, `sound(board)` whether there can
 * be such; `legal(position)` lists actions;
 * `cell(board, action)` is where an action's stone goes, `action(cell)` the action that a click
 * on a cell means; `loose(board, cell)` is the stone that an editor takes away where one at a cell
 * is clicked; `step(position, action)` plays a legal one, and `reward(position)` is what
 * who moved there has won by it; `player` and `over` tell of a position, and `text` writes it.
 */
export const GAMES = {
  tic_tac_toe: stonesGame({
    name: "tic_tac_toe",
    title: "tic-tac-toe",
    shape: [3, 3],
    inRow: 3,
    numActions: 9,
    cell: (board, action) => (board[action] ? -1 : action),
    action: (cell) => cell,
    loose: (_, cell) => cell,
    rests: () => true,
  }),
  connect_four: stonesGame({
    name: "connect_four",
    title: "Connect Four",
    shape: [6, 7],
    inRow: 4,
    numActions: 7,
    cell: lowestEmpty,
    action: (cell) => cell % 7,
    loose: (board, cell) => lowestEmpty(board, cell % 7) + 7,
    rests: (board, cell) => cell + 7 >= board.length || board[cell + 7] !== 0,
  }),
};

/** A game of stones that stay where they are put, won by so many in a row. */
function stonesGame({ name, title, shape, inRow, numActions, cell, action, loose, rests }) {
  const [rows, columns] = shape;
  const lines = linesOf(rows, columns, inRow);
  const at = (board) => {
    const line = lines.find((cells) => isFilled(board, cells)) ?? null;
    const over = line !== null || board.every(Boolean);
    return { board, player: board.reduce((sum, stone) => sum + stone, 0) > 0 ? 1 : 0, over, line };
  };
  const actions = Array.from({ length: numActions }, (_, i) => i);
  const sound = (board) => {
    const ahead = board.reduce((sum, stone) => sum + stone, 0);
    const stands = board.every((stone, i) => stone === 0 || rests(board, i));
    return board.length === rows * columns && (ahead === 0 || ahead === 1) && stands;
  };
  return {
    ...{ name, title, rows, columns, numActions, maxPlies: rows * columns, lines, cell, action, loose, at, sound },
    init: () => at(Array(rows * columns).fill(0)),
    legal: ({ board, over }) => (over ? [] : actions.filter((i) => cell(board, i) >= 0)),
    step: ({ board, player }, i) => {
      const next = board.slice();
      next[cell(board, i)] = player === 0 ? 1 : -1;
      return at(next);
    },
    reward: ({ line }) => (line ? 1 : 0),
    player: (position) => position.player,
    over: (position) => position.over,
    text: ({ board }) => board.map((stone) => LETTERS[stone]).join(""),
  };
}

/** The cell where a stone dropped into a column of Connect Four comes to lie; -1 in a full one. */
function lowestEmpty(board, column) {
  let cell = board.length - 7 + column;
  while (cell >= 0 && board[cell]) cell -= 7;
  return cell;
}

function isFilled(board, [first, ...rest]) {
  return board[first] !== 0 && rest.every((cell) => board[cell] === board[first]);
}

/** All lines of `length` cells on a board: across, down and along both diagonals. */
function linesOf(rows, columns, length) {
  const lines = [];
  for (const [down, right] of [[0, 1], [1, 0], [1, 1], [1, -1]]) {
    for (let r = 0; r + down * (length - 1) < rows; r++) {
      for (let c = 0; c < columns; c++) {
        const end = c + right * (length - 1);
        if (end < 0 || end >= columns) continue;
        lines.push(Array.from({ length }, (_, i) => (r + i * down) * columns + c + i * right));
      }
    }
  }
  return lines;
}
