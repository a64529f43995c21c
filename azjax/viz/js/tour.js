import { Bench } from "./bench.js";
import { openTable, readBoard } from "./board.js";
import { h, pushButton, replace } from "./dom.js";
import { playoutBoards } from "./playout.js";
import { STEPS } from "./steps.js";

/** A walk through the search in a few steps, each with a question; the explorer shows them. */
export function tour(root, data, place) {
  const view = new Tour(root, data, place);
  view.show(0, false);
}

class Tour {
  constructor(root, data, place) {
    Object.assign(this, { root, place, bench: new Bench(data) });
    this.table = openTable(data);
    this.hasNetwork = this.bench.iterations.length > 0;
    this.steps = STEPS.filter(({ change }) => change.evaluator !== "network" || this.hasNetwork);
  }

  /** Shows a step; with `goes`, the page goes there, too. */
  show(number, goes = true) {
    Object.assign(this, { number, chosen: null, revealed: false });
    const { change } = this.steps[number];
    const { board: text, t, ...settings } = change;
    this.bench.goTo(readBoard(text));
    this.bench.set(settings);
    if (goes) this.place.set(change);
    this.#draw();
  }

  /** Answers the question, with what the reader chose if they did. */
  #reveal(chosen = null) {
    Object.assign(this, { chosen, revealed: true });
    const { change, reveal } = this.steps[this.number];
    this.place.set({ ...change, ...reveal?.(this.bench.search) });
    this.#draw();
  }

  #next() {
    if (!this.revealed) return this.#reveal();
    if (this.number + 1 < this.steps.length) this.show(this.number + 1);
  }

  #draw() {
    const { bench, table, number, steps, revealed } = this;
    const { search } = bench;
    const step = steps[number];
    const done = revealed && number + 1 === steps.length;
    Object.assign(this.root.dataset, { step: number, revealed });
    const next = revealed ? "next" : "answer";
    replace(
      this.root,
      h(
        "div",
        { class: "az-tour" },
        h("p", { class: "az-tour-count" }, `${number + 1} of ${steps.length}`),
        h("h3", {}, step.title),
        h("p", {}, step.text(search)),
        h("p", { class: "az-tour-ask" }, step.ask),
        h("div", { class: "az-group", role: "group", "aria-label": step.ask }, this.#options(step)),
        h("div", { role: "status" }, revealed ? this.#answer(step) : null),
        h(
          "div",
          { class: "az-group az-tour-steps" },
          pushButton("\u2190 back", "tour-back", () => this.show(number - 1), { disabled: number === 0 }),
          pushButton(`${next} \u2192`, "tour-next", () => this.#next(), { class: "az-button az-primary", disabled: done }),
        ),
      ),
    );
  }

  #options(step) {
    const { search } = this.bench;
    const answers = this.revealed ? step.answer(search, this.table) : [];
    return step.options(search).map((option) => {
      const look = answers.includes(option) ? "az-tour-right" : option === this.chosen ? "az-tour-wrong" : "";
      const attributes = { class: `az-button ${look}`, "aria-pressed": String(option === this.chosen) };
      return pushButton(option, `option-${option}`, () => !this.revealed && this.#reveal(option), attributes);
    });
  }

  #answer(step) {
    const { search } = this.bench;
    const answers = step.answer(search, this.table);
    const verdict = this.chosen === null ? "" : answers.includes(this.chosen) ? "Right. " : "Not quite. ";
    return [
      h("p", { class: "az-tour-said" }, verdict, step.said(search, this.table)),
      step.playout ? playoutBoards(search, step.playout, 46) : null,
    ];
  }
}
