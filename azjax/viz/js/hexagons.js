import { CELL } from "./cells.js";
import { svg } from "./dom.js";

const HIGH = (2 * CELL) / Math.sqrt(3);

/**
 * The shapes of a board of Hex, see `board.js`: a rhombus of hexagons, as `azjax/games/hexagons.py`
 * draws them, whose sides have the color of the player who connects them.
 */
export function hexagons([n]) {
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
