import { fixed, signed } from "./dom.js";
import { playout } from "./playout.js";
import { listWords, moveName, outcomeWords, playerName } from "./words.js";

// The steps of the tour. Each has a search and a moment (`change`, also for the page), a text and a
// question. Its answer is computed from the search, and shown at a later moment (`reveal`).

const CLASSIC = { algorithm: "uct", evaluator: "rollout", seed: 1 };
const MANY = 1000;
const ENDS = { 1: "win", 0: "draw", "-1": "loss" };

const legal = (search) => search.nodes[0].actions;
const mover = (search) => playerName(search.nodes[0].player);
const first = (search, k) => search.simulations[k].actions[0];
const name = (search, action) => moveName(search, 0, action);
const YES = ["yes", "no"];

/**
 * The steps for a position with `count` moves: `{title, change, text, ask, options, answer, explain,
 * why, terms, playout, reveal}`. Options are actions or texts. `explain(search)` explains the answer
 * and `why(search, option)` a wrong choice; `terms` shows the numbers of the moves; `playout` is a
 * node whose random game is shown with the answer.
 */
export function tourSteps(count) {
  const few = Math.max(20, 2 * count + 4);
  const classic = { ...CLASSIC, num_simulations: few };
  const network = { ...classic, evaluator: "network" };
  return [
    {
      title: "A position",
      change: { ...classic, t: 0 },
      text: (search) => `${mover(search)} is to move. ${keepWords(search)} ${search.game.naming} A search has to find a good move from the rules alone.`,
      ask: "Which move would you play?",
      options: legal,
      answer: optimal,
      explain: (search) => `Only ${listWords(optimal(search).map((action) => name(search, action)), "or")} keeps the ${ENDS[truth(search)]}. This game is small enough to be solved exactly, but the search does not use the solution.`,
      why: (search, action) => `After ${name(search, action)}, perfect play ends in a ${ENDS[after(search, action)]} for ${mover(search)}.`,
    },
    {
      title: "Selection",
      change: { ...classic, t: 0 },
      text: (search) => `The classic search, UCT, builds a tree of positions. Its root is the position on the board. Each simulation follows the moves with the highest scores down the tree, to a new position. An untried move has an infinite score, so each of the ${legal(search).length} moves is tried once before any is tried twice.`,
      ask: "Guess: which move is tried first?",
      options: legal,
      answer: (search) => [first(search, 0)],
      explain: (search) => `Here it is ${name(search, first(search, 0))}. All scores are infinite, so the order is random.`,
      reveal: () => ({ t: 1 }),
    },
    {
      title: "Expansion, and a random game",
      change: { ...classic, t: 2 },
      text: () => "The new position becomes a node of the tree. To estimate its value, both players play random moves until the game ends. This is called a rollout.",
      ask: "Guess: who wins this rollout?",
      options: () => ["X wins", "O wins", "draw"],
      answer: (search) => [ended(search)],
      explain: (search) => `The random game ends: ${ended(search)}. One random game says little about a position; the mean of many says more.`,
      playout: 1,
    },
    {
      title: "Backup",
      change: { ...classic, t: 2 },
      text: (search) => `The rollout ended: ${ended(search)}. Every node on the path, up to the root, adds the outcome to its statistics, as the result for the player to move at that node: +1 for a win, \u22121 for a loss, 0 for a draw.`,
      ask: (search) => `What does the root add? ${mover(search)} is to move there.`,
      options: () => ["+1", "0", "\u22121"],
      answer: (search) => [signed(search.simulations[0].backup[0], 0)],
      explain: (search) => `${signed(search.simulations[0].backup[0], 0)} for ${mover(search)}: ${ended(search)}.`,
      why: (search) => `The root counts the outcome for ${mover(search)}.`,
      reveal: () => ({ t: 3 }),
    },
    {
      title: "Which move next?",
      change: { ...classic, t: 3 * count },
      text: () => "Every move has been tried once. From now on, UCT chooses the move with the highest score S = Q + U. Q is the mean outcome of the move. U = C\u221a(ln N / n) is a bonus for moves with few visits: n counts the visits of the move, N those of the position, and C is a constant.",
      ask: "Which move is chosen next?",
      options: legal,
      answer: (search) => [first(search, count)],
      explain: (search) => {
        const { Q, U, S, best } = search.stats(0, count);
        return `The score of ${name(search, first(search, count))} is ${fixed(Q[best])} + ${fixed(U[best])} = ${fixed(S[best])}. No score is higher; in a tie, the move that was tried first is chosen.`;
      },
      why: (search, action) => {
        const { S, best } = search.stats(0, count);
        const mine = S[legal(search).indexOf(action)];
        return mine < S[best] ? `The score of ${name(search, action)} is only ${fixed(mine)}.` : `The score of ${name(search, action)} is the same, but it was tried later.`;
      },
      terms: count,
      reveal: () => ({ t: 3 * count + 1 }),
    },
    {
      title: `After ${few} simulations`,
      change: { ...classic, t: 3 * few - 1 },
      text: () => "At the end, the search plays the move with the most visits. A high mean over few games can be luck. A move has many visits only if its score stayed high.",
      ask: "Does it find the right move?",
      options: () => YES,
      answer: right,
      explain: played,
      reveal: () => ({ t: 3 * few }),
    },
    {
      title: `${MANY.toLocaleString("en")} simulations`,
      change: { ...classic, num_simulations: MANY, t: 0 },
      text: () => "The same rule with more simulations. The tree grows most below the moves that look best.",
      ask: "Does it find the right move now?",
      options: () => YES,
      answer: right,
      explain: played,
      reveal: () => ({ t: 3 * MANY }),
    },
    {
      title: "A value in place of the random game",
      change: { ...network, t: 2 },
      text: () => `AlphaZero replaces the random game by a neural network, which estimates the value of a position: the expected outcome, from \u22121 to +1. This network was trained on games against itself. The search has only ${few} simulations again.`,
      ask: "Does it find the right move?",
      options: () => YES,
      answer: right,
      explain: played,
      reveal: () => ({ t: 3 * few }),
    },
    {
      title: "A policy in place of the random order",
      change: { ...network, algorithm: "puct", t: 0 },
      text: () => "The network also outputs a probability P for each move. AlphaZero\u2019s score, PUCT, uses it in the bonus: Q + c P \u221aN / (1 + n). Unlikely moves get a small bonus, so not every move has to be tried.",
      ask: "How many of the moves does the search try?",
      options: (search) => legal(search).map((_, i) => String(i + 1)),
      answer: (search) => [tried(search)],
      explain: (search) => `It tries ${tried(search)} of ${legal(search).length} moves. ${played(search)}`,
      reveal: () => ({ t: 3 * few }),
    },
    {
      title: "Gumbel AlphaZero",
      change: { ...network, algorithm: "gumbel", t: 0 },
      text: () => "Gumbel AlphaZero is a later search, made for few simulations. It chooses some candidate moves and gives each a few visits; then the better half gets more, and so on. This is sequential halving. The network learns probabilities computed from the values that the search found, not from the visits.",
      ask: "Guess: which move gets the last simulation?",
      options: legal,
      answer: lastTwo,
      explain: (search) => `The last simulations went to ${listWords(lastTwo(search).map((action) => name(search, action)))}. ${played(search)}`,
      reveal: () => ({ t: 3 * few }),
    },
  ];
}

function row({ game, nodes }) {
  return game.table.find(nodes[0].position);
}

function optimal(search) {
  return search.game.table.optimal(row(search));
}

/** The value of the root under perfect play, and that after a move, for the player to move. */
function truth(search) {
  return search.game.table.truth(row(search));
}

function after({ game, nodes }, action) {
  const [{ position }] = nodes;
  const next = game.step(position, action);
  return game.table.truth(game.table.find(next)) * (next.player === position.player ? 1 : -1);
}

function keepWords(search) {
  const count = optimal(search).length;
  const which = count === 1 ? "one" : count;
  const result = truth(search) ? `${mover(search)} wins` : "the game is a draw";
  return `With perfect play by both, ${result}. Only ${which} of ${legal(search).length} moves ${count === 1 ? "keeps" : "keep"} this result.`;
}

function ended(search) {
  return outcomeWords(search.game, playout(search, 1).at(-1));
}

/** The moves of the last two simulations. */
function lastTwo(search) {
  return [...new Set([first(search, search.length - 2), first(search, search.length - 1)])];
}

function tried(search) {
  return String(search.stats(0, search.length).N.filter(Boolean).length);
}

function right(search) {
  return [optimal(search).includes(search.action) ? "yes" : "no"];
}

function played(search) {
  const { N, Q } = search.stats(0, search.length);
  const chosen = legal(search).indexOf(search.action);
  const verdict = optimal(search).includes(search.action) ? `which keeps the ${ENDS[truth(search)]}` : `a blunder: the result becomes a ${ENDS[after(search, search.action)]}`;
  return `It plays ${name(search, search.action)}, with ${N[chosen]} of ${search.length} visits, ${verdict}. It expects the value ${signed(Q[chosen])} for ${mover(search)}.`;
}
