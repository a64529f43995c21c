import { Bench } from "./bench.js";
import { board, openTable, readBoard } from "./board.js";
import { h, percent, replace, signed } from "./dom.js";
import { settingFields, whyNotSet } from "./settings.js";
import { listWords, playerName } from "./words.js";

const ENDS = { 1: "win", 0: "draw", "-1": "loss" };
const OTHER = { algorithm: "puct", evaluator: "uniform" }; // What the second search does otherwise.

/** Two searches of the page's position, each with settings of its own; the truth is the referee. */
export function compare(root, data, place) {
  const table = openTable(data);
  const panels = [{}, OTHER].map((change) => new Panel(data, table, change));
  replace(root, h("div", { class: "az-compare" }, panels.map(({ element }) => element)));
  place.follow((names) => {
    const cells = readBoard(place.get("board") ?? "");
    const goes = names.includes("board") && panels[0].bench.knows(cells);
    for (const panel of panels) panel.show(goes ? cells : null);
  });
}

class Panel {
  constructor(data, table, change) {
    this.table = table;
    this.bench = new Bench(data);
    this.bench.set(change);
    this.fields = h("div", { class: "az-settings" });
    this.alert = h("p", { class: "az-alert", role: "alert" });
    this.result = h("div", {});
    this.element = h("div", { class: "az-compare-panel" }, this.fields, this.alert, this.result);
  }

  /** Searches another position, if one is given, and draws. */
  show(cells = null) {
    const { bench } = this;
    if (cells) bench.goTo(cells);
    replace(this.fields, settingFields(bench.settings, bench.evaluators, bench.iterations, (change) => this.#change(change)));
    this.element.setAttribute("aria-busy", "true");
    bench.whenMade(() => {
      this.element.removeAttribute("aria-busy");
      replace(this.result, bench.position.over ? h("p", { class: "az-hint" }, "The game is over here.") : this.#outcome());
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
    const { bench, table } = this;
    const { search, game, position } = bench;
    const { N, Q } = search.stats(0, search.length);
    const { actions } = search.nodes[0];
    const total = N.reduce((sum, n) => sum + n, 0);
    const shares = Array(position.board.length).fill(0);
    actions.forEach((action, i) => (shares[game.cell(position.board, action)] = N[i] / total));
    const keeps = table?.optimal(table.find(position.board));
    const look = {
      ...{ size: game.columns > 3 ? 264 : 190, shape: [game.rows, game.columns], heat: shares, last: game.cell(position.board, search.action) },
      ...{ labels: shares.map((share) => (share ? percent(share) : "")), marks: keeps },
      label: `visits ${actions.map((action, i) => `${action}: ${N[i]}`).join(", ")}`,
    };
    return [
      board(position.board, look),
      h("p", { class: "az-compare-said", "data-action": search.action, "data-visits": N.join(",") }, this.#words(search, actions, N, Q)),
    ];
  }

  #words(search, actions, N, Q) {
    const { game, position } = this.bench;
    const most = Math.max(...N);
    const tied = actions.filter((_, i) => N[i] === most);
    const at = actions.indexOf(search.action);
    const visits = tied.length > 1 ? `${tied.length} moves tie with ${most} visits (${listWords(tied.map(String))})` : `move ${tied[0]} has the most visits (${most})`;
    const plays = `plays ${search.action}${N[at] < most ? `, with ${N[at]}` : ""}`;
    const expects = `expects ${signed(Q[at])} of it for ${playerName(position.player)}`;
    const said = `It ${plays}, and ${expects}; ${visits}.`;
    return this.table ? [said, " ", this.#verdict(game.step(position, search.action), tied)] : said;
  }

  /** What the truth says of the move played, and of those that tie with it. */
  #verdict(next, tied) {
    const { table, bench } = this;
    const row = table.find(bench.position.board);
    const [before, after] = [table.truth(row), -table.truth(table.find(next.board))];
    const keeps = table.optimal(row);
    const wrong = tied.filter((action) => !keeps[action]);
    const among = tied.length > 1 && wrong.length ? ` Of those that tie ${wrong.length} would not keep it.` : "";
    if (after === before) return h("strong", { class: "az-right" }, `This keeps the ${ENDS[before]}.${among}`);
    return h("strong", { class: "az-mistake" }, `A blunder: a ${ENDS[before]} becomes a ${ENDS[after]}.${among}`);
  }
}
