import { isPosition, openTable } from "./board.js";
import { EVALUATORS, exactEvaluator } from "./evaluators.js";
import { gameNamed } from "./games.js";
import { openNetworks } from "./network.js";
import { advanceInSlices, Search } from "./search.js";

const NOISE = { puct: "dirichlet_fraction", gumbel: "gumbel_scale" }; // 0 for none.

/** What is searched, and how: a game's networks, the settings, the position and its search. */
export class Bench {
  #networks;
  #stop = null; // Of a search that is being made.
  #then = null;

  /** `data` is what `live_data` returns in Python. */
  constructor(data) {
    this.game = gameNamed(data.game);
    const table = openTable(data);
    this.knows = (board) => isPosition(board, this.game, table);
    this.#networks = openNetworks(data, this.game, table);
    this.iterations = this.#networks.map(({ iteration }) => iteration);
    this.exact = table && exactEvaluator(table);
    this.settings = { iteration: this.iterations.at(-1) ?? null, ...data.settings };
    this.positions = [this.game.at(data.board)];
    this.search = this.#newSearch({ num_simulations: 1 }); // Until the one that was asked for is made.
    this.search.advance();
    this.#search();
  }

  /** The names of the evaluators that there are. */
  get evaluators() {
    const network = this.#networks.length ? ["network"] : [];
    return [...network, ...Object.keys(EVALUATORS), ...(this.exact ? ["exact"] : [])];
  }

  /** The position shown, which may be over; the search is of the last one that is not. */
  get position() {
    return this.positions.at(-1);
  }

  /**
   * Calls `then`, instead of what was given before, when the search is made: at once if it is.
   *
   * Until then `search` is the one before. Where all positions are known, it is always made.
   */
  whenMade(then) {
    if (this.#stop) this.#then = then;
    else then();
  }

  /** Changes settings, and searches anew; the others stay as they are. */
  set(change) {
    Object.assign(this.settings, change);
    this.#search();
  }

  /** Plays where a cell is clicked; returns whether that is a move. */
  click(cell) {
    const action = this.game.action(cell);
    if (!this.game.legal(this.position).includes(action)) return false;
    this.#go(this.game.step(this.position, action));
    return true;
  }

  /** Goes to any position, given by its cells. */
  goTo(board) {
    this.#go(this.game.at(board));
  }

  /** Takes the last change of the position back. */
  undo() {
    this.positions.pop();
    this.#search();
  }

  #go(position) {
    this.positions.push(position);
    this.#search();
  }

  #search() {
    if (this.position.over) return;
    this.#stop?.();
    this.#then = null;
    const search = this.#newSearch();
    const made = () => {
      [this.search, this.#stop] = [search, null];
      this.#then?.();
    };
    this.#stop = advanceInSlices(search, made, this.exact ? Infinity : undefined);
  }

  #newSearch(change = {}) {
    const { settings } = this;
    const add_noise = (settings[NOISE[settings.algorithm]] ?? 0) > 0;
    const asked = { ...settings, ...change, add_noise };
    return new Search(this.game, this.position, this.#evaluator(), asked, { waits: true });
  }

  #evaluator() {
    const { evaluator, iteration } = this.settings;
    if (evaluator === "exact") return this.exact;
    if (evaluator !== "network") return EVALUATORS[evaluator](this.game);
    return this.#networks[this.iterations.indexOf(iteration)].evaluate;
  }
}
