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

/** The algorithm of a search, its settings, its evaluator, and the action that it played. */
export function aboutSearch(search) {
  const { algorithm, settings, action } = search;
  return { algorithm, settings, evaluator: settings.evaluator, action };
}

/** The rows and columns of a search's boards. */
export function boardShape({ game }) {
  return game ? [game.rows, game.columns] : [3, 3];
}

/** The cell where the stone of an action at a node goes. */
export function stoneCell({ game, nodes }, id, action) {
  return game && id !== null ? game.cell(nodes[id].board, action) : action;
}

/** The move that a search played, once it is over; null before. */
export function playedMove(search, moment) {
  return moment.t === search.last ? aboutSearch(search).action : null;
}

/** The indices of the highest numbers: more than one in a tie. */
export function highest(numbers) {
  const most = Math.max(...numbers);
  return numbers.map((_, i) => i).filter((i) => numbers[i] === most);
}

/** What is going on at a moment of a search, in a sentence or two with the numbers. */
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
  const prior = aboutSearch(search).algorithm === "uct" ? "" : `, P ${fixed(P)}`;
  return `${mover} at ${node.action}, ${turn}, N ${N}, ${worth}${prior}`;
}

/** "a, b and c". */
export function listWords(items) {
  if (items.length < 2) return items.join("");
  return `${items.slice(0, -1).join(", ")} and ${items[items.length - 1]}`;
}

function startWords(search) {
  const root = search.nodes[0];
  return (
    `Before the first simulation only the root is known, and its moves are untried. ` +
    `${opinion(search, root)} Each simulation now walks down from here.`
  );
}

function selectionWords(search, { step, known }) {
  const told = step.path.slice(0, SPELLED).map((id, i) => {
    const node = search.nodes[id];
    const mover = playerName(node.player);
    const stats = search.stats(id, known);
    const index = node.actions.indexOf(step.actions[i]);
    const rank = i ? "" : `, ${rankWords(highest(stats.S), index)}`;
    return `${mover} took ${step.actions[i]} (${scoreWords(search, stats, index, mover)}${rank})`;
  });
  const rest = step.actions.slice(SPELLED);
  if (rest.length) told.push(`then ${listWords(rest)} followed`);
  const end = step.new ? "a move not tried before" : "a finished game met before";
  return `${told.join(", ")}, and so reached ${end}.`;
}

/** Whether a score is the highest; Gumbel's root has a turn for some moves only. */
function rankWords(top, index) {
  if (!top.includes(index)) return "the highest of those in turn";
  if (top.length === 1) return "the highest";
  return `in a tie with ${top.length - 1} ${top.length === 2 ? "other" : "others"}`;
}

function scoreWords(search, { N, Q, U, S }, i, mover) {
  const { algorithm } = aboutSearch(search);
  if (algorithm === "gumbel") return `score ${signed(S[i])}, Q ${signed(Q[i])} for ${mover}`;
  if (algorithm === "uct" && !N[i]) return "untried: \u221e";
  return `Q ${signed(Q[i])} for ${mover} + U ${fixed(U[i])} = ${signed(S[i])}`;
}

function expansionWords(search, step) {
  const leaf = search.nodes[step.leaf];
  const maker = playerName(search.nodes[leaf.parent].player);
  if (!leaf.over) {
    const mover = playerName(leaf.player);
    return `${mover} is to move in the new position, where all is untried. ${opinion(search, leaf)}`;
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
  const { algorithm, settings, evaluator } = aboutSearch(search);
  const mover = playerName(node.player);
  const value = `${SUBJECTS[evaluator] ?? evaluator} values it at ${signed(node.value)} for ${mover}`;
  if (algorithm === "uct") return `${value}.`;
  const best = highest(node.priors);
  const P = `P ${fixed(node.priors[best[0]])}`;
  const liked = listWords(best.map((i) => node.actions[i]));
  const isNoisy = algorithm === "puct" && node.parent === null && settings.add_noise;
  const mixed = isNoisy ? `, with noise mixed in (${fixed(settings.dirichlet_fraction)})` : "";
  if (node.actions.length === 1) return `${value}; ${liked} is the only move.`;
  if (best.length === node.actions.length) return `${value} and gives every move the same ${P}${mixed}.`;
  return `${value} and likes ${liked} best (${P}${best.length > 1 ? " each" : ""})${mixed}.`;
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
  const { action, algorithm } = aboutSearch(search);
  const { actions } = search.nodes[0];
  const { N, S } = search.stats(0, search.length);
  const most = highest(N);
  const visits = `${N[most[0]]} of ${search.length}`;
  const chosen = actions.indexOf(action);
  const done = `All ${search.length} simulations are done`;
  const next = highest(S);
  const other =
    next.includes(chosen) || next.length > 1 || algorithm === "gumbel"
      ? ""
      : ` The highest score is not its own: a further simulation would go to ${actions[next[0]]}.`;
  if (!most.includes(chosen)) {
    const rest = `${listWords(most.map((i) => actions[i]))} has ${visits}`;
    return `${done}: move ${action} is played, with ${N[chosen]} visits; ${rest}.${other}`;
  }
  if (most.length === 1) return `${done}: move ${action} has the most visits (${visits}) and is played.${other}`;
  const tied = listWords(most.map((i) => actions[i]));
  return `${done}: moves ${tied} tie with ${visits} visits each, and ${action} is played.${other}`;
}
