import { boardText } from "./board.js";
import { drawDetail } from "./detail.js";
import { focusedIn, h, pushButton, replace } from "./dom.js";
import { PHASE_NAMES, RecordedSearch } from "./recorded.js";
import { liveSettings, nearestRecording, pageSettings, startEditor } from "./settings.js";
import { TreeView, treeLegend } from "./tree.js";
import { describe } from "./words.js";

const WIDE = 1300; // A tree wider than this takes the whole width, and the details go below it.
const KEYS = [
  ["\u2192 or N", "next phase"],
  ["\u2190 or P", "previous phase"],
  ["1, 5", "run one or five simulations"],
  ["Shift + N", "run as many as the box says"],
  ["R", "back to the start"],
  ["+, \u2212, 0", "zoom in, zoom out, fit"],
  ["arrow keys in the tree", "walk from node to node; Enter selects"],
  ["?", "this list"],
];

/** A search of tic-tac-toe, phase by phase; `source` makes new ones in a live notebook. */
export function explorer(root, data, source) {
  return new Explorer(root, data, data.live ? source : null);
}

class Explorer {
  constructor(root, data, source) {
    Object.assign(this, { root, data, source, t: 0, selected: 0, follow: true, asked: 0, busy: false });
    this.tree = new TreeView((id) => this.select(id));
    this.#build();
    this.#adopt(data.recordings[0]);
    this.draft = this.search.recording.board.slice();
    this.#drawStart();
    root.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Goes to time `t`; on a live page further than recorded, too. */
  go(t) {
    const simulation = Math.ceil(t / 3);
    const most = this.source ? this.data.max_simulations : this.search.length;
    if (this.busy) return;
    if (simulation > most) {
      const reason = this.source
        ? `${most} simulations are the most that can be drawn.`
        : `This page holds ${most} simulations of this search; a notebook goes on.`;
      this.#say(reason);
      t = 3 * most;
    }
    if (t > this.search.last) return this.#request({ simulations: Math.ceil(t / 3) }, t);
    this.t = Math.max(0, t);
    if (this.follow) this.selected = this.search.focus(this.search.moment(this.t));
    if (simulation <= most) this.#say("");
    this.#draw();
  }

  /** Runs simulations to their ends, the one under way first. */
  run(count) {
    this.go(3 * (Math.floor(this.t / 3) + count));
  }

  /** Shows a node beside the tree. */
  select(id) {
    if (this.search.focus(this.search.moment(this.t)) !== id) this.#setFollow(false);
    this.selected = id;
    this.#draw();
  }

  #build() {
    this.notice = h("p", { class: "az-notice", role: "status" });
    this.alert = h("p", { class: "az-alert", role: "alert" });
    this.status = h("p", { class: "az-status", role: "status", "aria-live": "polite" });
    this.detail = h("div", { class: "az-detail-body" });
    this.settings = h("div", { class: "az-settings" });
    this.start = h("div", { class: "az-start" });
    const tree = h("div", { class: "az-tree-side" }, this.tree.element, treeLegend());
    const side = h("div", { class: "az-detail" }, this.#followBox(), this.detail);
    this.grid = h("div", { class: "az-stage-grid" }, tree, side);
    this.root.tabIndex = -1; // So that keys work after a click anywhere inside.
    this.root.setAttribute("data-lm-suppress-shortcuts", "true"); // Keys that JupyterLab would take.
    replace(
      this.root,
      h(
        "div",
        { class: "az-explorer" },
        h("div", { class: "az-head" }, this.settings, this.notice),
        this.alert,
        this.#transport(),
        this.status,
        this.grid,
        h("div", { class: "az-below" }, this.start, this.#help()),
      ),
    );
  }

  #transport() {
    const button = (text, name, title, click) => pushButton(text, name, click, { title });
    const amount = { type: "number", min: 1, max: this.data.max_simulations ?? 500, value: 20 };
    this.amount = h("input", {
      ...amount,
      class: "az-number",
      "aria-label": "how many simulations to run",
    });
    const many = () => this.run(Math.max(1, Math.floor(Number(this.amount.value)) || 1));
    const scrub = (event) => this.go(Number(event.target.value));
    this.slider = h("input", {
      type: "range",
      min: 0,
      step: 1,
      class: "az-slider",
      "aria-label": "time",
      on: { input: scrub },
    });
    this.progress = h("span", { class: "az-progress" });
    this.runMany = many;
    this.buttons = {
      reset: button("\u21e4 reset", "reset", "back to the start (R)", () => this.go(0)),
      previous: button("\u2190 previous", "previous", "previous phase (left arrow)", () =>
        this.go(this.t - 1),
      ),
      next: button("next phase \u2192", "next", "next phase (right arrow)", () => this.go(this.t + 1)),
      one: button("run 1", "run-1", "run one simulation (1)", () => this.run(1)),
      five: button("run 5", "run-5", "run five simulations (5)", () => this.run(5)),
      many: button("run", "run-n", "run as many simulations as the box says (Shift + N)", many),
    };
    this.buttons.next.classList.add("az-primary");
    const { reset, previous, next, one, five } = this.buttons;
    const group = (...children) => h("div", { class: "az-group" }, children);
    return h(
      "div",
      { class: "az-transport", role: "group", "aria-label": "steps of the search" },
      group(reset, previous, next),
      group(one, five),
      group(this.buttons.many, this.amount),
      h("div", { class: "az-time" }, this.slider, this.progress),
    );
  }

  #followBox() {
    const change = (event) => {
      this.#setFollow(event.target.checked);
      if (this.follow) this.go(this.t);
    };
    this.followBox = h("input", { type: "checkbox", checked: true, on: { change } });
    return h("label", { class: "az-check" }, this.followBox, "follow the search");
  }

  #help() {
    const rows = KEYS.map(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)]);
    this.help = h("details", { class: "az-help" }, h("summary", {}, "Keys"), h("dl", {}, rows));
    return this.help;
  }

  #setFollow(on) {
    this.follow = on;
    this.followBox.checked = on;
  }

  /** Takes a recording up, at its start or at `t`. */
  #adopt(recording, t = 0) {
    if (recording !== this.search?.recording) this.search = new RecordedSearch(recording);
    this.t = Math.min(t, this.search.last);
    this.#setFollow(true);
    this.selected = this.search.focus(this.search.moment(this.t));
    this.slider.max = this.search.last;
    this.grid.classList.toggle("az-wide", this.search.width > WIDE);
    this.#drawSettings();
    this.#draw();
  }

  #draw() {
    const moment = this.search.moment(this.t);
    const { simulation, phase } = moment;
    if (!this.search.exists(this.selected, moment)) this.selected = 0;
    this.tree.show(this.search, moment, this.selected);
    drawDetail(this.detail, this.search, moment, this.selected, (id) => this.select(id));
    const name = simulation ? `Simulation ${simulation}, ${PHASE_NAMES[phase]}` : "Start";
    const colon = h("span", { class: "az-hidden" }, ":");
    replace(
      this.status,
      h("span", { class: "az-chip", "data-phase": phase }, name, colon),
      " ",
      describe(this.search, moment),
    );
    this.progress.textContent = simulation
      ? `simulation ${simulation} of ${this.search.length} \u00b7 ${phase}`
      : `start of ${this.search.length} simulations`;
    this.slider.value = this.t;
    this.slider.setAttribute("aria-valuetext", this.progress.textContent);
    Object.assign(this.root.dataset, { t: this.t, simulation, phase, selected: this.selected });
    this.#enable();
  }

  #enable() {
    const most = this.source ? 3 * this.data.max_simulations : this.search.last;
    const ended = this.t >= most;
    const { reset, previous, next, one, five, many } = this.buttons;
    for (const button of [reset, previous]) enable(button, this.t > 0 && !this.busy);
    for (const button of [next, one, five, many]) enable(button, !ended && !this.busy);
    this.root.toggleAttribute("aria-busy", this.busy);
    this.root.classList.toggle("az-busy", this.busy);
  }

  #say(text) {
    if (this.notice.textContent !== text) this.notice.textContent = text;
    this.alert.textContent = "";
  }

  // Settings.

  #drawSettings() {
    const { recording } = this.search;
    const { recordings, evaluators } = this.data;
    const parts = this.source
      ? liveSettings(evaluators, recording, (change) => this.#request(change))
      : pageSettings(recordings, recording, (name, value) => this.#choose(name, value));
    replace(this.settings, parts);
  }

  /** On a page: shows the recording that matches, or the nearest, and then says so. */
  #choose(name, value) {
    const { nearest, words } = nearestRecording(
      this.data.recordings,
      this.search.recording,
      name,
      value,
    );
    this.#say(words);
    this.draft = nearest.board.slice();
    this.#adopt(nearest);
    this.#drawStart();
  }

  /** On a live page: asks for a search, and shows it from its start or from `t`. */
  async #request(change, t = 0) {
    const { recording, length } = this.search;
    const { board: cells, evaluator, c_puct, noise, seed } = recording;
    const request = { board: cells, evaluator, c_puct, noise, seed, simulations: length, ...change };
    const turn = (this.asked += 1);
    this.busy = true;
    this.#say("searching\u2026");
    this.#enable();
    try {
      const answer = await this.source.request(request);
      if (turn !== this.asked) return; // A later request has overtaken this one.
      this.busy = false;
      this.#say("");
      this.#adopt(answer, t);
      this.draft = answer.board.slice();
      this.#drawStart();
    } catch (error) {
      if (turn !== this.asked) return;
      this.busy = false;
      this.#say("");
      this.alert.textContent = error.message;
      this.#enable();
    }
  }

  // The starting position.

  #drawStart() {
    const { lines, recordings } = this.data;
    const searched = this.search.recording.board;
    const onEdit = (cells) => this.#edit(cells);
    const onSearch = this.source && (() => this.#request({ board: this.draft.slice() }));
    replace(this.start, startEditor({ cells: this.draft, searched, lines, recordings, onEdit, onSearch }));
  }

  #edit(cells) {
    this.draft = cells;
    const text = boardText(cells);
    if (!this.source && text !== boardText(this.search.recording.board)) {
      const matching = this.data.recordings.filter((other) => boardText(other.board) === text);
      if (matching.length) return this.#choose("title", matching[0].title);
    }
    this.#drawStart();
  }

  // Keys.

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key === "Enter" && event.target.matches("[type=number]")) return this.#enter(event);
    if (isTyping(event)) return;
    const action = this.#action(event.key);
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  /** Takes a number over; JupyterLab keeps the browser from doing so. */
  #enter(event) {
    event.preventDefault();
    if (event.target === this.amount) return this.runMany();
    event.target.blur(); // Which makes the browser notice the change.
  }

  #action(key) {
    const actions = {
      ArrowRight: () => this.go(this.t + 1),
      ArrowLeft: () => this.go(this.t - 1),
      n: () => this.go(this.t + 1),
      p: () => this.go(this.t - 1),
      1: () => this.run(1),
      5: () => this.run(5),
      N: this.runMany,
      r: () => this.go(0),
      "+": () => this.tree.camera.zoom(1.25),
      "=": () => this.tree.camera.zoom(1.25),
      "-": () => this.tree.camera.zoom(0.8),
      0: () => this.tree.camera.fit(),
      "?": () => this.help.toggleAttribute("open"),
    };
    return Object.hasOwn(actions, key) ? actions[key] : null;
  }
}

/** Whether a key belongs to the control that has the focus. */
function isTyping({ target, key }) {
  if (target.matches("[type=range]")) return key.startsWith("Arrow");
  return target.matches("input:not([type=checkbox]), select, textarea");
}

/** A disabled button keeps the focus that it may have, for those who step by its key. */
function enable(button, on) {
  button.setAttribute("aria-disabled", !on);
  button.disabled = !on && button !== focusedIn(button);
}
