// Games as small records of pure functions. A position is `{board, player, over, line}`: the cells
// row by row (1 = player 0, X; -1 = player 1, O; 0 = empty), who is to move, whether the game is
// over, and the cells of the line that won it, or null.

const LETTERS = { 1: "X", "-1": "O", 0: "." };

/**
 * Returns the rules of a game by its name in Python, of any size, or null if a page has them not.
 *
 * `numActions`, `maxPlies`, `rows` and `columns` are numbers; `lines` are those that win;
 * `init()` is the first position, `at(board)` that of some cells, `sound(board)` whether there can
 * be such; `legal(position)` lists actions;
 * `cell(board, action)` is where an action's stone goes, `action(cell)` the action that a click
 * on a cell means; `loose(board, cell)` is the stone that an editor takes away where one at a cell
 * is clicked; `step(position, action)` plays a legal one, and `reward(position)` is what
 * who moved there has won by it; `player` and `over` tell of a position, and `text` writes it.
 */
export function gameNamed(name) {
  if (!made.has(name)) made.set(name, make(name));
  return made.get(name);
}

const made = new Map();

function make(name) {
  const [kind, size] = name.split(":");
  const sizes = size ? size.split("x").map(Number) : [];
  if (kind === "tic_tac_toe") return marksGame("tic-tac-toe", 3, 3, 3, name);
  if (kind === "mnk") return marksGame(title("m,n,k", sizes), ...(size ? sizes : [3, 3, 3]), name);
  if (kind !== "connect_four") return null;
  const [rows, columns, inRow = 4] = size ? sizes : [6, 7];
  return dropGame(title("Connect Four", sizes), rows, columns, inRow, name);
}

/** What a game is called, and where it has one its size. */
function title(words, sizes) {
  return sizes.length ? `${words} ${sizes.join(" \u00d7 ")}` : words;
}

/** Marks on any empty cell. */
function marksGame(title, rows, columns, inRow, name) {
  return stonesGame({
    ...{ name, title, inRow, shape: [rows, columns], numActions: rows * columns },
    cell: (board, action) => (board[action] ? -1 : action),
    action: (cell) => cell,
    loose: (_, cell) => cell,
    rests: () => true,
  });
}

/** Stones dropped into columns. */
function dropGame(title, rows, columns, inRow, name) {
  const lowestEmpty = (board, column) => {
    let cell = board.length - columns + column;
    while (cell >= 0 && board[cell]) cell -= columns;
    return cell;
  };
  return stonesGame({
    ...{ name, title, inRow, shape: [rows, columns], numActions: columns },
    cell: lowestEmpty, // -1 in a full column.
    action: (cell) => cell % columns,
    loose: (board, cell) => lowestEmpty(board, cell % columns) + columns,
    rests: (board, cell) => cell + columns >= board.length || board[cell + columns] !== 0,
  });
}

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
