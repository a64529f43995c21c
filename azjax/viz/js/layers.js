import { sum } from "./algorithms.js";
import { numbers } from "./dom.js";

// Networks in their folded form, layer by layer, in float32. Layouts are those of Python: boards
// `[cells, channels]`, kernels `[3, 3, in, out]` or `[in, out]`.

/** The MLP or the residual network of `azjax/networks/resnet.py`, dense or of convolutions. */
export class Network {
  constructor({ kind, encoding, blocks, norm, layers }, game) {
    Object.assign(this, { kind, encoding, blocks, norm, game, layers: unpackLayers(layers) });
    this.taps = "policy_conv" in layers ? tapsOf(game.rows, game.columns) : null;
  }

  /** Returns `{logits, value}` of a position. */
  infer(position) {
    const input = Float32Array.from(observe(this.game, position, this.encoding));
    const trunk = this.kind === "mlp" ? this.#dense(input) : this.#residual(input);
    const head = (name) => dense(this.layers[name], relu(this.#hidden(name, trunk)));
    return { logits: head("policy"), value: Math.tanh(head("value")[0]) };
  }

  #dense(x) {
    return Array.from({ length: this.blocks }, (_, i) => this.layers[`Dense_${i}`]).reduce((input, layer) => relu(dense(layer, input)), x);
  }

  #residual(x) {
    let trunk = relu(this.#layer("stem", x));
    for (let i = 0; i < this.blocks; i++) {
      const inner = relu(this.#layer(`block${i}_a`, this.#normalize(trunk)));
      const more = this.#layer(`block${i}_b`, inner);
      trunk = relu(trunk.map((x, k) => x + more[k]));
    }
    return this.#normalize(trunk);
  }

  /** Layer normalization per cell, or over all units, if the network has it. */
  #normalize(x) {
    if (!this.norm) return x;
    const y = x.slice();
    const count = x.length / (this.taps?.length ?? 1);
    for (let from = 0; from < y.length; from += count) {
      const cell = y.subarray(from, from + count);
      const mean = sum(cell) / count;
      const variance = sum(cell.map((each) => (each - mean) ** 2)) / count;
      cell.forEach((each, i) => (cell[i] = (each - mean) / Math.sqrt(variance + 1e-5)));
    }
    return y;
  }

  /** The hidden layer of a head: a dense layer, or a 1x1 convolution. */
  #hidden(name, x) {
    if (!this.taps) return dense(this.layers[`${name}_hidden`], x);
    const cells = convolve(this.layers[`${name}_conv`], x, this.taps.map((_, cell) => [[cell, 0]]));
    return name === "value" ? dense(this.layers.value_hidden, relu(cells)) : cells;
  }

  #layer(name, x) {
    return this.taps ? convolve(this.layers[name], x, this.taps) : dense(this.layers[name], x);
  }
}

/** A convolution; `taps` lists `[neighbor, index in the kernel]` of each cell. */
function convolve({ kernel, bias }, x, taps) {
  const inputs = x.length / taps.length;
  const y = new Float32Array(taps.length * bias.length);
  taps.forEach((neighbors, cell) => {
    const sums = y.subarray(cell * bias.length, (cell + 1) * bias.length);
    sums.set(bias);
    for (const [from, tap] of neighbors) addProducts(sums, kernel, tap * inputs, x, from * inputs, inputs);
  });
  return y;
}

/** A dense layer, `bias + x W`, in float32 or in integers. */
function dense({ kernel, bias }, x) {
  return addProducts(bias.slice(), kernel, 0, x, 0, x.length);
}

/** Adds the products of `count` numbers, from `x[from]` on, and the kernel's rows from `row` on. */
function addProducts(sums, kernel, row, x, from, count) {
  const columns = sums.length;
  for (let i = 0; i < count; i++) {
    const factor = x[from + i];
    if (factor === 0) continue; // Most numbers after a ReLU, and of the input.
    const start = (row + i) * columns;
    for (let j = 0; j < columns; j++) sums[j] += factor * kernel[start + j];
  }
  return sums;
}

/** The input of a network, cell by cell; see `observe` in Python. */
export function observe(game, position, encoding) {
  const { board, player } = position;
  const own = encoding === "relative" && player === 1 ? -1 : 1;
  const seen = encoding === "relative" && game.seen ? game.seen(position) : board.map((stone) => stone * own);
  const turn = encoding === "absolute" ? [Number(player === 0)] : [];
  return Uint8Array.from(seen.flatMap((stone) => [Number(stone === 1), Number(stone === -1), ...turn]));
}

function relu(x) {
  return x.map((each) => Math.max(0, each));
}

function unpackLayers(layers) {
  const unpacked = ([name, { kernel, bias }]) => [name, { kernel: numbers(kernel, Float32Array), bias: numbers(bias, Float32Array) }];
  return Object.fromEntries(Object.entries(layers).map(unpacked));
}

/** For each cell, pairs of a neighbor and its index in a 3x3 kernel. */
function tapsOf(rows, columns) {
  return Array.from({ length: rows * columns }, (_, cell) => {
    const taps = [];
    for (let tap = 0; tap < 9; tap++) {
      const r = Math.floor(cell / columns) + Math.floor(tap / 3) - 1;
      const c = (cell % columns) + (tap % 3) - 1;
      if (r >= 0 && r < rows && c >= 0 && c < columns) taps.push([r * columns + c, tap]);
    }
    return taps;
  });
}

// The quantized networks of `azjax/networks/integers.py`. All sums are integers below 2 ** 24,
// so logits and values equal those of Python bit for bit.

const LARGEST = 127; // The largest activation.
const VALUES = 511; // The table of values has an entry for each integer from -VALUES to VALUES.
const FIRST = "Dense_0"; // The layer that reads the planes.
const TRUNK = "Dense_";
const TYPES = { i1: Int8Array, u1: Uint8Array, i4: Int32Array, f4: Float32Array };

/** A network whose weights are integers. */
export class Quantized {
  /**
   * `layers` has the arrays of each layer as in Python, those of copy 0, with their `shape`; or `bytes`
   * has them, as `arrays` lists. `group` has the permutations of cells, copies and actions.
   */
  constructor({ arrays, bytes, layers = splitArrays(arrays, numbers(bytes, Uint8Array).buffer), group, encoding }, game) {
    Object.assign(this, { game, group, encoding });
    this.ranks = 2 ** Math.ceil(Math.log2(group.actions[0].length)); // At least one for each action.
    this.trunk = Object.keys(layers)
      .filter((name) => name.startsWith(TRUNK))
      .sort((a, b) => a.slice(TRUNK.length) - b.slice(TRUNK.length));
    this.layers = Object.fromEntries(Object.entries(layers).map(([name, layer]) => [name, allCopies(name, layer, group)]));
  }

  /** Returns `{logits, value}` of a position. */
  infer(position) {
    const planes = observe(this.game, position, this.encoding);
    const x = this.trunk.reduce((input, name) => this.#hidden(name, input), planes);
    const { scale } = this.layers.policy;
    const ranks = this.#rank(planes);
    const totals = this.#scaled("policy", this.#hidden("policy_hidden", x));
    const logits = Float32Array.from(totals, (total, action) => (total * this.ranks - ranks[action]) * scale);
    const [sum] = this.#scaled("value", this.#hidden("value_hidden", x));
    const index = Math.max(-VALUES, Math.min(VALUES, sum)) + VALUES;
    return { logits, value: this.layers.value.table[index] };
  }

  #hidden(name, x) {
    return this.#scaled(name, x).map((total) => Math.max(0, Math.min(LARGEST, total)));
  }

  /** The outputs of a layer, divided by powers of two and rounded down. */
  #scaled(name, x) {
    const { shifts } = this.layers[name];
    return dense(this.layers[name], x).map((total, i) => total >> shifts[i]);
  }

  /** The lowest number of each action in the canonical orientation of the board. */
  #rank(planes) {
    const { cells, actions } = this.group;
    const { leads } = orient(cells, planes);
    return actions[0].map((_, action) => Math.min(...leads.map((symmetry) => actions[symmetry][action])));
  }
}

/** The layer of all copies, from that of copy 0. */
function allCopies(name, { kernel, bias, shift, scale, table }, { cells, copies, actions }) {
  const isOutput = name === "policy" || name === "value";
  const weights =
    name === "policy" ? reorderColumns(kernel, actions)
    : name === "value" ? repeat(kernel, copies.length)
    : permuteRows(kernel, name === FIRST ? cells : copies);
  const biases = isOutput ? bias : repeat(bias, copies.length);
  const shifts = isOutput ? Array(bias.length).fill(shift[0]) : repeat(shift, copies.length);
  return { kernel: Int8Array.from(weights), bias: Int32Array.from(biases), shifts, scale: scale?.[0], table };
}

/**
 * Turns planes into their canonical orientation, the smallest of their symmetric copies; see
 * `orient` in `azjax/networks/integers.py`.
 *
 * `cells` are the symmetries of the board, and `planes` are 0 or 1, cell by cell. Returns
 * `{planes, leads}`, where `leads` lists the symmetries that lead to the smallest copy.
 */
export function orient(cells, planes) {
  const channels = planes.length / cells[0].length;
  let [smallest, leads] = [null, []];
  cells.forEach((order, symmetry) => {
    const copy = new Uint8Array(planes.length);
    order.forEach((cell, i) => copy.set(planes.subarray(cell * channels, (cell + 1) * channels), i * channels));
    const at = smallest ? copy.findIndex((bit, i) => bit !== smallest[i]) : 0; // The first difference.
    if (at < 0) leads.push(symmetry);
    else if (!smallest || copy[at] < smallest[at]) [smallest, leads] = [copy, [symmetry]];
  });
  return { planes: smallest, leads };
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

/** Permutes weights `[I, O]` by each of several symmetries, side by side: `permute` in Python. */
function permuteRows(kernel, permutations) {
  const [rows, columns] = kernel.shape;
  const width = columns * permutations.length;
  const channels = rows / permutations[0].length;
  const wide = new Int8Array(rows * width);
  permutations.forEach((order, copy) => {
    order.forEach((to, from) => { // The inverse of the permutation.
      for (let c = 0; c < channels; c++) {
        const row = (from * channels + c) * columns;
        wide.set(kernel.subarray(row, row + columns), (to * channels + c) * width + copy * columns);
      }
    });
  });
  return wide;
}

/** Reorders the columns of weights by each of several permutations, one below the other. */
function reorderColumns(kernel, permutations) {
  const [rows] = kernel.shape;
  const row = (i, order) => order.map((column) => kernel[i * order.length + column]);
  return permutations.flatMap((order) => Array.from({ length: rows }, (_, i) => row(i, order))).flat();
}

/** An array, `count` times. */
function repeat(array, count) {
  return Array.from({ length: count }, () => Array.from(array)).flat();
}
