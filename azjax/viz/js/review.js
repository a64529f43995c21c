import { boardText, playerToMove } from "./board.js";
import { h, pushButton } from "./dom.js";
import { playerName } from "./words.js";

const NAMES = { 1: "win", 0: "draw", "-1": "loss" };

/**
 * What each move of a game was worth under perfect play.
 *
 * `boards` are the positions from the first to the last; `before` and `after` are for the player
 * who moved, and `better` lists what would have kept `before`, if the move did not.
 */
export function judgeMoves(boards, table) {
  return boards.slice(1).map((next, i) => {
    const row = table.find(boards[i]);
    const before = table.truth(row);
    const after = -table.truth(table.find(next));
    const kept = table.optimal(row).flatMap((keeps, cell) => (keeps ? [cell] : []));
    const cell = next.findIndex((stone, at) => stone !== boards[i][at]);
    return { board: boards[i], player: playerToMove(boards[i]), cell, before, after, better: after < before ? kept : [] };
  });
}

/** The moves of a finished game with their worth, and a sentence on where it was decided. */
export function review(boards, table, you, look) {
  const moves = judgeMoves(boards, table);
  const rows = moves.map((move, i) => reviewRow(move, i, you, look));
  return h(
    "section",
    { class: "az-review" },
    h("h3", {}, "Move by move"),
    h("p", { class: "az-review-sum" }, turningPoint(moves, you)),
    h("ol", {}, rows),
  );
}

function reviewRow(move, i, you, look) {
  const who = move.player === you ? "you" : "the network";
  const words = `${playerName(move.player)}, ${who}: ${move.cell}. ${verdict(move)}`;
  const name = `look at the position before move ${i + 1}`;
  const show = () => look(boardText(move.board));
  return h(
    "li",
    { class: move.better.length ? "az-mistake" : "", "data-before": move.before, "data-after": move.after },
    words,
    " ",
    pushButton("look", `look-${i}`, show, { class: "az-button az-small", "aria-label": name }),
  );
}

function verdict({ before, after, better }) {
  if (!better.length) return `Keeps the ${NAMES[before]}.`;
  return `Turns a ${NAMES[before]} into a ${NAMES[after]}; ${either(better)} would have kept it.`;
}

function turningPoint(moves, you) {
  const at = moves.findIndex((move) => move.player === you && move.better.length);
  const theirs = moves.some((move) => move.player !== you && move.better.length);
  if (at >= 0) {
    const { before, after, cell, better } = moves[at];
    return `Your first mistake was move ${at + 1}: ${cell} turned a ${NAMES[before]} into a ${NAMES[after]}; ${either(better)} would have kept it.`;
  }
  return theirs ? "You made no mistake, and the network did." : "Neither of you made a mistake.";
}

function either(cells) {
  const last = cells.length - 1;
  return last ? `${cells.slice(0, last).join(", ")} or ${cells[last]}` : String(cells[0]);
}
