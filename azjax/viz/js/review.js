import { h, pushButton, signed } from "./dom.js";
import { advanceInSlices } from "./search.js";
import { listWords, playerName } from "./words.js";

const RESULT_NAMES = { 1: "win", 0: "draw", "-1": "loss" };
const MISTAKE = 0.25; // Loss of value in a search; smaller losses may be chance.

/** A move under perfect play: its value `before` and `after`, for the mover, and the `optimal` moves. */
export function movePlayed(game, position, action) {
  const { table } = game;
  const next = game.step(position, action);
  const row = table.find(position);
  const sign = next.player === position.player ? 1 : -1;
  return { before: table.truth(row), after: sign * table.truth(table.find(next)), optimal: table.optimal(row) };
}

/**
 * The moves of a game under perfect play: `{position, action, before, after, better}`.
 *
 * `positions` are those before each move, and the last one. `before` and `after` are for the mover;
 * `better` lists the moves that would have kept `before`, if the move did not.
 */
export function reviewByTable(game, positions, actions) {
  return actions.map((action, i) => {
    const { before, after, optimal } = movePlayed(game, positions[i], action);
    return { position: positions[i], action, before, after, better: after < before ? optimal : [] };
  });
}

/**
 * The same with the values of searches, one after the other; calls `done(moves)` at the end.
 *
 * `search(position)` starts a search; `wait(stop)` receives the function that stops it.
 */
export function reviewBySearch(game, positions, actions, { search, wait, done }) {
  const results = [];
  const valueAt = (i) => {
    const { position, search: made } = results[i];
    return position.over ? null : made.stats(0, made.length).value;
  };
  const rate = (action, i) => {
    const [position, next] = [positions[i], positions[i + 1]];
    const before = valueAt(i);
    const sign = next.player === position.player ? 1 : -1;
    const after = next.over ? game.reward(next) : sign * valueAt(i + 1);
    const best = results[i].search.action;
    return { position, action, before, after, better: best !== action && before - after > MISTAKE ? [best] : [] };
  };
  const go = () => {
    const position = positions[results.length];
    if (position.over) {
      results.push({ position });
      return done(actions.map(rate));
    }
    const one = search(position);
    const next = () => {
      results.push({ position, search: one });
      const timer = setTimeout(go);
      wait(() => clearTimeout(timer));
    };
    const stop = advanceInSlices(one, next);
    if (stop) wait(stop);
  };
  go();
}

/**
 * The moves of a finished game with their values, and a sentence on the first mistake.
 *
 * `searches` is `{simulations, iteration}` of the searches used, or undefined for perfect play.
 */
export function review(game, moves, you, searches, show) {
  const how = searches && `The values come from searches of ${searches.simulations} simulations with the network of iteration ${searches.iteration}, not from perfect play. A mistake is a move that the search would not play and that lowers the value by more than ${MISTAKE}.`;
  return h(
    "section.az-review",
    h("h3", "Move by move"),
    h("p.az-review-sum", turningPoint(game, moves, you, searches)),
    how && h("p.az-hint", how),
    h("ol", moves.map((move, i) => reviewRow(game, move, i, you, searches, show))),
  );
}

function reviewRow(game, move, i, you, searches, show) {
  const { position, action } = move;
  const who = `${playerName(position.player)} (${position.player === you ? "you" : "the network"})`;
  const words = `${who}: ${game.moveName(position, action)}. ${verdict(game, move, searches)}`;
  const name = `show the position before move ${i + 1}`;
  return h(
    "li",
    { class: move.better.length ? "az-mistake" : "", "data-before": move.before, "data-after": move.after },
    words,
    " ",
    pushButton("show", `look-${i}`, () => show(game.text(position)), { class: "az-button az-small", "aria-label": name }),
  );
}

function verdict(game, { position, before, after, better }, searches) {
  if (searches) {
    const change = `Value ${signed(before)}, then ${signed(after)}`;
    return better.length ? `${change}; the search plays ${game.moveName(position, better[0])}.` : `${change}.`;
  }
  if (!better.length) return `Keeps the ${RESULT_NAMES[before]}.`;
  return `Turns a ${RESULT_NAMES[before]} into a ${RESULT_NAMES[after]}; ${either(game, position, better)} would have kept it.`;
}

/** The reader's first mistake; with searches, the largest one. */
function turningPoint(game, moves, you, searches) {
  const mistakes = moves.filter(({ better }) => better.length);
  const mine = mistakes.filter(({ position }) => position.player === you);
  if (!mine.length && searches) return "The searches found no mistake in your moves.";
  if (!mine.length) return mistakes.length ? "You made no mistake, but the network did." : "Neither of you made a mistake.";
  const worst = searches ? mine.reduce((a, b) => (b.before - b.after > a.before - a.after ? b : a)) : mine[0];
  const { position, before, after, action, better } = worst;
  const which = `${game.moveName(position, action)}, move ${moves.indexOf(worst) + 1} of the game`;
  if (searches) return `Your largest mistake was ${which}: the value fell from ${signed(before)} to ${signed(after)}; the search plays ${game.moveName(position, better[0])}.`;
  return `Your first mistake was ${which}. It turned a ${RESULT_NAMES[before]} into a ${RESULT_NAMES[after]}; ${either(game, position, better)} would have kept the ${RESULT_NAMES[before]}.`;
}

function either(game, position, actions) {
  return listWords(actions.map((action) => game.moveName(position, action)), "or");
}
