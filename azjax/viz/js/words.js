import { fixed, signed } from "./dom.js";

const SUBJECTS = {
  network: "The network",
  uniform: "The uniform evaluator",
  rollout: "A random game, played to its end,",
  exact: "The exact solution",
};
const SPELLED = 3; // Moves of a path that are described.

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

/** The indices of the highest numbers, as they are shown: more than one in a tie. */
export function highest(numbers) {
  const least = Math.max(...numbers) - 5e-5;
  return numbers.map((_, i) => i).filter((i) => numbers[i] >= least);
}

/** A moment of a search in a sentence or two, with the numbers. */
export function describe(search, { phase, step, known, t }) {
  if (phase === "start") return `The tree has only the root. ${opinion(search, search.nodes[0])}`;
  if (phase === "selection") return selectionWords(search, step, known);
  if (phase === "expansion") return expansionWords(search, step);
  return backupWords(search, step) + (t === search.last ? endWords(search) : "");
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

function selectionWords(search, step, known) {
  const parts = step.path.slice(0, SPELLED).map((id, i) => {
    const node = search.nodes[id];
    const mover = playerName(node.player);
    const S = search.stats(id, known).S[node.actions.indexOf(step.actions[i])];
    return `${mover} chose ${moveName(search, id, step.actions[i])} (S ${Number.isFinite(S) ? signed(S) : "\u221e"})`;
  });
  const rest = step.path.length > SPELLED ? ", and so on" : "";
  return `${parts.join(", ")}${rest}. This leads to ${step.new ? "a new position" : "a finished game that was reached before"}.`;
}

function expansionWords(search, step) {
  const leaf = search.nodes[step.leaf];
  if (!leaf.over) return `This position is new, and ${playerName(leaf.player)} is to move. ${opinion(search, leaf)}`;
  const mover = playerName(search.nodes[leaf.parent].player);
  return `${sentence(search.game.ending(leaf.position))}: the game is over, with ${signed(leaf.reward, 0)} for ${mover}.`;
}

function opinion(search, node) {
  const { algorithm, settings } = search;
  const value = `${SUBJECTS[settings.evaluator]} gives it the value ${signed(node.value)} for ${playerName(node.player)}`;
  if (algorithm === "uct") return `${value}.`;
  const best = highest(node.priors);
  const isNoisy = algorithm === "puct" && node.parent === null && settings.dirichlet_fraction > 0;
  const names = listWords(best.map((i) => moveName(search, node.id, node.actions[i])));
  const moves = best.length === node.actions.length ? "equal priors" : `the highest prior, ${fixed(node.priors[best[0]])}, to ${names}`;
  return `${value} and ${moves}${isNoisy ? ", after mixing in noise" : ""}.`;
}

function backupWords({ nodes }, { path, backup }) {
  const [gain, { player }] = [backup.at(-1), nodes[path.at(-1)]];
  return `${path.length + 1} nodes are updated: ${signed(gain)} for ${playerName(player)}, ${signed(-gain)} for ${playerName(1 - player)}.`;
}

function endWords(search) {
  const { actions } = search.nodes[0];
  const visits = search.stats(0, search.length).N[actions.indexOf(search.action)];
  return ` All ${search.length} simulations are done: ${moveName(search, 0, search.action)}, with ${visits} visits, is played.`;
}
