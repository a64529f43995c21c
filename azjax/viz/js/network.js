import { argmax, softmax } from "./algorithms.js";
import { numbers } from "./dom.js";
import { byAction } from "./games.js";
import { Network, Quantized, splitArrays } from "./layers.js";

const networksOf = new WeakMap();

/**
 * The networks of a page as evaluators: `[{iteration, evaluate(position)}]`.
 *
 * All components share them and what they have computed. In a game with a table, a network is
 * stored as its outputs in every position; in other games it is computed from its weights.
 */
export function openNetworks({ networks }, game) {
  if (!networks) return [];
  if (!networksOf.has(networks)) networksOf.set(networks, networks.map((packed) => openNetwork(packed, game)));
  return networksOf.get(networks);
}

function openNetwork(packed, game) {
  const { iteration, kind } = packed;
  const Kind = kind === "quantized" ? Quantized : Network;
  const make = () => (kind === "answers" ? lookUp(packed, game) : compute(new Kind(packed, game)));
  let made = null;
  return { iteration, evaluate: (position) => (made ??= make())(position) };
}

/** The network of an iteration, given as text; by default the newest. */
export function networkOf(networks, iteration) {
  return networks.find((network) => String(network.iteration) === iteration) ?? networks.at(-1);
}

/** A network's output without search: `{policy, value, move}`, the policy by action. */
export function opinionOf(network, game, position) {
  const { logits, value } = network.evaluate(position);
  const shares = softmax(game.legal(position).map((action) => logits[action]));
  const policy = byAction(game, position, (_, i) => shares[i]);
  return { policy, value, move: argmax(policy) };
}

function lookUp(packed, game) {
  const logits = numbers(packed.logits, Float32Array);
  const values = numbers(packed.values, Float32Array);
  return (position) => {
    if (position.over) return { logits: null, value: 0 };
    const { row, first } = game.table.get(position.text);
    return { logits: byAction(game, position, (_, i) => logits[first + i]), value: values[row] };
  };
}

/** Caches the outputs of a network. */
function compute(network) {
  const known = new Map();
  return (position) => {
    if (position.over) return { logits: null, value: 0 };
    const { text } = position;
    if (!known.has(text)) known.set(text, network.infer(position));
    return known.get(text);
  };
}
