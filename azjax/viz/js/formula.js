// The score of a move with its numbers, for PUCT, Gumbel and UCT.

import { fixed, h, signed } from "./dom.js";
import { moveName, outcomeWords, playerName } from "./words.js";

const NAMES = { puct: "PUCT", gumbel: "Gumbel", uct: "UCB1" };

/** The columns of a table of moves: `[name of the number, heading, description]`. */
export function columns(search, id) {
  const { algorithm, settings } = search;
  const mover = playerName(search.nodes[id].player);
  const P = ["P", "P", "prior probability"];
  const N = ["N", "n", "visits of the move"];
  const Q = ["Q", "Q", `mean value for ${mover}`];
  const S = ["S", "S", "the score, Q + U; the highest is chosen"];
  if (algorithm === "uct") return [N, Q, ["U", "U", "bonus for moves with few visits"], S];
  if (algorithm === "puct") return [P, N, Q, ["U", "U", "bonus for likely moves with few visits"], S];
  const U =
    id === 0
      ? ["U", "g + \u2113", `logit of the prior${settings.add_noise ? ", with the noise drawn for this search" : ""}`]
      : ["U", "share", "minus the move's share of the visits"];
  return [P, N, Q, U, ["S", "S", "the score; the highest is chosen, at the root only among the moves \u201cin turn\u201d"]];
}

/** Writes a number of the table; for untried moves UCT has infinity. */
export function scoreText(x, digits = 4) {
  return Number.isFinite(x) ? fixed(x, digits) : "\u221e";
}

/** The score of move number `i` of a node, in lines and sentences. */
export function formula(search, moment, id, i) {
  const { algorithm, settings } = search;
  const node = search.nodes[id];
  const stats = search.stats(id, moment.known);
  const move = {
    ...{ search, moment, id, node, settings, stats, i, action: node.actions[i] },
    ...{ P: node.priors[i], n: stats.N[i], Q: stats.Q[i], U: stats.U[i], S: stats.S[i] },
  };
  const { lines, notes } = { puct: puctLines, gumbel: gumbelLines, uct: uctLines }[algorithm](move);
  const title = `${NAMES[algorithm]}: ${moveName(search, id, move.action)} for ${playerName(node.player)}`;
  const row = ([name, symbols, numbers]) => [
    h("dt", name),
    h("dd", h("div.az-symbols", `= ${symbols}`), h("div", { "data-formula": name }, `= ${numbers}`)),
  ];
  const sentences = [...notes, outcomeNote(move), rootNote(move)].filter(Boolean);
  return [h("h3", title), h("dl.az-lines", lines.map(row)), sentences.map((text) => h("p", text))];
}

function puctLines({ node, settings, stats, P, n, Q, U, S }) {
  const product = `${settings.c_puct} \u00d7 ${fixed(P, 3)} \u00d7 \u221a${stats.visits} / (1 + ${n})`;
  const urgency = {
    zero: "Q = 0, an even game",
    parent: `Q = ${signed(Q)}, the value of this position for ${playerName(node.player)}`,
    loss: `Q = \u22121, a loss for ${playerName(node.player)}`,
  }[settings.first_play_urgency ?? "zero"];
  const untried = `Untried, n = 0: until it has a value, it counts as ${urgency}.`;
  return {
    lines: [
      ["U", "c P \u221aN / (1 + n)", `${product} = ${fixed(U, 3)}`],
      ["S", "Q + U", `${term(Q)} + ${fixed(U, 3)} = ${term(S)}`],
    ],
    notes: n ? [] : [untried],
  };
}

function uctLines({ id, settings, stats, n, Q, U, S }) {
  const log = stats.visits + (id === 0 ? 0 : 1);
  if (!n) {
    return {
      lines: [["S", "\u221e", "\u221e, as n = 0"]],
      notes: [
        "Every move is tried once before any is tried again, so the score of an untried move is infinite. " +
          "Several of them are tried in random order.",
      ],
    };
  }
  const C = fixed(settings.exploration, 3);
  return {
    lines: [
      ["U", id === 0 ? "C \u221a(ln N / n)" : "C \u221a(ln(N + 1) / n)", `${C} \u00d7 \u221a(ln ${log} / ${n}) = ${fixed(U, 3)}`],
      ["S", "Q + U", `${term(Q)} + ${fixed(U, 3)} = ${term(S)}`],
    ],
    notes: [],
  };
}

function gumbelLines({ id, node, settings, stats, n, Q, U, S }) {
  const { maxvisit_init, value_scale } = settings;
  const most = Math.max(...stats.N);
  const sigma = ((maxvisit_init + most) * value_scale * Q) / 2;
  const product = `(${maxvisit_init} + ${most}) \u00d7 ${value_scale} / 2 \u00d7 ${term(Q)}`;
  const weighted = ["\u03c3", "(c + max n) s / 2 \u00d7 Q", `${product} = ${term(sigma)}`];
  const whose = playerName(node.player);
  const notes = n
    ? []
    : [`Untried, n = 0: its Q is the mixed value of this position, from the evaluator and the visited moves: ${term(Q)} for ${whose}.`];
  if (id === 0) {
    notes.unshift(
      "Sequential halving visits each remaining move once in a round. Moves not yet visited in this round are in turn, " +
        "and the one with the highest score is next. Visited moves wait. After some rounds, the worse half of the moves is out.",
    );
    return { lines: [weighted, ["S", "g + \u2113 + \u03c3", `${term(U)} ${added(sigma)} = ${term(S)}`]], notes };
  }
  const total = stats.N.reduce((sum, visits) => sum + visits, 0);
  const improved = fixed(S - U, 3);
  return {
    lines: [
      weighted,
      ["\u03c0\u2032", "softmax(\u2113 + \u03c3)", improved],
      ["S", "\u03c0\u2032 \u2212 n / (1 + \u03a3n)", `${improved} \u2212 ${n} / (1 + ${total}) = ${term(S)}`],
    ],
    notes,
  };
}

/** Explains the sign of Q, which is a value for the mover, by the position after the move. */
function outcomeNote({ search, moment, id, node, action, n, Q }) {
  const child = search.child(id, action, moment);
  if (!n || child === null) return null;
  const after = search.nodes[child];
  const [mover, other] = [playerName(node.player), playerName(after.player)];
  if (after.over) {
    const counts = search.game.winner(after.position) === null ? "0 for both" : `${signed(Q, 0)} for ${mover}`;
    return `The move ends the game (${outcomeWords(search.game, after.position)}), which counts ${counts}.`;
  }
  const { value } = search.stats(child, moment.known);
  const mean = n === 1 ? "a single value" : `the mean of ${n} values`;
  return (
    `Q is ${mean} for ${mover}. After the move ${other} is to move, and the value is ` +
    `${signed(value, 3)} for ${other}: one player wins what the other loses, so the sign changes.`
  );
}

/** Explains the N of the root. */
function rootNote({ search, id, stats }) {
  if (id !== 0 || search.algorithm !== "puct") return null;
  const simulations = stats.visits - 1;
  if (!simulations) {
    return "The root starts with N = 1, its own evaluation: with N = 0 every U would be 0.";
  }
  return `N = ${stats.visits}: ${simulations} ${simulations === 1 ? "simulation" : "simulations"} and the root\u2019s own evaluation.`;
}

function term(x) {
  return signed(x, 3);
}

function added(x) {
  return x < 0 ? `\u2212 ${fixed(-x, 3)}` : `+ ${fixed(x, 3)}`;
}
