// An evaluator is `(position, random) -> {logits, value}`: one logit for each action of the game, or
// null for equal ones, and the expected outcome for the player to move.

/** The evaluators other than networks, by their names in settings. */
export const EVALUATORS = { uniform: () => uniformEvaluator, rollout: rolloutEvaluator };

/** Returns equal logits and value 0. */
function uniformEvaluator() {
  return { logits: null, value: 0 };
}

/** Returns equal logits, and the outcome of one random game as the value. */
function rolloutEvaluator(game) {
  return (position, random) => ({ logits: null, ...rollout(game, position, random) });
}

/** Returns the value under perfect play; the logits are 0 for moves that keep it, -10 for others. */
export function exactEvaluator({ table, numActions }) {
  return (position) => {
    const row = table.find(position);
    const optimal = table.optimal(row);
    const logits = Array.from({ length: numActions }, (_, action) => (optimal.includes(action) ? 0 : -10));
    return { logits, value: table.truth(row) };
  };
}

/** Plays a random game to its end; returns its `value` for the player to move and its `moves`. */
function rollout(game, start, random) {
  const moves = [];
  let position = start;
  let [value, weight] = [0, 1];
  while (!game.over(position)) {
    const legal = game.legal(position);
    const action = legal[Math.floor(random() * legal.length)];
    const next = game.step(position, action);
    value += weight * game.reward(next);
    weight *= game.player(next) === game.player(position) ? 1 : -1;
    position = next;
    moves.push(action);
  }
  return { value, moves };
}
