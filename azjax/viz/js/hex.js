import { boardText, cellName, playerToMove, readCells } from "./cells.js";

// The rules of Hex without swap. X connects top and bottom, O left and right.

const NEAR = [[-1, 0], [-1, 1], [0, -1], [0, 1], [1, -1], [1, 0]]; // Rows and columns.

/**
 * Returns Hex on `n` by `n` cells as a game of stones, see `games.js`.
 *
 * An action is a cell for X, and for O its mirror image across the long diagonal, as in Python.
 * `seen(position)` is the board from the mover's perspective, in which both players connect top and
 * bottom with stones of value 1.
 */
export function hexGame(title, n, name) {
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
  const game = {
    ...{ name, title, at, hasCells: true, isHexagonal: true, rows: n, columns: n, numActions: n * n, maxPlies: n * n },
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
    player: (position) => position.player,
    over: (position) => position.over,
    winner: (position) => position.winner,
    ending: ({ winner }) => (winner === 0 ? "X has connected top and bottom" : "O has connected left and right"),
    text: (position) => position.text,
    read: (text) => {
      const board = readCells(text, n * n);
      const ahead = board?.reduce((sum, stone) => sum + stone, 0);
      if (ahead !== 0 && ahead !== 1) return null;
      const position = at(board);
      return position.over && position.winner === position.player ? null : position;
    },
  };
  return game;
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
