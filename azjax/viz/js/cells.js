// Cells of boards: 1 = X, player 0; -1 = O, player 1; 0 = empty; row by row.

/** The width of a cell in drawing units; a board of any size has the same coordinates. */
export const CELL = 30;

/** The name of a cell; a1 is the upper left one, as in Python. */
export function cellName(cell, columns) {
  return `${"abcdefghijklmnopqrstuvwxyz"[cell % columns]}${Math.floor(cell / columns) + 1}`;
}

/** The name of a stone: "X", "O" or "empty". */
export function stoneName(stone) {
  return stone === 1 ? "X" : stone === -1 ? "O" : "empty";
}

/** Writes cells as characters of ".XO". */
export function boardText(cells) {
  return cells.map((stone) => (stone === 1 ? "X" : stone === -1 ? "O" : ".")).join("");
}

/** Reads `count` cells written as ".XO"; null if the text is malformed. */
export function readCells(text, count) {
  if (text?.length !== count || !/^[.XO]+$/.test(text)) return null;
  return Array.from(text, (mark) => ({ X: 1, O: -1 })[mark] ?? 0);
}

/** The player to move on a board, 0 (X) or 1 (O), from the counts. */
export function playerToMove(cells) {
  const sum = cells.reduce((total, stone) => total + stone, 0);
  return sum > 0 ? 1 : 0;
}
