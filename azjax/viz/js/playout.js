// The random game of a rollout, move by move.

import { h } from "./dom.js";
import { picture } from "./picture.js";

/** The positions of the random game of a node, the node's own first. */
export function playout({ game, nodes }, id) {
  const { position, moves } = nodes[id];
  const positions = [position];
  for (const action of moves ?? []) positions.push(game.step(positions.at(-1), action));
  return positions;
}

/** Draws these positions, each `size` pixels wide, so that they appear one after the other. */
export function playoutBoards(search, id, size) {
  const { game, nodes } = search;
  const positions = playout(search, id);
  const boards = positions.map((position, i) => {
    const last = i ? { position: positions[i - 1], action: nodes[id].moves[i - 1] } : null;
    return h("li", { style: { "--az-turn": i } }, picture(game, position, { size, last }));
  });
  return h("ol.az-playout", { "aria-label": "the random game" }, boards);
}
