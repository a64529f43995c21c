import { numbers } from "./dom.js";
import { f32 } from "./random.js";
import { Sums } from "./sums.js";

// Networks in their folded form, layer by layer, in float32. Layouts are those of Python: boards
// `[cells, channels]`, kernels `[3, 3, in, out]` or `[in, out]`. Each layer takes what the one
// before made, without its ReLU: `Sums` leaves out what is below 0.

/** The residual tower of `azjax/networks/resnet.py`. */
export class Tower {
  #layers;
  #encoding;
  #blocks;
  #taps;

  constructor({ encoding, blocks, layers, width }, game) {
    [this.#encoding, this.#blocks, this.#layers] = [encoding, blocks, new Layers(layers, width)];
    this.#taps = tapsOf(game.rows, game.columns);
  }

  /** Returns `{logits, value}` of a position. */
  infer(position) {
    let trunk = this.#convolve(planes(position, this.#encoding), "stem");
    for (let i = 0; i < this.#blocks; i++) {
      const more = this.#convolve(this.#convolve(trunk, `block${i}_a`), `block${i}_b`);
      trunk = trunk.map((x, k) => Math.max(0, x) + more[k]);
    }
    const logits = this.#layers.dense(this.#head(trunk, "policy_conv"), "policy");
    const hidden = this.#layers.dense(this.#head(trunk, "value_conv"), "value_hidden");
    return { logits, value: f32(Math.tanh(this.#layers.dense(hidden, "value")[0])) };
  }

  /** A 3x3 convolution with zero padding. */
  #convolve(x, name) {
    const inputs = x.length / this.#taps.length;
    return this.#cells(name, (cell) => {
      for (const [from, tap] of this.#taps[cell]) this.#layers.list(name, tap * inputs, x, from * inputs, inputs);
    });
  }

  /** A 1x1 convolution: the same small product in every cell. */
  #head(x, name) {
    const inputs = x.length / this.#taps.length;
    return this.#cells(name, (cell) => this.#layers.list(name, 0, x, cell * inputs, inputs));
  }

  /** What a layer makes of every cell, once `list` has told it the cell's inputs. */
  #cells(name, list) {
    const outputs = this.#layers.outputs(name);
    const y = new Float32Array(this.#taps.length * outputs);
    for (let cell = 0; cell < this.#taps.length; cell++) {
      list(cell);
      y.set(this.#layers.total(name), cell * outputs);
    }
    return y;
  }
}

/** The multilayer perceptron of `azjax/networks/mlp.py`. */
export class Mlp {
  #layers;
  #encoding;
  #shared;

  constructor({ encoding, shared, layers, width }) {
    [this.#encoding, this.#shared, this.#layers] = [encoding, shared, new Layers(layers, width)];
  }

  /** Returns `{logits, value}` of a position. */
  infer(position) {
    const dense = (x, name) => this.#layers.dense(x, name);
    const shared = this.#shared.reduce(dense, planes(position, this.#encoding));
    const head = (name) => dense(dense(shared, `${name}_hidden`), name);
    return { logits: head("policy"), value: f32(Math.tanh(head("value")[0])) };
  }
}

/** The weights of a network, by the names of its layers. */
class Layers {
  #sums = new Sums();
  #matrices = {};
  #biases = {};

  constructor(packed, width) {
    for (const [name, { kernel, bias }] of Object.entries(packed)) {
      this.#biases[name] = unpack(bias, width);
      this.#matrices[name] = this.#sums.keep(unpack(kernel, width), this.#biases[name].length);
    }
  }

  /** How many numbers a layer makes. */
  outputs(name) {
    return this.#biases[name].length;
  }

  /** Lists `count` inputs, of which those from the place `from` on meet a layer's rows from `row` on. */
  list(name, row, x, from, count) {
    this.#sums.list(this.#matrices[name], row, x, from, count);
  }

  /** What a layer makes of the inputs listed; the numbers stay until the next call. */
  total(name) {
    return this.#sums.total(this.#biases[name]);
  }

  /** What a dense layer makes of all of `x`. */
  dense(x, name) {
    this.list(name, 0, x, 0, x.length);
    return this.total(name).slice();
  }
}

/** Weights of which there are the `width` upper bytes. */
function unpack(text, width) {
  const upper = numbers(text, Uint8Array);
  if (width === 4) return new Float32Array(upper.buffer);
  const bytes = new Uint8Array((4 * upper.length) / width);
  for (let from = 0, to = 4 - width; from < upper.length; to += 4 - width) {
    for (let i = 0; i < width; i++) bytes[to++] = upper[from++];
  }
  return new Float32Array(bytes.buffer);
}

/** For each cell, its neighbours and the places of the kernel that they meet, in pairs. */
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

/** The network's input, cell by cell; see `observation_planes` in Python. */
function planes({ board, player }, encoding) {
  const own = encoding === "relative" && player === 1 ? -1 : 1;
  const turn = encoding === "absolute" ? [Number(player === 0)] : [];
  return Float32Array.from(
    board.flatMap((stone) => [Number(stone === own), Number(stone === -own), ...turn]),
  );
}
