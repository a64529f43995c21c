import { board, boardText, openTable, playerToMove, readBoard } from "./board.js";
import { h, percent, pushButton, replace } from "./dom.js";
import { valueBar } from "./encoding.js";
import { GAMES } from "./games.js";
import { openNetworks, opinionOf } from "./network.js";
import { review } from "./review.js";
import { playerName } from "./words.js";

const PAUSE = 150; // Milliseconds before the network's stone appears, so that it can be seen to.

/** A game against the network, which can show what it thinks, and what is true. */
export function play(root, data, place) {
  const table = openTable(data);
  const network = openNetworks(data, GAMES.tic_tac_toe, table).at(-1);
  if (network) return new Match(root, table, network, place);
  return replace(
    root,
    h("p", { class: "az-hint" }, "There is no trained network here to play against."),
  );
}

class Match {
  constructor(root, table, network, place) {
    const counts = { won: 0, drawn: 0, lost: 0 };
    Object.assign(this, {
      root,
      table,
      network,
      place,
      you: 0,
      history: [],
      counts,
      shown: { thoughts: false, truth: false },
    });
    this.board = h("div", { class: "az-play-board" });
    this.controls = h("div", { class: "az-play-bar" });
    this.status = h("p", { class: "az-play-status", role: "status", "aria-live": "polite" });
    this.insight = h("div", { class: "az-play-insight" });
    this.review = h("div", {});
    this.tally = h("dl", { class: "az-tally", "aria-label": "games so far" });
    const right = h("div", {}, this.status, this.tally, this.insight, this.review);
    replace(root, this.controls, h("div", { class: "az-columns" }, this.board, right));
    this.#begin(0);
    place.follow(() => this.#drawControls());
  }

  #begin(you, cells = Array(9).fill(0)) {
    clearTimeout(this.timer);
    Object.assign(this, { you, cells, history: [], last: null, counted: false });
    this.#turn();
  }

  /** The position that the page looks at, if a game can go on from there. */
  #elsewhere() {
    const row = this.table.find(readBoard(this.place.get("board") ?? ""));
    return row > 0 && !this.table.over(row) ? readBoard(this.place.get("board")) : null;
  }

  /** Draws, and lets the network answer when it is its turn. */
  #turn() {
    const over = this.#over();
    if (over && !this.counted) this.counts[this.#result()] += 1;
    this.counted ||= over;
    this.#draw();
    if (over || playerToMove(this.cells) === this.you) return;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.timer = setTimeout(() => this.#put(this.#opinion().move), still ? 0 : PAUSE);
  }

  #put(cell) {
    const player = playerToMove(this.cells);
    this.history.push({ cells: this.cells, last: this.last });
    this.cells = this.cells.slice();
    this.cells[cell] = player === 0 ? 1 : -1;
    this.last = cell;
    this.#turn();
  }

  #click(cell) {
    if (this.#over() || this.cells[cell] || playerToMove(this.cells) !== this.you) return;
    this.#put(cell);
  }

  /** Takes back the reader's last move, and what the network answered; the tally stays. */
  #undo() {
    clearTimeout(this.timer);
    let before = this.history.pop();
    while (before && playerToMove(before.cells) !== this.you) before = this.history.pop();
    if (!before) return;
    Object.assign(this, before);
    this.#turn();
  }

  #toggle(name) {
    this.shown[name] = !this.shown[name];
    this.#draw();
  }

  #row() {
    return this.table.find(this.cells);
  }

  #opinion() {
    return opinionOf(this.network, GAMES.tic_tac_toe, GAMES.tic_tac_toe.at(this.cells));
  }

  #over() {
    return this.table.over(this.#row());
  }

  #result() {
    const line = this.table.line(this.cells);
    if (!line) return "drawn";
    return (this.cells[line[0]] === 1) === (this.you === 0) ? "won" : "lost";
  }

  #draw() {
    const over = this.#over();
    const names = { won: "win", drawn: "draw", lost: "loss" };
    this.root.dataset.board = boardText(this.cells);
    this.root.dataset.you = playerName(this.you);
    if (over) this.root.dataset.result = names[this.#result()];
    else delete this.root.dataset.result;
    this.#drawBoard(over);
    this.#drawControls();
    const words = this.#words(over);
    if (this.status.textContent !== words) this.status.textContent = words;
    this.#drawInsight(over);
    const look = (board) => this.place.set({ board });
    const boards = [...this.history.map(({ cells }) => cells), this.cells];
    replace(this.review, over ? review(boards, this.table, this.you, look) : null);
    replace(
      this.tally,
      Object.entries(this.counts).map(([name, n]) =>
        h("div", {}, h("dt", {}, name), h("dd", { "data-tally": name }, String(n))),
      ),
    );
  }

  #drawBoard(over) {
    const { thoughts, truth } = this.shown;
    const policy = thoughts && !over ? this.#opinion().policy : null;
    const labels = this.cells.map((_, cell) => (policy ? percent(policy[cell]) : ""));
    const marks = truth && !over ? this.table.optimal(this.#row()) : null;
    const look = {
      size: 264,
      heat: policy,
      labels,
      marks,
      last: this.last,
      line: this.table.line(this.cells),
    };
    const picture = board(this.cells, {
      ...look,
      onCell: (cell) => this.#click(cell),
      label: "the game",
    });
    picture.classList.toggle("az-shut", over);
    const open = !over && playerToMove(this.cells) === this.you;
    for (const button of picture.querySelectorAll(".az-cell")) {
      const cell = Number(button.getAttribute("data-cell"));
      if (!open || this.cells[cell]) button.setAttribute("aria-disabled", "true");
      if (marks?.[cell])
        button.setAttribute("aria-label", `${button.getAttribute("aria-label")}, keeps the value`);
    }
    replace(this.board, picture);
  }

  #drawControls() {
    const pressed = (on) => ({ "aria-pressed": String(on) });
    const side = (you, text) =>
      pushButton(text, `play-${playerName(you)}`, () => this.#begin(you), pressed(this.you === you));
    const toggle = (name, text) =>
      pushButton(text, name, () => this.#toggle(name), pressed(this.shown[name]));
    const mine = this.history.some(({ cells }) => playerToMove(cells) === this.you);
    const there = this.#elsewhere();
    const goThere = () => this.#begin(playerToMove(there), there);
    replace(
      this.controls,
      h(
        "div",
        { class: "az-group", role: "group", "aria-label": "your side" },
        side(0, "Play X"),
        side(1, "Play O"),
      ),
      h(
        "div",
        { class: "az-group" },
        pushButton("New game", "new", () => this.#begin(this.you)),
        pushButton("Undo", "undo", () => this.#undo(), { "aria-disabled": String(!mine) }),
        there && pushButton("Play from the position shown", "there", goThere),
      ),
      h(
        "div",
        { class: "az-group" },
        toggle("thoughts", "Show what the network thinks"),
        toggle("truth", "Show the truth"),
      ),
    );
  }

  #words(over) {
    const network = playerName(1 - this.you);
    const moved = this.last !== null && playerToMove(this.cells) === this.you;
    const last = moved ? `The network, ${network}, took ${this.last}. ` : "";
    const start = this.history.length < 2 ? `You are ${playerName(this.you)}. ` : "";
    if (over) {
      const ends = {
        won: "You win.",
        drawn: "Draw.",
        lost: `${network} has three in a row: the network wins.`,
      };
      return (moved ? last : "") + ends[this.#result()];
    }
    return (
      start + last + (playerToMove(this.cells) === this.you ? "Your move." : "The network is to move.")
    );
  }

  #drawInsight(over) {
    const { thoughts, truth } = this.shown;
    const mover = playerName(playerToMove(this.cells));
    const row = this.#row();
    const parts = [];
    if (thoughts && !over) {
      parts.push(valueBar(this.#opinion().value, `The network\u2019s value for ${mover}, to move`));
      parts.push(
        h(
          "p",
          { class: "az-hint" },
          `Shading and percentages: how likely the network finds each move of ${mover}.`,
        ),
      );
    }
    if (truth)
      parts.push(
        h(
          "p",
          { class: "az-hint", "data-truth": this.table.truth(row) },
          truthWords(this.table.truth(row), mover, over),
        ),
      );
    replace(this.insight, parts);
  }
}

function truthWords(value, mover, over) {
  if (over) return "The game is over; nothing is left to choose.";
  const ends = value > 0 ? `${mover} wins` : value < 0 ? `${mover} loses` : "the game is a draw";
  return `With perfect play from here ${ends}. A dot marks each move that keeps it so.`;
}
