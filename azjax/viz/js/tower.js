import { numbers } from "./dom.js";
import { f32 } from "./random.js";

// Networks in their folded form, layer by layer: float32 weights, sums in float64. Layouts are
// those of Python: boards `[cells, channels]`, kernels `[3, 3, in, out]` or `[in, out]`.

/** The residual tower of `azjax/modules.py`. */
export class Tower {
  constructor({ encoding, blocks, layers }, game) {
    Object.assign(this, { encoding, blocks, game, layers: unpack(layers) });
    const { kernel, bias } = this.layers.stem;
    this.channels = bias.length;
    this.inputs = kernel.length / 9 / this.channels;
    const room = () => new Float64Array(game.rows * game.columns * this.channels);
    [this.trunk, this.inner, this.outer] = [room(), room(), room()];
    this.taps = tapsOf(game.rows, game.columns);
  }

  /** Returns `{logits, value}` of a position. */
  infer(position) {
    const { layers, trunk, inner, outer, channels } = this;
    this.#convolve(planes(position, this.encoding), this.inputs, layers.stem, trunk);
    relu(trunk);
    for (let i = 0; i < this.blocks; i++) {
      this.#convolve(trunk, channels, layers[`block${i}_a`], inner);
      relu(inner);
      this.#convolve(inner, channels, layers[`block${i}_b`], outer);
      for (let k = 0; k < trunk.length; k++) trunk[k] = Math.max(0, trunk[k] + outer[k]);
    }
    const logits = dense(relu(this.#head("policy_conv")), layers.policy);
    const hidden = relu(dense(relu(this.#head("value_conv")), layers.value_hidden));
    return { logits, value: f32(Math.tanh(dense(hidden, layers.value)[0])) };
  }

  /** A 1x1 convolution: the same small product in every cell. */
  #head(name) {
    const { channels, layers, trunk } = this;
    const cells = Array.from({ length: trunk.length / channels }, (_, cell) =>
      dense(trunk.subarray(cell * channels, (cell + 1) * channels), layers[name]),
    );
    return Float64Array.from(cells.flatMap((cell) => [...cell]));
  }

  /** A 3x3 convolution with zero padding; four outputs at a time stay in registers. */
  #convolve(x, inputs, { kernel, bias }, y) {
    const outputs = bias.length;
    this.taps.forEach((taps, cell) => {
      for (let o = 0; o < outputs; o += 4) {
        let [a, b, c, d] = [bias[o], bias[o + 1], bias[o + 2], bias[o + 3]];
        for (let t = 0; t < taps.length; t += 2) {
          let from = taps[t] * inputs;
          const end = from + inputs;
          for (let w = taps[t + 1] * inputs * outputs + o; from < end; w += outputs) {
            const value = x[from++];
            a += value * kernel[w];
            b += value * kernel[w + 1];
            c += value * kernel[w + 2];
            d += value * kernel[w + 3];
          }
        }
        const to = cell * outputs + o;
        y[to] = a;
        if (o + 1 < outputs) y[to + 1] = b;
        if (o + 2 < outputs) y[to + 2] = c;
        if (o + 3 < outputs) y[to + 3] = d;
      }
    });
  }
}

/** The multilayer perceptron of `azjax/modules.py`. */
export class Mlp {
  constructor({ encoding, shared, layers }) {
    Object.assign(this, { encoding, shared, layers: unpack(layers) });
  }

  /** Returns `{logits, value}` of a position. */
  infer(position) {
    const { layers } = this;
    const shared = this.shared.reduce((x, name) => relu(dense(x, layers[name])), planes(position, this.encoding));
    const head = (name) => dense(relu(dense(shared, layers[`${name}_hidden`])), layers[name]);
    return { logits: head("policy"), value: f32(Math.tanh(head("value")[0])) };
  }
}

function unpack(layers) {
  const weights = (text) => Float64Array.from(numbers(text, Float32Array));
  const layer = ([name, { kernel, bias }]) => [name, { kernel: weights(kernel), bias: weights(bias) }];
  return Object.fromEntries(Object.entries(layers).map(layer));
}

/** For each cell, its neighbours and the places of the kernel that they meet, in pairs. */
function tapsOf(rows, columns) {
  return Array.from({ length: rows * columns }, (_, cell) => {
    const taps = [];
    for (let tap = 0; tap < 9; tap++) {
      const r = Math.floor(cell / columns) + Math.floor(tap / 3) - 1;
      const c = (cell % columns) + (tap % 3) - 1;
      if (r >= 0 && r < rows && c >= 0 && c < columns) taps.push(r * columns + c, tap);
    }
    return Int32Array.from(taps);
  });
}

/** The network's input, cell by cell; see `observation_planes` in Python. */
function planes({ board, player }, encoding) {
  const own = encoding === "relative" && player === 1 ? -1 : 1;
  const turn = encoding === "absolute" ? [Number(player === 0)] : [];
  return Float64Array.from(
    board.flatMap((stone) => [Number(stone === own), Number(stone === -own), ...turn]),
  );
}

function dense(x, { kernel, bias }) {
  const y = Float64Array.from(bias);
  for (let i = 0; i < x.length; i++) {
    if (x[i] === 0) continue;
    for (let o = 0; o < y.length; o++) y[o] += x[i] * kernel[i * y.length + o];
  }
  return y.map(f32);
}

function relu(x) {
  for (let i = 0; i < x.length; i++) if (x[i] < 0) x[i] = 0;
  return x;
}
