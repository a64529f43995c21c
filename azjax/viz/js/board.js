import { boardText, cellName, playerToMove, stoneName } from "./cells.js";
import { svg } from "./dom.js";

/** The width of a cell. */
export const CELL = 30; // Drawing units; a board of any size has the same coordinates.
const MARGIN = 2;
const SMALL = 8; // Pixels; in smaller cells stones are drawn larger.

/**
 * Draws a board.
 *
 * Options: `size` in pixels (120), `shape` (rows and columns, `[3, 3]`), `heat` (0..1 or null per
 * cell), `labels` (text per empty cell), `last` (a marked cell), `line` (cells to strike through),
 * `discs` (whether the stones are discs),
 * `marks` (per cell, whether to draw a dot in its corner), `onCell(cell)` (makes cells buttons),
 * `label`.
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
    "data-lm-suppress-shortcuts": Boolean(options.onCell) && "true", // JupyterLab would take the keys.
  };
  const parts = boardParts(cells, shape, options);
  return svg("svg", attributes, svg("g", { transform: `translate(${MARGIN} ${MARGIN})` }, parts));
}

/** Draws a board as a group inside a larger picture, with its corner at (x, y), `size` wide. */
export function boardGroup(cells, options = {}) {
  const { x = 0, y = 0, size = 44, shape = [3, 3] } = options;
  const scale = size / (shape[1] * CELL);
  const transform = `translate(${x} ${y}) scale(${scale})`;
  const bold = scale * CELL < SMALL;
  return svg("g", { class: bold ? "az-board az-bold" : "az-board", transform }, boardParts(cells, shape, { ...options, bold }));
}

/** Cells after a click in an editor, which removes a stone or adds one of the mover. */
export function editCell(cells, cell, game) {
  const next = cells.slice();
  if (cells[cell]) next[game.loose(cells, cell)] = 0;
  else next[game.cell(cells, game.action(cell))] = playerToMove(cells) ? -1 : 1;
  return next;
}

function boardParts(cells, shape, { heat, labels, last, line, discs, marks, onCell, bold }) {
  const place = (cell) => [(cell % shape[1]) * CELL, Math.floor(cell / shape[1]) * CELL];
  const size = { width: shape[1] * CELL, height: shape[0] * CELL };
  const parts = [svg("rect", { ...size, rx: 3, class: "az-paper" })];
  heat?.forEach((value, cell) => value > 0 && parts.push(heatCell(place(cell), value)));
  parts.push(svg("path", { d: gridPath(shape), class: "az-grid" }));
  if (last !== null && last !== undefined) parts.push(lastSquare(place(last)));
  cells.forEach((stone, cell) => {
    if (stone) parts.push(discs ? discShape(place(cell), stone) : stoneShape(place(cell), stone, bold ? 1.3 : 1));
    else if (labels?.[cell]) parts.push(cellLabel(place(cell), labels[cell]));
  });
  marks?.forEach((marked, cell) => marked && parts.push(cornerDot(place(cell))));
  if (line) parts.push(strike(place(line[0]), place(line[line.length - 1])));
  if (onCell) cells.forEach((stone, cell) => parts.push(squareButton(place(cell), cell, shape[1], stone, onCell)));
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

function lastSquare([x, y]) {
  const side = CELL - 4;
  return svg("rect", { x: x + 2, y: y + 2, width: side, height: side, rx: 3, class: "az-last" });
}

/** A stone in the square cell with its upper left corner at (x, y). */
export function stoneShape([x, y], stone, scale, look = stone === 1 ? "az-x" : "az-o") {
  const middle = CELL / 2;
  if (stone === -1) {
    return svg("circle", { cx: x + middle, cy: y + middle, r: CELL * 0.26 * scale, class: look });
  }
  const arm = CELL * 0.24 * scale;
  const corner = `M${x + middle - arm} ${y + middle - arm}`;
  const d = `${corner}l${2 * arm} ${2 * arm}m0 ${-2 * arm}l${-2 * arm} ${2 * arm}`;
  return svg("path", { d, class: look });
}

/** A stone as a disc, with its mark cut out, as in Python. */
function discShape([x, y], stone) {
  const circle = svg("circle", { cx: x + CELL / 2, cy: y + CELL / 2, r: CELL * 0.42 });
  return svg("g", { class: `az-disc ${stone === 1 ? "az-x" : "az-o"}` }, circle, stoneShape([x, y], stone, 0.5, "az-cut"));
}

/** A text in the square cell with its upper left corner at (x, y). */
export function cellLabel([x, y], text) {
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

function squareButton([x, y], cell, columns, stone, onCell) {
  const square = { x: x + 1, y: y + 1, width: CELL - 2, height: CELL - 2, rx: 3 };
  const about = { cell, row: Math.floor(cell / columns), label: `${cellName(cell, columns)}, ${stoneName(stone)}` };
  return cellButton("rect", square, about, onCell);
}

/** Makes a shape of an SVG picture the button of a cell. */
export function cellButton(tag, shape, { cell, row, label }, onCell) {
  return svg(tag, {
    ...shape,
    class: "az-cell",
    role: "button",
    tabindex: 0,
    "aria-label": label,
    "data-cell": cell,
    "data-board-row": row,
    "data-focus": `cell ${cell}`,
    on: { click: () => onCell(cell), keydown: (event) => cellKey(event, cell, onCell) },
  });
}

function cellKey(event, cell, onCell) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: "up", ArrowDown: "down" }[event.key];
  if (event.key === "Enter" || event.key === " ") onCell(cell);
  else if (step) neighborCell(event.currentTarget, step)?.focus();
  else return;
  event.preventDefault();
  event.stopPropagation();
}

function neighborCell(button, step) {
  const buttons = [...button.parentNode.querySelectorAll(".az-cell")];
  const columns = buttons.filter((other) => other.dataset.boardRow === button.dataset.boardRow).length;
  const offset = step === "up" ? -columns : step === "down" ? columns : step;
  return buttons[buttons.indexOf(button) + offset];
}
