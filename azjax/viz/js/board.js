import { numbers, svg } from "./dom.js";

const CELL = 30; // Drawing units; a board of any size has the same coordinates.
const MARGIN = 2;
const SMALL = 8; // Pixels of a cell below which stones fill it, so that they are told apart.

/** The name of a stone: "X", "O" or "empty". */
export function stoneName(stone) {
  return stone === 1 ? "X" : stone === -1 ? "O" : "empty";
}

/** Reads 9 (or any number of) characters of ".XO". */
export function readBoard(text) {
  return Array.from(text, (character) => (character === "X" ? 1 : character === "O" ? -1 : 0));
}

/** Writes cells as characters of ".XO". */
export function boardText(cells) {
  return cells.map((stone) => (stone === 1 ? "X" : stone === -1 ? "O" : ".")).join("");
}

/** Who is to move on a board: 0 (X) or 1 (O), by the counts. */
export function playerToMove(cells) {
  const sum = cells.reduce((total, stone) => total + stone, 0);
  return sum > 0 ? 1 : 0;
}

/**
 * Draws a board as a picture of its own.
 *
 * Options: `size` in pixels (120), `shape` (rows and columns, `[3, 3]`), `heat` (0..1 or null per cell), `labels`
 * (text per empty cell), `last` (a marked cell), `line` (cells to strike through), `marks`
 * (cells with a dot in the corner), `onCell(cell)` (cells become buttons), `label`.
 */
export function board(cells, options = {}) {
  const { size = 120, shape = [3, 3] } = options;
  const width = shape[1] * CELL + 2 * MARGIN;
  const height = shape[0] * CELL + 2 * MARGIN;
  const text = boardText(cells);
  const rows = Array.from({ length: shape[0] }, (_, r) => text.slice(r * shape[1], (r + 1) * shape[1]));
  const attributes = {
    class: options.onCell ? "az-board az-editable" : "az-board",
    width: size,
    height: (size * height) / width,
    viewBox: `0 0 ${width} ${height}`,
    role: options.onCell ? "group" : "img",
    "aria-label": options.label ?? `board ${rows.join(" ")}`,
    "data-board": text,
    "data-lm-suppress-shortcuts": Boolean(options.onCell) && "true", // Else JupyterLab takes keys.
  };
  const parts = boardParts(cells, shape, options);
  return svg("svg", attributes, svg("g", { transform: `translate(${MARGIN} ${MARGIN})` }, parts));
}

/** Draws a board as a group with its corner at (x, y), `size` wide, for larger pictures. */
export function boardGroup(cells, options = {}) {
  const { x = 0, y = 0, size = 44, shape = [3, 3] } = options;
  const scale = size / (shape[1] * CELL);
  const transform = `translate(${x} ${y}) scale(${scale})`;
  const bold = scale * CELL < SMALL;
  return svg("g", { class: bold ? "az-board az-bold" : "az-board", transform }, boardParts(cells, shape, { ...options, bold }));
}

/** `numbers` of the actions, each at the cell where its stone would go; `blank` elsewhere. */
export function atCells(game, cells, numbers, blank = null) {
  const spread = cells.map(() => blank);
  numbers.forEach((number, action) => {
    const cell = game.cell(cells, action);
    if (cell >= 0) spread[cell] = number;
  });
  return spread;
}

/** Whether cells are a position of a game: one of its table, or else one that obeys its laws. */
export function isPosition(cells, game, table) {
  return table ? table.find(cells) >= 0 : game.sound(cells) && !whyImpossible(cells, game.lines);
}

/** Why no game leads to a position, in a sentence, or null if no reason is known. */
export function whyImpossible(cells, lines) {
  const countX = cells.filter((stone) => stone === 1).length;
  const countO = cells.filter((stone) => stone === -1).length;
  const ahead = countX - countO;
  if (ahead !== 0 && ahead !== 1) {
    return (
      `${countX} X and ${countO} O cannot occur: X moves first, so there are ` +
      "as many X as O, or one X more"
    );
  }
  const [winsX, winsO] = [1, -1].map((stone) => lines.some((line) => isFull(cells, line, stone)));
  if (winsX && winsO) return `both X and O have ${inARow(lines)}: a game ends at the first`;
  if ((winsX && ahead === 0) || (winsO && ahead === 1)) {
    const [winner, loser] = winsX ? ["X", "O"] : ["O", "X"];
    return (
      `${winner} has ${inARow(lines)} but ${loser} moved after that: ` +
      `remove one ${loser} from the board`
    );
  }
  return null;
}

/** What wins, in words: "three in a row". */
export function inARow(lines) {
  const { length } = lines[0];
  return `${["one", "two", "three", "four", "five", "six"][length - 1] ?? length} in a row`;
}

/** The first line full of one player's stones, or null. */
export function winningLine(cells, lines) {
  return lines.find((line) => cells[line[0]] && isFull(cells, line, cells[line[0]])) ?? null;
}

/** Cells after a click in an editor: a stone goes, or the mover's comes where it can lie. */
export function editCell(cells, cell, game) {
  const next = cells.slice();
  if (cells[cell]) next[game.loose(cells, cell)] = 0;
  else next[game.cell(cells, game.action(cell))] = playerToMove(cells) ? -1 : 1;
  return next;
}

const tables = new WeakMap();

/** The table of a page's positions, made once for all of its parts; null where there is none. */
export function openTable({ positions }) {
  if (!positions) return null;
  if (!tables.has(positions)) tables.set(positions, new PositionTable(positions));
  return tables.get(positions);
}

/** Every position with the truth about it; rows as in Python's `positions`. */
export class PositionTable {
  #rows = new Map();
  #boards = [];
  #truth;
  #optimal;

  constructor(data) {
    this.lines = data.lines;
    this.#truth = numbers(data.truth, Int8Array);
    this.#optimal = numbers(data.optimal, Uint16Array);
    this.size = this.#truth.length;
    this.cells = data.boards.length / this.size;
    for (let row = 0; row < this.size; row++) {
      const text = data.boards.slice(row * this.cells, (row + 1) * this.cells);
      this.#boards.push(text);
      this.#rows.set(text, row);
    }
  }

  /** The row of a position, or -1. */
  find(cells) {
    return this.#rows.get(boardText(cells)) ?? -1;
  }

  /** The cells of a row. */
  board(row) {
    return readBoard(this.#boards[row]);
  }

  /** The value under perfect play for the player to move. */
  truth(row) {
    return this.#truth[row];
  }

  /** Which moves keep the value. */
  optimal(row) {
    return Array.from({ length: this.cells }, (_, cell) => ((this.#optimal[row] >> cell) & 1) === 1);
  }

  /** Whether the game is over: no move is left that could keep a value. */
  over(row) {
    return this.#optimal[row] === 0;
  }

  /** The line that has been won, or null. */
  line(cells) {
    return winningLine(cells, this.lines);
  }
}

function isFull(cells, line, stone) {
  return line.every((cell) => cells[cell] === stone);
}

function boardParts(cells, shape, { heat, labels, last, line, marks, onCell, bold }) {
  const place = (cell) => [(cell % shape[1]) * CELL, Math.floor(cell / shape[1]) * CELL];
  const size = { width: shape[1] * CELL, height: shape[0] * CELL };
  const parts = [svg("rect", { ...size, rx: 3, class: "az-paper" })];
  heat?.forEach((value, cell) => value > 0 && parts.push(heatCell(place(cell), value)));
  parts.push(svg("path", { d: gridPath(shape), class: "az-grid" }));
  if (last !== null && last !== undefined) parts.push(lastCell(place(last)));
  cells.forEach((stone, cell) => {
    if (stone) parts.push(stoneShape(place(cell), stone, bold ? 1.3 : 1));
    else if (labels?.[cell]) parts.push(cellLabel(place(cell), labels[cell]));
  });
  marks?.forEach((marked, cell) => marked && parts.push(cornerDot(place(cell))));
  if (line) parts.push(strike(place(line[0]), place(line[line.length - 1])));
  if (onCell) cells.forEach((stone, cell) => parts.push(cellButton(place(cell), cell, stone, onCell)));
  return parts;
}

function gridPath([rows, columns]) {
  const across = Array.from({ length: rows - 1 }, (_, r) => `M0 ${(r + 1) * CELL}H${columns * CELL}`);
  const down = Array.from({ length: columns - 1 }, (_, c) => `M${(c + 1) * CELL} 0V${rows * CELL}`);
  return across.concat(down).join("");
}

function heatCell([x, y], value) {
  const opacity = (0.7 * Math.min(value, 1)).toFixed(3);
  return svg("rect", { x, y, width: CELL, height: CELL, class: "az-heat", "fill-opacity": opacity });
}

function lastCell([x, y]) {
  const side = CELL - 4;
  return svg("rect", { x: x + 2, y: y + 2, width: side, height: side, rx: 3, class: "az-last" });
}

function stoneShape([x, y], stone, scale) {
  const middle = CELL / 2;
  if (stone === -1) {
    return svg("circle", { cx: x + middle, cy: y + middle, r: CELL * 0.26 * scale, class: "az-o" });
  }
  const arm = CELL * 0.24 * scale;
  const corner = `M${x + middle - arm} ${y + middle - arm}`;
  const d = `${corner}l${2 * arm} ${2 * arm}m0 ${-2 * arm}l${-2 * arm} ${2 * arm}`;
  return svg("path", { d, class: "az-x" });
}

function cellLabel([x, y], text) {
  return svg("text", { x: x + CELL / 2, y: y + CELL / 2, class: "az-label" }, text);
}

function cornerDot([x, y]) {
  return svg("circle", { cx: x + CELL - 5, cy: y + 5, r: 2.2, class: "az-mark" });
}

function strike([x1, y1], [x2, y2]) {
  const middle = CELL / 2;
  const ends = { x1: x1 + middle, y1: y1 + middle, x2: x2 + middle, y2: y2 + middle };
  return svg("line", { ...ends, class: "az-line" });
}

function cellButton([x, y], cell, stone, onCell) {
  const attributes = { x: x + 1, y: y + 1, width: CELL - 2, height: CELL - 2, rx: 3 };
  return svg("rect", {
    ...attributes,
    class: "az-cell",
    role: "button",
    tabindex: 0,
    "aria-label": `cell ${cell}, ${stoneName(stone)}`,
    "data-cell": cell,
    "data-focus": `cell ${cell}`,
    on: { click: () => onCell(cell), keydown: (event) => cellKey(event, cell, onCell) },
  });
}

function cellKey(event, cell, onCell) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: "up", ArrowDown: "down" }[event.key];
  if (event.key === "Enter" || event.key === " ") onCell(cell);
  else if (step) neighbourCell(event.currentTarget, step)?.focus();
  else return;
  event.preventDefault();
  event.stopPropagation();
}

function neighbourCell(button, step) {
  const buttons = [...button.parentNode.querySelectorAll(".az-cell")];
  const columns = buttons.filter((other) => other.getAttribute("y") === button.getAttribute("y")).length;
  const offset = step === "up" ? -columns : step === "down" ? columns : step;
  return buttons[buttons.indexOf(button) + offset];
}
