import { fixed, h, percent, pushButton, replace, signed } from "./dom.js";
import { gameNamed } from "./games.js";
import { loopSentence, loopTerms } from "./lesson.js";
import { picture } from "./picture.js";
import { spellMove } from "./table.js";
import { playerName } from "./words.js";

const LOOP_STEPS = {
  position: "Position",
  search: "Search",
  pi: "\u03c0",
  move: "Move",
  z: "z",
  loss: "Loss",
  step: "Step",
  after: "After",
};
const LOOP_NAMES = Object.keys(LOOP_STEPS);
const LOOP_MOST_BOARDS = 9; // Longer games are shown as lists of moves.

/** One game of self-play, and what the network learns from each of its positions. */
export function loop(root, data, place) {
  const view = new LoopView(root, data, place);
  place.follow(() => view.follow(place.get("board")));
}

class LoopView {
  #was = {}; // The previous widths of the bars, from which they move.

  constructor(root, data, place) {
    const newest = data.lessons.length - 1;
    Object.assign(this, { root, data, place, lesson: data.lessons[newest], at: 0, step: "position" });
    this.rules = data.game ? gameNamed(data.game) : null; // Other games are shown as text.
    this.count = this.lesson.counts.length - 1;
    this.choice = h("div.az-group", { role: "group", "aria-label": "which network" });
    this.game = h("div.az-loop-game", { role: "group", "aria-label": "the game, move by move" });
    this.steps = h("div.az-loop-steps", { role: "group", "aria-label": "steps of the lesson" });
    this.status = h("p.az-loop-status", { role: "status", "aria-live": "polite" });
    this.body = h("div.az-loop-body");
    this.game.addEventListener("keydown", (event) => this.#key(event, (by) => this.#look(this.at + by)));
    this.steps.addEventListener("keydown", (event) => this.#key(event, (by) => this.#go(by)));
    replace(root, this.choice, this.game, this.steps, this.status, this.body);
  }

  get move() {
    return this.lesson.moves[this.at];
  }

  /** Whether a step has been reached. */
  reached(name) {
    return LOOP_NAMES.indexOf(this.step) >= LOOP_NAMES.indexOf(name);
  }

  /** The number of learner steps of the column `p after`, as an index of `counts`. */
  get frame() {
    return this.step === "after" ? this.count : 1;
  }

  /** Goes to the move of the game from a position, if there is one. */
  follow(text) {
    const found = this.rules ? this.lesson.moves.findIndex((move) => move.board === text) : -1;
    if (found >= 0) this.at = found;
    this.draw();
  }

  #look(at) {
    if (at < 0 || at >= this.lesson.moves.length) return;
    this.at = at;
    if (this.rules) this.place.set({ board: this.move.board });
    this.draw();
  }

  #go(by) {
    this.step = LOOP_NAMES[LOOP_NAMES.indexOf(this.step) + by] ?? this.step;
    this.draw();
  }

  /** Handles the left and right arrows; the focus follows the choice. */
  #key(event, move) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    move(by);
    event.currentTarget.querySelector("[aria-current]").focus({ preventScroll: true });
  }

  draw() {
    Object.assign(this.root.dataset, { step: this.step, move: this.at, iteration: this.lesson.iteration });
    replace(this.choice, this.data.lessons.map((lesson) => this.#lessonButton(lesson)));
    replace(this.game, this.lesson.moves.map((_, i) => this.#moveButton(i)));
    replace(this.steps, this.#stepButtons());
    const words = loopSentence(this);
    if (this.status.textContent !== words) this.status.textContent = words;
    const side = this.step === "after" ? this.#slider() : loopTerms(this);
    replace(this.body, this.#picture(), this.#table(), side && h("div.az-loop-side", side));
  }

  #lessonButton(lesson) {
    const words = lesson.iteration ? `After iteration ${lesson.iteration}` : "Before training";
    const choose = () => {
      this.lesson = lesson;
      this.at = Math.min(this.at, lesson.moves.length - 1);
      this.draw();
    };
    const pressed = { "aria-pressed": String(lesson === this.lesson) };
    return pushButton(words, `lesson-${lesson.iteration}`, choose, pressed);
  }

  #moveButton(i) {
    const { board: text, action, player } = this.lesson.moves[i];
    const who = this.mover(player);
    const words = `${i + 1}. ${who}: ${this.moveLabel(action, this.lesson.moves[i])}`;
    const attributes = {
      class: "az-button az-loop-move",
      "aria-current": i === this.at ? "true" : null,
      "aria-label": `move ${words}`,
    };
    const small = this.rules?.maxPlies <= LOOP_MOST_BOARDS;
    const position = small && this.rules.read(text);
    const drawn = small && picture(this.rules, position, { size: 44, last: { position, action } });
    const button = pushButton("", `move-${i}`, () => this.#look(i), attributes);
    button.append(...[drawn, h("span", words)].filter(Boolean));
    return button;
  }

  /** The name of a player. */
  mover(player) {
    return playerName(player);
  }

  /** The name of a move in a sentence. */
  moveName(action) {
    return this.rules ? this.rules.moveName(null, action) : spellMove(this.moveLabel(action));
  }

  /** The name of a move where there is little room. */
  moveLabel(action, { actions, names } = this.move) {
    return this.rules ? this.rules.moveLabel(null, action) : names[actions.indexOf(action)];
  }

  #stepButtons() {
    const at = LOOP_NAMES.indexOf(this.step);
    const button = (name, i) =>
      pushButton(`${i + 1}. ${LOOP_STEPS[name]}`, `step-${name}`, () => this.#go(i - at), {
        "aria-current": i === at ? "step" : null,
      });
    const end = { "aria-disabled": String(at === LOOP_NAMES.length - 1) };
    return [
      LOOP_NAMES.map(button),
      pushButton("Back", "back", () => this.#go(-1), { "aria-disabled": String(at === 0) }),
      pushButton("Next", "next", () => this.#go(1), { class: "az-button az-primary", ...end }),
    ];
  }

  /** The position with the policy of the step; at the step `z`, the end of the game. */
  #picture() {
    const { board: text, actions, action } = this.move;
    if (!this.rules) return h("pre.az-text-picture", text);
    if (this.step === "z") return this.#figure(this.#end(), {}, "the end of the game");
    const position = this.rules.read(text);
    const { head, shares } = this.#columns().at(this.step === "loss" ? 0 : -1);
    const [heat, labels] = [Array(this.rules.numActions).fill(0), Array(this.rules.numActions).fill("")];
    actions.forEach((move, i) => {
      heat[move] = shares[i];
      labels[move] = percent(shares[i]);
    });
    const last = this.reached("move") ? { position, action } : null;
    return this.#figure(position, { heat, labels, last }, `shaded by ${head === "N" ? "N, the visits" : head}`);
  }

  #figure(position, look, caption) {
    const drawn = picture(this.rules, position, { size: this.rules.columns > 3 ? 320 : 180, ...look });
    return h("figure.az-figure", drawn, h("figcaption", caption));
  }

  /** The position after the last move. */
  #end() {
    const { board: text, action } = this.lesson.moves[this.lesson.moves.length - 1];
    return this.rules.step(this.rules.read(text), action);
  }

  /** The columns that the step compares: numbers of the moves, and a value. */
  #columns() {
    const { prior, value, visits, found, pi, target, frames } = this.move;
    const sum = visits.reduce((total, n) => total + n, 0);
    const shares = visits.map((n) => n / sum);
    const output = (head, { p, v }) => ({ head, shares: p, value: `v = ${signed(v)}` });
    const network = output("p", { p: prior, v: value });
    const search = { head: "N", shares, texts: visits, value: signed(found) };
    const goal = { head: "\u03c0", shares: pi, value: this.reached("z") ? `z = ${signed(target)}` : "" };
    const [now, later] = [output("p now", frames[0]), output("p after", frames[this.frame])];
    if (this.reached("step")) return [now, goal, later];
    if (this.reached("loss")) return [now, goal];
    if (this.reached("z")) return [network, goal];
    return [network, this.reached("search") && search, this.reached("pi") && goal].filter(Boolean);
  }

  #table() {
    const columns = this.#columns();
    const { actions, action } = this.move;
    const row = (move, i) => {
      const best = this.reached("move") && move === action;
      const cells = columns.map(({ head, shares, texts }) => this.#share(head, move, shares[i], texts?.[i]));
      return h("tr", { class: best ? "az-best" : "" }, h("th", { scope: "row" }, this.moveLabel(move)), cells);
    };
    const rows = actions.map(row); // Uses the previous widths, before they are replaced.
    const heads = ["move", ...columns.map(({ head }) => head)];
    const values = columns.map(({ value }) => h("td", value));
    this.#was = Object.fromEntries(
      columns.flatMap(({ head, shares }) => actions.map((move, i) => [`${head} ${move}`, shares[i]])),
    );
    return h(
      "table.az-loop-table",
      h("thead", h("tr", heads.map((head) => h("th", { scope: "col" }, head)))),
      h("tbody", rows),
      h("tfoot", h("tr", h("th", { scope: "row" }, "value"), values)),
    );
  }

  #share(head, move, share, text) {
    const width = (p) => `${(100 * p).toFixed(1)}%`;
    const style = { "--az-was": width(this.#was[`${head} ${move}`] ?? 0), "--az-share": width(share) };
    const bar = h("i.az-loop-bar", { style, "aria-hidden": "true" });
    return h("td", { "data-column": head, "data-action": move }, String(text ?? fixed(share, 3)), bar);
  }

  #slider() {
    const { counts } = this.lesson;
    const words = `${counts[this.count]} of ${counts[counts.length - 1]} steps`;
    const change = (event) => {
      this.count = Number(event.target.value);
      this.draw();
    };
    const look = { type: "range", min: 0, max: counts.length - 1, value: this.count, "data-focus": "count" };
    return h(
      "label.az-loop-count",
      h("span", "steps on this game"),
      h("input", { ...look, "aria-valuetext": words, on: { input: change } }),
      h("output", words),
    );
  }
}
