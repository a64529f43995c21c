import { openGame, optimalMoves } from "./games.js";
import { openNetworks } from "./network.js";
import { advanceInSlices, Search } from "./search.js";

/**
 * Returns the evaluators of a game by their names in settings.
 *
 * An evaluator is `(position, random) -> {logits, value}`: one logit for each action of the game, or
 * null for equal ones, and the expected outcome for the player to move.
 */
export function evaluatorsOf(game) {
  const evaluators = {
    uniform: () => ({ logits: null, value: 0 }),
    rollout: (position, random) => ({ logits: null, ...rollout(game, position, random) }),
  };
  return game.table ? { ...evaluators, exact: (position) => lookUpSolution(game, position) } : evaluators;
}

/** Returns the value under perfect play; the logits are 0 for moves that keep it, -10 for others. */
function lookUpSolution(game, position) {
  if (position.over) return { logits: null, value: 0 };
  const optimal = optimalMoves(game, position);
  const logits = Array.from({ length: game.numActions }, (_, action) => (optimal.includes(action) ? 0 : -10));
  return { logits, value: game.table.get(position.text).value };
}

/** Plays a random game to its end; returns its `value` for the player to move and its `moves`. */
function rollout(game, start, random) {
  const moves = [];
  let position = start;
  while (!position.over) {
    const legal = game.legal(position);
    moves.push(legal[Math.floor(random() * legal.length)]);
    position = game.step(position, moves.at(-1));
  }
  const winner = game.winner(position);
  return { value: winner === null ? 0 : winner === start.player ? 1 : -1, moves };
}

/** A search with its game, networks, settings and position, all of which can change. */
export class Bench {
  #networks;
  #evaluators;
  #stop = null; // Of a search in progress.
  #then = null;

  /** `data` is what `live_data` returns in Python. */
  constructor(data) {
    this.game = openGame(data);
    this.#networks = openNetworks(data, this.game);
    this.iterations = this.#networks.map(({ iteration }) => iteration);
    this.#evaluators = evaluatorsOf(this.game);
    this.settings = { iteration: this.iterations.at(-1) ?? null, ...data.settings };
    this.positions = [data.start ? this.game.read(data.start) : this.game.init()];
    this.search = this.#newSearch({ num_simulations: 1 }); // Until the requested one is done.
    this.search.advance();
    this.#search();
  }

  /** The names of the available evaluators. */
  get evaluators() {
    return [...(this.#networks.length ? ["network"] : []), ...Object.keys(this.#evaluators)];
  }

  /** The current position. If it is over, the search is of the one before. */
  get position() {
    return this.positions.at(-1);
  }

  /**
   * Calls `then` when the search is done; a later call replaces `then`.
   *
   * Until then, `search` is the previous one. In games with a table it is always done.
   */
  whenMade(then) {
    if (this.#stop) this.#then = then;
    else then();
  }

  /** Changes some settings and searches again. */
  set(change) {
    Object.assign(this.settings, change);
    this.#search();
  }

  /** Plays a move; returns whether it is legal. */
  play(action) {
    if (!this.game.legal(this.position).includes(action)) return false;
    this.goTo(this.game.step(this.position, action));
    return true;
  }

  goTo(position) {
    this.positions.push(position);
    if (!position.over) this.#search();
  }

  /** Reverts the last change of the position. */
  undo() {
    this.positions.pop();
    this.#search();
  }

  #search() {
    this.#stop?.();
    this.#then = null;
    const search = this.#newSearch();
    const made = () => {
      [this.search, this.#stop] = [search, null];
      this.#then?.();
    };
    this.#stop = advanceInSlices(search, made, this.game.table ? Infinity : undefined);
  }

  #newSearch(change = {}) {
    const position = this.positions.findLast(({ over }) => !over);
    return new Search(this.game, position, this.#evaluator(), { ...this.settings, ...change }, { waits: true });
  }

  #evaluator() {
    const { evaluator, iteration } = this.settings;
    return this.#evaluators[evaluator] ?? this.#networks[this.iterations.indexOf(iteration)].evaluate;
  }
}
