import { Bench } from "./bench.js";
import { treeLegend } from "./cards.js";
import { DetailView } from "./detail.js";
import { focusedIn, h, pushButton, replace } from "./dom.js";
import { readSetting, settingFields, startEditor, whyNotSet } from "./settings.js";
import { TreeView } from "./tree.js";
import { describe } from "./words.js";

const KEYS = { ArrowRight: "next", n: "next", ArrowLeft: "previous", p: "previous", 1: "run-1", 5: "run-5", r: "reset" };
const HELP = [
  ["\u2192 or N", "next phase"],
  ["\u2190 or P", "previous phase"],
  ["1, 5", "run one or five simulations"],
  ["R", "back to the start"],
  ["arrow keys in the tree", "move from node to node; Enter selects"],
];

/** A search, phase by phase, computed in the page: from any position, with any settings. */
export function explorer(root, data, place) {
  return new Explorer(root, data, place);
}

class Explorer {
  constructor(root, data, place) {
    Object.assign(this, { root, t: 0, selected: 0, follow: true });
    this.bench = new Bench({ ...data, settings: { ...data.settings, ...data.explorer } });
    this.tree = new TreeView((id) => this.select(id), this.#followBox());
    this.detail = new DetailView((id) => this.select(id));
    this.#build();
    this.#adopt(0);
    root.addEventListener("keydown", (event) => this.#key(event));
    this.place = place;
    place.follow((names) => this.#follow(names));
  }

  /** The search shown. */
  get search() {
    return this.bench.search;
  }

  /** Goes to time `t`, or to the end. */
  go(t) {
    const { last, length } = this.search;
    this.#notify(t > last ? `The search ends after ${length} simulations, as set above.` : "");
    this.t = Math.min(Math.max(0, t), last);
    if (this.follow) this.selected = this.search.focus(this.search.moment(this.t));
    this.#draw();
    this.#share();
  }

  /** Runs simulations, after finishing the current one. */
  run(count) {
    this.go(3 * (Math.floor(this.t / 3) + count));
  }

  /** Shows a node next to the tree. */
  select(id) {
    if (this.search.focus(this.search.moment(this.t)) !== id) this.#setFollow(false);
    this.selected = id;
    this.#draw();
  }

  #build() {
    this.notice = h("p.az-notice", { role: "status" });
    this.alert = h("p.az-alert", { role: "alert" });
    this.status = h("p.az-status", { role: "status", "aria-live": "polite" });
    this.settings = h("div.az-settings");
    this.start = h("div.az-start");
    const keys = HELP.map(([key, what]) => [h("dt", h("kbd", key)), h("dd", what)]);
    this.root.tabIndex = -1; // Keys work after a click anywhere inside.
    replace(
      this.root,
      h(
        "div.az-explorer",
        h("div.az-head", this.settings, this.notice),
        this.alert,
        this.#transport(),
        this.status,
        h("div.az-stage-grid", h("div", this.tree.element, treeLegend()), h("div.az-detail", this.detail.element)),
        h("div.az-below", this.start, h("details.az-help", h("summary", "Keys"), h("dl", keys))),
      ),
    );
  }

  #transport() {
    this.steps = {
      reset: () => this.go(0),
      previous: () => this.go(this.t - 1),
      next: () => this.go(this.t + 1),
      "run-1": () => this.run(1),
      "run-5": () => this.run(5),
    };
    const button = (name, text, title, more) => pushButton(text, name, this.steps[name], { title, ...more });
    this.back = [
      button("reset", ["\u21e4", long(" reset")], "back to the start (R)"),
      button("previous", ["\u2190", long(" previous")], "previous phase (left arrow)"),
    ];
    const next = button("next", ["next", long(" phase"), " \u2192"], "next phase (right arrow)", { class: "az-button az-primary" });
    const runs = [button("run-1", "run 1", "run one simulation (1)"), button("run-5", "run 5", "run five simulations (5)")];
    this.onward = [next, ...runs];
    const input = (event) => this.go(Number(event.target.value));
    this.slider = h("input.az-slider", { type: "range", min: 0, step: 1, "aria-label": "time", on: { input } });
    this.progress = h("span.az-progress");
    return h(
      "div.az-transport",
      { role: "group", "aria-label": "steps of the search" },
      h("div.az-group.az-steps", this.back, next),
      h("div.az-group", runs),
      h("div.az-time", this.slider, this.progress),
    );
  }

  #followBox() {
    const change = (event) => {
      this.#setFollow(event.target.checked);
      if (this.follow) this.go(this.t);
    };
    this.followBox = h("input", { type: "checkbox", checked: true, on: { change } });
    return h("label.az-check", this.followBox, "follow the search");
  }

  #setFollow(on) {
    this.follow = on;
    this.followBox.checked = on;
  }

  /** Shows the new search when it is done, at time `t` or its end. */
  #adopt(t) {
    this.#drawSettings();
    this.#drawStart();
    this.#notify("Searching\u2026");
    this.root.setAttribute("aria-busy", "true");
    this.bench.whenMade(() => this.#take(t));
  }

  #take(t) {
    this.root.removeAttribute("aria-busy");
    this.t = Math.min(t, this.search.last);
    this.#setFollow(true);
    this.selected = this.search.focus(this.search.moment(this.t));
    this.slider.max = this.search.last;
    this.#notify("");
    this.#draw();
    this.#share();
  }

  /** Shares position and time with the page. */
  #share() {
    this.place?.set({ board: this.bench.position.text, t: this.t || undefined });
  }

  /** Follows the page's position, settings and time, and ignores invalid ones. */
  #follow(names) {
    const { bench, place } = this;
    const { text } = bench.position;
    const board = names.includes("board") ? place.get("board") : text;
    const position = board === text ? null : bench.game.read(board);
    const read = names.map((name) => [name, readSetting(name, place.get(name), bench)]);
    const change = read.filter(([name, value]) => value !== undefined && value !== bench.settings[name]);
    const t = names.includes("t") ? Number(place.get("t") ?? 0) : null;
    if (position) bench.goTo(position);
    if (change.length) bench.set(Object.fromEntries(change));
    const waits = this.root.hasAttribute("aria-busy");
    if (position || change.length || (waits && t !== null)) this.#adopt(t ?? 0);
    else if (t !== null && t !== this.t) this.go(t);
  }

  #draw() {
    const moment = this.search.moment(this.t);
    const { simulation, phase } = moment;
    if (!this.search.exists(this.selected, moment)) this.selected = 0;
    this.tree.show(this.search, moment, this.selected);
    this.detail.show(this.search, moment, this.selected);
    const name = simulation ? `Simulation ${simulation}, ${phase}${phase === "expansion" ? " and evaluation" : ""}` : "Start";
    const colon = h("span.az-hidden", ":");
    replace(this.status, h("span.az-chip", { "data-phase": phase }, name, colon), " ", describe(this.search, moment));
    const [before, after] = simulation ? ["simulation ", ` \u00b7 ${phase}`] : ["start: ", " simulations"];
    replace(this.progress, long(before), `${simulation} of ${this.search.length}`, long(after));
    this.slider.value = this.t;
    this.slider.setAttribute("aria-valuetext", this.progress.textContent);
    Object.assign(this.root.dataset, { t: this.t, simulation, phase, selected: this.selected });
    for (const button of this.back) enable(button, this.t > 0);
    for (const button of this.onward) enable(button, this.t < this.search.last);
  }

  #notify(text) {
    if (this.notice.textContent !== text) this.notice.textContent = text;
    this.alert.textContent = "";
  }

  // Settings and starting position.

  #drawSettings() {
    replace(this.settings, settingFields(this.bench, (change) => this.#change(change)));
  }

  /** Searches with other settings; another number of simulations keeps the time. */
  #change(change) {
    const [[name, value]] = Object.entries(change);
    const reason = typeof value === "number" && name !== "iteration" ? whyNotSet(name, value) : null;
    if (reason) {
      this.#drawSettings();
      this.alert.textContent = `${reason}.`;
      return;
    }
    const wasAtEnd = this.t === this.search.last;
    this.bench.set(change);
    this.place.set(change);
    this.#adopt(name === "num_simulations" ? this.t : wasAtEnd ? Infinity : 0);
  }

  #drawStart() {
    const { bench } = this;
    const { game, position, positions } = bench;
    const moved = (change) => () => {
      change();
      this.#adopt(0);
    };
    replace(
      this.start,
      startEditor({
        ...{ game, position, canUndo: positions.length > 1 },
        onMove: (action) => bench.play(action) && this.#adopt(0),
        onUndo: moved(() => bench.undo()),
        onReset: moved(() => bench.goTo(game.init())),
      }),
    );
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (isTyping(event) || !Object.hasOwn(KEYS, event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    this.steps[KEYS[event.key]]();
  }
}

/** Words that are hidden on a phone. */
function long(text) {
  return h("span.az-long", text);
}

/** Whether the focused control uses a key itself. */
function isTyping({ target, key }) {
  if (target.matches("[type=range]")) return key.startsWith("Arrow");
  return target.matches("input:not([type=checkbox]), select, textarea");
}

/** Enables or disables a button; a focused button keeps the focus, for use by keys. */
function enable(button, on) {
  button.setAttribute("aria-disabled", !on);
  button.disabled = !on && button !== focusedIn(button);
}
