import { argmax, softmax } from "./algorithms.js";
import { numbers } from "./dom.js";
import { Mlp, ResNet } from "./layers.js";

const opened = new WeakMap();

/**
 * The networks that a page carries, as evaluators: `[{iteration, evaluate(position)}]`.
 *
 * They are made once for all parts of the page, which share what has been computed, too.
 *
 * Of a game whose positions are all known, `table` (a `PositionTable`) says which they are, and a
 * network is what it answered to each; of other games it is its weights, and computed here.
 */
export function openNetworks({ networks }, game, table) {
  if (!networks) return [];
  if (!opened.has(networks)) opened.set(networks, open(networks, game, table));
  return opened.get(networks);
}

function open(networks, game, table) {
  const starts = table && startsOf(table, game);
  return networks.map((packed) => {
    const { iteration, kind } = packed;
    const make = () => {
      if (kind === "answers") return lookUp(packed, table, game, starts);
      return compute(kind === "resnet" ? new ResNet(packed, game) : new Mlp(packed), game);
    };
    let made = null;
    return { iteration, evaluate: (position) => (made ??= make())(position) };
  });
}

/** The network of an iteration, given as text, or else the newest; undefined if there is none. */
export function networkOf(networks, iteration) {
  return networks.find((network) => String(network.iteration) === iteration) ?? networks.at(-1);
}

/** What a network says about a position: `{policy, value, move}`, one share for each action. */
export function opinionOf(network, game, position) {
  const { logits, value } = network.evaluate(position);
  const legal = game.legal(position);
  const shares = softmax(legal.map((action) => logits[action]));
  const policy = Array(game.numActions).fill(0);
  legal.forEach((action, i) => (policy[action] = shares[i]));
  return { policy, value, move: argmax(policy) };
}

/** Where the answers to each position begin: `logits` and `values`, by row. */
function startsOf(table, game) {
  const logits = new Uint32Array(table.size);
  const values = new Uint32Array(table.size);
  for (let row = 1; row < table.size; row++) {
    const goesOn = !table.over(row - 1);
    const legal = goesOn ? game.legal(game.at(table.board(row - 1))).length : 0;
    logits[row] = logits[row - 1] + legal;
    values[row] = values[row - 1] + Number(goesOn);
  }
  return { logits, values };
}

function lookUp(packed, table, game, starts) {
  const logits = numbers(packed.logits, Float32Array);
  const values = numbers(packed.values, Float32Array);
  return (position) => {
    const row = table.find(position.board);
    const answer = { logits: Array(game.numActions).fill(0), value: 0 };
    if (position.over) return answer;
    const start = starts.logits[row];
    game.legal(position).forEach((action, i) => (answer.logits[action] = logits[start + i]));
    answer.value = values[starts.values[row]];
    return answer;
  };
}

/** Remembers what a network computed, for the next search. */
function compute(network, game) {
  const known = new Map();
  return (position) => {
    if (position.over) return { logits: null, value: 0 };
    const text = game.text(position);
    if (!known.has(text)) known.set(text, network.infer(position));
    return known.get(text);
  };
}
