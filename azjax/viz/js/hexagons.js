import { CELL, cellButton, cellLabel, stoneShape } from "./board.js";
import { boardText, cellName, stoneName } from "./cells.js";
import { svg } from "./dom.js";

// Boards of Hex, as `azjax/games/hexagons.py` draws them: a rhombus of hexagons whose sides have the
// color of the player who connects them.

const HIGH = (2 * CELL) / Math.sqrt(3);
const HEX_MARGIN = 3;

/** Draws a board; the options are those of `board`, without `shape` and `line`. */
export function hexBoard(cells, options = {}) {
  const { size = 120, onCell } = options;
  const n = Math.sqrt(cells.length);
  const [width, height] = sizeOf(n);
  const text = boardText(cells);
  const rows = Array.from({ length: n }, (_, r) => text.slice(r * n, (r + 1) * n));
  const attributes = {
    class: onCell ? "az-board az-editable" : "az-board",
    ...{ width: size, height: (size * height) / width, viewBox: `0 0 ${width} ${height}` },
    role: onCell ? "group" : "img",
    "aria-label": options.label ?? `board ${rows.join(" ")}`,
    "data-board": text,
  };
  return svg("svg", attributes, svg("g", { transform: `translate(${HEX_MARGIN} ${HEX_MARGIN})` }, parts(cells, n, options)));
}

/** Draws a board as a group inside a larger picture, with its corner at (x, y), `size` wide. */
export function hexGroup(cells, { x = 0, y = 0, size = 44, last } = {}) {
  const n = Math.sqrt(cells.length);
  const transform = `translate(${x} ${y}) scale(${size / sizeOf(n)[0]})`;
  return svg("g.az-board.az-bold", { transform }, parts(cells, n, { last, scale: 1.3 }));
}

/** The width of a board, relative to its height. */
export function hexAspect(n) {
  const [width, height] = sizeOf(n);
  return width / height;
}

function sizeOf(n) {
  return [(1.5 * n - 0.5) * CELL + 2 * HEX_MARGIN, (0.75 * n + 0.25) * HIGH + 2 * HEX_MARGIN];
}

function parts(cells, n, { heat, labels, last, marks, onCell, scale = 1 }) {
  const centers = cells.map((_, cell) => [(cell % n) + Math.floor(cell / n) / 2 + 0.5, 0.75 * Math.floor(cell / n) + 0.5])
    .map(([x, y]) => [x * CELL, y * HIGH]);
  const corner = ([x, y]) => [x - CELL / 2, y - CELL / 2]; // Of the square around a center.
  const drawn = centers.map((center) => hexagon(center, 1, { class: "az-paper" }));
  heat?.forEach((value, cell) => {
    if (value > 0) drawn.push(hexagon(centers[cell], 1, { class: "az-heat", "fill-opacity": (0.7 * Math.min(value, 1)).toFixed(3) }));
  });
  const [left, right] = [0, n - 1].map((column) => centers.filter((_, cell) => cell % n === column));
  drawn.push(side(centers.slice(0, n), 4, "az-x"), side(centers.slice(-n).reverse(), 1, "az-x"));
  drawn.push(side(left.reverse(), 2, "az-o"), side(right, 5, "az-o"));
  if (last !== null && last !== undefined) drawn.push(hexagon(centers[last], 0.85, { class: "az-last" }));
  cells.forEach((stone, cell) => {
    if (stone) drawn.push(stoneShape(corner(centers[cell]), stone, scale));
    else if (labels?.[cell]) drawn.push(cellLabel(corner(centers[cell]), labels[cell]));
    if (marks?.[cell]) drawn.push(svg("circle", { cx: centers[cell][0], cy: centers[cell][1] - 0.36 * HIGH, r: 2.2, class: "az-mark" }));
  });
  if (!onCell) return drawn;
  const button = (center, cell) => {
    const about = { cell, row: Math.floor(cell / n), label: `${cellName(cell, n)}, ${stoneName(cells[cell])}` };
    return cellButton("polygon", { points: points(center, 0.94) }, about, onCell);
  };
  return [...drawn, ...centers.map(button)];
}

function cornerOf([x, y], k, scale) {
  const angle = ((60 * (k % 6) - 30) * Math.PI) / 180; // Clockwise, starting at the upper right.
  const reach = (scale * HIGH) / 2;
  return `${(x + reach * Math.cos(angle)).toFixed(2)},${(y + reach * Math.sin(angle)).toFixed(2)}`;
}

function points(center, scale) {
  return [0, 1, 2, 3, 4, 5].map((k) => cornerOf(center, k, scale)).join(" ");
}

function hexagon(center, scale, attributes) {
  return svg("polygon", { points: points(center, scale), ...attributes });
}

/** A side of the board: three corners of each cell, clockwise, starting with corner `first`. */
function side(centers, first, look) {
  const line = centers.flatMap((center) => [0, 1, 2].map((k) => cornerOf(center, first + k, 1)));
  return svg("polyline", { points: line.join(" "), class: `az-side ${look}` });
}
