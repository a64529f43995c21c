// Pictures of positions on squares or hexagons. The shapes of a board are a record: its `width`, `height`
// and `margin`; `corner(cell)`, the upper left corner of a square in the cell; and the elements
// `paper()`, `fill(cell, attributes)`, `lines()`, `last(cell)` and `button(cell)`, and the place of
// a `dot(cell)`.

import { fixed, h, signed, svg } from "./dom.js";
import { cellName } from "./games.js";

const CELL = 30; // The width of a cell in drawing units; a board of any size has the same coordinates.
const HIGH = (2 * CELL) / Math.sqrt(3); // Of a hexagon.
const SMALL = 8; // Pixels; in smaller cells stones are drawn larger.

/**
 * Draws a position, with what belongs to its moves.
 *
 * Options, all by action: `heat` (0..1), `labels` (text, in empty cells), `marks` (a list of actions
 * with a dot). Also `size`, the width in pixels; `last`, `{position, action}` of the move that led
 * here; `onMove(action)`, which makes the cells buttons; `label`, a description; `dots`, a list of
 * cells with a dot.
 */
export function picture(game, position, { size = 120, label, ...options } = {}) {
  const { board, text } = position;
  const shapes = shapesOf(game);
  const [width, height] = [shapes.width, shapes.height].map((length) => length + 2 * shapes.margin);
  const rows = Array.from({ length: game.rows }, (_, r) => text.slice(r * game.columns, (r + 1) * game.columns));
  const attributes = {
    class: "az-board",
    ...{ width: size, height: (size * height) / width, viewBox: `0 0 ${width} ${height}` },
    role: options.onMove ? "group" : "img",
    "aria-label": label ?? `board ${rows.join(" ")}`,
    "data-board": text,
  };
  const transform = `translate(${shapes.margin} ${shapes.margin})`;
  return svg("svg", attributes, svg("g", { transform }, partsOf(game, position, shapes, options)));
}

/** Draws a position as a group inside a larger picture, with its corner at (x, y), `size` wide. */
export function pictureGroup(game, position, { x, y, size, last }) {
  const shapes = shapesOf(game);
  const scale = size / shapes.width;
  const bold = scale * CELL < SMALL;
  const transform = `translate(${x} ${y}) scale(${scale})`;
  return svg("g", { class: bold ? "az-board az-bold" : "az-board", transform }, partsOf(game, position, shapes, { last, bold }));
}

/** The width of a picture, relative to its height. */
export function aspect(game) {
  const { width, height } = shapesOf(game);
  return width / height;
}

function shapesOf({ rows, columns, isHexagonal }) {
  return isHexagonal ? hexagons(rows) : squares(rows, columns);
}

function squares(rows, columns) {
  const [width, height] = [columns * CELL, rows * CELL];
  const corner = (cell) => [(cell % columns) * CELL, Math.floor(cell / columns) * CELL];
  const square = (cell, inset, attributes) => {
    const [x, y] = corner(cell);
    const side = CELL - 2 * inset;
    return { x: x + inset, y: y + inset, width: side, height: side, ...attributes };
  };
  const across = Array.from({ length: rows - 1 }, (_, r) => `M0 ${(r + 1) * CELL}H${width}`);
  const down = Array.from({ length: columns - 1 }, (_, c) => `M${(c + 1) * CELL} 0V${height}`);
  return {
    ...{ width, height, margin: 2, corner },
    paper: () => svg("rect.az-paper", { width, height, rx: 3 }),
    fill: (cell, attributes) => svg("rect", square(cell, 0, attributes)),
    lines: () => svg("path.az-grid", { d: across.concat(down).join("") }),
    last: (cell) => svg("rect.az-last", square(cell, 2, { rx: 3 })),
    dot: (cell) => [corner(cell)[0] + CELL - 5, corner(cell)[1] + 5],
    button: (cell) => ["rect", square(cell, 1, { rx: 3 })],
  };
}

/**
 * The shapes of a board of Hex: a rhombus of hexagons, as `azjax/drawing.py` draws them,
 * whose sides have the color of the player who connects them.
 */
function hexagons(n) {
  const cells = Array.from({ length: n * n }, (_, cell) => [cell % n, Math.floor(cell / n)]);
  const centers = cells.map(([column, row]) => [(column + row / 2 + 0.5) * CELL, (0.75 * row + 0.5) * HIGH]);
  const [left, right] = [0, n - 1].map((column) => centers.filter((_, cell) => cell % n === column));
  const hexagon = (cell, scale, attributes) => svg("polygon", { points: cornersOf(centers[cell], scale), ...attributes });
  return {
    ...{ width: (1.5 * n - 0.5) * CELL, height: (0.75 * n + 0.25) * HIGH, margin: 3 },
    corner: (cell) => centers[cell].map((x) => x - CELL / 2),
    paper: () => centers.map((_, cell) => hexagon(cell, 1, { class: "az-paper" })),
    fill: (cell, attributes) => hexagon(cell, 1, attributes),
    lines: () => [
      ...[sideOf(centers.slice(0, n), 4, "az-x"), sideOf(centers.slice(-n).reverse(), 1, "az-x")],
      ...[sideOf(left.reverse(), 2, "az-o"), sideOf(right, 5, "az-o")],
    ],
    last: (cell) => hexagon(cell, 0.85, { class: "az-last" }),
    dot: (cell) => [centers[cell][0], centers[cell][1] - 0.36 * HIGH],
    button: (cell) => ["polygon", { points: cornersOf(centers[cell], 0.94) }],
  };
}

function cornerOf([x, y], k, scale) {
  const angle = ((60 * (k % 6) - 30) * Math.PI) / 180; // Clockwise, starting at the upper right.
  const reach = (scale * HIGH) / 2;
  return `${(x + reach * Math.cos(angle)).toFixed(2)},${(y + reach * Math.sin(angle)).toFixed(2)}`;
}

function cornersOf(center, scale) {
  return [0, 1, 2, 3, 4, 5].map((k) => cornerOf(center, k, scale)).join(" ");
}

/** A side of the board: three corners of each cell, clockwise, starting with corner `first`. */
function sideOf(centers, first, look) {
  const line = centers.flatMap((center) => [0, 1, 2].map((k) => cornerOf(center, first + k, 1)));
  return svg("polyline", { points: line.join(" "), class: `az-side ${look}` });
}

function partsOf(game, { board, line }, shapes, { heat, labels, marks, dots, last, onMove, bold }) {
  const stone = game.hasDiscs ? discShape : stoneShape;
  const every = (draw) => board.map((mark, cell) => draw(cell, shapes.corner(cell), mark));
  const byCell = new Map(Array.from({ length: game.numActions }, (_, action) => [game.cell(board, action), action]));
  const at = (list, cell) => list[byCell.get(cell)];
  const fill = (cell) => ({ class: "az-heat", "fill-opacity": (0.7 * Math.min(at(heat, cell), 1)).toFixed(3) });
  const labelled = (cell, [x, y]) => svg("text.az-label", { x: x + CELL / 2, y: y + CELL / 2 }, at(labels, cell));
  const dot = ([cx, cy]) => svg("circle.az-mark", { cx, cy, r: 2.2 });
  const marked = marks ? marks.map((action) => game.cell(board, action)) : (dots ?? []);
  return [
    shapes.paper(),
    heat && every((cell) => at(heat, cell) > 0 && shapes.fill(cell, fill(cell))),
    shapes.lines(),
    last && shapes.last(game.cell(last.position.board, last.action)),
    every((_, corner, mark) => mark !== 0 && stone(corner, mark, bold ? 1.3 : 1)),
    labels && every((cell, corner, mark) => mark === 0 && at(labels, cell) && labelled(cell, corner)),
    marked.map((cell) => dot(shapes.dot(cell))),
    line && strike(shapes.corner(line[0]), shapes.corner(line.at(-1))),
    onMove && every((cell, _, mark) => cellButton(shapes.button(cell), cell, game.columns, mark, () => onMove(game.action(cell, board)))),
  ];
}

/** A stone in the square cell with its upper left corner at (x, y). */
function stoneShape([x, y], stone, scale, look = stone === 1 ? "az-x" : "az-o") {
  const middle = CELL / 2;
  if (stone === -1) return svg("circle", { cx: x + middle, cy: y + middle, r: CELL * 0.26 * scale, class: look });
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

function strike([x1, y1], [x2, y2]) {
  const middle = CELL / 2;
  return svg("line.az-line", { x1: x1 + middle, y1: y1 + middle, x2: x2 + middle, y2: y2 + middle });
}

function cellButton([tag, place], cell, columns, stone, onClick) {
  return svg(tag, {
    ...place,
    class: "az-cell",
    role: "button",
    tabindex: 0,
    "aria-label": `${cellName(cell, columns)}, ${{ 1: "X", "-1": "O" }[stone] ?? "empty"}`,
    "data-cell": cell,
    "data-board-row": Math.floor(cell / columns),
    "data-focus": `cell ${cell}`,
    on: { click: onClick, keydown: (event) => cellKey(event, onClick) },
  });
}

function cellKey(event, onClick) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: "up", ArrowDown: "down" }[event.key];
  if (event.key === "Enter" || event.key === " ") onClick();
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

/** A bar from −1 to +1 with its number: a value for the player to move. */
export function valueBar(value, caption) {
  const from = 50 + 50 * Math.min(value, 0);
  const style = { "--az-from": `${from}%`, "--az-length": `${50 * Math.abs(value)}%` };
  const fill = value < 0 ? "var(--az-bad)" : "var(--az-heat)";
  const label = `${caption}: ${fixed(value, 2)}, from \u22121, lost, to +1, won`;
  return h(
    "div.az-value",
    { "data-value": value },
    h("p", `${caption}: `, h("strong", signed(value))),
    h("div.az-bar", { role: "img", "aria-label": label }, h("i", { style: { ...style, "--az-fill": fill } })),
    h("div.az-scale", { "aria-hidden": "true" }, h("span", "\u22121"), h("span", "0"), h("span", "+1")),
  );
}
