// The parts of the tree: cards of nodes, folds of several nodes, ghosts of untried moves.

import { aspect, pictureGroup } from "./board.js";
import { fixed, h, signed, svg } from "./dom.js";
import { LABEL } from "./layout.js";
import { moveLabel, moveName, nodeWords, outcomeWords, playerName } from "./words.js";

/** The places of a card's board and numbers, by the form of the card. */
const CARDS = {
  full({ width }, wide) {
    const size = 44 * Math.min(wide, 1.4);
    return { board: { x: (width - size) / 2, y: 4, size }, text: { x: width / 2, "text-anchor": "middle" }, lines: [58, 71] };
  },
  compact({ height }, wide) {
    const size = (height - 6) * wide;
    return { board: { x: 5, y: 3, size }, text: { x: 11 + size }, lines: [height / 2 - 2.5, height / 2 + 10] };
  },
};

const HIDDEN = { "aria-hidden": "true" }; // The title has it in words.

/** Makes the part for a place of the layout, without its numbers. */
export function makeItem(search, place) {
  const make = { node: makeCard, fold: makeFold, ghost: makeGhost }[place.kind];
  const item = make(search, place);
  const hasEdge = place.kind !== "node" || search.nodes[place.id].parent !== null;
  item.edge = hasEdge ? svg("path", { class: `az-edge az-edge-${place.kind}` }) : null;
  return item;
}

/** The line from the card above; it bends only between the rows, where there are no labels. */
export function edgePath(from, { kind, x, y }) {
  const top = from.y + from.height;
  const end = y - LABEL - 1;
  const middle = (top + end) / 2;
  const down = kind === "fold" ? `V${y - 5}` : "";
  return `M${from.x} ${top}C${from.x} ${middle} ${x} ${middle} ${x} ${end}${down}`;
}

/** Writes the numbers of a node after `known` simulations. */
export function writeCard(search, item, id, known) {
  const arrival = search.arrival(id, known);
  const { visits, value } = search.stats(id, known);
  const [N, Q] = arrival ? [arrival.N, arrival.Q] : [visits, value];
  item.visits.textContent = `N ${N}`;
  item.value.textContent = N ? valueText(search, id, Q) : "new";
  item.group.setAttribute("data-n", N);
  item.group.setAttribute("data-q", Q);
  item.title.textContent = nodeWords(search, id, known);
  return N;
}

/** The label of the edge to a node: the move and its P, the value backed up, or "played". */
export function labelText(search, id, gain, isPlayed) {
  const { parent, action, player } = search.nodes[id];
  if (gain !== null && !isPlayed) return `${signed(gain)} ${playerName(player)}`;
  if (parent === null) return "";
  const name = moveLabel(search, parent, action);
  if (isPlayed) return `${name} played`;
  return search.algorithm === "uct" ? name : `${name}  P ${shortShare(search.arrival(id, 0).P)}`;
}

/** Writes the number of nodes in a fold. */
export function writeFold(item, count) {
  item.count.textContent = `+${count}`;
  item.title.textContent = `${count} more ${count === 1 ? "position" : "positions"}, folded: open`;
}

function makeCard(search, { id, form, width, height }) {
  const { nodes, game } = search;
  const { over, player, parent, action, position, depth } = nodes[id];
  const { board, text, lines } = CARDS[form]({ width, height }, aspect(game));
  const line = (i, look) => svg("text", { ...text, ...HIDDEN, y: lines[i], class: look });
  const item = { visits: line(0, "az-n"), value: line(1), title: svg("title") };
  const last = parent === null ? null : { position: nodes[parent].position, action };
  const [look, rx] = over ? ["az-node-over", 5] : player === 0 ? ["az-node-x", 2] : ["az-node-o", 12];
  const inner = { x: 2.5, y: 2.5, width: width - 5, height: height - 5, rx: 3 };
  item.label = svg("text", { ...HIDDEN, x: width / 2, y: -5, class: "az-edge-label" });
  item.group = svg(
    "g",
    { ...treeItem(id, depth), class: `az-node ${look}`, "data-node": id },
    item.title,
    svg("rect", { width, height, rx, class: "az-node-box" }),
    over && svg("rect", { ...inner, class: "az-node-inner" }),
    pictureGroup(game, position, { ...board, last }),
    item.visits,
    item.value,
    item.label,
  );
  return item;
}

function makeFold(search, { key, id, depth, width, height }) {
  const count = svg("text", { ...HIDDEN, x: width / 2 - 2, y: height / 2 + 4, class: "az-count" });
  const title = svg("title");
  const sheet = (by) => svg("rect", { x: by, y: -by, width: width - 4, height, rx: 4 });
  const attributes = { ...treeItem(key, depth), class: "az-fold", "data-fold": id, "aria-expanded": "false" };
  return { group: svg("g", attributes, title, [4, 2, 0].map(sheet), count), count, title };
}

function treeItem(key, depth) {
  return { role: "treeitem", tabindex: -1, "data-key": key, "aria-level": depth + 1 };
}

function makeGhost(search, { id, action, width, height }) {
  const { actions, priors } = search.nodes[id];
  const share = search.algorithm === "uct" ? "\u221e" : shortShare(priors[actions.indexOf(action)]);
  const group = svg(
    "g.az-ghost",
    { "data-ghost": action, ...HIDDEN },
    svg("title", `untried: ${moveName(search, id, action)}`),
    svg("text", { x: width / 2, y: -5, class: "az-edge-label" }, moveLabel(search, id, action)),
    svg("rect", { width, height, rx: 4 }),
    svg("text", { x: width / 2, y: 13 }, share),
  );
  return { group };
}

function valueText(search, id, Q) {
  const node = search.nodes[id];
  if (node.over && node.parent !== null) return `${outcomeWords(search.game, node.position)} ${signed(Q, 0)}`;
  const whose = node.parent === null ? node.player : search.nodes[node.parent].player;
  return `${node.parent === null ? "V" : "Q"} ${signed(Q)} ${playerName(whose)}`;
}

/** A probability without its leading zero. */
function shortShare(P) {
  return fixed(P).replace(/^0/, "");
}

/** The meaning of the tree's colors, shapes and letters. */
export function treeLegend() {
  const phase = (name, text) => h("li", h("span.az-key-line", { "data-phase": name }), text);
  const shape = (look, text) => h("li", h("span", { class: `az-turn-glyph ${look}` }), text);
  const term = (name, text) => h("li", h("b", name), ` ${text}`);
  return h(
    "ul.az-legend",
    { "aria-label": "legend" },
    phase("selection", "selection: follow the highest score"),
    phase("expansion", "expansion and evaluation: a new position"),
    phase("backup", "backup: the value goes up, with its sign for the player to move"),
    shape("az-turn-x", "X to move"),
    shape("az-turn-o", "O to move"),
    shape("az-turn-over", "game over"),
    shape("az-turn-ghost", "untried move"),
    term("N", "visits of a position, with its own evaluation; n, of a move"),
    term("V", "mean value of a position, for the player to move"),
    term("Q", "mean value of a move, for the player named after it"),
    term("P", "prior probability of a move"),
    term("U, S", "bonus for moves with few visits, and score"),
    term("g, \u2113, \u03c3, \u03c0\u2032", "Gumbel search: noise, logit of P, weighted Q, improved policy"),
    term("+37", "positions not shown: click to open"),
  );
}
