// A map of the game: every class of positions is a dot, colored for each iteration of a run.

import { h, numbers, percent, replace, signed, svg } from "./dom.js";
import { gameNamed } from "./games.js";
import { drawnPicture, picture } from "./picture.js";
import { openPictures, spellMove } from "./table.js";

const ATLAS_PITCH = 10; // Drawing units between dots.
const ATLAS_WIDTH = 33; // Of the longest rows: all games have the same scale.
const ATLAS_LEFT = 26; // For the numbers of moves.
const ATLAS_MARGIN = 8;
const ATLAS_PERIOD = 700; // Milliseconds per iteration while playing.
const ATLAS_RESULTS = { 1: "a win", 0: "a draw", "-1": "a loss" };

/** Shows the data of `atlas_data` in Python: a slider, the dots, and one dot's board. */
export function atlas(root, data, place) {
  const view = new AtlasView(atlasRead(data), place);
  replace(root, view.element);
  view.show(view.atlas.frames.length - 1);
  view.select(0);
  place.follow((names) => view.follow(names));
}

class AtlasView {
  #frame = 0;
  #selected = 0;
  #timer = null;

  constructor(data, place) {
    this.atlas = data;
    this.place = place;
    this.dots = data.members.map((_, i) => this.#dot(i));
    this.slider = h("input", {
      type: "range",
      class: "az-atlas-slider",
      min: 0,
      max: data.frames.length - 1,
      value: 0,
      "aria-label": "iteration",
      on: { input: () => this.#jump(Number(this.slider.value)) },
    });
    this.button = h("button", { type: "button", class: "az-button az-atlas-play", on: { click: () => this.#toggle() } });
    this.counts = h("p.az-atlas-counts");
    this.legend = h("p.az-atlas-legend");
    this.detail = h("div.az-atlas-detail", { "aria-live": "polite" });
    this.ring = svg("circle.az-atlas-ring", { r: 6.4 });
    const drawn = this.#picture();
    const { width, height } = drawn.viewBox.baseVal;
    this.element = h(
      "div.az-atlas",
      { style: { "--az-shape": width / height } },
      h("div.az-atlas-controls", this.button, this.slider),
      this.counts,
      h("div.az-atlas-body", h("div.az-atlas-map", drawn, this.legend), this.detail),
    );
    this.#name();
  }

  /** Shows an iteration, by its index. */
  show(place) {
    this.#frame = place;
    this.slider.value = place;
    const frame = this.atlas.frames[place];
    this.slider.setAttribute("aria-valuetext", `iteration ${frame.iteration}`);
    this.counts.textContent = atlasCounts(this.atlas, frame);
    this.dots.forEach((dot, i) => this.#paint(dot, i, frame));
    replace(this.legend, atlasLegend(this.atlas.isMerged));
    this.#describe();
  }

  /** Shows the board and the numbers of a dot. */
  select(index) {
    this.#selected = index;
    this.ring.setAttribute("cx", this.dots[index].getAttribute("cx"));
    this.ring.setAttribute("cy", this.dots[index].getAttribute("cy"));
    this.#describe();
  }

  /** Follows the page's position and iteration. */
  follow(names) {
    if (names.includes("board")) {
      const index = atlasFind(this.atlas, this.place.get("board"));
      if (index !== undefined) this.select(index);
    }
    if (names.includes("iteration")) {
      const wanted = Number(this.place.get("iteration"));
      const found = this.atlas.frames.findIndex(({ iteration }) => iteration === wanted);
      if (found >= 0) this.show(found);
    }
  }

  /** Sets the page's position to that of a dot. */
  #goTo(index) {
    this.select(index);
    const text = this.atlas.boards?.[index] ?? this.atlas.rows?.[index];
    if (text !== undefined) this.place.set({ board: text });
  }

  #dot(index) {
    const { x, y } = this.atlas;
    const place = { cx: ATLAS_LEFT + x[index] * ATLAS_PITCH, cy: ATLAS_MARGIN + y[index] * ATLAS_PITCH };
    return svg("circle", { ...place, r: 3.3, "data-index": index });
  }

  #picture() {
    const { x, y, ply } = this.atlas;
    const width = ATLAS_LEFT + Math.max(ATLAS_WIDTH, ...x) * ATLAS_PITCH + ATLAS_MARGIN;
    const height = Math.max(...y) * ATLAS_PITCH + 2 * ATLAS_MARGIN;
    const labels = Array.from({ length: Math.max(...ply) + 1 }, (_, moves) => this.#plyLabel(moves));
    const point = (event) => {
      const index = event.target.dataset?.index;
      if (index !== undefined && Number(index) !== this.#selected) this.select(Number(index));
    };
    const go = (event) => {
      const index = event.target.dataset?.index;
      if (index !== undefined) this.#goTo(Number(index));
    };
    return svg(
      "svg.az-atlas-picture",
      {
        viewBox: `0 0 ${width} ${height}`,
        tabindex: 0,
        role: "application",
        "aria-label": `every position${this.atlas.isMerged ? " up to symmetry" : ""}, by the number of moves made; arrow keys select neighbors`,
        on: { pointermove: point, click: go, keydown: (event) => this.#key(event) },
      },
      labels,
      this.dots,
      this.ring,
    );
  }

  #plyLabel(moves) {
    const rows = Array.from(this.atlas.y).filter((_, i) => this.atlas.ply[i] === moves);
    const y = ATLAS_MARGIN + ((Math.min(...rows) + Math.max(...rows)) / 2) * ATLAS_PITCH;
    return svg("text.az-atlas-ply", { x: 12, y }, String(moves), svg("title", `moves made: ${moves}`));
  }

  #paint(dot, index, frame) {
    const over = this.atlas.members[index] === 0;
    const share = over ? 0 : frame.wrong[index] / this.atlas.members[index];
    const look = over ? "over" : share === 0 ? "ok" : share < 0.5 ? "some" : share < 1 ? "half" : "all";
    dot.setAttribute("class", `az-atlas-dot az-atlas-${look}`);
    dot.setAttribute("r", share > 0 ? 4.4 : 3.3);
  }

  #name() {
    this.button.textContent = this.#timer === null ? "Play" : "Pause";
  }

  #jump(place) {
    this.#stop();
    this.show(place);
    this.place.set({ iteration: this.atlas.frames[place].iteration });
  }

  #toggle() {
    if (this.#timer !== null) return this.#stop();
    const last = this.atlas.frames.length - 1;
    this.show(this.#frame === last ? 0 : this.#frame);
    this.#timer = setInterval(() => this.#advance(last), ATLAS_PERIOD);
    this.#name();
  }

  #advance(last) {
    if (this.#frame >= last || !this.element.isConnected) this.#stop();
    else this.show(this.#frame + 1);
  }

  #stop() {
    clearInterval(this.#timer);
    this.#timer = null;
    this.#name();
  }

  #key(event) {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    const next = atlasNeighbor(this.atlas, this.#selected, step);
    if (next !== null) this.#goTo(next);
    event.preventDefault();
  }

  #describe() {
    replace(this.detail, atlasDetail(this.atlas, this.atlas.frames[this.#frame], this.#selected));
  }
}

function atlasRead(data) {
  const members = Array.from(numbers(data.members, Uint16Array));
  const moves = numbers(data.moves, Uint8Array);
  const named = data.named && numbers(data.named, Uint16Array);
  const game = data.game ? gameNamed(data.game) : null;
  const size = (data.boards?.length ?? 0) / members.length;
  const boards = data.boards && members.map((_, i) => data.boards.slice(i * size, (i + 1) * size));
  return {
    members,
    moves,
    actions: moves.length / members.length,
    boards,
    game,
    numbers: new Map(boards?.map((board, i) => [board, i])),
    symmetries: data.symmetries,
    pictures: data.pictures && openPictures(data.pictures),
    rows: data.rows && numbers(data.rows, Uint32Array),
    classes: data.classes && numbers(data.classes, Uint32Array),
    decisions: data.decisions,
    isSample: data.total > members.length,
    isMerged: members.some((count) => count > 1), // Symmetric positions share a dot.
    moveName: (index, action) => spellMove(data.names[named[index]][action]),
    x: Array.from(numbers(data.x2, Uint16Array), (twice) => twice / 2),
    y: numbers(data.y, Uint16Array),
    ply: numbers(data.ply, Uint8Array),
    player: numbers(data.player, Uint8Array),
    truth: numbers(data.truth, Int8Array),
    frames: data.frames.map((frame) => ({
      iteration: frame.iteration,
      blunders: frame.blunders,
      policy: numbers(frame.policy, Uint8Array),
      value: numbers(frame.value, Int8Array),
      action: numbers(frame.action, Int16Array),
      wrong: numbers(frame.wrong, Uint16Array),
      error: numbers(frame.error, Uint8Array),
    })),
  };
}

/** The class of a position, given as text; undefined if it is not shown. */
function atlasFind(data, text) {
  if (data.classes) {
    const found = data.classes[Number(text)];
    return found < data.members.length ? found : undefined;
  }
  const copies = data.symmetries?.map((cells) => cells.map((cell) => text[cell]).join("")) ?? [];
  return data.numbers.get(copies.find((copy) => data.numbers.has(copy)));
}

function atlasCounts(data, frame) {
  const classes = frame.wrong.reduce((count, wrong) => count + (wrong > 0), 0);
  const positions = (data.isSample ? "a sample of " : "") + data.decisions.toLocaleString("en");
  const start = `Iteration ${frame.iteration}: `;
  if (frame.blunders === 0) return `${start}no blunders in ${positions} positions (0 of ${data.members.length} dots)`;
  const noun = frame.blunders === 1 ? "blunder" : "blunders";
  const total = frame.blunders.toLocaleString("en");
  return `${start}${total} ${noun} in ${positions} positions (${classes} of ${data.members.length} dots)`;
}

/** The nearest dot in a direction, with a penalty for sideways distance, or null at the edge. */
function atlasNeighbor({ x, y }, from, [dx, dy]) {
  let best = null;
  let least = Infinity;
  for (let i = 0; i < x.length; i++) {
    const ahead = (x[i] - x[from]) * dx + (y[i] - y[from]) * dy;
    const aside = Math.abs((x[i] - x[from]) * dy) + Math.abs((y[i] - y[from]) * dx);
    const distance = ahead + 4 * aside;
    if (ahead > 0 && distance < least) [best, least] = [i, distance];
  }
  return best;
}

function atlasLegend(isMerged) {
  const dot = (look) => {
    const shape = svg("circle", { class: `az-atlas-dot az-atlas-${look}`, cx: 6, cy: 6, r: 4.4 });
    return svg("svg.az-atlas-swatch", { viewBox: "0 0 12 12", width: 12, height: 12 }, shape);
  };
  const entry = (looks, words) => h("span.az-atlas-entry", looks.map(dot), " ", words);
  return [
    entry(["ok"], "optimal"),
    isMerged ? entry(["some", "half", "all"], "blunder in some, at least half, or all of the symmetric positions") : entry(["all"], "blunder"),
    entry(["over"], "game over"),
  ];
}

function atlasDetail(data, frame, index) {
  const moves = data.moves.subarray(index * data.actions, (index + 1) * data.actions);
  const over = data.members[index] === 0;
  const policy = Array.from(moves, (_, a) => frame.policy[index * data.actions + a] / 255);
  const rows = over ? atlasResult(data, index) : atlasNumbers(data, frame, index, moves, policy);
  const list = rows.map(([name, text]) => [h("dt", name), h("dd", text)]);
  const hint = data.game && !over ? h("p.az-atlas-hint", `Corner dots mark optimal moves. ${data.game.naming}`) : null;
  return [atlasPicture(data, index, over, moves, policy), h("dl.az-atlas-facts", list), hint];
}

function atlasPicture(data, index, over, moves, policy) {
  if (!data.game) return drawnPicture(data.pictures, index, 156);
  const marks = Array.from(moves.keys()).filter((action) => moves[action] === 2);
  const labels = policy.map((p, action) => (moves[action] ? percent(p) : ""));
  const position = data.game.read(data.boards[index]);
  return picture(data.game, position, { size: 156, ...(!over && { heat: policy, labels, marks }) });
}

function atlasResult(data, index) {
  const mover = data.player[index] === 0 ? 1 : 0;
  const winner = data.truth[index] === 0 ? null : data.truth[index] < 0 ? mover : 1 - mover;
  return [["after", `${data.ply[index]} moves`], ["game over", winner === null ? "drawn" : `${"XO"[winner]} has won`]];
}

function atlasMove({ game, boards, moveName }, index, action) {
  return game ? game.moveName(game.read(boards[index]), action) : moveName(index, action);
}

function atlasNumbers(data, frame, index, moves, policy) {
  const action = frame.action[index];
  const [members, wrong] = [data.members[index], frame.wrong[index]];
  const verdict = moves[action] === 2 ? "optimal" : "a blunder";
  const same = members === 1 ? "1 position" : `${members} positions`;
  return [
    ["after", `${data.ply[index]} ${data.ply[index] === 1 ? "move" : "moves"}, ${"XO"[data.player[index]]} to move`],
    ["network plays", `${atlasMove(data, index, action)} (${percent(policy[action])}): ${verdict}`],
    ["network's value", signed(frame.value[index] / 100)],
    ["perfect play", `${ATLAS_RESULTS[data.truth[index]]} (${signed(data.truth[index], 0)})`],
    ...(data.isMerged ? [["same up to symmetry", `${same}, blunders in ${wrong}`]] : []),
    [data.isMerged ? "mean value error" : "value error", (frame.error[index] / 100).toFixed(2)],
  ];
}
