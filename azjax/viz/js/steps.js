import { fixed, signed } from "./dom.js";
import { playout } from "./playout.js";
import { listWords, outcomeWords, playerName } from "./words.js";

// The steps of the tour. Each says what is searched and at which moment (`change`, for the page),
// what there is to see, and asks something; its answer comes with a later moment (`reveal`), and
// all its numbers from the search itself.

const CORNER = "X........"; // One reply alone keeps the draw, and nobody tells the search which.
const CLASSIC = { board: CORNER, algorithm: "uct", evaluator: "rollout", seed: 1 };
const FEW = 20;

const cellsOf = (search) => search.nodes[0].actions.map(String);
const first = (search, k) => String(search.simulations[k].actions[0]);

/** The steps: `{title, change, text, ask, options, answer, said, playout, reveal}`; the answer shows the random game of node number `playout`. */
export const STEPS = [
  {
    title: "A position",
    change: { ...CLASSIC, num_simulations: FEW, t: 0 },
    text: () => "X has taken a corner, and O is to move. One reply alone keeps the draw; all others lose. A search has to find it without being told.",
    ask: "Which reply is it?",
    options: cellsOf,
    answer: (search, table) => table.optimal(table.find(search.nodes[0].board)).flatMap((keeps, cell) => (keeps ? [String(cell)] : [])),
    said: () => "The centre. This game is small enough to know the truth; the search does not.",
  },
  {
    title: "Selection",
    change: { ...CLASSIC, num_simulations: FEW, t: 0 },
    text: (search) => `Classic search (UCT) walks from the root to a new position, many times. What was never tried counts as infinity, so each of the ${search.nodes[0].actions.length} replies comes once before any comes twice; their order is drawn at random.`,
    ask: "With nothing known, which reply comes first?",
    options: cellsOf,
    answer: (search) => [first(search, 0)],
    said: (search) => `Here ${first(search, 0)}: all were infinity, and the seed decides.`,
    reveal: () => ({ t: 1 }),
  },
  {
    title: "Expansion, and a random game",
    change: { ...CLASSIC, num_simulations: FEW, t: 2 },
    text: () => "The position after it becomes a node. How good is it? Both sides play at random until the game ends: a rollout.",
    ask: "Who wins this one?",
    options: () => ["X wins", "O wins", "draw"],
    answer: (search) => [outcomeWords(playout(search, 1).at(-1))],
    said: (search) => `${ended(search)}. One random game says little; a thousand say more.`,
    playout: 1,
  },
  {
    title: "Backup",
    change: { ...CLASSIC, num_simulations: FEW, t: 2 },
    text: () => "The outcome goes back up the path, and is added to what each node has seen. What is good for one player is bad for the other, so its sign turns from level to level.",
    ask: "What is added at the root, for O?",
    options: () => ["+1", "0", "\u22121"],
    answer: (search) => [signed(search.simulations[0].backup[0], 0)],
    said: (search) => `${signed(search.simulations[0].backup[0], 0)}, since ${ended(search)}.`,
    reveal: () => ({ t: 3 }),
  },
  {
    title: "Which reply next?",
    change: { ...CLASSIC, num_simulations: FEW, t: 24 },
    text: () => "Now every reply was tried once. From here UCB1 decides: V + C\u221a(ln N / n), the mean so far and a bonus for what was tried rarely. The table below has the numbers.",
    ask: "Which reply comes next?",
    options: cellsOf,
    answer: (search) => [first(search, 8)],
    said: (search) => {
      const { Q, U, S, best } = search.stats(0, 8);
      return `${first(search, 8)}: ${fixed(Q[best])} + ${fixed(U[best])} = ${fixed(S[best])}, the highest; of equal ones the one tried first.`;
    },
    reveal: () => ({ t: 25 }),
  },
  {
    title: `After ${FEW} simulations`,
    change: { ...CLASSIC, num_simulations: FEW, t: 3 * FEW - 1 },
    text: () => "The search plays the reply with the most visits: a mean over few games can be luck, visits are what the search kept coming back to.",
    ask: "Does it play the right one?",
    options: () => ["yes", "no"],
    answer: right,
    said: played,
    reveal: () => ({ t: 3 * FEW }),
  },
  {
    title: "1,000 simulations",
    change: { ...CLASSIC, num_simulations: 1000, t: 0 },
    text: () => "More simulations, the same rule. The tree grows where it pays.",
    ask: "Does it play the right one now?",
    options: () => ["yes", "no"],
    answer: right,
    said: played,
    reveal: () => ({ t: 3000 }),
  },
  {
    title: "A value in the place of the random game",
    change: { ...CLASSIC, evaluator: "network", num_simulations: FEW, t: 2 },
    text: () => `AlphaZero plays no random games: a network that learned from its own games says what a position is worth. The search is the same, with ${FEW} simulations.`,
    ask: "Does it play the right one?",
    options: () => ["yes", "no"],
    answer: right,
    said: played,
    reveal: () => ({ t: 3 * FEW }),
  },
  {
    title: "A policy in the place of the order",
    change: { ...CLASSIC, evaluator: "network", algorithm: "puct", num_simulations: FEW, t: 0 },
    text: () => "The network also says how likely each move is, P. PUCT adds a bonus in proportion to it, so that not every move has to be tried: Q + c P \u221aN / (1 + n).",
    ask: "How many of the replies does it try at all?",
    options: (search) => search.nodes[0].actions.map((_, i) => String(i + 1)),
    answer: (search) => [String(search.stats(0, FEW).N.filter(Boolean).length)],
    said: (search, table) => `${search.stats(0, FEW).N.filter(Boolean).length} of ${search.nodes[0].actions.length}. ${played(search, table)}`,
    reveal: () => ({ t: 3 * FEW }),
  },
  {
    title: "Gumbel AlphaZero",
    change: { ...CLASSIC, evaluator: "network", algorithm: "gumbel", num_simulations: FEW, t: 0 },
    text: () => "With few simulations visits are too coarse to learn from. Gumbel search shares them out by sequential halving: all candidates a little, the better half more, and so on; what it learns from is the policy improved by the values found.",
    ask: "Which replies get the last simulations?",
    options: cellsOf,
    answer: (search) => lastTwo(search),
    said: (search, table) => `${listWords(lastTwo(search))} came last. ${played(search, table)} Now set anything below: any position, any search.`,
    reveal: () => ({ t: 3 * FEW }),
  },
];

function ended(search) {
  const words = outcomeWords(playout(search, 1).at(-1));
  return words === "draw" ? "it is a draw" : words;
}

/** The replies of the last two simulations. */
function lastTwo(search) {
  return [...new Set([first(search, search.length - 2), first(search, search.length - 1)])];
}

function keeps(search, table) {
  return table.optimal(table.find(search.nodes[0].board))[search.action];
}

function right(search, table) {
  return [keeps(search, table) ? "yes" : "no"];
}

function played(search, table) {
  const { N, Q } = search.stats(0, search.length);
  const { actions, player } = search.nodes[0];
  const chosen = actions.indexOf(search.action);
  const verdict = keeps(search, table) ? "which keeps the draw" : "a blunder that loses";
  return `It plays ${search.action}, with ${N[chosen]} of ${search.length} visits, ${verdict}, and expects ${signed(Q[chosen])} of it for ${playerName(player)}.`;
}
