import { f32, uniformAt } from "./random.js";

// An evaluator is `(position, key) -> {logits, value}`: one logit for each action of the game, or
// null where all are alike, and the expected outcome for the player to move.


/** How the evaluators are called in settings, apart from the networks. */
export const EVALUATORS = { uniform: () => uniformEvaluator, rollout: rolloutEvaluator };

/** Takes all actions for alike and every position for even. */
function uniformEvaluator() {
  return { logits: null, value: 0 };
}

/** Takes all actions for alike, and the outcome of one random game for the value. */
function rolloutEvaluator(game) {
  return (position, key) => ({ logits: null, ...rollout(game, position, key) });
}

/** Knows the truth: logits 0 for moves that keep the value, -10 for others. */
export function exactEvaluator(table) {
  return ({ board }) => {
    const row = table.find(board);
    return { logits: table.optimal(row).map((keeps) => (keeps ? 0 : -10)), value: table.truth(row) };
  };
}

/** Plays a random game to its end; returns its `value` for the player to move and its `moves`. */
function rollout(game, start, key) {
  const moves = [];
  let position = start;
  let [value, weight] = [0, 1];
  for (let ply = 0; !game.over(position); ply++) {
    const legal = game.legal(position);
    const action = legal[Math.floor(f32(uniformAt(key, ply) * legal.length))];
    const next = game.step(position, action);
    value += weight * game.reward(next);
    weight *= game.player(next) === game.player(position) ? 1 : -1;
    position = next;
    moves.push(action);
  }
  return { value, moves };
}
