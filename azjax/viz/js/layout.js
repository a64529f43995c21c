// The layout of a search's tree: which nodes are shown, and where.

import { moveLabel } from "./words.js";

/** Pixels above a card for the label of its edge. */
export const LABEL = 14;
/** The forms of cards: numbers below the board, or next to it if there are many rows. */
const FULL = { form: "full", width: 66, height: 76 };
const COMPACT = { form: "compact", width: 94, height: 28 };
const COMPACT_WIDE = { form: "compact", width: 108, height: 36 }; // For boards with many cells.

const FOLD = { width: 40, height: 24 };
const GHOST = { width: 27, height: 18 };
const LETTER = 6; // Pixels of a letter in a label, at most.
const SHARE = 7; // Letters after the name of a move in a label.
const APART = 6; // Pixels between neighbors.
const GAP = 7; // Pixels between rows, at least, for the edges.
const AIR = 40; // Pixels that full cards leave for wider gaps.
const WIDEST_GAPS = [60, 40, 28]; // Below the first rows, whose edges are long; the last number holds for all further rows.
const PATIENCE = 40; // Failures in a row after which no more nodes are tried.

/**
 * Arranges the tree for one simulation; the layout is the same in all of its phases.
 *
 * `room` is `{width, height}` in drawing units; only the current path may need more. `wanted` are
 * nodes to prefer, the most wanted first, and `selected` is a node that is always shown.
 *
 * Returns `places`, each `{key, kind, id, x, y, width, height, ...}` with `x` of its middle and
 * `y` of its top. Its kind is `node`, with its `form`; `fold`, for the `count` nodes below `id` that
 * are not shown; or `ghost`, one of the likeliest untried moves at `id`. Also returns `extent`, the
 * rectangle around them, and `least`, the smallest height in which compact cards fit.
 */
export function layout(search, moment, room, wanted = [], selected = 0) {
  const tree = { ...treeAt(search, moment), mostGhosts: Math.floor(room.width / (GHOST.width + APART)) };
  const compact = search.game.columns <= 3 ? COMPACT : COMPACT_WIDE;
  const rows = makeRows(tree, room.height, compact);
  const forced = new Set(forcedNodes(search, moment, tree));
  const fill = () => chooseNodes(search, moment, tree, rows, room.width, forced, wanted);
  let shown = fill();
  if (!shown.has(selected) && tree.size[selected]) {
    for (const id of lineTo(search, selected)) forced.add(id);
    shown = fill();
  }
  const least = (tree.depth + 1) * (LABEL + compact.height + GAP) - GAP;
  return { ...place(grow(search, tree, rows, shown), rows), least };
}

/** The tree after the simulation: each node's children and the size of its subtree. */
function treeAt(search, moment) {
  const { nodes } = search;
  const end = { ...moment, phase: moment.step ? "backup" : "start" };
  const [children, size] = [nodes.map(() => []), nodes.map(() => 0)];
  let depth = 1;
  for (let id = nodes.length - 1; id >= 0; id--) {
    if (!search.exists(id, end)) continue;
    const node = nodes[id];
    size[id] += 1;
    depth = Math.max(depth, node.depth + (node.over ? 0 : 1));
    if (node.parent === null) continue;
    size[node.parent] += size[id];
    children[node.parent].push(id);
  }
  for (const ids of children) ids.sort((a, b) => nodes[a].action - nodes[b].action);
  const leaf = moment.step ? moment.step.leaf : 0;
  const expands = !nodes[leaf].over && (!moment.step || moment.step.new);
  return { children, size, depth, expanding: expands ? leaf : null };
}

/** The rows of the tree: full cards from the top, as long as all rows fit. */
function makeRows(tree, height, compact) {
  const cards = Array.from({ length: tree.depth + 1 }, () => compact);
  const total = () => cards.reduce((sum, card) => sum + LABEL + card.height + GAP, -GAP);
  for (let i = 0; i < cards.length; i++) {
    cards[i] = FULL;
    if (total() + AIR <= height) continue;
    cards[i] = compact;
    break;
  }
  const more = Math.max(0, height - total()) / (cards.length + 2);
  let top = 0;
  return cards.map((card, i) => {
    const row = { ...card, top };
    const widest = WIDEST_GAPS[Math.min(i, WIDEST_GAPS.length - 1)];
    top += LABEL + card.height + Math.min(widest, GAP + Math.max(1, 3 - i) * more);
    return row;
  });
}

function lineTo(search, id) {
  const line = [];
  for (let at = id; at !== null; at = search.nodes[at].parent) line.push(at);
  return line;
}

/** The path of the simulation and, at the search's end, the move played. */
function forcedNodes(search, moment, tree) {
  const path = moment.step ? lineTo(search, moment.step.leaf) : [0];
  if (moment.simulation !== search.length) return path;
  const isPlayed = (id) => search.nodes[id].action === search.action;
  return path.concat(tree.children[0].filter(isPlayed));
}

/** The most visited nodes that fit, the root's moves first. */
function chooseNodes(search, moment, tree, rows, width, forced, wanted) {
  const shown = new Set(forced);
  let failed = 0;
  for (const id of [...wanted, ...byVisits(search, moment, tree)]) {
    if (shown.has(id) || !tree.size[id]) continue;
    const more = lineTo(search, id).filter((other) => !shown.has(other));
    for (const other of more) shown.add(other);
    if (extentOf(outlineOf(grow(search, tree, rows, shown))).width <= width) {
      failed = 0;
      continue;
    }
    for (const other of more) shown.delete(other);
    if (++failed === PATIENCE) break;
  }
  return shown;
}

function byVisits(search, moment, tree) {
  const { nodes } = search;
  const known = Math.max(0, moment.simulation - 1);
  const bonus = (id) => (nodes[id].depth === 1 ? nodes.length : 0);
  const rank = nodes.map((_, id) => (tree.size[id] ? search.stats(id, known).visits + bonus(id) : 0));
  const ids = nodes.map((_, id) => id).filter((id) => tree.size[id]);
  return ids.sort((a, b) => rank[b] - rank[a] || a - b);
}

/** The tree to draw: the nodes shown, folds for the others, and ghosts of untried moves. */
function grow(search, tree, rows, shown, id = 0) {
  const depth = search.nodes[id].depth;
  const visible = tree.children[id].filter((child) => shown.has(child));
  const below = visible.map((child) => grow(search, tree, rows, shown, child));
  const drawn = visible.reduce((sum, child) => sum + tree.size[child], 1);
  const part = { id, depth: depth + 1, below: [] };
  if (id === tree.expanding) {
    const { actions, priors } = search.nodes[id];
    const least = priors.toSorted((a, b) => b - a)[tree.mostGhosts - 1] ?? 0;
    for (const action of actions.filter((_, i) => priors[i] >= least).slice(0, tree.mostGhosts)) {
      const width = Math.max(GHOST.width, LETTER * moveLabel(search, id, action).length);
      below.push({ ...part, ...GHOST, width, kind: "ghost", key: `ghost-${id}-${action}`, action });
    }
  }
  const count = tree.size[id] - drawn;
  if (count > 0) below.push({ ...part, ...FOLD, kind: "fold", key: `fold-${id}`, count });
  const { form, width: least, height } = rows[depth];
  const { parent, action } = search.nodes[id];
  const letters = parent === null ? 0 : moveLabel(search, parent, action).length + SHARE;
  const width = Math.max(least, LETTER * letters);
  return { kind: "node", key: String(id), id, depth, form, width, height, below };
}

/**
 * Sets the horizontal offsets of everything below a part, each relative to its parent.
 *
 * A subtree has the same drawing everywhere; subtrees move together until their outlines,
 * `[left, right]` of every row, touch (Reingold and Tilford 1981, "Tidier Drawings of Trees").
 */
function outlineOf(part) {
  const merged = [];
  for (const child of part.below) {
    const outline = outlineOf(child);
    const both = outline.slice(0, merged.length);
    child.offset = both.length ? Math.max(...both.map(([left], i) => merged[i][1] + APART - left)) : 0;
    outline.forEach(([left, right], i) => {
      merged[i] = [merged[i]?.[0] ?? left + child.offset, right + child.offset];
    });
  }
  // Folds are not centered, so that a line of single moves is straight.
  const moves = part.below.filter(({ kind }) => kind !== "fold");
  const offsets = (moves.length ? moves : part.below).map(({ offset }) => offset);
  const middle = offsets.length ? (offsets[0] + offsets.at(-1)) / 2 : 0;
  for (const child of part.below) child.offset -= middle;
  const half = part.width / 2;
  return [[-half, half], ...merged.map(([left, right]) => [left - middle, right - middle])];
}

function extentOf(outline) {
  const left = Math.min(...outline.map(([from]) => from));
  return { left, width: Math.max(...outline.map(([, to]) => to)) - left };
}

function place(root, rows) {
  const outline = outlineOf(root);
  const places = [];
  const visit = ({ below, offset, ...part }, x) => {
    places.push({ ...part, x, y: rows[part.depth].top + LABEL });
    for (const child of below) visit(child, x + child.offset);
  };
  visit(root, 0);
  const height = Math.max(...places.map((part) => part.y + part.height));
  return { places, extent: { ...extentOf(outline), top: 0, height } };
}
