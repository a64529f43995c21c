import { orient } from "./orientation.js";
import { f32 } from "./random.js";
import { Sums } from "./sums.js";

// The quantized networks of `azjax/networks/quantized.py`. All sums are integers below 2 ** 24,
// which float32 holds exactly, so logits and values equal those of Python bit for bit.

const LARGEST = 127; // The largest activation.
const VALUES = 511; // The table of values has an entry for each integer from -VALUES to VALUES.
const FIRST = "Dense_0"; // The layer that reads the planes.
const TRUNK = "Dense_";
const TYPES = { i1: Int8Array, u1: Uint8Array, i4: Int32Array, f4: Float32Array };

/** A network whose weights are integers. */
export class Quantized {
  #game;
  #group;
  #encoding;
  #ranks; // The smallest power of two that is at least the number of actions.
  #sums = new Sums();
  #layers = {};
  #trunk;

  /**
   * `layers` has the arrays of each layer as in Python, those of copy 0, with their `shape`. `group`
   * has the permutations of cells, copies and actions.
   */
  constructor({ layers, group, encoding }, game) {
    [this.#game, this.#group, this.#encoding] = [game, group, encoding];
    this.#ranks = 2 ** Math.ceil(Math.log2(group.actions[0].length));
    this.#trunk = Object.keys(layers)
      .filter((name) => name.startsWith(TRUNK))
      .sort((a, b) => a.slice(TRUNK.length) - b.slice(TRUNK.length));
    for (const [name, layer] of Object.entries(layers)) this.#layers[name] = this.#dense(name, layer);
  }

  /** Returns `{logits, value}` of a position. */
  infer(position) {
    const planes = observe(this.#game, position, this.#encoding);
    const x = this.#trunk.reduce((input, name) => this.#hidden(name, input), planes);
    const { scale } = this.#layers.policy;
    const ranks = this.#rank(planes);
    const totals = this.#scaled("policy", this.#hidden("policy_hidden", x));
    const logits = totals.map((total, action) => f32(total * this.#ranks - ranks[action]) * scale);
    const [sum] = this.#scaled("value", this.#hidden("value_hidden", x));
    const index = Math.max(-VALUES, Math.min(VALUES, sum)) + VALUES;
    return { logits, value: this.#layers.value.table[index] };
  }

  #hidden(name, x) {
    return this.#scaled(name, x).map((total) => Math.max(0, Math.min(LARGEST, total)));
  }

  /** The outputs of a layer, rounded down; `x` is not negative. */
  #scaled(name, x) {
    const { matrix, bias, factors } = this.#layers[name];
    this.#sums.list(matrix, 0, x, 0, x.length);
    return this.#sums.total(bias).map((total, i) => Math.floor(total * factors[i]));
  }

  /** The layer of all copies, from that of copy 0. */
  #dense(name, { kernel, bias, shift, scale, table }) {
    const { cells, copies, actions } = this.#group;
    const isOutput = name === "policy" || name === "value";
    const weights =
      name === "policy" ? reorderColumns(kernel, actions)
      : name === "value" ? repeat(kernel, copies.length)
      : permuteRows(kernel, name === FIRST ? cells : copies);
    const biases = Float32Array.from(isOutput ? bias : repeat(bias, copies.length));
    const shifts = isOutput ? Array(bias.length).fill(shift[0]) : repeat(shift, copies.length);
    const factors = Float32Array.from(shifts, (each) => 2 ** -each);
    const matrix = this.#sums.keep(Float32Array.from(weights), biases.length);
    return { matrix, bias: biases, factors, scale: scale?.[0], table };
  }

  /** The lowest number of each action in the canonical orientation of the board. */
  #rank(planes) {
    const { cells, actions } = this.#group;
    const { leads } = orient(cells, planes);
    return actions[0].map((_, action) => Math.min(...leads.map((symmetry) => actions[symmetry][action])));
  }
}

/** Splits bytes into arrays; `list` has `[layer, name, type, shape]` of each, in order. */
export function splitArrays(list, bytes) {
  const layers = {};
  let from = 0;
  for (const [layer, name, type, shape] of list) {
    const size = shape.reduce((product, length) => product * length, TYPES[type].BYTES_PER_ELEMENT);
    const array = new TYPES[type](bytes.slice(from, from + size));
    (layers[layer] ??= {})[name] = Object.assign(array, { shape });
    from += size;
  }
  return layers;
}

/** The input of a network, cell by cell; see `observe` in Python. */
export function observe(game, position, encoding) {
  const { board, player } = position;
  const own = encoding === "relative" && player === 1 ? -1 : 1;
  const seen = encoding === "relative" && game.seen ? game.seen(position) : board.map((stone) => stone * own);
  const turn = encoding === "absolute" ? [Number(player === 0)] : [];
  return Uint8Array.from(seen.flatMap((stone) => [Number(stone === 1), Number(stone === -1), ...turn]));
}

/** Permutes weights `[I, O]` by each of several symmetries, side by side: `permute` in Python. */
function permuteRows(kernel, permutations) {
  const [rows, columns] = kernel.shape;
  const width = columns * permutations.length;
  const channels = rows / permutations[0].length;
  const dense = new Int8Array(rows * width);
  permutations.forEach((order, copy) => {
    order.forEach((to, from) => { // The inverse of the permutation.
      for (let c = 0; c < channels; c++) {
        const row = (from * channels + c) * columns;
        dense.set(kernel.subarray(row, row + columns), (to * channels + c) * width + copy * columns);
      }
    });
  });
  return dense;
}

/** Reorders the columns of weights by each of several permutations, one below the other. */
function reorderColumns(kernel, permutations) {
  const [rows, columns] = kernel.shape;
  const dense = new Int8Array(rows * columns * permutations.length);
  permutations.forEach((order, copy) => {
    for (let i = 0; i < rows; i++) {
      order.forEach((column, o) => (dense[(copy * rows + i) * columns + o] = kernel[i * columns + column]));
    }
  });
  return dense;
}

/** An array, `count` times. */
function repeat(array, count) {
  return Array.from({ length: count }, () => Array.from(array)).flat();
}
