import { h, percent, pushButton, replace, signed } from "./dom.js";
import { openGame } from "./games.js";
import { networkOf, openNetworks, opinionOf } from "./network.js";
import { picture } from "./picture.js";
import { Search } from "./search.js";
import { playerName } from "./words.js";

const MOST_SEARCHED = 100; // Positions per click.
const RESULT_VERBS = { 1: "wins", 0: "draws", "-1": "loses" };

/** The outputs of a run's networks for the page's position, one column per iteration. */
export function training(root, data, place) {
  const game = openGame(data);
  const networks = openNetworks(data, game);
  const blunders = game.table && networks.length ? new Blunders(game, data.settings, place) : null;
  const body = h("div");
  const draw = () => {
    const position = game.read(place.get("board")) ?? game.init();
    root.dataset.board = game.text(position);
    blunders?.show(networkOf(networks, place.get("iteration")));
    replace(body, position.over ? overWords(game, position) : opinions(game, networks, position, place));
  };
  replace(root, body, blunders?.element);
  place.follow((names) => (!names.length || names.some((name) => name === "board" || name === "iteration")) && draw());
}

function overWords(game, position) {
  const hint = h("p.az-hint", "The game is over here, so there is nothing to evaluate.");
  return h("div.az-columns", picture(game, position, { size: 150 }), hint);
}

function opinions(game, networks, position, place) {
  const outputs = networks.map((network) => opinionOf(network, game, position));
  const legal = game.legal(position);
  const { table } = game;
  const row = table?.find(position);
  const optimal = table ? table.optimal(row) : [];
  const mover = playerName(position.player);
  const shown = place.get("iteration") ?? String(networks.at(-1)?.iteration);
  const head = networks.map(({ iteration }) => {
    const look = { class: "az-button az-small", "aria-pressed": String(String(iteration) === shown) };
    return h("th", { scope: "col" }, pushButton(String(iteration), `iteration-${iteration}`, () => place.set({ iteration }), look));
  });
  const values = outputs.map(({ value }) => h("td", { "data-value": value }, signed(value)));
  const rows = legal.map((action) => {
    const name = [game.moveName(position, action), optimal.includes(action) ? h("span.az-keeps", { title: "keeps the value" }, " \u25cf") : null];
    return h("tr", h("th", { scope: "row" }, name), outputs.map(({ policy, move }) => shareCell(policy[action], move === action)));
  });
  const caption = h("caption", `Each network\u2019s probability for each move of ${mover}, and its value for ${mover}`);
  const truth = table ? `With perfect play ${mover} ${RESULT_VERBS[table.truth(row)]}. A dot marks each move that keeps this result; a frame marks a network\u2019s most likely move.` : "A frame marks a network\u2019s most likely move.";
  return [
    h(
      "div.az-columns",
      picture(game, position, { size: 150, marks: table ? optimal : null }),
      h(
        "div.az-scroll",
        { tabindex: 0, "data-focus": "networks" },
        h(
          "table.az-training",
          caption,
          h("thead", h("tr", h("th", { scope: "row" }, "iteration"), head)),
          h("tbody", h("tr.az-training-value", h("th", { scope: "row" }, "value"), values), rows),
        ),
      ),
    ),
    h("p.az-hint", truth),
  ];
}

function shareCell(p, best) {
  const style = { "--az-share": `${(100 * p).toFixed(1)}%` };
  return h("td", { class: best ? "az-share az-share-best" : "az-share", style, "data-share": p }, percent(p));
}

/** The positions in which a network's best move does not keep the value. */
function blundersOf(network, game) {
  const { table } = game;
  const rows = Array.from({ length: table.size }, (_, row) => row).filter((row) => !table.over(row));
  const positions = rows.map((row) => game.read(table.text(row)));
  return positions.filter((position, i) => !table.optimal(rows[i]).includes(opinionOf(network, game, position).move));
}

/** The number of a network's blunders, and a button that shows one that the search corrects. */
class Blunders {
  #known = new Map();
  #next = 0;

  /** `settings` are those of the run's own search. */
  constructor(game, settings, place) {
    Object.assign(this, { game, settings, place });
    this.element = h("p.az-blunders");
  }

  show(network) {
    if (!this.#known.has(network)) this.#known.set(network, blundersOf(network, this.game));
    const positions = this.#known.get(network);
    const name = `the network of iteration ${network.iteration}`;
    const count = `A blunder is a move that gives up a win or a draw. Without a search, the most likely move of ${name} is a blunder in ${positions.length.toLocaleString("en")} positions. `;
    this.note = h("span", { role: "status" });
    const button = pushButton("Show one that the search corrects", "blunder", () => this.#go(network, positions));
    replace(this.element, positions.length ? [count, button, " ", this.note] : `Even without a search, ${name} never blunders: it gives up no win and no draw.`);
  }

  #go(network, positions) {
    const found = this.#corrected(network, positions);
    if (!found) {
      this.note.textContent = `The search corrects none of the ${Math.min(positions.length, MOST_SEARCHED)} positions tried. If there are more, click again to try the next ones.`;
      return;
    }
    const { algorithm, num_simulations } = this.settings;
    const search = { algorithm, num_simulations, evaluator: "network", iteration: network.iteration };
    this.place.set({ t: undefined }); // The explorer restarts at 0 unless t changes.
    this.place.set({ board: this.game.text(found), ...search, t: 3 * num_simulations });
  }

  /** The next position in which the search plays a move that keeps the value, or undefined. */
  #corrected(network, positions) {
    const { table } = this.game;
    for (let tried = 0; tried < Math.min(positions.length, MOST_SEARCHED); tried++) {
      const position = positions[this.#next++ % positions.length];
      const search = new Search(this.game, position, network.evaluate, { ...this.settings, add_noise: false });
      if (table.optimal(table.find(position)).includes(search.action)) return position;
    }
    return undefined;
  }
}
