// Data of pages, as Python packs them: a solved game, and an untrained network.

import { gameNamed } from "../../azjax/viz/js/games.js";
import { generator } from "../../azjax/viz/js/algorithms.js";

export const base64 = (array) => Buffer.from(array.buffer).toString("base64");

/** `{text: {position, value, best}}` of a game of stones by minimax; values are for the mover. */
export function solve(name) {
  const game = gameNamed(name);
  const solved = new Map();
  const visit = (position) => {
    if (solved.has(position.text)) return solved.get(position.text).value;
    const entry = { position, value: position.over ? 0 - game.reward(position) : -1, best: [] };
    solved.set(position.text, entry);
    const values = game.legal(position).map((action) => 0 - visit(game.step(position, action)));
    if (values.length) entry.value = Math.max(...values);
    entry.best = game.legal(position).filter((_, i) => values[i] === entry.value);
    return entry.value;
  };
  visit(game.init());
  return solved;
}

/** The input of components for a solved game; the networks have random weights. */
export function dataOf(name, solved, iterations = [3, 7]) {
  const game = gameNamed(name);
  const rows = solved ? [...solved.values()] : null;
  const legal = (rows ?? []).map(({ position }) => game.legal(position));
  const positions = rows && {
    boards: [...solved.keys()].join(""),
    counts: base64(Uint16Array.from(legal, (moves) => moves.length)),
    actions: base64(Uint16Array.from(legal.flat())),
    optimal: base64(Uint8Array.from(rows.flatMap(({ best }, i) => legal[i].map((action) => best.includes(action))))),
    truth: base64(Int8Array.from(rows, ({ value }) => value)),
  };
  const settings = { algorithm: "puct", num_simulations: 60, c_puct: 2.5, first_play_urgency: "zero", dirichlet_fraction: 0, dirichlet_alpha: 0.3, gumbel_scale: 0, max_considered_actions: 16, value_scale: 0.1, maxvisit_init: 50, exploration: 1.4, seed: 0, evaluator: "network" };
  const networks = iterations.map((iteration) => network(game, iteration));
  return { game: name, start: game.init().text, settings, networks, encoding: "relative", ...(positions && { positions }) };
}

function network(game, iteration) {
  const random = generator(iteration);
  const layer = (inputs, outputs) => ({
    kernel: base64(Float32Array.from({ length: inputs * outputs }, () => 2 * random() - 1)),
    bias: base64(new Float32Array(outputs)),
  });
  const layers = { Dense_0: layer(2 * game.rows * game.columns, 8), policy_hidden: layer(8, 8), value_hidden: layer(8, 8), policy: layer(8, game.numActions), value: layer(8, 1) };
  return { kind: "mlp", iteration, encoding: "relative", blocks: 1, width: 4, layers };
}
