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

/** What goes on at a step of the loop, in a sentence or two with the numbers. */
export function loopSentence(view) {
  return LESSON_WORDS[view.step](view, view.move, view.data.settings);
}

/** The loss with the numbers of one position put in, or what a step of the optimiser is made of. */
export function loopTerms(view) {
  if (view.step === "loss") return lessonLossTable(view, view.move.frames[0]);
  return view.step === "step" ? lessonStepTable(view) : null;
}

function lessonPosition(view, move, { learner }) {
  const who = view.mover(move.player);
  const { iteration } = view.lesson;
  const network = iteration ? `The network after iteration ${iteration}` : "The network, before it learns anything,";
  const average = iteration && learner.ema_decay ? ", the running average of all \u03b8 so far," : "";
  return (
    `${who} is to move. ${network}${average} gives every move a probability p, ` +
    `and the position the value ${signed(move.value)} for ${who}.`
  );
}

function lessonSearch(view, move, { search }) {
  const name = LESSON_SEARCHES[search.algorithm] ?? search.algorithm;
  const noise =
    search.dirichlet_fraction > 0
      ? ` ${percent(search.dirichlet_fraction)} of the root\u2019s p is noise.`
      : search.gumbel_scale > 0
        ? " Noise helps to choose what it looks at."
        : "";
  return (
    `${name} makes ${search.num_simulations} simulations from here; N tells how many began with ` +
    `each move.${noise} It finds the position worth ${signed(move.found)} for ` +
    `${view.mover(move.player)}; the network alone said ${signed(move.value)}.`
  );
}

function lessonPi(view, move, { search }) {
  const how =
    search.algorithm === "gumbel"
      ? "\u03c0 is p, raised where the search found more value than elsewhere: softmax(log p + \u03c3(Q))."
      : `\u03c0 is the share of each move in the visits: N / ${move.visits.reduce((sum, n) => sum + n, 0)}.`;
  return `${how} This is what the network is to say of this position next time.`;
}

function lessonMove(view, move, { search, selfplay }) {
  const { action, actions, pi, player } = move;
  const who = view.mover(player);
  const share = `\u03c0 ${percent(pi[actions.indexOf(action)])}`;
  if (search.algorithm === "gumbel") {
    const noise = search.gumbel_scale > 0 ? "noise + " : "";
    return `${who} plays ${action} (${share}), of the moves with most visits the one where ${noise}log p + \u03c3(Q) is highest.`;
  }
  if (view.at < selfplay.temperature_plies && selfplay.temperature > 0) {
    return `${who} plays ${action} (${share}), drawn at random in proportion to N^(1/${selfplay.temperature}).`;
  }
  return `${who} plays ${action} (${share}), the move with most visits: chance chooses in the first ${selfplay.temperature_plies} moves only.`;
}

function lessonOutcome(view, move, { targets }) {
  const { moves } = view.lesson;
  const who = view.mover(move.player);
  const winner = view.mover(move.z > 0 ? move.player : 1 - move.player);
  const end = move.z ? `${winner} wins` : "a draw";
  const mixed = move.target !== move.z;
  const words = `Value and outcome are mixed (outcome_weight ${targets.outcome_weight}, td_lambda ${targets.td_lambda})`;
  return (
    `The game ends after ${moves.length} moves: ${end}. For ${who}, who moved here, z = ${signed(move.z, 0)}.` +
    (mixed ? ` ${words}: the target is ${signed(move.target)}.` : "")
  );
}

function lessonLoss(view, move, { learner }) {
  const theta =
    view.lesson.iteration && learner.ema_decay
      ? "The parameters \u03b8 themselves, not their average, are asked for p and v: they learn."
      : "The parameters \u03b8 are asked for p and v.";
  return `${theta} The loss is large where \u03c0 and z surprise them.`;
}

function lessonStep(view, move, { learner }) {
  const { rate, loss, moves } = view.lesson;
  if (rate === 0) {
    return (
      `Step 1 of the run has a learning rate of 0, which rises over ${learner.warmup_steps} ` +
      "steps: nothing moves yet. Later steps show more."
    );
  }
  return (
    `One step of the run\u2019s own optimiser (${learner.optimizer}), on the ${moves.length} positions of this ` +
    `game at once, takes their mean loss from ${fixed(loss[0], 3)} to ${fixed(loss[1], 3)}.`
  );
}

function lessonAfter(view, move, { learner }) {
  const { counts, loss } = view.lesson;
  const decided = learner.ema_decay ? "The average of \u03b8" : "\u03b8";
  return (
    `After ${counts[view.count]} steps on this game alone its mean loss is ${fixed(loss[view.count], 3)}. ` +
    `In the run each of the ${learner.steps} steps of an iteration drew ${learner.batch_size} positions from the ` +
    `buffer, so that no game was learned by heart. ${decided} plays the next iteration, and the loop begins anew.`
  );
}

/** A formula, the same with numbers, and what comes of it. */
function lessonTerm(name, formula, numbers, result) {
  return h(
    "tr",
    { "data-term": name },
    h("th", { scope: "row" }, formula),
    h("td", { class: "az-loop-numbers" }, numbers),
    h("td", {}, result),
  );
}

function lessonTable(caption, rows) {
  const table = h("table", { class: "az-loop-terms" }, h("caption", {}, caption), h("tbody", {}, rows));
  return h("div", { class: "az-scroll", tabindex: 0, role: "group", "aria-label": caption }, table);
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
      lessonTerm("total", "all of it", sum, fixed(frame.loss, 3)),
    ]),
    h(
      "p",
      { class: "az-hint" },
      `Of the first term ${fixed(least, 3)} is the entropy of \u03c0, which no p gets below; the rest, ` +
        `${fixed(frame.policy_kl, 3)}, is how far p is from \u03c0.`,
    ),
  ];
}

function lessonStepTable(view) {
  const { rate, grad_norm: norms, loss, made } = view.lesson;
  const { learner } = view.data.settings;
  const [before, after] = view.move.frames;
  const clip = learner.clip_norm;
  const clipped = clip && norms[0] > clip;
  const cut = !clip ? "it is not clipped" : clipped ? `cut to ${clip}: times ${fixed(clip / norms[0], 3)}` : `below ${clip}, so not clipped`;
  const change = (from, to) => `${fixed(from, 3)} \u2192 ${fixed(to, 3)}`;
  return lessonTable(`Step ${(made + 1).toLocaleString("en")} of this learner`, [
    lessonTerm("gradient", "\u2016gradient\u2016", cut, fixed(norms[0], 3)),
    lessonTerm("rate", "learning rate", "from the run\u2019s schedule", rate.toPrecision(3)),
    lessonTerm("mean", "mean loss", "of all positions of the game", change(loss[0], loss[1])),
    lessonTerm("here", "loss", "of this position", change(before.loss, after.loss)),
    lessonTerm("value", "v", `of this position; z is ${signed(view.move.target)}`, change(before.v, after.v)),
  ]);
}
