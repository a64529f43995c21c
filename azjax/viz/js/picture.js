// Pictures of positions in any game: boards of stones, or what Python drew for a table.

import { board, boardAspect, boardGroup } from "./board.js";
import { fixed, h, pushButton, signed, svg } from "./dom.js";

const WIDEST = 460; // Pixels of a text.

/**
 * Draws a position, with what belongs to its moves.
 *
 * Options, all by action: `heat` (0..1), `labels` (text), `marks` (a list of actions with a dot).
 * Also `size`, the width in pixels; `last`, `{position, action}` of the move that led here;
 * `onMove(action)`, which makes the moves buttons; `label`, a description; `dots`, on boards of
 * stones a list of cells with a dot.
 */
export function picture(game, position, options = {}) {
  if (game.hasCells) return board(position.board, cellOptions(game, position, options));
  const drawn = drawnPicture(game.table.pictures, position.row, options);
  if (!options.onMove) return withWords(game, position, drawn, options);
  return h("div.az-picture", { "data-board": position.text }, drawn, moveButtons(game, position, options));
}

/** Draws a position inside a larger picture, `size` pixels wide; null if its picture is text. */
export function pictureGroup(game, position, { x, y, size, last }) {
  if (game.hasCells) {
    return boardGroup(position.board, { ...lookOf(game), x, y, size, last: lastCell(game, last), line: position.line });
  }
  const { pictures } = game.table;
  if (pictures.isText) return null;
  const [width, height] = pictures.view(position.row);
  const place = { x, y, width: size, height: (size * height) / width, viewBox: `0 0 ${width} ${height}` };
  return svg("svg", { ...place, class: "az-board" }, pictures.parts(position.row).map(element));
}

/** The width of a picture, relative to its height; null if it is text. */
export function aspect(game, position) {
  if (game.hasCells) return boardAspect(lookOf(game));
  const { pictures } = game.table;
  if (pictures.isText) return null;
  const [width, height] = pictures.view(position.row);
  return width / height;
}

/** What Python drew: row `row` of `pictures`. */
function drawnPicture(pictures, row, { size = 120, label, onMove }) {
  if (pictures.isText) return h("pre.az-text-picture", { style: { "max-width": `${WIDEST}px` } }, pictures.parts(row).join("\n"));
  const [width, height] = pictures.view(row);
  const place = { width: size, height: (size * height) / width, viewBox: `0 0 ${width} ${height}` };
  const attributes = { ...place, class: "az-board", role: onMove ? "group" : "img", "aria-label": label ?? pictures.alt(row) };
  return svg("svg", attributes, pictures.parts(row).map(element));
}

/** Adds the labels of moves below a picture. */
function withWords(game, position, drawn, { labels, marks }) {
  const named = labels ? game.legal(position).filter((action) => labels[action]) : [];
  if (!named.length) return drawn;
  const words = named.map((a) => `${game.moveLabel(position, a)}: ${labels[a]}${marks?.includes(a) ? " \u25cf" : ""}`);
  return h("div.az-picture", drawn, h("p.az-hint", words.join(", ")));
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

function cellOptions(game, { board: cells, line }, { heat, labels, marks, dots, last, onMove, ...rest }) {
  const spread = (byAction, blank) => {
    const byCell = cells.map(() => blank);
    byAction.forEach((x, action) => {
      const cell = game.cell(cells, action);
      if (cell >= 0) byCell[cell] = x;
    });
    return byCell;
  };
  return {
    ...{ ...rest, ...lookOf(game), line, last: lastCell(game, last) },
    heat: heat && spread(heat, 0),
    labels: labels && spread(labels, ""),
    marks: marks ? spread(Array.from({ length: game.numActions }, (_, a) => marks.includes(a)), false) : dots && cells.map((_, cell) => dots.includes(cell)),
    ...(onMove && { onCell: (cell) => onMove(game.action(cell, cells)) }),
  };
}

function lookOf({ rows, columns, hasDiscs, isHexagonal }) {
  return { shape: [rows, columns], discs: hasDiscs, isHexagonal };
}

function lastCell(game, last) {
  return last ? game.cell(last.position.board, last.action) : null;
}

/** One button for each legal move, with its label and a dot for a mark. */
function moveButtons(game, position, { labels, marks, onMove }) {
  const legal = game.legal(position);
  const named = (action) => {
    const name = game.moveLabel(position, action);
    const label = labels?.[action] && labels[action] !== name ? ` ${labels[action]}` : "";
    const text = `${name}${label}${marks?.includes(action) ? " \u25cf" : ""}`;
    return pushButton(text, `move-${action}`, () => onMove(action), { class: "az-button az-small", "data-move": action });
  };
  return h("div.az-group", { role: "group", "aria-label": "moves" }, legal.map(named));
}

/** Makes an SVG element of `[tag, attributes, ...children]`. */
function element(part) {
  if (!Array.isArray(part)) return part;
  const [tag, attributes, ...children] = part;
  return svg(tag, attributes, children.map(element));
}
