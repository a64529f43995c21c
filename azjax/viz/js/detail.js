import { board } from "./board.js";
import { fixed, h, replace, signed } from "./dom.js";
import { outcomeWords, playerName } from "./words.js";

/**
 * Shows one node of a recorded search: its board, its facts and the table of its moves.
 *
 * `onSelect(id)` is called when the reader asks for the position after a move.
 */
export function drawDetail(host, search, moment, id, onSelect) {
  const node = search.nodes[id];
  const stats = search.stats(id, moment.known);
  const counted = node.born <= moment.known;
  replace(
    host,
    h("div", { class: "az-detail-head" }, detailBoard(node, stats), facts(search, id, stats, counted)),
    node.over ? null : movesTable(search, moment, id, stats, onSelect),
  );
}

function detailBoard(node, stats) {
  const total = stats.N.reduce((sum, n) => sum + n, 0);
  const heat = Array(node.board.length).fill(0);
  node.actions.forEach((action, i) => (heat[action] = total ? stats.N[i] / total : node.priors[i]));
  const labels = node.board.map((_, cell) => String(cell));
  const shading = node.over ? null : h("figcaption", {}, total ? "shaded by visits" : "shaded by P");
  const look = { size: 132, heat, labels, last: node.action, line: node.line };
  return h("figure", { class: "az-figure" }, board(node.board, look), shading);
}

function facts(search, id, stats, counted) {
  const node = search.nodes[id];
  const mover = playerName(node.player);
  const place = node.parent === null ? "the root" : `after ${node.action}, depth ${node.depth}`;
  const turn = node.over ? `Over: ${outcomeWords(node)}` : `${mover} to move`;
  const rows = [
    ["Visits N", counted ? stats.visits : "0 (counted at backup)"],
    ["Value", counted ? `${signed(stats.value, 4)} for ${mover}` : "\u2013"],
    ["By the evaluator", node.over ? "not asked" : `${signed(node.value, 4)} for ${mover}`],
  ];
  return h(
    "div",
    { class: "az-facts-box" },
    h("p", { class: "az-turn" }, turnGlyph(node), h("strong", {}, turn), h("span", {}, place)),
    h(
      "dl",
      {},
      rows.map(([term, text]) => [h("dt", {}, term), h("dd", {}, text)]),
    ),
  );
}

function turnGlyph(node) {
  const look = node.over ? "az-turn-over" : node.player === 0 ? "az-turn-x" : "az-turn-o";
  return h("span", { class: `az-turn-glyph ${look}`, "aria-hidden": "true" });
}

function movesTable(search, moment, id, stats, onSelect) {
  const node = search.nodes[id];
  const best = search.best(stats);
  const chosen = moment.phase === "selection" && moment.step.path.includes(id);
  const mover = playerName(node.player);
  const heads = [
    ["Move", "the cell"],
    ["P", "prior probability"],
    ["N", "visits"],
    ["Q", `mean value for ${mover}`],
    ["U", "bonus for what is likely and little visited"],
    ["Q + U", "the score; the highest is chosen"],
  ];
  const row = (action, i) => moveRow(search, moment, { id, action, i, stats, best, chosen, onSelect });
  return h(
    "div",
    { class: "az-scroll" },
    h(
      "table",
      { class: "az-table az-moves" },
      h("caption", {}, `${mover}\u2019s moves here; Q is ${mover}\u2019s`),
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heads.map(([name, title]) => h("th", { scope: "col", title }, name)),
        ),
      ),
      h("tbody", {}, node.actions.map(row)),
    ),
  );
}

function moveRow(search, moment, { id, action, i, stats, best, chosen, onSelect }) {
  const child = search.child(id, action, moment);
  const isBest = i === best;
  const cell = (k, text) => h("td", { "data-k": k, "data-action": action }, text);
  const name = child === null ? String(action) : childButton(action, () => onSelect(child));
  const mark = isBest
    ? h("span", { class: "az-mark-next" }, chosen ? "\u2190 chosen" : "\u2190 next")
    : null;
  return h(
    "tr",
    { class: [stats.N[i] ? "" : "az-unvisited", isBest ? "az-best" : ""].join(" ").trim() || null },
    h("th", { scope: "row" }, name),
    cell("P", fixed(search.nodes[id].priors[i], 3)),
    cell("N", String(stats.N[i])),
    cell("Q", stats.N[i] ? signed(stats.Q[i], 4) : fixed(stats.Q[i], 4)),
    cell("U", fixed(stats.U[i], 4)),
    h(
      "td",
      { class: "az-score" },
      h("span", { "data-k": "S", "data-action": action }, scoreText(stats.S[i])),
      mark,
    ),
  );
}

/** Four decimals, or as many as it was recorded with to tell it from others. */
function scoreText(score) {
  const [, decimals = ""] = String(score).split(".");
  return fixed(score, Math.max(4, decimals.length));
}

function childButton(action, onClick) {
  const attributes = { type: "button", class: "az-link", "data-focus": `move ${action}` };
  const title = "look at the position after this move";
  return h("button", { ...attributes, title, on: { click: onClick } }, String(action));
}
