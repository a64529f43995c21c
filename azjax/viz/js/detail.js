import { sum } from "./algorithms.js";
import { aspect, picture } from "./board.js";
import { fixed, h, replace, signed } from "./dom.js";
import { byAction } from "./games.js";
import { columns, formula, scoreText } from "./formula.js";
import { highest, moveLabel, moveName, outcomeWords, playedMove, playerName } from "./words.js";

const BOARD = 104; // Pixels of a board's height.
const PLAYOUT = 38; // Pixels of a board's width in a random game.

/** One node of a search: its board, its values, the table of its moves, and a move's formula. */
export class DetailView {
  #onSelect;
  #facts = h("div.az-detail-head");
  #playout = h("div");
  #table = h("div.az-scroll");
  #formula = h("div.az-formula", { role: "group", "aria-label": "formula" });
  #picked = null; // The move under the pointer.

  /** `onSelect(id)` is called when a move is clicked, with the node after it. */
  constructor(onSelect) {
    this.#onSelect = onSelect;
    this.element = h("div", this.#facts, this.#playout, this.#table, this.#formula);
    this.#table.addEventListener("pointerleave", () => this.#pick(null));
  }

  /** Draws a node at a moment. */
  show(search, moment, id) {
    if (search !== this.search || id !== this.id) this.#picked = null;
    Object.assign(this, { search, moment, id });
    const node = search.nodes[id];
    const stats = search.stats(id, moment.known);
    replace(this.#facts, detailBoard(search, id, stats), facts(search, moment, id, stats));
    const hasPlayout = moment.phase === "expansion" && id === moment.step.leaf && node.moves;
    replace(this.#playout, hasPlayout ? playoutBoards(search, id, PLAYOUT) : null);
    replace(this.#table, node.over ? null : this.#moves(node, stats));
    this.#write();
  }

  #moves(node, stats) {
    const { search, moment, id } = this;
    const mover = playerName(node.player);
    const shown = columns(search, id);
    const marks = marksOf(search, moment, id, stats);
    const heads = shown.map(([, name, title]) => h("th", { scope: "col", title }, name));
    return h(
      "table.az-moves",
      h("caption", `${mover}\u2019s moves here; Q is the mean value for ${mover}`),
      h("thead", h("tr", h("th", { scope: "col" }, "Move"), heads, h("td"))),
      h("tbody", node.actions.map((_, i) => this.#row(node, stats, shown, i, marks[i]))),
    );
  }

  #row(node, stats, shown, i, mark) {
    const action = node.actions[i];
    const child = this.search.child(this.id, action, this.moment);
    const text = {
      P: () => fixed(node.priors[i], 3),
      N: () => String(stats.N[i]),
      Q: () => signed(stats.Q[i], 4),
      U: () => scoreText(stats.U[i]),
      S: () => scoreText(stats.S[i]),
    };
    const cell = ([k]) => h("td", h("span", { "data-k": k, "data-action": action }, text[k]()));
    const look = [stats.N[i] ? null : "az-unvisited", mark.look].filter(Boolean).join(" ");
    const pick = () => this.#pick(i);
    const attributes = {
      ...{ type: "button", class: child === null ? "az-link az-plain" : "az-link", "data-focus": `move ${action}` },
      title: child === null ? "untried" : "show the position after this move",
      on: { click: () => child !== null && this.#onSelect(child) },
    };
    return h(
      "tr",
      { class: look || null, "data-row": i, on: { pointerenter: pick, focusin: pick, click: pick } },
      h("th", { scope: "row" }, h("button", attributes, moveLabel(this.search, this.id, action))),
      shown.map(cell),
      h("td.az-mark-next", mark.text),
    );
  }

  #pick(i) {
    if (i === this.#picked) return;
    this.#picked = i;
    this.#write();
  }

  /** Explains the move under the pointer, or the chosen one. */
  #write() {
    const { search, moment, id } = this;
    const node = search.nodes[id];
    const i = node.over ? null : (this.#picked ?? chosenMove(search, moment, id));
    for (const row of this.#table.querySelectorAll("[data-row]")) {
      row.classList.toggle("az-picked", Number(row.dataset.row) === i);
    }
    replace(this.#formula, i === null ? null : formula(search, moment, id, i));
  }
}

/** The index of the move to explain: the one taken, played at the end, or next. */
function chosenMove(search, moment, id) {
  const { actions } = search.nodes[id];
  const at = moment.phase === "selection" ? moment.step.path.indexOf(id) : -1;
  if (at >= 0) return actions.indexOf(moment.step.actions[at]);
  const played = id === 0 ? playedMove(search, moment) : null;
  return played === null ? search.stats(id, moment.known).best : actions.indexOf(played);
}

/** The mark at the end of each row: chosen, next, played, a tie, or its state in sequential halving. */
function marksOf(search, moment, id, stats) {
  const isPlayed = id === 0 && playedMove(search, moment) !== null;
  const isSelection = moment.phase === "selection" && moment.step.path.includes(id);
  const taken = chosenMove(search, moment, id);
  const tied = highest(stats.S);
  return stats.S.map((_, i) => {
    if (i === taken && isPlayed) return { look: "az-best az-played", text: "\u2190 played" };
    if (i === taken) return { look: "az-best", text: isSelection ? "\u2190 chosen" : "\u2190 next" };
    if (stats.stand) return isPlayed ? {} : { look: stats.stand[i] === "out" && "az-out", text: stats.stand[i] };
    return tied.includes(i) ? { text: tied.length > 1 ? "tie" : "highest" } : {};
  });
}

function detailBoard(search, id, stats) {
  const { game, nodes } = search;
  const { position, parent, action, over, priors } = nodes[id];
  const total = sum(stats.N);
  const heat = byAction(game, position, (_, i) => (total ? stats.N[i] / total : priors[i]));
  const labels = byAction(game, position, (move) => game.moveLabel(position, move));
  const size = BOARD * aspect(game);
  const last = parent === null ? null : { position: nodes[parent].position, action };
  const drawn = picture(game, position, { size, heat, labels, last });
  const shading = over ? null : h("figcaption", total ? "shaded by visits" : "shaded by P");
  const units = (drawn.viewBox?.baseVal.width ?? size) / size; // Of the drawing, per pixel.
  return h("figure.az-figure", { style: { "--az-letters": `${10.5 * units}px` } }, drawn, shading);
}

function facts(search, moment, id, stats) {
  const node = search.nodes[id];
  const counted = node.born <= moment.known;
  const mover = playerName(node.player);
  const place = node.parent === null ? "the root" : `after ${moveName(search, node.parent, node.action)}, depth ${node.depth}`;
  const turn = node.over ? `Over: ${outcomeWords(search.game, node.position)}` : `${mover} to move`;
  const look = node.over ? "az-turn-over" : node.player === 0 ? "az-turn-x" : "az-turn-o";
  const glyph = h("span", { class: `az-turn-glyph ${look}`, "aria-hidden": "true" });
  const rows = [
    ["Visits N", counted ? stats.visits : "0 (counted at backup)"],
    ["Value V", counted ? `${signed(stats.value, 4)} for ${mover}` : "\u2013"],
    ["From the evaluator", node.over ? "not needed" : `${signed(node.value, 4)} for ${mover}`],
  ];
  return h(
    "div.az-facts-box",
    h("p.az-turn", glyph, h("strong", turn), h("span", place)),
    h("dl", rows.map(([term, text]) => [h("dt", term), h("dd", text)])),
  );
}

/** Draws the positions of the random game of a node, which appear one after the other. */
function playoutBoards({ game, nodes }, id, size) {
  const positions = [nodes[id].position];
  const boards = nodes[id].moves.map((action) => {
    const last = { position: positions.at(-1), action };
    positions.push(game.step(last.position, action));
    return picture(game, positions.at(-1), { size, last });
  });
  const items = [picture(game, positions[0], { size }), ...boards].map((drawn, i) => h("li", { style: { "--az-turn": i } }, drawn));
  return h("ol.az-playout", { "aria-label": "the random game" }, items);
}
