// The random game that a rollout played from a position, move by move.

import { board } from "./board.js";
import { h } from "./dom.js";

/** The positions of the random game of a node, the node's own first. */
export function playout({ game, nodes }, id) {
  const { position, moves } = nodes[id];
  const positions = [position];
  for (const action of moves ?? []) positions.push(game.step(positions.at(-1), action));
  return positions;
}

/** These positions as boards, each `size` pixels wide, that appear one after the other. */
export function playoutBoards(search, id, size) {
  const { game, nodes } = search;
  const shape = [game.rows, game.columns];
  const positions = playout(search, id);
  const boards = positions.map(({ board: cells, line }, i) => {
    const last = i ? game.cell(positions[i - 1].board, nodes[id].moves[i - 1]) : null;
    return h("li", { style: { "--az-turn": i } }, board(cells, { size, shape, last, line }));
  });
  return h("ol", { class: "az-playout", "aria-label": "the random game" }, boards);
}
