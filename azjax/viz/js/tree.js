import { edgePath, labelText, makeItem, writeCard, writeFold } from "./cards.js";
import { focusedIn, h, pushButton, svg } from "./dom.js";
import { layout } from "./layout.js";
import { playedMove } from "./words.js";

const PADDING = 10; // Pixels around the tree.
const SCALES = [0.86, 1.2]; // The smallest letters, 10.5 pixels, stay above 9 pixels.

/**
 * The picture of a search's tree, which can be explored by keys.
 *
 * Elements are kept from one moment to the next, so that a step is fast and CSS can animate it.
 * Nodes that do not fit are folded; a click opens them.
 */
export class TreeView {
  #items = new Map();
  #wanted = []; // Nodes that the reader opened, the latest first.
  #onSelect;
  #edges = svg("g", { "aria-hidden": "true" });
  #nodes = svg("g");
  #stage = svg("g.az-stage", this.#edges, this.#nodes);

  /** `onSelect(id)` is called when a node is selected; `control` is shown in the bar above. */
  constructor(onSelect, control = null) {
    this.#onSelect = onSelect;
    const label = "search tree: arrow keys move through it, Enter selects or opens";
    this.picture = svg("svg.az-tree", { role: "tree", "aria-label": label }, this.#stage);
    const foldAgain = () => {
      this.#wanted = [];
      this.#arrange();
    };
    const fit = pushButton("fold again", "fit", foldAgain, { class: "az-button az-small", title: "hide what was opened" });
    const bar = h("div.az-tree-bar", control, fit);
    this.element = h("div.az-tree-box", bar, this.picture);
    new ResizeObserver(() => this.#arrange()).observe(this.picture);
    this.picture.addEventListener("click", (event) => this.#click(event));
    this.picture.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Draws a moment of a search. */
  show(search, moment, selected) {
    if (search !== this.search) {
      this.#items.clear();
      for (const group of [this.#edges, this.#nodes]) group.replaceChildren();
      this.#wanted = [];
    }
    Object.assign(this, { search, moment, selected });
    this.#arrange();
  }

  #arrange() {
    if (!this.search) return;
    const { search, moment } = this;
    const [width, height] = [this.picture.clientWidth || 800, this.picture.clientHeight || 480]; // Hidden, it has no size.
    const room = { width: width - 2 * PADDING, height: height - 2 * PADDING };
    const { places, extent, least } = layout(search, moment, room, this.#wanted, this.selected);
    const drawn = places.filter((place) => this.#exists(place));
    this.picture.style.setProperty("min-height", `${least + 2 * PADDING}px`);
    this.places = new Map(drawn.map((place) => [place.key, place]));
    for (const [key, item] of this.#items) {
      if (this.places.get(key)?.form !== item.form || !this.places.has(key)) this.#remove(key, item);
    }
    for (const place of drawn) this.#draw(place);
    this.#mark();
    const whole = Math.min(room.width / extent.width, room.height / extent.height);
    const scale = Math.min(Math.max(whole, SCALES[0]), SCALES[1]);
    const [x, y] = [(width - scale * extent.width) / 2 - scale * extent.left, PADDING - scale * extent.top];
    this.#stage.style.setProperty("transform", `translate(${x}px, ${y}px) scale(${scale})`);
  }

  /** Whether a part is visible at this moment; the layout is that of the whole simulation. */
  #exists({ kind, id }) {
    if (kind === "ghost") return this.moment.phase !== "selection";
    return kind === "fold" || this.search.exists(id, this.moment);
  }

  #remove(key, item) {
    if (item.group === focusedIn(item.group)) this.#items.get("0")?.group.focus({ preventScroll: true });
    item.group.remove();
    item.edge?.remove();
    this.#items.delete(key);
  }

  #draw(place) {
    const { key, kind, id, x, y, width, form } = place;
    let item = this.#items.get(key);
    if (!item) {
      item = Object.assign(makeItem(this.search, place), { kind, id, form });
      this.#items.set(key, item);
      this.#insert(item);
    }
    item.group.style.setProperty("transform", `translate(${x - width / 2}px, ${y}px)`);
    this.#drawEdge(item, place);
    if (kind === "fold") writeFold(item, place.count);
    if (kind !== "node") return;
    const { known } = this.moment;
    const share = writeCard(this.search, item, id, known) / this.search.stats(0, known).visits;
    item.edge?.style.setProperty("--az-width", `${(1 + 3 * Math.sqrt(share)).toFixed(2)}px`);
  }

  /** Inserts an element in the order of node numbers, for screen readers. */
  #insert(item) {
    const [next] = [...this.#items.values()].filter(({ id }) => id > item.id).sort((a, b) => a.id - b.id);
    this.#nodes.insertBefore(item.group, next?.group ?? null);
    if (item.edge) this.#edges.append(item.edge);
  }

  #drawEdge(item, place) {
    if (!item.edge) return;
    const parent = place.kind === "node" ? this.search.nodes[place.id].parent : place.id;
    const d = edgePath(this.places.get(String(parent)), place);
    if (item.d === d) return;
    item.edge.setAttribute("d", d);
    item.edge.style.setProperty("d", `path("${d}")`); // Browsers that support it animate it.
    item.d = d;
  }

  #mark() {
    const { search, moment } = this;
    const { phase, step } = moment;
    const played = playedMove(search, moment);
    const lit = phase === "start" ? [] : phase === "expansion" ? [step.leaf] : [...step.path, step.leaf];
    const tabStop = this.#items.has(String(this.selected)) ? String(this.selected) : "0";
    for (const [key, { kind, id, group, edge, label }] of this.#items) {
      group.setAttribute("tabindex", key === tabStop ? 0 : -1);
      if (kind !== "node") continue;
      const { parent, action } = search.nodes[id];
      const isLit = lit.includes(id);
      const gain = phase === "backup" && step.path.includes(id) ? step.backup[step.path.indexOf(id)] : null;
      const isPlayed = parent === 0 && action === played;
      label.textContent = labelText(search, id, gain, isPlayed);
      label.classList.toggle("az-gain", gain !== null);
      group.classList.toggle("az-selected", id === this.selected);
      group.classList.toggle("az-played", isPlayed);
      group.setAttribute("aria-selected", id === this.selected);
      group.setAttribute("data-phase", isLit ? phase : "");
      // Edges between lit nodes; in an expansion, the edge to the new node.
      edge?.setAttribute("data-phase", isLit ? phase : "");
      if (isLit && edge) this.#edges.append(edge);
    }
  }

  #click(event) {
    const target = event.target.closest("[data-key]");
    if (target) this.#choose(target.getAttribute("data-key"));
  }

  /** Selects a node, or opens a fold. */
  #choose(key) {
    const { kind, id } = this.places.get(key);
    if (kind === "fold") return this.#open(id);
    this.#onSelect(id);
    this.#focus(String(id));
  }

  /** Shows hidden children of a node, if necessary in place of other nodes. */
  #open(parent) {
    const { nodes } = this.search;
    const visits = nodes.map((_, id) => this.search.stats(id, this.moment.known).visits);
    const isHidden = (id) => nodes[id].parent === parent && !this.places.has(String(id));
    const hidden = nodes.map((_, id) => id).filter(isHidden);
    hidden.sort((a, b) => visits[b] - visits[a]);
    this.#wanted = [...hidden, ...this.#wanted.filter((id) => !hidden.includes(id))];
    this.#arrange();
    this.#focus(String(hidden.find((id) => this.places.has(String(id))) ?? parent));
  }

  #focus(key) {
    this.#items.get(key)?.group.focus({ preventScroll: true });
  }

  #key(event) {
    const from = event.target.closest("[data-key]");
    if (!from || event.ctrlKey || event.metaKey || event.altKey) return;
    const key = from.getAttribute("data-key");
    const next = event.key === "Enter" || event.key === " " ? key : this.#neighbor(key, event.key);
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    if (next === key) return this.#choose(key);
    if (next === null) return;
    from.setAttribute("tabindex", -1);
    this.#items.get(next).group.setAttribute("tabindex", 0);
    this.#focus(next);
  }

  /** The neighbor in an arrow's direction: null at an edge of the tree, undefined for other keys. */
  #neighbor(key, arrow) {
    const at = this.places.get(key);
    const parentOf = ({ kind, id }) => (kind === "node" ? this.search.nodes[id].parent : id);
    const places = [...this.places.values()].filter(({ kind }) => kind !== "ghost");
    const nearest = (some) => some.toSorted((a, b) => Math.abs(a.x - at.x) - Math.abs(b.x - at.x))[0]?.key ?? null;
    const row = places.filter(({ depth }) => depth === at.depth);
    if (arrow === "ArrowUp") return parentOf(at) === null ? null : String(parentOf(at));
    if (arrow === "ArrowDown") return nearest(places.filter((place) => at.kind === "node" && parentOf(place) === at.id));
    if (arrow === "ArrowLeft") return nearest(row.filter((place) => place.x < at.x));
    if (arrow === "ArrowRight") return nearest(row.filter((place) => place.x > at.x));
    return undefined;
  }
}
