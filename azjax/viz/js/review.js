import { boardText } from "./board.js";
import { h, pushButton, signed } from "./dom.js";
import { advanceInSlices } from "./search.js";
import { playerName } from "./words.js";

const NAMES = { 1: "win", 0: "draw", "-1": "loss" };
const LOST = 0.25; // Of a value that a search finds: less may be chance.

/**
 * What each move of a game was worth under perfect play: `{position, action, before, after, better}`.
 *
 * `positions` are those from the first to the last, `actions` what was played in all but the last;
 * `before` and `after` are for the player who moved, and `better` lists what would have kept
 * `before`, if the move did not.
 */
export function judgeByTable(game, positions, actions, table) {
  return actions.map((action, i) => {
    const row = table.find(positions[i].board);
    const before = table.truth(row);
    const after = -table.truth(table.find(positions[i + 1].board));
    const kept = table.optimal(row).flatMap((keeps, other) => (keeps ? [other] : []));
    return { position: positions[i], action, before, after, better: after < before ? kept : [] };
  });
}

/**
 * The same by the values of searches, one after the other; `done(moves)` is called at the end.
 *
 * `search(position)` begins one, and `wait(stop)` is told what stops it.
 */
export function judgeBySearch(game, positions, actions, { search, wait, done }) {
  const found = [];
  const valueAt = (i) => {
    const { position, search: made } = found[i];
    return position.over ? null : made.stats(0, made.length).value;
  };
  const judge = (action, i) => {
    const [position, next] = [positions[i], positions[i + 1]];
    const before = valueAt(i);
    const after = next.over ? game.reward(next) : -valueAt(i + 1);
    const best = found[i].search.action;
    return { position, action, before, after, better: best !== action && before - after > LOST ? [best] : [] };
  };
  const go = () => {
    const position = positions[found.length];
    if (position.over) {
      found.push({ position });
      return done(actions.map(judge));
    }
    const one = search(position);
    const next = () => {
      found.push({ position, search: one });
      const timer = setTimeout(go);
      wait(() => clearTimeout(timer));
    };
    const stop = advanceInSlices(one, next);
    if (stop) wait(stop);
  };
  go();
}

/**
 * The moves of a finished game with their worth, and a sentence on where it was decided.
 *
 * `judge` is `{simulations, iteration}` of the searches that judged, or undefined for the truth.
 */
export function review(moves, you, judge, look) {
  const rows = moves.map((move, i) => reviewRow(move, i, you, judge, look));
  const how = judge && `Judged by searches of ${judge.simulations} simulations over the network of iteration ${judge.iteration}, not by the truth, which nobody computed: a mistake is a move that costs more than ${LOST}.`;
  return h(
    "section",
    { class: "az-review" },
    h("h3", {}, "Move by move"),
    h("p", { class: "az-review-sum" }, turningPoint(moves, you, judge)),
    how && h("p", { class: "az-hint" }, how),
    h("ol", {}, rows),
  );
}

function reviewRow(move, i, you, judge, look) {
  const { player, board } = move.position;
  const words = `${playerName(player)}, ${player === you ? "you" : "the network"}: ${move.action}. ${verdict(move, judge)}`;
  const name = `look at the position before move ${i + 1}`;
  const show = () => look(boardText(board));
  return h(
    "li",
    { class: move.better.length ? "az-mistake" : "", "data-before": move.before, "data-after": move.after },
    words,
    " ",
    pushButton("look", `look-${i}`, show, { class: "az-button az-small", "aria-label": name }),
  );
}

function verdict({ before, after, better }, judge) {
  if (judge) {
    const change = `Value ${signed(before)}, then ${signed(after)}`;
    return better.length ? `${change}; the search plays ${better[0]}.` : `${change}.`;
  }
  if (!better.length) return `Keeps the ${NAMES[before]}.`;
  return `Turns a ${NAMES[before]} into a ${NAMES[after]}; ${either(better)} would have kept it.`;
}

/** The reader's first mistake; where searches judge, the one that cost most. */
function turningPoint(moves, you, judge) {
  const mistakes = moves.filter(({ better }) => better.length);
  const mine = mistakes.filter(({ position }) => position.player === you);
  if (!mine.length && judge) return `No move of yours cost more than ${LOST}.`;
  if (!mine.length) return mistakes.length ? "You made no mistake, and the network did." : "Neither of you made a mistake.";
  const worst = judge ? mine.reduce((a, b) => (b.before - b.after > a.before - a.after ? b : a)) : mine[0];
  const { before, after, action, better } = worst;
  const at = moves.indexOf(worst) + 1;
  if (judge) return `Your costliest move was move ${at}: ${action} took the value from ${signed(before)} to ${signed(after)}; the search plays ${better[0]}.`;
  return `Your first mistake was move ${at}: ${action} turned a ${NAMES[before]} into a ${NAMES[after]}; ${either(better)} would have kept it.`;
}

function either(cells) {
  const last = cells.length - 1;
  return last ? `${cells.slice(0, last).join(", ")} or ${cells[last]}` : String(cells[0]);
}
