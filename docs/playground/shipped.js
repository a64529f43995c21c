import { argmax } from "../../azjax/viz/js/algorithms.js";
import { numbers } from "../../azjax/viz/js/dom.js";
import { openGame } from "../../azjax/viz/js/games.js";
import { openNetworks } from "../../azjax/viz/js/network.js";
import { observe, orient, splitArrays } from "../../azjax/viz/js/layers.js";
import { Search } from "../../azjax/viz/js/search.js";

// Players that come with azjax, as `pack_shipped` in `playground.py` packs them.

const playersOf = new WeakMap();

/** Opens a player, once for all components of a page; returns a promise of a `Shipped`. */
export function openShipped(packed) {
  if (!playersOf.has(packed)) playersOf.set(packed, unpackShipped(packed));
  return playersOf.get(packed);
}

async function unpackShipped(packed) {
  const { overrides = null, ...layers } = splitArrays(packed.arrays, await inflate(packed.bytes));
  return new Shipped(packed, layers, overrides);
}

/** A player that chooses the same moves as `azjax.load(name).agent` in Python. */
class Shipped {
  #overrides;
  #encoding;

  constructor(packed, layers, overrides) {
    const { about, group, symmetries, ...data } = packed;
    const network = { kind: "quantized", iteration: about.iteration, encoding: about.encoding, group, layers };
    this.#encoding = about.encoding;
    this.#overrides = overrides ? new Overrides(symmetries, overrides.planes, overrides.actions) : null;
    this.about = about;
    this.data = { ...data, networks: [network] }; // The input of the other components.
    this.game = openGame(this.data);
    [this.network] = openNetworks(this.data, this.game);
  }

  /** The number of positions in the override table, up to symmetry. */
  get overrides() {
    return this.#overrides?.size ?? 0;
  }

  /** Returns `{action, isOverride}`: the move, and whether the override table has it. */
  choose(position) {
    const listed = this.#overrides?.find(observe(this.game, position, this.#encoding)) ?? null;
    return { action: listed ?? this.#usual(position), isOverride: listed !== null };
  }

  /** The move of the network, alone or with the search of the player. */
  #usual(position) {
    if (!this.about.alone) {
      return new Search(this.game, position, this.network.evaluate, this.data.settings).action;
    }
    const { logits } = this.network.evaluate(position);
    const legal = this.game.legal(position);
    return legal[argmax(legal.map((action) => logits[action]))];
  }
}

/** Decompresses base64 of gzip. */
async function inflate(text) {
  const stream = new Blob([numbers(text, Uint8Array)]).stream();
  return new Response(stream.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

/** Moves that replace those of a player in single positions and their symmetric copies. */
export class Overrides {
  #symmetries;
  #table;
  #actions;
  #width;

  /**
   * `symmetries` are those of the cells and of the actions. `rows` has the bits of `count` sorted
   * positions, column by column: the first byte of every position, then the second.
   */
  constructor(symmetries, rows, actions) {
    const count = actions.length;
    this.#width = count ? rows.length / count : 0;
    this.#table = new Uint8Array(rows.length);
    for (let i = 0; i < rows.length; i++) this.#table[(i % count) * this.#width + Math.floor(i / count)] = rows[i];
    [this.#symmetries, this.#actions] = [symmetries, actions];
  }

  /** The number of positions up to symmetry. */
  get size() {
    return this.#actions.length;
  }

  /** The move in a position with these planes, or null if the table does not have it. */
  find(planes) {
    const oriented = orient(this.#symmetries.cells, planes);
    const row = this.#search(packBits(oriented.planes));
    return row < 0 ? null : this.#symmetries.actions[oriented.leads[0]][this.#actions[row]];
  }

  #search(bits) {
    let [low, high] = [0, this.size - 1];
    while (low <= high) {
      const middle = (low + high) >> 1;
      const sign = compareBytes(bits, 0, this.#table, middle * this.#width, this.#width);
      if (sign === 0) return middle;
      if (sign < 0) high = middle - 1;
      else low = middle + 1;
    }
    return -1;
  }
}

/** Packs eight entries into a byte, the first one in the highest bit, as `np.packbits` does. */
function packBits(planes) {
  const bits = new Uint8Array(Math.ceil(planes.length / 8));
  planes.forEach((bit, i) => (bits[i >> 3] |= bit << (7 - (i & 7))));
  return bits;
}

/** Compares `count` entries of two arrays: negative, 0 or positive. */
function compareBytes(a, from, b, start, count) {
  for (let i = 0; i < count; i++) if (a[from + i] !== b[start + i]) return a[from + i] - b[start + i];
  return 0;
}
