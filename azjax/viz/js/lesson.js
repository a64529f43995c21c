import { fixed, h, percent, signed } from "./dom.js";

const LESSON_WORDS = {
  position: lessonPosition,
  search: lessonSearch,
  pi: lessonPi,
  move: lessonMove,
  z: lessonOutcome,
  loss: lessonLoss,
  step: lessonStep,
  after: lessonAfter,
};
const LESSON_SEARCHES = { gumbel: "Gumbel\u2019s search", puct: "PUCT", uct: "UCT" };

/** A step of the loop in a sentence or two, with the numbers. */
export function loopSentence(view) {
  return LESSON_WORDS[view.step](view, view.move, view.data.settings);
}

/** The loss of one position with its numbers, or the parts of an optimizer step. */
export function loopTerms(view) {
  if (view.step === "loss") return lessonLossTable(view, view.move.frames[0]);
  return view.step === "step" ? lessonStepTable(view) : null;
}

function lessonPosition(view, move, { learner }) {
  const who = view.mover(move.player);
  const { iteration } = view.lesson;
  const network = iteration ? `The network after iteration ${iteration}` : "The untrained network";
  const average = iteration && learner.ema_decay ? ", with a running average of its parameters \u03b8," : "";
  return (
    `${who} is to move. ${network}${average} outputs a probability p for every move ` +
    `and the value ${signed(move.value)} for ${who}.`
  );
}

function lessonSearch(view, move, { search }) {
  const name = LESSON_SEARCHES[search.algorithm] ?? search.algorithm;
  const noise =
    search.dirichlet_fraction > 0
      ? ` ${percent(search.dirichlet_fraction)} of the root\u2019s p is noise.`
      : search.gumbel_scale > 0
        ? " Noise helps to choose the moves to visit."
        : "";
  return (
    `${name} runs ${search.num_simulations} simulations from here; N counts those that ` +
    `began with each move.${noise} The value of the position after the search is ${signed(move.found)} for ` +
    `${view.mover(move.player)}; before it, the network\u2019s value was ${signed(move.value)}.`
  );
}

function lessonPi(view, move, { search }) {
  const how =
    search.algorithm === "gumbel"
      ? "\u03c0 is p, shifted towards moves of higher value in the search: softmax(log p + \u03c3(Q)), where \u03c3(Q) is Q times a weight."
      : `\u03c0 is each move\u2019s share of the visits: N / ${move.visits.reduce((sum, n) => sum + n, 0)}.`;
  return `${how} The network learns to output \u03c0 in this position.`;
}

function lessonMove(view, move, { search, selfplay }) {
  const { action, actions, pi, player } = move;
  const who = view.mover(player);
  const share = `\u03c0 ${percent(pi[actions.indexOf(action)])}`;
  if (search.algorithm === "gumbel") {
    const noise = search.gumbel_scale > 0 ? "noise + " : "";
    return `${who} plays ${view.moveName(action)} (${share}). Of the moves with the most visits, it has the highest ${noise}log p + \u03c3(Q).`;
  }
  if (view.at < selfplay.temperature_plies && selfplay.temperature > 0) {
    return `${who} plays ${view.moveName(action)} (${share}), drawn at random in proportion to N^(1/${selfplay.temperature}).`;
  }
  return `${who} plays ${view.moveName(action)} (${share}), the move with the most visits. Only the first ${selfplay.temperature_plies} moves are random.`;
}

function lessonOutcome(view, move, { targets }) {
  const { moves } = view.lesson;
  const who = view.mover(move.player);
  const winner = view.mover(move.z > 0 ? move.player : 1 - move.player);
  const end = move.z ? `${winner} wins` : "a draw";
  const mixed = move.target !== move.z;
  const words = `The search value is mixed in (outcome_weight ${targets.outcome_weight}, td_lambda ${targets.td_lambda})`;
  return (
    `The game ends after ${moves.length} moves: ${end}. For ${who}, who moved here, z = ${signed(move.z, 0)}.` +
    (mixed ? ` ${words}: the target is ${signed(move.target)}.` : "")
  );
}

function lessonLoss(view, move, { learner }) {
  const theta =
    view.lesson.iteration && learner.ema_decay
      ? "Here p and v are computed from the parameters \u03b8 themselves, not from their average."
      : "Here p and v are computed from the parameters \u03b8.";
  return `${theta} The loss is large if p differs much from \u03c0, or v from z.`;
}

function lessonStep(view, move, { learner }) {
  const { rate, loss, moves } = view.lesson;
  if (rate === 0) {
    return (
      `Step 1 of the run has a learning rate of 0, which rises over ${learner.warmup_steps} ` +
      "steps, so nothing changes yet."
    );
  }
  return (
    `One step of the run\u2019s optimizer (${learner.optimizer}), on all ${moves.length} positions of this ` +
    `game, changes their mean loss from ${fixed(loss[0], 3)} to ${fixed(loss[1], 3)}.`
  );
}

function lessonAfter(view, move, { learner }) {
  const { counts, loss } = view.lesson;
  const decided = learner.ema_decay ? "The average of \u03b8" : "\u03b8";
  return (
    `After ${counts[view.count]} steps on this game alone its mean loss is ${fixed(loss[view.count], 3)}. ` +
    `In the run, each of the ${learner.steps} steps of an iteration drew ${learner.batch_size} positions from the ` +
    `buffer, which holds many games. ${decided} plays the games of the next iteration.`
  );
}

/** A formula, the same with numbers, and the result. */
function lessonTerm(name, formula, numbers, result) {
  return h(
    "tr",
    { "data-term": name },
    h("th", { scope: "row" }, formula),
    h("td.az-loop-numbers", numbers),
    h("td", result),
  );
}

function lessonTable(caption, rows) {
  const table = h("table.az-loop-terms", h("caption", caption), h("tbody", rows));
  return h("div.az-scroll", { tabindex: 0, role: "group", "aria-label": caption }, table);
}

function lessonLossTable(view, frame) {
  const { learner } = view.data.settings;
  const { pi, target } = view.move;
  const products = pi.map((share, i) => `${fixed(share, 3)}\u00a0log\u00a0${fixed(frame.p[i], 3)}`);
  const value = frame.v < 0 ? `(${fixed(frame.v, 3)})` : fixed(frame.v, 3);
  const c = learner.l2;
  const norm = c ? `${c} \u00b7 ${fixed(frame.l2 / c, 1)}` : "c is 0 in this run";
  const weight = learner.value_weight === 1 ? "" : `${learner.value_weight} \u00b7 `;
  const sum = `${fixed(frame.policy_loss, 3)} + ${weight}${fixed(frame.value_loss, 3)} + ${fixed(frame.l2, 3)}`;
  const least = frame.policy_loss - frame.policy_kl;
  return [
    lessonTable("The loss of this position", [
      lessonTerm("policy", "\u2212\u03a3 \u03c0 log p", `\u2212(${products.join(" + ")})`, fixed(frame.policy_loss, 3)),
      lessonTerm("value", "(z \u2212 v)\u00b2", `(${fixed(target)} \u2212 ${value})\u00b2`, fixed(frame.value_loss, 3)),
      lessonTerm("l2", "c \u2016\u03b8\u2016\u00b2", norm, fixed(frame.l2, 3)),
      lessonTerm("total", "sum", sum, fixed(frame.loss, 3)),
    ]),
    h(
      "p.az-hint",
      `The policy loss is at least the entropy of \u03c0, ${fixed(least, 3)}; the rest, ` +
        `${fixed(frame.policy_kl, 3)}, is the KL divergence of p from \u03c0.`,
    ),
  ];
}

function lessonStepTable(view) {
  const { rate, grad_norm: norms, loss, made } = view.lesson;
  const { learner } = view.data.settings;
  const [before, after] = view.move.frames;
  const clip = learner.clip_norm;
  const clipped = clip && norms[0] > clip;
  const cut = !clip ? "not clipped" : clipped ? `clipped to ${clip}: multiplied by ${fixed(clip / norms[0], 3)}` : `below ${clip}, so not clipped`;
  const change = (from, to) => `${fixed(from, 3)} \u2192 ${fixed(to, 3)}`;
  return lessonTable(`Step ${(made + 1).toLocaleString("en")} of this learner`, [
    lessonTerm("gradient", "\u2016gradient\u2016", cut, fixed(norms[0], 3)),
    lessonTerm("rate", "learning rate", "from the run\u2019s schedule", rate.toPrecision(3)),
    lessonTerm("mean", "mean loss", "of all positions of the game", change(loss[0], loss[1])),
    lessonTerm("here", "loss", "of this position", change(before.loss, after.loss)),
    lessonTerm("value", "v", `of this position; z is ${signed(view.move.target)}`, change(before.v, after.v)),
  ]);
}
