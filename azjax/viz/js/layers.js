import { f32 } from "./algorithms.js";
import { numbers } from "./dom.js";

// Networks in their folded form, layer by layer, in float32. Layouts are those of Python: boards
// `[cells, channels]`, kernels `[3, 3, in, out]` or `[in, out]`.

/** The residual network of `azjax/networks/resnet.py`, of dense layers or of convolutions. */
export class ResNet {
  constructor({ encoding, blocks, norm, layers }, game) {
    Object.assign(this, { encoding, blocks, norm, game, layers: unpackLayers(layers) });
    this.taps = "policy_conv" in layers ? tapsOf(game.rows, game.columns) : null;
  }

  /** Returns `{logits, value}` of a position. */
  infer(position) {
    let trunk = relu(this.#layer("stem", Float32Array.from(observe(this.game, position, this.encoding))));
    for (let i = 0; i < this.blocks; i++) {
      const inner = relu(this.#layer(`block${i}_a`, this.#normalize(trunk)));
      const more = this.#layer(`block${i}_b`, inner);
      trunk = relu(trunk.map((x, k) => x + more[k]));
    }
    trunk = this.#normalize(trunk);
    const head = (name) => this.#dense(name, relu(this.#hidden(name, trunk)));
    return { logits: head("policy"), value: f32(Math.tanh(head("value")[0])) };
  }

  /** Layer normalization per cell, or over all units, if the network has it. */
  #normalize(x) {
    if (!this.norm) return x;
    const y = x.slice();
    const count = x.length / (this.taps?.length ?? 1);
    for (let from = 0; from < y.length; from += count) {
      const cell = y.subarray(from, from + count);
      const mean = cell.reduce((sum, each) => sum + each, 0) / count;
      const variance = cell.reduce((sum, each) => sum + (each - mean) ** 2, 0) / count;
      cell.forEach((each, i) => (cell[i] = (each - mean) / Math.sqrt(variance + 1e-5)));
    }
    return y;
  }

  /** The hidden layer of a head: a dense layer, or a 1x1 convolution. */
  #hidden(name, x) {
    if (!this.taps) return this.#dense(`${name}_hidden`, x);
    const cells = this.#convolve(`${name}_conv`, x, this.taps.map((_, cell) => [[cell, 0]]));
    return name === "value" ? this.#dense("value_hidden", relu(cells)) : cells;
  }

  #layer(name, x) {
    return this.taps ? this.#convolve(name, x, this.taps) : this.#dense(name, x);
  }

  #dense(name, x) {
    return dense(this.layers[name], x);
  }

  /** A convolution; `taps` lists `[neighbor, index in the kernel]` of each cell. */
  #convolve(name, x, taps) {
    const { kernel, bias } = this.layers[name];
    const inputs = x.length / taps.length;
    const y = new Float32Array(taps.length * bias.length);
    taps.forEach((neighbors, cell) => {
      const sums = y.subarray(cell * bias.length, (cell + 1) * bias.length);
      sums.set(bias);
      for (const [from, tap] of neighbors) addProducts(sums, kernel, tap * inputs, x, from * inputs, inputs);
    });
    return y;
  }
}

/** The MLP of `azjax/networks/mlp.py`. */
export class Mlp {
  constructor({ encoding, blocks, layers }, game) {
    Object.assign(this, { encoding, blocks, game, layers: unpackLayers(layers) });
  }

  /** Returns `{logits, value}` of a position. */
  infer(position) {
    const hidden = (x, name) => relu(dense(this.layers[name], x));
    const shared = Array.from({ length: this.blocks }, (_, i) => `Dense_${i}`);
    const x = shared.reduce(hidden, Float32Array.from(observe(this.game, position, this.encoding)));
    const head = (name) => dense(this.layers[name], hidden(x, `${name}_hidden`));
    return { logits: head("policy"), value: f32(Math.tanh(head("value")[0])) };
  }
}

/** A dense layer, `bias + x W`. Float32 sums are rounded once for each input; integers are exact. */
export function dense({ kernel, bias }, x) {
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
