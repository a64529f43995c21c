import { fixed, signed } from "./dom.js";

/** How the evaluators are called in lists. */
export const EVALUATOR_NAMES = {
  network: "network",
  uniform: "uniform",
  rollout: "random rollout",
  exact: "exact",
};

const SUBJECTS = {
  network: "The network",
  uniform: "The uniform evaluator",
  rollout: "A random game played to its end",
  exact: "The exact solution",
};
const SPELLED = 3; // Moves of a path told with their numbers; the rest are only named.

/** "X" for player 0, "O" for player 1. */
export function playerName(player) {
  return player === 0 ? "X" : "O";
}

/** What is going on at a moment of a recorded search, in a sentence or two with the numbers. */
export function describe(search, moment) {
  if (moment.phase === "start") return startWords(search);
  if (moment.phase === "selection") return selectionWords(search, moment);
  if (moment.phase === "expansion") return expansionWords(search, moment.step);
  const words = backupWords(search, moment.step);
  return moment.t === search.last ? `${words} ${endWords(search)}` : words;
}

/** How a finished game ended: "X wins", "O wins" or "draw". */
export function outcomeWords(node) {
  if (!node.line) return "draw";
  return `${node.board[node.line[0]] === 1 ? "X" : "O"} wins`;
}

/** What a node is, for those who hear the tree. */
export function nodeWords(search, id, known) {
  const node = search.nodes[id];
  const turn = node.over ? outcomeWords(node) : `${playerName(node.player)} to move`;
  if (node.parent === null) {
    const { visits, value } = search.stats(id, known);
    return `root, ${turn}, N ${visits}, value ${signed(value)} for ${playerName(node.player)}`;
  }
  const { N, Q, P } = search.arrival(id, known);
  const mover = playerName(search.nodes[node.parent].player);
  const worth = N ? `Q ${signed(Q)} for ${mover}` : "not counted yet";
  return `${mover} at ${node.action}, ${turn}, N ${N}, ${worth}, P ${fixed(P)}`;
}

/** "a, b and c". */
export function listWords(items) {
  if (items.length < 2) return items.join("");
  return `${items.slice(0, -1).join(", ")} and ${items[items.length - 1]}`;
}

function startWords(search) {
  const root = search.nodes[0];
  return (
    `Before the first simulation only the root is known. ${opinion(search, root)} ` +
    `Each simulation now walks down from here.`
  );
}

function selectionWords(search, { step, known }) {
  const told = step.path.slice(0, SPELLED).map((id, i) => {
    const stats = search.stats(id, known);
    const index = search.nodes[id].actions.indexOf(step.actions[i]);
    const sum = `Q ${signed(stats.Q[index])} + U ${fixed(stats.U[index])} = ${fixed(stats.S[index])}`;
    const reason = i === 0 ? `${sum}, the highest` : sum;
    return `${playerName(search.nodes[id].player)} took ${step.actions[i]} (${reason})`;
  });
  const rest = step.actions.slice(SPELLED);
  if (rest.length) told.push(`then ${listWords(rest)} followed`);
  const end = step.new ? "a move not tried before" : "a finished game met before";
  return `${told.join(", ")}, and so reached ${end}.`;
}

function expansionWords(search, step) {
  const leaf = search.nodes[step.leaf];
  const maker = playerName(search.nodes[leaf.parent].player);
  if (!leaf.over) {
    return `${playerName(leaf.player)} is to move in the new position. ${opinion(search, leaf)}`;
  }
  const again = step.new ? "" : " once more";
  if (!leaf.line) {
    return `The board is full${again}: the game is over, nothing to evaluate; a draw counts 0 for both.`;
  }
  return (
    `${maker} has three in a row${again}: the game is over, nothing to evaluate; ` +
    `the move earns ${maker} ${signed(leaf.reward, 0)}.`
  );
}

function opinion(search, node) {
  const { evaluator, noise } = search.recording;
  const mover = playerName(node.player);
  const value = `${SUBJECTS[evaluator] ?? evaluator} values it at ${signed(node.value)} for ${mover}`;
  const highest = Math.max(...node.priors);
  const even = highest - Math.min(...node.priors) < 5e-4;
  const only = node.actions.length === 1;
  const taste = only
    ? `${node.actions[0]} is the only move`
    : even
      ? `gives every move the same P ${fixed(highest)}`
      : `likes ${node.actions[node.priors.indexOf(highest)]} best (P ${fixed(highest)})`;
  const mixed = node.parent === null && noise > 0 ? `, with noise mixed in (${fixed(noise)})` : "";
  return `${value}${only ? "; " : " and "}${taste}${mixed}.`;
}

function backupWords(search, step) {
  const leaf = search.nodes[step.leaf];
  const count = `${step.path.length + 1} nodes updated.`;
  const upwards = step.path.map((id, i) => ({ player: search.nodes[id].player, gain: step.backup[i] }));
  upwards.reverse();
  if (leaf.over && !leaf.line) return `A draw counts 0 for both, all the way up to the root; ${count}`;
  const told = upwards.slice(0, SPELLED).map(({ player, gain }, i) => {
    const where = i === 0 ? "one move up" : i === 1 ? "above that" : "above that again";
    return `${signed(gain)} for ${playerName(player)} ${where}`;
  });
  const rest = upwards.length > SPELLED ? ", and so on in turn up to the root" : "";
  const from = leaf.over
    ? `The win for ${playerName(upwards[0].player)}`
    : `The value ${signed(step.value)} for ${playerName(leaf.player)}`;
  return `${from} counts as ${told.join(", ")}${rest}; ${count}`;
}

function endWords(search) {
  const { action } = search.recording;
  const root = search.nodes[0];
  const { N } = search.stats(0, search.length);
  const visits = N[root.actions.indexOf(action)];
  return (
    `All ${search.length} simulations are done: move ${action} has the most visits ` +
    `(${visits} of ${search.length}).`
  );
}
