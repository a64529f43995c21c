import { numbers } from "./dom.js";

const tables = new WeakMap();

/** The table of a page's positions, shared by all components; null if there is none. */
export function openTable({ positions }) {
  if (!positions) return null;
  if (!tables.has(positions)) tables.set(positions, new PositionTable(positions));
  return tables.get(positions);
}

/** All positions of a small game; rows are in the order of `position_table` in Python. */
export class PositionTable {
  #data;
  #starts; // Of each row's legal moves.
  #actions;
  #optimal;
  #truth;
  #texts = new Map();
  #children;
  #rewards;
  #players;
  #named;

  constructor(data) {
    this.#data = data;
    this.#truth = numbers(data.truth, Int8Array);
    this.#starts = startsOf(numbers(data.counts, Uint16Array));
    this.#actions = numbers(data.actions, Uint16Array);
    this.#optimal = numbers(data.optimal, Uint8Array);
    this.size = this.#truth.length;
    this.hasRules = data.boards !== undefined;
    if (this.hasRules) {
      for (let row = 0; row < this.size; row++) this.#texts.set(this.text(row), row);
      return;
    }
    this.#children = numbers(data.children, Uint32Array);
    this.#rewards = numbers(data.rewards, Int8Array);
    this.#players = numbers(data.player, Uint8Array);
    this.#named = numbers(data.named, Uint16Array);
    this.pictures = openPictures(data.pictures);
  }

  /** The row of a position, or -1. */
  find(position) {
    return position.row ?? this.#texts.get(position.text) ?? -1;
  }

  /** The text of a row: its cells in ".XO", or its number. */
  text(row) {
    if (!this.hasRules) return String(row);
    const cells = this.#data.boards.length / this.size;
    return this.#data.boards.slice(row * cells, (row + 1) * cells);
  }

  /** The value under perfect play for the player to move. */
  truth(row) {
    return this.#truth[row];
  }

  over(row) {
    return this.#starts[row] === this.#starts[row + 1];
  }

  legal(row) {
    return Array.from(this.#actions.subarray(this.#starts[row], this.#starts[row + 1]));
  }

  /** The moves that keep the value. */
  optimal(row) {
    return this.legal(row).filter((_, i) => this.#optimal[this.#starts[row] + i] === 1);
  }

  player(row) {
    return this.#players[row];
  }

  /** The row after a move, and the mover's reward. */
  step(row, action) {
    const edge = this.edge(row, action);
    return { row: this.#children[edge], reward: this.#rewards[edge] };
  }

  /** The index of a legal move among those of all rows. */
  edge(row, action) {
    return this.#actions.indexOf(action, this.#starts[row]);
  }

  moveName(row, action) {
    return this.#data.names[this.#named[row]][action];
  }
}

/** The name of a move in a sentence: "b2", or "move 7" if it is a number. */
export function spellMove(name) {
  return name.replace(/^(?=\d+$)/, "move ");
}

/** Where each of several lists starts in their concatenation, with the end of the last one. */
export function startsOf(counts) {
  const starts = new Uint32Array(counts.length + 1);
  counts.forEach((count, i) => (starts[i + 1] = starts[i] + count));
  return starts;
}

/**
 * Decodes what `pack_pictures` made in Python: `{isText, parts(row), view(row), alt(row)}`.
 *
 * `parts(row)` are lines of text, or SVG elements `[tag, attributes, ...children]`.
 */
export function openPictures({ parts, counts, indices, views, alts }) {
  const starts = startsOf(numbers(counts, Uint16Array));
  const every = numbers(indices, Uint32Array);
  return {
    isText: !views,
    parts: (row) => Array.from(every.subarray(starts[row], starts[row + 1]), (i) => parts[i]),
    view: (row) => views[row] ?? views[0],
    alt: (row) => alts[row],
  };
}
