import { boardGroup } from "./board.js";
import { Camera } from "./camera.js";
import { fixed, focusedIn, h, pushButton, signed, svg } from "./dom.js";
import { nodeWords, outcomeWords, playerName } from "./words.js";

const BOARD = 44; // Pixels of a node's board; its box is the recording's `node_size`.

/**
 * The picture of a search's tree, which can be zoomed, dragged and walked through by keys.
 *
 * Elements are kept by node from one moment to the next, so that a step costs little and CSS can
 * move them smoothly.
 */
export class TreeView {
  #items = new Map();
  #onSelect;
  #edges = svg("g", { class: "az-edges", "aria-hidden": "true" });
  #nodes = svg("g", { class: "az-nodes" });
  #stage = svg("g", { class: "az-stage" }, this.#edges, this.#nodes);

  constructor(onSelect) {
    this.#onSelect = onSelect;
    const label = "search tree: arrow keys walk through it, Enter selects";
    this.picture = svg("svg", { class: "az-tree", role: "tree", "aria-label": label }, this.#stage);
    this.element = h("div", { class: "az-tree-box" }, this.picture, this.#buttons());
    this.camera = new Camera(this.picture, this.#stage);
    this.picture.addEventListener("click", (event) => this.#click(event));
    this.picture.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Draws a moment of a search. */
  show(search, moment, selected) {
    if (search !== this.search) this.#clear();
    Object.assign(this, { search, moment, selected });
    const places = search.shown(moment);
    const seen = new Set(places.map(({ id }) => id));
    for (const [id, item] of this.#items) if (!seen.has(id)) this.#remove(id, item);
    this.places = new Map(places.map((place) => [place.id, place]));
    for (const place of places) this.#draw(place);
    this.#mark();
    this.#aim();
  }

  #buttons() {
    const small = (text, label, name, click) =>
      pushButton(text, name, click, { class: "az-button az-small", "aria-label": label, title: label });
    return h(
      "div",
      { class: "az-zoom", role: "group", "aria-label": "zoom" },
      small("+", "zoom in", "zoom-in", () => this.camera.zoom(1.25)),
      small("\u2212", "zoom out", "zoom-out", () => this.camera.zoom(0.8)),
      small("fit", "fit the tree into the picture", "fit", () => this.camera.fit()),
    );
  }

  #clear() {
    this.#items.clear();
    this.#edges.replaceChildren();
    this.#nodes.replaceChildren();
    this.camera.fit(false);
  }

  #remove(id, item) {
    if (item.group === focusedIn(item.group)) this.#items.get(0)?.group.focus({ preventScroll: true });
    item.group.remove();
    item.edge?.remove();
    this.#items.delete(id);
  }

  #draw(place) {
    const { id, x, y } = place;
    const [width] = this.search.recording.node_size;
    let item = this.#items.get(id);
    if (!item) {
      item = this.#makeNode(id);
      this.#items.set(id, item);
      // In the order of their making, whichever way the reader came.
      const later = [...this.#items.keys()].filter((other) => other > id);
      this.#nodes.insertBefore(item.group, this.#items.get(Math.min(...later))?.group ?? null);
      if (item.edge) this.#edges.append(item.edge);
    }
    if (item.x !== x) item.group.style.setProperty("transform", `translate(${x - width / 2}px, ${y}px)`);
    item.x = x;
    this.#drawEdge(item, place);
    this.#write(item, id, place.hidden);
  }

  #makeNode(id) {
    const [width, height] = this.search.recording.node_size;
    const node = this.search.nodes[id];
    const text = (y, look) => svg("text", { x: width / 2, y, class: look });
    const item = { visits: text(60, "az-n"), worth: text(72, "az-q"), badge: null, x: null };
    const radius = node.player === 0 ? 2 : 15;
    const look = node.over ? "az-node-over" : node.player === 0 ? "az-node-x" : "az-node-o";
    const box = { width, height, rx: node.over ? 5 : radius };
    const style = { x: (width - BOARD) / 2, y: 4, size: BOARD, last: node.action, line: node.line };
    const attributes = { class: `az-node ${look}`, role: "treeitem", tabindex: -1, "data-node": id };
    item.gain = text(-6, "az-gain");
    item.prior = node.parent === null ? null : text(-6, "az-p");
    item.group = svg(
      "g",
      { ...attributes, "aria-level": node.depth + 1 },
      svg("rect", { ...box, class: "az-node-box" }),
      node.over
        ? svg("rect", {
            x: 2.5,
            y: 2.5,
            width: width - 5,
            height: height - 5,
            rx: 3,
            class: "az-node-inner",
          })
        : null,
      boardGroup(node.board, style),
      item.visits,
      item.worth,
      item.prior,
      item.gain,
      node.over
        ? svg("text", { x: width / 2, y: height + 12, class: "az-outcome" }, outcomeWords(node))
        : null,
    );
    item.edge = node.parent === null ? null : svg("path", { class: "az-edge" });
    return item;
  }

  #drawEdge(item, { id, x, y }) {
    const { parent } = this.search.nodes[id];
    const from = this.places.get(parent);
    if (!item.edge || !from) return;
    const top = from.y + this.search.recording.node_size[1];
    const bend = (y - top) / 2;
    const d = `M${from.x} ${top}C${from.x} ${top + bend} ${x} ${y - bend} ${x} ${y}`;
    if (item.d === d) return;
    item.edge.setAttribute("d", d);
    item.edge.style.setProperty("d", `path("${d}")`); // Where the browser can, it moves smoothly.
    item.d = d;
  }

  #write(item, id, hidden) {
    const { known } = this.moment;
    const arrival = this.search.arrival(id, known);
    const stats = arrival ?? this.search.stats(id, known);
    const visits = arrival ? arrival.N : stats.visits;
    const worth = arrival ? arrival.Q : stats.value;
    const root = this.search.stats(0, known).visits;
    const key = `${visits} ${worth} ${hidden} ${root}`;
    if (item.written === key) return; // Most nodes stay as they are from step to step.
    item.written = key;
    item.visits.textContent = `N ${visits}`;
    item.worth.textContent = visits ? `${arrival ? "Q" : "V"} ${signed(worth)}` : "new";
    if (item.prior) item.prior.textContent = `P ${fixed(arrival.P).replace(/^0/, "")}`;
    item.edge?.style.setProperty("--az-width", `${(1 + 6 * Math.sqrt(visits / root)).toFixed(2)}px`);
    item.group.setAttribute("data-n", visits);
    item.group.setAttribute("data-q", worth);
    item.group.setAttribute("aria-label", nodeWords(this.search, id, known));
    this.#writeBadge(item, hidden);
  }

  #writeBadge(item, hidden) {
    if (item.hidden === hidden) return;
    item.hidden = hidden;
    item.badge?.remove();
    item.badge = null;
    if (!hidden) return;
    const [width, height] = this.search.recording.node_size;
    const text = `+${hidden}`;
    const wide = 8 + 6.5 * text.length;
    item.badge = svg(
      "g",
      { class: "az-badge", transform: `translate(${width - 4} ${height - 2})` },
      svg("title", {}, `${hidden} more moves tried, not drawn`),
      svg("rect", { x: -wide / 2, y: -8, width: wide, height: 16, rx: 8 }),
      svg("text", {}, text),
    );
    item.group.append(item.badge);
  }

  #mark() {
    const { phase, step } = this.moment;
    const path = new Map((step?.path ?? []).map((id, i) => [id, i]));
    for (const [id, item] of this.#items) {
      const lit = this.#lit(id, path);
      const onPath = path.has(id) || id === step?.leaf;
      const gain = phase === "backup" && path.has(id) ? step.backup[path.get(id)] : null;
      const key = `${lit && phase} ${onPath} ${gain} ${id === this.selected} ${id === this.#tabStop()}`;
      if (item.marked === key) continue;
      item.marked = key;
      item.group.classList.toggle("az-selected", id === this.selected);
      item.group.setAttribute("aria-selected", id === this.selected);
      item.group.setAttribute("tabindex", id === this.#tabStop() ? 0 : -1);
      item.group.setAttribute("data-phase", lit ? phase : "");
      // Edges between the lit nodes; the way to a new node lights up with it, in its expansion.
      item.edge?.setAttribute("data-phase", lit && id !== 0 ? phase : "");
      item.edge?.classList.toggle("az-on-path", onPath);
      const mover = playerName(this.search.nodes[id].player);
      item.gain.textContent = gain === null ? "" : `${signed(gain)} ${mover}`;
      item.prior?.classList.toggle("az-covered", gain !== null);
      if (lit && item.edge) this.#edges.append(item.edge);
    }
  }

  #lit(id, path) {
    const { phase, step } = this.moment;
    if (phase === "start") return false;
    if (phase === "expansion") return id === step.leaf;
    return path.has(id) || id === step.leaf;
  }

  #tabStop() {
    return this.#items.has(this.selected) ? this.selected : 0;
  }

  #aim() {
    const { recording, nodes } = this.search;
    const { ids, x } = recording.frames[this.moment.simulation];
    const leaf = this.moment.step?.leaf ?? 0;
    this.camera.aim(this.search.extent(this.moment), { x: x[ids.indexOf(leaf)], y: nodes[leaf].y });
  }

  #click(event) {
    const node = event.target.closest("[data-node]");
    if (node && !this.camera.dragged) this.#select(Number(node.getAttribute("data-node")));
  }

  #select(id) {
    this.#onSelect(id);
    this.#items.get(id)?.group.focus({ preventScroll: true });
  }

  #key(event) {
    const from = event.target.closest("[data-node]");
    if (!from || event.ctrlKey || event.metaKey || event.altKey) return;
    const id = Number(from.getAttribute("data-node"));
    const next = event.key === "Enter" || event.key === " " ? id : this.#neighbour(id, event.key);
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    if (next === null) return;
    if (next === id) this.#select(id);
    else this.#walk(id, next);
  }

  #walk(id, next) {
    const item = this.#items.get(id);
    const { group } = this.#items.get(next);
    item.group.setAttribute("tabindex", -1);
    group.setAttribute("tabindex", 0);
    item.marked = this.#items.get(next).marked = null;
    group.focus({ preventScroll: true });
    this.camera.reveal(this.places.get(next));
  }

  /** The node that an arrow key leads to: null at an edge of the tree, undefined for other keys. */
  #neighbour(id, key) {
    const { nodes } = this.search;
    const at = this.places.get(id);
    const inRow = (depth) =>
      [...this.places.values()].filter((place) => nodes[place.id].depth === depth);
    const nearest = (places) =>
      places.reduce((a, b) => (a && Math.abs(a.x - at.x) <= Math.abs(b.x - at.x) ? a : b), null)?.id ??
      null;
    const row = inRow(nodes[id].depth);
    if (key === "ArrowUp") return nodes[id].parent;
    if (key === "ArrowDown")
      return nearest(inRow(nodes[id].depth + 1).filter((place) => nodes[place.id].parent === id));
    if (key === "ArrowLeft") return nearest(row.filter((place) => place.x < at.x));
    if (key === "ArrowRight") return nearest(row.filter((place) => place.x > at.x));
    return undefined;
  }
}

/** What the tree's colours, shapes and letters mean. */
export function treeLegend() {
  const phase = (name, text) =>
    h("li", {}, h("span", { class: "az-key-line", "data-phase": name }), text);
  const shape = (look, text) => h("li", {}, h("span", { class: `az-turn-glyph ${look}` }), text);
  const term = (name, text) => h("li", {}, h("b", {}, name), ` ${text}`);
  return h(
    "ul",
    { class: "az-legend", "aria-label": "legend" },
    phase("selection", "selection: down the tree by the highest Q + U"),
    phase("expansion", "expansion and evaluation: a new position, and what the evaluator says of it"),
    phase("backup", "backup: the value goes up, its sign turning with the turns"),
    shape("az-turn-x", "X to move"),
    shape("az-turn-o", "O to move"),
    shape("az-turn-over", "game over"),
    term("N", "visits (lines: thicker with more)"),
    term("Q", "mean value for the player who made the move"),
    term("V", "mean value for the player to move at the root"),
    term("P", "prior probability of the move"),
    term("+3", "moves tried and not drawn"),
  );
}
