import { Bench } from "./bench.js";
import { fixed, h, pushButton, replace } from "./dom.js";
import { scoreText } from "./formula.js";
import { picture } from "./picture.js";
import { playoutBoards } from "./playout.js";
import { tourSteps } from "./steps.js";
import { TreeView } from "./tree.js";
import { moveLabel } from "./words.js";

const TREE_WORDS =
  "The tree: N counts the visits of a position; the root starts with 1, for its own evaluation. " +
  "V and Q are mean outcomes for the player named after them. Dashed boxes are untried moves.";

/** A tour of the search in a few steps, each with a question. */
export function tour(root, data, place) {
  new Tour(root, data, place).show(0);
}

class Tour {
  constructor(root, data, place) {
    const bench = new Bench(data);
    const start = bench.game.read(data.tour);
    const steps = tourSteps(bench.game.legal(start).length);
    const hasNetwork = bench.iterations.length > 0;
    Object.assign(this, { root, place, bench, start });
    this.steps = steps.filter(({ change }) => change.evaluator !== "network" || hasNetwork);
    this.results = this.steps.map(() => null); // Whether each first answer was right.
    this.card = h("div.az-tour");
    this.tree = new TreeView((id) => this.#drawTree(id));
    const legend = h("p.az-hint", TREE_WORDS);
    replace(root, h("div.az-tour-grid", this.card, h("div", this.tree.element, legend)));
  }

  /** Shows a step, without its answer; after the last one, the end. */
  show(number) {
    Object.assign(this, { number, chosen: null, revealed: false });
    Object.assign(this.root.dataset, { step: number, revealed: false });
    if (number === this.steps.length) return this.#end();
    const { t, ...settings } = this.steps[number].change;
    this.t = t;
    this.bench.goTo(this.start);
    this.bench.set(settings);
    this.#draw();
  }

  /** Shows the answer, and the search in the other components of the page. */
  #reveal(chosen = null) {
    const { change, reveal, answer } = this.steps[this.number];
    Object.assign(this, { chosen, revealed: true });
    if (chosen !== null) this.results[this.number] ??= answer(this.bench.search).includes(chosen);
    const shown = { ...change, ...reveal?.() };
    this.t = shown.t;
    this.place.set({ t: undefined }); // The explorer restarts at 0 unless t changes.
    this.place.set({ board: this.start.text, ...shown });
    this.#draw();
  }

  #draw() {
    const { bench, number, steps, revealed, start } = this;
    const { search, game } = bench;
    const step = steps[number];
    this.root.dataset.revealed = revealed;
    const next = revealed ? () => this.show(number + 1) : () => this.#reveal();
    const ask = typeof step.ask === "function" ? step.ask(search) : step.ask;
    const labels = Array.from({ length: game.numActions }, (_, action) => (game.legal(start).includes(action) ? game.moveLabel(start, action) : ""));
    replace(
      this.card,
      h("p.az-tour-count", `Step ${number + 1} of ${steps.length}`),
      h("h3", step.title),
      h(
        "div.az-tour-position",
        picture(game, start, { size: game.columns > 3 ? 150 : 108, labels: game.table.pictures?.isText ? null : labels }),
        h("p", step.text(search)),
      ),
      step.terms && this.#terms(step.terms),
      h("p.az-tour-ask", ask),
      h("div.az-group", { role: "group", "aria-label": ask }, this.#options(step)),
      h("div", { role: "status" }, revealed ? this.#answer(step) : null),
      h(
        "div.az-group.az-tour-steps",
        pushButton("\u2190 Back", "tour-back", () => this.show(number - 1), { disabled: number === 0 }),
        pushButton(revealed ? "Next \u2192" : "Show the answer", "tour-next", next, { class: revealed ? "az-button az-primary" : "az-button" }),
      ),
    );
    this.#drawTree();
  }

  #drawTree(selected) {
    const { search } = this.bench;
    const moment = search.moment(this.t);
    this.tree.show(search, moment, selected ?? search.focus(moment));
  }

  /** The numbers of the moves after some simulations; the scores only with the answer. */
  #terms(known) {
    const { search } = this.bench;
    const { N, Q, U, S } = search.stats(0, known);
    const columns = [["n", (i) => String(N[i])], ["Q", (i) => fixed(Q[i])], ["U", (i) => scoreText(U[i], 2)]];
    if (this.revealed) columns.push(["S", (i) => scoreText(S[i], 2)]);
    const cell = (i) => ([, text]) => h("td", text(i));
    const row = (action, i) => h("tr", h("th", { scope: "row" }, moveLabel(search, 0, action)), columns.map(cell(i)));
    const heads = ["move", ...columns.map(([head]) => head)].map((text) => h("th", { scope: "col" }, text));
    return h("table.az-tour-terms", h("thead", h("tr", heads)), h("tbody", search.nodes[0].actions.map(row)));
  }

  #options(step) {
    const { search } = this.bench;
    const answers = this.revealed ? step.answer(search) : [];
    return step.options(search).map((option) => {
      const look = answers.includes(option) ? "az-tour-right" : option === this.chosen ? "az-tour-wrong" : "";
      const attributes = { class: `az-button ${look}`, "aria-pressed": String(option === this.chosen) };
      const text = typeof option === "number" ? moveLabel(search, 0, option) : option;
      return pushButton(text, `option-${option}`, () => !this.revealed && this.#reveal(option), attributes);
    });
  }

  #answer(step) {
    const { search } = this.bench;
    const isRight = step.answer(search).includes(this.chosen);
    const verdict = this.chosen === null ? "" : isRight ? "Correct. " : "Not quite. ";
    const why = this.chosen === null || isRight || !step.why ? "" : ` ${step.why(search, this.chosen)}`;
    return [
      h("p.az-tour-said", verdict, step.explain(search), why),
      step.playout ? playoutBoards(search, step.playout, 46) : null,
    ];
  }

  #end() {
    const count = this.results.filter(Boolean).length;
    replace(
      this.card,
      h("p.az-tour-count", "The end"),
      h("h3", "This is AlphaZero\u2019s search"),
      h("p", "You have seen selection, expansion, evaluation and backup, and how a network replaces random games. AlphaZero repeats two steps: it plays games with this search, and it trains the network on these games."),
      h("p", { role: "status" }, `You answered ${count} of ${this.steps.length} questions correctly.`),
      h("p", "Below you can play against the network, and search any position with any settings."),
      h("div.az-group.az-tour-steps", pushButton("\u2190 Back", "tour-back", () => this.show(this.steps.length - 1)), pushButton("Start again", "tour-again", () => this.#restart())),
    );
  }

  #restart() {
    this.results.fill(null);
    this.show(0);
  }
}
