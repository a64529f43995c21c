import { Bench } from "./bench.js";
import { h, percent, replace, signed } from "./dom.js";
import { picture } from "./picture.js";
import { settingFields, whyNotSet } from "./settings.js";
import { movePlayed } from "./review.js";
import { listWords, playerName, sentence } from "./words.js";

const VALUE_WORDS = { 1: "win", 0: "draw", "-1": "loss" };
const OTHER = { algorithm: "puct", evaluator: "uniform" }; // How the second search differs.

/** Two searches of the page's position with different settings, compared with perfect play. */
export function compare(root, data, place) {
  const panels = [{}, OTHER].map((change) => new Panel(data, change));
  replace(root, h("div.az-compare", panels.map(({ element }) => element)));
  place.follow((names) => {
    const position = names.includes("board") ? panels[0].bench.game.read(place.get("board")) : null;
    for (const panel of panels) panel.show(position);
  });
}

class Panel {
  constructor(data, change) {
    this.bench = new Bench(data);
    this.bench.set(change);
    this.fields = h("div.az-settings");
    this.alert = h("p.az-alert", { role: "alert" });
    this.result = h("div");
    this.element = h("div.az-compare-panel", this.fields, this.alert, this.result);
  }

  /** Searches another position, if one is given, and draws. */
  show(position = null) {
    const { bench } = this;
    if (position) bench.goTo(position);
    replace(this.fields, settingFields(bench.settings, bench.evaluators, bench.iterations, (change) => this.#change(change)));
    this.element.setAttribute("aria-busy", "true");
    bench.whenMade(() => {
      this.element.removeAttribute("aria-busy");
      replace(this.result, bench.position.over ? h("p.az-hint", "The game is over here.") : this.#outcome());
    });
  }

  #change(change) {
    const [[name, value]] = Object.entries(change);
    const reason = typeof value === "number" && name !== "iteration" ? whyNotSet(name, value) : null;
    this.alert.textContent = reason ? `${reason}.` : "";
    if (!reason) this.bench.set(change);
    this.show();
  }

  #outcome() {
    const { search, game, position } = this.bench;
    const { N, Q } = search.stats(0, search.length);
    const { actions } = search.nodes[0];
    const total = N.reduce((sum, n) => sum + n, 0);
    const [heat, labels] = [Array(game.numActions).fill(0), Array(game.numActions).fill("")];
    actions.forEach((action, i) => {
      heat[action] = N[i] / total;
      labels[action] = N[i] ? percent(heat[action]) : "";
    });
    const marks = game.table?.optimal(game.table.find(position));
    const label = `visits ${actions.map((action, i) => `${game.moveLabel(position, action)}: ${N[i]}`).join(", ")}`;
    const size = game.columns > 3 ? 264 : 190;
    return [
      picture(game, position, { size, heat, labels, marks, last: { position, action: search.action }, label }),
      h("p.az-compare-said", { "data-action": search.action, "data-visits": N.join(",") }, this.#words(search, actions, N, Q)),
    ];
  }

  #words(search, actions, N, Q) {
    const { game, position } = this.bench;
    const name = (action) => game.moveName(position, action);
    const most = Math.max(...N);
    const count = (n) => `${n} ${n === 1 ? "visit" : "visits"}`;
    const tied = actions.filter((_, i) => N[i] === most);
    const at = actions.indexOf(search.action);
    const visits = tied.length > 1 ? `${tied.length} moves tie with ${count(most)} (${listWords(tied.map(name))})` : `${name(tied[0])} has the most visits (${most})`;
    const plays = `plays ${name(search.action)}${N[at] < most ? `, with ${count(N[at])}` : ""}`;
    const expects = `expects the value ${signed(Q[at])} for ${playerName(position.player)}`;
    const words = `It ${plays}, and ${expects}; ${visits}.`;
    return game.table ? [words, " ", this.#verdict(search.action, tied)] : words;
  }

  /** Compares the move played, and the moves that tie with it, with perfect play. */
  #verdict(action, tied) {
    const { game, position } = this.bench;
    const { before, after, optimal } = movePlayed(game, position, action);
    const wrong = tied.filter((move) => !optimal.includes(move));
    const would = before > 0 ? "not keep the win" : "lose the draw";
    const among = tied.length > 1 && wrong.length ? ` ${sentence(listWords(wrong.map((move) => game.moveName(position, move))))}, ${wrong.length} of the ${tied.length} tied moves, would ${would}.` : "";
    if (after === before) return h("strong.az-right", `This keeps the ${VALUE_WORDS[before]}.${among}`);
    return h("strong.az-mistake", `A blunder: a ${VALUE_WORDS[before]} becomes a ${VALUE_WORDS[after]}.${among}`);
  }
}
