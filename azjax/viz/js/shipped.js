import { argmax } from "./algorithms.js";
import { numbers } from "./dom.js";
import { openGame } from "./games.js";
import { openNetworks } from "./network.js";
import { Overrides } from "./orientation.js";
import { observe, splitArrays } from "./quantized.js";
import { Search } from "./search.js";

// Players that come with azjax, as `pack_shipped` in `azjax/viz/playground.py` packs them.

const opened = new WeakMap();

/** Opens a player, once for all components of a page; returns a promise of a `Shipped`. */
export function openShipped(packed) {
  if (!opened.has(packed)) opened.set(packed, open(packed));
  return opened.get(packed);
}

async function open(packed) {
  const { overrides = null, ...layers } = splitArrays(packed.arrays, await inflate(packed.bytes));
  return new Shipped(packed, layers, overrides);
}

/** A player that chooses the same moves as `azjax.load(name).agent` in Python. */
export class Shipped {
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
      const settings = { ...this.data.settings, add_noise: false };
      return new Search(this.game, position, this.network.evaluate, settings).action;
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
