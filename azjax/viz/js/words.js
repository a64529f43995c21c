import { fixed, signed } from "./dom.js";

/** The names of the evaluators in lists. */
export const EVALUATOR_NAMES = { network: "network", uniform: "uniform", rollout: "random rollout", exact: "exact" };

const SUBJECTS = {
  network: "The network",
  uniform: "The uniform evaluator",
  rollout: "A random game, played to its end,",
  exact: "The exact solution",
};
const SPELLED = 3; // Moves of a path that are described with their numbers; the rest are named.

/** "X" for player 0, "O" for player 1. */
export function playerName(player) {
  return player === 0 ? "X" : "O";
}

/** The name of a move at a node: "b2", "column 4". */
export function moveName({ game, nodes }, id, action) {
  return game.moveName(nodes[id].position, action);
}

/** The name of a move at a node, where there is little room. */
export function moveLabel({ game, nodes }, id, action) {
  return game.moveLabel(nodes[id].position, action);
}

/** The move that a search played, once it is over; null before. */
export function playedMove(search, moment) {
  return moment.t === search.last ? search.action : null;
}

/** The indices of the highest numbers: more than one in a tie. */
export function highest(numbers) {
  const most = Math.max(...numbers);
  return numbers.map((_, i) => i).filter((i) => numbers[i] === most);
}

/** A moment of a search in a sentence or two, with the numbers. */
export function describe(search, moment) {
  if (moment.phase === "start") return startWords(search);
  if (moment.phase === "selection") return selectionWords(search, moment);
  if (moment.phase === "expansion") return expansionWords(search, moment.step);
  const words = backupWords(search, moment.step);
  return moment.t === search.last ? `${words} ${endWords(search)}` : words;
}

/** How a finished game ended: "X wins", "O wins" or "draw". */
export function outcomeWords(game, position) {
  const winner = game.winner(position);
  return winner === null ? "draw" : `${playerName(winner)} wins`;
}

/** A node in words, for screen readers. */
export function nodeWords(search, id, known) {
  const node = search.nodes[id];
  const turn = node.over ? outcomeWords(search.game, node.position) : `${playerName(node.player)} to move`;
  if (node.parent === null) {
    const { visits, value } = search.stats(id, known);
    return `root, ${turn}, N ${visits}, value ${signed(value)} for ${playerName(node.player)}`;
  }
  const { N, Q, P } = search.arrival(id, known);
  const mover = playerName(search.nodes[node.parent].player);
  const value = N ? `Q ${signed(Q)} for ${mover}` : "not counted yet";
  const prior = search.algorithm === "uct" ? "" : `, P ${fixed(P)}`;
  return `${mover}: ${moveName(search, node.parent, node.action)}, ${turn}, N ${N}, ${value}${prior}`;
}

/** "a, b and c". */
export function listWords(items) {
  if (items.length < 2) return items.join("");
  return `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;
}

/** A sentence with a capital letter. */
export function sentence(text) {
  return text[0].toUpperCase() + text.slice(1);
}

function startWords(search) {
  const root = search.nodes[0];
  return (
    "The tree contains only the root, and none of its moves has been tried. " +
    `${opinion(search, root)} Each simulation adds at most one position to the tree.`
  );
}

function selectionWords(search, { step, known }) {
  const parts = step.path.slice(0, SPELLED).map((id, i) => {
    const node = search.nodes[id];
    const mover = playerName(node.player);
    const stats = search.stats(id, known);
    const index = node.actions.indexOf(step.actions[i]);
    const rank = i ? "" : `, ${rankWords(highest(stats.S), index)}`;
    const name = moveName(search, id, step.actions[i]);
    return `${mover} chose ${name} (${scoreWords(search, stats, index, mover)}${rank})`;
  });
  const rest = step.actions.slice(SPELLED).map((action, i) => moveLabel(search, step.path[SPELLED + i], action));
  if (rest.length) parts.push(`then ${listWords(rest)} followed`);
  const end = step.new ? "a move that was not tried before" : "a finished game that was reached before";
  return `${parts.join(", ")}. This leads to ${end}.`;
}

/** Whether a score is the highest; at Gumbel's root only some moves are in turn. */
function rankWords(top, index) {
  if (!top.includes(index)) return "the highest of the moves not visited in this round";
  if (top.length === 1) return "the highest";
  return `in a tie with ${top.length - 1} ${top.length === 2 ? "other" : "others"}`;
}

function scoreWords(search, { N, Q, U, S }, i, mover) {
  const { algorithm } = search;
  if (algorithm === "gumbel") return `score ${signed(S[i])}, Q ${signed(Q[i])} for ${mover}`;
  if (algorithm === "uct" && !N[i]) return "untried: \u221e";
  return `Q ${signed(Q[i])} for ${mover} + U ${fixed(U[i])} = ${signed(S[i])}`;
}

function expansionWords(search, step) {
  const { game, nodes } = search;
  const leaf = nodes[step.leaf];
  if (!leaf.over) {
    return `This position is new, and ${playerName(leaf.player)} is to move. ${opinion(search, leaf)}`;
  }
  const maker = playerName(nodes[leaf.parent].player);
  const ending = `${sentence(game.ending(leaf.position))}${step.new ? "" : ", as before"}`;
  const counts = game.winner(leaf.position) === null ? "a draw counts 0 for both" : `the last move earns ${maker} ${signed(leaf.reward, 0)}`;
  return `${ending}: the game is over, so there is nothing to evaluate; ${counts}.`;
}

function opinion(search, node) {
  const { algorithm, settings } = search;
  const mover = playerName(node.player);
  const value = `${SUBJECTS[settings.evaluator]} gives it the value ${signed(node.value)} for ${mover}`;
  if (algorithm === "uct") return `${value}.`;
  const best = highest(node.priors);
  const P = `P ${fixed(node.priors[best[0]])}`;
  const names = best.map((i) => moveName(search, node.id, node.actions[i]));
  const isNoisy = algorithm === "puct" && node.parent === null && settings.add_noise;
  const mixed = isNoisy ? `, after mixing in noise (${fixed(settings.dirichlet_fraction)})` : "";
  if (node.actions.length === 1) return `${value}; ${names[0]} is the only move.`;
  if (best.length === node.actions.length) return `${value} and gives every move the same ${P}${mixed}.`;
  const most = best.length > 1 ? `${listWords(names)} the highest priors (${P} each)` : `${names[0]} the highest prior (${P})`;
  return `${value} and gives ${most}${mixed}.`;
}

function backupWords(search, step) {
  const { game, nodes } = search;
  const leaf = nodes[step.leaf];
  const count = `${step.path.length + 1} nodes are updated.`;
  const upwards = step.path.map((id, i) => ({ player: nodes[id].player, gain: step.backup[i] })).reverse();
  const winner = leaf.over ? game.winner(leaf.position) : null;
  if (leaf.over && winner === null) return `A draw counts 0 for both players, up to the root; ${count}`;
  const parts = upwards.slice(0, SPELLED).map(({ player, gain }, i) => {
    const where = i === 0 ? "one move up" : i === 1 ? "two moves up" : "three moves up";
    return `${signed(gain)} for ${playerName(player)} ${where}`;
  });
  const rest = upwards.length > SPELLED ? ", and so on up to the root" : "";
  const from = leaf.over ? `The win for ${playerName(winner)}` : `The value ${signed(step.value)} for ${playerName(leaf.player)}`;
  return `${from} counts as ${parts.join(", ")}${rest}; ${count}`;
}

function endWords(search) {
  const { action, algorithm } = search;
  const { actions } = search.nodes[0];
  const { N, S } = search.stats(0, search.length);
  const most = highest(N);
  const visits = `${N[most[0]]} of ${search.length}`;
  const chosen = actions.indexOf(action);
  const next = highest(S);
  const name = (i) => moveName(search, 0, actions[i]);
  const other =
    next.includes(chosen) || next.length > 1 || algorithm === "gumbel"
      ? ""
      : ` Its score is not the highest: one more simulation would choose ${name(next[0])}.`;
  const tied = listWords(most.map(name));
  const result = !most.includes(chosen)
    ? `${name(chosen)} is played, with ${N[chosen]} visits; ${tied} ${most.length > 1 ? "have" : "has"} ${visits}.`
    : most.length === 1
      ? `${tied} has the most visits (${visits}) and is played.`
      : `${tied} tie with ${visits} visits each, and ${name(chosen)} is played.`;
  return `All ${search.length} simulations are done: ${result}${other}`;
}
