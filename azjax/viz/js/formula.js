// The score of a move with its numbers, for PUCT, Gumbel and UCT.

import { sum } from "./algorithms.js";
import { fixed, h, signed } from "./dom.js";
import { moveName, playerName } from "./words.js";

const NAMES = { puct: "PUCT", gumbel: "Gumbel", uct: "UCB1" };

/** The columns of a table of moves: `[name of the number, heading, description]`. */
export function columns({ algorithm, nodes }, id) {
  const gumbel = id === 0 ? ["U", "g + \u2113", "Gumbel noise and logit of the prior"] : ["U", "share", "minus the move\u2019s share of the visits"];
  return [
    ...(algorithm === "uct" ? [] : [["P", "P", "prior probability"]]),
    ["N", "n", "visits of the move"],
    ["Q", "Q", `mean value for ${playerName(nodes[id].player)}`],
    algorithm === "gumbel" ? gumbel : ["U", "U", "bonus for moves with few visits"],
    ["S", "S", "the score; the highest is chosen, at Gumbel\u2019s root among the moves \u201cin turn\u201d"],
  ];
}

/** Writes a number of the table; for untried moves UCT has infinity. */
export function scoreText(x) {
  return Number.isFinite(x) ? fixed(x, 4) : "\u221e";
}

/** The score of move number `i` of a node, in lines and sentences. */
export function formula(search, moment, id, i) {
  const { algorithm, settings } = search;
  const node = search.nodes[id];
  const stats = search.stats(id, moment.known);
  const move = { id, settings, stats, P: node.priors[i], n: stats.N[i], Q: stats.Q[i], U: stats.U[i], S: stats.S[i] };
  const [lines, note] = { puct: puctLines, gumbel: gumbelLines, uct: uctLines }[algorithm](move);
  const title = `${NAMES[algorithm]}: ${moveName(search, id, node.actions[i])} for ${playerName(node.player)}`;
  const row = ([name, symbols, numbers]) => [
    h("dt", name),
    h("dd", h("div.az-symbols", `= ${symbols}`), h("div", { "data-formula": name }, `= ${numbers}`)),
  ];
  const notes = [note, signNote(search, moment, id, node.actions[i])].filter(Boolean);
  return [h("h3", title), h("dl.az-lines", lines.map(row)), notes.map((text) => h("p", text))];
}

function puctLines({ settings, stats, P, n, Q, U, S }) {
  const product = `${settings.c_puct} \u00d7 ${fixed(P, 3)} \u00d7 \u221a${stats.visits} / (1 + ${n})`;
  const urgency = { zero: "an even game", parent: "the value of this position", loss: "a loss" }[settings.first_play_urgency];
  return [
    [
      ["U", "c P \u221aN / (1 + n)", `${product} = ${fixed(U, 3)}`],
      ["S", "Q + U", `${term(Q)} + ${fixed(U, 3)} = ${term(S)}`],
    ],
    n ? null : `Untried: until it has a value, Q is ${term(Q)}, ${urgency}.`,
  ];
}

function uctLines({ id, settings, stats, n, Q, U, S }) {
  if (!n) return [[["S", "\u221e", "\u221e, as n = 0"]], "Every move is tried once, in random order, before any is tried again."];
  const log = stats.visits + (id === 0 ? 0 : 1);
  const symbols = id === 0 ? "C \u221a(ln N / n)" : "C \u221a(ln(N + 1) / n)";
  return [
    [
      ["U", symbols, `${fixed(settings.exploration, 3)} \u00d7 \u221a(ln ${log} / ${n}) = ${fixed(U, 3)}`],
      ["S", "Q + U", `${term(Q)} + ${fixed(U, 3)} = ${term(S)}`],
    ],
  ];
}

function gumbelLines({ id, settings: { maxvisit_init, value_scale }, stats, n, Q, U, S }) {
  const most = Math.max(...stats.N);
  const sigma = ((maxvisit_init + most) * value_scale * Q) / 2;
  const product = `(${maxvisit_init} + ${most}) \u00d7 ${value_scale} / 2 \u00d7 ${term(Q)}`;
  const weighted = ["\u03c3", "(c + max n) s / 2 \u00d7 Q", `${product} = ${term(sigma)}`];
  const untried = n ? "" : "Untried: Q is the mixed value of this position, from the evaluator and the visited moves.";
  if (id === 0) {
    const halving = "Each round visits the remaining moves once, the highest score first; after some rounds, the worse half is out.";
    const added = sigma < 0 ? `\u2212 ${fixed(-sigma, 3)}` : `+ ${fixed(sigma, 3)}`;
    return [[weighted, ["S", "g + \u2113 + \u03c3", `${term(U)} ${added} = ${term(S)}`]], `${halving} ${untried}`];
  }
  const improved = fixed(S - U, 3);
  return [
    [
      weighted,
      ["\u03c0\u2032", "softmax(\u2113 + \u03c3)", improved],
      ["S", "\u03c0\u2032 \u2212 n / (1 + \u03a3n)", `${improved} \u2212 ${n} / (1 + ${sum(stats.N)}) = ${term(S)}`],
    ],
    untried,
  ];
}

/** Explains the sign of Q, a value for the mover, by the value of the position after the move. */
function signNote(search, moment, id, action) {
  const child = search.child(id, action, moment);
  if (child === null || !search.arrival(child, moment.known).N) return null;
  const { over, player } = search.nodes[child];
  if (over) return "The move ends the game.";
  const { value } = search.stats(child, moment.known);
  return `After the move, the value is ${signed(value, 3)} for ${playerName(player)}: one player wins what the other loses.`;
}

function term(x) {
  return signed(x, 3);
}
