import { h, pushButton, replace } from "./dom.js";
import { opinionOf } from "./network.js";
import { Search } from "./search.js";

const MOST_SEARCHED = 100; // Of one click.

/** The positions in which a network's best move does not keep the value, as boards. */
export function blundersOf(network, game, table) {
  const boards = Array.from({ length: table.size }, (_, row) => table.board(row));
  return boards.filter((board, row) => {
    return !table.over(row) && !table.optimal(row)[opinionOf(network, game, game.at(board)).move];
  });
}

/** How many blunders a network makes, and a button that goes to one that its search repairs. */
export class Blunders {
  #known = new Map();
  #next = 0;

  /** `settings` are those of the run's own search. */
  constructor(game, table, settings, place) {
    Object.assign(this, { game, table, settings, place });
    this.element = h("p", { class: "az-blunders" });
  }

  show(network) {
    if (!this.#known.has(network)) this.#known.set(network, blundersOf(network, this.game, this.table));
    const boards = this.#known.get(network);
    const name = `the network of iteration ${network.iteration}`;
    const count = `Without a search ${name} blunders in ${boards.length.toLocaleString("en")} positions. `;
    this.note = h("span", { role: "status" });
    const button = pushButton("Show one, and the search that repairs it", "blunder", () => this.#go(network, boards));
    replace(this.element, boards.length ? [count, button, " ", this.note] : `Even without a search ${name} blunders nowhere.`);
  }

  #go(network, boards) {
    const found = this.#repaired(network, boards);
    if (!found) {
      this.note.textContent = `The search repairs none of the ${Math.min(boards.length, MOST_SEARCHED)} looked at; click to look at others.`;
      return;
    }
    const { algorithm, num_simulations } = this.settings;
    const search = { algorithm, num_simulations, evaluator: "network", iteration: network.iteration };
    this.place.set({ board: this.game.text(this.game.at(found)), ...search, t: 3 * num_simulations });
  }

  /** The next position in which the search plays a move that keeps the value, or undefined. */
  #repaired(network, boards) {
    for (let tried = 0; tried < Math.min(boards.length, MOST_SEARCHED); tried++) {
      const board = boards[this.#next++ % boards.length];
      const search = new Search(this.game, this.game.at(board), network.evaluate, { ...this.settings, add_noise: false });
      if (this.table.optimal(this.table.find(board))[search.action]) return board;
    }
    return undefined;
  }
}
