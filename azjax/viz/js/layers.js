import { numbers } from "./dom.js";
import { f32 } from "./random.js";
import { Sums } from "./sums.js";

// Networks in their folded form, layer by layer, in float32. Layouts are those of Python: boards
// `[cells, channels]`, kernels `[3, 3, in, out]` or `[in, out]`. Outputs of layers have no ReLU;
// instead, `Sums` skips negative inputs.

/** The residual network of `azjax/networks/resnet.py`, of dense layers or of convolutions. */
export class ResNet {
  #layers;
  #encoding;
  #blocks;
  #norm;
  #taps;

  constructor({ encoding, blocks, norm, layers, width }, game) {
    [this.#encoding, this.#blocks, this.#norm] = [encoding, blocks, norm];
    this.#layers = new Layers(layers, width);
    this.#taps = "policy_conv" in layers ? tapsOf(game.rows, game.columns) : null;
  }

  /** Returns `{logits, value}` of a position. */
  infer(position) {
    let trunk = this.#layer(planes(position, this.#encoding), "stem");
    for (let i = 0; i < this.#blocks; i++) {
      const inner = this.#layer(this.#normalize(trunk), `block${i}_a`, this.#norm);
      const more = this.#layer(inner, `block${i}_b`);
      trunk = trunk.map((x, k) => Math.max(0, x) + more[k]);
    }
    trunk = this.#normalize(trunk);
    const logits = this.#layers.dense(this.#head(trunk, "policy"), "policy");
    const value = this.#layers.dense(this.#head(trunk, "value"), "value");
    return { logits, value: f32(Math.tanh(value[0])) };
  }

  /** ReLU and layer normalization per cell, or over all units, if the network has it. */
  #normalize(x) {
    if (!this.#norm) return x;
    const count = x.length / (this.#taps?.length ?? 1);
    const y = x.map((each) => Math.max(0, each));
    for (let from = 0; from < y.length; from += count) {
      const cell = y.subarray(from, from + count);
      const mean = cell.reduce((sum, each) => sum + each, 0) / count;
      const variance = cell.reduce((sum, each) => sum + (each - mean) ** 2, 0) / count;
      cell.forEach((each, i) => (cell[i] = (each - mean) / Math.sqrt(variance + 1e-5)));
    }
    return y;
  }

  /** A dense layer, or a 3x3 convolution with zero padding; `signed` as in `Sums`. */
  #layer(x, name, signed = false) {
    if (!this.#taps) return this.#layers.dense(x, name, signed);
    const inputs = x.length / this.#taps.length;
    return this.#cells(name, (cell) => {
      for (const [from, tap] of this.#taps[cell]) {
        this.#layers.list(name, tap * inputs, x, from * inputs, inputs, signed);
      }
    });
  }

  /** The hidden layer of a head: a dense layer, or a 1x1 convolution. */
  #head(x, name) {
    if (!this.#taps) return this.#layers.dense(x, `${name}_hidden`, this.#norm);
    const [layer, inputs] = [`${name}_conv`, x.length / this.#taps.length];
    const list = (cell) => this.#layers.list(layer, 0, x, cell * inputs, inputs, this.#norm);
    const cells = this.#cells(layer, list);
    return name === "value" ? this.#layers.dense(cells, "value_hidden") : cells;
  }

  /** The outputs of a layer in every cell; `list(cell)` lists the inputs. */
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

/** The MLP of `azjax/networks/mlp.py`. */
export class Mlp {
  #layers;
  #encoding;
  #shared;

  constructor({ encoding, blocks, layers, width }) {
    [this.#encoding, this.#layers] = [encoding, new Layers(layers, width)];
    this.#shared = Array.from({ length: blocks }, (_, i) => `Dense_${i}`);
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

  /** The number of outputs of a layer. */
  outputs(name) {
    return this.#biases[name].length;
  }

  /** Lists `count` inputs, starting at `x[from]`, for the layer's rows from `row` on. */
  list(name, row, x, from, count, signed = false) {
    this.#sums.list(this.#matrices[name], row, x, from, count, signed);
  }

  /** The outputs for the listed inputs; they are valid until the next call. */
  total(name) {
    return this.#sums.total(this.#biases[name]);
  }

  /** The outputs of a dense layer for all of `x`. */
  dense(x, name, signed = false) {
    this.list(name, 0, x, 0, x.length, signed);
    return this.total(name).slice();
  }
}

/** Decodes weights from their `width` upper bytes. */
function unpack(text, width) {
  const upper = numbers(text, Uint8Array);
  if (width === 4) return new Float32Array(upper.buffer);
  const bytes = new Uint8Array((4 * upper.length) / width);
  for (let from = 0, to = 4 - width; from < upper.length; to += 4 - width) {
    for (let i = 0; i < width; i++) bytes[to++] = upper[from++];
  }
  return new Float32Array(bytes.buffer);
}

/** For each cell, pairs of a neighbor and its index in the kernel. */
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
