import { numbers } from "./dom.js";
import { f32 } from "./random.js";

// Networks in their folded form, layer by layer: float32 weights, sums in float64. Layouts are
// those of Python: boards `[cells, channels]`, kernels `[3, 3, in, out]` or `[in, out]`.

const WIDE = 8; // Outputs at a time, whose sums stay in registers.

/** The residual tower of `azjax/modules.py`. */
export class Tower {
  constructor({ encoding, blocks, layers, width }, game) {
    Object.assign(this, { encoding, blocks, layers: unpack(layers, width) });
    this.channels = this.layers.stem.bias.length;
    const convolutions = Object.keys(layers).filter((name) => /^(stem|block.*)$/.test(name));
    for (const name of convolutions) this.layers[name] = arrange(this.layers[name]);
    this.taps = tapsOf(game.rows, game.columns);
    const room = () => new Float64Array(this.taps.length * this.layers.stem.bias.length);
    [this.trunk, this.inner, this.outer] = [room(), room(), room()];
    const most = 9 * this.taps.length * Math.max(...convolutions.map((name) => this.layers[name].inputs));
    this.met = { places: new Int32Array(most), values: new Float64Array(most), ends: new Int32Array(this.taps.length) };
  }

  /** Returns `{logits, value}` of a position. */
  infer(position) {
    const { layers, trunk, inner, outer } = this;
    this.#convolve(planes(position, this.encoding), layers.stem, trunk);
    relu(trunk);
    for (let i = 0; i < this.blocks; i++) {
      this.#convolve(trunk, layers[`block${i}_a`], inner);
      relu(inner);
      this.#convolve(inner, layers[`block${i}_b`], outer);
      for (let k = 0; k < trunk.length; k++) trunk[k] = Math.max(0, trunk[k] + outer[k]);
    }
    const logits = dense(relu(this.#head("policy_conv")), layers.policy);
    const hidden = relu(dense(relu(this.#head("value_conv")), layers.value_hidden));
    return { logits, value: f32(Math.tanh(dense(hidden, layers.value)[0])) };
  }

  /** A 1x1 convolution: the same small product in every cell. */
  #head(name) {
    const { channels, layers, taps, trunk } = this;
    const wide = trunk.length / taps.length;
    const cells = taps.map((_, cell) => dense(trunk.subarray(cell * wide, cell * wide + channels), layers[name]));
    return Float64Array.from(cells.flatMap((cell) => [...cell]));
  }

  /** A 3x3 convolution with zero padding, of the inputs that are not 0: after a ReLU, half. */
  #convolve(x, { kernel, bias, inputs }, y) {
    this.#gather(x, inputs);
    const { places, values, ends } = this.met;
    for (let o = 0, block = 0; o < bias.length; o += WIDE, block += 9 * inputs * WIDE) {
      for (let cell = 0, j = 0, to = o; cell < ends.length; cell++, to += bias.length) {
        let [a, b, c, d] = [bias[o], bias[o + 1], bias[o + 2], bias[o + 3]];
        let [e, f, g, h] = [bias[o + 4], bias[o + 5], bias[o + 6], bias[o + 7]];
        for (; j < ends[cell]; j++) {
          const value = values[j];
          const w = block + places[j];
          a += value * kernel[w];
          b += value * kernel[w + 1];
          c += value * kernel[w + 2];
          d += value * kernel[w + 3];
          e += value * kernel[w + 4];
          f += value * kernel[w + 5];
          g += value * kernel[w + 6];
          h += value * kernel[w + 7];
        }
        y[to] = a;
        y[to + 1] = b;
        y[to + 2] = c;
        y[to + 3] = d;
        y[to + 4] = e;
        y[to + 5] = f;
        y[to + 6] = g;
        y[to + 7] = h;
      }
    }
  }

  /** Lists, for one cell after the other, the inputs around it and their places in a kernel. */
  #gather(x, inputs) {
    const { places, values, ends } = this.met;
    const stride = x.length / this.taps.length;
    let count = 0;
    this.taps.forEach((taps, cell) => {
      for (let t = 0; t < taps.length; t += 2) {
        const from = taps[t] * stride;
        for (let i = 0; i < inputs; i++) {
          if (x[from + i] === 0) continue;
          places[count] = (taps[t + 1] * inputs + i) * WIDE;
          values[count++] = x[from + i];
        }
      }
      ends[cell] = count;
    });
  }
}

/** A 3x3 kernel `[9, in, out]` as `[out / 8, 9, in, 8]`, filled up with zeros, and its bias. */
function arrange({ kernel, bias }) {
  const inputs = kernel.length / 9 / bias.length;
  const blocks = Math.ceil(bias.length / WIDE);
  const arranged = { kernel: new Float64Array(blocks * 9 * inputs * WIDE), bias: new Float64Array(blocks * WIDE), inputs };
  arranged.bias.set(bias);
  kernel.forEach((weight, k) => {
    const [o, from] = [k % bias.length, Math.floor(k / bias.length)];
    arranged.kernel[(Math.floor(o / WIDE) * 9 * inputs + from) * WIDE + (o % WIDE)] = weight;
  });
  return arranged;
}

/** The multilayer perceptron of `azjax/modules.py`. */
export class Mlp {
  constructor({ encoding, shared, layers, width }) {
    Object.assign(this, { encoding, shared, layers: unpack(layers, width) });
  }

  /** Returns `{logits, value}` of a position. */
  infer(position) {
    const { layers } = this;
    const shared = this.shared.reduce((x, name) => relu(dense(x, layers[name])), planes(position, this.encoding));
    const head = (name) => dense(relu(dense(shared, layers[`${name}_hidden`])), layers[name]);
    return { logits: head("policy"), value: f32(Math.tanh(head("value")[0])) };
  }
}

/** The layers' weights, of which there are the `width` upper bytes. */
function unpack(layers, width) {
  const weights = (text) => {
    const upper = numbers(text, Uint8Array);
    const bytes = new Uint8Array((4 * upper.length) / width);
    for (let from = 0, to = 4 - width; from < upper.length; from += width, to += 4) {
      bytes.set(upper.subarray(from, from + width), to);
    }
    return new Float32Array(bytes.buffer);
  };
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
