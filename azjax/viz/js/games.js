import { sum } from "./algorithms.js";
import { numbers } from "./dom.js";

// Games as records of pure functions. A position is `{board, player, over, line, text}`: the cells row
// by row (1 = player 0, X; -1 = player 1, O; 0 = empty), the player to move, whether the game is over,
// the cells of the line that won it or null, and the cells in ".XO".

const gamesOf = new WeakMap();

/**
 * Returns the game of a component's data: that of `gameNamed`, and in small games a `table` of the
 * positions in which the game is not over, by their texts.
 *
 * An entry of the table is `{row, first, value, optimal}`: the number of the position, the number of
 * legal moves of all positions before it, its value under perfect play for the player to move, and
 * for each legal move whether it keeps the value.
 */
export function openGame({ game: name, positions }) {
  if (!positions) return gameNamed(name);
  if (!gamesOf.has(positions)) gamesOf.set(positions, withTable(gameNamed(name), positions));
  return gamesOf.get(positions);
}

/** Adds a table to a game, and reads only positions that are in it. */
function withTable(game, { boards, values, counts, optimal }) {
  const [every, keeps, size] = [numbers(values, Int8Array), numbers(optimal, Uint8Array), game.rows * game.columns];
  const table = new Map();
  let first = 0;
  numbers(counts, Uint16Array).forEach((count, row) => {
    const entry = { row, first, value: every[row], optimal: keeps.subarray(first, first + count) };
    table.set(boards.slice(row * size, (row + 1) * size), entry);
    first += count;
  });
  const read = (text) => {
    const position = game.read(text);
    return position && (position.over || table.has(text)) ? position : null;
  };
  return { ...game, table, read };
}

/** The moves in a position of a game with a table that keep the value. */
export function optimalMoves(game, position) {
  const { optimal } = game.table.get(position.text);
  return game.legal(position).filter((_, i) => optimal[i]);
}

/** A list by action: `valueOf(action, i)` for legal move number `i`, and 0 for the others. */
export function byAction(game, position, valueOf) {
  const list = Array(game.numActions).fill(0);
  game.legal(position).forEach((action, i) => (list[action] = valueOf(action, i)));
  return list;
}

/**
 * Returns the rules of a game by its name in Python, of any size, or null.
 *
 * Every game has `name`, `title`, `numActions`, `rows`, `columns`, `init()`, `legal(position)`,
 * `step(position, action)`, `reward(position)` of the player who moved there, `winner(position)` (0, 1
 * or null), `ending(position)` in words, `read(text)` (a position or null), `at(board)`, the position
 * with these cells, `cell(board, action)`, where an action's stone goes, `action(cell)`, the action of
 * a click on a cell, the names of a move, `moveName(position, action)` and the short
 * `moveLabel(position, action)`, and a sentence on these names, `naming`.
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
  if (kind === "hex") return hexGame(title("Hex", [sizes[0] ?? 11, sizes[0] ?? 11]), sizes[0] ?? 11, name);
  if (kind !== "connect_four") return null;
  const [rows, columns, inRow = 4] = size ? sizes : [6, 7];
  return dropGame(title("Connect Four", sizes), rows, columns, inRow, name);
}

/** The title of a game with its size, if it has one. */
function title(words, sizes) {
  return sizes.length ? `${words} ${sizes.join(" \u00d7 ")}` : words;
}

/** Marks on any empty cell. */
function marksGame(title, rows, columns, inRow, name) {
  return stonesGame({
    ...{ name, title, inRow, shape: [rows, columns], numActions: rows * columns },
    moveName: (_, cell) => cellName(cell, columns),
    moveLabel: (_, cell) => cellName(cell, columns),
    naming: "Cells are named by column and row: a1 is the upper left one.",
    cell: (board, action) => (board[action] ? -1 : action),
    action: (cell) => cell,
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
    ...{ name, title, inRow, hasDiscs: true, shape: [rows, columns], numActions: columns },
    moveName: (_, column) => `column ${column + 1}`,
    moveLabel: (_, column) => String(column + 1),
    naming: "Columns are counted from the left, starting with 1.",
    cell: lowestEmpty, // Negative in a full column.
    action: (cell) => cell % columns,
    rests: (board, cell) => cell + columns >= board.length || board[cell + columns] !== 0,
  });
}

/** A game of stones that do not move, won by a number of them in a row. */
function stonesGame({ shape, inRow, cell, rests, ...fields }) {
  const [rows, columns] = shape;
  const lines = linesOf(rows, columns, inRow);
  const at = (board) => {
    const line = lines.find(([first, ...rest]) => board[first] && rest.every((cell) => board[cell] === board[first])) ?? null;
    const over = line !== null || board.every(Boolean);
    return { board, player: playerToMove(board), over, line, text: boardText(board) };
  };
  const actions = Array.from({ length: fields.numActions }, (_, i) => i);
  const winner = ({ board, line }) => (line ? Number(board[line[0]] < 0) : null);
  return {
    ...{ ...fields, rows, columns, cell, at, winner },
    init: () => at(Array(rows * columns).fill(0)),
    legal: ({ board, over }) => (over ? [] : actions.filter((i) => cell(board, i) >= 0)),
    step: ({ board, player }, i) => {
      const next = board.slice();
      next[cell(board, i)] = player === 0 ? 1 : -1;
      return at(next);
    },
    reward: ({ line }) => (line ? 1 : 0),
    ending: (position) => (winner(position) === null ? "the board is full" : `${"XO"[winner(position)]} has ${inRow} in a row`),
    read: (text) => {
      const board = readCells(text, rows * columns);
      return board && isReached(board, lines, rests) ? at(board) : null;
    },
  };
}

/** Whether the stones could come from a game: the player to move has not won, and they have support. */
function isReached(board, lines, rests) {
  const mover = playerToMove(board) === 0 ? 1 : -1;
  const hasWon = lines.some((line) => line.every((cell) => board[cell] === mover));
  return !hasWon && board.every((stone, cell) => stone === 0 || rests(board, cell));
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

const NEAR = [[-1, 0], [-1, 1], [0, -1], [0, 1], [1, -1], [1, 0]]; // Rows and columns.

/**
 * Hex without swap on `n` by `n` cells; X connects top and bottom, O left and right.
 *
 * An action is a cell for X, and for O its mirror image across the long diagonal, as in Python.
 * `seen(position)` is the board from the mover's perspective, in which both players connect top and
 * bottom with stones of value 1.
 */
function hexGame(title, n, name) {
  const mirror = (cell) => (cell % n) * n + Math.floor(cell / n);
  const place = (board, action) => (playerToMove(board) === 0 ? action : mirror(action));
  const actions = Array.from({ length: n * n }, (_, i) => i);
  const label = ({ board }, action) => cellName(place(board, action), n);
  const turned = (board) => board.map((_, cell) => -board[mirror(cell)]);
  const winnerOf = (board) => (joins(board, n) ? 0 : joins(turned(board), n) ? 1 : null);
  const at = (board) => {
    const winner = winnerOf(board);
    return { board, winner, player: playerToMove(board), over: winner !== null, line: null, text: boardText(board) };
  };
  return {
    ...{ name, title, at, isHexagonal: true, rows: n, columns: n, numActions: n * n },
    moveName: label,
    moveLabel: label,
    naming: "X connects top and bottom, O left and right. Cells are named by column and row: a1 is the upper left one.",
    cell: (board, action) => (board[place(board, action)] ? -1 : place(board, action)),
    action: (cell, board) => place(board, cell),
    seen: ({ board, player }) => (player === 0 ? board : turned(board)),
    init: () => at(Array(n * n).fill(0)),
    legal: ({ board, over }) => (over ? [] : actions.filter((action) => !board[place(board, action)])),
    step: ({ board, player }, action) => at(board.with(place(board, action), player === 0 ? 1 : -1)),
    reward: ({ over }) => (over ? 1 : 0),
    winner: (position) => position.winner,
    ending: ({ winner }) => (winner === 0 ? "X has connected top and bottom" : "O has connected left and right"),
    read: (text) => {
      const board = readCells(text, n * n);
      const position = board && at(board);
      return position?.winner === position?.player ? null : position;
    },
  };
}

/** Whether stones of value 1 connect top and bottom. */
function joins(board, n) {
  const open = Array.from({ length: n }, (_, column) => column).filter((cell) => board[cell] === 1);
  const reached = new Set(open);
  while (open.length) {
    const cell = open.pop();
    const [row, column] = [Math.floor(cell / n), cell % n];
    if (row === n - 1) return true;
    for (const [down, right] of NEAR) {
      const [r, c] = [row + down, column + right];
      const next = r * n + c;
      if (r < 0 || c < 0 || c >= n || board[next] !== 1 || reached.has(next)) continue;
      reached.add(next);
      open.push(next);
    }
  }
  return false;
}

// Cells.

/** The name of a cell; a1 is the upper left one, and aa follows z, as in Python. */
export function cellName(cell, columns) {
  const letters = "abcdefghijklmnopqrstuvwxyz";
  const column = cell % columns;
  return `${letters[Math.floor(column / 26) - 1] ?? ""}${letters[column % 26]}${Math.floor(cell / columns) + 1}`;
}

/** Writes cells as characters of ".XO". */
export function boardText(cells) {
  return cells.map((stone) => (stone === 1 ? "X" : stone === -1 ? "O" : ".")).join("");
}

/** Reads `count` cells written as ".XO"; null if the text is malformed or has too many stones of a player. */
function readCells(text, count) {
  if (text?.length !== count || !/^[.XO]+$/.test(text)) return null;
  const board = Array.from(text, (mark) => ({ X: 1, O: -1 })[mark] ?? 0);
  return [0, 1].includes(sum(board)) ? board : null;
}

/** The player to move on a board, 0 (X) or 1 (O), from the counts. */
function playerToMove(board) {
  return sum(board) > 0 ? 1 : 0;
}
