import { h, pushButton, replace } from "./dom.js";
import { opinionOf } from "./network.js";
import { Search } from "./search.js";

const MOST_SEARCHED = 100; // Positions per click.

/** The positions in which a network's best move does not keep the value. */
export function blundersOf(network, game) {
  const { table } = game;
  const rows = Array.from({ length: table.size }, (_, row) => row).filter((row) => !table.over(row));
  const positions = rows.map((row) => game.read(table.text(row)));
  return positions.filter((position, i) => !table.optimal(rows[i]).includes(opinionOf(network, game, position).move));
}

/** The number of a network's blunders, and a button that shows one that the search corrects. */
export class Blunders {
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
